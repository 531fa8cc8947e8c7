"""Functions of ``paddle.fluid.layers`` 1.8.5 that compute something of Tensors at once.

Those that made layers of static graphs, such as ``fc`` and ``data``, say what to write instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from optlab.autograd.tensor.tensor import Tensor
from optlab.fluid.instead import STATIC, no_such_name
from optlab.nn import functional

__all__ = [
    "cross_entropy",
    "mean",
    "reduce_max",
    "reduce_mean",
    "reduce_min",
    "reduce_prod",
    "reduce_sum",
    "relu",
    "sigmoid",
    "softmax",
    "softmax_with_cross_entropy",
    "square_error_cost",
    "tanh",
]


def mean(x: Any) -> Tensor:
    """Return the mean of all elements.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.fluid.layers.mean(ol.to_tensor([1.0, 3.0])).item()
    2.0
    """
    return np.mean(x)  # type: ignore[no-any-return]


Axes = int | Sequence[int] | None


def _axes(dim: Axes) -> Any:
    return tuple(dim) if isinstance(dim, (list, tuple)) else dim


def reduce_sum(input: Any, dim: Axes = None, keep_dim: bool = False) -> Any:
    """Return the sum over axes: ``np.sum(input, dim, keepdims=keep_dim)``.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.fluid.layers.reduce_sum(ol.ones([2, 3]), dim=[1], keep_dim=True).shape
    (2, 1)
    """
    return np.sum(input, axis=_axes(dim), keepdims=keep_dim)


def reduce_mean(input: Any, dim: Axes = None, keep_dim: bool = False) -> Any:
    """Return the mean over axes: ``np.mean(input, dim, keepdims=keep_dim)``."""
    return np.mean(input, axis=_axes(dim), keepdims=keep_dim)


def reduce_max(input: Any, dim: Axes = None, keep_dim: bool = False) -> Any:
    """Return the largest value over axes: ``np.max(input, dim, keepdims=keep_dim)``."""
    return np.max(input, axis=_axes(dim), keepdims=keep_dim)


def reduce_min(input: Any, dim: Axes = None, keep_dim: bool = False) -> Any:
    """Return the smallest value over axes: ``np.min(input, dim, keepdims=keep_dim)``."""
    return np.min(input, axis=_axes(dim), keepdims=keep_dim)


def reduce_prod(input: Any, dim: Axes = None, keep_dim: bool = False) -> Any:
    """Return the product over axes: ``np.prod(input, dim, keepdims=keep_dim)``."""
    return np.prod(input, axis=_axes(dim), keepdims=keep_dim)


def relu(x: Any) -> Tensor:
    """Return the positive part: `optlab.nn.functional.relu`."""
    return functional.relu(x)


def sigmoid(x: Any) -> Tensor:
    """Return the logistic function: `optlab.nn.functional.sigmoid`."""
    return functional.sigmoid(x)


def tanh(x: Any) -> Tensor:
    """Return the hyperbolic tangent: `optlab.nn.functional.tanh`."""
    return functional.tanh(x)


def softmax(input: Any, axis: int = -1) -> Tensor:
    """Return the softmax: `optlab.nn.functional.softmax`."""
    return functional.softmax(input, axis)


def square_error_cost(input: Any, label: Any) -> Tensor:
    """Return the squared differences: `optlab.nn.functional.square_error_cost`."""
    return functional.square_error_cost(input, label)


def cross_entropy(
    input: Any, label: Any, soft_label: bool = False, ignore_index: int = -100
) -> Tensor:
    """Return the cross entropy of probabilities, one number per example, of shape [..., 1].

    Parameters
    ----------
    input : Tensor, shape [..., classes]
        Probabilities, as those of `softmax`.
    label : array, shape [..., 1] or [...]
        The right classes; with `soft_label` probabilities of the shape of `input`.
    soft_label : bool
    ignore_index : int
        A class whose examples count zero.

    Examples
    --------
    >>> import optlab as ol
    >>> p = ol.to_tensor([[0.25, 0.75]])
    >>> ol.fluid.layers.cross_entropy(p, ol.to_tensor([[1]])).numpy().round(4)
    array([[0.2877]], dtype=float32)
    """
    loss = functional.cross_entropy(
        input, label, ignore_index=ignore_index, reduction="none", soft_label=soft_label,
        use_softmax=False,
    )  # fmt: skip
    found: Any = loss if loss.ndim == np.ndim(input) else np.expand_dims(loss, -1)
    return found  # type: ignore[no-any-return]


softmax_with_cross_entropy = functional.softmax_with_cross_entropy


def _schedule(call: str) -> str:
    return (
        f"write schedule = ol.optimizer.lr.{call}, give it to the optimizer as the learning rate, "
        "and call schedule.step() after each step: it does not count by itself, as that of 1.8.5 "
        "did."
    )


_INSTEAD = {
    **STATIC,
    "fc": "make layer = ol.nn.Linear(in_features, size) once, and call it: layer(x). An activation "
    "is a function of it: ol.nn.functional.relu(layer(x)).",
    "embedding": "make table = ol.nn.Embedding(num_embeddings, embedding_dim) once, and call it: "
    "table(ids).",
    "conv2d": "make layer = ol.nn.Conv2D(in_channels, out_channels, kernel_size) once, and call "
    "it.",
    "pool2d": "write ol.nn.functional.max_pool2d(x, 2) or avg_pool2d.",
    "batch_norm": "make layer = ol.nn.BatchNorm2D(num_features) once, and call it.",
    "layer_norm": "make layer = ol.nn.LayerNorm(normalized_shape) once, and call it.",
    "dropout": "write ol.nn.functional.dropout(x, p, training=layer.training), or make "
    "ol.nn.Dropout(p).",
    "concat": "write np.concatenate([...], axis=...); NumPy's functions take Tensors.",
    "create_parameter": "write ol.create_parameter(shape, dtype).",
    "accuracy": "write (np.argmax(prediction.numpy(), 1) == label[:, 0]).mean().",
    "noam_decay": _schedule("NoamDecay(d_model, warmup_steps)"),
    "exponential_decay": _schedule(
        "ExponentialDecay(learning_rate, gamma=decay_rate ** (1 / decay_steps)), or with staircase "
        "StepDecay(learning_rate, decay_steps, decay_rate)"
    ),
    "natural_exp_decay": _schedule("NaturalExpDecay(learning_rate, decay_rate / decay_steps)"),
    "inverse_time_decay": _schedule("InverseTimeDecay(learning_rate, decay_rate / decay_steps)"),
    "polynomial_decay": _schedule("PolynomialDecay(learning_rate, decay_steps)"),
    "piecewise_decay": _schedule("PiecewiseDecay(boundaries, values)"),
    "cosine_decay": _schedule("CosineAnnealingDecay(learning_rate, T_max)"),
    "linear_lr_warmup": _schedule("LinearWarmup(learning_rate, warmup_steps, start_lr, end_lr)"),
    "learning_rate_scheduler": "schedules are in ol.optimizer.lr.",
}  # fmt: skip


def __getattr__(name: str) -> object:
    if name not in _INSTEAD and not name.startswith("_"):
        if callable(getattr(functional, name, None)):
            said = f"write ol.nn.functional.{name}(...)."
            raise no_such_name("optlab.fluid.layers", name, __all__, {name: said})
        function = getattr(np, name, None)
        if callable(function) and not isinstance(function, type):
            said = f"NumPy's functions take Tensors, write np.{name}(...)."
            raise no_such_name("optlab.fluid.layers", name, __all__, {name: said})
    raise no_such_name("optlab.fluid.layers", name, __all__, _INSTEAD)


def __dir__() -> list[str]:
    return __all__
