"""A graph as a plain plotly figure: its stages are frames, so it steps without a kernel."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import plotly.graph_objects as go

from optlab.viz import theme
from optlab.viz.graphs.palette import PALETTE
from optlab.viz.graphs.picture import fitted
from optlab.viz.graphs.view import NODE_HEIGHT, EdgeView, GraphView, NodeView
from optlab.viz.plotly_parts import _FONT, CONFIG

_MARGIN, _TOP, _BOTTOM, _PANEL = 18.0, 84.0, 84.0, 350.0
_PANEL_LETTERS = 46
_COLORS = PALETTE["light"]
_MONO = "DejaVu Sans Mono, Menlo, Consolas, monospace"


def figure(view: GraphView, stage: int) -> go.Figure:
    """Draw a graph, with a slider and a button for its stages.

    Parameters
    ----------
    view : GraphView
    stage : int
        The stage that it opens on.

    Returns
    -------
    plotly.graph_objects.Figure
    """
    panel = _PANEL if view.last else 0.0
    inside = max(view.width, 300.0)
    width = inside + 2 * _MARGIN + panel
    tall = max(view.height, 460.0 if view.last else 0.0)
    drawn = go.Figure(
        data=_still(view, inside) + _moving(view, inside, stage),
        layout={
            "template": "none",
            "width": round(width),
            "height": round(tall + _TOP + _BOTTOM * bool(view.last) + 20),
            "margin": {
                "l": _MARGIN,
                "r": _MARGIN,
                "t": _TOP,
                "b": 20 + _BOTTOM * bool(view.last),
                "pad": 0,
            },
            "paper_bgcolor": theme.PAPER,
            "plot_bgcolor": theme.PAPER,
            "font": {"family": _FONT, "size": theme.FONT_TEXT, "color": theme.INK},
            "title": {
                "text": f"<b>{_safe(view.title)}</b><br><span style='font-size:"
                f"{theme.FONT_TEXT}px;color:{theme.QUIET}'>{_safe(view.headline)}</span>",
                "font": {"size": theme.FONT_TITLE},
                "x": _MARGIN / width,
                "xanchor": "left",
                "y": 1 - 22 / (tall + _TOP + _BOTTOM),
                "yanchor": "top",
            },
            "showlegend": False,
            "hovermode": "closest",
            "hoverlabel": {"bgcolor": theme.PAPER, "font": {"color": theme.INK}, "align": "left"},
            "modebar": {
                "remove": CONFIG["modeBarButtonsToRemove"],
                "color": theme.QUIET,
                "activecolor": theme.INK,
                "bgcolor": theme.with_opacity(theme.PAPER, 0),
            },
            "xaxis": {"visible": False, "range": [0, inside + panel], "fixedrange": False},
            "yaxis": {"visible": False, "range": [tall, 0], "scaleanchor": "x"},
        },
    )
    if view.last:
        first = len(drawn.data) - len(_moving(view, inside, 0))
        places = list(range(first, len(drawn.data)))
        drawn.frames = [
            go.Frame(name=str(at), data=_moving(view, inside, at), traces=places)
            for at in range(view.last + 1)
        ]
        drawn.update_layout(updatemenus=[_play()], sliders=[_slider(view, stage)])
    return drawn


def _safe(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _outline(node: NodeView, left: float, grow: float = 0.0) -> tuple[list[Any], list[Any]]:
    """Give the outline of a node: round for a leaf, square for data, rounded for an operation."""
    w, h = node.width / 2 + grow, NODE_HEIGHT / 2 + grow
    r = {"leaf": h, "data": 0.0}.get(node.kind, 8.0)
    bend = 0.2929 * r
    x0, x1, y0, y1 = node.x + left - w, node.x + left + w, node.y - h, node.y + h
    xs = [x0 + r, x1 - r, x1 - bend, x1, x1, x1 - bend, x1 - r, x0 + r, x0 + bend, x0, x0,
          x0 + bend, x0 + r]  # fmt: skip
    ys = [y0, y0, y0 + bend, y0 + r, y1 - r, y1 - bend, y1, y1, y1 - bend, y1 - r, y0 + r,
          y0 + bend, y0]  # fmt: skip
    return [round(x, 1) for x in xs], [round(y, 1) for y in ys]


def _boxes(nodes: Sequence[NodeView], left: float, face: str, edge: str, **line: Any) -> go.Scatter:
    """Give one trace for all nodes that look alike."""
    xs: list[Any] = []
    ys: list[Any] = []
    for node in nodes:
        x, y = _outline(node, left)
        xs += [*x, None]
        ys += [*y, None]
    return go.Scatter(
        x=xs or [None], y=ys or [None], mode="lines", fill="toself", fillcolor=_COLORS[face],
        line={"color": _COLORS[edge], "width": 1.3, **line}, hoverinfo="skip",
    )  # fmt: skip


def _lines(edges: Sequence[EdgeView], left: float, color: str, width: float) -> go.Scatter:
    """Give one trace for all edges that look alike."""
    xs: list[Any] = []
    ys: list[Any] = []
    for edge in edges:
        points = edge.points
        for (x, y), (u, v) in pairwise(points):
            for t in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0) if x != u else (0.0, 1.0):
                turn = t * t * (3 - 2 * t)
                xs.append(round(x + (u - x) * turn + left, 1))
                ys.append(round(y + (v - y) * t, 1))
        xs.append(None)
        ys.append(None)
    return go.Scatter(
        x=xs or [None], y=ys or [None], mode="lines", hoverinfo="skip",
        line={"color": _COLORS[color], "width": width},
    )  # fmt: skip


def _text(
    nodes: Sequence[NodeView], left: float, shift: float, texts: list[str], **font: Any
) -> go.Scatter:
    return go.Scatter(
        x=[node.x + left for node in nodes], y=[node.y + shift for node in nodes], mode="text",
        text=texts, textposition="middle center", textfont=font, hoverinfo="skip",
    )  # fmt: skip


def _left(view: GraphView, inside: float) -> float:
    return (inside - view.width) / 2


def _still(view: GraphView, inside: float) -> list[go.Scatter]:
    """Give what no stage changes: edges, and boxes below those that a stage colours."""
    left = _left(view, inside)
    kinds = {kind: [node for node in view.nodes if node.kind == kind] for kind in _LOOKS}
    return [
        _lines(view.edges, left, "contour", 1.3),
        *(_boxes(kinds[kind], left, *_LOOKS[kind][:2], **_LOOKS[kind][2]) for kind in _LOOKS),
    ]


_LOOKS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "operation": ("paper", "frame", {}),
    "leaf": ("leaf-tint", "leaf", {}),
    "data": ("paper", "contour", {"dash": "2px,3px"}),
    "rest": ("rule", "frame", {}),
}


def _moving(view: GraphView, inside: float, stage: int) -> list[go.Scatter]:
    """Give what a stage changes: always as many traces, in the same order."""
    left = _left(view, inside)
    states = [node.state(stage) for node in view.nodes]

    def those(state: str, leaf: bool | None = None) -> list[NodeView]:
        return [
            node
            for node, its in zip(view.nodes, states, strict=True)
            if its == state and leaf in (None, node.kind == "leaf")
        ]

    passed = [edge for edge in view.edges if edge.stage is not None and edge.stage < stage]
    now = [edge for edge in view.edges if edge.stage is not None and edge.stage == stage]
    pieces = [node.piece(stage) for node in view.nodes]
    gradients = [
        f"<b>{fitted(_safe(piece.short), node.width - 8, 5.9)}</b>" if piece and piece.short else ""
        for node, piece in zip(view.nodes, pieces, strict=True)
    ]
    shift = [0.0 if text else 7.0 for text in gradients]
    titles = [f"<b>{_safe(fitted(n.title, n.width - 12, 7.1))}</b>" for n in view.nodes]
    lines = [_safe(fitted(n.line, n.width - 10, 5.9)) for n in view.nodes]
    ink, quiet, small = theme.INK, theme.QUIET, theme.FONT_SMALL
    title = _text(view.nodes, left, -15, titles, size=theme.FONT_HEADING, color=ink)
    line = _text(view.nodes, left, 1, lines, size=small, color=quiet)
    title.y = [y + up for y, up in zip(title.y, shift, strict=True)]
    line.y = [y + up for y, up in zip(line.y, shift, strict=True)]
    found = [
        _lines(passed, left, "gradient-soft", 1.3),
        _lines(now, left, "gradient", 2.6),
        _boxes(those("part"), left, "leaf-tint", "gradient", dash="5px,3px"),
        _boxes(those("arrived", leaf=True), left, "leaf-tint", "gradient"),
        _boxes(those("arrived", leaf=False), left, "paper", "gradient"),
        _boxes(those("passed"), left, "paper", "gradient-soft"),
        _boxes(those("current"), left, "gradient-tint", "gradient", width=3),
        title,
        line,
        _text(view.nodes, left, 16, gradients, size=small, color=_COLORS["gradient"]),
        _hover(view, left, stage),
    ]
    if view.last:
        found.append(
            go.Scatter(
                x=[inside + 24],
                y=[0],
                mode="text",
                text=[panel_text(view, stage)],
                textposition="bottom right",
                hoverinfo="skip",
                cliponaxis=False,
                textfont={"size": theme.FONT_TEXT, "color": ink},
            )
        )
    return found


def _hover(view: GraphView, left: float, stage: int) -> go.Scatter:
    """Give an unseen point in each node, which tells what is known of it."""
    told = []
    for node in view.nodes:
        piece = node.piece(stage)
        lines = [f"<b>{_safe(node.title)}</b>, {node.what}"]
        lines += [f"{label}: {'; '.join(_safe(text).splitlines())}" for label, text in node.facts]
        if piece is not None and piece.full:
            lines.append(f"gradient: {_safe(piece.full)}")
        told.append("<br>".join("<br>".join(textwrap.wrap(line, 70)) for line in lines))
    return go.Scatter(
        x=[node.x + left for node in view.nodes], y=[node.y for node in view.nodes],
        mode="markers", marker={"size": 36, "opacity": 0}, hovertext=told, hoverinfo="text",
    )  # fmt: skip


def panel_text(view: GraphView, stage: int) -> str:
    """Write what happens in a stage: the gradient that arrives, the rules, and what they send."""
    turn = view.current[stage]
    if not stage:
        root = view.nodes[-1]
        return "<br>".join([_heading("Before backward"), *_wrapped(
            f"{root.title}: {root.line}. Move the slider, or press play, to walk back."
        )])  # fmt: skip
    if stage == view.last:
        parts = [_heading("The leaves"), *_wrapped("backward() adds these to their grad:")]
        for at in turn[:8]:
            piece = view.nodes[at].piece(stage)
            parts += ["", f"<b>{_safe(view.nodes[at].title)}</b>"]
            parts += _wrapped(piece.full if piece else "", "gradient")
        return "<br>".join(parts)
    node = view.nodes[turn[0]]
    piece = node.piece(stage)
    parts = [_heading(node.title), "", "<b>gradient that arrives, g</b>"]
    parts += _wrapped(piece.full if piece else "", "gradient")
    for rule in node.rules[:4]:
        target = view.nodes[rule.target].title
        to = rule.to if target == rule.to else f"{rule.to}: {target}"
        parts += ["", f"<b>sends to {_safe(to)}</b>", *_wrapped(rule.code, mono=True)]
        parts += _wrapped(rule.sent, "gradient")
    return "<br>".join(parts)


def _heading(text: str) -> str:
    return f"<span style='font-size:{theme.FONT_HEADING + 1}px'><b>{_safe(text)}</b></span>"


def _wrapped(text: str, color: str = "ink", mono: bool = False) -> list[str]:
    """Break text into lines of the panel; at most eight."""
    lines: list[str] = []
    for line in text.splitlines():
        indent = " " * (len(line) - len(line.lstrip()))
        most = _PANEL_LETTERS if mono else _PANEL_LETTERS + 8
        lines += textwrap.wrap(line, most, subsequent_indent=indent + "  " * mono) or [""]
    if len(lines) > 8:
        lines = [*lines[:7], "…"]
    style = f"color:{_COLORS[color]}" + (f";font-family:{_MONO}" if mono else "")
    return [
        f"<span style='{style}'>{_safe(line).replace('  ', chr(160) * 2)}</span>" for line in lines
    ]


def _still_frame() -> dict[str, Any]:
    return {
        "mode": "immediate",
        "frame": {"duration": 0, "redraw": True},
        "transition": {"duration": 0},
    }


def _play() -> dict[str, Any]:
    going = {**_still_frame(), "frame": {"duration": 1100, "redraw": True}, "fromcurrent": True}
    return {
        "type": "buttons",
        "direction": "left",
        "showactive": False,
        "x": 0,
        "xanchor": "left",
        "y": 0,
        "yanchor": "top",
        "pad": {"t": 34, "l": 0},
        "buttons": [
            {"label": "▶", "method": "animate", "args": [None, going]},
            {"label": "❚❚", "method": "animate", "args": [[None], _still_frame()]},
        ],
    }


def _slider(view: GraphView, stage: int) -> dict[str, Any]:
    return {
        "active": stage,
        "x": 0,
        "xanchor": "left",
        "len": 1,
        "y": 0,
        "yanchor": "top",
        "pad": {"t": 22, "l": 96, "r": 10},
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
        "steps": [
            {
                "label": f"{at} / {view.last}  {_safe(words)}",
                "method": "animate",
                "args": [[str(at)], _still_frame()],
            }
            for at, words in enumerate(view.stages)
        ],
    }
