"""The explorer for the browser: constant options, and export as one self-contained HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from optlab.lab.problems.lookup import NAMED, find
from optlab.lab.problems.surface import Surface
from optlab.viz import browser
from optlab.viz.explorer.model import HOW_CHOSEN, Model
from optlab.viz.explorer.presets import PRESETS
from optlab.viz.explorer.state import optimizer_classes
from optlab.viz.explorer.surface_map import pack_surface_map
from optlab.viz.explorer.wrapping import WRAPPERS
from optlab.viz.style import theme

PLACE = "optlab-explorer"
STATIC = Path(__file__).parent / "static"


def browser_options() -> dict[str, Any]:
    """Return the constant options of the browser: menus, their texts, and colors."""
    surfaces = []
    for name, known in NAMED.items():
        found = known if isinstance(known, Surface) else None
        if found is not None or name == "quadratic":
            surfaces.append([name, (found or find(name)).title])
    return {
        "problems": surfaces,
        "presets": {name: preset.says for name, preset in PRESETS.items()},
        "classes": [name for name in optimizer_classes() if name != "AdamWithoutCorrection"],
        "around": {
            kind: {name: [s.low, s.high, s.step] for name, s in sliders.items()}
            for kind, sliders in WRAPPERS.items()
        },
        "palette": {"light": theme.LIGHT, "dark": theme.DARK},
        "conditions": HOW_CHOSEN,
    }


def page(model: Model, options: dict[str, Any]) -> str:
    """Return a page with live rates, playback and cursor; it sends no requests."""
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
