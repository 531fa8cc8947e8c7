"""What averages say when they are given an optimizer or a network in the place of a number."""

from __future__ import annotations

from typing import Any

from optlab.optimizer.settings import holds_parameters


def check_is_setting(owner: str, name: str, value: Any, example: str) -> None:
    """Raise TypeError if an optimizer or parameters stand where a setting belongs.

    Parameters
    ----------
    owner, name : str
        The class, and what the setting is called.
    value : object
        What was given.
    example : str
        How the settings are written, such as ``decay=0.999``.
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
