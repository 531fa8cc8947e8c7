"""Constant options of the browser: menus, their texts, and colors."""

from __future__ import annotations

from typing import Any

from optlab.lab.problems.lookup import NAMED, find
from optlab.lab.problems.surface import Surface
from optlab.viz.explorer.model import HOW_CHOSEN
from optlab.viz.explorer.presets import PRESETS
from optlab.viz.explorer.state import optimizer_classes
from optlab.viz.explorer.wrapping import WRAPPERS
from optlab.viz.style import theme


def browser_options() -> dict[str, Any]:
    """Return the constant options of the browser."""
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
