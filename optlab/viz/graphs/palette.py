"""Colors of a graph, for light and dark pages: leaves are blue, the gradient is vermilion."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from optlab.viz.style import theme

LEAF, GRADIENT = theme._COLORS[:2]
LEAF_TINT, GRADIENT_TINT, GRADIENT_SOFT = "#eaf2f8", "#fbeee6", "#d9a27d"

PALETTE: Final = {
    "light": {
        **theme.LIGHT,
        "leaf": LEAF,
        "gradient": GRADIENT,
        "leaf-tint": LEAF_TINT,
        "gradient-tint": GRADIENT_TINT,
        "gradient-soft": GRADIENT_SOFT,
    },
    "dark": {
        **theme.DARK,
        "leaf": theme.dark(LEAF),
        "gradient": theme.dark(GRADIENT),
        "leaf-tint": "#1a2836",
        "gradient-tint": "#35241b",
        "gradient-soft": "#8f5c3f",
    },
}

_LEGEND: Final = (
    ("operation", "an operation, with what it gives"),
    ("leaf", "a leaf, where a gradient collects"),
    ("data", "data without gradient"),
    ("arrived", "g: the gradient that has arrived, |g| its norm; dashed: a part of it"),
)


def legend(kinds: Collection[str], stages: bool) -> list[tuple[str, str]]:
    """Return the meaning of the shapes that occur, in words.

    Examples
    --------
    >>> [shape for shape, _ in legend({"leaf", "operation"}, stages=False)]
    ['operation', 'leaf']
    """
    return [
        (kind, text) for kind, text in _LEGEND if kind in kinds or (stages and kind == "arrived")
    ]
