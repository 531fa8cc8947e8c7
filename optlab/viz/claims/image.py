"""The static picture of a claim figure, drawn by matplotlib at its first position."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.path import Path

from optlab.viz.backends.matplotlib.image import PIXEL, as_png, blank_figure, font, halo, marker_pen
from optlab.viz.claims.view import DENSE, MAP_HEIGHT, MAP_WIDTH, ClaimView, Map
from optlab.viz.style import theme
from optlab.viz.style.layout import text_width

WIDTH = 760
_MAP = 300
_GROUND = {"light": "#f5f8fb", "dark": "#181e26"}
_BAND = {"light": "#5d86b3", "dark": "#5b7fa8"}
_LINE = {"light": "#8ea3ba", "dark": "#55657a"}


def claim_png(view: ClaimView, scale: float = 1.0) -> bytes:
    """Return the picture of a claim as a PNG image.

    Parameters
    ----------
    view : ClaimView
    scale : float
        Image pixels per pixel.
    """
    lines = _wrapped(view.sentence, WIDTH - 30)
    notes = textwrap.wrap(view.note, 105)
    top = 28 + 28 * len(lines)
    height = top + 330 + 20 * len(notes)
    figure = blank_figure(WIDTH, height)
    for row, pieces in enumerate(lines):
        _write_line(figure, view, pieces, 20, 28 + 28 * row, height)
    _write(figure, 20, top + 16, view.maps[view.at].title, 14, theme.QUIET, height)
    _write(figure, 410, top + 16, view.measured, 14, theme.QUIET, height)
    tall = _MAP * MAP_HEIGHT / MAP_WIDTH
    _draw_map(_axes(figure, 20, top + 32, _MAP, tall, height), view, view.maps[view.at])
    chart = _axes(figure, 410, top + 32, 310, 210, height)
    _draw_chart(chart, view)
    _draw_slider(_axes(figure, 410, top + 250, 310, 24, height), view)
    _draw_stops(figure, view, top + 284, height)
    _write(figure, 20, top + 262, view.question, 16, theme.INK, height, "bold")
    _write(figure, 20, top + 284, view.setting, 14, theme.QUIET, height)
    for row, text in enumerate(notes):
        _write(figure, 20, top + 318 + 20 * row, text, 14, theme.QUIET, height)
    return as_png(figure, scale)


def _wrapped(
    pieces: list[tuple[str, int | None]], room: float
) -> list[list[tuple[str, int | None]]]:
    """Break a sentence into lines, at spaces."""
    lines: list[list[tuple[str, int | None]]] = [[]]
    used = 0.0
    for text, who in pieces:
        for word in text.replace(" ", "\0 ").split("\0"):
            wide = text_width(word, 21)
            if used + wide > room and lines[-1]:
                lines.append([])
                used, word = 0.0, word.lstrip()
            lines[-1].append((word, who))
            used += wide
    return lines


def _color(view: ClaimView, who: int) -> str:
    return str(view.styles[who][theme.scheme()])


def _write(
    figure: Figure, x: float, y: float, text: str, size: float, color: str, height: float,
    weight: str = "normal", across: str = "left",
) -> Any:  # fmt: skip
    return figure.text(
        x / WIDTH, 1 - y / height, text, color=color, fontproperties=font(size, weight),
        va="center_baseline", ha=across, parse_math=False,
    )  # fmt: skip


def _write_line(
    figure: Figure,
    view: ClaimView,
    pieces: list[tuple[str, int | None]],
    x: float,
    y: float,
    height: float,
) -> None:
    """Write pieces behind each other, each as wide as it is drawn."""
    renderer = figure.canvas.get_renderer()  # type: ignore[attr-defined]
    joined: list[tuple[str, int | None]] = []
    for text, who in pieces:
        if joined and joined[-1][1] == who:
            joined[-1] = (joined[-1][0] + text, who)
        else:
            joined.append((text, who))
    for text, who in joined:
        color = theme.INK if who is None else _color(view, who)
        _write(figure, x, y, text, 21, color, height, "bold")
        # Between two strokes: the width with the spaces at both ends.
        x += _extent(figure, renderer, f"|{text}|") - _extent(figure, renderer, "||")


def _extent(figure: Figure, renderer: Any, text: str) -> float:
    """Return the width of bold text in pixels."""
    sample = figure.text(0, 0, text, fontproperties=font(21, "bold"), parse_math=False)
    wide = sample.get_window_extent(renderer).width
    sample.remove()
    return float(wide) * WIDTH / (figure.get_figwidth() * figure.dpi)


def _axes(
    figure: Figure, left: float, top: float, width: float, tall: float, height: float
) -> Axes:
    axes = figure.add_axes((left / WIDTH, 1 - (top + tall) / height, width / WIDTH, tall / height))
    axes.set_facecolor(theme.PAPER)
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_visible(False)
    return axes


def _draw_map(axes: Axes, view: ClaimView, one: Map) -> None:
    page = theme.scheme()
    axes.set(xlim=(0, MAP_WIDTH), ylim=(MAP_HEIGHT, 0))
    axes.set_facecolor(_GROUND[page])
    for outlines in one.regions:
        if outlines:
            path = Path.make_compound_path(*[Path(line, closed=True) for line in outlines])
            axes.add_patch(PathPatch(path, facecolor=_BAND[page], alpha=0.08, linewidth=0))
            axes.add_patch(
                PathPatch(path, fill=False, edgecolor=_LINE[page], linewidth=0.7 * PIXEL)
            )
    for number, (points, dots) in enumerate(zip(one.paths, one.dots, strict=True)):
        color = _color(view, number)
        thin = len(points) > DENSE
        if not thin:
            axes.plot(*points.T, color=_GROUND[page], linewidth=5 * PIXEL, alpha=0.8)
        width = (1 if thin else 2.2) * PIXEL
        axes.plot(*points.T, color=color, linewidth=width, linestyle=_dash(view, number))
        axes.plot(*dots.T, color=color, linestyle="none", marker="o", markersize=4.4 * PIXEL)
    for minimum in one.minima:
        axes.plot(*minimum, **marker_pen("star", 15, theme.INK, theme.PAPER, 1), zorder=4)
    axes.plot(*one.start, **marker_pen("circle", 12, theme.PAPER, theme.INK, 2.4), zorder=4)
    axes.annotate(
        "start", one.start, (0, 13 * PIXEL), textcoords="offset points", ha="center", zorder=5,
        color=theme.INK, fontproperties=font(14), path_effects=halo(), annotation_clip=False,
    )  # fmt: skip


def _dash(view: ClaimView, who: int) -> Any:
    dash = view.styles[who]["dash"]
    return (0, tuple(length / 2.2 for length in dash)) if dash else "-"


def _draw_chart(axes: Axes, view: ClaimView) -> None:
    axes.set(xlim=(0, 1), ylim=(view.low, view.high))
    if view.logarithmic:
        axes.set_yscale("log")
    axes.minorticks_off()
    places = [value for value, _ in view.ticks if view.low <= value <= view.high]
    texts = [text for value, text in view.ticks if view.low <= value <= view.high]
    axes.set_yticks(places, texts)
    axes.tick_params(axis="y", which="both", length=0)
    for tick in axes.get_yticklabels():
        tick.set(fontproperties=font(13), color=theme.QUIET)
    axes.grid(axis="y", color=theme.RULE, linewidth=PIXEL)
    axes.set_axisbelow(True)
    at = view.places[view.at]
    axes.axvline(at, color=theme.INK, linewidth=1.4 * PIXEL, clip_on=False)
    order = sorted(range(len(view.names)), key=lambda i: -np.nan_to_num(view.values[i, view.at]))
    for rank, i in enumerate(order):
        color = _color(view, i)
        axes.plot(
            view.places,
            view.values[i],
            color=color,
            linewidth=2.6 * PIXEL,
            linestyle=_dash(view, i),
        )
        value = view.values[i, view.at]
        if not np.isfinite(value):
            continue
        pen = marker_pen(view.styles[i]["marker"], 14, color, theme.PAPER, 1.5)
        axes.plot([at], [value], zorder=4, clip_on=False, **pen)
        above = rank == 0 and len(order) > 1
        shift = ((-12, 26) if above else (12, -26)) if at > 0.3 else (12, 26 - 52 * rank)
        axes.annotate(
            f"{view.names[i]}\n{view.value_text(i, view.at)}", (at, value),
            (shift[0] * PIXEL, shift[1] * PIXEL), textcoords="offset points", zorder=5,
            ha="right" if shift[0] < 0 else "left", va="center", color=color,
            fontproperties=font(15, "bold"), path_effects=halo(4), annotation_clip=False,
        )  # fmt: skip


def _draw_slider(axes: Axes, view: ClaimView) -> None:
    at = view.places[view.at]
    axes.set(xlim=(0, 1), ylim=(-1, 1))
    for low, high, color in ((0, 1, theme.FRAME), (0, at, theme.INK)):
        axes.plot(
            [low, high], [0, 0], color=color, linewidth=6 * PIXEL, solid_capstyle="round",
            clip_on=False,
        )  # fmt: skip
    knob = marker_pen("circle", 22, theme.PAPER, theme.INK, 4)
    axes.plot([at], [0], clip_on=False, zorder=4, **knob)


def _draw_stops(figure: Figure, view: ClaimView, y: float, height: float) -> None:
    for i in view.majors:
        x = 410 + 310 * view.places[i]
        _write(figure, x, y, view.labels[i], 13, theme.QUIET, height, across="center")
