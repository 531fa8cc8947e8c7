"""View models of curves over the steps: losses, and the final held-out accuracies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from optlab.viz.protocols import ComparisonLike
from optlab.viz.style import theme
from optlab.viz.style.geometry import Box, Floats, LabelPlacer, clip_line, spread, thin
from optlab.viz.style.text import format_number, format_percent, why_stopped
from optlab.viz.style.theme import Style
from optlab.viz.views.map_view import Mark, is_noisy, styles_of, visited

Scale = Literal["log", "linear"]

_POINTS = 2800  # of all curves together: with four curves about two per pixel
_END_GAP = 15  # pixels between two labels at the ends of curves
_MOST_ENDS = 12  # labels at the ends: more would be a second legend
_SLACK = 0.01  # values up to two decades below the limit of the next line are still shown
_DECADES = 12  # of a log axis below the start: one dip to rounding must not flatten all curves


@dataclass(frozen=True)
class SeriesView:
    """One curve.

    Attributes
    ----------
    name : str
        As in the legend.
    style : Style
        The optimizer's style.
    x, y : arrays
        Steps taken, and values, clipped at the border of the panel; NaN in gaps.
    scale : {"log", "linear"}
        Scale of the axis of the values.
    label, units : str
        The quantity and its units ("" for none).
    faint : bool
        Whether to draw it thin and pale, behind the main curve.
    width : float
        Line width in pixels, if it is not faint.
    """

    name: str
    style: Style
    x: Floats
    y: Floats
    scale: Scale
    label: str
    units: str
    faint: bool = False
    width: float = theme.LINE_WIDTH


@dataclass(frozen=True)
class CurveEnd:
    """The last value of a curve, and the height of its label in the column beside the panel."""

    name: str
    style: Style
    x: float
    y: float
    text: str
    text_y: float
    size: float = theme.END_SIZE


@dataclass(frozen=True)
class CurvesView:
    """A panel of curves over the steps.

    Attributes
    ----------
    title, note : str
        The quantity, and its scale.
    box : Box
        The visible range; along y in powers of ten if the scale is ``"log"``.
    scale : {"log", "linear"}
        Scale of the axis of the values.
    series : tuple of SeriesView
        The curves, faint ones first.
    ends : tuple of CurveEnd
        Runs that reached the last step.
    stops : tuple of (name, style, Mark)
        Runs that ended early or left the panel: where, and why.
    lines : tuple of float
        Steps to mark with a thin vertical line.
    """

    title: str
    note: str
    box: Box
    scale: Scale
    series: tuple[SeriesView, ...]
    ends: tuple[CurveEnd, ...]
    stops: tuple[tuple[str, Style, Mark], ...]
    lines: tuple[float, ...] = ()


@dataclass(frozen=True)
class AccuracyView:
    """Held-out accuracy of every run; None if a run has none, with the reason as text."""

    rows: tuple[tuple[str, Style, float | None, str], ...]


def moving_mean(values: Floats, window: int) -> Floats:
    """Compute the centered mean over `window` values, fewer at the ends, so that it has no lag.

    Examples
    --------
    >>> moving_mean(np.array([0.0, 3.0, 0.0, 3.0]), 3)
    array([1.5, 1. , 2. , 1.5])
    """
    ones = np.ones(min(window, len(values)))
    total = np.convolve(values, ones, mode="same")
    return total / np.convolve(np.ones_like(values), ones, mode="same")


def loss_scale(losses: Sequence[Floats], minimum: float | None) -> tuple[Scale, float, str, str]:
    """Choose how losses are drawn: the scale, the value to subtract, the title, and the note.

    A log axis separates good from very good but needs positive values. So the known minimum is
    subtracted; without one the losses are unchanged, on a log axis if all are positive.

    Examples
    --------
    >>> loss_scale([np.array([3.0, -1.0])], -2.0)
    ('log', -2.0, 'Loss above the minimum −2', 'log scale')
    >>> loss_scale([np.array([3.0, -1.0])], None)
    ('linear', 0.0, 'Loss', 'linear scale')
    """
    together = np.concatenate([np.empty(0), *losses])
    finite = together[np.isfinite(together)]
    lowest = float(finite.min(initial=math.inf))
    # A "minimum" that a run undercuts by more than rounding is not the minimum.
    if minimum is not None and lowest >= minimum - 1e-9 * max(1.0, abs(minimum)):
        title = "Loss" if minimum == 0 else f"Loss above the minimum {format_number(minimum)}"
        return "log", float(minimum), title, "log scale"
    if len(finite) and lowest > 0:
        return "log", 0.0, "Loss", "log scale"
    return "linear", 0.0, "Loss", "linear scale"


def _limits(
    comparison: ComparisonLike, above: dict[str, tuple[Floats, Floats]], scale: Scale, base: float
) -> tuple[float, float, bool]:
    """Choose the limits of the loss axis, in powers of ten on a log scale.

    Runs that were not stopped are shown in full, except for values far too deep: the third result
    is whether these were cut. A run that diverged would flatten all others: it is shown up to ten
    times above the rest and then leaves the panel.
    """
    # Relative to a minimum other than zero, values below float64's precision are rounding.
    rounding = 4e-16 * abs(base)
    steady: list[Floats] = []
    wild: list[Floats] = []
    for name, (_, values) in above.items():
        usable = values[np.isfinite(values) & ((values > 0) if scale == "log" else True)]
        (steady if comparison.traces[name].stopped is None else wild).append(usable)
    calm = np.concatenate([np.empty(0), *steady, *(values[:1] for values in wild)])
    if not len(calm):
        return (-1.0, 1.0, False) if scale == "log" else (0.0, 1.0, False)
    top, bottom = float(calm.max()), float(calm.min())
    if any(len(values) and values.max() > top for values in wild):
        top *= 10 if top > 0 else 0.1
    if scale == "linear":
        top, bottom = max(top, 0.0), min(bottom, 0.0)  # a linear axis shows zero
        if top == bottom:  # every run stays where nothing is lost
            return 0.0, 1.0, False
        room = 0.06 * (top - bottom) or 1.0
        return bottom - (room if bottom < 0 else 0), top + (room if top > 0 else 0), False
    began = max(float(values[0]) for values in (*steady, *wild) if len(values))
    deepest, floor = max(bottom, rounding, top * 1e-60), began * 10.0**-_DECADES
    cut = deepest < floor * _SLACK
    high, low = math.log10(top), math.log10(floor if cut else deepest)
    room = max(0.05 * (high - low), 0.1)
    return low - room, high + room, cut


def _evaluated(comparison: ComparisonLike, name: str, taken: Floats) -> Floats:
    """Convert numbers of updates to numbers of gradient evaluations.

    They differ for optimizers that evaluate several gradients per update.
    """
    counts = getattr(comparison, "evaluations", {}).get(name, ())
    if not len(counts) or not len(taken) or taken.max() > len(counts):
        return taken
    return np.concatenate([[0.0], np.asarray(counts, dtype=np.float64)])[taken.astype(int)]


def _losses(
    comparison: ComparisonLike,
) -> tuple[dict[str, tuple[Floats, Floats]], Scale, float, str, str]:
    """Return steps and losses of every run as they are drawn, and the choices of `loss_scale`."""
    network = comparison.problem.kind == "network"
    minimum = None if network else comparison.problem.minimum_value
    raw = {}
    for name, trace in comparison.traces.items():
        surface = comparison.problem.kind == "surface"  # its loss after the last step is known
        count = len(trace.loss) + (1 if surface else 0)
        taken, values = visited(trace, comparison.final_loss.get(name, math.nan), count)
        raw[name] = _evaluated(comparison, name, taken), values
    scale, base, title, note = loss_scale([values for _, values in raw.values()], minimum)
    above = {name: (taken, values - base) for name, (taken, values) in raw.items()}
    return above, scale, base, title, note


def axis_note(comparison: ComparisonLike) -> str:
    """Return the note on what the loss axis cuts off; "" if it shows everything."""
    above, scale, base, *_ = _losses(comparison)
    if not _limits(comparison, above, scale, base)[2]:
        return ""
    return f"The loss axis ends {_DECADES} decades below the start: what lies deeper is cut off."


def loss_view(comparison: ComparisonLike, width: float, height: float) -> CurvesView:
    """Build the view of the losses of a comparison over its steps.

    For surfaces the curve ends with the loss after the last step. For networks the loss of a step
    is that of its mini-batch: it is drawn faintly, under a mean over neighboring steps. So is the
    loss of a path whose gradients are noisy.

    Parameters
    ----------
    comparison : Comparison
        The runs.
    width, height : float
        Size of the panel in pixels.
    """
    network = comparison.problem.kind == "network"
    noisy = network or is_noisy(comparison.problem)
    above, scale, base, title, note = _losses(comparison)
    window = _window(max((len(values) for _, values in above.values()), default=0))
    if network:
        title = "Training loss"
    if noisy:
        each = "each mini-batch" if network else "each step"
        note += f"; faint: {each}, bold: mean of {window} neighbouring steps"
    low, high, _ = _limits(comparison, above, scale, base)
    box = Box(0.0, float(max(1, comparison.steps)), low, high)

    styles = styles_of(comparison)
    label = title[0].lower() + title[1:]
    faint, bold = [], []
    most = _POINTS // max(4, len(above))
    tips: dict[str, tuple[float, float]] = {}
    for name, (taken, values) in above.items():
        smooth = values
        if noisy:
            pale = _curve(name, styles[name], taken, values, box, scale, label, most, faint=True)
            faint.append(pale)
            smooth = _smoothed(values, window)
        curve = _curve(name, styles[name], taken, smooth, box, scale, label, most)
        bold.append(curve)
        seen = np.flatnonzero(np.isfinite(curve.y))
        if len(seen):
            tips[name] = float(curve.x[seen[-1]]), float(curve.y[seen[-1]])
    ends = _ends(comparison, above, tips, styles, box, scale, base, height, noisy)
    reached = {end.name for end in ends}
    stopped = {name: tip for name, tip in tips.items() if name not in reached}
    stops = _stops(comparison, stopped, styles, box, scale, bold, width, height)
    return CurvesView(title, note, box, scale, (*faint, *bold), ends, stops)


def _window(count: int) -> int:
    """Return an odd window of one step in forty, enough to smooth mini-batch noise."""
    return max(3, 2 * (count // 80) + 1)


def _smoothed(values: Floats, window: int) -> Floats:
    finite = np.isfinite(values)
    last = int(np.argmin(finite)) if not finite.all() else len(values)
    return np.concatenate([moving_mean(values[:last], window), values[last:]])


def _curve(
    name: str,
    style: Style,
    taken: Floats,
    values: Floats,
    box: Box,
    scale: Scale,
    label: str,
    most: int,
    *,
    faint: bool = False,
) -> SeriesView:
    height = values
    if scale == "log":
        with np.errstate(divide="ignore", invalid="ignore"):
            height = np.log10(values)
        # The exact minimum has no logarithm; the curve then leaves the panel at the bottom.
        height = np.where(values <= 0, -400.0, height)
    keep = thin(height, most)
    x, y = clip_line(taken[keep], height[keep], box)
    if not len(x) and len(height) and box.contains(taken[0], height[0]):
        x, y = taken[:1], height[:1]
    return SeriesView(name, style, x, 10.0**y if scale == "log" else y, scale, label, "", faint)


def _height(value: float, scale: Scale) -> float:
    return math.log10(value) if scale == "log" else value


def _ends(
    comparison: ComparisonLike,
    above: dict[str, tuple[Floats, Floats]],
    tips: dict[str, tuple[float, float]],
    styles: dict[str, Style],
    box: Box,
    scale: Scale,
    base: float,
    height: float,
    noisy: bool,
) -> tuple[CurveEnd, ...]:
    """Label the curves that reach the last step in a column beside the panel.

    If they are too many for the column, only the lowest are labeled; the legend has the others.
    """
    pixel = box.height / height
    names = [
        name
        for name, (x, _) in tips.items()
        if comparison.traces[name].stopped is None and x == above[name][0][-1]
    ]
    most = min(_MOST_ENDS, int(height // _END_GAP))
    best = set(sorted(names, key=lambda name: tips[name][1])[:most])
    labelled = [name for name in names if name in best]
    wanted = [(_height(tips[name][1], scale) - box.y_low) / pixel for name in labelled]
    placed = spread(wanted, _END_GAP, _END_GAP / 2, height - _END_GAP / 2)
    where = dict(zip(labelled, placed, strict=True))
    ends = []
    for name in names:
        x, y = tips[name]
        last = y if noisy else float(above[name][1][-1])
        place = where.get(name, (_height(y, scale) - box.y_low) / pixel)
        text_height = box.y_low + place * pixel
        ends.append(
            CurveEnd(
                name=name,
                style=styles[name],
                x=x,
                y=y,
                text=f"{name} {format_number(last)}" if name in where else "",
                text_y=10.0**text_height if scale == "log" else text_height,
            )
        )
    return tuple(ends)


def _stops(
    comparison: ComparisonLike,
    tips: dict[str, tuple[float, float]],
    styles: dict[str, Style],
    box: Box,
    scale: Scale,
    curves: Sequence[SeriesView],
    width: float,
    height: float,
) -> tuple[tuple[str, Style, Mark], ...]:
    """Label the runs that do not reach the last step at the ends of their curves."""

    def pixels(x: Floats, y: Floats) -> Floats:
        up = np.log10(y) if scale == "log" else y
        across = (x - box.x_low) / box.width * width
        return np.stack([across, (up - box.y_low) / box.height * height], axis=1)

    placer = LabelPlacer(Box(2, width - 2, 2, height - 2), [pixels(c.x, c.y) for c in curves])
    marks = []
    for name, (x, y) in tips.items():
        reason = why_stopped(comparison.traces[name])
        if reason is None:  # it continues below the log axis: the minimum, up to rounding
            floor = format_number(10.0**box.y_low if scale == "log" else box.y_low, 1)
            reason = f"below {floor} from step {math.ceil(x)}"
        across, up = pixels(np.array([x]), np.array([y]))[0]
        text = f"{name} {reason}"
        where = (float(across), float(up))
        position = placer.place(where, text, theme.FONT_TEXT, theme.END_SIZE / 2 + 2)
        marks.append((name, styles[name], Mark(x, y, text, position)))
    return tuple(marks)


def accuracy_view(comparison: ComparisonLike) -> AccuracyView | None:
    """Build the view of the held-out accuracies; None if the problem has none."""
    if not comparison.accuracy:
        return None
    styles = styles_of(comparison)
    rows: list[tuple[str, Style, float | None, str]] = []
    for name, trace in comparison.traces.items():
        value = float(comparison.accuracy.get(name, math.nan))
        stopped = why_stopped(trace)
        if math.isfinite(value) and stopped is None:
            rows.append((name, styles[name], value, format_percent(value)))
        else:
            rows.append((name, styles[name], None, stopped or "not measured"))
    return AccuracyView(tuple(rows))
