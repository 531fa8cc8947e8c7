"""What an executor takes to its workers: any function by what it is, not by its name alone."""

from __future__ import annotations

import pickle
from typing import Any

from optlab.backend.text import one_line


class Sent:
    """A value on its way to a worker or back; threads share it, other processes get a copy.

    Executors pickle functions by their names, which functions inside of functions and lambdas have
    not. Where cloudpickle is installed, it sends these too.

    Parameters
    ----------
    value : object
    contents : str
        What it has, for the sentence that says that it cannot be sent.

    Examples
    --------
    >>> pickle.loads(pickle.dumps(Sent([1, 2]))).value
    [1, 2]
    """

    __slots__ = ("contents", "value")

    def __init__(self, value: Any, contents: str = "problem and optimizer") -> None:
        self.value, self.contents = value, contents

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the value by cloudpickle, if it is there.

        Raises
        ------
        TypeError
            If that is impossible.
        """
        return _arrived, (pickled(self.value, self.contents), self.contents)


def pickled(value: Any, contents: str) -> bytes:
    """Return the bytes from which another process makes a value.

    Raises
    ------
    TypeError
        If that is impossible.
    """
    try:
        import cloudpickle as pickler  # type: ignore[import-untyped]  # it sends functions of a notebook by what they are
    except ModuleNotFoundError:
        pickler = pickle
    try:
        found: bytes = pickler.dumps(value)
    except Exception as error:  # each kind of object has an error of its own
        raise TypeError(
            f"executor= sends {contents} to other processes: {one_line(str(error))}. Define "
            "functions at the top of a module, or install cloudpickle, which sends any function."
        ) from error
    return found


def _arrived(payload: bytes, contents: str) -> Sent:
    return Sent(pickle.loads(payload), contents)
