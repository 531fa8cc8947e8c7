"""What a page needs to run by itself: captured surfaces, rules, noise; and runs that need Python.

A page runs an optimizer on a surface if both can be captured (`optlab.plan.javascript_module`).
What cannot is recorded here, as a ladder of rates, and asked of the kernel again when it changes.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from optlab.lab.problems.lookup import NAMED
from optlab.lab.problems.surface import Noise, Surface
from optlab.lab.sweep import LADDER
from optlab.optimizer import Optimizer, capture_rule
from optlab.optimizer.wrappers import layers_of
from optlab.plan import CaptureError, Plan, capture_value_and_grad, javascript_module
from optlab.plan.javascript.rule import Rule
from optlab.viz.explorer.curve import curve_view
from optlab.viz.explorer.model import Model, has_no_minimum
from optlab.viz.explorer.presets import PRESETS
from optlab.viz.explorer.runs import initial_slots
from optlab.viz.explorer.state import (
    OWN,
    Entry,
    State,
    optimizer_classes,
    preset_state,
    second_setting,
    template_of,
)
from optlab.viz.explorer.step_formulas import rule_as_lists
from optlab.viz.explorer.step_rules import rule_of

LEAST_STEPS = 400
"""A page can take so many steps at least."""
_MOMENTA = (0.0, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99)
_SQUARES = (0.5, 0.9, 0.95, 0.99, 0.995, 0.999, 0.9999)
NOTCHES: dict[str, tuple[float, ...]] = {
    "momentum": _MOMENTA,
    "beta1": _MOMENTA,
    "rho": _SQUARES,
    "beta2": (0.3, 0.9, 0.99, 0.999),
    "decay": _SQUARES,
    "weight_decay": (0.0, 0.001, 0.01, 0.1),
    "lr_power": (-0.9, -0.7, -0.5, -0.3, -0.1),
}
"""The values that settings have on a slider of a page, beside the given ones."""
_ALWAYS = ("beta2",)
_POINTS = 9
_GRID = (120, 90)
_CURVE = 300

_plans: WeakKeyDictionary[Surface, Plan | None] = WeakKeyDictionary()
_descriptions: WeakKeyDictionary[Surface, dict[str, Any]] = WeakKeyDictionary()


def plan_of(surface: Surface) -> Plan | None:
    """Return value and gradient of a surface as a plan; None if it cannot be captured.

    A function that does not promise to be repeatable is captured too, and its plan compared with it
    at some points.
    """
    if surface not in _plans:
        _plans[surface] = surface.plan if surface.repeatable else _compared_plan(surface)
    return _plans[surface]


def _compared_plan(surface: Surface) -> Plan | None:
    shares = np.linspace(0.03, 0.97, _POINTS)
    low, high = np.array(surface.domain).T[..., None]
    turned = np.stack([shares, np.roll(shares[::-1], 4)][: surface.dimension])
    points = list((low + turned * (high - low)).T)
    try:
        with np.errstate(all="ignore"):
            plan = capture_value_and_grad(surface.function, *map(np.float64, surface.start))
            for point in [np.array(surface.start), *points]:
                found, wanted = plan.replay(*point), surface.differentiate(*point)
                if np.shape(found[0]) != () or not np.array_equal(found, wanted, equal_nan=True):
                    return None
        javascript_module(plan, {})
    except Exception:  # noqa: BLE001 - of a user's function: the kernel computes it
        return None
    return plan


def rule_key(entry: Entry, own: Mapping[str, Optimizer]) -> str:
    """Return the name of an optimizer's rule in the program of a page."""
    kind = entry.around.get("kind", "")
    if entry.name in own and is_own(own[entry.name]):
        return f"own|{entry.name}|{kind}"
    return f"{entry.kind}|{kind}" if kind else entry.kind


def is_own(template: Optimizer) -> bool:
    """Return whether an entry alone does not describe a template: its class, or decay and clip."""
    inner, _ = layers_of(template)
    known = optimizer_classes().get(type(inner).__name__) is type(inner)
    functions = any(callable(value) for value in inner.settings.values())
    return not known or functions or inner.decay_and_clip != (None, None)


def program_of(
    states: Sequence[State],
    surface: Surface | None,
    own: Mapping[str, Optimizer],
    library: Iterable[str] = (),
    kept: Surface | None = None,
) -> dict[str, Any]:
    """Return the module of a page, and what describes its rules.

    Parameters
    ----------
    states : sequence of State
        The state that is shown, and the presets.
    surface : Surface or None
        That of the first state.
    own : mapping of str to Optimizer
        Templates given as objects.
    library : iterable of str
        Further classes of the library, of which the elementwise ones are taken.
    kept : Surface, optional
        A function of the user's own, to which a page leads back from others.
    """
    now = states[0]
    plans: dict[str, Plan] = {}
    problems: dict[str, Any] = {}
    for name, known in NAMED.items():
        if isinstance(known, Surface) and known.plan is not None:
            plans[name], problems[name] = known.plan, describe(known)
    if kept is not None and now.problem != OWN:
        problems[OWN] = describe_once(kept)
        if (plan := plan_of(kept)) is not None:
            plans[OWN] = plan
    if surface is not None:
        plan = plan_of(surface)
        problems[now.problem] = describe(surface)
        if plan is not None:
            plans[now.problem] = plan
        else:
            plans.pop(now.problem, None)
    groups: dict[str, list[tuple[Entry, int]]] = {}
    for state in states:
        for entry in state.optimizers:
            key = rule_key(entry, own if state is now else {})
            groups.setdefault(key, []).append((entry, state.steps))
    offered = [kind for kind in library if kind not in groups]
    for kind in offered:
        groups[kind] = [(Entry(kind, kind), now.steps)]
    captured: dict[str, Rule] = {}
    described: dict[str, Any] = {}
    for key, users in groups.items():
        entry = users[0][0]
        steps = max(LEAST_STEPS, *(steps for _, steps in users))
        template = template_of(entry, dict(own) if key.startswith("own|") else {})
        try:
            rule = _captured(key, template, [one for one, _ in users], steps)
        except CaptureError:
            continue
        if key in offered and _is_fixed(rule):  # for one number of coordinates alone
            continue
        captured[key] = rule
        described[key] = _described(template, rule, key.startswith("own|"))
    sizes = {len(plan.signature) for plan in plans.values()}
    fixed = {key for key, rule in captured.items() if _is_fixed(rule)}
    if fixed and len(sizes) > 1:  # a rule of norms is for one number of coordinates
        dimension = 2 if surface is None else surface.dimension
        plans = {n: p for n, p in plans.items() if len(p.signature) == dimension}
        problems = {n: one for n, one in problems.items() if n in plans or n == now.problem}
        if dimension != 2:
            captured = {key: rule for key, rule in captured.items() if key not in fixed}
    source = javascript_module(plans, captured) if plans else ""
    return {
        "program": source,
        "programKey": hashlib.sha256(source.encode("utf-8")).hexdigest()[:16],
        "problems": problems,
        "rules": {key: one for key, one in described.items() if key in captured},
        "own": {name: type(layers_of(one)[0]).__name__ for name, one in own.items() if is_own(one)},
    }


def _is_fixed(rule: Rule) -> bool:
    """Return whether a rule is written out for its number of elements."""
    forms = [form for part in rule.parts for one in part.variants for form in one.forms]
    return any(isinstance(form.plan, Plan) for form in forms)


def _captured(key: str, template: Optimizer, users: Sequence[Entry], steps: int) -> Rule:
    """Capture an optimizer with the notches of its sliders, and the settings of all its users."""
    inner, layers = layers_of(template)
    given = dict(inner.settings)
    second = second_setting(given)
    notches: dict[str, list[Any]] = {}
    for name, value in given.items():
        if name == "learning_rate" or not isinstance(value, (bool, int, float)):
            continue
        values = list(NOTCHES[name]) if name in (second, *_ALWAYS) and name in NOTCHES else []
        values += [one.settings[name] for one in users if name in one.settings]
        if values:
            notches[name] = values
    for layer in layers:
        own = getattr(layer, "average", layer).own_settings
        for name in own:
            values = [one.around[name] for one in users if name in one.around]
            if values:
                notches[name] = values
    cls: Any = type(inner)
    around = json.dumps(users[0].around)

    def capture(notches: dict[str, list[Any]]) -> Rule:
        if key.startswith("own|"):
            return capture_rule(template, steps, notches)
        text = {k: sorted({repr(v): v for v in values}.items()) for k, values in notches.items()}
        return _library_rule(cls, around, json.dumps(text), steps)

    found = capture(notches)
    if any("learning_rate" in one.settings for part in found.parts for one in part.variants):
        # The rule branches on its rate, so each has a form of its own, as Ftrl's.
        rates = [*LADDER, *(one.rate for one in users if one.rate is not None)]
        found = capture({**notches, "learning_rate": rates})
    return found


@cache
def _library_rule(cls: type[Optimizer], around: str, notches: str, steps: int) -> Rule:
    """Capture a class of the library; once for the same notches."""
    values = {name: [value for _, value in pairs] for name, pairs in json.loads(notches).items()}
    settings = {name: each[0] for name, each in values.items() if name in cls.hyperparameters}
    entry = Entry(cls.__name__, cls.__name__, settings, None, json.loads(around))
    return capture_rule(template_of(entry, {}), steps, values)


def _described(template: Optimizer, rule: Rule, own: bool) -> dict[str, Any]:
    """Return what a page shows of a rule: settings, memory, and the formula of a step."""
    inner, _ = layers_of(template)
    slots = list(initial_slots(template))
    initial = {
        name: start if isinstance(start, (int, float)) else f"h.{start}" if start else None
        for part in rule.parts
        for variant in part.variants
        for name, start in variant.slots.items()
    }
    settings = {
        name: value
        for name, value in inner.settings.items()
        if name != "learning_rate" and not callable(value)
    }
    return {
        "settings": settings,
        "second": second_setting(settings),
        "initial": initial,
        "formula": rule_as_lists(rule_of(template, slots, [])),
        "steps": rule.steps,
    }


def describe(surface: Surface) -> dict[str, Any]:
    """Return what a page shows of a surface."""
    minimum = surface.minimum_value
    return {
        "title": surface.title,
        "shows": surface.shows,
        "domain": [list(interval) for interval in surface.domain],
        "start": list(surface.start),
        "minima": [list(point) for point in surface.minima],
        "minimum": None if minimum is None or not math.isfinite(minimum) else float(minimum),
        "noise": float(surface.noise),
        "pattern": list(surface.pattern),
        "open": has_no_minimum(surface),
        **({"view": asdict(curve_view(surface))} if surface.dimension == 1 else {}),
    }


def describe_once(surface: Surface) -> dict[str, Any]:
    """Return what a page shows of a surface, which is evaluated for it once."""
    if surface not in _descriptions:
        _descriptions[surface] = describe(surface)
    return _descriptions[surface]


def noise_rows(seed: int, steps: int) -> str:
    """Return the unit normal numbers of a run, one row of two a step, as float64 in base64."""
    unit = Noise(1.0, 2, seed)
    rows = np.stack([unit.at(step) for step in range(steps)])
    return base64.b64encode(rows.astype("<f8").tobytes()).decode("ascii")


def heights_of(surface: Surface) -> dict[str, Any]:
    """Return the heights of a surface that was not captured, on a grid; of a curve, its points."""
    if surface.dimension == 1:
        [(low, high)] = surface.domain
        x = np.linspace(low, high, _CURVE)
        values = surface.values(x)
        return {"curve": [[float(a), _finite(b)] for a, b in zip(x, values, strict=True)]}
    (x_low, x_high), (y_low, y_high) = surface.domain
    columns, rows = _GRID
    grid = np.meshgrid(np.linspace(x_low, x_high, columns), np.linspace(y_low, y_high, rows))
    with np.errstate(all="ignore"):
        found = np.asarray(surface.values(*grid)).astype("<f4")
    return {
        "heights": {
            "box": [x_low, x_high, y_low, y_high],
            "columns": columns,
            "rows": rows,
            "values": base64.b64encode(found.tobytes()).decode("ascii"),
        }
    }


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def given_whole_and_small(
    model: Model, own: Mapping[str, Optimizer]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what a page is given by its kernel, and what is saved with a notebook."""
    whole = given_to_page(model, own)
    if whole["network"] or (whole["program"] and "recorded" not in whole):
        return whole, whole  # the page computes all of it
    return whole, given_to_page(model, own, whole=False)


def given_to_page(
    model: Model,
    own: Mapping[str, Optimizer],
    *,
    presets: bool = True,
    library: bool = False,
    whole: bool = True,
) -> dict[str, Any]:
    """Return everything from which a page computes what it shows, as plain data.

    Parameters
    ----------
    model : Model
        Of the state that is shown.
    own : mapping of str to Optimizer
        Templates given as objects.
    presets, library : bool
        Whether it holds the presets, and all optimizers of the library.
    whole : bool
        Whether it holds the runs of all rates where the page does not compute them, and the presets
        where the function of the page needs the kernel anyway. Otherwise it is a small page, which
        the kernel completes.
    """
    state = model.state
    if model.network:
        header, buffers = model.pack()
        recorded = {**header, "numbers": base64.b64encode(buffers).decode("ascii")}
        plane = getattr(model.problem, "plane", None)
        of_plane = {} if plane is None else {"plane": plane}
        return {
            "network": True, "title": model.title, "recorded": recorded, "problems": {},
            "axes": model.axes, **of_plane,
        }  # fmt: skip
    surface = model.surface
    live = surface is not None and plan_of(surface) is not None
    states = [state]
    if presets and (whole or live):
        states += [preset_state(name, state) for name in PRESETS]
    names = [name for name in optimizer_classes() if name != "AdamWithoutCorrection"]
    if whole or live:
        found = program_of(states, surface, own, names if library else (), model.own_surface)
    else:
        assert surface is not None
        found = {"program": "", "programKey": "", "rules": {}, "own": {}}
        found["problems"] = {state.problem: describe(surface)}
        if model.own_surface is not None and state.problem != OWN:
            found["problems"][OWN] = describe_once(model.own_surface)
    found["network"] = False
    if surface is not None and not live:
        if model.heights is None:
            model.heights = heights_of(surface)
        extra = model.heights
        if "curve" in extra:
            found["problems"][state.problem]["curve"] = extra["curve"]
        else:
            found |= extra
    kept = [
        entry.name
        for entry in state.optimizers
        if not (live and rule_key(entry, own) in found["rules"])
    ]
    if kept:
        header, buffers = model.pack(kept, whole=whole)
        numbers = base64.b64encode(buffers).decode("ascii")
        asked = {name: getattr(state, name) for name in ("problem", "steps", "seed", "noise")}
        found["recorded"] = {
            **header,
            "state": {**asked, "start": list(model.start)},
            "numbers": numbers,
        }
    found["seed"] = state.seed
    longest = max([LEAST_STEPS, *(one.steps for one in states)])
    found["noise"] = noise_rows(state.seed, longest) if found["program"] else ""
    function = getattr(surface, "function", None) if state.problem == OWN else None
    name = getattr(function, "__name__", "")
    found["ownName"] = name if name.isidentifier() else ""
    return found
