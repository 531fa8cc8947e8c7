"""Hooks on what the tape saves: pack a value when it is kept, unpack it when backward reads it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from optlab.autograd.extras import extras
from optlab.autograd.mode import recording
from optlab.autograd.several import collected

Pack = Callable[[Any], Any]
Unpack = Callable[[Any], Any]


class _Hooks(threading.local):
    stack: tuple[tuple[Pack, Unpack], ...] = ()


_hooks = _Hooks()


class saved_tensors_hooks:
    """Let two functions keep and bring back what operations save for backward.

    Parameters
    ----------
    pack : callable
        Is given each value that is saved, a Tensor without gradient, and returns anything: the
        Tensor itself, a name of a file, the same numbers in float16.
    unpack : callable
        Is given what `pack` returned and gives the values back: a Tensor or an array of the same
        shape and dtype.

    Notes
    -----
    The innermost pair of hooks applies, in the thread that entered it. Backward may run after the
    block is left. Whoever writes in place to what was packed answers for it himself.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> kept = []
    >>> x = ol.to_tensor([1.0, 2.0], requires_grad=True)
    >>> with ol.autograd.saved_tensors_hooks(
    ...     lambda t: kept.append(t.numpy()) or len(kept) - 1, lambda place: kept[place]
    ... ):
    ...     y = np.sum(x * x)
    >>> [array.tolist() for array in kept]
    [[1.0, 2.0], [1.0, 2.0]]
    >>> y.backward()
    >>> x.grad
    Tensor([2., 4.], dtype=float32)
    """

    def __init__(self, pack: Pack, unpack: Unpack) -> None:
        for name, function in {"pack": pack, "unpack": unpack}.items():
            if not callable(function):
                raise TypeError(f"{name} must be a function; got {function!r}.")
        self.pair = (pack, unpack)

    def __enter__(self) -> None:
        _hooks.stack = (*_hooks.stack, self.pair)
        extras.on += 1

    def __exit__(self, *error: object) -> None:
        _hooks.stack = _hooks.stack[:-1]
        extras.on -= 1


class Packed:
    """The saved values of a node, as hooks keep them."""

    __slots__ = ("unpack", "values")

    def __init__(self, values: tuple[Any, ...], unpack: Unpack) -> None:
        self.values = values
        self.unpack = unpack

    def restored(self) -> tuple[Any, ...]:
        """Give the saved values back."""
        was_on, recording.on = recording.on, False
        try:
            return tuple(_restored(value, self.unpack) for value in self.values)
        finally:
            recording.on = was_on


def _packed(value: Any, pack: Pack) -> Any:
    """Pack an array, or each of several outputs; shapes and numbers stay as they are."""
    if isinstance(value, tuple) and any(hasattr(part, "dtype") for part in value):
        return collected(value, [_packed(part, pack) for part in value])
    is_array = hasattr(value, "dtype") and hasattr(value, "shape")
    return _PackedArray(value, pack) if is_array else value


def _restored(value: Any, unpack: Unpack) -> Any:
    if isinstance(value, tuple):
        return collected(value, [_restored(part, unpack) for part in value])
    return value.restored(unpack) if isinstance(value, _PackedArray) else value


class _PackedArray:
    __slots__ = ("dtype", "kept", "shape")

    def __init__(self, array: Any, pack: Pack) -> None:
        from optlab.autograd.tensor import Tensor

        self.shape, self.dtype = array.shape, array.dtype
        self.kept = pack(Tensor(array))

    def restored(self, unpack: Unpack) -> Any:
        from optlab.autograd.tensor import raw

        array = raw(unpack(self.kept))
        shape, dtype = getattr(array, "shape", None), getattr(array, "dtype", None)
        if shape != self.shape or dtype != self.dtype:
            raise ValueError(
                f"unpack must give back the values that were packed, of shape {self.shape} and "
                f"dtype {self.dtype}; it gave {type(array).__name__} of shape {shape} and dtype "
                f"{dtype}."
            )
        return array


def packed(values: tuple[Any, ...]) -> Any:
    """Give what is to be kept in place of `values`: themselves, where no hooks are set."""
    if not _hooks.stack:
        return values
    pack, unpack = _hooks.stack[-1]
    was_on, recording.on = recording.on, False
    try:
        kept = tuple(_packed(value, pack) for value in values)
    finally:
        recording.on = was_on
    return Packed(kept, unpack)
