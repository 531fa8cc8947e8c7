"""Export of a graph as one self-contained HTML page that needs no kernel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from optlab.viz import browser
from optlab.viz.backends.scene import mark_as_json
from optlab.viz.graphs.marks import drawing_as_json, sample
from optlab.viz.graphs.palette import PALETTE, legend
from optlab.viz.graphs.view import NODE_HEIGHT, GraphView
from optlab.viz.style import theme

APP = browser.App("optlab-graph", Path(__file__).parent / "static" / "graph.js")


def options(view: GraphView) -> dict[str, Any]:
    """Return what the browser needs besides the graph."""
    entries = legend({node.kind for node in view.nodes}, view.last > 0)
    return {
        "palette": PALETTE,
        "made": theme.scheme(),
        "drawing": drawing_as_json(view),
        "legend": [
            {"text": text, "marks": [mark_as_json(mark) for mark in sample(kind, 13, 7.5)]}
            for kind, text in entries
        ],
        "height": NODE_HEIGHT,
    }


def stored(view: GraphView, stage: int) -> dict[str, Any]:
    """Return what a page holds."""
    content = {name: value for name, value in view.to_dict().items() if name != "edges"}
    return {"view": content, "options": options(view), "stage": stage}


def page(view: GraphView, stage: int, text: str) -> str:
    """Return a self-contained HTML page; it sends no requests."""
    return browser.html_page(APP, view.title, stored(view, stage), text)
