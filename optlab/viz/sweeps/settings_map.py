"""Final losses over the settings of a sweep, as a figure and as its static image."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import plotly.graph_objects as go
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.patches import Rectangle
from matplotlib.ticker import MaxNLocator

from optlab.viz.backends.matplotlib.parts import (
    PIXEL,
    annotate,
    as_png,
    blank_figure,
    font,
    halo,
    marker_pen,
    panel_axes,
    write_page,
)
from optlab.viz.backends.matplotlib.parts import add_heading as add_static_heading
from optlab.viz.backends.plotly.parts import (
    add_heading,
    as_float32,
    axis_names,
    empty_figure,
    label_font,
    put_axes,
)
from optlab.viz.style import layout, theme
from optlab.viz.style.text import format_number
from optlab.viz.sweeps.settings_view import Axis, SettingsView, settings_view

_END = "#b84a00"
"""The color of an end of what was tried."""
_COLORS = 32
_LEAST_TICKS = 4
_STAR = 16.0
WIDTH, HEIGHT = 760, 460


@layout.documented
def heatmap(
    sweep: Any, *, x: str | None = None, y: str | None = None, width: int = WIDTH,
    height: int = HEIGHT,
) -> go.Figure:  # fmt: skip
    """Draw the final losses of a sweep over its settings: a curve for one, a map for two or more.

    Parameters
    ----------
    sweep : Sweep or NetworkSweep
        The result of `optlab.sweep`.
    x, y : str, optional
        The settings along the axes; by default those with the most values. Further settings are at
        their best values.

    Raises
    ------
    ValueError
        If x or y is no setting with several values.

    Examples
    --------
    >>> import optlab as ol
    >>> settings = {"learning_rate": [0.01, 0.1, 0.5], "beta1": [0.0, 0.5, 0.9]}
    >>> figure = heatmap(ol.sweep("booth", ol.optimizer.Adam, settings, steps=50))
    >>> figure.layout.title.text
    '<b>Adam on Booth</b>'
    """
    view = settings_view(sweep, x, y, width, height)
    figure = empty_figure(view.page, view.title, view.headline)
    figure.update_layout(showlegend=False)
    (_draw_curve if view.y is None else _draw_map)(figure, view)
    return figure


@layout.documented
def heatmap_png(
    sweep: Any, *, x: str | None = None, y: str | None = None, width: int = WIDTH,
    height: int = HEIGHT, scale: float = 1.0,
) -> bytes:  # fmt: skip
    r"""Draw the final losses of a sweep as a PNG image.

    Parameters
    ----------
    sweep, x, y
        As for `heatmap`.

    Examples
    --------
    >>> import optlab as ol
    >>> heatmap_png(ol.sweep("booth", ol.optimizer.SGD, {"learning_rate": [0.01, 0.1]}))[:4]
    b'\x89PNG'
    """
    view = settings_view(sweep, x, y, width, height)
    figure = blank_figure(view.page.width, view.page.height)
    write_page(figure, view.page, view.title, view.headline, {})
    if view.y is None:
        _curve_image(panel_axes(figure, view.page, 0), view)
    else:
        _map_image(panel_axes(figure, view.page, 0), view)
        _scale_image(panel_axes(figure, view.page, 1), view)
    return as_png(figure, scale)


def _ticks(axis: Axis) -> dict[str, Any]:
    texts = [axis.labels[i] for i in axis.ticks]
    return {"tickvals": [float(axis.place[i]) for i in axis.ticks], "ticktext": texts}


def decades(low: float, high: float) -> tuple[list[float], list[str]]:
    """Return heights that get a number, and their losses as text: four or more, round ones.

    Examples
    --------
    >>> decades(-1.2, 1.4)[1], decades(-12, 3)[1]
    (['0.1', '0.3', '1', '3', '10'], ['1e-12', '1e-9', '1e-6', '1e-3', '1e0', '1e3'])
    """
    first, last = math.ceil(low - 1e-9), math.floor(high + 1e-9)
    if last - first >= 3:
        places = [float(e) for e in range(first, last + 1, max(1, math.ceil((last - first) / 6)))]
        return places, [f"1e{place:.0f}" for place in places]
    values: list[float] = []
    for digits in ((1, 3), (1, 2, 5), (1, 1.5, 2, 3, 5, 7)):
        values = [d * 10.0**e for e in range(first - 1, last + 1) for d in digits]
        values = [x for x in values if low - 1e-9 <= math.log10(x) <= high + 1e-9]
        if len(values) >= _LEAST_TICKS:
            break
    else:
        evenly = MaxNLocator(nbins=7, steps=[1, 2, 2.5, 5, 10], min_n_ticks=_LEAST_TICKS)
        inside = [float(x) for x in evenly.tick_values(10**low, 10**high)]
        values = [x for x in inside if x > 0 and low - 1e-9 <= math.log10(x) <= high + 1e-9]
    return [math.log10(x) for x in values], [format_number(x, 4) for x in values]


def _range(axis: Axis) -> tuple[float, float]:
    low, high = float(axis.place.min()), float(axis.place.max())
    margin = 0.04 * (high - low) or 0.5
    return low - margin, high + margin


# plotly -----------------------------------------------------------------------------------------


def _draw_map(figure: go.Figure, view: SettingsView) -> None:
    assert view.y is not None
    columns, rows = len(view.x.labels), len(view.y.labels)
    frame = {"showgrid": False, "linecolor": theme.FRAME, "mirror": True, "showline": True}
    put_axes(
        figure, view.page, 0,
        {**frame, "range": [-0.5, columns - 0.5], **_ticks(view.x)},
        {**frame, "range": [-0.5, rows - 0.5], **_ticks(view.y)},
    )  # fmt: skip
    add_heading(figure, view.page, 0, f"Final {view.loss_name}", _along(view))
    colors = theme.map_colors(9)
    scale = [[i / (len(colors) - 1), color] for i, color in enumerate(colors)]
    if view.diverged.any():
        figure.add_heatmap(
            z=np.where(view.diverged, 0.0, np.nan), showscale=False, hoverinfo="skip",
            colorscale=[[0, theme.RULE], [1, theme.RULE]],
        )  # fmt: skip
        at = np.argwhere(view.diverged)
        if len(at) <= 2500:
            figure.add_scatter(
                x=at[:, 1], y=at[:, 0], mode="markers", hoverinfo="skip",
                marker={"symbol": "x-thin", "size": 7, "line": {"color": theme.FRAME, "width": 1}},
            )  # fmt: skip
    figure.add_heatmap(
        z=as_float32(view.height), zmin=view.low, zmax=view.high, colorscale=scale,
        showscale=False, hoverinfo="skip",
    )  # fmt: skip
    figure.add_heatmap(  # invisible: the texts under the mouse, of diverged cells too
        z=np.zeros(view.height.shape, np.int8), opacity=0, showscale=False,
        text=_tips(view), hovertemplate="%{text}<extra></extra>",
    )  # fmt: skip
    for axis, side in view.ends:
        first, last = (-0.5, (columns if axis == "x" else rows) - 0.5)
        edge = first if side == "lowest" else last
        across = {"x0": edge, "x1": edge, "y0": 0, "y1": 1, "yref": "paper"}
        up = {"y0": edge, "y1": edge, "x0": -0.5, "x1": columns - 0.5}
        figure.add_shape(
            type="line", line={"color": _END, "width": 5}, **(across if axis == "x" else up)
        )
    if view.best is not None:
        figure.add_scatter(
            x=[view.best[1]], y=[view.best[0]], mode="markers", cliponaxis=False, hoverinfo="skip",
            marker=_star(),
        )  # fmt: skip
    places, texts = decades(view.low, view.high)
    put_axes(
        figure, view.page, 1,
        {"range": [0, 1], "visible": False, "fixedrange": True},
        {
            "range": [view.low, view.high], "side": "right", "showgrid": False, "fixedrange": True,
            "tickvals": places, "ticktext": texts,
        },
    )  # fmt: skip
    x_name, y_name = axis_names(1)
    steps = np.linspace(view.low, view.high, _COLORS)
    figure.add_heatmap(
        x=[0.5], y=steps, z=steps[:, None], zmin=view.low, zmax=view.high, colorscale=scale,
        showscale=False, hoverinfo="skip", xaxis=x_name, yaxis=y_name,
    )  # fmt: skip


def _tips(view: SettingsView) -> Any:
    assert view.y is not None
    found = np.empty(view.height.shape, dtype=object)
    for row, column in np.ndindex(view.height.shape):
        where = f"{view.x.name} {view.x.labels[column]}, {view.y.name} {view.y.labels[row]}"
        found[row, column] = f"{where}<br>{_said(view, (row, column))}"
    return found


def _said(view: SettingsView, place: tuple[int, ...]) -> str:
    if view.diverged[place]:
        return "diverged"
    if view.missing[place]:
        return "has not run"
    return f"{view.loss_name} {10 ** view.height[place]:.3g}"


def _along(view: SettingsView) -> str:
    assert view.y is not None
    return f"{view.y.name} (up) against {view.x.name} (right), log colors; the star is the best"


def _draw_curve(figure: go.Figure, view: SettingsView) -> None:
    low, high = _curve_range(view)
    places, texts = decades(low, high)
    frame = {"showline": True, "linecolor": theme.FRAME}
    put_axes(
        figure, view.page, 0,
        {**frame, "range": list(_range(view.x)), "showgrid": False, **_ticks(view.x)},
        {**frame, "range": [low, high], "tickvals": places, "ticktext": texts},
    )  # fmt: skip
    add_heading(figure, view.page, 0, f"Final {view.loss_name}", _curve_note(view))
    few = len(view.height) <= 60
    figure.add_scatter(
        x=as_float32(view.x.place), y=as_float32(view.height),
        mode="lines+markers" if few else "lines", connectgaps=False,
        line={"color": theme.area_colors()[0], "width": theme.LINE_WIDTH}, marker={"size": 6},
        text=[f"{view.x.name} {t}<br>{_said(view, (i,))}" for i, t in enumerate(view.x.labels)],
        hovertemplate="%{text}<extra></extra>",
    )  # fmt: skip
    lost = np.flatnonzero(view.diverged)
    if len(lost):
        figure.add_scatter(
            x=as_float32(view.x.place[lost]), y=np.full(len(lost), high), mode="markers",
            cliponaxis=False, text=[f"{view.x.name} {view.x.labels[i]}<br>diverged" for i in lost],
            hovertemplate="%{text}<extra></extra>",
            marker={"symbol": "x-thin", "size": 7, "line": {"color": theme.QUIET, "width": 1.4}},
        )  # fmt: skip
    for _, side in view.ends:
        edge = float(view.x.place[0 if (side == "lowest") == _rises(view.x) else -1])
        figure.add_vline(edge, line={"color": _END, "width": 3}, layer="below")
    if view.best is not None:
        i = view.best[0]
        figure.add_scatter(
            x=[view.x.place[i]], y=[view.height[i]], mode="markers+text", cliponaxis=False,
            text=[f"best: {view.x.labels[i]}"], textposition=_label_side(view), hoverinfo="skip",
            textfont=label_font(theme.INK),
            marker=_star(),
        )  # fmt: skip


def _star() -> dict[str, Any]:
    line = {"color": theme.INK, "width": 1.5}
    return {"symbol": "star", "size": _STAR, "color": theme.PAPER, "line": line}


def _rises(axis: Axis) -> bool:
    return bool(axis.place[0] <= axis.place[-1])


def _curve_range(view: SettingsView) -> tuple[float, float]:
    margin = 0.08 * (view.high - view.low)
    return view.low - margin, view.high + margin


def _curve_note(view: SettingsView) -> str:
    scale = "both axes" if view.x.log else "losses on a"
    return f"against {view.x.name}; {scale} log scale"


def _label_side(view: SettingsView) -> str:
    assert view.best is not None
    low, high = _range(view.x)
    at = (view.x.place[view.best[0]] - low) / (high - low)
    return "top left" if at > 0.85 else "top right" if at < 0.15 else "top center"


# matplotlib -------------------------------------------------------------------------------------


def _map_image(axes: Axes, view: SettingsView) -> None:
    assert view.y is not None
    columns, rows = len(view.x.labels), len(view.y.labels)
    axes.set(xlim=(-0.5, columns - 0.5), ylim=(-0.5, rows - 0.5))
    axes.grid(False)  # which `use_style` draws
    axes.imshow(
        view.height, cmap=ListedColormap(theme.map_colors(_COLORS)), vmin=view.low, vmax=view.high,
        origin="lower", aspect="auto", interpolation="nearest",
    )  # fmt: skip
    for row, column in np.argwhere(view.diverged):
        axes.add_patch(
            Rectangle(
                (column - 0.5, row - 0.5), 1, 1, facecolor=theme.RULE, edgecolor=theme.FRAME,
                hatch="xxx" if view.diverged.size <= 2500 else None, linewidth=0,
            )
        )  # fmt: skip
    for axis, set_ticks in ((view.x, axes.set_xticks), (view.y, axes.set_yticks)):
        set_ticks([float(axis.place[i]) for i in axis.ticks], [axis.labels[i] for i in axis.ticks])
    tick_fonts(axes)
    add_static_heading(axes, f"Final {view.loss_name}", _along(view))
    for letter, side in view.ends:
        edge = -0.5 if side == "lowest" else (columns if letter == "x" else rows) - 0.5
        draw = axes.axvline if letter == "x" else axes.axhline
        draw(edge, color=_END, linewidth=5 * PIXEL, clip_on=False, zorder=4)
    if view.best is not None:
        pen = marker_pen("star", _STAR, theme.PAPER, theme.INK, 1.5)
        axes.plot([view.best[1]], [view.best[0]], clip_on=False, zorder=5, **pen)


def _scale_image(axes: Axes, view: SettingsView) -> None:
    steps = np.linspace(view.low, view.high, _COLORS)
    axes.imshow(
        steps[:, None], cmap=ListedColormap(theme.map_colors(_COLORS)), origin="lower",
        aspect="auto", extent=(0, 1, view.low, view.high),
    )  # fmt: skip
    places, texts = decades(view.low, view.high)
    axes.grid(False)
    axes.yaxis.tick_right()
    axes.set_xticks([])
    axes.set_yticks(places, texts)
    axes.tick_params(which="both", length=0)
    axes.set_ylim(view.low, view.high)
    tick_fonts(axes)


def _curve_image(axes: Axes, view: SettingsView) -> None:
    low, high = _curve_range(view)
    places, texts = decades(low, high)
    axes.set(xlim=_range(view.x), ylim=(low, high))
    axes.set_yticks(places, texts)
    axes.set_xticks(
        [float(view.x.place[i]) for i in view.x.ticks], [view.x.labels[i] for i in view.x.ticks]
    )
    axes.grid(axis="y", color=theme.RULE, linewidth=PIXEL)
    axes.set_axisbelow(True)
    tick_fonts(axes)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    add_static_heading(axes, f"Final {view.loss_name}", _curve_note(view))
    few = len(view.height) <= 60
    axes.plot(
        view.x.place, view.height, color=theme.area_colors()[0], linewidth=theme.LINE_WIDTH * PIXEL,
        marker="o" if few else None, markersize=6 * PIXEL,
    )  # fmt: skip
    lost = np.flatnonzero(view.diverged)
    axes.plot(
        view.x.place[lost], np.full(len(lost), high), linestyle="none", marker="x",
        markersize=6 * PIXEL, color=theme.QUIET, clip_on=False, markeredgewidth=1.4 * PIXEL,
    )  # fmt: skip
    for _, side in view.ends:
        edge = float(view.x.place[0 if (side == "lowest") == _rises(view.x) else -1])
        axes.axvline(edge, color=_END, linewidth=3 * PIXEL, zorder=1)
    if view.best is not None:
        i = view.best[0]
        pen = marker_pen("star", _STAR, theme.PAPER, theme.INK, 1.5)
        axes.plot([view.x.place[i]], [view.height[i]], clip_on=False, zorder=5, **pen)
        side = {"left": "right", "right": "left"}.get(_label_side(view).split()[1], "center")
        annotate(
            axes, f"best: {view.x.labels[i]}", (view.x.place[i], view.height[i]),
            (0, 18), ha=side, path_effects=halo(), zorder=6,
        )  # fmt: skip


def tick_fonts(axes: Axes) -> None:
    """Set the font of all tick labels."""
    for label in (*axes.get_xticklabels(), *axes.get_yticklabels()):
        label.set(fontproperties=font(theme.FONT_SMALL), color=theme.QUIET)
