"""Functions of optlab's own as compiled loops: a formula of arrays in one pass over memory.

A formula such as the polynomial inside GELU is fifteen passes of NumPy; as one loop it takes a
third of the time. It is written once, in plain NumPy: `FusedFunction` captures it, and `fuse` makes
the loop, with NumPy's bits. As for updates, NumPy does the work until the loop is compiled, which
happens in a child process once it has been called often enough, and wherever it may not run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from optlab.plan.executors import (
    LOOK_UP,
    chosen_executor,
    has_numba,
    is_compiled,
    may_use_loops,
)

#: Operations on an element that are counted before the function is captured.
_FEW = 8
#: Loops that one function keeps, each for arrays of one shape; then it starts anew.
_MOST_SHAPES = 64


class FusedFunction:
    """An elementwise function of arrays, which has a compiled loop once that pays off.

    Parameters
    ----------
    function : callable
        Plain NumPy: takes arrays, and returns an array or a tuple of them.

    Examples
    --------
    >>> from optlab.plan.executors import use_executor
    >>> square_plus_one = FusedFunction(lambda x: x * x + 1)
    >>> x = np.ones(4, np.float32)
    >>> with use_executor("numpy"):
    ...     square_plus_one.loop(x) is None
    True
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self._worked = 0
        #: The loops by shapes and dtypes; None for what cannot have one.
        self._loops: dict[Any, Any] = {}

    def loop(self, *arrays: Any) -> Callable[..., Any] | None:
        """Return the compiled loop for such arrays; None if NumPy has to go on.

        It takes them, and `out`, the list of arrays that it fills.
        """
        if not may_use_loops():
            return None
        automatic = chosen_executor() == "auto"
        if automatic and (self._worked < LOOK_UP or not has_numba()):
            self._worked += arrays[0].size * _FEW
            return None  # and nothing is imported
        key = tuple([(x.shape, x.dtype) for x in arrays])
        found = self._loops.get(key, False)
        if found is False:
            if len(self._loops) >= _MOST_SHAPES:
                self._loops.clear()
            found = self._loops[key] = self._fused(arrays)
        if found is None or found.ready:
            return found  # type: ignore[no-any-return]
        self._worked += arrays[0].size * found.operations
        there = is_compiled(found.kernel, self._worked)
        if there is None:
            self._loops[key] = None
        if there:
            found.compile()  # from the cache, and compared with NumPy
        return found if found.ready else None

    def ready(self, example: Any) -> bool:
        """Return whether there is a loop for arguments that are all like this one."""
        return self.loop(*[example] * self.function.__code__.co_argcount) is not None

    def _fused(self, arrays: Any) -> Any:
        from optlab.plan.capture import capture
        from optlab.plan.numba_fusion import fuse
        from optlab.plan.plan import Place

        examples = [np.ones_like(x) for x in arrays]
        plan = capture(self.function, *examples)
        inputs = {Place(i): (x.shape, x.dtype) for i, x in enumerate(arrays)}
        return fuse(plan.instructions, inputs, plan.outputs)
