"""The static image of a graph: a PNG or SVG of one stage, drawn by matplotlib."""

from __future__ import annotations

import textwrap
from io import BytesIO

from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure

from optlab.viz.backends.matplotlib.draw import draw_panel
from optlab.viz.backends.matplotlib.image import DOTS_PER_INCH, as_png, blank_figure, width_of
from optlab.viz.backends.scene import Axis, Mark, Panel, Text
from optlab.viz.graphs.marks import marks_at, sample
from optlab.viz.graphs.palette import legend
from optlab.viz.graphs.view import GraphView
from optlab.viz.style import theme
from optlab.viz.style.layout import ENTRY_GAP, text_width

_MARGIN, _TOP, _LEGEND_LINE, _SAMPLE = 18.0, 70.0, 20.0, 30.0
_LEAST_WIDTH = 620.0
_MOST_PIXELS = 8000.0


def png(view: GraphView, stage: int, scale: float = 1.0) -> bytes:
    """Draw a stage as a PNG image; a very tall graph is scaled down."""
    figure = draw(view, stage)
    longest = max(figure.get_size_inches()) * DOTS_PER_INCH
    return as_png(figure, min(scale, _MOST_PIXELS / longest))


def svg(view: GraphView, stage: int) -> bytes:
    """Draw a stage as an SVG image."""
    figure = draw(view, stage)
    file = BytesIO()
    FigureCanvasSVG(figure).print_svg(file, metadata={"Date": None})
    return file.getvalue()


def draw(view: GraphView, stage: int) -> Figure:
    """Draw a stage between its title and its legend."""
    said = max(
        text_width(view.headline, theme.FONT_TEXT), text_width(view.title, theme.FONT_TITLE)
    )  # fmt: skip
    width = max(_LEAST_WIDTH, view.width + 2 * _MARGIN, said + 2 * _MARGIN)
    room = width - 2 * _MARGIN
    problem = textwrap.wrap(view.problem, int(room / (0.52 * theme.FONT_TEXT)))
    top = _TOP + 17.0 * len(problem)
    rows = _legend_rows(view, room)
    height = top + view.height + _MARGIN + _LEGEND_LINE * len(rows) + 10
    under = view.headline if not stage else f"{view.headline} {_stage_text(view, stage)}"
    if text_width(under, theme.FONT_TEXT) > room:
        under = view.headline
    page = [
        _written(_MARGIN, 24, view.title, theme.INK, theme.FONT_TITLE, bold=True),
        _written(_MARGIN, 46, under, theme.QUIET),
        *(_written(_MARGIN, 63 + 17 * at, line, theme.INK) for at, line in enumerate(problem)),
    ]
    for at, row in enumerate(rows):
        y = height - _LEGEND_LINE * (len(rows) - at)
        for x, kind, text in row:
            page += sample(kind, _MARGIN + x + 12, y)
            page.append(_written(_MARGIN + x + _SAMPLE, y, text, theme.QUIET, theme.FONT_SMALL))
    figure = blank_figure(width, height)
    left = (width - view.width) / 2
    for x, y, marks in ((0.0, 0.0, page), (left, top, marks_at(view, stage))):
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_facecolor("none")
        across = Axis(-x, width - x, shown=False)
        draw_panel(axes, Panel(across, Axis(height - y, -y, shown=False), marks, frame="none"))
    return figure


def _legend_rows(view: GraphView, room: float) -> list[list[tuple[float, str, str]]]:
    """Return the rows of the legend: for each entry its place, its kind and its text."""
    rows: list[list[tuple[float, str, str]]] = [[]]
    x = 0.0
    for kind, text in legend({node.kind for node in view.nodes}, view.last > 0):
        across = _SAMPLE + width_of(text, theme.FONT_SMALL) + ENTRY_GAP
        if rows[-1] and x + across > room:
            rows.append([])
            x = 0.0
        rows[-1].append((x, kind, text))
        x += across
    return rows


def _written(
    x: float, y: float, text: str, ink: str, size: float = theme.FONT_TEXT, *, bold: bool = False
) -> Mark:
    return Text(x, y, text, ink, size, across="left", bold=bold, halo=False)


def _stage_text(view: GraphView, stage: int) -> str:
    if stage == view.last:
        return "The whole backward pass is shown."
    return (
        f"Stage {stage} of {view.last}: {view.stages[stage][:1].lower()}{view.stages[stage][1:]}."
    )
