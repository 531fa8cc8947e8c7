"""View models of traces: which curves a figure of recorded quantities has, and their panels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from optlab.viz.style import layout, theme
from optlab.viz.style.geometry import Box, Floats, clip_line, spread, thin
from optlab.viz.style.layout import Page
from optlab.viz.style.results import without_loss
from optlab.viz.style.text import format_number
from optlab.viz.style.theme import Style
from optlab.viz.views.curve_view import CurveEnd, CurvesView, Scale, SeriesView

#: Points of all curves of a panel together, labels at their ends, and curves.
_POINTS = 2800
_MOST_ENDS = 12
_MOST_CURVES = 24
_MOST_LETTERS = 16
_END_GAP = 15
#: A positive quantity that spreads over so large a ratio has a logarithmic axis.
_LOG_FROM = 30.0
_DECADES = 12.0


@dataclass(frozen=True)
class TraceView:
    """A page of panels of curves."""

    page: Page
    title: str
    headline: str
    entries: dict[str, Style]
    panels: tuple[CurvesView, ...]


#: A curve: steps and values.
Curve = tuple[Floats, Floats]


def quantity_curves(
    traces: Mapping[str, Any], quantity: str, parameter: str | None
) -> dict[str, Curve]:
    """Return the curves of a quantity, by their names in the legend.

    Raises
    ------
    ValueError
        If a trace has no such quantity, or it has more than a few numbers a step; the message says
        what to draw.
    """
    found: dict[str, Curve] = {}
    for name, trace in traces.items():
        parts = _arrays(trace, quantity, name)
        if parameter is not None:
            if parameter not in parts:
                raise ValueError(
                    f"{quantity} of {name} has no parameter {parameter!r}; it has "
                    f"{', '.join(k for k in parts if k) or 'none'}."
                )
            parts = {parameter: parts[parameter]}
        for of, (steps, values) in parts.items():
            flat = values.reshape(len(values), -1) if values.size else np.zeros((len(values), 1))
            if flat.shape[1] * len(parts) > _MOST_CURVES:
                raise ValueError(
                    f"{quantity} of {name} has {flat.shape[1] * len(parts)} numbers a step, and a "
                    f"figure at most {_MOST_CURVES}. Choose parameter=..., or a norm: "
                    f"'norm of {quantity}'."
                )
            for k in range(flat.shape[1]):
                label = (
                    [name] if len(traces) > 1 or (len(parts) == 1 and flat.shape[1] == 1) else []
                )
                label += [of] if of and len(parts) > 1 else []
                label += [str(k)] if flat.shape[1] > 1 else []
                found[" ".join(label) or name] = (
                    np.asarray(steps, dtype=np.float64),
                    np.asarray(flat[:, k], dtype=np.float64),
                )
    return found


def _arrays(trace: Any, quantity: str, name: str) -> dict[str, tuple[Any, Any]]:
    """Return steps and values of a quantity by parameter."""
    kind = quantity.removeprefix("norm of ")
    if quantity.startswith("norm of ") and quantity not in trace.names and kind in trace.norms:
        steps = trace.steps("values")  # computed from recorded values
        return {p: (steps, a) for p, a in trace.norms[kind].items()}
    if quantity not in trace.names:
        raise ValueError(
            f"{name} has no {quantity!r}; recorded were {', '.join(trace.names)}. "
            f"{_how_to_record(quantity, trace)}"
        )
    steps, values = trace.steps(quantity), trace[quantity]
    parts = dict(values.items()) if hasattr(values, "items") else {"": values}
    for of, array in parts.items():
        if quantity == "parameter":
            parts[of] = array[1:]
        elif array.dtype.kind not in "biuf" or len(array) != len(steps):
            raise ValueError(f"{quantity} of {name} is not a quantity over the steps.")
    return {of: (steps, array) for of, array in parts.items()}


#: The probes that record quantities, by the beginnings of their names.
_PROBES = {
    "norm of": "Norms()", "angle": "Angle()", "update ratio": "UpdateRatio()",
    "effective rate": "EffectiveRate()", "noise": "GradientNoise()", "signal": "GradientNoise()",
    "histogram": "Histogram()", "projection": "Projection(k=2)", "pca": "PCA(k=2)",
    "snapshot": "Snapshots(every=100)", "activation": "Activations()", "time ": "Time()",
    "alignment of": "Curvature(loss, k=5, alignment=True)",
    "curvature along": "Curvature(loss, alignment=True)",
    "sharpness": "Curvature(loss)", "hessian trace": "Curvature(loss, samples=10)",
    "memory": "Memory()", "parameter": "Values()", "gradient": "Values()", "update": "Values()",
}  # fmt: skip


def _how_to_record(quantity: str, trace: Any) -> str:
    """Return how a quantity is recorded that a trace does not have."""
    probe = next((probe for begin, probe in _PROBES.items() if quantity.startswith(begin)), None)
    if probe is None and quantity in {*trace.slots, *trace.terms, *trace.norms}:
        probe = "Values()"
    if probe is None:
        probe = f"Metric({quantity!r}, f)"
    model = "model=net, " if probe == "Activations()" else ""
    return f"Record it: ol.record(optimizer, {model}probes=[ol.probes.{probe}])."


def trace_view(
    traces: Mapping[str, Any],
    quantities: Sequence[str],
    parameter: str | None,
    axis: str | None,
    note: str,
    width: int,
    height: int,
) -> TraceView:
    """Build the page of some quantities, each in a panel of its own."""
    curves = {q: quantity_curves(traces, q, parameter) for q in quantities}
    for name, trace in traces.items():
        if "loss" in curves and len(traces) == 1 and not np.isfinite(trace.loss).any():
            why = f"the trace {name!r} has no steps to draw."
            raise ValueError(without_loss(name, "series") if len(trace) else why)
    lines = tuple(sorted({float(n) for trace in traces.values() for n, _ in trace.marks}))
    marks = [f"{text} (step {n})" for trace in traces.values() for n, text in trace.marks]
    notes = [note, f"Marked: {'; '.join(marks)}." if marks else ""]
    notes += [f"{name}: {trace.stopped}." for name, trace in traces.items() if trace.stopped]
    title = " and ".join(q.capitalize() if i == 0 else q for i, q in enumerate(quantities))
    title += f" of {next(iter(traces))}" if len(traces) == 1 else f" of {len(traces)} runs"
    headline = _headline(traces)
    return page_of(
        curves, axis, title, headline, " ".join(filter(None, notes)), lines, width, height
    )


def _headline(traces: Mapping[str, Any]) -> str:
    trace = next(iter(traces.values()))
    losses = trace.loss
    if len(traces) > 1 or not len(losses):
        return f"{max(len(trace.step) for trace in traces.values()):,} recorded steps"
    return (
        f"{len(losses):,} recorded steps, loss {format_number(float(losses[0]))} to "
        f"{format_number(float(losses[-1]))}"
    )


def page_of(
    curves: Mapping[str, dict[str, Curve]],
    axis: str | None,
    title: str,
    headline: str,
    note: str,
    lines: tuple[float, ...],
    width: int,
    height: int,
) -> TraceView:
    """Build a page of panels of curves.

    Raises
    ------
    ValueError
        If the axis is unknown, or nothing can be drawn.
    """
    if axis not in (None, "linear", "log"):
        raise ValueError(f"axis must be 'linear', 'log' or None for the better one; got {axis!r}.")
    names = list(dict.fromkeys(name for panel in curves.values() for name in panel))
    styles = theme.assign_styles(dict.fromkeys(names, ""))
    if len(names) == 1:
        styles = {name: replace(style, dash=()) for name, style in styles.items()}
    entries = styles if len(names) > 1 else {}
    longest = max(map(len, names))
    label = "m" * (longest if longest <= _MOST_LETTERS else 0)
    room = layout.text_width(label + " 1.23e-45", theme.FONT_TEXT) + 4
    page = layout.page(
        width,
        height,
        names=list(entries),
        headed=True,
        note=note,
        shares=[1] * len(curves),
        rooms=[*[room + layout.AXIS_GAP] * (len(curves) - 1), room],
    )
    panels = []
    for (quantity, own), panel in zip(curves.items(), page.panels, strict=True):
        chosen = {name: styles[name] for name in own}
        panels.append(panel_view(quantity, own, chosen, axis, lines, panel.width, panel.height))
    return TraceView(page, title, headline, entries, tuple(panels))


def panel_view(
    quantity: str,
    curves: Mapping[str, Curve],
    styles: Mapping[str, Style],
    axis: str | None,
    lines: tuple[float, ...],
    width: float,
    height: float,
) -> CurvesView:
    """Build one panel.

    Raises
    ------
    ValueError
        If no value is finite.
    """
    values = np.concatenate([y for _, y in curves.values()])
    steps = np.concatenate([x for x, _ in curves.values()])
    finite = values[np.isfinite(values)]
    if not len(finite):
        raise ValueError(f"{quantity} has no finite value to draw.")
    scale: Scale = "linear"
    positive = finite[finite > 0]
    if axis == "log" and not len(positive):
        raise ValueError(f"{quantity} has no positive value for a log axis; use axis='linear'.")
    if axis == "log" or (axis is None and _is_wide(finite)):
        scale = "log"
    low, high = _limits(finite, scale)
    first, last = float(steps.min()), float(steps.max())
    box = Box(first if first > 1 else 0.0, max(last, first + 1.0), low, high)
    series, tips = [], {}
    for name, (x, y) in curves.items():
        heights = _heights(y, scale)
        keep = thin(np.nan_to_num(heights, nan=low), max(200, _POINTS // len(curves)))
        a, b = clip_line(x[keep], heights[keep], box)
        if len(x) == 1:
            a, b = x, heights
        series.append(
            SeriesView(name, styles[name], a, 10.0**b if scale == "log" else b, scale, quantity, "")
        )
        good = np.flatnonzero(np.isfinite(heights))
        if len(good):
            tips[name] = (float(x[good[-1]]), float(heights[good[-1]]), float(y[good[-1]]))
    pixel = box.height / height
    shown = tips if len(tips) <= _MOST_ENDS else {}
    named = max(map(len, curves)) <= _MOST_LETTERS  # longer names stand in the legend alone
    places = spread(
        [(min(max(h, low), high) - low) / pixel for _, h, _ in shown.values()],
        _END_GAP,
        _END_GAP / 2,
        height - _END_GAP / 2,
    )
    ends = tuple(
        CurveEnd(
            name=name,
            style=styles[name],
            x=x,
            y=_value(min(max(h, low), high), scale),
            text=f"{name} {format_number(value)}" if named else format_number(value),
            text_y=_value(low + place * pixel, scale),
        )
        for (name, (x, h, value)), place in zip(shown.items(), places, strict=True)
    )
    note = f"{scale} scale"
    if scale == "log" and len(positive) < len(finite):
        note += ", which has no place for values of 0 and below"
    inside = tuple(line for line in lines if box.x_low <= line <= box.x_high)
    return CurvesView(quantity.capitalize(), note, box, scale, tuple(series), ends, (), inside)


def _is_wide(finite: Floats) -> bool:
    return bool((finite > 0).all() and finite.max() / finite.min() > _LOG_FROM)


def _heights(values: Floats, scale: Scale) -> Floats:
    if scale == "linear":
        return values
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(values > 0, np.log10(values), np.where(np.isnan(values), np.nan, -400.0))


def _value(height: float, scale: Scale) -> float:
    return 10.0**height if scale == "log" else height


def _limits(finite: Floats, scale: Scale) -> tuple[float, float]:
    """Choose the limits of the axis."""
    if scale == "log":
        positive = np.log10(finite[finite > 0])
        high = float(positive.max())
        low = max(float(positive.min()), high - _DECADES)
    else:
        low, high = float(finite.min()), float(finite.max())
    room = 0.06 * (high - low) or 0.06 * abs(high) or 1.0
    return low - room, high + room
