"""One functional application of a rule to all leaves: settings, clip, decay, update.

`settings_of` finds what the groups of an optimizer say about its parameters, for parameters that
were given as arrays.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np

from optlab.autograd.tensor.tensor import Tensor, raw
from optlab.backend.arrays import unwrapped
from optlab.backend.call_recorder import LiveCount, is_live
from optlab.backend.ensemble import EnsembleArray, EnsembleError
from optlab.backend.random import Key, next_key
from optlab.nn.base.parameter import Parameter
from optlab.nn.clip import scaled
from optlab.optimizer.params.groups import check_clip, checked_rate
from optlab.optimizer.params.labels import warn_of_idle_rules
from optlab.optimizer.regularizer import L2Decay, as_regularizer, with_decay
from optlab.optimizer.rule.hyperparameters import checked_of
from optlab.optimizer.rule.members import PerMember, each_member
from optlab.optimizer.rule.namespaces import HyperParameters, Scalars, Slots, SpreadHyperParameters
from optlab.optimizer.rule.traced import TracedNumber, traced
from optlab.optimizer.step.apply_rule import check_result, draw_place, scalars_of
from optlab.optimizer.step.elementwise_check import verify_elementwise
from optlab.optimizer.step.functional import (
    Leaves,
    State,
    apart,
    as_operand,
    count_of,
    entry,
    handed,
    is_traced,
    next_count,
    number_of,
)
from optlab.optimizer.step.functional_match import correspondence, refuse_unknown_keys
from optlab.optimizer.step.live_scalars import live_scalars
from optlab.optimizer.step.not_finite import functional_results_are_finite, refuse_skip_of_members


class Settings(NamedTuple):
    """What one leaf is updated with."""

    h: HyperParameters
    multiplier: float
    regularizer: Any
    #: What a clip sees as its parameter.
    owner: Any
    #: Its number among the parameters that the optimizer was made with, if it was.
    place: tuple[Any, int] | None


def rule_start(optimizer: Any, leaves: Leaves, values: list[Any], named: dict[str, Any]) -> State:
    """Return the state of a rule before the first step."""
    _refuse_own_step(optimizer)
    settings, _ = settings_of(optimizer, leaves, named, rate=None)
    columns: dict[str, list[Any]] = {}
    for p, one in zip(values, settings, strict=True):
        for name, start in optimizer.slots_for(one.h).items():
            columns.setdefault(name, []).append(_first_slot(p, start))
    count = len(values)
    state: State = {
        "t": leaves.build([LiveCount(0) for _ in range(count)]),
        "slots": {name: leaves.build(column) for name, column in columns.items()},
    }
    if optimizer.draws:
        state["key"] = _key_as_array(optimizer.key or next_key())
    return state


def _first_slot(p: Any, start: Any) -> Any:
    """Return a slot at its start value, as a Tensor beside a Tensor."""
    like = raw(p)
    dtype = np.float32 if like.dtype.itemsize < 4 else None
    if isinstance(start, TracedNumber):
        return handed(start * np.ones_like(like, dtype=dtype), p)
    return handed(np.full_like(like, start, dtype=dtype), p)


def rule_take(
    optimizer: Any,
    leaves: Leaves,
    values: list[Any],
    gradients: list[Any],
    state: State,
    named: dict[str, Any],
) -> tuple[list[Any], State, list[bool]]:
    """Return new values and state of all leaves, and which were updated."""
    _refuse_own_step(optimizer)
    rate = _rate(optimizer, named)
    settings, groups = settings_of(optimizer, leaves, named, rate)
    counts = [
        count_of(t, "a step count, state['t'],")
        for t in leaves.like(entry(state, "t"), "state['t']")
    ]
    slots = _slots(optimizer, leaves, settings, state)
    key = _key_from_array(entry(state, "key")) if optimizer.draws else None
    moved = [g is not None for g in gradients]
    watched = optimizer.not_finite != "pass"
    if watched and not _all_finite(optimizer, leaves, gradients):
        return list(values), dict(state), [False] * len(values)
    clipped, factors = _clipped(groups, settings, gradients)
    with np.errstate(all="ignore") if watched else nullcontext():  # what is watched is refused
        new, made = _all_applied(
            optimizer, leaves, values, gradients, clipped, factors, settings, counts, slots, key
        )
        if watched and not functional_results_are_finite(
            optimizer, _results(leaves, values, slots, new, made, moved)
        ):
            return list(values), dict(state), [False] * len(values)
    state = {
        "t": leaves.build([next_count(t, m) for t, m in zip(counts, moved, strict=True)]),
        "slots": {name: leaves.given_back([one[name] for one in made]) for name in slots[0]},
    }
    if key is not None:
        state["key"] = _key_as_array(key)
    return new, state, moved


def _all_applied(
    optimizer: Any,
    leaves: Leaves,
    values: list[Any],
    gradients: list[Any],
    clipped: list[Any],
    factors: list[Any],
    settings: list[Settings],
    counts: list[int],
    slots: list[dict[str, Any]],
    key: Key | None,
) -> tuple[list[Any], list[dict[str, Any]]]:
    """Return new values and slots of all leaves; those without a gradient stay."""
    new: list[Any] = []
    made: list[dict[str, Any]] = []
    for i, (p, g) in enumerate(zip(values, clipped, strict=True)):
        if g is None:
            new.append(p)
            made.append(slots[i])
            continue
        if g.dtype != p.dtype:
            g = g.astype(p.dtype)
        if factors[i] is not None:
            g = scaled(g, factors[i])
        g, decay = with_decay(settings[i].regularizer, g, p, optimizer.separate_decay)
        t = counts[i] + 1
        c = _scalars(optimizer, t, settings[i], leaves, i, key)
        if decay is not None:
            c.decay = decay
        value, found = _applied(optimizer, p, g, slots[i], settings[i].h, c)
        new.append(apart(value, [p, g, gradients[i]]))
        made.append(
            {k: apart(x, [p, g, gradients[i], slots[i][k]]) for k, x in found.items()}
        )  # fmt: skip
    return new, made


def _results(
    leaves: Leaves,
    values: list[Any],
    slots: list[dict[str, Any]],
    new: list[Any],
    made: list[dict[str, Any]],
    moved: list[bool],
) -> Iterator[tuple[str, Any, Any]]:
    """Yield what a step returns for the leaves that it updates: its label, new and old values."""
    for i, p in enumerate(leaves.parts):
        if not moved[i]:
            continue
        what = f"{leaves.label(i)} (shape {p.shape})"
        x, old = raw(new[i]), raw(values[i])
        yield what, x, old
        for name, slot in made[i].items():
            yield f"the slot {name!r} of {what}", raw(slot), raw(slots[i][name])
        if x.dtype != p.dtype:  # a float32 copy, which is rounded to the parameter
            yield what, x.astype(p.dtype), old


def _refuse_own_step(optimizer: Any) -> None:
    """Raise for an optimizer whose step is more than its rule."""
    if not optimizer.custom_step:
        return
    name = type(optimizer).__name__
    raise TypeError(
        f"{name} has no functional_step: its step() needs a closure that evaluates the loss at "
        "points of its choice."
        if name == "LBFGS"
        else f"{name} has no functional_step: it has a step() of its own, which is more than a "
        "rule applied to gradients."
    )


def _rate(optimizer: Any, named: dict[str, Any]) -> Any:
    """Return the learning rate of this step."""
    if "learning_rate" in named:
        return _hyperparameter(optimizer, "learning_rate", named["learning_rate"])
    if optimizer.schedule is not None:
        raise ValueError(
            f"the rate of this {type(optimizer).__name__} comes from "
            f"{type(optimizer.schedule).__name__}, whose count is not part of the state: give the "
            "rate of each step, functional_step(..., learning_rate=optimizer.get_lr())."
        )
    return optimizer.get_lr()


def _hyperparameter(optimizer: Any, name: str, value: Any) -> Any:
    """Return the value of a hyper-parameter, checked as the constructor checks it."""
    cls = type(optimizer)
    default = cls.hyperparameters[name]
    if value is None and (not isinstance(default, type(None))):
        raise ValueError(f"{name} of {cls.__name__} must be one number, not None: leave it out.")
    if isinstance(default, tuple) and isinstance(value, (tuple, list)):
        return tuple(number_of(x, lambda one: one) if is_traced(x) else x for x in value)
    if isinstance(default, (bool, int)) and is_traced(value) and name != "learning_rate":
        kind = "True or False" if isinstance(default, bool) else "a whole number"
        raise TypeError(
            f"{name} of {cls.__name__} is {kind}, by which nothing can be differentiated."
        )
    return number_of(value, lambda one: checked_of(cls, name, one))


def _overrides(optimizer: Any, named: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the hyper-parameters that were given, and the settings of groups that were."""
    cls = type(optimizer)
    rules: dict[str, Any] = {}
    others: dict[str, Any] = {}
    for name, value in named.items():
        if name in cls.hyperparameters:
            rules[name] = _hyperparameter(optimizer, name, value)
        elif name == "weight_decay":
            others["regularizer"] = _decay(value)
        elif name == "grad_clip":
            check_clip(value)
            others["grad_clip"] = value
        else:
            raise TypeError(
                f"{name} of {cls.__name__} is given when it is made, and not to a functional step."
            )
    return rules, others


def _decay(value: Any) -> Any:
    """Return the regularizer of a ``weight_decay``; a number with a gradient means L2Decay, too."""
    if not is_traced(value):
        return as_regularizer(value)
    decay = L2Decay(0.0)
    decay.coeff = number_of(value, lambda one: as_regularizer(one) and one)
    return decay


def settings_of(
    optimizer: Any, leaves: Leaves, named: dict[str, Any], rate: Any
) -> tuple[list[Settings], list[tuple[Any, list[int]]]]:
    """Return the settings of each leaf, and the clip of each group with the leaves in it."""
    rules, others = _overrides(optimizer, named)
    if optimizer.is_template:
        settings = {**optimizer.settings, **rules}
        regularizer, clip = optimizer.decay_and_clip
        if "weight_decay" in optimizer.hyperparameters:
            regularizer = None
        found = []
        asked = []
        for label, part in zip(leaves.labels, leaves.parts, strict=True):
            owner = _Named(raw(part))
            owner.name = label or None
            h = _checked(optimizer, settings)
            asked.append((owner, h, optimizer.for_parameter(owner, h)))
            h, ratio = _with_own(optimizer, owner, h)
            multiplier = 1.0
            found.append(
                _settled(h, rate, multiplier, ratio, others.get("regularizer", regularizer), owner)
            )
        warn_of_idle_rules(optimizer, asked)
        return found, [(others.get("grad_clip", clip), list(range(len(found))))]
    found = []
    groups: dict[int, tuple[Any, list[int]]] = {}
    chosen, doubtful = correspondence(optimizer, leaves)
    alike: list[Any] = []
    for i, (number, group, flat, k) in enumerate(chosen):
        p = flat.parameters[k]
        regularizer = others.get("regularizer", group.regularizer)
        multiplier, own = 1.0, None
        if isinstance(p, Parameter):
            multiplier, own = p.learning_rate, p.regularizer
        if rules:
            h, ratio = _with_own(optimizer, p, _checked(optimizer, {**vars(group.h), **rules}))
        else:
            h, ratio = flat.settings[k]
            h = type(h)(**vars(h))
        if doubtful:
            rest = {name: x for name, x in vars(h).items() if name != "learning_rate"}
            need_clip = getattr(p, "need_clip", True)
            alike.append((number, rest, ratio, multiplier, own or regularizer, need_clip))
        found.append(
            _settled(
                h, None if rate is None else rate * group.multiplier, multiplier, ratio,
                own or regularizer, p, (flat, k),
            )
        )  # fmt: skip
        clip = others.get("grad_clip", group.grad_clip)
        groups.setdefault(number, (clip, []))[1].append(i)
    if doubtful:
        refuse_unknown_keys(optimizer, leaves, alike, [clip for clip, _ in groups.values()])
    return found, list(groups.values())


def _settled(
    h: HyperParameters, rate: Any, multiplier: Any, ratio: Any, regularizer: Any, owner: Any,
    place: Any = None,
) -> Settings:  # fmt: skip
    """Return the settings of a leaf with the rate of this step."""
    if rate is not None:
        vars(h)["learning_rate"] = rate * (ratio * multiplier)
    return Settings(h, multiplier, regularizer, owner, place)


class _Named(Tensor):
    """A parameter as the functions that choose by name or shape see it."""

    __slots__ = ("name",)

    name: str | None


def _checked(optimizer: Any, settings: dict[str, Any]) -> HyperParameters:
    """Return settings as a rule reads them, checked together."""
    spread = any(isinstance(x, PerMember) for x in settings.values())
    h = (SpreadHyperParameters if spread else HyperParameters)(**settings)
    for one in each_member(h):
        optimizer.check(one)
    return h


def _with_own(optimizer: Any, p: Any, h: HyperParameters) -> tuple[HyperParameters, float]:
    """Return the settings of one parameter, and the factor of its rate."""
    own = optimizer.for_parameter(p, h)
    others = {name: value for name, value in own.items() if name != "learning_rate"}
    ratio = checked_rate(own.get("learning_rate", 1.0))
    return (type(h)(**(vars(h) | others)) if others else h), ratio


def _fixed(optimizer: Any) -> dict[str, Any]:
    """Return the optimizer's own settings but the rate, which a schedule may give."""
    return {k: v for k, v in optimizer.settings.items() if k != "learning_rate"}


def _slots(
    optimizer: Any, leaves: Leaves, settings: list[Settings], state: State
) -> list[dict[str, Any]]:
    """Return the slots of each leaf, checked."""
    given = entry(state, "slots")
    wanted = optimizer.slots_for(settings[0].h)
    name = type(optimizer).__name__
    own = optimizer.slots_for(HyperParameters(**{**vars(settings[0].h), **_fixed(optimizer)}))
    for label, start in wanted.items():
        if isinstance(start, TracedNumber) or start != own.get(label, start):
            raise ValueError(
                f"the slot {label!r} of {name} begins at a hyper-parameter that was given here; "
                "give it to functional_init, which makes the slots."
            )
    if not isinstance(given, dict) or given.keys() != wanted.keys():
        raise ValueError(
            f"the state has the slots {sorted(given) if isinstance(given, dict) else given!r}, but "
            f"{name} with these settings has {sorted(wanted)}; begin with functional_init."
        )
    columns = {
        label: [as_operand(x, label) for x in leaves.like(tree, f"the slot {label!r}")]
        for label, tree in given.items()
    }
    found = []
    for i, p in enumerate(leaves.parts):
        one = {label: column[i] for label, column in columns.items()}
        for label, array in one.items():
            if array.shape != p.shape:
                raise ValueError(
                    f"the slot {label!r} of {leaves.label(i)} has shape {array.shape}, the "
                    f"parameter {p.shape}."
                )
        found.append({label: one[label] for label in wanted})
    return found


def _all_finite(optimizer: Any, leaves: Leaves, gradients: list[Any]) -> bool:
    """Return whether all gradients are finite; raise if one is not and that is the policy."""
    for i, g in enumerate(gradients):
        found = np.asarray(True) if g is None else np.isfinite(raw(g))
        while isinstance(found, EnsembleArray):
            refuse_skip_of_members(optimizer)
            found = found.members
        if bool(np.all(found)):
            continue
        if optimizer.not_finite == "skip":
            return False
        raise FloatingPointError(
            f"the gradient of {leaves.label(i)} (shape {g.shape}) has elements that are not "
            "finite. Try a smaller learning rate or grad_clip; "
            "optlab.autograd.detect_anomaly() finds the operation."
        )
    return True


def _clipped(
    groups: list[tuple[Any, list[int]]], settings: list[Settings], gradients: list[Any]
) -> tuple[list[Any], list[Any]]:
    """Return clipped gradients, or a factor for each as `step` applies it."""
    found, factors = list(gradients), [None] * len(gradients)
    for clip, numbers in groups:
        pairs = [(settings[i].owner, gradients[i]) for i in numbers]
        if clip is None or all(g is None for _, g in pairs):
            continue
        find = getattr(clip, "common_factor", None)
        factor = None if find is None else find(pairs)
        if factor is not None:
            if getattr(clip, "auto_skip_clip", False) and not is_traced(factor):
                factor = None if clip.skips(factor) else factor
            for i in numbers:
                factors[i] = factor
            continue
        results = {id(p): g for p, g in clip([pair for pair in pairs if pair[1] is not None])}
        for i in numbers:
            if gradients[i] is None:
                continue
            g = results.get(id(settings[i].owner))
            if g is None or g.shape != gradients[i].shape:
                name = getattr(clip, "__name__", type(clip).__name__)
                raise ValueError(
                    f"grad_clip {name} takes (parameter, gradient) pairs, and returns one of the "
                    "same shape for each."
                )
            found[i] = g
    return found, factors


def _has_traced(h: HyperParameters) -> bool:
    """Return whether a hyper-parameter, or one of a pair, is traced."""
    return any(
        isinstance(x, TracedNumber)
        or (isinstance(x, tuple) and any(isinstance(one, TracedNumber) for one in x))
        for x in vars(h).values()
    )


def _scalars(
    optimizer: Any, t: int, settings: Settings, leaves: Leaves, i: int, key: Key | None
) -> Scalars:
    """Return the scalars of step t: Python numbers, or traced ones."""
    h = settings.h
    if is_live(t):
        found = None if key is not None or _has_traced(h) else live_scalars(optimizer, t, h)
        if found is not None:
            return Scalars(**found)
        t = operator.index(t)  # a plan for every count
    if _has_traced(h):
        for name, x in list(vars(h).items()):
            if isinstance(x, PerMember):
                vars(h)[name] = traced(EnsembleArray(np.asarray(x.values), x.level))
        scalars = dict(optimizer.scalars(t, h))
        for name, x in scalars.items():
            if isinstance(x, Tensor) and not isinstance(x, TracedNumber):
                scalars[name] = traced(x)
            elif isinstance(x, np.generic):
                scalars[name] = x.item()
    else:
        scalars = scalars_of(optimizer, t, h)
    if key is not None:
        if settings.place is not None:
            name, number = draw_place(optimizer, *settings.place)
        else:
            name = leaves.labels[i]
            number = 0 if name else i
        scalars["key"] = key.fold(name, number, t)
    return Scalars(**scalars)


def _applied(
    optimizer: Any, p: Any, g: Any, slots: dict[str, Any], h: HyperParameters, c: Scalars
) -> tuple[Any, dict[str, Any]]:
    """Apply the rule to one leaf."""
    narrow = p.dtype if p.dtype.itemsize < 4 else None
    if narrow is not None:  # computed in float32 and rounded once, as every operation is
        p, g = p.astype(np.float32), g.astype(np.float32)
    if c.decay is not None:
        c.decay = c.decay.astype(p.dtype)
    tracing = _has_traced(h)
    given = [p, g, *slots.values()]
    if all(getattr(x, "node", None) is None for x in given):
        p, g, *arrays = map(raw, given)  # nothing to record: as fast as arrays are
        slots = dict(zip(slots, arrays, strict=True))
    if optimizer.kind != "elementwise":
        p, g = _in_order(p), _in_order(g)
        slots = {name: _in_order(x) for name, x in slots.items()}
    elif not optimizer.elementwise_verified and not tracing and type(raw(p)) is np.ndarray:
        flat = {name: raw(x).reshape(-1) for name, x in slots.items()}
        shapes = [p.shape]
        verify_elementwise(
            optimizer, raw(p).reshape(-1), raw(g).reshape(-1), flat, h, c, check_result, shapes
        )
    number = optimizer.kind == "elementwise" and not p.shape
    if number:  # NumPy computes powers of a number in another way than those of an array
        p, g = p.reshape(1), g.reshape(1)
        c.decay = None if c.decay is None else c.decay.reshape(1)
        slots = {name: x.reshape(1) for name, x in slots.items()}
    result = optimizer.update(p, g, Slots(**slots), h, c)
    new, made, _ = check_result(optimizer, p, slots, result)
    if number:
        new, made = new.reshape(()), {name: x.reshape(()) for name, x in made.items()}
    if narrow is not None:
        new = new.astype(narrow)
    return new, made


def _in_order(x: Any) -> Any:
    """Return an array in C order, on which sums and products depend by their last bits."""
    flags = getattr(unwrapped(x), "flags", None)
    if flags is None or getattr(flags, "c_contiguous", True):
        return x
    return x.reshape(-1).reshape(x.shape)


# Random keys, as arrays ---------------------------------------------------------------------------


def _key_as_array(key: Key) -> Any:
    """Return a random key as an array of bytes, which passes through transforms and files."""
    import json  # here: most programs never draw

    text = json.dumps([key.seed, *key.path])
    return np.frombuffer(text.encode(), np.uint8).copy()


def _key_from_array(array: Any) -> Key:
    data = raw(array)
    while isinstance(data, EnsembleArray):
        rows = data.members
        while isinstance(rows, EnsembleArray):
            rows = rows.members
        data = rows.reshape(-1, rows.shape[-1])
        if not (data == data[0]).all():
            raise EnsembleError(
                "the random keys of the examples of a vmap differ; a draw is shared by all of them."
            )
        data = data[0]
    import json

    try:
        seed, *path = json.loads(np.asarray(data, np.uint8).tobytes().decode())
    except (TypeError, ValueError) as error:
        raise ValueError(f"state['key'] is no random key: {array!r}.") from error
    return Key(seed, tuple(path))
