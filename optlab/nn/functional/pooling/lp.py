"""Power-average (Lp) pooling: between the average and the maximum."""

from __future__ import annotations

import math
from typing import Any

from optlab.autograd.tensor.conversions import refuse_setting
from optlab.autograd.tensor.tensor import Tensor, apply
from optlab.backend.arrays import as_float
from optlab.nn.docstrings import documented_like
from optlab.nn.functional.arguments import setting_beside
from optlab.nn.functional.pooling.pooling import _sliding_windows, avg_pool2d, checked_input
from optlab.nn.functional.pooling.rules import AVERAGE_POOL, MAX_POOL
from optlab.nn.functional.windows import channels_back


@documented_like(avg_pool2d)
def lp_pool2d(
    x: Any, norm_type: float, kernel_size: Any, stride: Any = None, padding: Any = 0,
    ceil_mode: bool = False, data_format: str = "NCHW", name: None = None,
) -> Tensor:  # fmt: skip
    r"""Apply 2-D power-average pooling: :math:`\big(\sum x^p\big)^{1/p}` of windows.

    Parameters
    ----------
    x : Tensor of shape [N, C, H, W]
        Not negative unless p is even: powers are taken of x, not of its absolute value.
    norm_type : float
        Exponent p, not 0; ``math.inf`` for max pooling.

    Notes
    -----
    Where a window holds only zeros, the root has no derivative: the gradient is NaN for p greater
    than 1, as in PyTorch. Signature: paddle.nn.functional.lp_pool2d.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.functional.lp_pool2d(ol.to_tensor([[[[1.0, 1.0], [1.0, 1.0]]]]), 2, 2)
    Tensor([[[[2.]]]], dtype=float32)
    """
    return _lp_pool(x, norm_type, kernel_size, stride, padding, ceil_mode, data_format, name, 2)


@documented_like(lp_pool2d, dims=1)
def lp_pool1d(
    x: Any, norm_type: float, kernel_size: Any, stride: Any = None, padding: Any = 0,
    ceil_mode: bool = False, data_format: str = "NCL", name: None = None,
) -> Tensor:  # fmt: skip
    """Apply 1-D power-average pooling; see `lp_pool2d`.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.functional.lp_pool1d(ol.to_tensor([[[3.0, 4.0, 6.0, 8.0]]]), 2, 2)
    Tensor([[[ 5., 10.]]], dtype=float32)
    """
    return _lp_pool(x, norm_type, kernel_size, stride, padding, ceil_mode, data_format, name, 1)


def _lp_pool(
    x: Any, norm_type: Any, kernel_size: Any, stride: Any, padding: Any, ceil_mode: Any,
    data_format: str, name: Any, dims: int,
) -> Tensor:  # fmt: skip
    call = f"lp_pool{dims}d"
    p = as_float(norm_type, "norm_type")
    if p == 0 or math.isnan(p) or p == -math.inf:
        raise ValueError(f"{call} takes norm_type other than 0, or math.inf; got {norm_type!r}.")
    x, last = checked_input(x, data_format, name, dims, call)
    windows = _sliding_windows(x, kernel_size, stride, padding, ceil_mode, last, dims, call)
    exponent = setting_beside(x, norm_type, "norm_type")
    if p == math.inf:
        refuse_setting(norm_type, "norm_type")
        y = apply(MAX_POOL, (x,), {"windows": windows})
    elif p == 1 and exponent is p:
        y = apply(AVERAGE_POOL, (x,), {"windows": windows, "divisor": 1.0})
    else:
        total: Any = apply(AVERAGE_POOL, (x**exponent,), {"windows": windows, "divisor": 1.0})
        y = total ** (1 / exponent)
    return channels_back(y, last)  # type: ignore[no-any-return]
