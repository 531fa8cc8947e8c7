"""Wrappers that the explorer offers, with sliders: LookAhead, EMA and ModelAverage."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from optlab.optimizer import (
    SGD,
    Averaged,
    ExponentialMovingAverage,
    LookAhead,
    ModelAverage,
    Optimizer,
)
from optlab.optimizer.wrappers import Wrapper
from optlab.viz.style.text import format_number


@dataclass(frozen=True)
class Slider:
    """The slider of a setting of a wrapper: its bounds, step, and initial value.

    A value that is set in Python may exceed the bounds.
    """

    low: float
    high: float
    step: float
    first: float


WRAPPERS: dict[str, dict[str, Slider]] = {
    "LookAhead": {"alpha": Slider(0, 1, 0.05, 0.5), "k": Slider(1, 50, 1, 5)},
    "EMA": {"decay": Slider(0, 0.99, 0.01, 0.9)},
    "ModelAverage": {
        "average_window_rate": Slider(0.05, 1, 0.05, 0.5),
        "min_average_window": Slider(1, 100, 1, 10),
    },
}
"""The wrappers by the explorer's names, with their sliders."""


def defaults_of(kind: str) -> dict[str, Any]:
    """Return the description of a wrapper with its initial settings.

    Examples
    --------
    >>> defaults_of("LookAhead")
    {'kind': 'LookAhead', 'alpha': 0.5, 'k': 5}
    """
    return {"kind": kind, **{name: slider.first for name, slider in WRAPPERS[kind].items()}}


def as_wrapping(wanted: Any) -> dict[str, Any]:
    """Convert an argument to the description of a wrapper: from a name, a description, or nothing.

    Raises
    ------
    TypeError, ValueError
        If it cannot wrap an optimizer.
    """
    if not wanted:
        return {}
    if isinstance(wanted, str) and wanted in WRAPPERS:
        wanted = defaults_of(wanted)
    elif isinstance(wanted, dict) and wanted.get("kind") in WRAPPERS:
        wanted = defaults_of(wanted["kind"]) | wanted
    check_wrapping(wanted)
    wrap_template(SGD(0.1), wanted)
    return dict(wanted)


def describe_wrapping(around: dict[str, Any]) -> str:
    """Format the description of a wrapper.

    Examples
    --------
    >>> describe_wrapping(defaults_of("LookAhead"))
    'LookAhead (alpha 0.5, k 5)'
    """
    settings = [f"{k} {format_number(float(v))}" for k, v in around.items() if k != "kind"]
    return f"{around['kind']} ({', '.join(settings)})"


def check_wrapping(around: Any) -> None:
    """Validate the description of a wrapper.

    Raises
    ------
    ValueError
        If it is invalid; the message names the part.
    """
    if around == {}:
        return
    if not isinstance(around, dict) or around.get("kind") not in WRAPPERS:
        raise ValueError(
            f"around is {{}} or a dict with the kind {', '.join(WRAPPERS)}; got {around!r}."
        )
    wanted = {"kind", *WRAPPERS[around["kind"]]}
    if set(around) - wanted - {"max_average_window"}:
        raise ValueError(f"{around['kind']} has the settings {', '.join(wanted)}; got {around!r}.")
    for name, value in around.items():
        if name == "kind":
            continue
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise ValueError(f"{name} must be a number; got {value!r}.")
        if not math.isfinite(value):
            raise ValueError(f"{name} must be finite; got {value!r}.")


def wrap_template(template: Optimizer, around: dict[str, Any]) -> Optimizer:
    """Wrap a template as described; return it unchanged for an empty description."""
    if not around:
        return template
    settings = {name: value for name, value in around.items() if name != "kind"}
    if around["kind"] == "LookAhead":
        return LookAhead(template, **settings)
    average = ExponentialMovingAverage if around["kind"] == "EMA" else ModelAverage
    return average.around(template, **settings)


def wrapping_of(name: str, layers: Sequence[Wrapper]) -> dict[str, Any]:
    """Return the description of the wrapper of a template.

    Raises
    ------
    TypeError
        If there are several wrappers, or one that the explorer does not support.
    """
    if not layers:
        return {}
    [layer, *more] = layers
    if isinstance(layer, LookAhead):
        found = {"kind": "LookAhead", **layer.own_settings}
    elif isinstance(layer, Averaged):
        kind = "EMA" if isinstance(layer.average, ExponentialMovingAverage) else "ModelAverage"
        found = {"kind": kind, **layer.average.own_settings}
    else:
        found = {}
    if more or not found or "thres_steps" in found:
        raise TypeError(
            f"the explorer shows one LookAhead, EMA or ModelAverage around an optimizer; {name!r} "
            f"is {layers[-1]!r}. Draw it with optlab.compare(...)."
        )
    return found
