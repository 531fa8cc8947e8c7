"""Members of a sweep or a race in groups that differ in numbers only: each group is one loop."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from optlab.lab.problems.surface import Surface
from optlab.optimizer import Optimizer
from optlab.optimizer.rule.hyperparameters import COMMON_RANGES, REQUIRED
from optlab.optimizer.step.member_program import MemberProgram, Rates, rates_of
from optlab.optimizer.wrappers import Wrapper, layers_of
from optlab.plan import CaptureError, Plan

#: The most groups into which members are split because a rule branches on a setting.
MOST_GROUPS = 256


class Group(NamedTuple):
    """Members that differ in numbers only.

    Attributes
    ----------
    template : Optimizer
        Of the first member, with its wrappers.
    varying : dict of str to array
        The settings that differ, one value a member.
    schedules : list or None
        The schedule of each member, if they have some.
    numbers : array of int
        The number of each member among all.
    """

    template: Optimizer
    varying: dict[str, np.ndarray]
    schedules: list[Any] | None
    numbers: np.ndarray

    def rates(self, steps: int) -> Rates | None:
        """Return the learning rates of the schedules.

        Raises
        ------
        CaptureError
            If they depend on more than the step.
        """
        if self.schedules is None:
            return None
        distinct: dict[int, int] = {}
        columns = [distinct.setdefault(id(one), len(distinct)) for one in self.schedules]
        by_identity = {id(one): one for one in self.schedules}
        table = np.array([rates_of(by_identity[key], steps) for key in distinct]).T
        return Rates(table, None if len(distinct) == 1 else np.array(columns))

    def program(
        self,
        surface: Surface,
        plan: Plan,
        steps: int,
        seed: int,
        arrival: tuple[list[np.ndarray], float] | None = None,
    ) -> MemberProgram:
        """Return the loop of all members, over steps on a surface whose plan is given.

        Raises
        ------
        CaptureError
            If there is none.
        """
        rule, layers = layers_of(self.template)
        if any(callable(value) for layer in layers for value in layer.own_settings.values()):
            raise CaptureError("a wrapper asks a function what to do, once for each run")
        noise = None
        if (drawn := surface.noise_of(seed)) is not None:
            noise = np.array([drawn.at(step) for step in range(steps)])
        return MemberProgram(
            rule, layers, self.varying, self.rates(steps), plan, surface.dimension, steps, noise,
            arrival,
        )  # fmt: skip

    def split(self) -> list[Group]:
        """Return groups that differ in the learning rate alone; this one if it does already."""
        names = [name for name in self.varying if name != "learning_rate"]
        if not names:
            return [self]
        rows = np.stack([self.varying[name] for name in names], axis=1)
        distinct, places = np.unique(rows, axis=0, return_inverse=True)
        if len(distinct) > MOST_GROUPS:
            return [self]
        found = []
        rule, _ = layers_of(self.template)
        for number, values in enumerate(distinct.tolist()):
            own = np.flatnonzero(places.reshape(-1) == number)
            again = rebuilt(self.template, dict(zip(names, values, strict=True)), rule.schedule)
            rest = {k: v[own] for k, v in self.varying.items() if k not in names}
            found.append(Group(again, rest, self.schedules, self.numbers[own]))
        return found

    def member(self, k: int) -> Any:
        """Return the template of one member."""
        values = {name: float(column[k]) for name, column in self.varying.items()}
        schedule = None if self.schedules is None else self.schedules[k]
        if schedule is not None:
            values["learning_rate"] = float(schedule())
        return rebuilt(self.template, values, schedule)


def rebuilt(template: Any, values: dict[str, float], schedule: Any) -> Any:
    """Return a template with other settings of the innermost rule, which have been checked."""
    rule, layers = layers_of(template)
    made = copy.copy(rule)
    made.settings = {**rule.settings, **values}
    made.schedule = schedule
    for layer in layers:
        outer = copy.copy(layer)
        outer.inner_optimizer = made
        made = outer
    return made


def groups_of_templates(templates: Sequence[Optimizer], index: np.ndarray) -> list[Group]:
    """Return groups of templates that differ in numbers only, with their numbers `index`."""
    kinds: dict[Any, list[int]] = {}
    for i, template in enumerate(templates):
        rule, layers = layers_of(template)
        settings = tuple(
            (name, None if _is_number(rule, name, value) else _key(value))
            for name, value in rule.settings.items()
        )
        common = tuple((name, _key(value)) for name, value in rule._common.items())
        outer = tuple((type(layer), _key(layer.own_settings)) for layer in layers)
        key = (type(rule), settings, common, outer, rule.schedule is None)
        kinds.setdefault(key, []).append(i)
    found = []
    for places in kinds.values():
        rules = [layers_of(templates[i])[0] for i in places]
        first = rules[0]
        varying = {}
        for name, value in first.settings.items():
            values = [rule.settings[name] for rule in rules]
            scheduled = name == "learning_rate" and first.schedule is not None
            if _is_number(first, name, value) and not scheduled and any(x != value for x in values):
                varying[name] = np.array(values, dtype=float)
        schedules = None if first.schedule is None else [rule.schedule for rule in rules]
        found.append(Group(templates[places[0]], varying, schedules, index[places]))
    return found


def _is_number(rule: Any, name: str, value: Any) -> bool:
    return isinstance(value, float) and (name == "learning_rate" or type(value) is float)


def _key(value: Any) -> Any:
    """Return something hashable that is equal for settings that are the same."""
    if isinstance(value, Mapping):
        return tuple((name, _key(one)) for name, one in value.items())
    if isinstance(value, (list, tuple)):
        return tuple(map(_key, value))
    if hasattr(value, "add_to"):  # a regularizer
        return (type(value), *((k, _key(v)) for k, v in sorted(vars(value).items())))
    try:
        hash(value)
    except TypeError:
        return id(value)
    return (type(value), value)


def groups_of_grid(
    make: Callable[..., Optimizer],
    cls: type[Optimizer],
    axes: Mapping[str, np.ndarray],
    starts: int,
) -> list[Group]:
    """Return the groups of all combinations of settings, each from every start.

    Numbers in a wide grid are checked as arrays; what is wrong raises as making the optimizer does.

    Parameters
    ----------
    make : callable
        Makes a template of settings given by name.
    cls : type
        The class of the templates; `Optimizer` if it is not known.
    axes : mapping of str to array
    starts : int
    """
    shape = (*(len(values) for values in axes.values()), starts)
    index = np.arange(int(np.prod(shape))).reshape(shape)
    numbers = [name for name in axes if _is_checked_at_once(cls, name, axes[name])]
    others = [name for name in axes if name not in numbers]
    known = cls is not Optimizer and not issubclass(cls, Wrapper)
    plain = known and cls.__init__ is Optimizer.__init__
    if not plain or cls.check is not Optimizer.check or not numbers:
        lists = [values.tolist() for values in axes.values()]
        templates = [
            _made(make, dict(zip(axes, values, strict=True)))
            for values in itertools.product(*lists)
        ]
        return groups_of_templates(
            [template for template in templates for _ in range(starts)], index.reshape(-1)
        )
    places = {name: i for i, name in enumerate(axes)}
    found = []
    first = {name: axes[name][0].item() for name in numbers}
    for combination in itertools.product(*(range(len(axes[name])) for name in others)):
        chosen: list[Any] = [slice(None)] * len(shape)
        for name, i in zip(others, combination, strict=True):
            chosen[places[name]] = slice(i, i + 1)
        own = {name: axes[name].tolist()[i] for name, i in zip(others, combination, strict=True)}
        template = _made(make, {**first, **own})
        some = index[tuple(chosen)]
        varying = {}
        for name in numbers:
            if len(axes[name]) > 1:
                along = (
                    axes[name]
                    .astype(float)
                    .reshape([-1 if i == places[name] else 1 for i in range(len(shape))])
                )
                varying[name] = np.broadcast_to(along, some.shape).reshape(-1)
        members = some.reshape(-1)
        schedules = None if template.schedule is None else [template.schedule] * len(members)
        found.append(Group(template, varying, schedules, members))
    return found


def _made(make: Callable[..., Optimizer], settings: dict[str, Any]) -> Optimizer:
    """Return the template that a class, another template or a function of the user makes."""
    found = make(**settings)
    if not isinstance(found, Optimizer) or not found.is_template:
        raise TypeError(
            f"the function makes {found!r} of {settings}; a sweep needs optimizers made without "
            "parameters."
        )
    return found


def _is_checked_at_once(cls: type[Optimizer], name: str, values: np.ndarray) -> bool:
    """Return whether an axis is one of numbers, all of which are in the range of the setting."""
    default = cls.hyperparameters.get(name)
    real = default is REQUIRED or type(default) is float or name == "learning_rate"
    if name not in cls.hyperparameters or not real or values.dtype.kind not in "iuf":
        return False
    low, high = cls.ranges.get(name) or COMMON_RANGES.get(name) or (-np.inf, np.inf)
    return bool(np.all(np.isfinite(values)) and values.min() >= low and values.max() < high)
