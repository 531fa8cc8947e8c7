"""Export of the explorer as one self-contained HTML page with live rates, playback and cursor."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from optlab.viz import browser
from optlab.viz.explorer.model import Model
from optlab.viz.explorer.surface_map import pack_surface_map

PLACE = "optlab-explorer"
STATIC = Path(__file__).parent / "static"


def page(model: Model, options: dict[str, Any]) -> str:
    """Return a self-contained HTML page; it sends no requests."""
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
    return browser.html_page(PLACE, model.title, stored, model.summary(), STATIC)
