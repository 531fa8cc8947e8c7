"""The explorer for the browser: its app, constant options, and export as one HTML page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from optlab.lab.problems.lookup import NAMED, find
from optlab.lab.problems.surface import Surface
from optlab.lab.sweep import LADDER
from optlab.optimizer import REQUIRED, Optimizer
from optlab.viz import browser
from optlab.viz.explorer.live import NOTCHES, given_to_page
from optlab.viz.explorer.model import HOW_CHOSEN, Model
from optlab.viz.explorer.palette import LINE_COLORS, PALETTE
from optlab.viz.explorer.presets import PLACES, PRESETS
from optlab.viz.explorer.runs import STEADINESS
from optlab.viz.explorer.state import (
    MOST_STEPS,
    REFERENCES,
    State,
    entry_of,
    optimizer_classes,
    preset_state,
    usual_template,
)
from optlab.viz.explorer.step_rules import ROLES
from optlab.viz.explorer.wrapping import WRAPPERS
from optlab.viz.style import theme

APP = browser.App("optlab-explorer", Path(__file__).parent / "static" / "explorer.js")


#: The optimizers of the menu "add", in groups, as textbooks have them.
FAMILIES = {
    "gradient descent": ["SGD", "Momentum", "ASGD", "LarsMomentum", "Dpsgd"],
    "by the sign": ["Rprop", "Lion"],
    "a rate for each direction": ["Adagrad", "DecayedAdagrad", "Adadelta", "RMSProp", "Ftrl"],
    "Adam and its relatives": ["Adam", "AdamW", "Adamax", "NAdam", "RAdam", "Lamb"],
    "whole matrices": ["Muon", "Shampoo"],
    "for comparison": ["LBFGS"],
}
#: Names of optimizers in texts, where they are not those of their classes.
TITLES = {
    "SGD": "Gradient descent (SGD)",
    "ASGD": "Averaged SGD (ASGD)",
    "LarsMomentum": "LARS (momentum)",
    "Dpsgd": "Private SGD (DP-SGD)",
    "DecayedAdagrad": "Decayed Adagrad",
    "Ftrl": "FTRL",
    "Lamb": "LAMB",
    "LBFGS": "L-BFGS",
    "ConjugateGradient": "Conjugate gradient",
    "SteepestDescent": "Steepest descent",
    "Newton": "Newton's method",
}


def browser_options() -> dict[str, Any]:
    """Return the constant options of the browser: menus, their texts, and colors."""
    surfaces = []
    for name, known in NAMED.items():
        found = known if isinstance(known, Surface) else None
        if found is not None or name == "quadratic":
            surfaces.append([name, (found or find(name)).title])
    presets: dict[str, Any] = {}
    for name, preset in PRESETS.items():
        state = preset_state(name, State())
        start = find(state.problem).start if state.start is None else state.start  # type: ignore[union-attr]
        presets[name] = {
            "claim": preset.claim,
            "short": preset.short,
            "parts": [list(part) for part in preset.parts],
            "state": {**state.to_dict(), "start": list(start)},
        }
    order, styles = theme.all_styles(theme.STYLES)
    return {
        "problems": surfaces,
        "presets": presets,
        "places": PLACES,
        "families": FAMILIES,
        "titles": TITLES,
        "classes": [name for name in optimizer_classes() if name != "AdamWithoutCorrection"],
        "references": [cls.__name__ for cls in REFERENCES],
        "paying": [
            name
            for name, cls in optimizer_classes().items()
            if getattr(cls, "needs_closure", False)
        ],
        "around": {
            kind: {name: [s.low, s.high, s.step, s.first] for name, s in sliders.items()}
            for kind, sliders in WRAPPERS.items()
        },
        "palette": PALETTE,
        "lines": {role: list(color) for role, color in LINE_COLORS.items()},
        "conditions": HOW_CHOSEN,
        "ladder": list(LADDER),
        "steadiness": STEADINESS,
        "mostSteps": MOST_STEPS,
        "notches": {name: list(values) for name, values in NOTCHES.items()},
        "roles": ROLES,
        "order": list(order),
        "styles": [
            {
                "light": theme.light(style.color),
                "dark": theme.dark(style.color),
                "dash": list(style.dash),
                "marker": style.marker,
            }
            for style in styles
        ],
        "usual": {
            name: entry_of(name, usual_template(cls)).settings
            for name, cls in optimizer_classes().items()
            if name != "AdamWithoutCorrection"
        },
        "defaults": {
            name: {
                key: None if value is REQUIRED else value
                for key, value in cls.hyperparameters.items()
                if not callable(value)
            }
            for name, cls in optimizer_classes().items()
            if name != "AdamWithoutCorrection"
        },
    }


def page(
    model: Model, options: dict[str, Any], own: Mapping[str, Optimizer], *, library: bool = False
) -> str:
    """Return a page that needs no kernel; it sends no requests."""
    stored = {
        "state": model.state.to_dict(),
        "options": options,
        "given": given_to_page(model, own, library=library),
    }
    return browser.html_page(APP, model.title, stored, model.summary())
