"""Export of a graph as one self-contained HTML page that needs no kernel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from optlab.viz import browser
from optlab.viz.graphs.palette import PALETTE, legend
from optlab.viz.graphs.view import NODE_HEIGHT, GraphView

PLACE = "optlab-graph"
STATIC = Path(__file__).parent / "static"


def options(view: GraphView) -> dict[str, Any]:
    """Return what the browser needs besides the graph."""
    return {
        "palette": PALETTE,
        "legend": legend({node.kind for node in view.nodes}, view.last > 0),
        "height": NODE_HEIGHT,
    }


def page(view: GraphView, stage: int, text: str) -> str:
    """Return a self-contained HTML page; it sends no requests."""
    stored = {"view": view.to_dict(), "options": options(view), "stage": stage}
    return browser.html_page(PLACE, view.title, stored, text, STATIC)
