"""Run a check on a class, compare with the reference, and find the mistake that explains it.

Mistakes are found by their effects. The reference runs with each mistake put in; the one that
gives the student's numbers is the one that was made. What no change of a formula can show is seen
in other ways: the same calls on a second object (shared state), the arguments of earlier calls at
the end (changes in place), the same path with one setting changed (a setting that is ignored).
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from optlab.course.messages import FLOAT32, HIDDEN, MESSAGES, NO_NUMBER, RIGHT, UNKNOWN
from optlab.course.plan import Check, Scenario
from optlab.course.report import Difference, Report
from optlab.course.sessions import (
    Entry,
    Failed,
    Local,
    Session,
    Target,
    close,
    first_difference,
    gives,
    run,
)
from optlab.course.students import StudentTarget
from optlab.course.velocity_rules import Mistake

MANNERS = "new arrays at every step; nothing shared between two objects"
MANNERS_WEIGHT = 0.1


@dataclass
class _Finding:
    """A mistake, where it shows, and what is added to its message."""

    mistake: str | None
    detail: str = ""
    term: str = ""
    setting: str = ""


def judge(check: Check, target: Target, seed: int = 0, hidden: bool = False) -> Report:
    """Return the report of a check on the class of a target.

    Parameters
    ----------
    check : Check
        What is checked.
    target : Target
        Where the class lives: a student's process, or `Local` with a class of ours.
    seed : int
        Which starts, gradients and other numbers are used.
    hidden : bool
        Leave out of the report what would show these numbers.
    """
    scenarios = check.scenarios(seed)
    again = Scenario("again", MANNERS, MANNERS_WEIGHT, _beside(scenarios[0]))
    # The second run follows the first at once: what the class keeps for all its objects shows.
    found = {
        scenario.name: _guarded(scenario, target)
        for scenario in (scenarios[0], again, *scenarios[1:])
    }
    references = {s.name: run(s.run, Local(check.reference({}))) for s in scenarios}
    wrong = {
        s.name: difference
        for s in scenarios
        if (difference := first_difference(references[s.name].entries, found[s.name].entries))
    }
    finding = _finding(check, scenarios, references, found, wrong)
    shared = finding is not None and finding.mistake == "shared_state"
    changed = any(session.changed for session in found.values())
    parts = {s.part: s.name not in wrong for s in scenarios}
    weights = {s.part: s.weight for s in scenarios}
    whole = sum(weights.values()) + MANNERS_WEIGHT
    parts[MANNERS] = not (shared or changed or wrong.get(scenarios[0].name))
    weights[MANNERS] = MANNERS_WEIGHT
    if finding is None:
        return Report(check.name, True, 1.0, None, RIGHT, None, dict.fromkeys(parts, True))
    score = sum(weights[part] for part, right in parts.items() if right) / whole
    shown = None if hidden else _shown(scenarios, references, found, wrong, finding)
    message = _message(finding, hidden)
    return Report(
        check.name, False, round(min(score, 0.99), 4), finding.mistake, message, shown, parts
    )


def _guarded(scenario: Scenario, target: Target) -> Session:
    """Run a scenario on a target that may end, and compare arguments of its calls at the end."""
    if not isinstance(target, StudentTarget):
        return run(scenario.run, target)
    try:
        target.begin_scenario()
    except Failed as failed:
        target.stop()
        return Session(target, [Entry("loading the class", None, failed.mistake, failed.detail)])
    session = run(scenario.run, target)
    session.compare_with(target.end_scenario())
    return session


class _Beside:
    """A target on which every call is made on two objects in turn, with other numbers.

    Which of the two comes first takes turns as well: what one object writes over what the other
    has just written shows in one of these orders alone.
    """

    def __init__(self, target: Target) -> None:
        self.target = target
        self.calls = 0
        self.later: tuple[Any, ...] | None = None
        self.given = target.given
        self.made: set[str] = set()

    def make(self, key: str, arguments: list[Any], settings: dict[str, Any]) -> None:
        self.target.make(key, arguments, settings)
        self.target.make(
            "other " + key,
            [self._other(value) for value in arguments],
            {name: self._other(value) for name, value in settings.items()},
        )
        self.made.add("other " + key)

    def _other(self, value: Any) -> Any:
        """Return what stands for a copy of what the check gives: its state is the object's own."""
        if isinstance(value, list):
            return [self._other(item) for item in value]
        if not (isinstance(value, dict) and "given" in value):
            return value
        name = value["given"]
        self.given["other " + name] = deepcopy(self.given[name])
        return {"given": "other " + name}

    def call(self, key: str, method: str, arguments: list[Any], keep: str | None) -> Any:
        if key and keep is None and ("other " + key) in self.made:
            self._call_later()
            others = "other " + key, method, [_negative(value) for value in arguments], None
            self.calls += 1
            if self.calls % 2:
                self.target.call(*others)
            else:  # at the next call: `overwrite` means the arrays of this one
                self.later = others
        return self.target.call(key, method, arguments, keep)

    def _call_later(self) -> None:
        if self.later is not None:
            others, self.later = self.later, None
            self.target.call(*others)

    def overwrite(self, values: list[Any]) -> None:
        self.target.overwrite(values)

    def get(self, key: str, attribute: str) -> Any:
        return self.target.get(key, attribute)


def _negative(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return np.asarray(0.5 - value)
    return [_negative(item) for item in value] if isinstance(value, list) else value


def _beside(scenario: Scenario) -> Any:
    def twice(session: Session) -> None:
        inner = Session(_Beside(session.target), session.entries)
        scenario.run(inner)

    return twice


def _finding(
    check: Check,
    scenarios: list[Scenario],
    references: dict[str, Session],
    found: dict[str, Session],
    wrong: dict[str, tuple[int, int, int]],
) -> _Finding | None:
    """Return the mistake that explains what was found, or None where all is right."""
    first = scenarios[0].name
    again = first_difference(found[first].entries, found["again"].entries)
    failures = [entry for session in found.values() for entry in session.entries if entry.mistake]
    slow = [entry for entry in failures if entry.mistake == "too_slow"]
    changed = [f"{session.changed}" for session in found.values() if session.changed]
    alive = bool(found[first].entries) and found[first].entries[0].values is not None
    if slow:
        return _Finding("too_slow", f"{slow[0].label}: {slow[0].detail}")
    if again is not None and alive:
        return _Finding("shared_state")
    if changed:
        return _Finding("changed_in_place", f"It was seen at {changed[0]}.")
    if not wrong:
        return None
    if failures:
        entry = failures[0]
        if _divided_by_zero(check, entry):
            return _Finding("step_count_off_by_one", f"{entry.label}: {entry.detail}")
        # Numbers that were wrong before say more than what they led to with other shapes.
        earlier = entry not in found[first].entries and first in wrong
        named = (
            _explained(check, scenarios, found, check.mistakes, every=False) if earlier else None
        )
        return named or _Finding(entry.mistake, f"{entry.label}: {entry.detail}.")
    if all(_no_number(found[s.name]) for s in scenarios):
        # What NaN is compared with is NaN in every mistake: only how it came about tells.
        divided = all(found[s.name].entries[0].divided for s in scenarios)
        if divided and _corrects_steps(check):
            return _Finding("step_count_off_by_one", term=check.terms.get("exponent", ""))
        return _Finding(None, NO_NUMBER)
    if all(_only_counts_differ(references[s.name], found[s.name]) for s in scenarios):
        return _Finding("nothing_recomputed")
    return (
        _explained(check, scenarios, found, check.mistakes, every=True)
        or _ignored(scenarios, references, found)
        or _explained(check, scenarios, found, check.mistakes, every=False)
        or _two_mistakes(check, scenarios[:1] if first in wrong else scenarios, found)
        or _of_other_shape(scenarios, references, found, wrong)
        or _Finding(None, FLOAT32 if _nearly(references, found) else "")
    )


def _only_counts_differ(reference: Session, found: Session) -> bool:
    """Return whether all results are right, and what the check has counted is not."""
    pairs = list(zip(reference.entries, found.entries, strict=False))
    return len(found.entries) == len(reference.entries) and all(
        first_difference([a], [b]) is None or a.counted for a, b in pairs
    )


def _nearly(references: dict[str, Session], found: dict[str, Session]) -> bool:
    """Return whether all numbers agree to the six digits that float32 has."""
    return all(
        a.values is not None
        and b.values is not None
        and len(a.values) == len(b.values)
        and all(
            x.shape == y.shape and bool((abs(x - y) <= 1e-5 * (1 + abs(x))).all())
            for x, y in zip(a.values, b.values, strict=True)
        )
        for name, session in references.items()
        for a, b in zip(session.entries, found[name].entries, strict=False)
    )


def _of_other_shape(
    scenarios: list[Scenario],
    references: dict[str, Session],
    found: dict[str, Session],
    wrong: dict[str, tuple[int, int, int]],
) -> _Finding | None:
    """Return the first result of another shape, where a call leaves the shape to the class."""
    for scenario in scenarios:
        entry, parameter, index = wrong.get(scenario.name, (-1, -1, 0))
        if parameter >= 0 and index < 0:
            right, other = (s[scenario.name].entries[entry] for s in (references, found))
            assert right.values is not None
            assert other.values is not None
            shapes = right.values[parameter].shape, other.values[parameter].shape
            return _Finding(
                "wrong_shape",
                f"{right.label} should have shape {shapes[0]}, and has shape {shapes[1]}.",
            )
    return None


def _no_number(session: Session) -> bool:
    """Return whether all results are NaN, from the first on."""
    return bool(session.entries) and all(
        entry.values is not None and all(bool(np.isnan(value).all()) for value in entry.values)
        for entry in session.entries
    )


def _corrects_steps(check: Check) -> bool:
    return any(name == "step_count_off_by_one" for name, _ in check.mistakes)


def _divided_by_zero(check: Check, entry: Entry) -> bool:
    """Return whether a correction was computed for step 0 with Python's numbers."""
    return _corrects_steps(check) and "ZeroDivisionError: float division" in entry.detail


def _explained(
    check: Check,
    scenarios: list[Scenario],
    found: dict[str, Session],
    mistakes: list[Mistake],
    every: bool,
) -> _Finding | None:
    """Return the first mistake that gives the student's numbers, in every scenario or in one.

    One scenario alone is evidence where it is the first: all its settings were given.
    """
    compared = scenarios if every else scenarios[:1]
    if not every and gives(scenarios[0].run, check.reference({}), found[scenarios[0].name].entries):
        return None
    for mistake, pieces in mistakes:
        made = check.reference(pieces)
        if all(gives(s.run, made, found[s.name].entries) for s in compared):
            return _Finding(mistake, term=check.terms.get(next(iter(pieces)), ""))
    return None


def _ignored(
    scenarios: list[Scenario], references: dict[str, Session], found: dict[str, Session]
) -> _Finding | None:
    """Return the setting that changes the reference's numbers and not the student's."""
    first = scenarios[0].name
    for scenario in scenarios:
        if not scenario.varies:
            continue
        if _alike(found[first], found[scenario.name]) and not _alike(
            references[first], references[scenario.name]
        ):
            rate = scenario.varies == "learning_rate"
            return _Finding(
                "rate_ignored" if rate else "hyperparameter_ignored", setting=scenario.varies
            )
    return None


def _alike(one: Session, other: Session) -> bool:
    """Return whether two runs agree as far as the shorter of them goes."""
    pairs = list(zip(one.entries, other.entries, strict=False))
    return bool(pairs) and all(
        a.values is not None
        and b.values is not None
        and len(a.values) == len(b.values)
        and all(
            x.shape == y.shape and bool(np.isfinite(x).all()) and close(x, y).all()
            for x, y in zip(a.values, b.values, strict=True)
        )
        for a, b in pairs
    )


def _two_mistakes(
    check: Check, scenarios: list[Scenario], found: dict[str, Session]
) -> _Finding | None:
    """Return the first of two mistakes that together give the numbers of some scenarios."""
    for (mistake, pieces), (other, more) in _pairs(check.mistakes):
        made = check.reference({**pieces, **more})
        if all(gives(s.run, made, found[s.name].entries) for s in scenarios):
            both = "" if mistake == other else f"There is a second one: {MESSAGES[other]}"
            return _Finding(mistake, both, check.terms.get(next(iter(pieces)), ""))
    return None


def _pairs(mistakes: list[Mistake]) -> Iterator[tuple[Mistake, Mistake]]:
    for one, other in combinations(mistakes, 2):
        if not one[1].keys() & other[1].keys():
            yield one, other


def _shown(
    scenarios: list[Scenario],
    references: dict[str, Session],
    found: dict[str, Session],
    wrong: dict[str, tuple[int, int, int]],
    finding: _Finding,
) -> Difference | None:
    """Return the first difference, for the report."""
    for scenario in scenarios:
        if scenario.name not in wrong:
            continue
        entry, parameter, index = wrong[scenario.name]
        expected, got = references[scenario.name].entries, found[scenario.name].entries
        call = (got if entry < len(got) else expected)[min(entry, len(expected) - 1)].label
        if parameter < 0 or index < 0:
            return Difference(scenario.part, call)
        right, other = expected[entry].values, got[entry].values
        assert right is not None
        assert other is not None
        where = tuple(int(n) for n in np.unravel_index(index, right[parameter].shape))
        return Difference(
            scenario.part, call, parameter, where,
            float(right[parameter][where]), float(other[parameter][where]), finding.term,
        )  # fmt: skip
    return None


def _message(finding: _Finding, hidden: bool) -> str:
    if finding.mistake is None:
        text = finding.detail or UNKNOWN
        return f"{text.partition('. ')[0]}. {HIDDEN}" if hidden else text
    text = MESSAGES[finding.mistake].format(setting=finding.setting)
    if finding.detail and not hidden:
        text = f"{text} {finding.detail}"
    return f"{text} {HIDDEN}" if hidden else text
