"""Loss functions that are given: what they take."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

_PLACES = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def check_takes_parameters(loss: Any, who: str) -> None:
    """Raise unless a loss can be called with a dict of parameters.

    Raises
    ------
    TypeError
        The message says what to write.
    """
    if not callable(loss):
        raise TypeError(
            f"{who} takes the loss as a function of a dict of parameters: lambda p: ...; got "
            f"{loss!r}."
        )
    try:
        given = inspect.signature(loss).parameters.values()
    except (TypeError, ValueError):
        return
    if not any(p.kind in (*_PLACES, p.VAR_POSITIONAL) for p in given):
        raise TypeError(
            f"{who} calls the loss with a dict of parameters by their names, at other values than "
            "those that the model has, and this one takes no argument. Of a network write "
            "lambda w: loss(ol.nn.functional_call(model, w, x), y); of single parameters "
            'lambda p: (p["w"] ** 2).sum().'
        )


def takes_step(loss: Callable[..., Any]) -> bool:
    """Return whether a loss takes the number of the step beside the parameters."""
    try:
        given = inspect.signature(loss).parameters.values()
    except (TypeError, ValueError):
        return False
    return sum(p.kind in _PLACES and p.default is p.empty for p in given) >= 2
