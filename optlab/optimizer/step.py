"""The step: clip the raw gradients of a group, add the decay, apply the rule, write.

Everything is computed and checked before anything is written, so that an error leaves parameters
and slots as they were. What the fast step warns of (see `blocks`), it says when the whole step is
written, also where warnings are errors.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from optlab.autograd.sparse import RowSparse
from optlab.autograd.tape import ZERO
from optlab.autograd.tensor import raw
from optlab.backend import events
from optlab.backend.arrays import frozen
from optlab.backend.ensemble import EnsembleArray
from optlab.nn.clip import scaled
from optlab.optimizer.application import apply_rule
from optlab.optimizer.arena import Arena, Run, check_gradient
from optlab.optimizer.blocks import Pass, fast_pass, take_passes
from optlab.optimizer.groups import Group
from optlab.optimizer.protocols import UpdateRule
from optlab.optimizer.reminders import remind_of_backward, remind_of_schedule, remind_of_zeros
from optlab.optimizer.rows import RowUpdate, rows_updated, write_rows


class Update(NamedTuple):
    """One pass of a rule over neighbouring parameters of an arena, as told to listeners.

    All arrays are flat, cover parameters ``first`` to ``last - 1`` of the arena, and are never
    written to afterwards: a listener may keep them without copying. `whole` says whether these are
    all the parameters of the arena.
    """

    arena: Arena
    first: int
    last: int
    t: int
    learning_rate: float
    raw_gradient: Any
    gradient: Any
    parameter: Any
    slots: dict[str, Any]
    terms: dict[str, Any]
    whole: bool


#: As `Update._make`, in half the time.
_as_update: Any = partial(tuple.__new__, Update)


def take_step(optimizer: UpdateRule, given: dict[int, Any] | None = None) -> None:
    """Update every parameter that has a gradient, and tell those who listen.

    Parameters
    ----------
    optimizer
    given : dict of int to array, optional
        Gradients by the identities of parameters, in place of those that they hold.
    """
    updates: list[Update] = []
    few_rows: list[RowUpdate] = []
    passes: list[Pass] = []
    together = optimizer.kind == "elementwise"
    listened = bool(events.step_taken.listeners)
    base_rate = optimizer.get_lr()
    if base_rate == 0:
        remind_of_schedule(optimizer)
    node = optimizer.groups[0].parameters[0].node
    if given is None and node is not None and node.grad is ZERO:
        remind_of_zeros(optimizer)
    of_groups: list[tuple[Group, list[list[Any]]]] = []
    for group in optimizer.groups:
        of_groups.append((group, [arena.gradients(given) for arena in group.arenas]))
    if optimizer._common["not_finite"] != "pass" and not _go_on(optimizer, of_groups):
        optimizer.skipped += 1
        return
    for group, raws in of_groups:
        gradients, factor = raws, None
        if group.grad_clip is not None:
            factor = None if listened else _common_factor(group, raws)
            if factor is None:
                gradients = clipped(group, raws)
            elif getattr(group.grad_clip, "auto_skip_clip", False) and group.grad_clip.skips(
                factor
            ):
                factor = None
        rate = base_rate * group.multiplier
        for place, arena in enumerate(group.arenas):
            unclipped, ready = raws[place], gradients[place]
            arena.make_ready()
            if RowSparse in map(type, ready):
                done = rows_updated(optimizer, group, arena, ready, rate)
                ready = list(ready)
                for few in done:
                    if listened:
                        updates.append(_whole(few, unclipped[few.place], ready[few.place]))
                    else:
                        few_rows.append(few)
                    ready[few.place] = None
            values = arena.values
            for run in arena.runs(ready, group.regularizer, together):
                span = slice(run.first, run.last)
                if not listened:
                    fast = fast_pass(optimizer, arena, run, ready[span], rate, factor)
                    if fast is not None:
                        passes.append(fast)
                        continue
                raw_gradient = _flat(unclipped[span], values)
                g = raw_gradient if ready is unclipped else _flat(ready[span], values)
                if factor is not None:
                    g = frozen(scaled(g, factor))
                updates.append(_updated(optimizer, arena, run, rate, raw_gradient, g, listened))
    writer = f"{type(optimizer).__name__}.step()"
    opened: dict[int, Arena] = {}
    for update in updates:
        _write(update, writer, listened, opened)
    if listened:
        for arena in opened.values():
            for array in arena.slots.values():
                frozen(array)
    for few in few_rows:
        write_rows(few, writer)
    if passes:
        take_passes(optimizer, passes)
    if listened:
        events.step_taken.publish(optimizer, updates)
    if not updates and not passes and not few_rows and given is None:
        remind_of_backward(optimizer)


def _go_on(optimizer: UpdateRule, of_groups: list[tuple[Group, list[list[Any]]]]) -> bool:
    """Say whether the step is to be taken, by the policy for gradients that are not finite.

    Raises
    ------
    FloatingPointError
        If the policy says so. Nothing has changed then.
    """
    for group, of_group in of_groups:
        for arena, of_arena in zip(group.arenas, of_group, strict=True):
            for p, g in zip(arena.parameters, of_arena, strict=True):
                values = g.values if isinstance(g, RowSparse) else g
                together = isinstance(values, EnsembleArray)
                while isinstance(values, EnsembleArray):
                    values = values.members
                if values is None or bool(np.isfinite(values).all()):
                    continue
                if optimizer._common["not_finite"] == "skip":
                    return False
                bad = ~np.isfinite(values)
                count, who = int(bad.sum()), ""
                if together:
                    found = np.flatnonzero(bad.reshape(len(bad), -1).any(1)).tolist()
                    who = f" in member{'s' * (len(found) != 1)} {_listed(found)} of the ensemble"
                raise FloatingPointError(
                    f"the gradient of {getattr(p, 'name', None) or 'a parameter'} (shape "
                    f"{p.shape}) has {count} element{'s' * (count != 1)} that "
                    f"{'is' if count == 1 else 'are'} not finite{who}. Nothing was changed. "
                    "Try a smaller learning rate or grad_clip; optlab.autograd.detect_anomaly() "
                    "finds the operation."
                )
    return True


def _listed(numbers: list[int], most: int = 8) -> str:
    """Name the members that are meant, the first of them where there are many."""
    more = f" and {len(numbers) - most} more" * (len(numbers) > most)
    return ", ".join(map(str, numbers[:most])) + more


def _updated(
    optimizer: UpdateRule,
    arena: Arena,
    run: Run,
    rate: float,
    raw_gradient: Any,
    g: Any,
    listened: bool,
) -> Update:
    """Apply the rule to the parameters of a run; nothing is written yet."""
    first, last, t, multiplier, regularizer, h = run
    p, slots = arena.read_only, arena.slots
    whole = last - first == len(arena.parameters)
    if not whole:
        place = slice(arena.bounds[first], arena.bounds[last])
        p, slots = p[place], {name: frozen(array[place]) for name, array in slots.items()}
    elif arena.slots_are_open:
        slots = {name: frozen(array[:]) for name, array in slots.items()}
    if regularizer is not None:
        g = regularizer.add_to(g, p)
        frozen(g)
    h.learning_rate = rate = rate * multiplier
    shape = None if optimizer.kind == "elementwise" else arena.parameters[first].data.shape
    new, made, terms = apply_rule(optimizer, p, g, slots, h, t, shape, (arena, first), listened)
    if arena.master is not None:
        new.astype(arena.flat.dtype)  # an overflow is said, or raised, before anything is written
    return _as_update((arena, first, last, t, rate, raw_gradient, g, new, made, terms, whole))  # type: ignore[no-any-return]


def _whole(few: RowUpdate, raw_gradient: Any, g: Any) -> Update:
    """Give an update of some rows as one of the whole parameter, for listeners."""
    arena, place = few.arena, few.place
    span = slice(arena.bounds[place], arena.bounds[place + 1])
    changed = {"": few.parameter, **few.slots}
    arrays = {}
    for name, values in {**arena.slots, "": arena.values}.items():
        arrays[name] = values[span].copy()
        arrays[name].reshape(raw_gradient.shape)[few.rows] = changed[name]
        frozen(arrays[name])
    raw_gradient, g = _flat([raw_gradient], arena.values), _flat([g], arena.values)
    new, whole = arrays.pop(""), len(arena.parameters) == 1
    return Update(
        arena, place, place + 1, few.t, few.learning_rate, raw_gradient, g, new, arrays, {}, whole
    )


def _write(update: Update, writer: str, listened: bool, opened: dict[int, Arena]) -> None:
    """Put the results of one pass where they belong; `opened` are arenas written to in parts."""
    arena, first, last = update.arena, update.first, update.last
    if update.whole:
        arena.put_slots(update.slots)
        arena.write(..., update.parameter)
    else:
        place = slice(arena.bounds[first], arena.bounds[last])
        if id(arena) not in opened:
            opened[id(arena)] = arena
            arena.own_slots(listened)
        for name, array in update.slots.items():
            arena.slots[name][place] = array
        arena.write(place, update.parameter)
    arena.t[first:last] = [update.t] * (last - first)
    arena.was_written(first, last, writer)


def _pairs(group: Group, raws: list[list[Any]]) -> list[tuple[Any, Any]]:
    """Give the (parameter, gradient) pairs of all arenas of a group."""
    return [
        pair
        for arena, gradients in zip(group.arenas, raws, strict=True)
        for pair in zip(arena.parameters, gradients, strict=True)
    ]


def _common_factor(group: Group, raws: list[list[Any]]) -> Any:
    """Give the one number by which a clip multiplies all gradients of a group, or None."""
    find = getattr(group.grad_clip, "common_factor", None)  # a clip may be any callable
    pairs = _pairs(group, raws)
    if find is None or any(isinstance(g, RowSparse) for _, g in pairs):
        return None
    return find(pairs)


def clipped(group: Group, raws: list[list[Any]]) -> list[list[Any]]:
    """Give the gradients of all arenas of a group clipped together, and None as it is."""
    pairs = [(p, g) for p, g in _pairs(group, raws) if g is not None]
    if not pairs:
        return raws
    name = getattr(group.grad_clip, "__name__", type(group.grad_clip).__name__)
    try:
        # Nobody may write into p.grad: what is handed out are views to read.
        seen = [(p, g if isinstance(g, RowSparse) else frozen(g[...])) for p, g in pairs]
        same = {id(shown): g for (_, shown), (_, g) in zip(seen, pairs, strict=True)}
        found = {id(p): same.get(id(raw(g)), raw(g)) for p, g in group.grad_clip(seen)}
    except (TypeError, ValueError) as error:
        said = f"grad_clip {name} takes (parameter, gradient) pairs and returns such pairs"
        if "read-only" in str(error):
            said = (
                f"grad_clip {name} writes into a gradient, which is that of p.grad. Write g = g * "
                "factor in place of g *= factor"
            )
        raise TypeError(f"{said}: {error}") from error
    if found.keys() != {id(p) for p, _ in pairs}:
        raise ValueError(
            f"grad_clip {name} was given {len(pairs)} (parameter, gradient) pairs and returned "
            f"{len(found)} of other parameters; it returns one for each. Nothing was changed."
        )
    for p, _ in pairs:
        check_gradient(p, found[id(p)], p.data.dtype)
    if all(found[id(p)] is g for p, g in pairs):
        return raws
    results = iter([found[id(p)] for p, _ in pairs])
    return [[None if g is None else next(results) for g in gradients] for gradients in raws]


def _flat(gradients: Sequence[Any], beside: Any) -> Any:
    """Lay gradients side by side, in an array of the dtype of `beside` that nobody writes to."""
    if len(gradients) == 1:
        flat = gradients[0].reshape(-1)
    else:
        flat = np.concatenate([g.reshape(-1) for g in gradients])
    if flat.dtype != beside.dtype:
        flat = flat.astype(beside.dtype)
    return frozen(flat)
