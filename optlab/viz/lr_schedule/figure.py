"""Learning-rate schedules: rates over the next steps, as a figure and as its static image."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import plotly.graph_objects as go

from optlab.optimizer.lr import LRScheduler, ReduceOnPlateau
from optlab.viz.backends.matplotlib.draw import draw_png
from optlab.viz.backends.panels import curves_panel
from optlab.viz.backends.plotly.draw import draw
from optlab.viz.backends.scene import Scene, entries
from optlab.viz.style import layout, theme
from optlab.viz.style.geometry import Box, Floats, LabelPlacer, clip_line, spread, thin
from optlab.viz.style.results import is_comparison, is_trace, traces_of
from optlab.viz.style.text import format_number, join_names
from optlab.viz.style.theme import Style
from optlab.viz.views.curve_view import CurveEnd, CurvesView, SeriesView
from optlab.viz.views.map_view import Mark

Scale = Literal["linear", "log"]

_MOST_STEPS = 20_000  # of a figure without the argument `steps`
_MOST_SETTINGS = 4  # schedules whose full settings are written under the figure
_MOST_LETTERS = 100  # of a headline
_POINTS = 2800  # of all curves together
_END_GAP = 15  # pixels between two labels at the ends of curves


@layout.documented
def schedule(
    schedules: Any,
    steps: int | None = None,
    *,
    axis: str = "linear",
    width: int = 720,
    height: int = 400,
) -> go.Figure:
    """Draw learning rates over the next steps of one or several schedules, without stepping them.

    Parameters
    ----------
    schedules : LRScheduler, dict, Trace or Comparison
        A schedule, or a dict of names and schedules. A trace can replace a schedule: the rates that
        the run had; and so can a list of rates, such
        as ``plateau.preview(metrics)`` for one whose rates depend on measurements.
    steps : int, optional
        Number of rates; by default enough to show what the schedules do. A schedule that ends
        earlier (OneCycleLR) is drawn to its end.
    axis : {"linear", "log"}
        Scale of the axis of the rates.
    width, height : int
        Size in pixels; a long legend or note makes the figure taller.

    Raises
    ------
    TypeError, ValueError
        If something else was given, or a rate is not a number.

    Examples
    --------
    >>> import optlab as ol
    >>> lr = ol.optimizer.lr
    >>> figure = schedule(
    ...     {"steps": lr.StepDecay(0.5, 30), "cosine": lr.CosineAnnealingDecay(0.5, 100)}, steps=100
    ... )
    >>> figure.layout.title.text
    '<b>Learning rates of 2 schedules</b>'
    """
    return draw(_scene(schedules, steps, axis, width, height))


@layout.documented
def schedule_png(
    schedules: Any,
    steps: int | None = None,
    *,
    axis: str = "linear",
    width: int = 720,
    height: int = 400,
    scale: float = 1.0,
) -> bytes:
    r"""Draw learning rates as a PNG image.

    Parameters
    ----------
    schedules, steps
        As for `schedule`.
    axis : {"linear", "log"}
        Scale of the axis of the rates.

    Examples
    --------
    >>> import optlab as ol
    >>> schedule_png(ol.optimizer.lr.StepDecay(0.5, 30))[:4]
    b'\x89PNG'
    """
    return draw_png(_scene(schedules, steps, axis, width, height), scale)


def is_known_in_advance(schedule: Any) -> bool:
    """Return whether the rates of a schedule are known before training."""
    return not isinstance(schedule, ReduceOnPlateau)


def _scene(schedules: Any, steps: Any, axis: Any, width: int, height: int) -> Scene:
    if axis not in ("linear", "log"):
        raise ValueError(f"axis must be 'linear' or 'log'; got {axis!r}.")
    given = _by_name(schedules)
    rates = _rates(given, steps)
    # A schedule has no familiar style, unlike an optimizer: styles follow the user's order.
    styles = theme.assign_styles(dict.fromkeys(rates, ""))
    alone = len(rates) == 1
    if alone:
        styles = {name: replace(style, dash=()) for name, style in styles.items()}
    legend = {} if alone else entries(styles)  # the title already names a single one
    longest = max(map(len, rates))
    page = layout.page(
        width,
        height,
        names=list(legend),
        headed=True,
        note=_settings(given),
        shares=[1],
        rooms=[layout.text_width("m" * longest + " 1.23e-45", theme.FONT_TEXT) + 4],
    )
    [panel] = page.panels
    view = _view(rates, styles, axis, panel.width, panel.height)
    title = f"Learning rates of {len(rates)} schedules"
    if alone:
        title = f"Learning rate of {next(iter(rates))}"
    return Scene(page, title, _headline(rates), [curves_panel(view)], legend)


def _by_name(schedules: Any) -> dict[str, Any]:
    """Return the schedules as a dict of names."""
    if isinstance(schedules, LRScheduler):
        return {type(schedules).__name__: schedules}
    if is_trace(schedules) or is_comparison(schedules) or isinstance(schedules, (list, tuple)):
        runs = traces_of(schedules, "viz.schedule")
        return {name: _recorded(name, trace) for name, trace in runs.items()}
    if isinstance(schedules, Mapping) and schedules:
        for name in schedules:
            if not isinstance(name, str):
                raise TypeError(f"the names of schedules are text; got {name!r}.")
        return {n: _recorded(n, x) if is_trace(x) else x for n, x in schedules.items()}
    raise TypeError(
        "viz.schedule takes a schedule, or a dict of names and schedules such as "
        "{'cosine': ol.optimizer.lr.CosineAnnealingDecay(0.5, T_max=100)}; got "
        f"{type(schedules).__name__}."
    )


def _recorded(name: str, trace: Any) -> Floats:
    """Return the rates of a run; one holds until the next that was recorded."""
    rates = np.asarray(trace.learning_rate, dtype=np.float64)
    if not len(rates) or not np.isfinite(rates).all():
        raise ValueError(
            f"the trace {name!r} has no learning rates: ol.record(optimizer) reads them with every "
            "probe; trace.append(learning_rate=...) gives those of another library."
        )
    return np.repeat(rates, np.diff(trace.step, append=trace.step[-1] + 1))


def _rates(given: dict[str, Any], steps: Any) -> dict[str, Floats]:
    """Return the rates of every schedule, up to its end."""
    if steps is None:
        lengths = [
            min(one.horizon, _MOST_STEPS) if isinstance(one, LRScheduler) else len(one)
            for one in given.values()
            if isinstance(one, (LRScheduler, Sequence, np.ndarray))
        ]
        steps = max(lengths, default=1)
    elif isinstance(steps, bool) or not isinstance(steps, (int, np.integer)) or steps < 1:
        raise ValueError(f"steps must be a whole number of at least 1; got {steps!r}.")
    return {name: _rates_of(name, one, int(steps)) for name, one in given.items()}


def _rates_of(name: str, one: Any, steps: int) -> Floats:
    if isinstance(one, ReduceOnPlateau):
        raise TypeError(
            f"the rates of {name!r} depend on what is measured: give plateau.preview(metrics) "
            "instead of the ReduceOnPlateau itself."
        )
    if isinstance(one, LRScheduler):
        left = one.steps_left
        return np.array(one.preview(steps if left is None else min(steps, left)))
    if isinstance(one, (list, tuple, np.ndarray)) and len(one):
        found = np.asarray(one)
        if found.ndim == 1 and found.dtype.kind in "iuf" and np.isfinite(found).all():
            return found[:steps].astype(np.float64)
        raise ValueError(f"{name!r} must be a list of finite numbers to be drawn as rates.")
    if isinstance(one, type) and issubclass(one, LRScheduler):
        raise TypeError(f"{name!r} is the class {one.__name__}; give a schedule with its settings.")
    raise TypeError(f"{name!r} must be a schedule or a list of rates; got {type(one).__name__}.")


def _headline(rates: dict[str, Floats]) -> str:
    """Return one sentence on the highest and the lowest rate."""
    if len(rates) == 1:
        [values] = rates.values()
        return _headline_of_one(values)
    high = max(float(values.max()) for values in rates.values())
    low = min(float(values.min()) for values in rates.values())
    top = [n for n, values in rates.items() if math.isclose(values.max(), high, rel_tol=1e-9)]
    bottom = [n for n, values in rates.items() if values.min() == low]
    said = f"The highest rate is {format_number(high)}, of "
    if len(top) == 1:
        said += f"{top[0]} {_when(int(np.argmax(rates[top[0]])))}"
    else:
        said += join_names(top, _MOST_LETTERS - len(said))
    more = f"; the lowest {format_number(low)}, of {join_names(bottom)}"
    return f"{said}{more if len(said + more) < _MOST_LETTERS else ''}."


def _when(step: int) -> str:
    return f"after {step} step{'s' * (step != 1)}" if step else "at the start"


def _headline_of_one(values: Floats) -> str:
    """Return a sentence on the first, last, highest and lowest rate."""
    last = len(values) - 1
    if values.min() == values.max():
        return f"{format_number(float(values[0]))} in all {last} steps."
    ends, between = {0: "", last: ""}, ""
    for name, at in (("highest", int(np.argmax(values))), ("lowest", int(np.argmin(values)))):
        if math.isclose(values[at], values[last], rel_tol=1e-9) and at != 0:
            at = last
        if at in ends:
            ends[at] = f" ({name})"
        else:
            between += f"; {name}, {format_number(float(values[at]))}, after {at}"
    first, final = (format_number(float(values[at])) for at in (0, last))
    return f"From {first}{ends[0]} to {final}{ends[last]} in {last} steps{between}."


def _settings(given: dict[str, Any]) -> str:
    """Format the settings of the schedules, without the current step if they are many."""
    shown = []
    for name, one in given.items():
        if isinstance(one, LRScheduler):
            said = repr(one)
            if len(given) > _MOST_SETTINGS:
                said = said.rsplit(", epoch ", 1)[0].replace("(learning_rate=", "(")
            shown.append(said if said.startswith(f"{name}(") else f"{name}: {said}")
    return ". ".join(shown) + ("." if shown else "")


def _view(
    rates: dict[str, Floats], styles: dict[str, Style], scale: Scale, width: float, height: float
) -> CurvesView:
    """Build the view of rates over the steps."""
    longest = max(len(values) for values in rates.values())
    low, high = _limits(np.concatenate(list(rates.values())), scale)
    box = Box(0.0, float(max(1, longest - 1)), low, high)
    pixel = box.height / height
    series, tips, stopped = [], {}, {}
    for name, values in rates.items():
        heights = _heights(values, scale)
        steps, heights_drawn = _with_corners(heights)
        keep = thin(heights_drawn, _POINTS // max(4, len(rates)))
        x, y = clip_line(steps[keep], heights_drawn[keep], box)
        if len(values) == 1:
            x, y = np.zeros(1), heights
        drawn = 10.0**y if scale == "log" else y
        series.append(SeriesView(name, styles[name], x, drawn, scale, "rate", ""))
        if len(values) == longest:
            tips[name] = float(heights[-1])
        else:
            stopped[name] = (float(len(values) - 1), float(max(heights[-1], low)))
    places = spread(
        [(tip - low) / pixel for tip in tips.values()],
        _END_GAP,
        _END_GAP / 2,
        height - _END_GAP / 2,
    )
    ends = tuple(
        CurveEnd(
            name=name,
            style=styles[name],
            x=box.x_high if longest > 1 else 0.0,
            y=_value(max(tips[name], low), scale),
            text=f"{name} {format_number(float(rates[name][-1]))}",
            text_y=_value(low + place * pixel, scale),
        )
        for name, place in zip(tips, places, strict=True)
    )
    lines = [
        np.stack([one.x / box.width * width, (_heights(one.y, scale) - low) / pixel], axis=1)
        for one in series
    ]
    placer = LabelPlacer(Box(2, width - 2, 2, height - 2), lines)
    stops = []
    for name, (x_end, y_end) in stopped.items():
        text = f"{name} ends"
        where = (x_end / box.width * width, (y_end - low) / pixel)
        position = placer.place(where, text, theme.FONT_TEXT, theme.END_SIZE / 2 + 2)
        stops.append((name, styles[name], Mark(x_end, _value(y_end, scale), text, position)))
    note = f"{scale} scale"
    if scale == "log" and any((values <= 0).any() for values in rates.values()):
        note += ", which has no place for a rate of 0: there a curve leaves through the floor"
    return CurvesView("Learning rate", note, box, scale, tuple(series), ends, tuple(stops))


def _heights(values: Floats, scale: Scale) -> Floats:
    """Return the positions of values on the axis; zero is far below a log axis."""
    if scale == "linear":
        return values
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(values > 0, np.log10(values), np.where(np.isnan(values), np.nan, -400.0))


def _with_corners(heights: Floats) -> tuple[Floats, Floats]:
    """Return steps and heights, with a corner where the rate jumps: it is constant until the step.

    A jump is a change much larger than the changes next to it.

    Examples
    --------
    >>> _with_corners(np.array([1.0, 1.0, 0.0, 0.0]))
    (array([0., 1., 2., 2., 3.]), array([1., 1., 1., 0., 0.]))
    """
    steps = np.arange(len(heights), dtype=np.float64)
    if len(heights) < 3:
        return steps, heights
    change = np.abs(np.diff(heights))
    beside = np.maximum(np.append(change[1:], 0.0), np.insert(change[:-1], 0, 0.0))
    jumps = np.flatnonzero((change > 0.02 * np.ptp(heights)) & (change > 4 * beside)) + 1
    return np.insert(steps, jumps, steps[jumps]), np.insert(heights, jumps, heights[jumps - 1])


def _value(height: float, scale: Scale) -> float:
    return 10.0**height if scale == "log" else height


def _limits(values: Floats, scale: Scale) -> tuple[float, float]:
    """Choose the limits of the axis."""
    if scale == "log":
        positive = values[values > 0]
        if not len(positive):
            return -1.0, 1.0
        high, low = math.log10(positive.max()), math.log10(positive.min())
        low = max(low, high - 12)  # a smaller rate moves no float32 parameter
        room = max(0.05 * (high - low), 0.1)
        return low - room, high + room
    top, bottom = max(float(values.max()), 0.0), min(float(values.min()), 0.0)
    room = 0.06 * (top - bottom) or 1.0
    return bottom - (room if bottom < 0 else 0), top + room
