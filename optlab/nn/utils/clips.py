"""In-place clipping of the gradients of parameters."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from optlab.autograd.tape.row_sparse import RowSparse
from optlab.autograd.tensor.conversions import as_setting
from optlab.autograd.tensor.tensor import Tensor, raw
from optlab.backend.call_recorder import effect
from optlab.backend.ensemble import members_of
from optlab.nn.utils.vectors import devices_of, parameter_list


@effect
def clip_grad_norm_(
    parameters: Iterable[Tensor] | Tensor,
    max_norm: float,
    norm_type: float = 2.0,
    error_if_nonfinite: bool = False,
) -> Tensor:
    r"""Scale the gradients of parameters in place, so that their norm is at most `max_norm`.

    .. math:: g \leftarrow g \min\Big(1, \frac{c}{N + 10^{-6}}\Big), \quad
        N = \Big(\sum_{g} \sum_i |g_i|^p\Big)^{1/p}

    Parameters
    ----------
    parameters : iterable of Tensor, or Tensor
        Those without a gradient are skipped.
    max_norm : float
        Limit c, at least 0.
    norm_type : float
        Order p of the norm, at least 0 (0 counts nonzero elements); ``math.inf`` for the largest
        absolute value.
    error_if_nonfinite : bool
        Raise if the norm is not finite; otherwise the result of the formula is written: NaN
        everywhere, or 0 for an infinite norm.

    Returns
    -------
    Tensor
        The norm N before the scaling.

    Raises
    ------
    RuntimeError
        If the norm is not finite and `error_if_nonfinite`. Nothing is changed then.
    TypeError, ValueError
        If an argument is none of these.

    See Also
    --------
    optlab.nn.ClipGradByGlobalNorm : the same as a setting of optimizers, not in place.

    Notes
    -----
    Powers are summed in float64. Source: Pascanu, Mikolov and Bengio 2013. Signature:
    ``paddle.nn.utils.clip_grad_norm_``.

    Examples
    --------
    >>> import optlab as ol
    >>> w = ol.Parameter([0.0, 0.0])
    >>> (w * ol.to_tensor([3.0, 4.0])).sum().backward()
    >>> ol.nn.utils.clip_grad_norm_([w], max_norm=1.0)
    Tensor(5., dtype=float32)
    >>> [round(g, 4) for g in w.grad.tolist()]
    [0.6, 0.8]
    """
    limit, p = as_setting(max_norm, "max_norm"), as_setting(norm_type, "norm_type")
    if not 0 <= limit < math.inf:
        raise ValueError(f"max_norm must be finite and at least 0; got {limit!r}.")
    if not p >= 0:
        raise ValueError(f"norm_type must be at least 0, or math.inf; got {p!r}.")
    held = _gradients(parameters, "clip_grad_norm_")
    if not held:
        return Tensor(np.zeros((), np.float32))
    arrays = [values for _, _, values in held]
    dtype = np.result_type(*[array.dtype for array in arrays])
    powers = [_power(array, p) for array in arrays]
    if len(devices_of(arrays)) > 1:
        powers = [np.asarray(float(power)) for power in powers]
    if p == math.inf:
        norm = powers[0]
        for power in powers[1:]:
            norm = np.maximum(norm, power)
    else:
        total = sum(powers[1:], powers[0])
        norm = total if p in (0, 1) else np.sqrt(total) if p == 2 else total ** (1 / p)
    if error_if_nonfinite and not bool(np.all(np.isfinite(members_of(norm)))):
        raise RuntimeError(
            f"clip_grad_norm_: the norm of the gradients is {norm}; nothing was changed. A loss "
            "that is not finite, or a rate that is too large, leads to this."
        )
    factor = np.minimum(limit / (norm + 1e-6), 1.0)
    with np.errstate(invalid="ignore"):  # norms that are not finite are allowed
        for parameter, gradient, values in held:
            _write(parameter, gradient, values, _cast(factor, values) * values)
    return Tensor(norm.astype(dtype))


@effect
def clip_grad_value_(parameters: Iterable[Tensor] | Tensor, clip_value: float) -> None:
    """Clip each element of the gradients of parameters to [-clip_value, clip_value], in place.

    Parameters
    ----------
    parameters : iterable of Tensor, or Tensor
        Those without a gradient are skipped.
    clip_value : float
        At least 0.

    Examples
    --------
    >>> import optlab as ol
    >>> w = ol.Parameter([0.0, 0.0])
    >>> (w * ol.to_tensor([3.0, -0.5])).sum().backward()
    >>> ol.nn.utils.clip_grad_value_([w], 1.0)
    >>> w.grad.tolist()
    [1.0, -0.5]
    """
    limit = as_setting(clip_value, "clip_value")
    if not 0 <= limit < math.inf:
        raise ValueError(f"clip_value must be finite and at least 0; got {limit!r}.")
    for parameter, gradient, values in _gradients(parameters, "clip_grad_value_"):
        _write(parameter, gradient, values, np.clip(values, -limit, limit))


def _gradients(parameters: Any, call: str) -> list[tuple[Tensor, Any, Any]]:
    """Return parameters with a gradient, each once, their gradient, and its array of values."""
    found = []
    for parameter in {id(p): p for p in parameter_list(parameters, call)}.values():
        gradient = parameter.grad
        if gradient is None:
            continue
        if isinstance(gradient, RowSparse):
            gradient = gradient.merged()
            found.append((parameter, gradient, gradient.values))
        else:
            found.append((parameter, gradient, raw(gradient)))
    return found


def _power(values: Any, p: float) -> Any:
    """Return the sum of the p-th powers of absolute values, or their maximum, in float64."""
    if not values.size:
        return np.zeros(())
    if p == 2:
        return np.sum(np.square(values, dtype=np.float64))
    sizes = np.abs(values).astype(np.float64)
    if p == math.inf:
        return np.max(sizes)
    if p == 0:
        return np.sum((sizes != 0).astype(np.float64))
    return np.sum(sizes if p == 1 else sizes**p)


def _cast(factor: Any, values: Any) -> Any:
    """Return the factor in the dtype of the values."""
    return factor.astype(values.dtype)


def _write(parameter: Any, gradient: Any, old: Any, new: Any) -> None:
    """Write new values to the gradient of a parameter, in place if its array is writable."""
    if isinstance(gradient, RowSparse):
        parameter.node.grad = RowSparse(gradient.rows, new, gradient.shape, merged=True)
    elif type(old) is np.ndarray and type(new) is np.ndarray and old.flags.writeable:
        old[...] = new
    else:
        parameter.grad = new
