"""What leaves the notebook: one self-contained page that is stepped through without a kernel."""

from __future__ import annotations

import html
import json
from functools import cache
from pathlib import Path
from typing import Any

from optlab.viz.graphs.palette import PALETTE, legend
from optlab.viz.graphs.view import NODE_HEIGHT, GraphView

_STATIC = Path(__file__).parent / "static"


@cache
def javascript() -> str:
    """Give the browser's code."""
    return making() + (_STATIC / "graph.js").read_text(encoding="utf-8")


@cache
def making() -> str:
    """Give the part of it that makes elements."""
    return (_STATIC / "make.js").read_text(encoding="utf-8")


@cache
def style_sheet() -> str:
    """Give the style sheet."""
    return (_STATIC / "graph.css").read_text(encoding="utf-8")


def options(view: GraphView) -> dict[str, Any]:
    """Give what the browser has to know besides the graph."""
    return {
        "palette": PALETTE,
        "legend": legend({node.kind for node in view.nodes}, view.last > 0),
        "height": NODE_HEIGHT,
    }


_SHIM = """
const stored = JSON.parse(document.getElementById("optlab-data").textContent);
const nothing = () => {};
const model = { get: (name) => stored[name], set: (name, value) => { stored[name] = value; } };
for (const name of ["on", "off", "save_changes"]) model[name] = nothing;
render({ model, el: document.getElementById("%s") });
"""


def page(view: GraphView, stage: int, words: str) -> str:
    """Give one HTML page with everything in it; it asks no server for anything."""
    stored = {"view": view.to_dict(), "options": options(view), "stage": stage}
    return page_around("optlab-graph", view.title, stored, words, style_sheet(), javascript())


def page_around(
    place: str, title: str, stored: dict[str, Any], words: str, style: str, code: str
) -> str:
    """Give the page of a widget that needs no kernel.

    Parameters
    ----------
    place : str
        The id of the element that the widget is drawn in.
    title, words : str
        What the page is called, and what it says where no script runs.
    stored : dict
        The widget's state, by the names of its traits.
    style, code : str
        Its style sheet, and its module, which has ``render``.
    """
    data = json.dumps(stored, ensure_ascii=False).replace("<", "\\u003c")
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>{html.escape(title)} · optlab</title>
<style>
body {{ margin: 0; padding: 12px; background: #eceef1; }}
@media (prefers-color-scheme: dark) {{ body {{ background: #0d1014; }} }}
#{place} {{ max-width: 1300px; margin: auto; }}
{style}</style>
</head>
<body>
<div id="{place}"></div>
<noscript><pre>{html.escape(words)}</pre></noscript>
<script type="application/json" id="optlab-data">{data}</script>
<script type="module">
{code}
{_SHIM % place}</script>
</body>
</html>
"""
