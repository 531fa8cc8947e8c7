"""`check`: a student's class, packed up and judged outside of the process that it comes from."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from optlab.course import judge_process
from optlab.course.catalogue import CHECKS, find
from optlab.course.report import Report
from optlab.course.variants import own_name, seed_of

#: A cell has 30 seconds in nbgrader; a check answers well before.
SECONDS = 19.0
#: Where the class is made from the cells of a notebook, outside of any cell.
CELLS_SECONDS = 55.0


def check(
    name: str,
    student_class: Any,
    *,
    seed: int = 0,
    hidden: bool = False,
    student: str | None = None,
) -> Report:
    """Check a class against the rule that it should be, and name the mistake in it.

    The class runs in a process of its own, with a bound on time and memory, and exchanges arrays
    alone; whatever it does, a report comes back within 20 seconds. What a student sees here is
    feedback: marks are made by ``nbgrader autograde`` in a course of ``optlab course new``.

    Parameters
    ----------
    name : str
        What the class should be; `names` lists the checks and how their classes are made.
    student_class : type
        A plain class of the student's own, or a function that makes its objects.
    seed : int
        Which starts and gradients are used.
    hidden : bool
        Leave out of the report what would show these numbers.
    student : str, optional
        Check with the settings, starts and gradients of this student, as `variant` has numbers of
        theirs; an empty name is JupyterHub's, where there is one.

    Returns
    -------
    Report
        `passed`, `score`, `mistake`, `message`, `first_difference`, `parts`.

    Raises
    ------
    ValueError
        If there is no check of this name.
    TypeError
        If what is checked is no class and no function.

    Examples
    --------
    >>> import optlab as ol
    >>> class Descent:
    ...     def __init__(self, learning_rate):
    ...         self.learning_rate = learning_rate
    ...
    ...     def step(self, params, grads):
    ...         return [p + self.learning_rate * g for p, g in zip(params, grads)]
    >>> report = ol.course.check("sgd", Descent)
    >>> report.passed, report.mistake
    (False, 'wrong_sign')
    >>> print(report.first_difference)
    step 1 (12 steps of one parameter), array 0[0]: expected ..., got ...; it is the ...
    """
    find(name)
    if student is not None:
        seed = seed_of(own_name(student), seed)
    if not callable(student_class):
        raise TypeError(
            f"check({name!r}, ...) takes the class itself, not an object of it; "
            f"it was given an object of type {type(student_class).__name__}"
        )
    try:
        pickled = packed(student_class)
    except Exception as error:  # noqa: BLE001  (what stands in a class may raise anything)
        return _no_report(
            name,
            "raises",
            "Your class cannot be sent to the process that checks it, because of something that it "
            f"refers to (an open file, a lock, a figure?): {type(error).__name__}: {error}",
        )
    return in_another_process(name, {"pickled": pickled}, seed, hidden)


def names() -> dict[str, str]:
    """Return the names of all checks, and how the classes are made and called.

    Examples
    --------
    >>> import optlab as ol
    >>> print(ol.course.names()["ema"])
    EMA(decay=0.999); update(params) takes weights in, average() returns a list of arrays
    """
    return {name: found.signature for name, found in CHECKS.items()}


def packed(student_class: Any) -> bytes:
    """Return a class as bytes, with all of the student's code that it refers to."""
    from optlab.backend.extras import needed_for

    with needed_for("ol.course.check"):
        import cloudpickle

    class Pickler(cloudpickle.CloudPickler):  # type: ignore[misc, unused-ignore]
        def reducer_override(self, thing: Any) -> Any:
            """Name modules of classes of their own, such as optlab's, as other modules are."""
            if isinstance(thing, ModuleType) and type(thing) is not ModuleType:
                return import_module, (thing.__name__,)
            return super().reducer_override(thing)

    buffer = io.BytesIO()
    with _by_value(student_class, cloudpickle):
        Pickler(buffer).dump(student_class)
    return buffer.getvalue()


@contextmanager
def _by_value(student_class: Any, cloudpickle: Any) -> Iterator[None]:
    """Have classes of a student's files packed as those of a notebook are, without the file."""
    classes = getattr(student_class, "__mro__", (student_class,))
    own = {getattr(cls, "__module__", None) for cls in classes} - {None, "__main__", "builtins"}
    modules = [
        sys.modules[name]
        for name in own
        if name in sys.modules
        and name.partition(".")[0] not in {*sys.stdlib_module_names, "numpy", "optlab"}
        and name not in cloudpickle.list_registry_pickle_by_value()
    ]
    for module in modules:
        cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        for module in modules:
            cloudpickle.unregister_pickle_by_value(module)


def in_another_process(
    name: str, load: dict[str, Any], seed: int = 0, hidden: bool = False
) -> Report:
    """Return the report that a clean process makes of a class.

    A student's cells may have changed whatever is in this process, NumPy and optlab among it. What
    judges therefore starts anew: it gets the class as bytes, and gives back text.
    """
    pickled = load.get("pickled", b"")
    request = {"name": name, "seed": seed, "hidden": hidden, "cells": load.get("cells")}
    request |= {"class_name": load.get("class_name")}
    paths = [str(Path(judge_process.__file__).parents[2]), *filter(None, sys.path)]
    try:
        done = subprocess.run(
            [sys.executable, "-I", judge_process.__file__, json.dumps(paths)],
            input=json.dumps(request).encode() + b"\n" + pickled,
            capture_output=True,
            timeout=SECONDS if load.get("cells") is None else CELLS_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return _no_report(name, "too_slow", "The check took longer than it may.")
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise RuntimeError(
            f"the process that checks classes has failed: {said[-1] if said else ''}"
        )
    return Report.from_dict(json.loads(done.stdout))


def _no_report(name: str, mistake: str, message: str) -> Report:
    return Report(name, False, 0.0, mistake, message)
