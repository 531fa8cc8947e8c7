"""Export of a graph as one self-contained HTML page that needs no kernel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from optlab.viz import browser
from optlab.viz.graphs.palette import PALETTE, legend
from optlab.viz.graphs.view import NODE_HEIGHT, GraphView

APP = browser.App("optlab-graph", Path(__file__).parent / "static" / "graph.js")


def options(view: GraphView) -> dict[str, Any]:
    """Return what the browser needs besides the graph."""
    return {
        "palette": PALETTE,
        "legend": legend({node.kind for node in view.nodes}, view.last > 0),
        "height": NODE_HEIGHT,
    }


def stored(view: GraphView, stage: int) -> dict[str, Any]:
    """Return what a page holds."""
    return {"view": view.to_dict(), "options": options(view), "stage": stage}


def page(view: GraphView, stage: int, text: str) -> str:
    """Return a self-contained HTML page; it sends no requests."""
    return browser.html_page(APP, view.title, stored(view, stage), text)
