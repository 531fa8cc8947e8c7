"""A warning of arguments that are another object in every call, so that each call is captured."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from optlab.autograd.tape.base import TensorBase
from optlab.backend.call_recorder import LiveCount
from optlab.backend.user_frames import stack_level_outside
from optlab.plan.calls.arguments import Same, arguments_by_name

#: So many captures in a row that differ in one argument alone are warned of.
MOST = 8
_CHANGING = (np.ndarray, np.generic, TensorBase, float, LiveCount)


class Recaptures:
    """The captures of one function, by the arguments that made them necessary."""

    def __init__(self, f: Any) -> None:
        self._f = f
        self._before: dict[str, Any] = {}
        self._name = ""
        self._row = 0

    def count(self, args: Any, kwargs: Any, live: bool, outside: str) -> None:
        """Count a capture; warn once, if for the same reason there have been many in a row.

        Parameters
        ----------
        args, kwargs
            Of the call.
        live : bool
            Whether floats may change without another capture.
        outside : str
            What a plan for such arguments has read from outside, and is another value now.
        """
        if self._row >= MOST:
            return
        given = arguments_by_name(self._f, args, kwargs)
        now = {f"its argument {name!r}": _identity(x, live) for name, x in given.items()}
        before, self._before = self._before, now
        changed = [name for name in now if name in before and now[name] != before[name]]
        if outside and not changed:
            changed = [outside]
        if before.keys() != now.keys() or len(changed) != 1:
            self._row = 0
            return
        self._row = self._row + 1 if changed == [self._name] else 1
        (self._name,) = changed
        if self._row >= MOST:
            function = getattr(self._f, "__qualname__", self._f)
            warnings.warn(
                f"{function} was captured {MOST + 1} times in a row: {self._name} is another "
                "value or object in every call, and each has a plan of its own. Give a "
                "number that changes as a float, as np.asarray(n) or as a Tensor; take what does "
                "not matter to the call out of it.",
                UserWarning,
                stacklevel=stack_level_outside("optlab"),
            )


def _identity(x: Any, live: bool) -> Any:
    """Return what an argument is to the cache, but for shapes and the values of arrays."""
    if type(x) in (float, LiveCount) and not live:
        return type(x), float(x).hex()
    if isinstance(x, _CHANGING):
        return type(x)
    if type(x) in (tuple, list):
        return tuple([_identity(part, live) for part in x])
    if type(x) is dict:
        return tuple([(key, _identity(part, live)) for key, part in x.items()])
    if isinstance(x, (int, str, bytes, type(None))):
        return type(x), x
    return Same(x)
