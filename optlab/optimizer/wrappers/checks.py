"""Checks of the settings and parameters of averages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from optlab.autograd.tensor.tensor import Tensor
from optlab.optimizer.params.labels import label_of
from optlab.optimizer.rule.hyperparameters import holds_parameters
from optlab.optimizer.wrappers.state import Memory


def check_is_setting(owner: str, name: str, value: Any, example: str) -> None:
    """Raise TypeError if an optimizer or parameters are given in place of a setting.

    Parameters
    ----------
    owner, name : str
        The names of the class and of the setting.
    value : object
        The value given.
    example : str
        An example of the settings, such as ``decay=0.999``.
    """
    kind = type(value).__name__
    if all(callable(getattr(value, method, None)) for method in ("step", "clear_grad")):
        raise TypeError(
            f"{name} of {owner} is a setting, but got an optimizer. To average its weights write "
            f"{owner}.around({kind}(...), {example}), and train with what that gives."
        )
    if holds_parameters(value):
        raise TypeError(
            f"{name} of {owner} is a setting, but got a {kind}. Parameters are given by name: "
            f"{owner}({example}, parameters=model.parameters()); or write "
            f"{owner}.around(optimizer, {example})."
        )


def check_shape(p: Tensor, values: Any, memory: Memory) -> None:
    """Raise ValueError if a parameter has another shape than its average."""
    array = next(value for value in memory.values() if hasattr(value, "dtype"))
    if array.shape != values.shape:
        raise ValueError(
            f"{label_of(p)} has shape {values.shape}, but its "
            f"average {array.shape}. Make a new average for it."
        )


def checked_parameters(who: str, parameters: Any) -> list[Tensor]:
    """Return the parameters as a list of Tensors, checked."""
    if (
        isinstance(parameters, (Tensor, str, Mapping, set, frozenset))
        or callable(getattr(parameters, "parameters", None))
        or not isinstance(parameters, Iterable)
    ):
        hint = "[w]" if isinstance(parameters, Tensor) else "model.parameters()"
        raise TypeError(
            f"parameters of {who} must be a list of Tensors; got {type(parameters).__name__}. "
            f"Write parameters={hint}."
        )
    found = list(parameters)
    if not found:
        raise ValueError(f"parameters of {who} is empty: there is nothing to average.")
    for number, p in enumerate(found):
        if not isinstance(p, Tensor):
            raise TypeError(f"parameter {number} is a {type(p).__name__}, not a Tensor.")
        if p.data.dtype.kind not in "fV":
            raise TypeError(f"parameter {number} is {p.dtype}; only floats have averages.")
    if len({id(p) for p in found}) < len(found):
        raise ValueError(f"parameters of {who} has a parameter twice.")
    return found
