"""Panels of the static images: draw a view on matplotlib's axes."""

from __future__ import annotations

from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator, NullLocator

from optlab.viz.backends.matplotlib.parts import (
    PIXEL,
    add_heading,
    font,
    halo,
    label_mark,
    line_pen,
    marker_pen,
    put_mark,
    style_ticks,
)
from optlab.viz.style import theme
from optlab.viz.style.text import format_number
from optlab.viz.style.theme import Style
from optlab.viz.views.curve_view import AccuracyView, CurvesView
from optlab.viz.views.map_view import MapView, Mark


def draw_map(axes: Axes, view: MapView) -> None:
    """Draw a map, back to front: surface, paths, ends, minima, start."""
    box = view.box
    axes.set(xlim=(box.x_low, box.x_high), ylim=(box.y_low, box.y_high), aspect="equal")
    axes.xaxis.set_major_locator(MaxNLocator(8, steps=[1, 2, 5, 10]))
    axes.yaxis.set_major_locator(MaxNLocator(7, steps=[1, 2, 5, 10]))
    style_ticks(axes, "x", "y")
    add_heading(axes, "Paths", view.note)
    surface = (view.x, view.y, view.height)
    colors = theme.surface_colors(len(view.levels) + 1)
    axes.contourf(*surface, levels=view.levels, colors=colors, extend="both")
    axes.contour(
        *surface, levels=view.levels, colors=theme.CONTOUR, linestyles="solid",
        linewidths=theme.CONTOUR_WIDTH * PIXEL,
    )  # fmt: skip
    for label in view.contour_labels:
        axes.text(
            label.x, label.y, label.text, rotation=label.angle, rotation_mode="anchor",
            ha="center", va="center_baseline", color=theme.QUIET, path_effects=halo(),
            fontproperties=font(theme.FONT_SMALL - 1), parse_math=False,
        )  # fmt: skip
    for at, path in enumerate(view.paths):
        style, order = path.style, 3 + 0.1 * at
        axes.plot(
            path.x, path.y, color=theme.PAPER, alpha=0.75, linewidth=theme.HALO_WIDTH * PIXEL,
            zorder=2.9, solid_joinstyle="round",
        )  # fmt: skip
        axes.plot(path.x, path.y, zorder=order, **line_pen(style, path.width))
        axes.plot(
            path.step_x[path.dotted],
            path.step_y[path.dotted],
            linestyle="none",
            zorder=order,
            **marker_pen("circle", path.dot, style.color, "none", 0),
        )
        for mark, hollow in ((path.end, False), (path.leaves, True)):
            if mark is not None:
                marker = end_marker(style, hollow=hollow, size=path.end_size)
                put_mark(axes, mark, style.color, 5 + 0.3 * at, **marker)
    star: dict[str, Any] = {"name": "star", "size": theme.MINIMUM_SIZE, "face": theme.INK}
    for mark in view.minima:
        put_mark(axes, mark, theme.INK, 20, edge=theme.PAPER, edge_width=1, **star)
    ring: dict[str, Any] = {"name": "circle", "size": theme.START_SIZE, "face": theme.PAPER}
    put_mark(axes, view.start, theme.INK, 21, edge=theme.INK, edge_width=2, **ring)


def end_marker(
    style: Style, *, hollow: bool = False, size: float = theme.END_SIZE
) -> dict[str, Any]:
    """Return the end marker of a run; hollow if it left the panel or stopped early."""
    return {
        "name": style.marker,
        "size": size,
        "face": theme.PAPER if hollow else style.color,
        "edge": style.color if hollow else theme.PAPER,
        "edge_width": 2.0 if hollow else 1.2,
    }


def draw_curves(axes: Axes, view: CurvesView) -> None:
    """Draw curves over the steps, with labels at their ends and stops."""
    box = view.box
    axes.set_yscale(view.scale)
    axes.set_xlim(box.x_low, box.x_high)
    axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    axes.yaxis.grid(True, which="major", color=theme.RULE, linewidth=PIXEL)
    axes.set_axisbelow(True)
    if view.scale == "log":
        axes.set_ylim(10.0**box.y_low, 10.0**box.y_high)
        stride = max(1, round(box.height / 6))
        wide = box.height >= 1.5
        locator = LogLocator(10.0**stride, numticks=50) if wide else LogLocator(10.0, (1, 2, 5))
        axes.yaxis.set_major_locator(locator)
        axes.yaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter(
            FuncFormatter(_power if wide else lambda value, _: format_number(value))
        )
    else:
        axes.set_ylim(box.y_low, box.y_high)
        axes.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
        axes.axhline(0, color=theme.FRAME, linewidth=PIXEL)
    style_ticks(axes, "step")
    for label in axes.yaxis.get_ticklabels():
        label.set_math_fontfamily("dejavusans")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    add_heading(axes, view.title, view.note)
    for step in view.lines:
        axes.axvline(step, color=theme.FAINT, linewidth=PIXEL, zorder=0.4)  # below the grid
    for series in view.series:
        pen = line_pen(series.style, series.width)
        if series.faint:
            pen |= {"linestyle": "solid", "linewidth": theme.FAINT_WIDTH * PIXEL}
            pen |= {"alpha": theme.FAINT_OPACITY}
        axes.plot(series.x, series.y, zorder=2 if series.faint else 3, **pen)
    for end in view.ends:
        mark = Mark(end.x, end.y, "", None)
        put_mark(axes, mark, end.style.color, 5, **end_marker(end.style, size=end.size))
        beside = Mark(end.x, end.text_y, end.text, "middle right")
        label_mark(axes, beside, end.style.color, theme.END_SIZE, 6)
    for _, style, mark in view.stops:
        put_mark(axes, mark, style.color, 5, **end_marker(style, hollow=True))


def _power(value: float, _: Any) -> str:
    """Format a power of ten as the plotly figure does."""
    exponent = round(float(f"{value:e}".split("e")[1]))
    return {0: "1", 1: "10"}.get(exponent, f"$10^{{{exponent}}}$")


def draw_accuracies(axes: Axes, view: AccuracyView) -> None:
    """Draw bars of held-out accuracies from zero, each with its value."""
    names = [name for name, *_ in view.rows]
    axes.set(xlim=(0, 1.14), ylim=(len(names) - 0.4, -0.6))
    axes.xaxis.set_major_locator(FixedLocator([0, 0.25, 0.5, 0.75, 1]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:.0%}"))
    axes.yaxis.set_major_locator(FixedLocator(list(range(len(names)))))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda _, at: names[at] if at is not None else ""))
    axes.xaxis.grid(True, color=theme.RULE, linewidth=PIXEL)
    axes.set_axisbelow(True)
    style_ticks(axes, "")
    for label in axes.yaxis.get_ticklabels():
        label.set(fontproperties=font(theme.FONT_TEXT), color=theme.INK)
    for side in ("top", "right", "bottom"):
        axes.spines[side].set_visible(False)
    add_heading(axes, "Held-out accuracy", "on unseen examples")
    for row, (_, style, value, text) in enumerate(view.rows):
        shown = 0.0 if value is None else value
        mark = Mark(shown, row, text, "middle right")
        axes.plot([0, shown], [row, row], color=style.color, linewidth=4 * PIXEL, zorder=3)
        if value is None:
            label_mark(axes, mark, style.color, theme.END_SIZE, 4)
        else:
            put_mark(axes, mark, style.color, 4, **end_marker(style))
