"""Colors of the explorer: of its map and grounds, and of the lines of a step."""

from __future__ import annotations

from typing import Any

from optlab.viz.style import theme

PALETTE: dict[str, dict[str, Any]] = {
    "light": {
        **theme.LIGHT,
        "mapLow": theme.MAP["light"][0], "mapHigh": theme.MAP["light"][1],
        "contour": "#a9b6c6", "soft": "#edf0f3", "track": "#d3d9e1",
        "veil": "rgb(255 255 255 / 82%)", "memory": "#b84a00", "scale": "#9b3d78",
        "decay": "#7d6200", "wrapper": "#00704f", "spare": ["#005f9e", "#00704f"],
    },
    "dark": {
        **theme.DARK,
        "paper": "#14181e", "ink": "#e8ebef", "quiet": "#aab3bf",
        "mapLow": theme.MAP["dark"][0], "mapHigh": theme.MAP["dark"][1],
        "contour": "#51647a", "soft": "#232a33", "track": "#39424e", "veil": "rgb(20 24 30 / 82%)",
        "memory": "#f2935c", "scale": "#e596c6", "decay": "#dcc052",
        "wrapper": "#45c79f", "spare": ["#6bb6f0", "#45c79f"],
    },
}  # fmt: skip
"""Beside the colors of all figures: the map from low to high, soft grounds, and what the lines of a
step are; `spare` replace those that the optimizer itself has."""

LINE_COLORS: dict[str, tuple[str, float]] = {
    "gradient": ("ink", 1), "memory": ("memory", 1), "kept": ("memory", 0.42),
    "scale": ("scale", 1), "decay": ("decay", 1), "wrapper": ("wrapper", 1), "update": ("own", 1),
    "step": ("own", 0.6), "kept step": ("own", 0.42), "mean": ("quiet", 1),
    "kept mean": ("quiet", 0.42), "noise": ("quiet", 1), "target": ("quiet", 1),
}  # fmt: skip
"""The color of each role of a line or of a part of a sum, and how strong it is; "own" is that of
the optimizer."""

_CHANGED = ("memory", "scale", "decay", "wrapper")
_ALIKE = 60
"""Colors nearer than this, in RGB, cannot be told apart on a thin arrow."""


def _near(a: str, b: str) -> bool:
    x, y = (bytes.fromhex(color.lstrip("#")) for color in (a, b))
    return sum((i - j) ** 2 for i, j in zip(x, y, strict=True)) < _ALIKE**2


def line_color(role: str, own: str, palette: dict[str, Any]) -> str:
    """Return the color of a role; one that the optimizer itself has is changed for another.

    Examples
    --------
    >>> light = PALETTE["light"]
    >>> line_color("memory", "#005f9e", light), line_color("memory", "#b84a00", light)
    ('#b84a00', '#005f9e')
    """
    name, _ = LINE_COLORS.get(role, ("quiet", 1))
    if name == "own":
        return own
    if name not in _CHANGED or not _near(palette[name], own):
        return str(palette[name])
    changed = [one for one in _CHANGED if _near(palette[one], own)]
    free = [one for one in palette["spare"] if not _near(one, own)]
    return str(free[changed.index(name) % len(free)])
