"""What leaves the notebook: one self-contained page that is stepped through without a kernel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from optlab.viz import browser
from optlab.viz.graphs.palette import PALETTE, legend
from optlab.viz.graphs.view import NODE_HEIGHT, GraphView

_PLACE = "optlab-graph"
_STATIC = Path(__file__).parent / "static"


def javascript() -> str:
    """Give the browser's code."""
    return browser.javascript(_STATIC)


def style_sheet() -> str:
    """Give the style sheet."""
    return browser.style_sheet(_PLACE, _STATIC)


def options(view: GraphView) -> dict[str, Any]:
    """Give what the browser has to know besides the graph."""
    return {
        "palette": PALETTE,
        "legend": legend({node.kind for node in view.nodes}, view.last > 0),
        "height": NODE_HEIGHT,
    }


def page(view: GraphView, stage: int, words: str) -> str:
    """Give one HTML page with everything in it; it asks no server for anything."""
    stored = {"view": view.to_dict(), "options": options(view), "stage": stage}
    return browser.html_page(_PLACE, view.title, stored, words, style_sheet(), javascript())
