"""auto_cast: automatic casting to 16 bits, by lists of operations."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import Any

import numpy as np

from optlab.amp.lists import ALWAYS_BLACK, BLACK, WHITE, operations_named
from optlab.autograd.operation import Operation
from optlab.autograd.tape.half_precision import halves, rounded
from optlab.autograd.tape.slow_path import slow_path
from optlab.autograd.tensor.tensor import Tensor
from optlab.backend.dtypes import dtype_named, is_half

_FLOAT32 = np.dtype(np.float32)
_LEVELS = ("OD", "O1", "O2")


class auto_cast:
    """Compute matrix products with 16 bits inside, and operations that need precision with 32.

    The inputs of operations are cast: those on the white list (matmul, linear, convolution,
    attention) to 16 bits, those on the black list (exponentials, logarithms, sums, norms, softmax,
    losses, normalizations, decompositions) to float32. Parameters and their gradients stay float32.
    float64 and integers are never cast. Nor are derivative rules, and computations of a data set
    for a `DataLoader`. It applies to the thread that enters it.

    Parameters
    ----------
    enable : bool
        False: nothing is cast inside, not even within another auto_cast.
    custom_white_list, custom_black_list : list of str, optional
        Operations to put on a list, whatever list they are on by default: NumPy's names
        (``"add"``), functions of ``ol.nn.functional`` (``"softmax"``) and Paddle's names
        (``"elementwise_add"``).
    level : {'O1', 'O2', 'OD', 'O0'}
        The handling of operations on neither list. O1: they are not cast, so NumPy's promotion
        applies, with float32 for mixed inputs. O2, for a model with 16-bit parameters: as O1, but
        only row lookups (``embedding``) and ``scatter`` stay on the black list. OD: they are cast
        to float32. O0 is ``enable=False``.
    dtype : {'float16', 'bfloat16'}
    use_promote : bool
        With O2, False casts the inputs of operations on neither list to 16 bits.

    Raises
    ------
    ValueError
        If a list names an unknown operation, or an operation is on both custom lists; if `level` or
        `dtype` is invalid.
    ModuleNotFoundError
        If the dtype is bfloat16 and the package ml_dtypes is missing.

    Notes
    -----
    Source: Micikevicius et al. 2018, "Mixed precision training". On CPUs it saves memory, not time.

    Examples
    --------
    >>> import optlab as ol
    >>> layer = ol.nn.Linear(3, 2)
    >>> with ol.amp.auto_cast():
    ...     y = layer(ol.ones([1, 3]))
    ...     loss = (y * y).mean()
    >>> y.dtype, loss.dtype
    (dtype('float16'), dtype('float32'))
    >>> loss.backward()
    >>> layer.weight.grad.dtype
    dtype('float32')
    """

    def __init__(
        self,
        enable: bool = True,
        custom_white_list: Iterable[str] | None = None,
        custom_black_list: Iterable[str] | None = None,
        level: str = "O1",
        dtype: Any = "float16",
        use_promote: bool = True,
    ) -> None:
        if level not in (*_LEVELS, "O0"):
            raise ValueError(f"level is 'O0', 'OD', 'O1' or 'O2'; got {level!r}.")
        half = dtype_named(dtype)
        if not is_half(half):
            raise ValueError(f"auto_cast casts to 'float16' or 'bfloat16'; got dtype={dtype!r}.")
        self.enable = bool(enable) and level != "O0"
        self.level = level
        self.dtype = half
        white = operations_named(custom_white_list or (), "custom_white_list")
        black = operations_named(custom_black_list or (), "custom_black_list")
        if white & black:
            raise ValueError(
                f"{', '.join(sorted(white & black))}: on custom_white_list and on "
                "custom_black_list; take it off one of them."
            )
        lows = operations_named(WHITE, "white list")
        highs: frozenset[str] = frozenset()
        if level != "OD":
            highs = operations_named(ALWAYS_BLACK + BLACK * (level == "O1"), "black list")
        #: The dtype that the inputs of an operation are cast to, by its name.
        self._goals: dict[str, np.dtype] = {
            **dict.fromkeys(highs, _FLOAT32),
            **dict.fromkeys(lows, half),
            **dict.fromkeys(white, half),
            **dict.fromkeys(black, _FLOAT32),
        }
        self._others: np.dtype | None = None
        if level == "OD":
            self._others = _FLOAT32
        elif level == "O2" and not use_promote:
            self._others = half
        #: The previous policies, for each thread inside.
        self._before: dict[int, list[Any]] = {}

    def goal(self, operation: str) -> np.dtype | None:
        """Return the dtype for the inputs of an operation; None leaves them unchanged."""
        return self._goals.get(operation, self._others)

    def cast(self, operation: Operation, inputs: Sequence[Any]) -> Sequence[Any]:
        """Cast the inputs of an operation to that dtype."""
        goal = self.goal(operation.name)
        return inputs if goal is None else [_cast_array(x, goal) for x in inputs]

    def __enter__(self) -> auto_cast:
        self._before.setdefault(threading.get_ident(), []).append(halves.policy)
        halves.policy = self if self.enable else None
        halves.on += 1
        slow_path.enter()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        before = self._before.get(threading.get_ident())
        if before:  # else it was entered by another thread, as a generator may have been
            halves.policy = before.pop()
            if not before:
                del self._before[threading.get_ident()]
        halves.on -= 1
        slow_path.leave()

    def __repr__(self) -> str:
        return f"auto_cast(level={self.level!r}, dtype={self.dtype.name!r}, enable={self.enable})"


autocast = auto_cast


def is_autocast_enabled() -> bool:
    """Return whether an `auto_cast` is active in this thread.

    Examples
    --------
    >>> import optlab as ol
    >>> with ol.amp.auto_cast():
    ...     ol.amp.is_autocast_enabled()
    True
    """
    return halves.policy is not None


def _cast_array(x: Any, dtype: np.dtype) -> Any:
    """Cast an array of float32 or of 16 bits; return anything else unchanged."""
    given = getattr(x, "dtype", None)
    if given is None or given == dtype or not (given == _FLOAT32 or is_half(given)):
        return x
    return x.astype(dtype) if isinstance(x, Tensor) else rounded(x, dtype)
