"""Running a step under a strategy: its chains by a schedule, or all of it under a byte budget."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import numpy as np

from optlab.autograd import pytrees
from optlab.autograd.checkpoint.chain import called, list_of, schedule_for
from optlab.autograd.checkpoint.replay import CompareReplay, DropSaved
from optlab.autograd.checkpoint.schedules.builders import plain
from optlab.autograd.checkpoint.schedules.schedule import Schedule
from optlab.autograd.checkpoint.sequential import recompute_sequential
from optlab.autograd.remat.rematerialize import rematerialize
from optlab.autograd.tape import saved_tensors
from optlab.autograd.tape.grad_mode import recomputing, recording
from optlab.autograd.tape.nodes import Leaf
from optlab.autograd.tape.row_sparse import dense
from optlab.autograd.tape.slow_path import slow_path
from optlab.autograd.tensor.tensor import raw
from optlab.backend import events, random
from optlab.backend.arrays import copied, on_host
from optlab.backend.memory.sizes import bytes_from, in_words
from optlab.lab.memory_studies.snapshot import Snapshot
from optlab.nn.layers.containers import run_chains_by


@dataclass(frozen=True)
class Way:
    """One way to run a step.

    Attributes
    ----------
    name : str
    kind : str
        "plain", "schedule", "budget" or "own", another step of the user.
    segments, snapshots
        Of a schedule, as in `optlab.recompute_sequential`.
    budget : int or None
        Bytes.
    step : callable or None
        The other step.
    """

    name: str
    kind: str
    segments: Any = None
    snapshots: int | None = None
    budget: int | None = None
    step: Callable[..., Any] | None = None

    def options(self, n: int) -> dict[str, Any]:
        """Return the arguments of `recompute_sequential` for a chain of n layers."""
        segments = min(self.segments, n) if isinstance(self.segments, int) else self.segments
        return {"segments": segments, "snapshots": self.snapshots}


PLAIN = Way("plain", "plain")


def schedule_of(way: Way, n: int) -> Schedule:
    """Return the schedule by which a chain of n layers runs."""
    return plain(n) if way.segments is None else schedule_for(n, **way.options(n))


def read_schedule(given: Any) -> Way:
    """Read one entry of ``schedules=``.

    Raises
    ------
    TypeError, ValueError
        If it is no schedule.

    Examples
    --------
    >>> read_schedule(4).name, read_schedule("sqrt").name, read_schedule(("revolve", 3)).name
    ('4 segments', 'sqrt', 'revolve, 3 snapshots')
    """
    if isinstance(given, str):
        if given == "plain":
            return PLAIN
        if given in ("sqrt", "revolve"):
            return Way(given, "schedule", given)
    elif isinstance(given, Schedule):
        return Way(given.name, "schedule", given)
    elif isinstance(given, (int, np.integer)) and not isinstance(given, bool):
        if given < 1:
            raise ValueError(f"schedules: {given} segments; a chain has one at least.")
        return Way(f"{given} segment{'s' * bool(given > 1)}", "schedule", int(given))
    elif isinstance(given, tuple) and len(given) == 2 and given[0] == "revolve":
        number = given[1]
        if isinstance(number, (int, np.integer)) and not isinstance(number, bool) and number > 0:
            said = f"revolve, {number} snapshot{'s' * bool(number > 1)}"
            return Way(said, "schedule", "revolve", int(number))
    raise TypeError(
        f"schedules takes 'plain', a number of segments, 'sqrt', 'revolve', ('revolve', snapshots) "
        f"or a Schedule of optlab.autograd.schedules; got {given!r}."
    )


def read_budget(given: Any) -> Way:
    """Read one entry of ``budgets=``.

    Examples
    --------
    >>> read_budget("40 MiB").name, read_budget(1 << 20).name
    ('budget 40 MiB', 'budget 1 MiB')
    """
    size = bytes_from(given)
    return Way(f"budget {given.strip() if isinstance(given, str) else in_words(size)}", "budget",
               budget=size)  # fmt: skip


def takes_run(step: Any, what: str = "step") -> bool:
    """Return whether a step takes ``run``, the function that runs its chain of layers.

    Raises
    ------
    TypeError
        If it takes more, or cannot be called.
    """
    if not callable(step):
        raise TypeError(
            f"memory_study takes a function that makes one step, forward and backward; {what} is "
            f"{type(step).__name__}. Write memory_study(step), not memory_study(step())."
        )
    try:
        parameters = inspect.signature(step).parameters.values()
    except (TypeError, ValueError):
        return False
    needed = [
        p for p in parameters
        if p.default is p.empty and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]  # fmt: skip
    if len(needed) > 1:
        raise TypeError(
            f"{what} is called without arguments, or with one, run, by which it runs its layers: "
            f"run(layers, x). It needs {', '.join(p.name for p in needed)}; make a function around "
            "it that knows the batch."
        )
    return bool(needed)


@dataclass
class Outcome:
    """The outcome of one run of a step: everything that has to be equal to the bit.

    Attributes
    ----------
    gradients : dict
        The gradient of each leaf after its last backward pass.
    value : list
        The arrays and other values that the step returned.
    state : dict of str to array
        Stepped parameters, and buffers, afterwards.
    random : Any
        A bookmark of the random stream afterwards.
    operations, recomputed : int
        How many operations ran, and how many of these were recomputations.
    unused : bool
        Whether the step returned a Tensor that still has a graph.
    """

    gradients: dict[Any, Any] = field(default_factory=dict)
    value: list[Any] = field(default_factory=list)
    state: dict[str, Any] = field(default_factory=dict)
    random: Any = None
    operations: int = 0
    recomputed: int = 0
    unused: bool = False


class StepRunner:
    """Runs a step in different ways.

    Attributes
    ----------
    look : callable or None
        Called with the layers and the arguments of every chain before it runs.
    seconds : float
        The forward time of the chains in the last run.
    """

    def __init__(self, step: Callable[..., Any], snapshot: Snapshot) -> None:
        self.step = step
        self.snapshot = snapshot
        self.look: Callable[[list[Any], Any, tuple[Any, ...]], None] | None = None
        self.seconds = 0.0

    def run(self, way: Way) -> tuple[Any, Any]:
        """Run the step; return its value, and a bookmark of the random stream afterwards."""
        step = self.step if way.step is None else way.step
        self.seconds = 0.0

        def run(layers: Any, *args: Any) -> Any:
            return self._chain(way, layers, args)

        def run_sequential(sequential: Any, x: Any) -> Any:
            with run_chains_by(None):
                # The step's own recomputation stays its own, in the first run and the replay.
                if saved_tensors.entered(DropSaved, CompareReplay) or not len(sequential):
                    return sequential.forward(x)
                return self._chain(way, sequential, (x,))

        with random.replayed(self.snapshot.bookmark), ExitStack() as around:
            if way.step is None:  # the user may have a RecomputeOptimizer
                around.enter_context(saved_tensors.without_ambient())
            if way.budget is not None:
                # A budget that cannot be met is a row of the study.
                around.enter_context(warnings.catch_warnings())
                warnings.filterwarnings("ignore", "a budget of .* cannot be kept to", UserWarning)
                around.enter_context(rematerialize(budget=way.budget))
            if takes_run(step):
                value = step(run)
            elif way.step is not None:
                value = step()
            else:
                with run_chains_by(run_sequential):
                    value = step()
            return value, random.bookmark()

    def _chain(self, way: Way, layers: Any, args: tuple[Any, ...]) -> Any:
        chain = list_of(layers)
        if self.look is not None and recording.on:
            self.look(chain, layers, args)
        start = perf_counter()
        if way.segments is None:
            value: Any = args
            for layer in chain:
                value = called(layer, value)
        else:
            value = recompute_sequential(chain, *args, **way.options(len(chain)))
        self.seconds += perf_counter() - start
        return value

    def observe(self, way: Way, into: Outcome) -> None:
        """Run the step, and record everything that has to be equal."""

        def finished(_: Any, leaves: list[Leaf]) -> None:
            for leaf in leaves:
                key = leaf if self.snapshot.predates(leaf) else leaf.made_at
                into.gradients[key] = None if leaf.grad is None else host_copy(leaf.grad)

        with events.backward_finished.subscribed(finished), counting_operations(into):
            value, into.random = self.run(way)
        new = sorted(key for key in into.gradients if not isinstance(key, Leaf))
        for i, key in enumerate(new):  # identified by their order in each run
            into.gradients[f"Tensor {i + 1} made by the step"] = into.gradients.pop(key)
        parts = pytrees.flatten(value)[0]
        into.value = [host_copy(part) for part in parts]
        into.unused = any(getattr(part, "node", None) is not None for part in parts)
        into.state = {name: host_copy(array) for name, array in self.snapshot.state().items()}


@contextmanager
def counting_operations(into: Outcome) -> Iterator[None]:
    """Count operations, and recomputed ones."""

    def ran(name: str, inputs: Any, outputs: Any) -> None:
        into.operations += 1
        into.recomputed += recomputing.depth > 0

    def again(piece: Any, y: Any) -> None:
        into.operations += 1
        into.recomputed += 1

    with events.operation_ran.subscribed(ran), events.operation_recomputed.subscribed(again):
        slow_path.enter()
        try:
            yield
        finally:
            slow_path.leave()


def host_copy(x: Any) -> Any:
    """Return a NumPy copy of an array of any type; return anything else unchanged."""
    x = dense(raw(x))
    return copied(on_host(x)) if hasattr(x, "dtype") else x


def first_difference(first: Outcome, other: Outcome, names: dict[Any, str]) -> str:
    """Return where a run first differs from the plain one, to the bit; empty if equal.

    Examples
    --------
    >>> first_difference(Outcome(value=[1.0]), Outcome(value=[2.0]), {})
    'what the step returns is 2.0, and 1.0 in the plain run'
    """

    def called_gradient(key: Any) -> str:
        if isinstance(key, Leaf):
            key = names.get(key) or key.name or f"a Tensor of shape {key.shape}"
        return f"the gradient of {key}"

    for key, g in first.gradients.items():
        if key not in other.gradients:
            return f"{called_gradient(key)} is missing"
        said = _difference(called_gradient(key), g, other.gradients[key])
        if said:
            return said
    for key in other.gradients:
        if key not in first.gradients:
            return f"{called_gradient(key)} is there, and not in the plain run"
    if len(first.value) != len(other.value):
        return (
            f"the step returns {len(other.value)} values, and {len(first.value)} in the plain run"
        )
    for a, b in zip(first.value, other.value, strict=True):
        said = _difference("what the step returns", a, b)
        if said:
            return said
    for name, array in first.state.items():
        said = _difference(f"{name} afterwards", array, other.state.get(name))
        if said:
            return said
    if first.random != other.random:
        return (
            "the random stream stands somewhere else afterwards: at draw "
            f"{other.random.draws}, and {first.random.draws} in the plain run"
        )
    return ""


def _difference(name: str, plain: Any, other: Any) -> str:
    if not hasattr(plain, "dtype") or not hasattr(other, "dtype"):
        if type(plain) is type(other) and (
            plain is other or repr(plain) == repr(other) or plain == other
        ):
            return ""
        return f"{name} is {other!r}, and {plain!r} in the plain run"
    for what in ("shape", "dtype"):
        if getattr(plain, what) != getattr(other, what):
            return (
                f"{name} has {what} {getattr(other, what)}, and {getattr(plain, what)} in the "
                "plain run"
            )
    if _bits(plain) == _bits(other):
        return ""
    count = int(np.sum(plain != other)) or 1
    if plain.dtype.kind not in "iufb" or not plain.size:
        return f"{name} differs"
    with np.errstate(all="ignore"):
        most = float(np.nanmax(np.abs(plain.astype(np.float64) - other.astype(np.float64))))
    return f"{name} differs in {count:,} of {plain.size:,} numbers, by {most:.3g} at most"


def _bits(array: Any) -> bytes:
    bits: bytes = array.tobytes()
    return bits
