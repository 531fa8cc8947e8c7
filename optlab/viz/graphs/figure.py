"""A graph as a plotly figure with a slider for its stages, which needs no kernel.

It has no frames: plotly would morph the outlines, and plays frames when a page opens.
"""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import plotly.graph_objects as go

from optlab.viz.backends.plotly.draw import page_options, traces_of
from optlab.viz.backends.scene import Text
from optlab.viz.graphs.marks import Versions, layers
from optlab.viz.graphs.palette import PALETTE
from optlab.viz.graphs.view import GraphView
from optlab.viz.style import theme
from optlab.viz.style.labels import escaped

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
    left = (inside - view.width) / 2
    note = textwrap.wrap(view.problem or _legend_text(view), int(width / 6.4))
    said = [escaped(line) for line in note]
    top = _TOP + 21.0 * (len(said) - 1)
    traces: list[dict[str, Any]] = []
    places: list[int] = []  # of the traces that stages change
    found, beside = _layers(view), inside - left + 24
    for layer in found:
        traces += layer.still
        places += range(len(traces), len(traces) + len(layer.looks))
        traces += layer.at(stage)
    traces.append(_hover(view))
    if view.last:
        places.append(len(traces))
        traces.append(_panel(view, beside, stage))
    drawn = go.Figure(
        data=traces,
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
                "text": f"<b>{escaped(view.title)}</b><br><span style='font-size:"
                f"{theme.FONT_TEXT}px;color:{theme.QUIET}'>{escaped(view.headline)}<br>{'<br>'.join(said)}</span>",
                "font": {"size": theme.FONT_TITLE},
                "x": _MARGIN / width,
                "xanchor": "left",
                "y": 1 - 18 / (tall + top + bottom),
                "yanchor": "top",
            },
            "showlegend": False,
            "hovermode": "closest",
            "xaxis": {"visible": False, "range": [-_PAD - left, inside - left + panel + _PAD]},
            "yaxis": {"visible": False, "range": [tall + _PAD, -_PAD], "scaleanchor": "x"},
        },
    )
    if view.last:
        moving = [
            [*(trace for layer in found for trace in layer.at(at)), _panel(view, beside, at)]
            for at in range(len(view.stages))
        ]
        drawn.update_layout(sliders=[_slider(view, stage, moving, places)])
    return drawn


def _legend_text(view: GraphView) -> str:
    """Return the meaning of shapes and colors."""
    said = "Round and blue: leaves, where gradients collect."
    if any(node.kind == "data" for node in view.nodes):
        said += " Dotted: data without gradient."
    if view.last:
        said += " Orange: the gradient g, |g| its norm; dashed: a part of it."
    return said


_NOTHING: dict[str, Any] = {"x": [None], "y": [None], "text": None}


@dataclass(frozen=True)
class _Layer:
    """A layer of a graph: still traces, the looks of others, and these in each stage by look."""

    still: list[dict[str, Any]]
    looks: dict[str, dict[str, Any]]
    changed: list[dict[str, dict[str, Any]]]

    def at(self, stage: int) -> list[dict[str, Any]]:
        """Return the traces of a stage: always the same number, in the same order."""
        found = self.changed[stage]
        return [found.get(look) or trace | _NOTHING for look, trace in self.looks.items()]


def _layers(view: GraphView) -> list[_Layer]:
    """Return the layers of a graph, each with its traces that no stage changes and the others."""
    trail = len(view.nodes) * len(view.stages) <= _MOST_TRAIL
    found = []
    for layer in layers(view, trail=trail):
        staying = [one for one in layer if _stays(one)]
        still = traces_of([mark for one in staying for mark in one.first])
        changed = []
        for at in range(len(view.stages)):
            moving = [one for one in layer if not (_stays(one) and one.at(at) is one.first)]
            changed.append(traces_of([mark for one in moving for mark in one.at(at)]))
        looks = {look: trace for traces in changed for look, trace in traces.items()}
        found.append(_Layer(list(still.values()), looks, changed))
    return found


def _stays(one: Versions) -> bool:
    """Whether what is drawn at first stays below what replaces it: all but texts."""
    return len(one.found) == 1 or not any(isinstance(mark, Text) for mark in one.first)


def _panel(view: GraphView, x: float, stage: int) -> dict[str, Any]:
    """Return the text beside the graph."""
    return {
        "type": "scatter", "x": [x], "y": [0], "mode": "text", "text": [panel_text(view, stage)],
        "textposition": "bottom right", "hoverinfo": "skip", "cliponaxis": False,
        "textfont": {"size": theme.FONT_TEXT, "color": theme.INK},
    }  # fmt: skip


def _hover(view: GraphView) -> dict[str, Any]:
    """Return an invisible point in each node with its hover text."""
    texts = []
    for node in view.nodes:
        lines = [f"<b>{escaped(node.title)}</b>, {node.what}"]
        lines += [f"{label}: {'; '.join(escaped(text).splitlines())}" for label, text in node.facts]
        texts.append("<br>".join("<br>".join(textwrap.wrap(line, 70)) for line in lines))
    return {
        "type": "scatter",
        "x": [node.x for node in view.nodes],
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
            parts += ["", f"<b>{escaped(title)}</b>", *_wrapped(gradient, "gradient")]
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
        parts += ["", f"<b>sends to {escaped(to)}</b>", *_wrapped(rule.code, mono=True)]
        parts += _wrapped(rule.sent, "gradient")
    return "<br>".join(parts)


def _heading(text: str) -> str:
    return f"<span style='font-size:{theme.FONT_HEADING + 1}px'><b>{escaped(text)}</b></span>"


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
    safe = [escaped(line).replace("  ", chr(160) * 2) for line in lines]
    return [f"<span style='{style}'>{line}</span>" for line in safe]


def _slider(
    view: GraphView, stage: int, moving: Sequence[list[dict[str, Any]]], places: list[int]
) -> dict[str, Any]:
    """Return the slider; each step contains the traces of its stage, so it needs no kernel."""
    steps = []
    for at, text in enumerate(view.stages):
        changed = {name: [trace.get(name) for trace in moving[at]] for name in ("x", "y", "text")}
        steps.append(
            {
                "label": f"{at} / {view.last}  {escaped(text)}",
                "method": "restyle",
                "args": [changed, places],
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
        "bordercolor": theme.QUIET,
        "currentvalue": {
            "prefix": "",
            "xanchor": "left",
            "font": {"size": theme.FONT_TEXT, "color": theme.INK},
        },
        "font": {"size": 1, "color": theme.PAPER},
        "steps": steps,
    }
