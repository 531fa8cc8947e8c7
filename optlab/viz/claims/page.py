"""A claim figure as the output of a notebook, and as a page of its own."""

from __future__ import annotations

import hashlib
import html
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from optlab.viz.backends.scene import Axis, Mark, mark_as_json
from optlab.viz.browser import App, live_html, stored_text
from optlab.viz.claims.image import WIDTH, claim_png
from optlab.viz.claims.labels import CHART_EDGE, CHART_HEIGHT
from optlab.viz.claims.marks import (
    CHART_WIDTHS,
    CHART_X,
    MAP_X,
    MAP_Y,
    chart_axis,
    chart_marks,
    here_marks,
    label_marks,
    map_marks,
    palettes,
    stops,
)
from optlab.viz.claims.view import ClaimView

APP = App("optlab-claim", Path(__file__).parent / "static" / "claim.js")


def stored(view: ClaimView) -> dict[str, Any]:
    """Return what the page holds: texts, and marks with the names of their colors."""
    by_theme = palettes(view)
    names = {name: name for name in by_theme["light"]}
    positions = range(len(view.labels))
    return {
        "sentence": view.sentence,
        "names": view.names,
        "labels": view.labels,
        "places": view.places,
        "at": view.at,
        "texts": [[view.value_text(i, at) for i in range(len(view.names))] for at in positions],
        "titles": [one.title for one in view.maps],
        "measured": view.measured,
        "question": view.question,
        "setting": view.setting,
        "note": view.note,
        "palettes": by_theme,
        "axes": {
            "map": {"x": _axis(MAP_X), "y": _axis(MAP_Y)},
            "chart": {"x": _axis(CHART_X), "y": _axis(chart_axis(view))},
        },
        "maps": [_sent(map_marks(view, at, names)) for at in positions],
        "chart": _sent(chart_marks(view, names)),
        "here": [_sent(here_marks(view, at, names)) for at in positions],
        "values": [
            {
                "width": width,
                "stops": stops(view, width),
                "marks": [_sent(label_marks(view, at, names, width)) for at in positions],
            }
            for width in CHART_WIDTHS
        ],
        "height": CHART_HEIGHT,
        "edge": CHART_EDGE,
    }


def _axis(axis: Axis) -> dict[str, Any]:
    return {"low": axis.low, "high": axis.high, "scale": axis.scale}


def _sent(marks: Sequence[Mark]) -> list[dict[str, Any]]:
    return [mark_as_json(mark) for mark in marks]


def live_output(view: ClaimView) -> str:
    """Return HTML that is alive where scripts may run, and holds a picture where they may not.

    There is no widget and no kernel: a claim that is the same has the same place, so that it keeps
    its position when its cell is moved.
    """
    held = {"claim": stored(view)}
    place = "claim-" + hashlib.sha256(stored_text(held).encode()).hexdigest()[:12]
    return live_html(
        APP, place, held | {"id": place}, view.plain_sentence, claim_png(view, scale=1.5),
        kernel=False, width=WIDTH,
        caption="A picture. To make it live, run the cell, or trust the notebook.",
    )  # fmt: skip


def full_page(view: ClaimView) -> str:
    """Return a self-contained page."""
    title = html.escape(view.plain_sentence)
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{title}</title>'
        '\n<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<link rel="icon" href="data:,">\n'
        "<style>body { margin: 0 auto; max-width: 760px; padding: 8px; background: #eceef1; }\n"
        "@media (prefers-color-scheme: dark) { body { background: #0d1014; } }</style>\n"
        f"</head>\n<body>\n{live_output(view)}\n</body>\n</html>\n"
    )
