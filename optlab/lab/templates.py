"""Optimizers as users give them: named, listed or alone; and templates with other settings."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, cast

from optlab.optimizer import Averaged, Optimizer
from optlab.optimizer.lr import LRScheduler
from optlab.optimizer.wrappers import Wrapper, layers_of


def named_optimizers(given: Any, call: str, *, rates: bool = True) -> dict[Any, Any]:
    """Return optimizers by name: a dict as it is, one or a list of them by their classes.

    Of several of one class, the settings in which they differ are part of the name.

    Parameters
    ----------
    given : dict, Optimizer or iterable of Optimizer
    call : str
        Who was given them, for the message.
    rates : bool
        Whether learning rates may be part of names: where they stay as they are.

    Raises
    ------
    TypeError
        If it is none of these, or empty.

    Examples
    --------
    >>> import optlab as ol
    >>> O = ol.optimizer
    >>> given = [O.Adam(0.1), O.Adam(0.2), O.LookAhead(O.SGD(0.1)), O.SGD(O.lr.StepDecay(0.1, 9))]
    >>> list(named_optimizers(given, "compare"))
    ['Adam, learning_rate=0.1', 'Adam, learning_rate=0.2', 'LookAhead SGD', 'SGD']
    """
    if isinstance(given, Mapping) and given:
        return dict(given)
    several = [given] if isinstance(given, Optimizer) else given
    if isinstance(several, Iterable) and not isinstance(several, (str, bytes, Mapping)):
        several = list(several)
        if several and all(isinstance(one, Optimizer) for one in several):
            return dict(zip(_names(several, rates), several, strict=True))
    raise TypeError(
        f"{call} takes a dict of names and optimizers, such as "
        f"{{'Adam': ol.optimizer.Adam(0.1)}}, or a list of optimizers; got {given!r}."
    )


def _names(optimizers: list[Optimizer], rates: bool) -> list[str]:
    """Return a name for each, which no other has."""
    classes = [_class_names(one) for one in optimizers]
    found: list[str] = []
    for one, name in zip(optimizers, classes, strict=True):
        alike = [_shown(x) for x, other in zip(optimizers, classes, strict=True) if other == name]
        own = _shown(one)
        differing = [
            k for k in own
            if any(x.get(k) != own[k] for x in alike) and (rates or k != "learning_rate")
        ]  # fmt: skip
        found.append(", ".join([one.name or name, *(f"{k}={own[k]}" for k in differing)]))
    return [
        name if found.count(name) == 1 else f"{name} {found[: i + 1].count(name)}"
        for i, name in enumerate(found)
    ]


def _class_names(optimizer: Optimizer) -> str:
    rule, layers = layers_of(optimizer)
    around = [type(one.average if isinstance(one, Averaged) else one).__name__ for one in layers]
    return " ".join([*reversed(around), type(rule).__name__])


def _shown(optimizer: Optimizer) -> dict[str, str]:
    """Return settings as text."""
    rule, layers = layers_of(optimizer)
    found = _settings_of(rule)
    decay, clip = rule.decay_and_clip
    found |= {"weight_decay": decay, "grad_clip": clip}
    for layer in layers:
        found |= layer.own_settings
    return {name: repr(value) for name, value in found.items()}


def checked_templates(given: Any, call: str) -> dict[str, Optimizer]:
    """Return templates by name, in each of the forms of `named_optimizers`.

    Raises
    ------
    TypeError, ValueError
        If one is no optimizer, or has parameters already.
    """
    optimizers = named_optimizers(given, call)
    for name, optimizer in optimizers.items():
        if not isinstance(name, str):
            raise TypeError(f"the names of optimizers are text; got {name!r}.")
        if isinstance(optimizer, type) and issubclass(optimizer, Optimizer):
            raise TypeError(
                f"{name!r} is the class {optimizer.__name__}; give an optimizer with its settings, "
                f"such as {optimizer.__name__}(learning_rate=0.01)."
            )
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f"{name!r} must be an optimizer; got {type(optimizer).__name__}.")
        if not optimizer.is_template:
            raise ValueError(
                f"{name!r} already has parameters; give {call} a template, made without "
                "parameters=, which it binds to a fresh copy of the problem."
            )
    return optimizers


def with_settings(template: Optimizer, **changes: Any) -> Optimizer:
    """Return a template with other settings of the rule, and of the wrappers around it.

    Raises
    ------
    TypeError
        If there is no such setting, or it would replace a schedule by a number.
    ValueError
        If a rule and a wrapper around it both have a setting of this name, or a value is wrong.

    Examples
    --------
    >>> import optlab as ol
    >>> O = ol.optimizer
    >>> with_settings(O.SGD(0.1, weight_decay=0.01), learning_rate=0.2)
    SGD(learning_rate=0.2, weight_decay=0.01)
    >>> with_settings(O.LookAhead(O.SGD(0.1), k=3), learning_rate=0.2, alpha=0.8).own_settings
    {'alpha': 0.8, 'k': 3}
    """
    rule, layers = layers_of(template)
    owners = [rule, *layers]
    for name in changes:
        having = [one for one in owners if name in _own_names(one)]
        if len(having) > 1:
            first, second = (_class_names(one) for one in having[:2])
            raise ValueError(f"{first} and {second} both have a setting {name!r}.")
        if not having:
            listed = "; ".join(f"{_class_names(one)}: {', '.join(_own_names(one))}"
                               for one in owners)  # fmt: skip
            raise TypeError(f"there is no setting {name!r}. There are, of {listed}.")
    if rule.schedule is not None and not isinstance(
        changes.get("learning_rate", rule.schedule), LRScheduler
    ):
        raise TypeError(
            f"the learning rate of this {type(rule).__name__} comes from a schedule, which a "
            "number would replace. Give schedules: {'learning_rate': [ol.optimizer.lr."
            "StepDecay(rate, 100) for rate in rates]}."
        )
    own = {name: value for name, value in changes.items() if name in _own_names(rule)}
    made: Any = rule
    if own:
        made = type(rule)(**{**rule._common, "name": rule.name, **_settings_of(rule), **own})
    for layer in layers:
        own = {name: value for name, value in changes.items() if name in _own_names(layer)}
        made = _around(layer, made, own)
    return cast("Optimizer", made)


def _settings_of(rule: Optimizer) -> dict[str, Any]:
    """Return the settings of a rule; its schedule, if it has one, is the learning rate."""
    schedule = rule.schedule
    return {**rule.settings, **({} if schedule is None else {"learning_rate": schedule})}


def _own_names(one: Any) -> list[str]:
    """Return the names of the settings of a rule or of a wrapper itself."""
    if isinstance(one, Averaged):
        return [name for name in one.own_settings if name != "average"]
    if isinstance(one, Wrapper):
        return list(one.own_settings)
    return [*one.hyperparameters, *(name for name in one._common if name not in one.settings)]


def _around(layer: Any, inner: Optimizer, own: dict[str, Any]) -> Optimizer:
    """Return a wrapper around another optimizer, with other settings of its own."""
    if not own:
        fresh = copy.copy(layer)
        fresh.inner_optimizer = inner
        return cast("Optimizer", fresh)
    if isinstance(layer, Averaged):
        average = layer.average
        return type(average).around(inner, **{**average.own_settings, **own})
    make: Callable[..., Optimizer] = type(layer)
    return make(inner, **{**layer.own_settings, **own})


def maker_of(given: Any) -> tuple[Callable[..., Any], type[Optimizer] | None]:
    """Return what makes an optimizer of settings given by name, and its class if that is known.

    Parameters
    ----------
    given : type, Optimizer or callable
        A class; a template, whose other settings stay; or a function of the settings.

    Raises
    ------
    TypeError
        If it is none of these, or a template has parameters already.
    """
    if isinstance(given, type) and issubclass(given, Optimizer):
        return given, given
    if isinstance(given, Optimizer):
        if not given.is_template:
            raise TypeError(
                f"sweep takes an optimizer made without parameters=, which it binds to copies of "
                f"the problem; {given!r} already has some."
            )
        return partial(with_settings, given), type(given)
    if callable(given) and not isinstance(given, type):
        return given, None
    raise TypeError(
        "sweep takes an optimizer class, such as ol.optimizer.Adam, an optimizer whose other "
        f"settings stay, ol.optimizer.Adam(weight_decay=0.1), or a function; got {given!r}."
    )
