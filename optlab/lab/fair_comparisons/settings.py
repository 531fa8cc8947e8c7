"""Settings to try: the same number for every optimizer, spread evenly over a space."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from optlab.backend.random import Key
from optlab.lab.templates import named_optimizers
from optlab.optimizer import Optimizer
from optlab.optimizer.wrappers import layers_of

Settings = dict[str, Any]

#: Where the learning rate is looked for, if nothing is said.
USUAL: dict[str, Any] = {"learning_rate": (1e-4, 1.0)}


class Entry:
    """An optimizer of a comparison: how it is made from settings.

    Parameters
    ----------
    name : str
    given : Optimizer or callable
        A template, whose learning rate is replaced; or a class, or a function of the settings.
    space : dict
        Names of settings with (low, high), spread over decades, or a list of values.

    Raises
    ------
    TypeError, ValueError
        If it is neither, or the space does not fit.
    """

    def __init__(self, name: str, given: Any, space: Mapping[str, Any]) -> None:
        self.name = name
        self._given = given
        self.space = {one: _checked_axis(one, values) for one, values in space.items()}
        if isinstance(given, Optimizer):
            if not given.is_template:
                raise ValueError(
                    f"{name!r} already has parameters; give compare a template, made without "
                    "parameters=."
                )
            if set(space) - {"learning_rate"}:
                raise TypeError(
                    f"space= has {', '.join(space)}, but {name!r} is an optimizer with its "
                    "settings, of which the learning rate alone is tuned. Give its class, or a "
                    "function: lambda learning_rate, momentum: ol.optimizer.Momentum(...)."
                )
            if space and given.schedule is not None:
                raise TypeError(
                    f"the rate of {name!r} comes from a schedule, which cannot be tuned. Give a "
                    "function of the rate: lambda rate: ol.optimizer.Adam(ol.optimizer.lr."
                    "StepDecay(rate, 100)); or leave trials= out."
                )
        elif not callable(given):
            raise TypeError(
                f"{name!r} must be an optimizer, its class, or a function that makes one from its "
                f"settings; got {type(given).__name__}."
            )
        elif not space:
            raise TypeError(
                f"{name!r} is made from settings that are tuned: give trials=8, or an optimizer "
                "with its settings."
            )

    def make(self, settings: Settings) -> Optimizer:
        """Return the template with these settings."""
        if isinstance(self._given, Optimizer):
            template = copy.deepcopy(self._given)
            if "learning_rate" in settings:
                template.set_lr(settings["learning_rate"])
            return template
        make: Callable[..., Any] = self._given
        found = (
            make(*settings.values()) if list(settings) == ["learning_rate"] else make(**settings)
        )
        if not isinstance(found, Optimizer) or not found.is_template:
            raise TypeError(
                f"{self.name!r} makes {found!r}; a comparison needs optimizers made without "
                "parameters."
            )
        return found

    def own_settings(self) -> Settings:
        """Return the settings of a template that is not tuned."""
        rule = layers_of(self._given)[0]
        if rule.schedule is not None:
            return {}
        return {"learning_rate": float(rule.settings["learning_rate"])}

    def candidates(self, trials: int) -> list[Settings]:
        """Return settings to try: a Latin hypercube (McKay, Beckman and Conover 1979).

        Along each setting they lie in the middles of as many cells of equal size; the cells of
        different settings are paired at random.

        Examples
        --------
        >>> import optlab as ol
        >>> entry = Entry("SGD", ol.optimizer.SGD(0.1), {"learning_rate": (1e-3, 1e1)})
        >>> [f"{one['learning_rate']:.3g}" for one in entry.candidates(2)]
        ['0.01', '1']
        """
        columns: dict[str, list[Any]] = {}
        for k, (name, axis) in enumerate(self.space.items()):
            cells = np.arange(trials)
            if k:
                cells = Key(0).fold("candidates", k).generator().permutation(trials)
            places = (cells + 0.5) / trials
            if isinstance(axis, tuple):
                low, high = math.log(axis[0]), math.log(axis[1])
                columns[name] = np.exp(low + places * (high - low)).tolist()
            else:
                columns[name] = [axis[int(place * len(axis))] for place in places]
        return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]

    def ends(self, settings: Settings, trials: int) -> dict[str, str]:
        """Return which chosen settings are the lowest or the highest that were tried."""
        found = {}
        for name, axis in self.space.items():
            tried = [one[name] for one in self.candidates(trials)]
            if (
                isinstance(axis, tuple)
                and len(tried) > 1
                and settings[name] in (min(tried), max(tried))
            ):
                found[name] = "lowest" if settings[name] == min(tried) else "highest"
        return found


def _checked_axis(name: str, values: Any) -> tuple[float, float] | list[Any]:
    if isinstance(values, tuple):
        if len(values) == 2 and all(isinstance(v, (int, float)) for v in values):
            low, high = map(float, values)
            if 0 < low < high < math.inf:
                return low, high
        raise ValueError(
            f"the space of {name} is (low, high) with 0 < low < high, spread over decades, or a "
            f"list of values; got {values!r}."
        )
    found = list(values) if isinstance(values, (list, np.ndarray, range)) else []
    if not found:
        raise ValueError(
            f"the space of {name} is (low, high), or a list of values; got {values!r}."
        )
    return found


def entries(optimizers: Any, space: Any, trials: int) -> dict[str, Entry]:
    """Return the optimizers of a comparison, checked.

    Raises
    ------
    TypeError, ValueError
        If one is wrong, before anything runs.
    """
    optimizers = named_optimizers(optimizers, "compare")
    if space is not None and not isinstance(space, Mapping):
        raise TypeError(
            "space= is a dict of settings, such as {'learning_rate': (1e-4, 1.0)}, or one such "
            f"dict by the name of each optimizer; got {space!r}."
        )
    if space is not None and not trials:
        raise TypeError("space= says where settings are looked for; say how many: trials=8.")
    given_space = dict(space or {})
    by_name = bool(space) and all(isinstance(one, Mapping) for one in given_space.values())
    if by_name and set(given_space) - set(optimizers):
        unknown = ", ".join(sorted(set(given_space) - set(optimizers)))
        raise ValueError(f"space= names {unknown}, which is none of {', '.join(optimizers)}.")
    found = {}
    for name, given in optimizers.items():
        if not isinstance(name, str):
            raise TypeError(f"the names of optimizers are text; got {name!r}.")
        own = given_space.get(name, USUAL) if by_name else given_space or USUAL
        found[name] = Entry(name, given, own if trials else {})
        if trials:
            for settings in found[name].candidates(trials):
                found[name].make(settings)
    return found
