"""The static image of a graph: a PNG or SVG of one stage, drawn by matplotlib."""

from __future__ import annotations

import textwrap
from io import BytesIO
from itertools import pairwise
from typing import Any

from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch, PathPatch
from matplotlib.path import Path as Curve

from optlab.backend.text import encodable
from optlab.viz.backends.matplotlib.image import DOTS_PER_INCH, PIXEL, as_png, blank_figure, font
from optlab.viz.graphs.palette import PALETTE, legend
from optlab.viz.graphs.view import NODE_HEIGHT, EdgeView, GraphView, NodeView
from optlab.viz.style import theme
from optlab.viz.style.layout import text_width

_MARGIN, _TOP, _LEGEND_LINE = 18.0, 70.0, 20.0
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
    """Draw a stage on a figure with pixels as units and the origin at the upper left."""
    shapes = legend({node.kind for node in view.nodes}, view.last > 0)
    entries = [
        (kind, text, 34 + 0.92 * text_width(text, theme.FONT_SMALL)) for kind, text in shapes
    ]
    said = max(
        text_width(view.headline, theme.FONT_TEXT), text_width(view.title, theme.FONT_TITLE)
    )  # fmt: skip
    width = max(_LEAST_WIDTH, view.width + 2 * _MARGIN, said + 2 * _MARGIN)
    rows, room = [[]], width - 2 * _MARGIN  # type: list[list[Any]], float
    for entry in entries:
        if rows[-1] and sum(one[2] for one in rows[-1]) + entry[2] > room:
            rows.append([])
        rows[-1].append(entry)
    problem = textwrap.wrap(view.problem, int(room / (0.52 * theme.FONT_TEXT)))
    top = _TOP + 17.0 * len(problem)
    height = top + view.height + _MARGIN + _LEGEND_LINE * len(rows) + 10
    figure = blank_figure(width, height)
    axes = figure.add_axes((0, 0, 1, 1))
    axes.set(xlim=(0, width), ylim=(height, 0))
    axes.set_axis_off()
    pen = _Pen(axes, (width - view.width) / 2, top)
    pen.write(_MARGIN, 24, view.title, theme.FONT_TITLE, weight="bold", at=False)
    under = view.headline if not stage else f"{view.headline} {_stage_text(view, stage)}"
    if text_width(under, theme.FONT_TEXT) > room:
        under = view.headline
    pen.write(_MARGIN, 46, under, theme.FONT_TEXT, PALETTE[theme.scheme()]["quiet"], at=False)
    for at, line in enumerate(problem):
        pen.write(_MARGIN, 63 + 17 * at, line, theme.FONT_TEXT, at=False)
    for edge in sorted(view.edges, key=lambda edge: (edge.stage or stage + 1) <= stage):
        pen.edge(edge, stage)
    for node in view.nodes:
        pen.node(node, stage)
    y = height - _LEGEND_LINE * len(rows)
    for row in rows:
        x = _MARGIN
        for kind, text, across in row:
            pen.sample(kind, x, y)
            pen.write(x + 30, y, text, theme.FONT_SMALL, PALETTE[theme.scheme()]["quiet"], at=False)
            x += across
        y += _LEGEND_LINE
    return figure


def _stage_text(view: GraphView, stage: int) -> str:
    if stage == view.last:
        return "The whole backward pass is shown."
    return (
        f"Stage {stage} of {view.last}: {view.stages[stage][:1].lower()}{view.stages[stage][1:]}."
    )


class _Pen:
    """Drawing of nodes and edges, with the offset of the graph on the page."""

    def __init__(self, axes: Any, left: float, top: float) -> None:
        self.axes, self.left, self.top = axes, left, top

    def edge(self, edge: EdgeView, stage: int) -> None:
        """Draw an edge, thick if a gradient moves along it in this stage."""
        points = [(x + self.left, y + self.top) for x, y in edge.points]
        vertices, codes = [points[0]], [Curve.MOVETO]
        for (x, y), (u, v) in pairwise(points):
            vertices += [(x, (y + v) / 2), (u, (y + v) / 2), (u, v)]
            codes += [Curve.CURVE4] * 3
        passed = edge.stage is not None and edge.stage <= stage
        now = edge.stage == stage
        color = "gradient" if now else "gradient-soft" if passed else "contour"
        self.axes.add_patch(
            PathPatch(
                Curve(vertices, codes),
                fill=False,
                edgecolor=PALETTE[theme.scheme()][color],
                linewidth=(2.6 if now else 1.3) * PIXEL,
                zorder=2 if passed else 1,
            )
        )

    def node(self, node: NodeView, stage: int) -> None:
        """Draw a node, with its gradient if one has arrived."""
        state, piece = node.state(stage), node.piece(stage)
        x, y = node.x + self.left, node.y + self.top
        self._box(node.kind, state, x, y, node.width, NODE_HEIGHT)
        shown = piece is not None and bool(piece.short)
        up = 0.0 if shown else 7.0
        room = node.width - 12
        title, line = truncate(node.title, room, 7.1), truncate(node.line, room, 5.9)
        self.write(x, y - 15 + up, title, theme.FONT_HEADING, weight="bold")
        self.write(x, y + 1 + up, line, theme.FONT_SMALL, PALETTE[theme.scheme()]["quiet"])
        if piece is not None and shown:
            text = truncate(piece.short, room, 5.9)
            self.write(
                x,
                y + 16,
                text,
                theme.FONT_SMALL,
                PALETTE[theme.scheme()]["gradient"],
                weight="bold",
            )

    def sample(self, kind: str, x: float, y: float) -> None:
        """Draw the sample box of a legend entry."""
        state = "current" if kind == "arrived" else "waiting"
        self._box("operation" if kind == "arrived" else kind, state, x + 12, y, 24, 13, thin=True)

    def _box(
        self, kind: str, state: str, x: float, y: float, width: float, height: float, *,
        thin: bool = False,
    ) -> None:  # fmt: skip
        face = {"leaf": "leaf-tint", "rest": "rule"}.get(kind, "paper")
        edge = {"leaf": "leaf", "data": "contour"}.get(kind, "frame")
        dash: Any = (0, (2, 2.5)) if kind == "data" else "solid"
        line = 1.3
        if state == "current":
            face, line = "gradient-tint", 1.3 if thin else 3.0
        if state != "waiting":
            edge = "gradient-soft" if state == "passed" else "gradient"
        if state == "part":
            dash = (0, (4, 2.5))
        corner = {"leaf": height / 2, "data": 0.0}.get(kind, min(8.0, height / 3))
        self.axes.add_patch(
            FancyBboxPatch(
                (x - width / 2, y - height / 2),
                width,
                height,
                boxstyle=f"round,pad=0,rounding_size={corner}" if corner else "square,pad=0",
                facecolor=PALETTE[theme.scheme()][face],
                edgecolor=PALETTE[theme.scheme()][edge],
                linewidth=line * PIXEL,
                linestyle=dash,
                zorder=3,
            )
        )

    def write(
        self, x: float, y: float, text: str, size: float, color: str | None = None,
        weight: str = "normal", at: bool = True,
    ) -> None:  # fmt: skip
        """Write at the middle of a line; centered in a node, else from the left."""
        self.axes.text(
            x, y, encodable(text), color=color or theme.INK, fontproperties=font(size, weight),
            va="center_baseline", ha="center" if at else "left", parse_math=False, zorder=4,
        )  # fmt: skip


def truncate(text: str, room: float, letter: float) -> str:
    """Truncate text that does not fit.

    Examples
    --------
    >>> truncate("log_softmax", 40, 7), truncate("tanh", 40, 7)
    ('log_…', 'tanh')
    """
    most = int(room // letter)
    return text if len(text) <= most else text[: max(1, most - 1)] + "…"
