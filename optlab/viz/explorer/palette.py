"""Colors of the explorer: of its map and grounds, and of the lines of a step."""

from __future__ import annotations

from typing import Any

from optlab.viz.style import theme

PALETTE: dict[str, dict[str, Any]] = {
    "light": {
        **theme.LIGHT,
        "mapLow": theme.MAP["light"][0], "mapHigh": theme.MAP["light"][1],
        "contour": "#a9b6c6", "soft": "#edf0f3", "track": "#d3d9e1",
        "veil": "rgb(255 255 255 / 82%)", "memory": "#c4124f", "scale": "#6a3fd0",
        "decay": "#347d00", "wrapper": "#b011c8",
    },
    "dark": {
        **theme.DARK,
        "paper": "#14181e", "ink": "#e8ebef", "quiet": "#aab3bf",
        "mapLow": theme.MAP["dark"][0], "mapHigh": theme.MAP["dark"][1],
        "contour": "#51647a", "soft": "#232a33", "track": "#39424e", "veil": "rgb(20 24 30 / 82%)",
        "memory": "#ff7391", "scale": "#a996ff", "decay": "#8fd63a", "wrapper": "#e275ff",
    },
}  # fmt: skip
"""Beside the colors of all figures: the map from low to high, soft grounds, and what the lines of a
step are, in hues that no optimizer has."""

LINE_COLORS: dict[str, tuple[str, float]] = {
    "gradient": ("ink", 1), "memory": ("memory", 1), "kept": ("memory", 0.42),
    "scale": ("scale", 1), "decay": ("decay", 1), "wrapper": ("wrapper", 1), "update": ("own", 1),
    "step": ("own", 0.6), "kept step": ("own", 0.42), "mean": ("quiet", 1),
    "kept mean": ("quiet", 0.42), "noise": ("quiet", 1), "target": ("quiet", 1),
}  # fmt: skip
"""The color of each role of a line or of a part of a sum, and how strong it is; "own" is that of
the optimizer."""


def line_color(role: str, own: str, palette: dict[str, Any]) -> str:
    """Return the color of a role for an optimizer with a color of its own.

    Examples
    --------
    >>> light = PALETTE["light"]
    >>> line_color("memory", "#005f9e", light), line_color("update", "#005f9e", light)
    ('#c4124f', '#005f9e')
    """
    name, _ = LINE_COLORS.get(role, ("quiet", 1))
    return own if name == "own" else str(palette[name])
