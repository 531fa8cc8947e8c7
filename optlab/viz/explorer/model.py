"""Model of the explorer: everything drawn for a state, independent of widget and browser."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from optlab.lab.problems.lookup import find
from optlab.lab.problems.noise import noisy
from optlab.lab.problems.surface import Surface
from optlab.optimizer import Optimizer
from optlab.optimizer.wrappers import layers_of
from optlab.viz.explorer.presets import PRESETS, ShownRun
from optlab.viz.explorer.recorded import RecordedRuns
from optlab.viz.explorer.runs import (
    LADDER,
    LAST_BIT,
    NEARBY,
    Nearby,
    Runs,
    best_of,
    ends_alike,
    first_of,
    joined_runs,
    ladder_with,
    leaves_view,
    lowest_loss,
    run_ladder,
    run_ladder_and_nearby,
    rung,
    runs_of_trace,
    sensitive_from,
)
from optlab.viz.explorer.state import OWN, Entry, State, second_setting, template_of
from optlab.viz.explorer.step_formulas import Rule, fill_notes, fill_rows, rule_as_lists
from optlab.viz.explorer.step_rules import rule_of
from optlab.viz.explorer.surface_map import (
    MAP_HEIGHT,
    MAP_WIDTH,
    SurfaceMap,
    choose_box,
    make_surface_map,
)
from optlab.viz.explorer.wrapping import describe_wrapping
from optlab.viz.style import theme
from optlab.viz.style.geometry import Box, Floats
from optlab.viz.style.text import format_number, format_point, steps_text
from optlab.viz.style.theme import Style

_LARGEST = float(np.finfo(np.float32).max)
AXES = ("x", "y")
MOST_RUNGS = 9
"""So many rates are added to a ladder at most, until its best is not at an end."""
_MOST_TRIED = 3
"""So many of the best rates are run again at most where each run is one of its own."""
_RUNGS = (
    "the rates 1, 2 and 5 times a power of ten from "
    f"{format_number(LADDER[0])} to {format_number(LADDER[-1])}"
)
_BEST = (
    f"the best of {_RUNGS}, and beyond while the best is an end: where log10(loss − minimum) has "
    "the lowest mean over the run, among rates whose run neither rounding nor 1 % of the rate "
    "leads elsewhere, if there are any"
)
HOW_CHOSEN = {
    "best": f"for each optimizer {_BEST}",
    "equal": f"the same for all, of {_RUNGS}",
    "custom": "set by hand",
    "others": f"; where none was set, {_BEST}",
}
"""How each mode chooses the rates, and how those are chosen that nobody has set in "custom"."""


class Model:
    """All runs of a state, and the surface under their paths.

    Parameters
    ----------
    state : State
    problem : Surface or Comparison of a network
    own : dict of str to Optimizer
        Templates given as objects.
    box : Box, optional
        The visible part of the surface; by default it fits the paths.

    Attributes
    ----------
    runs : dict of str to Runs
    styles : dict of str to Style
    floor : float
        The minimum if it is known, else the lowest loss seen.
    best : dict of str to int
        Index of each optimizer's best rate.
    equal : float or None
        The best common rate.
    box : Box or None
        None for networks.
    """

    def __init__(
        self,
        state: State,
        problem: Any,
        own: Mapping[str, Optimizer] | None = None,
        box: Box | None = None,
    ) -> None:
        self.state = state
        self.problem = problem
        self.network = hasattr(problem, "traces")
        self._own = dict(own or {})
        self._sensitive: dict[tuple[str, float], int] = {}
        self._nearby: dict[tuple[str, float], Nearby] = {}
        #: The problem, with the noise of the state.
        self.surface: Surface | None = None if self.network else _with_noise(problem, state.noise)
        self.runs: dict[str, Runs] = self._network_runs() if self.network else self._runs(own or {})
        kinds = {
            entry.name: theme.variant_of(entry.kind, entry.settings, entry.around.get("kind", ""))
            for entry in state.optimizers
        }
        self.styles: dict[str, Style] = theme.assign_styles(kinds)
        known = None if self.surface is None else self.surface.minimum_value
        lowest = lowest_loss(list(self.runs.values()))
        self.floor_known = known is not None and lowest >= known - 1e-9 * max(1.0, abs(known))
        self.floor = float(known) if known is not None and self.floor_known else lowest
        #: Losses are sent relative to this value, so that float32 keeps their digits.
        self.base = self.floor if self.floor_known else 0.0
        #: Whether the loss has no lowest point in view, so that no rate is the best.
        self.open = self.surface is not None and has_no_minimum(self.surface)
        self.criteria = {name: self._criterion(runs) for name, runs in self.runs.items()}
        self.best = {}
        for entry in state.optimizers if not self.network else ():
            self._extend(entry, own or {})
        if self.network:
            self.best = {n: best_of(self.criteria[n], r.stopped) for n, r in self.runs.items()}
        self.equal = None if self.network else self._equal_rate()
        if state.selected not in self.runs:
            state.selected = list(self.runs)[-1]
        state.step = max(0, min(state.step, state.steps))
        self.box = box
        if self.surface is not None and (box is None or not self._holds_start(box)):
            aspect = MAP_WIDTH / MAP_HEIGHT
            paths = self.shown_paths() if len(self.start) == 2 else self.visited()
            self.box = choose_box(self.surface, self.start, paths, aspect)
        self._surface_map: SurfaceMap | None = None
        #: What a page draws as the ground of a function that was not captured, once it is known. It
        #: takes 12,000 values: another model of the same problem has it from here.
        self.heights: dict[str, Any] | None = None
        #: A function of the user's own, to which a page leads back from other problems.
        self.own_surface: Surface | None = None

    # Runs ---------------------------------------------------------------------------------------

    def _runs(self, own: Mapping[str, Optimizer]) -> dict[str, Runs]:
        assert self.surface is not None
        state, surface = self.state, self.surface
        start = surface.start if state.start is None else surface.checked_start(state.start)
        with np.errstate(all="ignore"):
            value, _ = surface.value_and_gradient(start)
        if not math.isfinite(value):
            raise ValueError(
                f"the loss at the start {format_point(start)} is {value}; choose another start."
            )
        self.start: tuple[float, ...] = start
        state.start = list(start)
        return {
            entry.name: self._choice(entry, own, ladder_with(entry.rate))
            for entry in state.optimizers
        }

    def _ladder(
        self, entry: Entry, own: Mapping[str, Optimizer], rates: Sequence[float], starts: Any = None
    ) -> Runs:
        """Run an optimizer at rates, by default all from the start of the state."""
        assert self.surface is not None
        state, starts = self.state, self.start if starts is None else starts
        template = template_of(entry, dict(own))
        return run_ladder(self.surface, template, rates, starts, state.steps, state.seed)

    def _choice(self, entry: Entry, own: Mapping[str, Optimizer], rates: Sequence[float]) -> Runs:
        """Run an optimizer at rates of which one may be chosen."""
        assert self.surface is not None
        if self._by_hand(entry):
            return self._ladder(entry, own, rates)
        template, state = template_of(entry, dict(own)), self.state
        runs, nearby = run_ladder_and_nearby(
            self.surface, template, rates, self.start, state.steps, state.seed
        )
        self._nearby |= {(entry.name, rate): found for rate, found in nearby.items()}
        return runs

    def _by_hand(self, entry: Entry) -> bool:
        return self.state.mode == "equal" or (
            self.state.mode == "custom" and entry.rate is not None
        )

    def _criterion(self, runs: Runs) -> Floats:
        # Beyond the ladder a run may come lower than all that were seen when the floor was chosen.
        floor = self.floor if self.floor_known else min(self.floor, lowest_loss([runs]))
        found = runs.criterion(floor)
        if self.open and self.surface is not None:
            return np.where(leaves_view(runs, self.surface.domain), np.inf, found)
        return found

    def _extend(self, entry: Entry, own: Mapping[str, Optimizer]) -> None:
        """Choose the best rate; while it is an end of the ladder, add a rung there."""
        name, ends = entry.name, [LADDER[0], LADDER[-1]]
        for turn in range(MOST_RUNGS + 1):
            runs, criteria = self.runs[name], self.criteria[name]
            # A rate between the rungs is no candidate: the note states "best of" the ladder.
            inside = [ends[0] <= rate <= ends[1] and is_rung(rate) for rate in runs.rates]
            self.best[name] = best_of(np.where(inside, criteria, np.inf), runs.stopped)
            best = runs.rates[self.best[name]]
            if best not in ends or not np.isfinite(criteria[inside]).any():
                self._prefer_steady(entry, np.array(inside) & ~np.isin(runs.rates, ends))
                return
            if turn == MOST_RUNGS:  # the best is not to move, or always farther: one of the ladder
                among = np.isin(runs.rates, LADDER[1:-1])
                self.best[name] = best_of(np.where(among, criteria, np.inf), runs.stopped)
                self._prefer_steady(entry, among)
                return
            side = ends.index(best)
            ends[side] = rung(best, 1 if side else -1)
            if ends[side] not in runs.rates:
                self.runs[name] = joined_runs(runs, self._choice(entry, own, [ends[side]]))
                self.criteria[name] = self._criterion(self.runs[name])

    def _prefer_steady(self, entry: Entry, among: np.ndarray) -> None:
        """Choose the best rate anew, of those whose path is no chance; if there is none, keep it.

        A chaotic path may come to a lower loss than all others, but rounding, or a hundredth of its
        rate, leads it elsewhere: nobody should be told to use that rate.
        """
        name = entry.name
        if self._by_hand(entry):
            return  # the best is not shown
        criteria = np.where(among, self.criteria[name], np.inf)
        order = np.argsort(criteria, kind="stable").tolist()
        if not any(key[0] == name for key in self._nearby):  # no ensemble: each costs four runs
            order = order[:_MOST_TRIED]
        for i in order:
            if not np.isfinite(criteria[i]):
                return
            rate = self.runs[name].rates[i]
            if self._alike(entry, rate, i) and self._sensitive_from(name, i) < 0:
                self.best[name] = i
                return

    def _alike(self, entry: Entry, rate: float, i: int) -> bool:
        """Return whether runs of nearby rates end where the run of a rate ends."""
        if known := self._nearby.get((entry.name, rate)):
            return known.alike
        near = self._ladder(entry, self._own, [rate * NEARBY, rate / NEARBY])
        return ends_alike(self.runs[entry.name], i, near)

    def sensitive(self, name: str) -> int:
        """Return the step from which a shown path depends on the last bit; -1 if it is stable.

        Start and rate are changed by 2**-52 of themselves, up and down; a path that then stays
        within 1e-10 is stable.
        """
        return self._sensitive_from(name, self.rate_index(name))

    def _sensitive_from(self, name: str, i: int) -> int:
        runs = self.runs[name]
        if runs.point is None:
            return -1
        key = (name, runs.rates[i])
        if key not in self._sensitive:
            if known := self._nearby.get(key):
                return known.sensitive
            [entry] = [entry for entry in self.state.optimizers if entry.name == name]
            factors = np.array([1.0 + LAST_BIT, 1.0 - LAST_BIT])
            rates, starts = runs.rates[i] * factors, np.outer(factors, self.start)
            again = self._ladder(entry, self._own, rates.tolist(), starts)
            found = [sensitive_from(runs, i, again, at) for at in range(len(factors))]
            first = first_of(found)
            if getattr(runs.template, "needs_closure", False):
                # A path that has come to rest is elsewhere no later than with its last step, when
                # another goes on: of those after it nothing is said to be paid.
                first = min(first, runs.paid()[i][1])
            self._sensitive[key] = first
        return self._sensitive[key]

    def _network_runs(self) -> dict[str, Runs]:
        race = self.problem
        self.start = ()
        if isinstance(race, RecordedRuns):
            return race.runs()
        return {
            name: runs_of_trace(race, name, race.optimizers[name], race.steps)
            for name in race.traces
        }

    def _equal_rate(self) -> float:
        """Return the best common rate of the ladder: fewest divergences, then the least sum."""
        scores = []
        for rate in LADDER:
            each = [self.criteria[n][r.rates.index(rate)] for n, r in self.runs.items()]
            finite = [c for c in each if math.isfinite(c)]
            scores.append((len(each) - len(finite), sum(finite), rate))
        return min(scores)[2]

    def rate_index(self, name: str) -> int:
        """Return the index of the current rate of an optimizer."""
        runs, state = self.runs[name], self.state
        [entry] = [entry for entry in state.optimizers if entry.name == name]
        if state.mode == "equal" and not self.network:
            return runs.rates.index(self.equal if state.equal_rate is None else state.equal_rate)
        if state.mode == "custom" and entry.rate is not None:
            return runs.rates.index(entry.rate)
        return self.best[name]

    def shown_rate(self, name: str) -> float:
        """Return the current rate of an optimizer."""
        return self.runs[name].rates[self.rate_index(name)]

    def shown_paths(self) -> list[Floats]:
        """Return the visible paths as arrays (steps + 1, 2)."""
        paths = [(runs.point, self.rate_index(name)) for name, runs in self.runs.items()]
        return [p[i] for p, i in paths if p is not None and p.shape[2] == 2]

    def visited(self) -> list[Floats]:
        """Return points and losses of the paths of one variable, as arrays (steps + 1, 2)."""
        found = []
        for name, runs in self.runs.items():
            i = self.rate_index(name)
            assert runs.point is not None
            found.append(np.stack([runs.point[i, :, 0], runs.loss[i]], axis=1))
        return found

    def shown_runs(self) -> dict[str, ShownRun]:
        """Return the run of each optimizer at its current rate."""
        found = {}
        for name, runs in self.runs.items():
            if runs.point is None:
                continue
            i = self.rate_index(name)
            found[name] = ShownRun(runs.rates[i], runs.loss[i], runs.point[i], runs.update[i])
        return found

    @property
    def claim(self) -> tuple[str, bool] | None:
        """The claim of the preset, and whether it is true of what is shown; None without one.

        Of a path that depends on the last bit nothing is claimed.
        """
        preset = PRESETS.get(self.state.preset)
        if preset is None:
            return None
        stable = all(self.sensitive(name) < 0 for name in self.runs)
        return preset.claim, stable and preset.is_true_of(self.shown_runs())

    def _holds_start(self, box: Box) -> bool:
        if len(self.start) == 1:
            return box.x_low <= self.start[0] <= box.x_high
        return box.contains(*self.start)

    @property
    def surface_map(self) -> SurfaceMap:
        """The surface under the paths, computed at the first access."""
        if self._surface_map is None:
            assert self.surface is not None
            assert self.box is not None
            self._surface_map = make_surface_map(self.surface, self.box, self.shown_paths())
        return self._surface_map

    def reuse_surface_map(self, other: Model) -> None:
        """Reuse the map that another model of the same surface and box has computed."""
        self._surface_map = other._surface_map

    @property
    def title(self) -> str:
        """Title of the problem."""
        problem: Any = self.problem.problem if self.network else self.problem
        return str(problem.title)

    @property
    def axes(self) -> list[str]:
        """Names of the coordinates."""
        if self.network:
            return list(getattr(self.problem, "axes", ["norm"]))
        return list(AXES[: len(self.start)])

    # Numbers of a step --------------------------------------------------------------------------

    def numbers(self, name: str, rate: int, step: int, coordinate: int) -> dict[str, float]:
        """Return every number of step `step` (from 1), by its name in the templates."""
        runs = self.runs[name]
        assert runs.point is not None
        at = step - 1

        def one(array: Floats, when: int = at) -> float:
            return float(array[rate, when, coordinate])

        values: dict[str, float] = {
            "t": step,
            "raw": one(runs.gradient),
            "p": one(runs.point),
            # The result of the rule; a wrapper may change it afterwards.
            "p.new": one(runs.terms["fast"]) if "fast" in runs.terms else one(runs.point, step),
            "update": one(runs.update),
        }
        inner, layers = layers_of(runs.template)
        if "used_gradient" in runs.terms:
            values["g"] = one(runs.terms["used_gradient"])
        elif "g" not in self.rule(name).computed:
            values["g"] = values["raw"]
        around = [getattr(layer, "average", layer).own_settings for layer in layers]
        for settings in (inner.settings, *around):
            for key, setting in settings.items():
                if isinstance(setting, (int, float)):
                    values[f"h.{key}"] = float(setting)
                elif isinstance(setting, (list, tuple)):  # a pair, such as Rprop's limits
                    numbers = [x for x in setting if isinstance(x, (int, float))]
                    values |= {f"h.{key}.{i}": float(x) for i, x in enumerate(numbers)}
        values["h.learning_rate"] = runs.rates[rate]
        for slot, array in runs.slots.items():
            values[f"new.{slot}"] = one(array)
            values[f"old.{slot}"] = one(array, at - 1) if at else runs.initial[slot]
        for term, array in runs.terms.items():
            values[f"term.{term}"] = one(array)
        return values

    def rule(self, name: str) -> Rule:
        """Return the rows of the step panel of an optimizer."""
        runs = self.runs[name]
        return rule_of(runs.template, list(runs.slots), list(runs.terms))

    def what_happened(
        self, name: str, step: int, coordinate: int = 0, rate: int | None = None
    ) -> list[tuple[str, str, dict[str, float]]]:
        """Return step `step` (from 1) of an optimizer as rows of label, text and its numbers."""
        rate = self.rate_index(name) if rate is None else rate
        values = [self.numbers(name, rate, step, c) for c in range(len(self.axes))]
        rule, axis = self.rule(name), self.axes[coordinate]
        return fill_rows(rule, values, coordinate, axis)

    def step_notes(self, name: str, step: int) -> tuple[list[str], list[str]]:
        """Return the notes of the lines of a step, and sentences about the whole step."""
        rate = self.rate_index(name)
        values = [self.numbers(name, rate, step, c) for c in range(len(self.axes))]
        return fill_notes(self.rule(name), values)

    # Sending ------------------------------------------------------------------------------------

    def pack(
        self, names: Collection[str] | None = None, *, whole: bool = True
    ) -> tuple[dict[str, Any], bytes]:
        """Pack into a header of plain values, and all arrays as one buffer of float32.

        With `names`, only these optimizers. If not `whole`, of every optimizer the run that is
        shown, and of its other rates the last loss alone.
        """
        pieces: list[bytes] = []
        offset = 0
        optimizers = []
        for entry in self.state.optimizers:
            if names is not None and entry.name not in names:
                continue
            runs = self.runs[entry.name]
            held = range(len(runs.rates)) if whole else [self.rate_index(entry.name)]
            arrays: dict[str, list[int]] = {}
            found: list[tuple[str, Any]] = [
                ("point", runs.point),
                ("loss", runs.loss),
                ("gradient", runs.gradient),
                ("update", runs.update),
                *((f"new.{name}", array) for name, array in runs.slots.items()),
                *((f"term.{name}", array) for name, array in runs.terms.items()),
            ]
            for name, array in found:
                if array is None:
                    continue
                array = array[list(held)]
                with np.errstate(all="ignore"):
                    exact = array - self.base if name == "loss" else array
                    data = np.clip(exact, -_LARGEST, _LARGEST).astype("<f4")
                pieces.append(data.tobytes())
                width = data.shape[2] if data.ndim == 3 else 1
                arrays[name] = [offset, data.shape[1], width]
                offset += data.size
            inner = layers_of(runs.template)[0].settings
            optimizers.append(
                {
                    "name": entry.name,
                    "kind": entry.kind,
                    "entry": {"settings": entry.settings, "around": entry.around},
                    "second": second_setting(inner),
                    "rates": list(runs.rates),
                    # Of rates that a hand has set no path was looked at: the page chooses.
                    "best": None if self._by_hand(entry) else runs.rates[self.best[entry.name]],
                    "held": [runs.rates[i] for i in held],
                    "finals": [
                        _finite_or_none(float(row[-1])) if stop < 0 else None
                        for row, stop in zip(runs.loss, runs.stopped.tolist(), strict=True)
                    ],
                    "stopped": runs.stopped.tolist(),
                    "paid": runs.paid(),
                    "sensitive": {repr(self.shown_rate(entry.name)): self.sensitive(entry.name)},
                    "why": runs.why,
                    "initial": runs.initial,
                    "slots": list(runs.slots),
                    "terms": list(runs.terms),
                    "formula": rule_as_lists(self.rule(entry.name)),
                    "arrays": arrays,
                }
            )
        header = {
            "steps": self.state.steps,
            "floor": _finite_or_none(self.floor),
            "floorKnown": self.floor_known,
            "base": self.base,
            "optimizers": optimizers,
        }
        return header, b"".join(pieces)

    # Text ---------------------------------------------------------------------------------------

    def summary(self) -> str:
        """Describe the figure in words."""
        state = self.state
        ends = []
        for entry in state.optimizers:
            runs, i = self.runs[entry.name], self.rate_index(entry.name)
            rate = format_number(runs.rates[i], 6)
            finite = runs.loss[i][np.isfinite(runs.loss[i])]
            end = runs.why[i] or f"loss {format_number(float(finite[-1]))}"
            ends.append(f"{entry.name} at rate {rate}: {end}")
        where = f" from {format_point(self.start)}" if self.start else ""
        head = f"{self.title}{where}, after {steps_text(state.steps)}."
        return f"{head} {'; '.join(ends)}. {self.conditions()}"

    def conditions(self) -> str:
        """Return the conditions of the race, for the note under the figure."""
        state = self.state
        if self.network:
            return (
                f"Same initial weights, same {steps_text(state.steps)}, seed {state.seed}. "
                "The runs are as they were recorded: their rates are fixed."
            )
        how = HOW_CHOSEN[state.mode]
        if state.mode == "custom" and any(entry.rate is None for entry in state.optimizers):
            how += HOW_CHOSEN["others"]
        if self.open:
            how += "; the loss has no lowest point in view, so that no rate is the best"
        if not self.floor_known:
            how = how.replace("loss − minimum", "loss − lowest loss seen")
        around = "".join(
            f" Around {entry.name}: {describe_wrapping(entry.around)}."
            for entry in state.optimizers
            if entry.around
        )
        return (
            f"Same start {format_point(self.start)}, same {steps_text(state.steps)}, "
            f"seed {state.seed}. Rates: {how}.{around}"
        )


def _with_noise(surface: Surface, noise: float | None) -> Surface:
    """Return the surface with the noise of a state, if it has one of its own."""
    return surface if noise is None or noise == surface.noise else noisy(surface, noise)


def is_rung(rate: float) -> bool:
    """Return whether a rate is 1, 2 or 5 times a power of ten.

    Examples
    --------
    >>> is_rung(0.02), is_rung(0.025)
    (True, False)
    """
    return f"{rate:.0e}"[0] in "125" and rung(rate) == rate


_VIEW = 41


def has_no_minimum(surface: Surface) -> bool:
    """Return whether the loss has no lowest point in view: on a grid it is lowest at the border.

    Examples
    --------
    >>> has_no_minimum(Surface("sqrt(x) + y")), has_no_minimum(Surface("x**2 + y**2"))
    (True, False)
    """
    if surface.minimum_value is not None and math.isfinite(surface.minimum_value):
        return False
    axes = [np.linspace(low, high, _VIEW) for low, high in surface.domain]
    values = surface.values(*np.meshgrid(*axes, indexing="ij"))
    if not np.isfinite(values).any():
        return False
    values = np.where(np.isfinite(values), values, np.inf)
    inside = values[(slice(1, -1),) * values.ndim]
    return bool(values.min() < inside.min())


def _finite_or_none(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def find_problem(state: State, own: Any) -> Any:
    """Return the problem of a state.

    Raises
    ------
    ValueError
        If the state is of a user's function that was not given.
    """
    if state.problem == OWN:
        if own is None:
            raise ValueError(
                "this state is of a function of your own; give it again: "
                "ol.explore(my_function).change(...)."
            )
        return own
    found = find(state.problem)
    if not isinstance(found, Surface):
        raise ValueError(
            f"{found.title} is a network: train it with ol.compare, and explore the comparison."
        )
    return found
