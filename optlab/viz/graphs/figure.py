"""A graph as a plotly figure with a slider for its stages, which needs no kernel.

It has no frames: plotly would morph the outlines, and plays frames when a page opens.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import plotly.graph_objects as go

from optlab.viz.backends.plotly.draw import page_options
from optlab.viz.graphs.image import truncate
from optlab.viz.graphs.palette import PALETTE
from optlab.viz.graphs.view import NODE_HEIGHT, EdgeView, GraphView, NodeView
from optlab.viz.style import theme

_MARGIN, _PAD, _TOP, _BOTTOM, _PANEL = 20.0, 6.0, 100.0, 84.0, 350.0
_PANEL_LETTERS = 46
_MOST_TRAIL = 4000
"""Most nodes times stages: a larger graph colors no passed nodes, to limit its size in bytes."""
_MONO = "DejaVu Sans Mono, Menlo, Consolas, monospace"


def figure(view: GraphView, stage: int) -> go.Figure:
    """Draw a graph, with a slider for its stages.

    Parameters
    ----------
    view : GraphView
    stage : int
        The stage shown first.
    """
    panel = _PANEL if view.last else 0.0
    inside = max(view.width, 300.0)
    width = inside + panel + 2 * _MARGIN
    tall = max(view.height, 460.0 if view.last else 0.0)
    bottom = _BOTTOM if view.last else _MARGIN
    still = _static_traces(view, inside)
    note = textwrap.wrap(view.problem or _legend_text(view), int(width / 6.4))
    said = [_escape(line) for line in note]
    top = _TOP + 21.0 * (len(said) - 1)
    drawn = go.Figure(
        data=still + _stage_traces(view, inside, stage) + _labels(view, _left_margin(view, inside)),
        layout={
            "template": "none",
            **page_options(round(width), round(tall + top + bottom)),
            "margin": {
                "l": _MARGIN - _PAD,
                "r": _MARGIN - _PAD,
                "t": top - _PAD,
                "b": bottom - _PAD,
                "pad": 0,
            },
            "title": {
                "text": f"<b>{_escape(view.title)}</b><br><span style='font-size:"
                f"{theme.FONT_TEXT}px;color:{theme.QUIET}'>{_escape(view.headline)}<br>{'<br>'.join(said)}</span>",
                "font": {"size": theme.FONT_TITLE},
                "x": _MARGIN / width,
                "xanchor": "left",
                "y": 1 - 18 / (tall + top + bottom),
                "yanchor": "top",
            },
            "showlegend": False,
            "hovermode": "closest",
            "xaxis": {"visible": False, "range": [-_PAD, inside + panel + _PAD]},
            "yaxis": {"visible": False, "range": [tall + _PAD, -_PAD], "scaleanchor": "x"},
        },
    )
    if view.last:
        drawn.update_layout(sliders=[_slider(view, inside, stage, len(still))])
    return drawn


def _legend_text(view: GraphView) -> str:
    """Return the meaning of shapes and colors."""
    said = "Round and blue: leaves, where gradients collect."
    if any(node.kind == "data" for node in view.nodes):
        said += " Dotted: data without gradient."
    if view.last:
        said += " Orange: the gradient g, |g| its norm; dashed: a part of it."
    return said


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _outline(node: NodeView, left: float) -> tuple[list[Any], list[Any]]:
    """Return the outline of a node: round for a leaf, square for data, rounded for an operation."""
    w, h = node.width / 2, NODE_HEIGHT / 2
    radius, points = _CORNERS.get(node.kind, (8.0, 3))
    xs, ys = [], []
    for corner, (right, down) in enumerate(((1, -1), (1, 1), (-1, 1), (-1, -1))):
        for turn in range(points):
            angle = math.pi / 2 * (corner - 1 + (turn / (points - 1) if points > 1 else 0.5))
            xs.append(round(node.x + left + right * (w - radius) + radius * math.cos(angle), 1))
            ys.append(round(node.y + down * (h - radius) + radius * math.sin(angle), 1))
    return [*xs, xs[0]], [*ys, ys[0]]


_CORNERS = {"leaf": (NODE_HEIGHT / 2, 7), "data": (0.0, 1)}


def _boxes(
    nodes: Sequence[NodeView], left: float, face: str, edge: str, **line: Any
) -> dict[str, Any]:
    """Return one trace for all nodes of one look."""
    xs: list[Any] = []
    ys: list[Any] = []
    for node in nodes:
        x, y = _outline(node, left)
        xs += [*x, None]
        ys += [*y, None]
    return {
        "type": "scatter",
        "x": xs or [None],
        "y": ys or [None],
        "mode": "lines",
        "fill": "toself",
        "fillcolor": PALETTE[theme.scheme()][face],
        "line": {"color": PALETTE[theme.scheme()][edge], "width": 1.3, **line},
        "hoverinfo": "skip",
    }


_CURVE = tuple(i / 7 for i in range(8))


def _lines(edges: Sequence[EdgeView], left: float, color: str, width: float) -> dict[str, Any]:
    """Return one trace for all edges of one look."""
    xs: list[Any] = []
    ys: list[Any] = []
    for edge in edges:
        points = edge.points
        for (x, y), (u, v) in pairwise(points):
            for t in _CURVE if x != u else (0.0, 1.0):
                turn = t * t * (3 - 2 * t)
                xs.append(round(x + (u - x) * turn + left, 1))
                ys.append(round(y + (v - y) * t, 1))
        xs.append(None)
        ys.append(None)
    return {
        "type": "scatter",
        "x": xs or [None],
        "y": ys or [None],
        "mode": "lines",
        "hoverinfo": "skip",
        "line": {"color": PALETTE[theme.scheme()][color], "width": width},
    }


def _text(
    nodes: Sequence[NodeView], left: float, down: list[float], texts: list[str], **font: Any
) -> dict[str, Any]:
    return {
        "type": "scatter",
        "x": [node.x + left for node in nodes],
        "y": [node.y + shift for node, shift in zip(nodes, down, strict=True)],
        "mode": "text",
        "text": texts,
        "textposition": "middle center",
        "textfont": font,
        "hoverinfo": "skip",
    }


def _left_margin(view: GraphView, inside: float) -> float:
    return (inside - view.width) / 2


def _static_traces(view: GraphView, inside: float) -> list[dict[str, Any]]:
    """Return the traces that no stage changes: edges, and boxes below those with colors."""
    left = _left_margin(view, inside)
    kinds = {kind: [node for node in view.nodes if node.kind == kind] for kind in _LOOKS}
    return [
        _lines(view.edges, left, "contour", 1.3),
        *(_boxes(kinds[kind], left, *_LOOKS[kind][:2], **_LOOKS[kind][2]) for kind in _LOOKS),
    ]


def _labels(view: GraphView, left: float) -> list[dict[str, Any]]:
    """Return the traces of names, values and hover texts."""
    titles = [f"<b>{_escape(truncate(n.title, n.width - 12, 7.1))}</b>" for n in view.nodes]
    lines = [_escape(truncate(n.line, n.width - 10, 5.9)) for n in view.nodes]
    up = [0.0 if any(piece.short for piece in node.pieces) else 7.0 for node in view.nodes]
    return [
        _text(
            view.nodes,
            left,
            [-15 + y for y in up],
            titles,
            size=theme.FONT_HEADING,
            color=theme.INK,
        ),
        _text(
            view.nodes, left, [1 + y for y in up], lines, size=theme.FONT_SMALL, color=theme.QUIET
        ),
        _hover(view, left),
    ]


_LOOKS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "operation": ("paper", "frame", {}),
    "leaf": ("leaf-tint", "leaf", {}),
    "data": ("paper", "contour", {"dash": "2px,3px"}),
    "rest": ("rule", "frame", {}),
}


def _stage_traces(view: GraphView, inside: float, stage: int) -> list[dict[str, Any]]:
    """Return the traces that a stage changes: always the same number, in the same order."""
    left = _left_margin(view, inside)
    states = [node.state(stage) for node in view.nodes]

    def in_state(state: str, leaf: bool | None = None) -> list[NodeView]:
        return [
            node
            for node, its in zip(view.nodes, states, strict=True)
            if its == state and leaf in (None, node.kind == "leaf")
        ]

    trail = len(view.nodes) * len(view.stages) <= _MOST_TRAIL
    passed = [e for e in view.edges if trail and e.stage is not None and e.stage < stage]
    now = [edge for edge in view.edges if edge.stage is not None and edge.stage == stage]
    pieces = [node.piece(stage) for node in view.nodes]
    gradients = [
        f"<b>{truncate(_escape(piece.short), node.width - 8, 5.9)}</b>"
        if piece and piece.short
        else "\N{NO-BREAK SPACE}"  # plotly drops points with empty text
        for node, piece in zip(view.nodes, pieces, strict=True)
    ]
    ink, small = theme.INK, theme.FONT_SMALL
    found = [
        _lines(passed, left, "gradient-soft", 1.3),
        _lines(now, left, "gradient", 2.6),
        _boxes(in_state("part"), left, "leaf-tint", "gradient", dash="5px,3px"),
        _boxes(in_state("arrived", leaf=True), left, "leaf-tint", "gradient"),
        _boxes(in_state("arrived", leaf=False), left, "paper", "gradient"),
        _boxes(in_state("passed") if trail else [], left, "paper", "gradient-soft"),
        _boxes(in_state("current"), left, "gradient-tint", "gradient", width=3),
        _text(
            view.nodes,
            left,
            [16.0] * len(view.nodes),
            gradients,
            size=small,
            color=PALETTE[theme.scheme()]["gradient"],
        ),
    ]
    if view.last:
        found.append(
            {
                "type": "scatter",
                "x": [inside + 24],
                "y": [0],
                "mode": "text",
                "text": [panel_text(view, stage)],
                "textposition": "bottom right",
                "hoverinfo": "skip",
                "cliponaxis": False,
                "textfont": {"size": theme.FONT_TEXT, "color": ink},
            }
        )
    return found


def _hover(view: GraphView, left: float) -> dict[str, Any]:
    """Return an invisible point in each node with its hover text."""
    texts = []
    for node in view.nodes:
        lines = [f"<b>{_escape(node.title)}</b>, {node.what}"]
        lines += [f"{label}: {'; '.join(_escape(text).splitlines())}" for label, text in node.facts]
        texts.append("<br>".join("<br>".join(textwrap.wrap(line, 70)) for line in lines))
    return {
        "type": "scatter",
        "x": [node.x + left for node in view.nodes],
        "y": [node.y for node in view.nodes],
        "mode": "markers",
        "marker": {"size": 36, "opacity": 0},
        "hovertext": texts,
        "hoverinfo": "text",
    }


def panel_text(view: GraphView, stage: int) -> str:
    """Return the text of a stage: the gradient that arrives, the rules, and what they send."""
    turn = view.current[stage]
    if not stage:
        root = view.nodes[-1]
        return "<br>".join([_heading("Before backward"), *_wrapped(
            f"{root.title}: {root.line}. Move the slider through the backward pass."
        )])  # fmt: skip
    if stage == view.last:
        parts = [_heading("The leaves"), *_wrapped("backward() adds these to their grad:")]
        drawn = [(view.nodes[at].title, view.nodes[at].piece(stage)) for at in turn]
        leaves = view.leaves or [(title, piece.full if piece else "") for title, piece in drawn]
        for title, gradient in leaves[:8]:
            parts += ["", f"<b>{_escape(title)}</b>", *_wrapped(gradient, "gradient")]
        if len(leaves) > 8:
            parts += ["", f"and {len(leaves) - 8:,} more"]
        return "<br>".join(parts)
    node = view.nodes[turn[0]]
    piece = node.piece(stage)
    parts = [_heading(node.title), "", "<b>gradient that arrives, g</b>"]
    parts += _wrapped(piece.full if piece else "", "gradient")
    for rule in node.rules[:4]:
        target = view.nodes[rule.target].title
        to = rule.to if target == rule.to else f"{rule.to}: {target}"
        parts += ["", f"<b>sends to {_escape(to)}</b>", *_wrapped(rule.code, mono=True)]
        parts += _wrapped(rule.sent, "gradient")
    return "<br>".join(parts)


def _heading(text: str) -> str:
    return f"<span style='font-size:{theme.FONT_HEADING + 1}px'><b>{_escape(text)}</b></span>"


def _wrapped(text: str, color: str = "ink", mono: bool = False) -> list[str]:
    """Wrap text into at most eight lines of the panel."""
    lines: list[str] = []
    for line in text.splitlines():
        indent = " " * (len(line) - len(line.lstrip()))
        most = _PANEL_LETTERS if mono else _PANEL_LETTERS + 8
        lines += textwrap.wrap(line, most, subsequent_indent=indent + "  " * mono) or [""]
    if len(lines) > 8:
        lines = [*lines[:7], "…"]
    style = f"color:{PALETTE[theme.scheme()][color]}" + (f";font-family:{_MONO}" if mono else "")
    safe = [_escape(line).replace("  ", chr(160) * 2) for line in lines]
    return [f"<span style='{style}'>{line}</span>" for line in safe]


def _slider(view: GraphView, inside: float, stage: int, first: int) -> dict[str, Any]:
    """Return the slider; each step contains the traces of its stage, so it needs no kernel."""
    steps = []
    for at, text in enumerate(view.stages):
        moving = _stage_traces(view, inside, at)
        changed = {name: [trace.get(name) for trace in moving] for name in ("x", "y", "text")}
        steps.append(
            {
                "label": f"{at} / {view.last}  {_escape(text)}",
                "method": "restyle",
                "args": [changed, [first + place for place in range(len(moving))]],
            }
        )
    return {
        "active": stage,
        "x": 0,
        "xanchor": "left",
        "len": 1,
        "y": 0,
        "yanchor": "top",
        "pad": {"t": 22, "l": 6, "r": 6},
        "ticklen": 0,
        "minorticklen": 0,
        "bgcolor": theme.RULE,
        "bordercolor": theme.FRAME,
        "currentvalue": {
            "prefix": "",
            "xanchor": "left",
            "font": {"size": theme.FONT_TEXT, "color": theme.INK},
        },
        "font": {"size": 1, "color": theme.PAPER},
        "steps": steps,
    }
