"""The modes of a closed form over the steps: predicted lines, computed dots."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import plotly.graph_objects as go

from optlab.viz.backends.matplotlib.parts import (
    PIXEL,
    annotate,
    as_png,
    blank_figure,
    font,
    halo,
    panel_axes,
    write_page,
)
from optlab.viz.backends.matplotlib.parts import add_heading as add_static_heading
from optlab.viz.backends.plotly.parts import (
    add_heading,
    as_float32,
    dash_text,
    empty_figure,
    label_font,
    put_axes,
)
from optlab.viz.style import layout, theme
from optlab.viz.style.geometry import Floats, spread
from optlab.viz.style.layout import Page
from optlab.viz.style.text import format_number

WIDTH, HEIGHT = 760, 400
_HEADING = "Distance along each axis"
_NOTE = "log scale, over the steps; line: the formula, dots: the optimizer"
_LOWEST = 1e-14
_MOST_DOTS = 60


@dataclass(frozen=True)
class _Mode:
    """One eigenvector: decimal logarithms of the distance, predicted and computed."""

    color: str
    style: theme.Style
    label: str
    predicted: Floats
    steps: Floats
    computed: Floats


@dataclass(frozen=True)
class _View:
    page: Page
    title: str
    headline: str
    modes: list[_Mode]
    low: float
    high: float
    last: int


@layout.documented
def modes(result: Any, *, width: int = WIDTH, height: int = HEIGHT) -> go.Figure:
    """Draw what gradient descent or momentum does along each eigenvector of a quadratic.

    Parameters
    ----------
    result : ClosedForm
        The result of `optlab.lab.closed_form`.

    Examples
    --------
    >>> import optlab as ol
    >>> predicted = ol.lab.closed_form("valley", ol.optimizer.Momentum(0.02, 0.9))
    >>> modes(predicted).layout.title.text
    '<b>Momentum on Straight valley, curvature 36 : 1, by its eigenvectors</b>'
    """
    view = _view(result, width, height)
    figure = empty_figure(view.page, view.title, view.headline)
    figure.update_layout(showlegend=False)
    frame = {"showline": True, "linecolor": theme.FRAME}
    places, texts = _decades(view)
    put_axes(
        figure, view.page, 0,
        {**frame, "range": [0, view.last], "showgrid": False, "nticks": 8},
        {**frame, "range": [view.low, view.high], "tickvals": places, "ticktext": texts},
    )  # fmt: skip
    add_heading(figure, view.page, 0, _HEADING, _NOTE)
    for mode, place in zip(view.modes, _label_places(view), strict=True):
        figure.add_scatter(
            x=np.arange(len(mode.predicted)), y=as_float32(mode.predicted), mode="lines",
            name=mode.label, hovertemplate="step %{x}<extra>" + mode.label + "</extra>",
            line={"color": mode.color, "width": theme.LINE_WIDTH, "dash": dash_text(mode.style)},
        )  # fmt: skip
        figure.add_scatter(
            x=as_float32(mode.steps), y=as_float32(mode.computed), mode="markers",
            hoverinfo="skip", marker={"color": mode.color, "size": 5},
        )  # fmt: skip
        figure.add_annotation(
            x=view.last, y=place, text=mode.label, xanchor="left", showarrow=False,
            align="left", font=label_font(mode.color),
        )  # fmt: skip
    return figure


@layout.documented
def modes_png(
    result: Any, *, width: int = WIDTH, height: int = HEIGHT, scale: float = 1.0
) -> bytes:
    r"""Draw the modes of a closed form as a PNG image.

    Parameters
    ----------
    result : ClosedForm
        As for `modes`.

    Examples
    --------
    >>> import optlab as ol
    >>> modes_png(ol.lab.closed_form("booth", ol.optimizer.SGD(0.05)))[:4]
    b'\x89PNG'
    """
    view = _view(result, width, height)
    figure = blank_figure(view.page.width, view.page.height)
    write_page(figure, view.page, view.title, view.headline, {})
    axes = panel_axes(figure, view.page, 0)
    axes.set(xlim=(0, view.last), ylim=(view.low, view.high))
    axes.set_yticks(*_decades(view))
    axes.grid(axis="y", color=theme.RULE, linewidth=PIXEL)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for label in (*axes.get_xticklabels(), *axes.get_yticklabels()):
        label.set(fontproperties=font(theme.FONT_SMALL), color=theme.QUIET)
    add_static_heading(axes, _HEADING, _NOTE)
    for mode, place in zip(view.modes, _label_places(view), strict=True):
        dash = (0, tuple(x / theme.LINE_WIDTH for x in mode.style.dash)) if mode.style.dash else "-"
        axes.plot(
            mode.predicted, color=mode.color, linewidth=theme.LINE_WIDTH * PIXEL, linestyle=dash
        )
        axes.plot(
            mode.steps, mode.computed, linestyle="none", marker="o", markersize=5 * PIXEL,
            color=mode.color,
        )  # fmt: skip
        annotate(
            axes, mode.label, (view.last, place), (6, 0), ha="left", color=mode.color,
            path_effects=halo(), annotation_clip=False,
        )  # fmt: skip
    return as_png(figure, scale)


def _view(result: Any, width: int, height: int) -> _View:
    name = type(result.optimizer).__name__
    path = result.computed()
    distances = np.abs((path - result.minimum) @ result.axes)
    count = len(result.curvatures)
    styles = [*theme.assign_styles({str(i): "" for i in range(count)}).values()]
    dots = np.unique(np.linspace(0, len(path) - 1, min(_MOST_DOTS, len(path))).round().astype(int))
    found = []
    for i, (curve, factor, kind) in enumerate(
        zip(result.curvatures, result.convergence, result.kinds, strict=True)
    ):
        label = f"curvature {format_number(float(curve))}: × {format_number(float(factor))}, {kind}"
        found.append(
            _Mode(
                theme.area_colors()[i], styles[i], label, _log(np.abs(result.modes[:, i])),
                dots.astype(float), _log(distances[dots, i]),
            )
        )  # fmt: skip
    shown = np.concatenate([mode.predicted for mode in found])
    low, high = float(shown.min()), float(shown.max())
    room = 0.06 * (high - low) or 1.0
    limit = format_number(result.stability_limit)
    rate = format_number(float(result.optimizer.settings["learning_rate"]))
    said = f"Rate {rate}; above {limit} it diverges. "
    said += f"Formula and optimizer differ by at most {format_number(result.difference, 2)}."
    longest = max(layout.text_width(mode.label, theme.FONT_TEXT) for mode in found)
    return _View(
        layout.page(
            width, height, names=[], note="", shares=[1], rooms=[longest + 6], headed=True
        ),
        f"{name} on {result.problem.title}, by its eigenvectors",
        said, found, low - room, high + room, len(result.modes) - 1,
    )  # fmt: skip


def _log(distance: Floats) -> Floats:
    with np.errstate(all="ignore"):
        found: Floats = np.log10(np.clip(distance, _LOWEST, 1e300))
    return np.nan_to_num(found, nan=300.0)


def _decades(view: _View) -> tuple[list[float], list[str]]:
    apart = max(1, math.ceil((view.high - view.low) / 7))
    places = range(math.ceil(view.low), math.floor(view.high) + 1, apart)
    return [float(e) for e in places], [f"1e{e}" for e in places]


def _label_places(view: _View) -> list[float]:
    """Return the heights of the labels at the ends of the lines, kept apart."""
    ends = [float(mode.predicted[-1]) for mode in view.modes]
    per_pixel = (view.high - view.low) / view.page.panels[0].height
    order = np.argsort(ends)
    placed = spread([ends[i] for i in order], 18 * per_pixel, view.low, view.high)
    found = [0.0] * len(ends)
    for i, place in zip(order, placed, strict=True):
        found[i] = place
    return found
