"""A learning-rate range test as a figure and as its static image."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from optlab.viz.backends.matplotlib.parts import (
    PIXEL,
    annotate,
    as_png,
    blank_figure,
    halo,
    panel_axes,
    write_page,
)
from optlab.viz.backends.matplotlib.parts import add_heading as add_static_heading
from optlab.viz.backends.plotly.parts import (
    add_heading,
    as_float32,
    empty_figure,
    label_font,
    put_axes,
)
from optlab.viz.style import layout, theme
from optlab.viz.style.geometry import Floats
from optlab.viz.style.layout import Page
from optlab.viz.style.text import format_number
from optlab.viz.sweeps.settings_map import decades, tick_fonts

WIDTH, HEIGHT = 700, 400


@dataclass(frozen=True)
class _Mark:
    """A rate that is marked, with its label above or below, to the right, left or centered."""

    x: float
    y: float
    text: str
    above: bool
    side: str


@dataclass(frozen=True)
class _View:
    """What both backends draw: decimal logarithms of rates and losses."""

    page: Page
    title: str
    headline: str
    rates: Floats
    rate: Floats
    loss: Floats
    smoothed: Floats
    ends: Floats | None
    marks: list[_Mark]
    low: float
    high: float
    linear: bool


@layout.documented
def rate_range(result: Any, *, width: int = WIDTH, height: int = HEIGHT) -> go.Figure:
    """Draw a learning-rate range test: the loss over the rate, and the suggested rate.

    Parameters
    ----------
    result : RateRange
        The result of `optlab.lab.lr_range_test`.

    Examples
    --------
    >>> import optlab as ol
    >>> found = ol.lab.lr_range_test("rosenbrock", ol.optimizer.SGD(0.1))
    >>> rate_range(found).layout.title.text
    '<b>Rate range of SGD on Rosenbrock valley</b>'
    """
    view = _view(result, width, height)
    figure = empty_figure(view.page, view.title, view.headline)
    figure.update_layout(showlegend=False)
    x_low, x_high = float(view.rates[0]), float(view.rates[-1])
    x_places, x_texts = decades(x_low, x_high)
    frame = {"showline": True, "linecolor": theme.FRAME}
    put_axes(
        figure, view.page, 0,
        {**frame, "range": _padded(x_low, x_high, 0.02), "showgrid": False,
         "tickvals": x_places, "ticktext": x_texts},
        {**frame, "range": [view.low, view.high], **_loss_ticks(view)},
    )  # fmt: skip
    add_heading(figure, view.page, 0, "Loss", _note(result))
    text = [
        f"rate {format_number(10**rate, 3)}<br>loss {format_number(loss, 3)}"
        for rate, loss in zip(view.rate.tolist(), result.loss.tolist(), strict=True)
    ]
    for rates, values, opacity in _lines(view):
        figure.add_scatter(
            x=as_float32(rates), y=as_float32(values), mode="lines",
            text=text if rates is view.rate else None, opacity=opacity,
            hovertemplate="%{text}<extra></extra>" if rates is view.rate else None,
            line={"color": theme.colors()[0], "width": theme.LINE_WIDTH},
        )  # fmt: skip
    for mark in view.marks:
        place = f"{'top' if mark.above else 'bottom'} {mark.side}"
        figure.add_scatter(
            x=[mark.x], y=[mark.y], mode="markers+text", text=[mark.text], textposition=place,
            cliponaxis=False, hoverinfo="skip", textfont=label_font(theme.INK),
            marker={"size": 10, "color": theme.PAPER, "line": {"color": theme.INK, "width": 2}},
        )  # fmt: skip
    return figure


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
    view = _view(result, width, height)
    figure = blank_figure(view.page.width, view.page.height)
    write_page(figure, view.page, view.title, view.headline, {})
    axes = panel_axes(figure, view.page, 0)
    axes.set_xticks(*decades(float(view.rates[0]), float(view.rates[-1])))
    ticks = _loss_ticks(view)
    if ticks:
        axes.set_yticks(ticks["tickvals"], ticks["ticktext"])
    axes.set(xlim=_padded(view.rates[0], view.rates[-1], 0.02), ylim=(view.low, view.high))
    axes.grid(axis="y", color=theme.RULE, linewidth=PIXEL)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    tick_fonts(axes)
    add_static_heading(axes, "Loss", _note(result))
    for rates, values, opacity in _lines(view):
        axes.plot(
            rates,
            values,
            color=theme.colors()[0],
            alpha=opacity,
            linewidth=theme.LINE_WIDTH * PIXEL,
        )
    for mark in view.marks:
        axes.plot(
            [mark.x], [mark.y], marker="o", markersize=10 * PIXEL, color=theme.PAPER, clip_on=False,
            markeredgecolor=theme.INK, markeredgewidth=2 * PIXEL, zorder=5,
        )  # fmt: skip
        ha = {"left": "right", "right": "left"}.get(mark.side, "center")
        shift = (0, 17 if mark.above else -17)
        annotate(axes, mark.text, (mark.x, mark.y), shift, ha=ha, path_effects=halo(), zorder=6)
    return as_png(figure, scale)


def _view(result: Any, width: int, height: int) -> _View:
    name = type(result.optimizer).__name__
    # Losses of networks are of one size; those of surfaces span decades.
    positive = bool((result.loss > 0).all() and (result.smoothed > 0).all())
    linear = not positive or result.loss.max() / result.loss.min() < 50
    rate = np.log10(result.rates)
    loss, smoothed = (each if linear else np.log10(each) for each in (result.loss, result.smoothed))
    # What comes after the lowest loss may be higher than all before: it leaves the picture.
    fall = np.concatenate([part[: int(np.argmin(smoothed)) + 1] for part in (loss, smoothed)])
    low, high = float(np.minimum(loss, smoothed).min()), float(fall.max())
    rates, ends = np.log10(result.all_rates), None
    if result.ends is not None:
        with np.errstate(all="ignore"):
            ends = result.ends if linear else np.log10(np.maximum(result.ends, 0))
        # Near the minimum losses are roundings: what is far below the run is cut off.
        floor = low - 0.5 * (high - low)
        ends = np.where(np.isfinite(result.ends), np.maximum(ends, floor), np.nan)
        low = min(low, float(np.nanmin(ends)))
        ends[ends > high + 0.3 * (high - low)] = np.nan
    room = 0.1 * (high - low) or 1.0
    width_of_rates = rates[-1] - rates[0]
    x_of_marks, y_of_marks = (rate, smoothed) if ends is None else (rates, ends)
    lowest = "lowest at" if ends is None else "still lower at"
    marks = []
    for value, words, above in (
        (result.suggestion, f"suggestion {format_number(result.suggestion, 2)}", True),
        (result.highest, f"{lowest} {format_number(result.highest, 2)}", False),
    ):
        x = float(np.log10(value))
        part = (x - rates[0]) / width_of_rates
        side = "right" if above and part < 0.7 else "left" if above or part > 0.88 else "center"
        if ends is not None:  # the two are near each other, below a steep rise
            above, side = not above, "right" if not above and part < 0.7 else "left"
        marks.append(_Mark(x, float(np.interp(x, x_of_marks, y_of_marks)), words, above, side))
    diverged = result.diverged_at
    said = f"The loss is lowest at a rate of {format_number(result.highest, 2)}"
    if ends is not None:
        said = f"Alone, rates up to {format_number(result.highest, 2)} lower the loss"
    said += ", the last." if result.highest == result.all_rates[-1] else "."
    if diverged is not None and ends is None:
        said = f"{said[:-1]}, and has diverged at {format_number(diverged, 2)}."
    return _View(
        layout.page(
            width, height, names=[], note="", shares=[1], rooms=[10], headed=True
        ),
        f"Rate range of {name} on {result.problem.title}",
        said, rates, rate, loss, smoothed, ends, marks, low - 1.8 * room, high + 2.2 * room, linear,
    )  # fmt: skip


def _lines(view: _View) -> list[tuple[Floats, Floats, float]]:
    """Return the curves with their rates and opacities; without a mean there is one."""
    if view.ends is not None:
        return [(view.rate, view.loss, 0.35), (view.rates, view.ends, 1.0)]
    if np.array_equal(view.loss, view.smoothed):
        return [(view.rate, view.loss, 1.0)]
    return [(view.rate, view.loss, 0.35), (view.rate, view.smoothed, 1.0)]


def _note(result: Any) -> str:
    if result.ends is not None:
        return "after 50 steps at each rate alone; pale: one run, whose rate grows with every step"
    means = "; pale: each loss, dark: their mean" if result.smoothing else ""
    return f"against the rate, which grows with every step{means}"


def _loss_ticks(view: _View) -> dict[str, Any]:
    if view.linear:
        return {}
    places, texts = decades(view.low, view.high)
    return {"tickvals": places, "ticktext": texts}


def _padded(low: float, high: float, part: float) -> list[float]:
    room = part * (high - low)
    return [float(low - room), float(high + room)]
