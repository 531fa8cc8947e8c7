"""Parameter groups: the parameters of an optimizer and their settings."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np

from optlab.autograd.tensor.tensor import Tensor
from optlab.backend.ensemble import EnsembleArray
from optlab.optimizer.params.flat import FlatParameters, ParameterSettings
from optlab.optimizer.params.labels import label_of, warn_of_idle_rules
from optlab.optimizer.params.names import check_slot_names
from optlab.optimizer.params.usage_warnings import warn_of_shared_memory
from optlab.optimizer.regularizer import Regularizer, as_regularizer
from optlab.optimizer.rule.declaration import checked_slots
from optlab.optimizer.rule.hyperparameters import (
    checked,
    checked_of,
    is_schedule,
    unknown_setting,
)
from optlab.optimizer.rule.members import PerMember, each_member
from optlab.optimizer.rule.namespaces import HyperParameters, SpreadHyperParameters


class Group:
    """Parameters that share settings.

    Attributes
    ----------
    parameters : list of Tensor
    h : HyperParameters
        The hyper-parameters that a rule reads.
    multiplier : float
        Multiplies the optimizer's learning rate.
    regularizer, grad_clip
        Or None.
    arenas : list of FlatParameters
        One for each dtype and device.
    """

    __slots__ = ("arenas", "grad_clip", "h", "multiplier", "parameters", "regularizer")

    holds_arrays = True  # for memory ledgers

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(_attribute_hint(name), name=name, obj=None)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in Group.__slots__:
            raise AttributeError(_attribute_hint(name), name=name, obj=None)
        if name == "multiplier":
            value = checked("multiplier", value, 1.0, {"multiplier": (0.0, math.inf)})
        elif name == "regularizer":
            value = as_regularizer(value)
        elif name == "grad_clip":
            check_clip(value)
        super().__setattr__(name, value)

    def __getitem__(self, name: Any) -> Any:
        raise TypeError(f"a group is no dict here, it has attributes. {_attribute_hint(name)}")

    __setitem__ = __delitem__ = lambda self, name, *_: self[name]

    def __repr__(self) -> str:
        n, size = len(self.parameters), sum(p.size for p in self.parameters)
        parts = [f"{n} parameter{'s' * (n != 1)} of {size} element{'s' * (size != 1)}"]
        parts += [f"multiplier={self.multiplier:g}"]
        parts += [f"{name}={x!r}" for name, x in vars(self.h).items() if name != "learning_rate"]
        for name in ("regularizer", "grad_clip"):
            if getattr(self, name) is not None:
                parts.append(f"{name}={getattr(self, name)!r}")
        return f"<Group of {', '.join(parts)}>"

    def __init__(
        self,
        parameters: list[Tensor],
        h: HyperParameters,
        multiplier: float,
        regularizer: Regularizer | None,
        grad_clip: Any,
        slots: dict[str, float],
        own: list[dict[str, Any]],
        multi_precision: bool,
    ) -> None:
        self.parameters = parameters
        self.h = h
        self.multiplier = multiplier
        self.regularizer = regularizer
        self.grad_clip = grad_clip
        by_storage: dict[Any, list[int]] = {}
        for i, p in enumerate(parameters):
            by_storage.setdefault((p.dtype, p.device), []).append(i)
        shared: list[tuple[dict[str, Any], ParameterSettings]] = [({}, ParameterSettings(h, 1.0))]
        self.arenas = [
            FlatParameters(
                [parameters[i] for i in places],
                slots,
                [_settings_for(own[i], h, shared) for i in places],
                multi_precision,
                places,
            )
            for places in by_storage.values()
        ]


def check_clip(grad_clip: Any) -> None:
    """Raise TypeError if something is neither None nor able to clip."""
    if grad_clip is not None and (not callable(grad_clip) or isinstance(grad_clip, type)):
        raise TypeError(
            "grad_clip takes ClipGradByValue, ClipGradByNorm or ClipGradByGlobalNorm; "
            f"got {grad_clip!r}."
        )


#: Entries of groups in other libraries, and where they are here.
_RATE = (
    "the rate is the optimizer's times the group's multiplier: optimizer.get_lr() * "
    "group.multiplier. Set one by optimizer.set_lr(0.01), the other by group.multiplier = 0.1"
)
_INSTEAD = {
    "lr": _RATE,
    "learning_rate": _RATE,
    "initial_lr": _RATE,
    "params": "its parameters are group.parameters",
    "weight_decay": "its decay is group.regularizer, or, of a rule with a decay of its own, "
    "group.h.weight_decay",
}


def _attribute_hint(name: Any) -> str:
    """Return where to find an attribute that a group does not have, for a message."""
    if name in Group.__slots__:
        return f"Write group.{name}."
    instead = _INSTEAD.get(name) or (
        "it has parameters, multiplier (of the rate), regularizer, grad_clip and h, the settings "
        "of the rule, such as group.h.beta1 of Adam"
    )
    return f"A group has no {name!r}: {instead}."


def _settings_for(own: dict[str, Any], h: HyperParameters, shared: list[Any]) -> ParameterSettings:
    """Return the settings of a parameter, one object for all parameters with equal settings."""
    for known, settings in shared:
        if known == own:
            return settings  # type: ignore[no-any-return]
    others = {name: value for name, value in own.items() if name != "learning_rate"}
    settings = ParameterSettings(
        type(h)(**(vars(h) | others)) if others else h,
        checked_rate(own.get("learning_rate", 1.0)),
    )
    shared.append((own, settings))
    return settings


def checked_rate(value: Any) -> float:
    """Return a learning rate as a float; raise if it is none."""
    return checked("learning_rate", value, 0.0, {})  # type: ignore[no-any-return]


def make_groups(optimizer: Any, parameters: Any, known: Iterable[int] = ()) -> list[Group]:
    """Make groups of the ``parameters`` argument of an optimizer, after all is checked.

    Parameters
    ----------
    optimizer
    parameters
        A list of Tensors or of groups.
    known : iterable of int
        Identities of parameters that the optimizer already has.

    Raises
    ------
    TypeError
        If something is not a Tensor, or a group has an unknown key.
    ValueError
        If a parameter appears twice, or can have no gradient.
    """
    wanted = [_read_group(optimizer, entry) for entry in _as_groups(parameters)]
    seen = dict.fromkeys(known, "")
    for number, (tensors, *_) in enumerate(wanted):
        for position, p in enumerate(tensors):
            label = getattr(p, "structural_name", None) or f"parameter {position} of group {number}"
            if id(p) in seen:
                raise ValueError(
                    f"parameter {label!r} (shape {p.shape}) was given twice; each parameter "
                    "belongs to one group, once."
                )
            seen[id(p)] = label
    for *_, slots, _, _ in wanted:
        check_slot_names(type(optimizer).__name__, slots)
    warn_of_shared_memory(p for tensors, *_ in wanted for p in tensors)
    if not known:
        warn_of_idle_rules(
            optimizer,
            [
                (p, h, one)
                for tensors, h, _, _, _, _, own, _ in wanted
                for p, one in zip(tensors, own, strict=True)
            ],
        )
    return [Group(*settings) for settings in wanted if settings[0]]


def checked_hyperparameters(
    optimizer: Any, settings: dict[str, Any], parameters: list[Tensor]
) -> HyperParameters:
    """Return settings as a rule reads them, checked together and with these parameters.

    Raises
    ------
    ValueError
        If the rule's `check` raises it, or a setting has other than one value per member.
    """
    spread = {name: x for name, x in settings.items() if isinstance(x, PerMember)}
    h = (SpreadHyperParameters if spread else HyperParameters)(**settings)
    h.checked_by(partial(_checked_setting, type(optimizer)))
    for one in each_member(h):
        optimizer.check(one)
    for name, x in spread.items():
        for p in parameters:
            array = p.data
            if not isinstance(array, EnsembleArray) or array.level != x.level:
                continue
            if len(array.members) != len(x):
                raise ValueError(
                    f"{name} has {len(x)} values, one a member, but "
                    f"{label_of(p)} is an ensemble of "
                    f"{len(array.members)} members: they must be equally many."
                )
    return h


def _checked_setting(cls: Any, h: HyperParameters, name: str, value: Any) -> Any:
    """Return the value of a setting of a group that is set after the optimizer was made, checked.

    Raises
    ------
    AttributeError
        If there is no such setting, or it is the rate.
    TypeError, ValueError
        If the value does not fit, alone or together with the others.
    """
    if name == "learning_rate":
        raise AttributeError(f"The rate cannot be set here: {_RATE}.")
    if name not in cls.hyperparameters:
        raise AttributeError(unknown_setting(cls.__name__, name, sorted(cls.hyperparameters)))
    value = checked_of(cls, name, value)
    after = type(h)(**(vars(h) | {name: value}))
    probe = object.__new__(cls)  # without parameters, which `check` does not look at
    vars(probe)["settings"] = vars(after)
    if (isinstance(value, PerMember) and not isinstance(h, SpreadHyperParameters)) or (
        probe.slots_for(after).keys() != probe.slots_for(h).keys()
    ):
        raise ValueError(
            f"{name}={value!r} needs another state than this {cls.__name__} has: make a new "
            "optimizer with it."
        )
    for one in each_member(after):
        probe.check(one)
    return value


def _own_settings(optimizer: Any, p: Tensor, h: HyperParameters) -> dict[str, Any]:
    """Return the settings that a rule has for one parameter, checked."""
    cls = type(optimizer)
    own = optimizer.for_parameter(p, h)
    if not isinstance(own, dict):
        raise TypeError(
            f"{cls.__name__}.for_parameter(p, h) must return a dict of settings, empty where "
            f"nothing differs; it returned {own!r}."
        )
    for name, value in own.items():
        if name not in cls.hyperparameters:
            where = f"{cls.__name__}.for_parameter"
            raise TypeError(unknown_setting(where, name, sorted(cls.hyperparameters)))
        checked_of(cls, name, value)
    return own


def parameter_names(groups: list[Group]) -> dict[int, str]:
    """Return a name for every parameter, by identity; equal names are numbered in their order.

    A parameter without a name is called by its position among all of them.
    """
    found: dict[int, str] = {}
    taken: set[str] = set()
    copies: dict[str, int] = {}
    for p in [p for group in groups for p in group.parameters]:
        name = base = getattr(p, "structural_name", None) or f"parameter {len(found)}"
        while name in taken:
            copies[base] = copies.get(base, 1) + 1
            name = f"{base} ({copies[base]})"
        taken.add(name)
        found[id(p)] = name
    return found


def check_not_empty(groups: list[Group]) -> list[Group]:
    """Return the groups; raise ValueError if there is none."""
    if not groups:
        raise ValueError(
            "parameters is empty: there is nothing to optimize. Leave it out for a template."
        )
    return groups


def _as_groups(parameters: Any) -> list[dict[str, Any]]:
    """Return the argument as a list of groups."""
    if isinstance(parameters, Tensor):
        raise TypeError("parameters must be a list of Tensors; write parameters=[w].")
    if isinstance(parameters, dict) and not _is_named(parameters):
        parameters = [parameters]
    items = _as_list("parameters", parameters, "parameters=model.parameters()", " or of groups")
    groups = [item for item in items if isinstance(item, dict)]
    if groups and len(groups) < len(items):
        raise TypeError("parameters must be all Tensors or all groups (dicts), not both.")
    return groups or [{"params": items}]


def _is_named(given: Any) -> bool:
    """Return whether this is a dict of names and Tensors, as a model's state is."""
    return (
        isinstance(given, Mapping)
        and "params" not in given
        and any(isinstance(one, Tensor) for one in given.values())
    )


def _as_list(what: str, given: Any, instead: str, more: str = "") -> list[Any]:
    """Return Tensors (or groups) as a list; raise TypeError for anything else."""
    kind = type(given).__name__
    if _is_named(given):
        kind = f"a {kind} of names and Tensors"
    elif isinstance(given, (set, frozenset)):
        kind = f"a {kind}, whose order is another in every run, so that no state would fit"
    elif isinstance(given, np.ndarray):
        kind = "a NumPy array, which has no gradient"
        instead = f"{instead}, and the Tensor w in place of w.numpy()"
    elif (
        isinstance(given, Iterable)
        and not isinstance(given, (Mapping, str))
        and not callable(getattr(given, "parameters", None))
    ):
        items = list(given)
        first = next((one for one in items if not isinstance(one, (Tensor, dict))), None)
        if callable(getattr(first, "parameters", None)):
            kind = f"a {type(first).__name__} in it"
            instead = f"{instead}; of several layers: [*a.parameters(), *b.parameters()]"
        elif isinstance(first, tuple) and any(isinstance(part, Tensor) for part in first):
            kind = "pairs of a name and a Tensor"
        else:
            return items
    raise TypeError(f"{what} must be a list of Tensors{more}; got {kind}. Write {instead}.")


def _read_group(optimizer: Any, entry: dict[str, Any]) -> tuple[Any, ...]:
    """Check one group and return the arguments of `Group`."""
    cls = type(optimizer)
    if "params" not in entry:
        raise TypeError("a group is a dict with the key 'params', a list of Tensors.")
    tensors = entry["params"]
    if isinstance(tensors, Tensor):
        tensors = [tensors]
    instead = "{'params': model.parameters()}"
    tensors = _as_list("the 'params' of a group", tensors, instead)
    for position, p in enumerate(tensors):
        if not isinstance(p, Tensor):
            raise TypeError(
                f"parameter {position} is a {type(p).__name__}, not a Tensor. Make it with "
                "optlab.Parameter(data) or optlab.to_tensor(data, requires_grad=True)."
            )
        if p.node is None and not hasattr(p, "trainable"):
            raise ValueError(
                f"parameter {position} (shape {p.shape}) needs no gradient; make it with "
                "requires_grad=True."
            )
        if not p.is_leaf:
            raise ValueError(
                f"parameter {position} (shape {p.shape}) was computed by "
                f"{p.node.operation.name!r}; an optimizer changes Tensors that you made."
            )
    settings = dict(optimizer.settings)
    common = optimizer._common
    if common.get("not_finite") == "skip" and any(
        isinstance(p.data, EnsembleArray) for p in tensors
    ):
        raise ValueError(
            "not_finite='skip' would skip a step for some members of an ensemble, but all members "
            "take the same steps and count them together. With not_finite='pass' a member whose "
            "gradient is not finite spoils itself alone; 'raise' stops them all and names the "
            "member; or run the members apart."
        )
    known = {"params", "weight_decay", "grad_clip", *cls.hyperparameters}
    for name, value in entry.items():
        if name not in known:
            renamed = name == "regularization" and "weight_decay" in known
            hint = " In a group it is called 'weight_decay'." if renamed else ""
            raise TypeError(
                unknown_setting(f"a group of {cls.__name__}", name, sorted(known)) + hint
            )
        if name in cls.hyperparameters and name != "learning_rate":
            settings[name] = checked_of(cls, name, value)
    h = checked_hyperparameters(optimizer, settings, tensors)
    regularizer = None
    if "weight_decay" in common:  # otherwise decay is a setting of the rule
        regularizer = as_regularizer(entry.get("weight_decay", common["weight_decay"]))
    grad_clip = entry.get("grad_clip", common["grad_clip"])
    check_clip(grad_clip)
    multiplier = entry.get("learning_rate", 1.0)
    if is_schedule(multiplier):
        kind = type(multiplier).__name__
        raise TypeError(
            "the learning_rate of a group is one number, which multiplies the optimizer's rate; "
            f"got a {kind}. Give the schedule to the optimizer, and the group its factor: "
            f"{cls.__name__}({kind}(...), parameters=[{{'params': ..., 'learning_rate': 0.1}}]). "
            "For a schedule of its own take one optimizer for each group."
        )
    multiplier = checked_rate(multiplier)
    own = [_own_settings(optimizer, p, h) for p in tensors]
    multi_precision = common.get("multi_precision", False)
    if not isinstance(multi_precision, bool):
        raise TypeError(f"multi_precision must be True or False; got {multi_precision!r}.")
    slots = checked_slots(f"{cls.__name__}.slots_for(h)", optimizer.slots_for(h))
    return tensors, h, multiplier, regularizer, grad_clip, slots, own, multi_precision
