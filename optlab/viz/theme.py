"""How pictures look: every colour, dash, marker, font and size of the house, in this one place.

An optimizer has one colour *and* one dash *and* one marker, the same in every figure, so that it is
known again in print, by the colour-blind and on a weak projector. Hues follow Okabe and Ito (2008),
darkened until they stand out on the faded surface; the surface is viridis, faded; nothing here is
red against green.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

INK: Final = "#1f2328"
"""Titles, labels and the marks of start and minimum."""
QUIET: Final = "#57606a"
"""Axis numbers and notes: readable (contrast above 4.5 on paper), yet behind the data."""
RULE: Final = "#dfe3e8"
"""Grid lines."""
FAINT: Final = "#edf0f3"
"""Upright lines that mark steps: quieter than the grid."""
FRAME: Final = "#b6bec8"
"""The border of the map, and the zero line."""
CONTOUR: Final = "#8f97a8"
"""Contour lines, drawn thin."""
PAPER: Final = "#ffffff"

DARK: Final = {
    "ink": "#e6e9ee",
    "quiet": "#a3acb8",
    "rule": "#2c333d",
    "frame": "#4a5361",
    "contour": "#5d6878",
    "paper": "#161a20",
}
"""The same for a dark page."""
LIGHT: Final = {
    "ink": INK,
    "quiet": QUIET,
    "rule": RULE,
    "frame": FRAME,
    "contour": CONTOUR,
    "paper": PAPER,
}
"""The same by name."""

FONT_FAMILIES: Final = ("Inter", "Helvetica Neue", "Arial", "Liberation Sans", "DejaVu Sans")
FONT_TITLE, FONT_HEADING, FONT_TEXT, FONT_SMALL = 17, 13, 12, 11
"""Sizes in pixels."""

LINE_WIDTH, FAINT_WIDTH, HALO_WIDTH, CONTOUR_WIDTH = 2.0, 1.0, 4.0, 0.6
END_SIZE, STEP_SIZE, START_SIZE, MINIMUM_SIZE = 11.0, 3.2, 11.0, 15.0
"""Sizes of markers in pixels: ends of paths, single steps, the start, the minimum."""
UNDER_SIZE, OVER_SIZE = 17.0, 9.0
"""The same for two ends that may coincide: the lower one shows around the upper one."""
FAINT_OPACITY: Final = 0.28
"""Opacity of raw mini-batch losses, behind their smoothed curve."""


@dataclass(frozen=True)
class Style:
    """How one optimizer is drawn, everywhere.

    Attributes
    ----------
    color : str
        As ``"#rrggbb"``.
    dash : tuple of float
        Lengths in pixels of stroke and gap, in turn; empty for a solid line.
    marker : str
        A name that plotly and `pictures` both know, such as ``"circle"``.
    """

    color: str
    dash: tuple[float, ...]
    marker: str


# Okabe and Ito's hues in the order in which optimizers take them, each darkened.
_COLORS = (
    "#005f9e",  # blue
    "#b84a00",  # vermilion
    "#00704f",  # bluish green
    "#9b3d78",  # reddish purple
    "#3a3f47",  # black, softened
    "#7d6200",  # yellow
    "#1479a8",  # sky blue
    "#8a5a16",  # orange
)
# The same hues, lightened until they stand out on the dark surface.
_DARK_COLORS = (
    "#6bb6f0",
    "#f2935c",
    "#45c79f",
    "#e596c6",
    "#c6ccd4",
    "#dcc052",
    "#86d3f7",
    "#dfa862",
)
_DASHES: tuple[tuple[float, ...], ...] = (
    (),
    (7, 3),
    (2, 2.5),
    (8, 3, 2, 3),
    (13, 4),
    (8, 3, 2, 3, 2, 3),
    (4, 2),
)
_MARKERS = (
    "circle",
    "square",
    "triangle-up",
    "diamond",
    "pentagon",
    "triangle-down",
    "hexagon",
    "cross",
    "x",
)


@dataclass(frozen=True)
class Area:
    """How bytes of one role are drawn.

    Attributes
    ----------
    color : str
        One of Okabe and Ito's hues. Neighbours differ in lightness too, so that they are told apart
        in print.
    pattern : str
        What is drawn over it, for those who see no hues: a name that plotly and matplotlib share,
        or nothing.
    """

    color: str
    pattern: str


MEMORY: Final = {
    "parameter": Area("#0072b2", ""),
    "slot": Area("#56b4e9", ""),
    "data": Area("#c4cad2", ""),
    "gradient": Area("#009e73", ""),
    "saved": Area("#e69f00", "/"),
    "recomputed": Area("#f0e442", "x"),
    "temporary": Area("#cc79a7", "."),
}
"""Roles of memory, from what stays (at the bottom of a stack) to what comes and goes."""


# A place in this row is an optimizer's style for good: add at the end, never in between.
_CLASSES = (
    "SGD",
    "Momentum",
    "RMSProp",
    "Adam",
    "AdamW",
    "Adagrad",
    "Adadelta",
    "Adamax",
    "NAdam",
    "RAdam",
    "Lamb",
    "LarsMomentum",
    "LBFGS",
    "Rprop",
    "ASGD",
    "Lion",
    "Muon",
    "Shampoo",
    "SAM",
    "DecayedAdagrad",
    "Ftrl",
    "Dpsgd",
)


def dark(color: str) -> str:
    """Give the colour of an optimizer on a dark page.

    Examples
    --------
    >>> dark("#005f9e")
    '#6bb6f0'
    """
    return _DARK_COLORS[_COLORS.index(color)]


def _style(place: int) -> Style:
    """Style number `place`; colour, dash and marker advance differently, so none comes twice."""
    turn = place // len(_COLORS)
    return Style(
        color=_COLORS[place % len(_COLORS)],
        dash=_DASHES[(place + turn) % len(_DASHES)],
        marker=_MARKERS[place % len(_MARKERS)],
    )


def _free_styles(taken: set[Style]) -> Iterator[Style]:
    """Styles that nobody in the figure has, those that are no famous optimizer's hue first."""
    known = (*range(4, len(_COLORS)), *range(4), *range(len(_COLORS), 400))
    for place in known:
        style = _style(place)
        if style not in taken:
            taken.add(style)
            yield style


def assign_styles(classes: Mapping[str, str]) -> dict[str, Style]:
    """Give every trace of one figure its style.

    The class decides first, so that Adam looks the same in every figure. A second trace of the same
    class, and a class that the house does not know, take the next style that is free.

    Parameters
    ----------
    classes : mapping
        For each name in the figure, the class of its optimizer.

    Returns
    -------
    dict
        One `Style` a name, no two of them equal.

    Examples
    --------
    >>> styles = assign_styles({"fast": "Adam", "slow": "Adam", "SGD": "SGD"})
    >>> styles["fast"].marker, styles["slow"].marker, styles["SGD"].marker
    ('diamond', 'pentagon', 'circle')
    """
    taken: set[Style] = set()
    found: dict[str, Style] = {}
    for name, optimizer in classes.items():
        if optimizer in _CLASSES:
            style = _style(_CLASSES.index(optimizer))
            if style not in taken:
                taken.add(style)
                found[name] = style
    free = _free_styles(taken)
    return {name: found.get(name) or next(free) for name in classes}


# Nine samples of viridis, dark to light.
_VIRIDIS = (
    (68, 1, 84),
    (71, 44, 122),
    (59, 81, 139),
    (44, 113, 142),
    (33, 144, 141),
    (39, 173, 129),
    (92, 200, 99),
    (170, 220, 50),
    (253, 231, 37),
)
_FADE = 0.82  # the share of paper: paths come first, the land is their background


def surface_colors(count: int, paper: str = PAPER) -> list[str]:
    """Colours for the bands between contour lines, lowest first: viridis, faded.

    Parameters
    ----------
    count : int
        How many bands there are.
    paper : str
        What they fade into.

    Examples
    --------
    >>> surface_colors(3)
    ['#ddd1e0', '#d7ebea', '#fffbd8']
    """
    samples: NDArray[np.float64] = np.array(_VIRIDIS, dtype=np.float64)
    at = np.linspace(0, len(samples) - 1, count)
    places = np.arange(len(samples))
    bands = np.stack([np.interp(at, places, channel) for channel in samples.T], axis=1)
    ground = np.array([int(paper[place : place + 2], 16) for place in (1, 3, 5)])
    faded = np.rint(ground * _FADE + (1 - _FADE) * bands).astype(int)
    return ["#{:02x}{:02x}{:02x}".format(*band) for band in faded]


def _luminance(color: str) -> float:
    channels = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(first: str, second: str) -> float:
    """Contrast of two colours as the web's accessibility guidelines (WCAG 2) define it, 1 to 21.

    Examples
    --------
    >>> contrast("#ffffff", "#000000")
    21.0
    """
    low, high = sorted((_luminance(first), _luminance(second)))
    return (high + 0.05) / (low + 0.05)


def with_opacity(color: str, opacity: float) -> str:
    """Return `color` in CSS's notation with an opacity.

    Examples
    --------
    >>> with_opacity("#ffffff", 0.5)
    'rgba(255, 255, 255, 0.5)'
    """
    red, green, blue = (int(color[at : at + 2], 16) for at in (1, 3, 5))
    return f"rgba({red}, {green}, {blue}, {opacity:g})"
