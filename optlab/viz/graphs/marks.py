"""The marks of a graph: one list, which the figure, the image and the page draw.

What a stage changes is a list of versions, since a stage changes few of many marks. Coordinates
are pixels of the graph, downward from its upper left corner.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from optlab.viz.backends.scene import Line, Pen, Region, Text, mark_as_json
from optlab.viz.graphs.palette import PALETTE
from optlab.viz.graphs.view import NODE_HEIGHT, ROUND_ENDS, TEXT, EdgeView, GraphView, NodeView
from optlab.viz.style import theme
from optlab.viz.style.theme import Area as Fill

Drawn = Line | Region | Text

_CORNER = 8.0
_PIECES, _WIDE = (8, 16), 60.0  # of a turn of an edge, and of one that is wider than this
_TITLE_LETTER, _LETTER = 7.1, 7.0  # widths in pixels
_LINES = (-15.0, 1.0, 16.0)  # heights of title, value and gradient, from the middle of a node
_MIDDLE = 7.0  # title and value alone are so much lower


@dataclass(frozen=True)
class Versions:
    """What is drawn of one thing: marks, and the stage from which on they replace those before."""

    found: tuple[tuple[int, tuple[Drawn, ...]], ...]

    def at(self, stage: int) -> tuple[Drawn, ...]:
        """Return the marks of a stage."""
        return next(marks for since, marks in reversed(self.found) if since <= stage)

    @property
    def first(self) -> tuple[Drawn, ...]:
        """The marks of stage 0."""
        return self.found[0][1]


def layers(view: GraphView, *, trail: bool = True) -> list[list[Versions]]:
    """Return what is drawn: layers from the bottom to the top, each a list of things.

    Parameters
    ----------
    view : GraphView
    trail : bool
        Whether what the backward pass has left keeps a color, and whether title and value of a
        node are in its middle until a gradient arrives: without, less changes in a stage.
    """
    edges = [[(0, [_edge(edge, "contour")])] for edge in view.edges]
    passed = [_moved(edge, trail) for edge in view.edges if edge.stage is not None]
    boxes, texts = [], []
    for node in view.nodes:
        stages = sorted({0, *(piece.stage for piece in node.pieces), *_around(node)})
        states = [(at, node.state(at)) for at in stages]
        boxes.append([(at, _box(node, state, trail)) for at, state in states])
        texts.append(_words(node, trail))
        texts.append(
            [(0, []), *((piece.stage, _gradient(node, piece.short)) for piece in node.pieces)]
        )
    return [[_versions(one) for one in layer] for layer in (edges, passed, boxes, texts)]


def marks_at(view: GraphView, stage: int) -> list[Drawn]:
    """Return the marks of a stage, the first at the bottom."""
    return [mark for layer in layers(view) for one in layer for mark in one.at(stage)]


def drawing_as_json(view: GraphView) -> dict[str, Any]:
    """Return what is drawn as data of JSON: of each thing its versions, the first at the bottom.

    The coordinates of a line or a region are the index of their list, which versions share.
    """
    places: list[list[float]] = []
    known: dict[tuple[float, ...], int] = {}

    def packed(mark: Drawn) -> dict[str, Any]:
        found = mark_as_json(mark)
        for name in ("x", "y"):
            if isinstance(found[name], list):
                at = known.setdefault(tuple(found[name]), len(places))
                places.extend([found[name]] if at == len(places) else [])
                found[name] = at
        return found

    things = [
        [{"since": since, "marks": [packed(mark) for mark in marks]} for since, marks in one.found]
        for layer in layers(view)
        for one in layer
    ]
    return {"places": places, "things": things}


def sample(kind: str, x: float, y: float) -> list[Drawn]:
    """Return the box of an entry of the legend: 24 wide, 13 high, around a point."""
    node = NodeView("operation" if kind == "arrived" else kind, "", "", "", width=24.0, x=x, y=y)
    face, edge = _look(node.kind, "current" if kind == "arrived" else "waiting")
    return _outlined(node, 13.0, face, Pen(edge.color, 1.3, edge.dash))


def _versions(found: Sequence[tuple[int, list[Drawn]]]) -> Versions:
    """Keep of versions those that differ from the one before; what is as at first is the same."""
    kept = [found[0], *(b for a, b in pairwise(found) if a[1] != b[1])]
    first = tuple(kept[0][1])
    each = ((stage, tuple(marks)) for stage, marks in kept)
    return Versions(tuple((stage, first if marks == first else marks) for stage, marks in each))


def _around(node: NodeView) -> tuple[int, ...]:
    return () if node.turn is None else (node.turn, node.turn + 1)


def _color(name: str) -> str:
    return PALETTE[theme.scheme()][name]


def _edge(edge: EdgeView, color: str, width: float = 1.3) -> Drawn:
    """Return an edge: a smooth curve downward, straight where it passes beside nodes."""
    xs: list[float] = []
    ys: list[float] = []
    for (x, y), (u, v) in pairwise(edge.points):
        if x == u and len(xs) > 1 and xs[-2] == xs[-1]:
            ys[-1] = v  # further straight on
            continue
        pieces = 1 if x == u else _PIECES[abs(u - x) > _WIDE]
        for t in (i / pieces for i in range(bool(xs), pieces + 1)):  # a Bezier curve
            xs.append(round(x + (u - x) * t * t * (3 - 2 * t), 1))
            ys.append(round(y + (v - y) * (1.5 * t * (1 - t) + t**3), 1))
    return Line(xs, ys, Pen(_color(color), width), clip=False)


def _moved(edge: EdgeView, trail: bool) -> list[tuple[int, list[Drawn]]]:
    """Return the versions of what a gradient that moves along an edge draws over it."""
    stage = edge.stage or 0
    after = [_edge(edge, "gradient-soft")] if trail else []
    return [(0, []), (stage, [_edge(edge, "gradient", 2.6)]), (stage + 1, after)]


def _look(kind: str, state: str) -> tuple[str, Pen]:
    """Return the color of a box and the pen of its outline."""
    face = {"leaf": "leaf-tint", "rest": "rule"}.get(kind, "paper")
    edge, width = {"leaf": "leaf", "data": "contour"}.get(kind, "frame"), 1.3
    dash: tuple[float, ...] = (2.0, 3.0) if kind == "data" else ()
    if state == "current":
        face, width = "gradient-tint", 3.0
    if state != "waiting":
        edge = "gradient-soft" if state == "passed" else "gradient"
    if state == "part":
        dash = (5.0, 3.0)
    return _color(face), Pen(_color(edge), width, dash)


def _box(node: NodeView, state: str, trail: bool) -> list[Drawn]:
    shown = state if trail or state != "passed" else "waiting"
    return _outlined(node, NODE_HEIGHT, *_look(node.kind, shown))


def _outlined(node: NodeView, height: float, face: str, edge: Pen) -> list[Drawn]:
    """Return a box: round for a leaf, square for data, else with rounded corners."""
    radius = {"leaf": height / 2, "data": 0.0}.get(node.kind, min(_CORNER, height / 3))
    points = {"leaf": 7, "data": 1}.get(node.kind, 4)
    w, h = node.width / 2, height / 2
    xs, ys = [], []
    for corner, (right, down) in enumerate(((1, -1), (1, 1), (-1, 1), (-1, -1))):
        for turn in range(points):
            angle = math.pi / 2 * (corner - 1 + (turn / (points - 1) if points > 1 else 0.5))
            xs.append(round(node.x + right * (w - radius) + radius * math.cos(angle), 1))
            ys.append(round(node.y + down * (h - radius) + radius * math.sin(angle), 1))
    xs, ys, fill = [*xs, xs[0]], [*ys, ys[0]], Fill(face, "")
    if not edge.dash:
        return [Region(xs, ys, fill, edge)]
    # Between the dashes nothing is seen of the box that a figure has below.
    return [Region(xs, ys, fill, Pen(face, edge.width + 1)), Line(xs, ys, edge, clip=False)]


def _words(node: NodeView, moving: bool) -> list[tuple[int, list[Drawn]]]:
    """Return the versions of title and value: in the middle while no gradient is below them."""
    title = truncate(node.title, node.width - 12 - _ends(node), _TITLE_LETTER)
    line = truncate(node.line, node.width - 12, _LETTER)

    def written(down: float) -> list[Drawn]:
        return [
            _text(node, _LINES[0] + down, title, "ink", theme.FONT_HEADING, bold=True),
            *([_text(node, _LINES[1] + down, line, "quiet")] if line else []),
        ]

    arrived = next((piece.stage for piece in node.pieces if piece.short), None)
    if arrived is None:
        return [(0, written(_MIDDLE))]
    return [(0, written(_MIDDLE)), (arrived, written(0.0))] if moving else [(0, written(0.0))]


def _gradient(node: NodeView, text: str) -> list[Drawn]:
    short = truncate(text, node.width - 10 - _ends(node), _LETTER)
    return [_text(node, _LINES[2], short, "gradient", bold=True)] if text else []


def _ends(node: NodeView) -> float:
    return ROUND_ENDS if node.kind == "leaf" else 0.0


def _text(
    node: NodeView, down: float, text: str, color: str, size: float = TEXT, *,
    bold: bool = False,
) -> Drawn:  # fmt: skip
    return Text(node.x, node.y + down, text, _color(color), size, bold=bold, halo=False)


def truncate(text: str, room: float, letter: float) -> str:
    """Truncate text that does not fit; the panel of a page has it in full.

    Examples
    --------
    >>> truncate("log_softmax", 40, 7), truncate("tanh", 40, 7)
    ('log_…', 'tanh')
    """
    most = int(room // letter)
    return text if len(text) <= most else text[: max(1, most - 1)] + "…"
