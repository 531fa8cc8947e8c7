"""Arguments of `recompute_sequential`: the layers of a chain, and their schedule."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from optlab.autograd.checkpoint.layer_checks import refuse_layer_class
from optlab.autograd.checkpoint.schedules.builders import chosen
from optlab.autograd.checkpoint.schedules.schedule import Schedule
from optlab.autograd.tensor.tensor import Tensor


def list_of(layers: Any) -> list[Callable[..., Any]]:
    """Return the layers of a chain as a list.

    Raises
    ------
    TypeError, ValueError
        If `layers` is no chain, or an empty one.
    """
    if isinstance(layers, dict):
        settings = ", ".join(f"{name}={value!r}" for name, value in layers.items())
        raise TypeError(
            "recompute_sequential takes the layers first, and its settings by name: "
            f"recompute_sequential(net, x, {settings}); got a dict first."
        )
    refuse_layer_class(layers, "recompute_sequential")
    is_iterable = hasattr(layers, "__iter__") or hasattr(layers, "__getitem__")
    if callable(layers) and hasattr(layers, "children") and is_iterable:
        inside = list(layers)  # a Sequential: its layers, in order; one that is there twice, twice
        layers = inside if all(map(callable, inside)) else list(layers.children())
    if isinstance(layers, Tensor) or callable(layers) or not hasattr(layers, "__iter__"):
        raise TypeError(
            "recompute_sequential takes a Sequential, or a list of layers that follow each other, "
            f"then what the first is called with; got {type(layers).__name__}. (Write net, x and "
            "not net(x); several layers in a list; for one function: ol.recompute(f, x).)"
        )
    chain = list(layers)
    for i, layer in enumerate(chain):
        refuse_layer_class(layer, f"recompute_sequential, at layers[{i}],")
        if not callable(layer):
            raise TypeError(f"layers[{i}] cannot be called; it is a {type(layer).__name__}.")
    if not chain:
        raise ValueError("there are no layers to run.")
    return chain


def schedule_for(n: int, segments: Any, snapshots: int | None) -> Schedule:
    """Build the schedule of a chain of `n` layers; 4 segments by default."""
    return chosen(n, min(4, n) if segments is None else segments, snapshots)


def called(layer: Callable[..., Any], value: Any) -> Any:
    """Call a layer with the value of the one before: a tuple as several arguments."""
    return layer(*value) if isinstance(value, tuple) else layer(value)
