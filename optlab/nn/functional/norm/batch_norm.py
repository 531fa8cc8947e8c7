"""Batch normalization: by the statistics of the batch, or by running statistics."""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.tape.grad_mode import learns, no_grad
from optlab.autograd.tensor.conversions import is_tracked, refusal
from optlab.autograd.tensor.tensor import Tensor, apply_several, raw
from optlab.backend.call_recorder import effect, values_of
from optlab.backend.ensemble import EnsembleArray, EnsembleError
from optlab.nn.functional.arguments import channel_axis, no_name
from optlab.nn.functional.norm.layer_norm import (
    STANDARDIZE,
    cast_back,
    check_channels,
    prepared,
    scaled,
)
from optlab.nn.functional.norm.private_buffer import PrivateBuffer


def batch_norm(
    x: Any, running_mean: Any, running_var: Any, weight: Any = None, bias: Any = None,
    training: bool = False, momentum: float = 0.9, epsilon: float = 1e-5, data_format: str = "NCHW",
    use_global_stats: bool | None = None, name: None = None,
) -> Tensor:  # fmt: skip
    r"""Apply batch normalization: normalize each channel over the batch and all positions.

    .. math:: y = w \frac{x - \mu}{\sqrt{\sigma^2 + \varepsilon}} + b

    Parameters
    ----------
    x : Tensor, shape [N, C] or [N, C, ...]
    running_mean, running_var : Tensor, shape [C]
        Running statistics; updated in place where those of the batch are used.
    weight, bias : Tensor, shape [C], optional
    training : bool
        Use the statistics of this batch; otherwise the running ones.
    momentum : float
        Of the running statistics: r = momentum * r + (1 - momentum) * batch.
    epsilon : float
    data_format : {'NC', 'NCL', 'NCHW', 'NCDHW', 'NLC', 'NHWC', 'NDHWC'}
        Position of the channel axis: 1 or the last.
    use_global_stats : bool, optional
        True: use the running statistics in training too; False: always those of the batch.

    Raises
    ------
    ValueError
        If shapes do not fit, or the batch has one number for each channel, whose variance is 0.
        (An empty batch yields an empty result and no update.)
    EnsembleError
        If x is an ensemble (inside `optlab.vmap`) whose members would share running statistics.

    Notes
    -----
    As in Paddle, the variance is the biased one, also in `running_var` (where PyTorch's is
    unbiased), and `momentum` is 1 minus PyTorch's. Source: Ioffe and Szegedy 2015.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> mean, var = ol.zeros([1]), ol.ones([1])
    >>> x = ol.to_tensor([[1.0], [3.0]])
    >>> np.round(ol.nn.functional.batch_norm(x, mean, var, training=True), 4).tolist()
    [[-1.0], [1.0]]
    >>> np.round(mean, 4)
    Tensor([0.2], dtype=float32)
    """
    no_name(name)
    x, weight, bias, given = prepared(x, weight, bias)
    axis = channel_axis(data_format, x.ndim, "batch_norm")
    if x.ndim < 2:
        raise ValueError(f"batch_norm takes x of shape [N, C] or [N, C, ...]; got {x.shape}.")
    count = x.shape[axis]
    check_channels(
        "batch_norm", count, weight=weight, bias=bias, running_mean=running_mean,
        running_var=running_var,
    )  # fmt: skip
    shape = tuple(count if i == axis else 1 for i in range(x.ndim))
    if not training if use_global_stats is None else use_global_stats:
        return cast_back(
            _normalize_by_running(x, running_mean, running_var, weight, bias, epsilon, shape), given
        )
    if not x.size:  # no statistics to update with
        return cast_back(scaled(x, weight, bias, shape), given)
    if x.size == count:
        raise ValueError(
            f"batch_norm in training got x of shape {x.shape}: one number for each channel has no "
            "variance, and what comes out would be the bias, whatever x is. Give a larger batch "
            "(drop_last=True leaves out a last batch of one), or call layer.eval(), which "
            "normalises by the running statistics."
        )
    axes = tuple(i for i in range(x.ndim) if i != axis)
    if type(x.data) is EnsembleArray:
        _refuse_shared_statistics(x.data, running_mean, running_var)
    normal, mean, variance = apply_several(
        STANDARDIZE, (x,), {"axes": axes, "epsilon": float(epsilon)}
    )
    for what, running in (("running_mean", running_mean), ("running_var", running_var)):
        if is_tracked(running):
            raise refusal(
                running,
                f"batch_norm in training, which overwrites {what},",
                f"training=False to normalize by it, or give {what}.detach()",
            )
    for running, batch in ((running_mean, mean), (running_var, variance)):
        if running is not None and learns():
            _update_running(running, batch.data.reshape(count), float(momentum))
    return cast_back(scaled(normal, weight, bias, shape), given)


def _normalize_by_running(
    x: Any, mean: Any, variance: Any, weight: Any, bias: Any, epsilon: float, shape: Any
) -> Tensor:
    if mean is None or variance is None:
        raise ValueError("batch_norm outside training needs running_mean and running_var.")
    # Copies: a later training step updates the running statistics in place.
    center = _copied(mean, x.dtype)
    scale: Any = 1 / np.sqrt(_copied(variance, x.dtype) + float(epsilon))
    shift: Any
    if weight is None:
        shift = -center * scale
    else:
        scale = weight * scale
        shift = -center * scale
    shift = shift if bias is None else bias + shift
    return scaled(x, scale, shift, shape)


def _copied(statistic: Any, dtype: Any) -> Any:
    """Return a copy of a running statistic in a dtype: an array, or a Tensor with its gradient."""
    if is_tracked(statistic) or not isinstance(statistic, Tensor):
        kept = statistic
    else:
        kept = values_of(statistic)
    return np.array(kept, dtype) if isinstance(kept, (list, tuple)) else kept.astype(dtype)


def _refuse_shared_statistics(x: Any, *running: Any) -> None:
    """Raise if members of an ensemble, each with its own statistics, would update shared ones."""
    for statistic in running:
        if statistic is None or isinstance(statistic, PrivateBuffer):
            continue
        if _ensemble_depth(raw(statistic)) < _ensemble_depth(x):
            raise EnsembleError(
                "batch_norm in training brings the running mean and variance up to date, but "
                "inside ol.vmap (or of an ensemble) each member has its own and the layer keeps "
                "one. Call layer.eval(), which normalises by the running ones; or take "
                "InstanceNorm, GroupNorm or LayerNorm, which look at one example at a time; or "
                "batch_norm(x, None, None, training=True), which keeps none."
            )


def _ensemble_depth(array: Any) -> int:
    """Return how many ensemble axes are nested around an array."""
    count = 0
    while type(array) is EnsembleArray:
        array, count = array.members, count + 1
    return count


@effect
def _update_running(running: Any, batch: Any, momentum: float) -> None:
    old = raw(running)
    new = (momentum * old + (1 - momentum) * batch).astype(old.dtype)
    if isinstance(running, PrivateBuffer):
        running.replace(new)
        return
    with no_grad():
        running[...] = Tensor(new) if isinstance(running, Tensor) else new
