"""The state dict of an optimizer: all that a resumed run needs, by the names of the parameters."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from optlab.autograd.tensor.conversions import refuse_unrecorded
from optlab.autograd.tensor.tensor import Tensor, raw
from optlab.backend.arrays import as_array, copied, placed_beside
from optlab.backend.call_recorder import here
from optlab.backend.ensemble import EnsembleArray
from optlab.backend.random import Key
from optlab.optimizer.params.flat import FlatParameters
from optlab.optimizer.params.groups import Group, checked_rate, parameter_names
from optlab.optimizer.params.names import renamed, warn_if_told_apart_by_order
from optlab.optimizer.rule.members import PerMember
from optlab.plan.undisturbed import whole

_MOST_LISTED = 12


class _Entry(NamedTuple):
    """The location of an array of the state: a slot of a parameter, or its float32 copy."""

    name: str
    flat: FlatParameters
    number: int
    slot: str | None

    @property
    def label(self) -> str:
        """Its key in the state dict."""
        return f"{self.name}.{self.slot}" if self.slot else f"master_weights {self.name}"

    def read_from(self, state: Mapping[str, Any]) -> Any:
        """Return its value in a state dict, or None."""
        if self.slot is not None:
            return state.get(self.label)
        masters = state.get("master_weights")
        return masters.get(self.name) if isinstance(masters, Mapping) else None

    def is_in(self, state: Mapping[str, Any]) -> bool:
        """Return whether a state dict has an entry for it, whatever it is."""
        if self.slot is not None:
            return self.label in state
        masters = state.get("master_weights")
        return isinstance(masters, Mapping) and self.name in masters

    @property
    def array(self) -> Any:
        """The array in the shape of its parameter, a view of the state."""
        _, flat, number, slot = self
        whole = flat.master if slot is None else flat.slots[slot]
        span = slice(flat.bounds[number], flat.bounds[number + 1])
        return whole[span].reshape(flat.parameters[number].shape)


class Stateful:
    """The methods of an optimizer that save and load its state."""

    settings: dict[str, Any]
    schedule: Any
    groups: list[Group]
    key: Key | None
    unfinished: Any

    def _checked_lr(self, value: Any) -> Any:
        """Return a learning rate, checked together with the other settings and the parameters."""
        raise NotImplementedError

    def extra_state(self) -> dict[str, Any]:
        """Return further state of the rule. Subclasses with a `step` of their own override this."""
        return {}

    def set_extra_state(self, state: Mapping[str, Any]) -> None:
        """Load what `extra_state` returned, checked before anything changes."""

    def state_dict(self) -> dict[str, Any]:
        """Return all that a resumed run needs to be equal to the bit.

        Returns
        -------
        dict
            For each parameter, by its name (its path in the structure of the layers): its slots as
            ``"fc.weight.moment1"`` and its step count as ``"fc.weight.t"``. The float32 copies of
            ``multi_precision`` under ``"master_weights"``, the state of the schedule under
            ``"LR_Scheduler"`` or else the rate under ``"learning_rate"``. Arrays are copies, as
            Tensors, which further training does not change. ``ol.save`` writes it to a file.

        Examples
        --------
        >>> import optlab as ol
        >>> w = ol.Parameter([1.0], name="w")
        >>> optimizer = ol.optimizer.Momentum(0.1, parameters=[w])
        >>> optimizer.minimize((3 * w).sum())
        ([], <1 (parameter, gradient) pair>)
        >>> optimizer.state_dict()
        {'w.t': 1, 'w.velocity': Tensor([3.], dtype=float32), 'learning_rate': 0.1}
        """
        self.unfinished.finish()
        state: dict[str, Any] = {}
        masters: dict[str, Any] = {}
        for name, flat, number in self._named():
            state[f"{name}.t"] = flat.t[number]
        for place in self._arrays():
            value = Tensor(copied(stack_members(place.array)))
            if place.slot is None:
                masters[place.name] = value
            else:
                state[place.label] = value
        if masters:
            state["master_weights"] = masters
        if self.key is not None:
            state["random_key"] = [self.key.seed, *self.key.path]
        if self.schedule is not None:
            state["LR_Scheduler"] = self.schedule.state_dict()
        else:
            rate = self.settings["learning_rate"]
            state["learning_rate"] = list(rate.values) if isinstance(rate, PerMember) else rate
        if extra := self.extra_state():
            state["extra"] = extra
        return state

    def set_state_dict(self, state_dict: Mapping[str, Any]) -> None:
        """Load a state of `state_dict`, of this optimizer or of one like it.

        Parameters with names are found by them, so their order may differ. A parameter without a
        name is called by its position ("parameter 0"), and so are all if only one side has names:
        these must be in the order in which they were saved, as two of one shape cannot be told
        apart. Parameters of a model are named at the first ``model.parameters()``, others by
        ``ol.Parameter(data, name="w")``. Everything is checked before anything changes. Values are
        copied to the device of the parameters. To go on with another rate, call `set_lr` or
        `set_lr_scheduler` afterwards.

        Raises
        ------
        TypeError
            If it is no mapping.
        ValueError
            If entries are missing, unexpected, or of another shape or dtype, or hold NaN; the
            message lists them. Nothing has changed then.

        Warns
        -----
        UserWarning
            If several parameters of one shape share a name, as those of two models of one
            structure do, or only one side has names, and their states differ: they are then told
            apart by their order alone, which must be that of the optimizer whose state it is.

        Examples
        --------
        >>> import optlab as ol
        >>> def make():
        ...     w = ol.Parameter([1.0], name="w")
        ...     return ol.optimizer.Adam(0.1, parameters=[w])
        >>> first, second = make(), make()
        >>> first.minimize((first.parameters[0] ** 2).sum())
        ([], <1 (parameter, gradient) pair>)
        >>> second.set_state_dict(first.state_dict())
        >>> second.state_dict()["w.t"]
        1
        """
        if here.recorder is not None:
            here.recorder.effect(type(self).set_state_dict, (self, state_dict), {})
            return
        write = self.checked_state(state_dict)
        parameters = [flat.parameters[number] for _, flat, number in self._named()]
        names = [name for name, _, _ in self._named()]
        given = renamed(state_dict, names)
        by_position = given.keys() != state_dict.keys()
        warn_if_told_apart_by_order(given, parameters, names, by_position)
        whole(write)

    def checked_state(self, state_dict: Mapping[str, Any]) -> Callable[[], None]:
        """Check a state, and return a function that writes it: `set_state_dict` in two parts."""
        check_is_mapping(state_dict)
        given = renamed(state_dict, [name for name, _, _ in self._named()])
        expected = self.state_dict()
        faults = _missing_or_unexpected(expected, given)
        found: list[tuple[_Entry, Any]] = []
        for place in self._arrays():
            value, there = place.read_from(given), place.array
            if value is None:
                if place.is_in(given):
                    faults.append(f"{place.label} is None in place of an array")
                continue
            refuse_unrecorded(
                value,
                f"set_state_dict() with {place.label}",
                "optimizer.functional_step(parameters, gradients, state), or give value.detach()",
            )
            array = unstack_like(there, as_array(raw(value)))
            if array.shape == there.shape and array.dtype == there.dtype:
                found.append((place, array))
                if fault := nan_fault(array):
                    faults.append(f"{place.label} {fault}")
            else:
                faults.append(
                    f"{place.label} is {array.dtype} of shape {array.shape} in place of "
                    f"{there.dtype} of shape {stack_members(there).shape}"
                )
        if "LR_Scheduler" in expected and "LR_Scheduler" in given:
            try:
                then = copy.deepcopy(self.schedule)
                then.set_state_dict(given["LR_Scheduler"])
                self._checked_lr(then)
            except (TypeError, ValueError, KeyError) as error:
                faults.append(f"LR_Scheduler does not fit: {error}")
        counts = [f"{name}.t" for name, _, _ in self._named()]
        for name in counts:
            count = given.get(name, 0)
            if not isinstance(count, (int, np.integer)) or isinstance(count, bool) or count < 0:
                faults.append(f"{name} must be a step count, a whole number; it is {count!r}")
        key = self.key
        if key is not None and "random_key" in given:
            try:
                seed, *path = given["random_key"]
                if not all(isinstance(part, (int, np.integer, str)) for part in (seed, *path)):
                    raise TypeError
                key = Key(int(seed)).fold(*path)
            except (TypeError, ValueError):
                faults.append(f"random_key is no key: {given['random_key']!r}")
        rate = None
        if "learning_rate" in expected and "learning_rate" in given:
            try:
                rate = self._checked_lr(_read_rate(given["learning_rate"]))
            except (TypeError, ValueError) as error:
                faults.append(f"learning_rate: {error}")
        raise_faults(type(self).__name__, faults)

        def write() -> None:
            if "extra" in expected or "extra" in given:
                self.set_extra_state(given.get("extra", {}))
            self._write_state(given, found, rate, key)

        return write

    set_dict = set_state_dict
    load_state_dict = set_state_dict

    def _write_state(
        self,
        given: Mapping[str, Any],
        found: list[tuple[_Entry, Any]],
        rate: Any,
        key: Key | None,
    ) -> None:
        """Write a checked state."""
        for group in self.groups:
            for flat in group.arenas:
                flat.make_slots_writable()
        for place, array in found:
            place.array[...] = placed_beside(place.array, array, "the state")
        for name, flat, number in self._named():
            flat.t[number] = int(given[f"{name}.t"])
        self.key = key
        if self.schedule is not None:
            self.schedule.set_state_dict(given["LR_Scheduler"])
        else:
            self.settings["learning_rate"] = rate

    def _named(self) -> Iterator[tuple[str, FlatParameters, int]]:
        """Yield the name of each parameter, its flat parameters and its number there."""
        names = parameter_names(self.groups)
        for group in self.groups:
            for flat in group.arenas:
                for number, p in enumerate(flat.parameters):
                    yield names[id(p)], flat, number

    def _arrays(self) -> list[_Entry]:
        """Return the location of each array of the state."""
        return [
            _Entry(name, flat, number, slot)
            for name, flat, number in self._named()
            for slot in [*flat.slots, *([None] if flat.master is not None else [])]
        ]


def check_is_mapping(state_dict: Any) -> None:
    """Raise TypeError if a state is no mapping."""
    if not isinstance(state_dict, Mapping):
        kind = type(state_dict).__name__
        raise TypeError(f"set_state_dict takes what state_dict gave, a dict; got {kind}.")


def raise_faults(who: str, faults: list[str]) -> None:
    """Raise a ValueError that lists the faults of a state, if there are any."""
    if faults:
        more = f"\n  and {len(faults) - _MOST_LISTED} more" * (len(faults) > _MOST_LISTED)
        listed = "\n  ".join(faults[:_MOST_LISTED])
        raise ValueError(
            f"this is not a state of {who} for these parameters. Nothing was changed.\n"
            f"  {listed}{more}"
        )


def stack_members(array: Any) -> Any:
    """Return the array of an ensemble, whose first axis counts the members."""
    return array.members if isinstance(array, EnsembleArray) else array


def unstack_like(there: Any, array: Any) -> Any:
    """Return an array of `stack_members` as an ensemble again, if `there` is one."""
    if isinstance(there, EnsembleArray) and array.shape == there.members.shape:
        return EnsembleArray(array, there.level)
    return array


def nan_fault(array: Any) -> str:
    """Return what is wrong with an array of a state that holds NaN, or an empty text.

    Each member of an ensemble is a run of its own, which may have spoiled itself alone.
    """
    if isinstance(array, EnsembleArray):
        return ""
    count = int(np.isnan(array).sum())
    return f"has {count} element{'s' * (count != 1)} that {'is' if count == 1 else 'are'} NaN" * (
        count > 0
    )


def _read_rate(value: Any) -> Any:
    """Read a learning rate, or those of an ensemble."""
    if isinstance(value, (list, tuple)):
        return PerMember([checked_rate(one) for one in value])
    return checked_rate(value)


def _missing_or_unexpected(expected: Mapping[str, Any], given: Mapping[str, Any]) -> list[str]:
    """Return the entries that only one of two states has, as faults."""
    faults = [f"{name} is missing" for name in expected if name not in given and name != "extra"]
    faults += [f"{name} is unexpected" for name in given if name not in expected]
    masters, others = expected.get("master_weights", {}), given.get("master_weights", {})
    if "master_weights" in expected and isinstance(others, Mapping):
        faults += [f"master_weights {name} is missing" for name in masters if name not in others]
        faults += [f"master_weights {name} is unexpected" for name in others if name not in masters]
    elif "master_weights" in expected:
        faults.append("master_weights must be a dict of arrays")
    return faults
