"""Resampling of sequences, images and volumes to another size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from optlab.autograd.tensor.conversions import as_setting, refuse_setting
from optlab.autograd.tensor.tensor import Tensor, apply, raw
from optlab.nn.docstrings import documented_like
from optlab.nn.functional.arguments import as_bool, no_name, scores
from optlab.nn.functional.pooling.rules import AVERAGE_POOL
from optlab.nn.functional.resampling_rules import RESAMPLE, sampling_taps
from optlab.nn.functional.windows import (
    FORMATS,
    adaptive,
    channels_back,
    channels_second,
    is_channels_last,
    per_axis,
)

#: The modes, the kind of interpolation of each, and the numbers of spatial axes it supports.
MODES: dict[str, tuple[str, tuple[int, ...]]] = {
    "nearest": ("nearest", (1, 2, 3)),
    "linear": ("linear", (1,)),
    "bilinear": ("linear", (2,)),
    "trilinear": ("linear", (3,)),
    "bicubic": ("cubic", (2,)),
    "area": ("area", (1, 2, 3)),
}

#: Paddle's names of the formats of sequences.
_OTHER_NAMES = {"NCW": "NCL", "NWC": "NLC"}


def interpolate(
    x: Any, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
    align_corners: bool = False, align_mode: int = 0, data_format: str | None = None,
    recompute_scale_factor: bool | None = None, antialias: bool = False, name: None = None,
) -> Tensor:  # fmt: skip
    r"""Resample sequences, images or volumes to another size.

    Element i of the result is read around :math:`s = r (i + \frac12) - \frac12` in x, where r is
    the old length divided by the new one (or 1 / `scale_factor`).

    Parameters
    ----------
    x : Tensor of shape [N, C, L], [N, C, H, W] or [N, C, D, H, W]
    size : int or list of int, optional
        Output size of the spatial axes.
    scale_factor : float or list of float, optional
        Factor of the spatial size, instead of `size`; the product is rounded down.
    mode : {'nearest', 'linear', 'bilinear', 'trilinear', 'bicubic', 'area'}
        'nearest': the element at floor(r i). 'linear', 'bilinear', 'trilinear' (for 1, 2, 3 spatial
        axes): linear interpolation of the two neighbors along each axis. 'bicubic' (2 axes): cubic
        interpolation of four neighbors. 'area': adaptive average pooling.
    align_corners : bool
        Align the first and the last elements: :math:`s = i (n - 1) / (m - 1)`. Not for 'nearest'
        and 'area'.
    align_mode : {0, 1}
        For the linear modes without `align_corners`: 1 means :math:`s = r i`.
    data_format : {'NCW', 'NCHW', 'NCDHW', 'NWC', 'NHWC', 'NDHWC'}, optional
        Position of the channel axis: 1 (the default) or the last.
    recompute_scale_factor : bool, optional
        If True, compute r from the lengths, as if `size` were given.
    antialias : bool
        Must be False: average first, with mode 'area'.

    Returns
    -------
    Tensor
        Of the new lengths, in the dtype of x.

    Raises
    ------
    ValueError
        If an argument is invalid.
    TypeError
        If `antialias` is True.

    Notes
    -----
    Nothing is saved for the backward pass: the derivative is the transposed operation. 16-bit
    arrays are averaged in float32. Where one element is left of an axis, the linear and cubic modes
    read its center, as in the formula and in PyTorch (Paddle reads the start, for images and
    volumes). Source of the cubic: Keys 1981, with a = -3/4. Signature:
    paddle.nn.functional.interpolate.

    Examples
    --------
    >>> import optlab as ol
    >>> x = ol.to_tensor([[[0.0, 4.0]]])
    >>> ol.nn.functional.interpolate(x, size=4, data_format="NCW")
    Tensor([[[0., 0., 4., 4.]]], dtype=float32)
    >>> ol.nn.functional.interpolate(x, scale_factor=2, mode="linear")
    Tensor([[[0., 1., 3., 4.]]], dtype=float32)
    >>> ol.nn.functional.interpolate(x, size=3, mode="linear", align_corners=True)
    Tensor([[[0., 2., 4.]]], dtype=float32)
    """
    no_name(name)
    call = "interpolate"
    if mode not in MODES:
        raise ValueError(f"{call} takes a mode among {', '.join(map(repr, MODES))}; got {mode!r}.")
    kind, fitting = MODES[mode]
    x = scores(x)
    dims = x.ndim - 2
    if dims not in fitting:
        axes = " or ".join(str(n + 2) for n in fitting)
        raise ValueError(
            f"{call} with mode={mode!r} takes x of {axes} axes; got shape {x.shape}. "
            "A single example gets its batch axis with x[None]."
        )
    if as_bool(antialias, "antialias", call):
        raise TypeError(
            f"{call} with antialias=True is not covered; mode='area' averages what it leaves out."
        )
    corners = as_bool(align_corners, "align_corners", call)
    if corners and kind in ("nearest", "area"):
        raise ValueError(f"{call}: align_corners is for linear and cubic modes; got mode={mode!r}.")
    if align_mode not in (0, 1):
        raise ValueError(f"{call}: align_mode is 0 or 1; got {align_mode!r}.")
    last = _channels_last(data_format, dims, call)
    x = channels_second(x, last)
    if 0 in x.shape[2:]:
        raise ValueError(f"{call} needs something to read; got shape {x.shape}.")
    counts, scales = _output_lengths(x.shape[2:], size, scale_factor, call)
    if recompute_scale_factor:
        scales = [None] * dims
    if kind == "area":
        windows = tuple(adaptive(n, m) for n, m in zip(x.shape[2:], counts, strict=True))
        y = apply(AVERAGE_POOL, (x,), {"windows": windows, "divisor": "inside"})
    else:
        centers = not corners and (kind == "cubic" or align_mode == 0)
        readings = tuple(
            sampling_taps(n, m, kind, scale, corners, kind != "nearest" and centers)
            for n, m, scale in zip(x.shape[2:], counts, scales, strict=True)
        )
        y = apply(RESAMPLE, (x,), {"readings": readings})
    return channels_back(y, last)  # type: ignore[no-any-return]


@documented_like(interpolate)
def upsample(
    x: Any, size: Any = None, scale_factor: Any = None, mode: str = "nearest",
    align_corners: bool = False, align_mode: int = 0, data_format: str | None = None,
    name: None = None,
) -> Tensor:  # fmt: skip
    """Resample sequences, images or volumes: another name of `interpolate`.

    Raises
    ------
    ValueError
        If an argument is invalid.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.functional.upsample(ol.ones([1, 3, 4, 4]), scale_factor=2, mode="bilinear").shape
    (1, 3, 8, 8)
    """
    return interpolate(x, size, scale_factor, mode, align_corners, align_mode, data_format, None,
                       False, name)  # fmt: skip


def _channels_last(data_format: Any, dims: int, call: str) -> bool:
    if data_format is None:
        return False
    own = _OTHER_NAMES.get(data_format, data_format)
    if own in FORMATS[dims]:
        return is_channels_last(own, dims, call)
    names = ("NCW", "NWC") if dims == 1 else FORMATS[dims]
    raise ValueError(
        f"{call} takes data_format={names[0]!r} or {names[1]!r} for x of {dims + 2} axes; got "
        f"{data_format!r}."
    )


def _output_lengths(
    lengths: Sequence[int], size: Any, scale_factor: Any, call: str
) -> tuple[Sequence[int], list[float | None]]:
    """Return the output lengths, and the scale factors if given."""
    if (size is None) == (scale_factor is None):
        raise ValueError(
            f"{call} takes either size or scale_factor; got size={size!r} and "
            f"scale_factor={scale_factor!r}."
        )
    dims = len(lengths)
    if size is not None:
        return per_axis(size, dims, "size", call), [None] * dims
    refuse_setting(scale_factor, "scale_factor", "size=[...], whole numbers")
    given = raw(scale_factor)
    given = given.tolist() if hasattr(given, "tolist") else given
    factors = list(given) if isinstance(given, (list, tuple)) else [given]
    numbers = [as_setting(factor, "scale_factor") for factor in factors]
    numbers = numbers * dims if len(numbers) == 1 else numbers
    if len(numbers) != dims or not all(0 < number < math.inf for number in numbers):
        raise ValueError(
            f"{call}: scale_factor is a number greater than 0, or {dims} of them; got "
            f"{scale_factor!r}."
        )
    counts = [math.floor(n * factor) for n, factor in zip(lengths, numbers, strict=True)]
    if min(counts) < 1:
        raise ValueError(
            f"{call}: scale_factor={scale_factor!r} leaves nothing of the lengths {tuple(lengths)}."
        )
    return counts, list(numbers)
