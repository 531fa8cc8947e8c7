"""Padding: constant, reflected, replicated and circular."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from optlab.autograd.rules.manipulation.padding import PAD
from optlab.autograd.tensor.conversions import as_setting
from optlab.autograd.tensor.tensor import Tensor, apply
from optlab.backend.arrays import as_array
from optlab.nn.functional import windows
from optlab.nn.functional.arguments import no_name, setting_beside

#: The modes, with NumPy's names for them.
MODES = {"constant": "constant", "reflect": "reflect", "replicate": "edge", "circular": "wrap"}


def pad(
    x: Any, pad: Any, mode: str = "constant", value: Any = 0.0, data_format: str | None = None,
    pad_from_left_axis: bool = True, name: None = None,
) -> Tensor:  # fmt: skip
    """Pad an array.

    Parameters
    ----------
    x : Tensor of any shape; of 3 to 5 axes where the mode is not 'constant'
    pad : list of int
        Pairs of the numbers of elements before and after an axis. For the spatial axes,
        ``[left, right, top, bottom, front, back]``: the last axis comes first. With mode
        'constant' shorter lists pad the last axes, again the last one first, and a list with a
        pair for every axis of x begins with the first axis (see `pad_from_left_axis`).
    mode : {'constant', 'reflect', 'replicate', 'circular'}
        Pad with `value`, the mirror image without the edge itself, the edge, or the other end.
    value : float
        Constant of mode 'constant'; the other modes take none.
    data_format : {'NCL', 'NCHW', 'NCDHW', 'NLC', 'NHWC', 'NDHWC'}, optional
        Position of the channel axis, if `pad` is for the spatial axes: 1 (the default) or the last.
    pad_from_left_axis : bool
        If False, a list with a pair for every axis begins with the last axis.

    Returns
    -------
    Tensor

    Raises
    ------
    ValueError
        If an argument is invalid, or padding exceeds what reflection or wrapping can fill.

    Notes
    -----
    Signature: paddle.nn.functional.pad.

    Examples
    --------
    >>> import optlab as ol
    >>> x = ol.to_tensor([[[1.0, 2.0, 3.0]]])
    >>> ol.nn.functional.pad(x, [1, 2])
    Tensor([[[0., 1., 2., 3., 0., 0.]]], dtype=float32)
    >>> ol.nn.functional.pad(x, [2, 0], mode="reflect")
    Tensor([[[3., 2., 1., 2., 3.]]], dtype=float32)
    """
    no_name(name)
    if not isinstance(x, Tensor):
        x = Tensor(as_array(x))
    if mode not in MODES:
        raise ValueError(f"pad takes a mode among {', '.join(map(repr, MODES))}; got {mode!r}.")
    widths = _widths(x, pad, mode, data_format, pad_from_left_axis)
    if mode == "constant":
        number = setting_beside(x, value, "value")
        if isinstance(number, Tensor):
            return np.pad(x, widths, constant_values=number)  # type: ignore[return-value]
        return apply(PAD, (x,), {"pad_width": widths, "constant_values": number})
    if as_setting(value, "value") != 0:
        raise ValueError(f"pad with mode={mode!r} takes no value; got value={value!r}.")
    for length, width in zip(x.shape, widths, strict=True):
        most = {"reflect": length - 1, "circular": length, "replicate": max(width)}[mode]
        if max(width) > most or (any(width) and not length):
            raise ValueError(
                f"pad with mode={mode!r} can put at most {most} elements beside an axis of "
                f"{length}; got {width}."
            )
    return np.pad(x, widths, mode=MODES[mode])  # type: ignore[no-any-return, call-overload]


def _widths(
    x: Tensor, pad: Any, mode: str, data_format: str | None, from_left: bool
) -> windows.Pairs:
    """Return the pair (before, after) of each axis."""
    n = x.ndim
    numbers = windows.as_integers(pad)
    if numbers is None or len(numbers) % 2 or len(numbers) > 2 * n or min(numbers) < 0:
        raise ValueError(
            f"pad takes pairs of whole numbers, none negative, for at most the {n} axes of x (to "
            f"cut, use an index); got {pad!r}."
        )
    pairs = list(zip(numbers[::2], numbers[1::2], strict=True))
    known = [data_format] if data_format is not None else []
    formats: Sequence[str] = windows.FORMATS.get(n - 2, ())
    if known and known[0] not in formats:
        raise ValueError(
            f"pad of an array of {n} axes takes data_format among {', '.join(formats) or 'none'}; "
            f"got {data_format!r}."
        )
    if len(pairs) == n - 2 and formats:
        after = [(0, 0)] if known and known[0] == formats[1] else []
        before = [(0, 0)] * (2 - len(after))
        return (*before, *pairs[::-1], *after)
    if mode != "constant":
        raise ValueError(
            f"pad with mode={mode!r} takes x of 3 to 5 axes and a pair for each axis of space; got "
            f"shape {x.shape} and {pad!r}."
        )
    if len(pairs) == n and from_left:
        return tuple(pairs)
    return (*[(0, 0)] * (n - len(pairs)), *pairs[::-1])


def zeropad2d(x: Any, padding: Any, data_format: str = "NCHW", name: None = None) -> Tensor:
    """Apply 2-D zero padding.

    Parameters
    ----------
    x : Tensor of shape [N, C, H, W]
    padding : int or list of int
        Number of zeros on all sides, or ``[left, right, top, bottom]``.
    data_format : {'NCHW', 'NHWC'}
        Position of the channel axis.

    Raises
    ------
    ValueError
        If an argument is invalid.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.functional.zeropad2d(ol.ones([1, 1, 1, 2]), [1, 0, 0, 1])
    Tensor([[[[0., 1., 1.],
              [0., 0., 0.]]]], dtype=float32)
    """
    no_name(name)
    sides = windows.per_axis(padding, 4, "padding", "zeropad2d", least=0)
    return pad(x, list(sides), "constant", 0.0, data_format)
