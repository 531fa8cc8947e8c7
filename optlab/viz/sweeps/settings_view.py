"""The view of a sweep: final losses along one setting, or over two."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from optlab.viz.protocols import SweepLike
from optlab.viz.style import layout
from optlab.viz.style.geometry import Floats
from optlab.viz.style.layout import Page
from optlab.viz.style.results import refuse_runs
from optlab.viz.style.text import format_number, format_point

#: Added before the logarithm, so that a run that reaches the minimum has a color.
TINY = 1e-12
_MOST_TICKS = 8
#: Colors span the losses that lie within this many interquartile ranges of the middle half, or
#: within a decade of it: the rest would leave them one color.
_FENCE = 1.5
#: The most that may lie beyond, of all: among the lowest losses differences matter.
_MOST_BELOW, _MOST_ABOVE = 0.05, 0.2


@dataclass(frozen=True)
class Axis:
    """A swept setting along an axis.

    Attributes
    ----------
    name : str
    labels : list of str
        One a value.
    place : array
        Where each value is drawn.
    ticks : list of int
        The values that get a number.
    log : bool
        Whether the places are decimal logarithms.
    """

    name: str
    labels: list[str]
    place: Floats
    ticks: list[int]
    log: bool


@dataclass(frozen=True)
class SettingsView:
    """What the figure of a sweep shows.

    Attributes
    ----------
    height : array
        Decimal logarithms of the losses, ``[y, x]``, or along x alone; NaN where a run diverged
        or is missing.
    diverged, missing : array of bool
    best : tuple of int or None
        The place of the best cell.
    ends : list of (axis, side)
        The ends at which the best cell lies: "x" or "y", and "lowest" or "highest".
    low, high : float
        The range of the colors, or of the axis: of most of the heights.
    """

    page: Page
    title: str
    headline: str
    loss_name: str
    x: Axis
    y: Axis | None
    height: Floats
    diverged: Any
    missing: Any
    best: tuple[int, ...] | None
    ends: list[tuple[str, str]]
    low: float
    high: float


def settings_view(
    sweep: SweepLike, x: str | None, y: str | None, width: int, height: int
) -> SettingsView:
    """Return the view of a sweep.

    Raises
    ------
    ValueError
        If x or y is no setting with several values.
    """
    refuse_runs(
        sweep, "heatmap",
        "each of its cells is a run. Give ol.sweep(problem, optimizer_class, settings).",
        has="final_loss",
    )  # fmt: skip
    axes = {name: list(values) for name, values in sweep.axes.items()}
    loss = np.asarray(sweep.final_loss, dtype=float)
    across, up = _chosen(axes, x, y)
    finite = np.where(np.isfinite(loss), loss, np.inf)
    best = None
    if np.isfinite(finite).any():
        best = tuple(map(int, np.unravel_index(int(np.argmin(finite)), loss.shape)))
    names = list(axes)
    at = best or (0,) * loss.ndim
    shown = [names.index(name) for name in (up, across) if name is not None]
    chosen = tuple(slice(None) if i in shown else at[i] for i in range(loss.ndim))
    part = loss[chosen]
    if up is not None and names.index(up) > names.index(across):
        part = part.T
    floor = getattr(sweep.problem, "minimum_value", None)
    floor = floor if floor is not None and not np.any(part < floor) else None
    if floor is None and np.any(part <= 0):
        floor = float(np.min(part[np.isfinite(part)]))
    with np.errstate(all="ignore"):
        heights = np.log10(np.maximum(part - (floor or 0.0), 0) + TINY)
    heights = np.where(np.isfinite(part), heights, np.nan)
    with np.errstate(all="ignore"):
        start = float(np.log10(max(sweep.start_loss - (floor or 0.0), 0) + TINY))
    some = heights[np.isfinite(heights)]
    low, high = _bulk(some, start)
    if up is None and len(some):  # a curve, on which the best is, ends where runs go astray
        low, high = float(some.min()), float(some.max())
        high = min(high, start) if start > low else high
    beyond = int(np.sum(heights < low)), int(np.sum(heights > high))
    if high - low < 0.2:
        low, high = low - 0.1, high + 0.1
    loss_name = f"loss - {format_number(floor)}" if floor else "loss"
    ends = [
        (letter, side)
        for letter, name in (("x", across), ("y", up))
        if name is not None and (side := sweep.ends.get(name)) is not None
    ]
    kind = sweep.optimizer.__name__
    losses = [format_number(10**edge, 3) for edge in (low, high)]
    clipped = [
        f"{count} {side} {edge} {_CLIPPED[up is None][side]}"
        for count, side, edge in zip(beyond, ("below", "above"), losses, strict=True)
        if count
    ]
    tiny = bool(np.nanmin(heights, initial=np.inf) < math.log10(2 * TINY))
    note = _note(sweep, axes, across, up, at, part, ends, tiny, clipped)
    page = layout.page(
        width, height, names=[], headed=True, note=note,
        shares=[1.0] if up is None else [0.97, 0.03], rooms=[24] if up is None else [26, 52],
    )  # fmt: skip
    return SettingsView(
        page=page,
        title=f"{kind} on {sweep.problem.title}",
        headline=_headline(sweep, axes, best, loss),
        loss_name=loss_name,
        x=_axis(across, axes[across], spaced=up is None, width=page.panels[0].width),
        y=None if up is None else _axis(up, axes[up], spaced=False, width=page.panels[0].width),
        height=heights,
        diverged=np.isinf(part),
        missing=np.isnan(part),
        best=None if best is None else tuple(best[i] for i in shown),
        ends=ends,
        low=low,
        high=high,
    )


#: What the note says of losses beyond the range: of a map, of a curve.
_CLIPPED = {
    False: {"below": "with the first color", "above": "with the last color"},
    True: {"below": "out of the frame", "above": "out of the frame"},
}


def _bulk(heights: Floats, start: float) -> tuple[float, float]:
    """Return the range of most of the heights: all, unless few of them take up most of it.

    Those above the start, where a run is about to diverge, do not belong to most of them.

    Examples
    --------
    >>> _bulk(np.array([0.0, 0.5, 1.0, 1.2, 1.5, 30.0]), 40.0), _bulk(np.arange(5.0), 40.0)
    ((0.0, 1.5), (0.0, 4.0))
    >>> _bulk(np.array([0.0, 1.0, 2.0, 30.0, 60.0]), 2.5)
    (0.0, 2.5)
    """
    if not len(heights):
        return 0.0, 1.0
    low, high = float(heights.min()), float(heights.max())
    below = heights[heights <= start]
    if not len(below):
        below, start = heights, high
    first, third = np.quantile(below, (0.25, 0.75))
    reach = max(_FENCE * (third - first), 1.0)
    outside = below < first - reach, below > third + reach
    few = [
        int(beyond.sum()) <= max(1, share * len(below))
        for beyond, share in zip(outside, (_MOST_BELOW, _MOST_ABOVE), strict=True)
    ]
    most = below[~(outside[0] & few[0]) & ~(outside[1] & few[1])]
    top = min(start, high) if most.max() == below.max() else float(most.max())
    return (float(most.min()), top) if top - most.min() < (high - low) / 2 else (low, high)


def _chosen(axes: dict[str, list[Any]], x: str | None, y: str | None) -> tuple[str, str | None]:
    """Return the names along the axes: those given, then those with the most values."""
    several = [name for name, values in axes.items() if len(values) > 1] or list(axes)[:1]
    for given in (x, y):
        if given is not None and given not in several:
            raise ValueError(
                f"{given!r} is no setting with several values; there are {', '.join(several)}."
            )
    if x is not None and x == y:
        raise ValueError(f"x and y are both {x!r}; give two settings.")
    free = sorted(several, key=lambda name: -len(axes[name]))
    names = [name for name in (x, y) if name is not None]
    names += [name for name in free if name not in names]
    if len(names) == 1:
        return names[0], None
    two = names[:2]
    if x is None and y is None:
        two = [name for name in axes if name in two]
    elif x is None:
        two = [two[1], two[0]]
    return two[0], two[1]


def _axis(name: str, values: list[Any], spaced: bool, width: float) -> Axis:
    """Return an axis; `spaced` draws numbers where they are, in place of side by side."""
    labels = [_text(value) for value in values]
    room = max(layout.text_width(label, 11) for label in labels) + 14
    most = max(2, min(_MOST_TICKS, int(width / room)))
    place, log = np.arange(len(values), dtype=float), False
    if spaced and all(isinstance(value, (int, float)) for value in values):
        numbers = np.array(values, dtype=float)
        if np.all(numbers > 0) and numbers.max() > 20 * numbers.min():
            place, log = np.log10(numbers), True
        elif len(set(numbers.tolist())) > 1:
            place = numbers
    ticks = _spread(place, most)
    return Axis(name, labels, place, ticks, log)


def _spread(place: Floats, most: int) -> list[int]:
    """Return the places that get a number: at equal steps, and none too close to the last."""
    apart = abs(float(place[-1] - place[0])) / most
    found: list[int] = []
    for i in range(0, len(place), -(-len(place) // most)):
        if not found or abs(place[i] - place[found[-1]]) >= 0.8 * apart:
            found.append(i)
    return found


def _text(value: Any) -> str:
    if isinstance(value, tuple):
        return format_point(value)
    if isinstance(value, float):
        return format_number(value)
    text = str(value)
    return text if len(text) <= 24 else f"{text[:23]}..."


def _headline(
    sweep: SweepLike, axes: dict[str, list[Any]], best: tuple[int, ...] | None, loss: Any
) -> str:
    if best is None:
        return f"Every one of the {loss.size} runs diverged."
    said = []
    for i, (name, values) in enumerate(axes.items()):
        if len(values) > 1:
            end = sweep.ends.get(name)
            said.append(f"{name} {_text(values[best[i]])}{f' (the {end})' * bool(end)}")
    where = ", ".join(said)
    return f"Best of {loss.size}: {where or 'the only run'}, loss {format_number(loss[best])}."


def _note(
    sweep: SweepLike, axes: dict[str, list[Any]], across: str, up: str | None,
    at: tuple[int, ...], part: Any, ends: list[tuple[str, str]], tiny: bool, clipped: list[str],
) -> str:  # fmt: skip
    parts = [f"{sweep.steps} steps"]
    others = [
        f"{name} {_text(values[at[i]])}"
        for i, (name, values) in enumerate(axes.items())
        if name not in (across, up) and len(values) > 1
    ]
    if others:
        parts.append(f"drawn are {across} and {up}, at the best {' and '.join(others)}")
    lost, missing = int(np.isinf(part).sum()), int(np.isnan(part).sum())
    if lost:
        parts.append(f"{'grey' if up else 'crosses'}: {lost} of {part.size} diverged")
    if missing:
        parts.append(f"empty: {missing} have not run")
    parts += clipped
    if tiny:
        parts.append(f"losses below {format_number(TINY)} are drawn there")
    if ends:
        parts.append("the orange edge ends what was tried, better values may lie beyond it")
    text = "; ".join(parts)
    return f"{text[0].upper()}{text[1:]}."
