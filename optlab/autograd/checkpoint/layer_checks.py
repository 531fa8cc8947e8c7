"""Checks for a class of layers passed in place of a layer: `Tanh` instead of ``Tanh()``."""

from __future__ import annotations

from typing import Any


def is_layer(one: Any) -> bool:
    """Return whether an object is a layer, that is, takes forward hooks.

    Examples
    --------
    >>> import optlab as ol
    >>> is_layer(ol.nn.Tanh()), is_layer(ol.nn.Tanh)
    (True, False)
    """
    return not isinstance(one, type) and hasattr(one, "register_forward_post_hook")


def refuse_layer_class(one: Any, where: str) -> None:
    """Raise TypeError for a class of layers.

    Examples
    --------
    >>> import optlab as ol
    >>> refuse_layer_class(ol.nn.Tanh, "recompute")
    Traceback (most recent call last):
    TypeError: recompute takes layers, and got the class Tanh itself: make a layer first, Tanh(...).
    """
    if isinstance(one, type) and hasattr(one, "register_forward_post_hook"):
        name = one.__name__
        raise TypeError(
            f"{where} takes layers, and got the class {name} itself: make a layer first, "
            f"{name}(...)."
        )
