"""Scenes as static images.

A saved notebook shows them where no JavaScript runs: on a code host, in a PDF, in print. They use
no pyplot and set every font and color, so that a user's settings and open windows have no effect
and are not affected.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np
from matplotlib import rcParams
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LinearSegmentedColormap, ListedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyArrowPatch, PathPatch, Rectangle
from matplotlib.path import Path
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator

from optlab.backend.text import encodable
from optlab.viz.backends.matplotlib.image import (
    PIXEL,
    any_letters,
    as_png,
    blank_figure,
    font,
    halo,
    marker_pen,
)
from optlab.viz.backends.scene import (
    Area,
    Arrow,
    Axis,
    Band,
    Bars,
    Boxes,
    Contour,
    Fill,
    HeatMap,
    Line,
    Mark,
    Marker,
    Panel,
    Pen,
    Points,
    Region,
    Rule,
    Scene,
    Text,
    end_marker,
    pen_of,
)
from optlab.viz.style import layout, theme
from optlab.viz.style.layout import Page
from optlab.viz.style.text import format_number
from optlab.viz.style.theme import Style

_HATCHES = {"/": "////", "x": "xxx", ".": "...", "": None}
_SHADES = 32  # of a heat map of mixed colors
_AWAY = {"left": -1, "center": 0, "right": 1, "top": 1, "middle": 0, "bottom": -1}
_ACROSS = {-1: "right", 0: "center", 1: "left"}
_UP = {-1: "top", 0: "center", 1: "bottom"}


def draw_png(scene: Scene, scale: float = 1.0) -> bytes:
    """Return the static image of a scene as a PNG file."""
    return as_png(draw(scene), scale)


def draw(scene: Scene) -> Figure:
    """Return the figure of a scene."""
    page = scene.page
    figure = blank_figure(page.width, page.height)
    left = layout.LEFT
    _write(figure, page, left, layout.TITLE_LINE - 6, scene.title, theme.FONT_TITLE, weight="bold")
    quiet: dict[str, Any] = {"color": theme.QUIET}
    middle = layout.HEADLINE_LINE - 4
    _write(figure, page, left, middle, scene.headline, theme.FONT_TEXT, **quiet)
    for at, line in enumerate(page.note):
        _write(figure, page, left, page.note_line(at), line, theme.FONT_SMALL, **quiet)
    _draw_legend(figure, scene)
    for at, panel in enumerate(scene.panels):
        draw_panel(panel_axes(figure, page, at), panel)
    return figure


def _write(
    figure: Figure, page: Page, x: float, y: float, text: str, size: float, *,
    weight: str = "normal", color: str | None = None,
) -> Any:  # fmt: skip
    """Write at the middle of a line, in pixels from the upper left corner of the page."""
    return figure.text(
        x / page.width, 1 - y / page.height, encodable(text), color=color or theme.INK,
        fontproperties=font(size, weight, text=text), va="center_baseline", parse_math=False,
    )  # fmt: skip


def _draw_legend(figure: Figure, scene: Scene) -> None:
    page, next_x = scene.page, float(layout.LEFT)
    renderer = FigureCanvasAgg(figure).get_renderer()
    for at, (name, sample) in enumerate(scene.legend.values()):
        x, y = page.legend_place(at)
        if not page.entry_width:  # in one row; the layout overestimates the width of names
            x = next_x
        text = _write(figure, page, x + page.sample, y, name, theme.FONT_TEXT)
        with any_letters():
            next_x = x + page.sample + text.get_window_extent(renderer).width + layout.ENTRY_GAP
        if isinstance(sample, Fill):
            corner = (x / page.width, 1 - (y + 6.5) / page.height)
            size = (13 / page.width, 13 / page.height)
            figure.add_artist(
                Rectangle(corner, *size, transform=figure.transFigure, **_fill(sample))
            )
            continue
        look = _line(sample if isinstance(sample, Pen) else pen_of(sample))
        if isinstance(sample, Style):
            look |= {"markevery": [1], **_marker(end_marker(sample))}
        across = [(x + shift) / page.width for shift in (4, 26, 48)]
        down = [1 - y / page.height] * 3
        figure.add_artist(Line2D(across, down, transform=figure.transFigure, **look))


def panel_axes(figure: Figure, page: Page, at: int) -> Axes:
    """Add the empty axes of a panel."""
    panel = page.panels[at]
    left, low = panel.left / page.width, 1 - (panel.top + panel.height) / page.height
    axes = figure.add_axes((left, low, panel.width / page.width, panel.height / page.height))
    axes.set_facecolor("none")  # a text may reach over its neighbor
    axes.tick_params(which="both", length=0, pad=4, colors=theme.QUIET)
    axes.grid(False)  # which `use_style` draws
    for spine in axes.spines.values():
        spine.set(color=theme.FRAME, linewidth=PIXEL)
    return axes


def draw_panel(axes: Axes, panel: Panel) -> None:
    """Draw axes, headings and marks of a panel on empty axes."""
    axes.set_autoscale_on(False)
    axes.set_axisbelow(True)
    for at, mark in enumerate(panel.marks):
        _draw(mark, axes, 2 + 0.01 * at)
    for side, shown in (
        ("left", panel.frame in ("box", "open", "left") and panel.y.shown),
        ("bottom", panel.frame in ("box", "open", "below") and panel.x.shown),
        ("right", panel.frame == "box"),
        ("top", panel.frame == "box"),
    ):
        axes.spines[side].set_visible(shown)
    _set_axis(axes.xaxis, axes.set_xlim, axes.set_xscale, panel.x)
    _set_axis(axes.yaxis, axes.set_ylim, axes.set_yscale, panel.y)
    if panel.y.right:
        axes.yaxis.tick_right()
    if panel.x.zero:
        axes.axvline(0, color=theme.FRAME, linewidth=PIXEL, zorder=0.6)
    if panel.y.zero:
        axes.axhline(0, color=theme.FRAME, linewidth=PIXEL, zorder=0.6)
    axes.set_aspect("equal" if panel.equal else "auto", anchor="W")
    if panel.heading:
        add_heading(axes, panel.heading, panel.note)


def _set_axis(it: Any, set_limits: Any, set_scale: Any, axis: Axis) -> None:
    """Set limits, scale, numbers and grid of an axis."""
    low, high = axis.low, axis.high
    set_scale(axis.scale)
    set_limits(*((10.0**low, 10.0**high) if axis.scale == "log" else (low, high)))
    it.set_minor_locator(NullLocator())
    if not axis.shown:
        it.set_visible(False)
        return
    if axis.grid:
        it.grid(True, which="major", color=theme.RULE, linewidth=PIXEL)
    if axis.numbered is not None:
        texts = dict(enumerate(text for _, text in axis.numbered))
        it.set_major_locator(FixedLocator([place for place, _ in axis.numbered]))
        it.set_major_formatter(FuncFormatter(lambda _, at: encodable(texts.get(at, ""))))
    elif axis.scale == "log":
        stride = max(1, round((high - low) / 6))
        it.set_major_locator(LogLocator(10.0**stride, numticks=50))
        it.set_major_formatter(FuncFormatter(_power))
    else:
        it.set_major_locator(MaxNLocator(axis.count, steps=[1, 2, 5, 10], integer=axis.whole))
        inside = [x for x in it.get_majorticklocs() if min(low, high) <= x <= max(low, high)]
        first = inside[0] if inside else None

        def text(value: float, _: Any) -> str:
            named = f"{axis.name} " if axis.name and value == first else ""
            return f"{named}{format_number(value)}{axis.suffix}"

        it.set_major_formatter(FuncFormatter(text))
    size, color = (theme.FONT_TEXT, theme.INK) if axis.loud else (theme.FONT_SMALL, theme.QUIET)
    for label in it.get_ticklabels():
        label.set(fontproperties=font(size), color=color, visible=axis.numbers)
        label.set_math_fontfamily("dejavusans")


def _power(value: float, _: Any) -> str:
    """Format a power of ten as plotly does."""
    exponent = round(float(f"{value:e}".split("e")[1]))
    return {0: "1", 1: "10"}.get(exponent, f"$10^{{{exponent}}}$")


def _annotate(
    axes: Axes, text: str, point: tuple[float, float], shift: tuple[float, float], size: float, *,
    weight: str = "normal", **options: Any,
) -> Any:  # fmt: skip
    """Write a text beside a point of the axes; the shift is in pixels."""
    return axes.annotate(
        encodable(text), point, (shift[0] * PIXEL, shift[1] * PIXEL), textcoords="offset points",
        fontproperties=font(size, weight, text=text), parse_math=False, annotation_clip=False,
        **{"va": "center_baseline", "color": theme.INK} | options,
    )  # fmt: skip


def add_heading(axes: Axes, title: str, note: str) -> None:
    """Write title and note above a panel."""
    corner: dict[str, Any] = {"point": (0, 1), "xycoords": "axes fraction"}
    heading = _annotate(
        axes, title, shift=(0, 16), size=theme.FONT_HEADING, weight="bold", **corner
    )
    with any_letters():
        shift = (heading.get_window_extent().width + 8, 16)
    _annotate(axes, note, shift=shift, size=theme.FONT_SMALL, color=theme.QUIET, **corner)


def _line(pen: Pen) -> dict[str, Any]:
    """Return color, width and dash of a line.

    matplotlib measures dashes in line widths, or in points if `use_style` is in use.
    """
    unit = 1 / (pen.width or 1.0) if rcParams["lines.scale_dashes"] else PIXEL
    return {
        "color": pen.color,
        "alpha": pen.opacity,
        "linewidth": pen.width * PIXEL,
        "linestyle": (0, tuple(length * unit for length in pen.dash)) if pen.dash else "solid",
        "dash_capstyle": "butt",
        "solid_capstyle": "butt" if pen.width > 3 else "projecting",
        "solid_joinstyle": "round",
    }


def _marker(marker: Marker) -> dict[str, Any]:
    edge = marker.edge or "none"
    look = marker_pen(marker.name, marker.size, marker.face, edge, marker.edge_width)
    return look if marker.opacity == 1 else look | {"alpha": marker.opacity}


def _fill(fill: Fill, edge: Pen | None = None) -> dict[str, Any]:
    ink: Any = fill.ink or theme.HATCHING
    look: dict[str, Any] = {"facecolor": fill.color, "linewidth": 0, "edgecolor": ink}
    if edge is not None:
        look |= {"edgecolor": edge.color, "linewidth": edge.width * PIXEL}
    return look | {"hatch": _HATCHES[fill.pattern]}


@singledispatch
def _draw(mark: Mark, axes: Axes, order: float) -> None:
    """Draw a mark."""
    raise TypeError(f"{type(mark).__name__} is no mark.")


@_draw.register
def _(mark: Line, axes: Axes, order: float) -> None:
    style: Any = {"drawstyle": "steps-pre"} if mark.stepped else {}
    axes.plot(mark.x, mark.y, zorder=order, clip_on=mark.clip, **_line(mark.pen), **style)


@_draw.register
def _(mark: Points, axes: Axes, order: float) -> None:
    if mark.marker is None:
        return
    x, y = np.asarray(mark.x), np.asarray(mark.y)
    if mark.seen is not None:
        x, y = x[mark.seen], y[mark.seen]
    pen = _marker(mark.marker)
    if len(mark.faces):
        look = {"marker": pen["marker"], "s": pen["markersize"] ** 2, "linewidths": 0}
        look |= {"alpha": mark.marker.opacity}
        axes.scatter(x, y, c=list(mark.faces), clip_on=mark.clip, zorder=order, **look)
    else:
        axes.plot(x, y, linestyle="none", clip_on=mark.clip, zorder=order, **pen)
    if mark.text and mark.side is not None:
        vertical, horizontal = mark.side.split()
        right, up = _AWAY[horizontal], _AWAY[vertical]
        away = mark.marker.size / 2 + 2
        _annotate(
            axes, mark.text, (float(x[0]), float(y[0])), (right * away, up * away), theme.FONT_TEXT,
            ha=_ACROSS[right], va=_UP[up], color=mark.ink, path_effects=halo(), zorder=order + 8,
        )  # fmt: skip


@_draw.register
def _(mark: Text, axes: Axes, order: float) -> None:
    options: dict[str, Any] = {"path_effects": halo()} if mark.halo and not mark.ground else {}
    if mark.ground:
        options["bbox"] = {"facecolor": (theme.PAPER, mark.ground), "linewidth": 0, "pad": 1}
    up = {"top": "top", "middle": "center_baseline", "bottom": "bottom"}[mark.up]
    _annotate(
        axes, mark.text, (mark.x, mark.y), mark.shift, mark.size, ha=mark.across, va=up,
        color=mark.ink, weight="bold" if mark.bold else "normal", rotation=mark.angle,
        rotation_mode="anchor", zorder=order, alpha=mark.opacity, **options,
    )  # fmt: skip


@_draw.register
def _(mark: Rule, axes: Axes, order: float) -> None:
    line = axes.axvline if mark.along == "x" else axes.axhline
    # Below the grid, whose order is 0.5; not clipped, since it may lie on the frame.
    line(mark.at, zorder=0.4 if mark.below else order, clip_on=False, **_line(mark.pen))


@_draw.register
def _(mark: Area, axes: Axes, order: float) -> None:
    axes.fill_between(mark.x, mark.low, mark.high, zorder=order, **_fill(mark.fill))
    if mark.edge is not None:
        axes.plot(mark.x, mark.high, zorder=order, **_line(mark.edge))


@_draw.register
def _(mark: Band, axes: Axes, order: float) -> None:
    axes.fill_between(
        mark.x, mark.low, mark.high, color=mark.color, alpha=mark.opacity, linewidth=0,
        zorder=order,
    )  # fmt: skip


@_draw.register
def _(mark: Bars, axes: Axes, order: float) -> None:
    for length, place, fill in zip(mark.lengths, mark.places, mark.fills, strict=True):
        look = _fill(fill, mark.edge)
        axes.barh([place], [length], height=mark.thickness, zorder=order, **look)


@_draw.register
def _(mark: Boxes, axes: Axes, order: float) -> None:
    fills = mark.fills if len(mark.fills) > 1 else [*mark.fills] * len(mark.x0)
    for x0, y0, x1, y1, fill in zip(mark.x0, mark.y0, mark.x1, mark.y1, fills, strict=True):
        look = _fill(fill, mark.edge) | {"alpha": mark.opacity}
        axes.add_patch(Rectangle((x0, y0), x1 - x0, y1 - y0, zorder=order, **look))


@_draw.register
def _(mark: Region, axes: Axes, order: float) -> None:
    outline = np.stack([np.asarray(mark.x, float), np.asarray(mark.y, float)], axis=1)
    pieces = np.split(outline, np.flatnonzero(np.isnan(outline).any(axis=1)))
    pieces = [piece[~np.isnan(piece).any(axis=1)] for piece in pieces]
    closed = [Path([*piece, piece[0]], closed=True) for piece in pieces if len(piece) > 2]
    if closed:
        path = Path.make_compound_path(*closed)
        axes.add_patch(PathPatch(path, alpha=mark.opacity, zorder=order, **_fill(mark.fill)))
        if mark.edge is not None:
            edge = _line(mark.edge)
            look = {"edgecolor": edge["color"], "linewidth": edge["linewidth"]}
            look |= {"linestyle": edge["linestyle"], "alpha": edge["alpha"]}
            axes.add_patch(PathPatch(path, fill=False, zorder=order, **look))


@_draw.register
def _(mark: Arrow, axes: Axes, order: float) -> None:
    long, half = (size * PIXEL for size in mark.head)
    shape = f"simple,head_length={long},head_width={2 * half},tail_width={mark.pen.width * PIXEL}"
    options: dict[str, Any] = {"path_effects": halo(2.8)} if mark.halo else {}
    axes.add_patch(
        FancyArrowPatch(
            (mark.x0, mark.y0), (mark.x1, mark.y1), arrowstyle=shape, shrinkA=0, shrinkB=0,
            mutation_scale=1, linewidth=0, color=mark.pen.color, alpha=mark.pen.opacity,
            zorder=order, **options,
        )
    )  # fmt: skip


@_draw.register
def _(mark: Contour, axes: Axes, order: float) -> None:
    surface = (mark.x, mark.y, mark.height)
    shared: dict[str, Any] = {"levels": mark.levels, "zorder": order}
    if len(mark.colors):
        axes.contourf(*surface, colors=mark.colors, extend="both", **shared)
    pen: dict[str, Any] = {"colors": mark.pen.color, "linewidths": mark.pen.width * PIXEL}
    axes.contour(*surface, linestyles="solid", **pen, **shared)


@_draw.register
def _(mark: HeatMap, axes: Axes, order: float) -> None:
    colors: Any = ListedColormap(mark.colors)
    if mark.smooth:
        colors = LinearSegmentedColormap.from_list("", list(mark.colors), N=_SHADES)
    axes.imshow(
        mark.values, cmap=colors, vmin=mark.low, vmax=mark.high, origin="lower", aspect="auto",
        extent=(*_edges(mark.x), *_edges(mark.y)), zorder=order, alpha=mark.opacity,
        interpolation="bilinear" if mark.blended else "nearest",
    )  # fmt: skip


def _edges(places: Any) -> tuple[float, float]:
    """Return the outer edges of cells around evenly spaced places."""
    half = (places[-1] - places[0]) / (len(places) - 1) / 2 if len(places) > 1 else 0.5
    return float(places[0] - half), float(places[-1] + half)
