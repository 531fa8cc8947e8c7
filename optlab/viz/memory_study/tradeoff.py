"""View of memory against time: the runs of a study, and the theoretical curves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from optlab.lab.memory_studies.rows import time_in_words
from optlab.viz.memory_timeline.view import MIB
from optlab.viz.style import layout, theme
from optlab.viz.style.geometry import Box, Floats, LabelPlacer, clip_line
from optlab.viz.style.layout import Panel
from optlab.viz.style.text import format_bytes
from optlab.viz.style.theme import Style


@dataclass(frozen=True)
class Point:
    """A run in the plot of memory against time."""

    name: str
    style: Style
    x: float
    y: float
    tip: str
    position: str | None


@dataclass(frozen=True)
class CurveLabel:
    """The name of a curve; its middle is `above` pixels above the point."""

    x: float
    y: float
    text: str
    anchor: str
    above: float


@dataclass(frozen=True)
class Curve:
    """A theoretical curve; its points are runs with different numbers of segments or snapshots."""

    name: str
    dash: tuple[float, ...]
    x: Floats
    y: Floats
    tips: tuple[str, ...]
    label: CurveLabel | None


def time_of(study: Any, row: Any) -> str:
    """Format a time relative to the plain run; absolute if it was measured only once."""
    if row.seconds is None:
        return ""
    return f"{study.times_plain(row)} x plain" if row.span else time_in_words(row.seconds)


def beyond(study: Any, seconds: float) -> float:
    """Return a time in percent beyond the plain run."""
    return 100 * (seconds / study.plain.seconds - 1)


def measured(study: Any) -> list[Any]:
    """Return the runs that were measured."""
    return [row for row in study.rows if row.peak is not None and row.seconds is not None]


def box_of(study: Any) -> Box:
    """Choose the limits of both axes; both contain zero."""
    rows = measured(study)
    times = [beyond(study, row.seconds) for row in rows]
    theory = [beyond(study, one.seconds) for one in study.bounds() if one.schedule == "segments"]
    high = max(25.0, 1.3 * max(times), 1.5 * max(theory, default=0.0))
    low = min(-0.08 * high, 1.3 * min(times))  # space for names left of the plain run
    return Box(low, high, 0.0, 1.14 * max(row.peak for row in rows) / MIB)


def curves_of(study: Any, box: Box, panel: Panel) -> tuple[Curve, ...]:
    """Return the theoretical curves."""
    found = []
    by_name: dict[str, list[Any]] = {}
    for bound in study.bounds():
        by_name.setdefault(bound.schedule, []).append(bound)
    for name, bounds in by_name.items():
        if name == "revolve":  # only its Pareto front
            bounds = _pareto_front(bounds)
        else:
            bounds = bounds[: 1 + min(range(len(bounds)), key=lambda i: bounds[i].nbytes)]
        x = np.array([beyond(study, bound.seconds) for bound in bounds])
        y = np.array([bound.nbytes / MIB for bound in bounds])
        unit = "snapshots" if name == "revolve" else "segments"
        tips = tuple(
            f"{name}, {bound.parameter} {unit if bound.parameter > 1 else unit[:-1]}: "
            f"{format_bytes(bound.nbytes)}, {bound.recomputed_layers} layers run again"
            for bound in bounds
        )
        dash = () if name == "revolve" else (5.0, 3.0)
        optimum = ", the optimum" if study.equal_layers else " by number of layers"
        text = f"Revolve{optimum}" if name == "revolve" else "segments"
        found.append(Curve(text, dash, x, y, tips, _label(x, y, box, text, panel)))
    return tuple(found)


def _pareto_front(bounds: list[Any]) -> list[Any]:
    """Return the Pareto-optimal bounds, from the longest time to the shortest.

    With unequal layers, one more snapshot may take more memory, in less time or more.
    """
    best: list[Any] = []
    for bound in sorted(bounds, key=lambda one: (one.recomputed_layers, one.nbytes)):
        if not best or bound.nbytes < best[-1].nbytes:
            best.append(bound)
    return best[::-1]


def _label(x: Floats, y: Floats, box: Box, text: str, panel: Panel) -> CurveLabel | None:
    """Place the name of a curve: below the right end for Revolve, at the top for others."""
    seen_x, seen_y = clip_line(x, y, box)
    seen = np.flatnonzero(np.isfinite(seen_x) & np.isfinite(seen_y))
    if not len(seen):
        return None
    flat = text.startswith("Revolve")
    at = seen[seen_x[seen].argmax() if flat else seen_y[seen].argmax()]
    before = (seen_x[at] - box.x_low) * panel.width / box.width
    if flat:  # its right end may be far left if another run takes very long
        left = before < layout.text_width(text, theme.FONT_SMALL) + 4
    else:
        left = before < 0.6 * panel.width
    under = flat and (seen_y[at] - box.y_low) * panel.height / box.height > 20
    return CurveLabel(
        float(seen_x[at]),
        float(seen_y[at]),
        text,
        "left" if left else "right",
        -10 if under else 10,
    )


def clipped(curve: Curve, box: Box) -> tuple[Floats, Floats]:
    """Return the visible part of a curve."""
    return clip_line(curve.x, curve.y, box)


def front_of(study: Any) -> tuple[Floats, Floats]:
    """Return the points of the Pareto-optimal runs, smallest peak first."""
    rows = study.front()
    x = np.array([beyond(study, row.seconds) for row in rows])
    return x, np.array([row.peak / MIB for row in rows])


def points_of(
    study: Any, styles: dict[str, Style], box: Box, panel: Panel, curves: tuple[Curve, ...]
) -> tuple[Point, ...]:
    """Place every run that was measured, and its name if space allows."""
    across, up = panel.width / box.width, panel.height / box.height

    def pixels(x: Any, y: Any) -> Any:
        return (x - box.x_low) * across, (y - box.y_low) * up

    lines = []
    for curve in curves:
        x, y = clipped(curve, box)
        if len(x) > 1:
            t = np.linspace(0, len(x) - 1, 30 * len(x))
            places = np.arange(len(x))
            lines.append(np.stack(pixels(np.interp(t, places, x), np.interp(t, places, y)), 1))
    x, y = front_of(study)
    if len(x) > 1:  # as steps: first up, then left
        x, y = np.repeat(x, 2)[:-1], np.repeat(y, 2)[1:]
        t, places = np.linspace(0, len(x) - 1, 30 * len(x)), np.arange(len(x))
        lines.append(np.stack(pixels(np.interp(t, places, x), np.interp(t, places, y)), 1))
    placer = LabelPlacer(Box(2, panel.width - 2, 2, panel.height - 2), lines)
    for curve in curves:
        if curve.label is not None:
            label = curve.label
            end, middle = pixels(label.x, label.y + label.above / up)
            wide = layout.text_width(label.text, theme.FONT_SMALL)
            low = end if label.anchor == "left" else end - wide
            placer.taken.append(Box(low, low + wide, middle - 8, middle + 8))
    rows = measured(study)
    at = {row.name: (beyond(study, row.seconds), row.peak / MIB) for row in rows}
    for place in at.values():
        placer.mark(pixels(*place), theme.END_SIZE / 2)

    def named(row: Any) -> tuple[Any, str, float, float]:
        return pixels(*at[row.name]), row.name, theme.FONT_TEXT, theme.END_SIZE / 2 + 2

    # The one with the fewest places to go to is placed first.
    chosen = {
        row.name: placer.place(*named(row))
        for row in sorted(rows, key=lambda row: placer.free_sides(*named(row)))
    }
    found = []
    for row in rows:
        place = at[row.name]
        tip = (
            f"<b>{row.name}</b><br>peak {format_bytes(row.peak)}, {time_of(study, row)}"
            f"<br>{row.recomputed_operations:,} operations run again"
        )
        found.append(Point(row.name, styles[row.name], *place, tip, chosen[row.name]))
    return tuple(found)
