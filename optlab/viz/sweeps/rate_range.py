"""A learning-rate range test as a figure and as its static image."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import plotly.graph_objects as go

from optlab.lab.lr_range import RateRange
from optlab.viz.backends.matplotlib.draw import draw_png
from optlab.viz.backends.plotly.draw import draw
from optlab.viz.backends.scene import Axis, Line, Mark, Marker, Panel, Pen, Points, Scene, decades
from optlab.viz.style import layout, theme
from optlab.viz.style.geometry import Box, Floats, clip_line
from optlab.viz.style.results import are_runs, one_trace
from optlab.viz.style.text import format_number

WIDTH, HEIGHT = 700, 400
_SMOOTHING = 0.9  # of the losses of runs, as of lr_range_test


@layout.documented
def rate_range(result: Any, *, width: int = WIDTH, height: int = HEIGHT) -> go.Figure:
    """Draw a learning-rate range test: the loss over the rate, and the suggested rate.

    Parameters
    ----------
    result : RateRange, Trace or Comparison
        The result of `optlab.lab.lr_range_test`; or a recorded run whose rate grows at every step.

    Examples
    --------
    >>> import optlab as ol
    >>> found = ol.lab.lr_range_test("rosenbrock", ol.optimizer.SGD(0.1))
    >>> rate_range(found).layout.title.text
    '<b>Rate range of SGD on Rosenbrock valley</b>'
    """
    return draw(_scene(result, width, height))


@layout.documented
def rate_range_png(
    result: Any, *, width: int = WIDTH, height: int = HEIGHT, scale: float = 1.0
) -> bytes:
    r"""Draw a learning-rate range test as a PNG image.

    Parameters
    ----------
    result : RateRange
        As for `rate_range`.

    Examples
    --------
    >>> import optlab as ol
    >>> rate_range_png(ol.lab.lr_range_test("rosenbrock", ol.optimizer.SGD(0.1)))[:4]
    b'\x89PNG'
    """
    return draw_png(_scene(result, width, height), scale)


def _range_of(given: Any) -> Any:
    """Return the range test of a run whose rate grows.

    Raises
    ------
    TypeError, ValueError
        If something else was given, or the rate does not grow.
    """
    if not are_runs(given):
        if not hasattr(given, "suggestion"):
            raise TypeError(
                "rate_range takes what ol.lab.lr_range_test(problem, optimizer) gave, or a trace "
                f"of a run whose rate grows at every step; got {type(given).__name__}."
            )
        return given
    trace = one_trace(given, "rate_range", _grows)
    if not _grows(trace):
        raise ValueError(
            "rate_range draws a run whose rate grows at every step, and that of the trace "
            f"{trace.name!r} does not. Give ol.lab.lr_range_test(problem, optimizer), or record a "
            "run with a schedule such as ol.optimizer.lr.LambdaDecay(1e-5, lambda n: 1.1**n)."
        )
    seen = np.isfinite(trace.loss)
    if seen.sum() < 2:
        raise ValueError(
            f"the trace {trace.name!r} has no losses, which rate_range draws: backward() has to "
            "run inside ol.record(optimizer)."
        )
    rates, loss = trace.learning_rate[seen], trace.loss[seen]
    smoothing = 0.0 if getattr(trace.problem, "kind", "") == "surface" else _SMOOTHING
    kept = smoothing ** np.arange(len(loss))
    means = np.convolve(loss, (1 - smoothing) * kept)[: len(loss)] / (1 - smoothing * kept)
    problem: Any = trace.problem or SimpleNamespace(title=f"the run {trace.name}")
    optimizer: Any = type(str(trace.settings.get("class", trace.name)), (), {})()
    steps = len(loss) + (trace.stopped is not None)
    return RateRange(problem, optimizer, rates, loss, means, steps, smoothing, rates)


def _grows(trace: Any) -> bool:
    return len(trace) > 1 and bool((np.diff(trace.learning_rate) > 0).all())


def _scene(result: Any, width: int, height: int) -> Scene:
    result = _range_of(result)
    # Losses of networks are of one size; those of surfaces span decades.
    positive = bool((result.loss > 0).all() and (result.smoothed > 0).all())
    linear = not positive or result.loss.max() / result.loss.min() < 50
    rate, rates = np.log10(result.rates), np.log10(result.all_rates)
    loss, smoothed = (each if linear else np.log10(each) for each in (result.loss, result.smoothed))
    # What comes after the lowest loss may be higher than all before: it leaves the picture.
    fall = np.concatenate([part[: int(np.argmin(smoothed)) + 1] for part in (loss, smoothed)])
    low, high = float(np.minimum(loss, smoothed).min()), float(fall.max())
    ends = None if result.ends is None else _ends(result.ends, linear, low, high)
    if ends is not None:
        low = min(low, float(np.nanmin(ends)))
        ends[ends > high + 0.3 * (high - low)] = np.nan
    room = 0.1 * (high - low) or 1.0
    low, high = low - 1.8 * room, high + 2.2 * room
    margin = 0.02 * (rates[-1] - rates[0])
    tips = [
        f"rate {format_number(10**x, 3)}<br>loss {format_number(y, 3)}"
        for x, y in zip(rate.tolist(), result.loss.tolist(), strict=True)
    ]
    if ends is not None:
        curves = [(rate, loss, 0.35), (rates, ends, 1.0)]
    elif np.array_equal(loss, smoothed):  # without a mean there is one curve
        curves = [(rate, loss, 1.0)]
    else:
        curves = [(rate, loss, 0.35), (rate, smoothed, 1.0)]
    box = Box(float(rates[0]), float(rates[-1]), low, high)
    marks: list[Mark] = [
        Line(*clip_line(x, y, box), Pen(theme.colors()[0], opacity=opacity))
        for x, y, opacity in curves
    ]
    seen = np.isfinite(loss)
    shown = [tip for tip, there in zip(tips, seen, strict=True) if there]
    marks.append(Points(rate[seen], np.clip(loss[seen], low, high), None, "%{text}", tips=shown))
    marks += _marked(result, *((rate, smoothed) if ends is None else (rates, ends)))
    page = layout.page(width, height, names=[], note="", shares=[1], rooms=[10], headed=True)
    losses = None if linear else [*zip(*decades(low, high), strict=True)]
    places = [*zip(*decades(float(rates[0]), float(rates[-1])), strict=True)]
    return Scene(
        page,
        f"Rate range of {type(result.optimizer).__name__} on {result.problem.title}",
        _headline(result),
        [
            Panel(
                Axis(float(rates[0] - margin), float(rates[-1] + margin), ticks=places),
                Axis(low, high, ticks=losses, grid=True),
                marks, "Loss", _note(result),
            )
        ],
    )  # fmt: skip


def _ends(ends: Floats, linear: bool, low: float, high: float) -> Floats:
    """Return the last losses of rates alone; what is far below the run is cut off.

    Near the minimum losses are roundings.
    """
    with np.errstate(all="ignore"):
        found = ends if linear else np.log10(np.maximum(ends, 0))
    cut: Floats = np.where(np.isfinite(ends), np.maximum(found, low - 0.5 * (high - low)), np.nan)
    return cut


def _marked(result: Any, x: Floats, y: Floats) -> list[Mark]:
    """Return the rates that are marked, with their labels above or below."""
    ring = Marker("circle", 10, theme.PAPER, theme.INK, 2)
    alone = result.ends is not None
    lowest = "still lower at" if alone else "lowest at"
    marks: list[Mark] = []
    for value, words, first in (
        (result.suggestion, f"suggestion {format_number(result.suggestion, 2)}", True),
        (result.highest, f"{lowest} {format_number(result.highest, 2)}", False),
    ):
        place = float(np.log10(value))
        part = (place - x[0]) / (x[-1] - x[0])
        side = "right" if first and part < 0.7 else "left" if first or part > 0.88 else "center"
        above = first
        if alone:  # the two are near each other, below a steep rise
            above, side = not first, "right" if not first and part < 0.7 else "left"
        marks.append(
            Points(
                [place], [float(np.interp(place, x, y))], ring, clip=False, text=words,
                side=f"{'top' if above else 'bottom'} {side}", ink=theme.INK,
            )
        )  # fmt: skip
    return marks


def _note(result: Any) -> str:
    if result.ends is not None:
        return "after 50 steps at each rate alone; pale: one run, whose rate grows with every step"
    means = "; pale: each loss, dark: their mean" if result.smoothing else ""
    return f"against the rate, which grows with every step{means}"


def _headline(result: Any) -> str:
    alone = result.ends is not None
    said = f"The loss is lowest at a rate of {format_number(result.highest, 2)}"
    if alone:
        said = f"Alone, rates up to {format_number(result.highest, 2)} lower the loss"
    said += ", the last." if result.highest == result.all_rates[-1] else "."
    if result.diverged_at is not None and not alone:
        said = f"{said[:-1]}, and has diverged at {format_number(result.diverged_at, 2)}."
    return said
