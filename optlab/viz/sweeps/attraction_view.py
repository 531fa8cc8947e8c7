"""The view of basins of attraction: a color for each minimum, paler where it is reached later."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from optlab.viz.protocols import BasinsLike
from optlab.viz.style import layout, theme
from optlab.viz.style.geometry import Floats
from optlab.viz.style.layout import Page
from optlab.viz.style.results import refuse_runs
from optlab.viz.style.text import format_number, format_percent, format_point

#: Shades of a color: the fastest starts have the first.
LEVELS = 6
_PALEST = 0.6
_MOST_ROWS = 7
#: What is said of starts without a minimum, by their code: in the list, in the headline.
_WORDS = {
    -1: ("not arrived", "have not arrived"), -2: ("diverged", "diverge"),
    -3: ("not run", "have not run"),
}  # fmt: skip
#: Pixels between the map and the list, and the least width of the list.
_GAP, _LIST = 40, 230


@dataclass(frozen=True)
class Row:
    """A line of the list of minima: its color, its place, and how many starts reach it."""

    color: str
    text: str
    said: str
    part: float


@dataclass(frozen=True)
class AttractionView:
    """What the figure of basins shows.

    Attributes
    ----------
    x, y : array
        Coordinates of the starts; y are the losses at the starts of a curve.
    codes : array of int
        The color of each start, an index of `colors`.
    tips : array of str
        What the mouse shows of each start.
    minima : array, shape (minima, 2)
        Where stars are drawn.
    """

    page: Page
    title: str
    headline: str
    note: str
    x: Floats
    y: Floats
    codes: Any
    colors: list[str]
    tips: Any
    minima: Floats
    rows: list[Row]
    flat: bool


def attraction_view(basins: BasinsLike, width: int, height: int) -> AttractionView:
    """Return the view of basins."""
    refuse_runs(
        basins, "basins",
        "each of its points is a run. Give ol.basins(problem, optimizer).", has="basin",
    )  # fmt: skip
    basin, arrival = basins.basin, basins.arrival
    flat = len(basins.axes) == 2
    hues = _hues(basin, len(basins.minima)) if len(basins.minima) else np.empty(0, int)
    colors = [
        theme.paled(color, _PALEST * level / (LEVELS - 1))
        for color in theme.area_colors()
        for level in range(LEVELS)
    ]
    colors += _other_colors()
    codes = np.select(
        [basin == -1, basin == -2], [len(colors) - 3, len(colors) - 2], len(colors) - 1
    )
    reached = basin >= 0
    fastest = slowest = 0.0
    if reached.any():
        steps = arrival[reached]
        fastest, slowest = float(steps.min()), float(steps.max())
        edges = np.quantile(steps, np.arange(1, LEVELS) / LEVELS)
        level = np.searchsorted(edges, steps, side="left")
        codes[reached] = hues[basin[reached]] * LEVELS + level
    surface = basins.problem
    minima = np.asarray(basins.minima, dtype=float)
    if flat:
        x, y = (np.asarray(axis, dtype=float) for axis in basins.axes)
    else:
        x = np.asarray(basins.axes[0], dtype=float)
        y = surface.values(x)
        minima = np.column_stack([minima[:, 0], basins.values])
    kind = type(basins.optimizer).__name__
    rate = getattr(basins.optimizer, "settings", {}).get("learning_rate")
    told = f"rate {format_number(rate)}, " if isinstance(rate, float) else ""
    grid = " x ".join(str(len(axis)) for axis in basins.axes)
    note = f"{told}{basins.steps} steps from each of {grid} starts. "
    if reached.any():
        when = f"after {fastest:.0f} to {slowest:.0f} steps"
        note += f"Full colors arrive first, faint ones last: {when}."
    page = _page(basins, flat, width, height, note)
    return AttractionView(
        page=page,
        title=f"Where {kind} ends on {surface.title}",
        headline=_headline(basins),
        note="a star is a minimum" if len(minima) else "",
        x=x,
        y=y,
        codes=codes,
        colors=colors,
        tips=_tips(basins),
        minima=minima,
        rows=_rows(basins, hues),
        flat=flat,
    )


def _other_colors() -> list[str]:
    """Return the colors of starts without a minimum, in the order of `_WORDS`."""
    diverged = "#3a3f47" if theme.scheme() == "light" else theme.QUIET
    return [theme.FAINT, diverged, theme.PAPER]


def _page(basins: BasinsLike, flat: bool, width: int, height: int, note: str) -> Page:
    """Return the page: the map as wide as its domain asks for, the list beside it."""

    def made(shares: tuple[float, float]) -> Page:
        return layout.page(
            width, height, names=[], headed=True, note=note, shares=shares, rooms=[_GAP, 0]
        )

    page = made((1.0, 0.52))
    if not flat:
        return page
    panel, other = page.panels
    wide, high = (float(axis[-1] - axis[0]) for axis in basins.axes)
    room = panel.width + other.width
    across = min(panel.height * wide / high, room - _LIST)
    return made((across, room - across))


def _hues(basin: Any, count: int) -> Any:
    """Return a hue for each minimum; neighbors have different ones where there are enough."""
    many = len(theme.area_colors())
    beside = np.zeros((count, count))
    pairs = [(basin[..., 1:], basin[..., :-1])]
    if basin.ndim == 2:
        pairs.append((basin[1:], basin[:-1]))
    for one, other in pairs:
        touch = (one >= 0) & (other >= 0) & (one != other)
        np.add.at(beside, (one[touch], other[touch]), 1)
    beside = beside + beside.T
    found = np.full(count, -1)
    for i in range(count):
        weight = [beside[i, found == hue].sum() for hue in range(many)]
        used = [int(np.sum(found == hue)) for hue in range(many)]
        found[i] = min(range(many), key=lambda hue: (weight[hue], used[hue], hue))
    return found


def _headline(basins: BasinsLike) -> str:
    share = {code: float(np.mean(basins.basin == code)) for code in _WORDS}
    reached = float(np.mean(basins.basin >= 0))
    number = len(np.unique(basins.basin[basins.basin >= 0]))
    which = "the minimum" if number == 1 else f"one of {number} minima"
    if number:
        parts = [f"{_percent(reached)} of the starts reach {which}"]
    elif len(basins.minima):
        parts = ["No start reaches a minimum"]
    else:
        parts = ["No minimum is known, and none was found where runs end"]
    parts += [
        f"{_percent(part)} {verb}" for code, (_, verb) in _WORDS.items() if (part := share[code])
    ]
    return f"{', '.join(parts)}."


def _percent(part: float) -> str:
    """Return a share in percent; only all are 100 %, and only none are 0 %."""
    if part in (0.0, 1.0):
        return f"{100 * part:.0f} %"
    return format_percent(min(max(part, 0.001), 0.999))


def _rows(basins: BasinsLike, hues: Any) -> list[Row]:
    basin, size = basins.basin, basins.basin.size
    counts = np.bincount(basin[basin >= 0], minlength=len(basins.minima))
    order = [i for i in np.argsort(-counts, kind="stable") if counts[i]]
    shown = order if len(order) <= _MOST_ROWS else order[: _MOST_ROWS - 1]
    rows = []
    for i in shown:
        steps = float(np.median(basins.arrival[basin == i]))
        rows.append(
            Row(
                theme.area_colors()[hues[i]],
                f"{format_point(basins.minima[i])}, loss {format_number(basins.values[i])}",
                f"{_percent(counts[i] / size)}, {steps:.0f} steps",
                counts[i] / size,
            )
        )
    rest = [i for i in order if i not in shown]
    if rest:
        part = counts[rest].sum() / size
        text = f"{len(rest)} more minima; colors repeat"
        rows.append(Row(theme.FRAME, text, _percent(part), part))
    for (code, (word, _)), color in zip(_WORDS.items(), _other_colors(), strict=True):
        part = float(np.mean(basin == code))
        if part:
            rows.append(Row(color, word, _percent(part), part))
    return rows


def _tips(basins: BasinsLike) -> Any:
    found = np.empty(basins.basin.shape, dtype=object)
    names = [f"reaches {format_point(point)}" for point in basins.minima]
    for place in np.ndindex(found.shape):
        number = int(basins.basin[place])
        found[place] = (
            _WORDS[number][0]
            if number < 0
            else f"{names[number]}<br>after {basins.arrival[place]:.0f} steps"
        )
    return found
