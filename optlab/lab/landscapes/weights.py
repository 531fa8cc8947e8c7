"""Weights of a model by name: read, combined, and put in its place for a while."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from typing import Any

import numpy as np

from optlab.backend import random
from optlab.backend.arrays import copied
from optlab.backend.text import comma_list
from optlab.nn import Layer
from optlab.nn.base.buffers import Buffers

Weights = dict[str, np.ndarray]


def weights_of(model: Layer) -> Weights:
    """Return copies of the parameters of a model by their names, a shared one once."""
    return {name: copied(p.data) for name, p in model.named_parameters()}


def check_model(model: Any, who: str) -> None:
    """Raise a TypeError unless this is a Layer with parameters."""
    if not isinstance(model, Layer):
        hint = " Make one first: LeNet5()." if isinstance(model, type) else ""
        raise TypeError(
            f"{who} takes a Layer, whose weights it moves; got {type(model).__name__}.{hint}"
        )
    if not any(True for _ in model.parameters()):
        raise ValueError(f"{who}: this {type(model).__name__} has no parameters to move.")


def checked_weights(given: Any, model: Layer, what: str) -> Weights:
    """Return a dict of arrays by parameter name, in the shapes that the model has.

    Parameters
    ----------
    given : mapping of str to array or Tensor, or Layer
        Names that are missing stay as the model has them (a set of weights) or are zero
        (a direction): the caller says which.
    model : Layer
    what : str
        What it is, for messages.

    Raises
    ------
    TypeError
        If it is no mapping.
    ValueError
        If a name is unknown, or a shape differs.
    """
    if isinstance(given, Layer):
        given = weights_of(given)
    if not isinstance(given, Mapping):
        raise TypeError(
            f"{what} is a dict of arrays by parameter name, such as "
            f"{{name: p.numpy() for name, p in model.named_parameters()}}; got "
            f"{type(given).__name__}."
        )
    own = dict(model.named_parameters())
    found: Weights = {}
    buffers = {name for name, _ in model.named_buffers()}
    for name, value in given.items():
        if name not in own:
            if name in buffers:  # of a state_dict
                continue
            near = get_close_matches(str(name), list(own), 1, 0.5)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise ValueError(
                f"{what} names {name!r}, which is no parameter of this {type(model).__name__}; it "
                f"has {comma_list(list(own), 12)}.{hint}"
            )
        array = np.asarray(value.numpy() if hasattr(value, "numpy") else value)
        if array.shape != own[name].data.shape:
            raise ValueError(
                f"{what} has the shape {array.shape} for {name!r}; the parameter has "
                f"{own[name].data.shape}."
            )
        found[name] = array
    if not found:
        raise ValueError(f"{what} names no parameter of this {type(model).__name__}.")
    return found


def inner(a: Mapping[str, np.ndarray], b: Mapping[str, np.ndarray]) -> float:
    """Return the inner product of two sets of weights, summed in float64."""
    return float(
        sum(
            np.dot(np.asarray(a[name], np.float64).ravel(), np.asarray(b[name], np.float64).ravel())
            for name in a
            if name in b
        )
    )


def difference(a: Mapping[str, np.ndarray], b: Mapping[str, np.ndarray]) -> Weights:
    """Return a - b in float64."""
    return {name: np.subtract(a[name], b[name], dtype=np.float64) for name in a}


@contextmanager
def lent(model: Layer, seed: int = 0) -> Iterator[dict[str, Any]]:
    """Yield the parameters of a model by name; afterwards they are what they were.

    Inside, other arrays may be put in the place of their ``data``. Afterwards, whatever has
    happened, every parameter has its own array again, which nobody has written to; gradients,
    buffers, modes and random numbers are as before, too.
    """
    parameters = dict(model.named_parameters())
    arrays = {name: p.data for name, p in parameters.items()}
    gradients = {name: p.grad for name, p in parameters.items()}
    modes = [(layer, layer.training) for layer in model.sublayers(include_self=True)]
    buffers = Buffers("a landscape")
    buffers.record(model)
    try:
        with random.scope("landscape", seed=seed):
            yield parameters
    finally:
        for name, p in parameters.items():
            p.data = arrays[name]
            p.grad = gradients[name]
        for layer, training in modes:
            layer.training = training
        buffers.restore()
