"""The scalars of a step in a captured call, whose step count is another one in each call."""

from __future__ import annotations

from typing import Any

from optlab.backend.call_recorder import here, is_live, suspended
from optlab.optimizer.rule.namespaces import HyperParameters
from optlab.optimizer.step.apply_rule import scalars_of
from optlab.plan.calls.recording.checked_facts import FactsChangedError

#: Counts that are tried: what is no number (whether a rule adapts) has to be the same for all.
_TRIED = (1, 10, 1_000_000)


def live_scalars(optimizer: Any, t: Any, h: Any) -> dict[str, Any] | None:
    """Return scalars that a plan computes anew from the step count, and from settings that change.

    Parameters
    ----------
    optimizer : Optimizer
    t
        What stands for the count in a captured call.
    h : HyperParameters
        Settings, some of which may stand for numbers that change, too.

    Returns
    -------
    dict or None
        None if a scalar that is no number, such as whether to adapt, depends on the count: then
        there has to be a plan for each count.
    """
    if type(h) is not HyperParameters:
        return None
    live = {name: x for name, x in vars(h).items() if is_live(x)}
    fixed = {name: x for name, x in vars(h).items() if name not in live}
    numbers = [t, *live.values()]
    now, *others = (x.value for x in numbers)
    scalars = _Scalars(optimizer, fixed, list(live))
    with suspended():
        found = scalars(now, *others)
        scalars.facts = {name: x for name, x in found.items() if type(x) not in (int, float)}
        try:
            for more in _TRIED:
                scalars(now + more, *others)
        except (FactsChangedError, ArithmeticError):
            return None
    made = dict(scalars.facts)
    for name in found.keys() - made.keys():
        made[name] = here.recorder.of_numbers(name, _Scalar(scalars, name), *numbers)
    return {name: made[name] for name in found}


class _Scalars:
    """The scalars of a rule as a function of the step count and of settings by name."""

    def __init__(self, optimizer: Any, fixed: dict[str, Any], names: list[str]) -> None:
        self.optimizer, self.fixed, self.names = optimizer, fixed, names
        #: Those that are no numbers, and have to stay what they are.
        self.facts: dict[str, Any] | None = None
        self._numbers: tuple[Any, ...] = ()
        self._last: dict[str, Any] = {}

    def __call__(self, *numbers: Any) -> dict[str, Any]:
        """Return the scalars, by name; those of the last numbers are kept."""
        if numbers != self._numbers or not self._last:
            t, *others = numbers
            h = HyperParameters(**self.fixed, **dict(zip(self.names, others, strict=True)))
            found = scalars_of(self.optimizer, t, h)
            if self.facts is not None and self.facts != {
                name: x for name, x in found.items() if type(x) not in (int, float)
            }:
                raise FactsChangedError(
                    f"{type(self.optimizer).__name__} goes another way in step {t} than in the "
                    "step that the plan was captured with."
                )
            self._last, self._numbers = found, numbers
        return self._last

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Scalars) and (
            self.optimizer is other.optimizer
            and self.fixed == other.fixed
            and self.names == other.names
            and self.facts == other.facts
        )

    def __hash__(self) -> int:
        return hash((id(self.optimizer), *self.names))


class _Scalar:
    """One of the scalars, as a function of the same numbers."""

    def __init__(self, scalars: _Scalars, name: str) -> None:
        self.scalars, self.name = scalars, name
        self.checks_facts = bool(scalars.facts)

    def __call__(self, *numbers: Any) -> Any:
        """Return its value."""
        return self.scalars(*numbers)[self.name]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Scalar) and (
            self.name == other.name and self.scalars == other.scalars
        )

    def __hash__(self) -> int:
        return hash((self.name, self.scalars))
