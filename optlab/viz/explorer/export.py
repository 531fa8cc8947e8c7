"""What leaves the notebook: one self-contained page in which rate, play and scrub stay alive."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from optlab.viz import browser
from optlab.viz.explorer.land import pack_surface_map
from optlab.viz.explorer.model import Model

_PLACE = "optlab-explorer"
_STATIC = Path(__file__).parent / "static"


def javascript() -> str:
    """Give the browser's code."""
    return browser.javascript(_STATIC)


def style_sheet() -> str:
    """Give the style sheet."""
    return browser.style_sheet(_PLACE, _STATIC)


def page(model: Model, options: dict[str, Any]) -> str:
    """Give one HTML page with everything in it; it asks no server for anything."""
    header, buffers = model.pack()
    land: dict[str, Any] = {"serial": 1}
    land_buffers = b""
    if model.surface is not None:
        packed, land_buffers = pack_surface_map(model.surface_map, model.surface)
        land |= packed
    stored = {
        "state": model.state.to_dict(),
        "data": {**header, "serial": 1},
        "land": land,
        "options": options,
        "buffers": buffers,
        "land_buffers": land_buffers,
    }
    words = model.summary()
    return browser.html_page(_PLACE, model.title, stored, words, style_sheet(), javascript())
