"""The step: how a rule is run over the parameters of an optimizer.

Clip the raw gradients of a group, add the decay, apply the rule, write. Everything is computed and
checked before anything is written, so that an error leaves parameters and slots as they were.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from optlab.autograd import writes
from optlab.autograd.sparse import RowSparse
from optlab.backend import events
from optlab.backend.arrays import copied, frozen
from optlab.optimizer.arena import Arena
from optlab.optimizer.groups import Group
from optlab.optimizer.rows import RowUpdate, rows_updated, write_rows
from optlab.optimizer.values import Scalars, Slots

if TYPE_CHECKING:
    from optlab.optimizer.optimizer import Optimizer


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


def take_step(optimizer: Optimizer) -> None:
    """Update every parameter that has a gradient, and tell those who listen."""
    updates: list[Update] = []
    few_rows: list[RowUpdate] = []
    together = optimizer.kind == "elementwise"
    by_rows = optimizer.by_rows and not events.step_taken.listeners
    for group in optimizer.groups:
        raws = [arena.gradients() for arena in group.arenas]
        gradients = raws if group.grad_clip is None else _clipped(group, raws)
        for arena, given, ready in zip(group.arenas, raws, gradients, strict=True):
            if not arena.holds_all():
                arena.adopt()
            if by_rows and any(isinstance(g, RowSparse) for g in ready):
                done = rows_updated(optimizer, group, arena, ready)
                few_rows += done
                ready = list(ready)
                for few in done:
                    ready[few.place] = None
            for first, last, key in arena.runs(ready, group.regularizer, together):
                raw_gradient = _flat(given[first:last])
                g = raw_gradient if ready is given else _flat(ready[first:last])
                updates.append(_apply(optimizer, group, arena, first, last, key, raw_gradient, g))
    writer = f"{type(optimizer).__name__}.step()"
    for update in updates:
        _write(update, writer)
    for few in few_rows:
        write_rows(few, writer)
    if events.step_taken.listeners:
        events.step_taken.publish(optimizer, updates)


def _apply(
    optimizer: Optimizer,
    group: Group,
    arena: Arena,
    first: int,
    last: int,
    key: tuple[int, float, Any],
    raw_gradient: Any,
    g: Any,
) -> Update:
    """Apply the rule to parameters `first` to `last` - 1 of an arena; nothing is written yet."""
    t, multiplier, regularizer = key
    t += 1
    p, slots = arena.read_only, arena.slots
    whole = last - first == len(arena.parameters)
    if not whole:
        place = slice(arena.bounds[first], arena.bounds[last])
        p, slots = p[place], {name: array[place] for name, array in slots.items()}
    if regularizer is not None:
        g = regularizer.add_to(g, p)
        frozen(g)
    h = group.h
    rate = float(optimizer.settings["learning_rate"] * group.multiplier * multiplier)
    h.learning_rate = rate
    scalars = optimizer.scalars(t, h)
    for name, scalar in scalars.items():
        if type(scalar) is not float:  # a NumPy number would widen float32 parameters
            scalars[name] = float(scalar)
    c = Scalars(**scalars)
    if optimizer.kind != "elementwise":
        shape = arena.parameters[first].data.shape
        p, g = p.reshape(shape), g.reshape(shape)
        slots = {name: array.reshape(shape) for name, array in slots.items()}
    try:
        result = optimizer.update(p, g, Slots(**slots), h, c)
    except ValueError as error:
        if "read-only" not in str(error):
            raise
        raise TypeError(
            f"{type(optimizer).__name__}.update writes into its arguments; they are the engine's. "
            "Write m = m + g in place of m += g, and give what is new back."
        ) from error
    new, made, terms = _checked(optimizer, p, slots, result)
    if optimizer.kind != "elementwise":
        g, new = g.reshape(-1), new.reshape(-1)
        made = {name: array.reshape(-1) for name, array in made.items()}
        terms = {name: np.reshape(array, -1) for name, array in terms.items()}
    # What the rule handed back unchanged is still the arena's own memory, which will be written to.
    if new.base is not None:
        new = new.copy()
    for name, array in made.items():
        if array.base is not None or array is g:
            made[name] = array = array.copy()
        frozen(array)
    if events.step_taken.listeners:
        terms = {
            name: copied(term) if getattr(term, "base", None) is not None else term
            for name, term in terms.items()
        }
    return Update(arena, first, last, t, rate, raw_gradient, g, new, made, terms, whole)


def _checked(optimizer: Optimizer, p: Any, slots: dict[str, Any], result: Any) -> tuple[Any, ...]:
    """Give what a rule returned, or say what is wrong with it before it is written anywhere."""
    try:
        new, made, *rest = result
        terms = rest[0] if rest else {}
        if len(rest) < 2 and made.keys() == slots.keys() and isinstance(terms, dict):
            shape, dtype = p.shape, p.dtype
            for array in (new, *made.values()):
                if array.dtype != dtype or array.shape != shape:
                    break
            else:
                return new, made, terms
    except (TypeError, ValueError, AttributeError):
        pass
    raise _misfit(f"{type(optimizer).__name__}.update", p, slots, result)


def _misfit(name: str, p: Any, slots: dict[str, Any], result: Any) -> Exception:
    """Say what is wrong with what a rule returned."""
    if not (
        isinstance(result, tuple)
        and len(result) in (2, 3)
        and all(isinstance(part, dict) for part in result[1:])
    ):
        kind = type(result).__name__
        many = f" of {len(result)}" if isinstance(result, tuple) else ""
        return TypeError(
            f"{name} must return (parameter, slots) or (parameter, slots, terms), slots and terms "
            f"as dicts; it returned a {kind}{many}."
        )
    new, made = result[:2]
    if made.keys() != slots.keys():
        return ValueError(
            f"{name} returned slots {sorted(made)}, but the class declares {sorted(slots)}. "
            "Return every slot, also one that did not change."
        )
    for label, array in {"parameter": new, **made}.items():
        if not hasattr(array, "dtype"):
            return TypeError(f"{name} returned the {label} as {array!r}, which is not an array.")
        if array.shape != p.shape:
            return ValueError(
                f"{name} returned the {label} with shape {array.shape} in place of {p.shape}. "
                "If the rule needs a parameter's own shape, set kind = 'tensor' in the class."
            )
        if array.dtype != p.dtype:
            break
    return TypeError(
        f"{name} returned the {label} as {array.dtype} for parameters of {p.dtype}: a NumPy number "
        "or array of another dtype entered the rule. Use Python floats for constants."
    )


def _write(update: Update, writer: str) -> None:
    """Put the results of one pass where they belong."""
    arena, first, last = update.arena, update.first, update.last
    if update.whole:
        arena.slots = update.slots
        arena.flat[...] = update.parameter
    else:
        place = slice(arena.bounds[first], arena.bounds[last])
        # Listeners may hold the present slots: write into copies.
        arena.slots = {name: array.copy() for name, array in arena.slots.items()}
        for name, array in update.slots.items():
            arena.slots[name][place] = array
            frozen(arena.slots[name])
        arena.flat[place] = update.parameter
    arena.t[first:last] = [update.t] * (last - first)
    # As `Leaf.overwritten` does, with one time for all.
    now = writes.times.last_write = next(writes.clock)
    for p in arena.parameters[first:last]:
        node = p.node
        node.overwritten_at, node.writer = now, writer


def _clipped(group: Group, raws: list[list[Any]]) -> list[list[Any]]:
    """Give the gradients of all arenas of a group, clipped together."""
    pairs = [
        (p, g)
        for arena, gradients in zip(group.arenas, raws, strict=True)
        for p, g in zip(arena.parameters, gradients, strict=True)
    ]
    clipped = iter([g for _, g in group.grad_clip(pairs)])
    return [[next(clipped) for _ in gradients] for gradients in raws]


def _flat(gradients: Sequence[Any]) -> Any:
    """Lay gradients side by side, in an array that cannot be written to."""
    if len(gradients) == 1:
        flat = gradients[0].reshape(-1)
    else:
        flat = np.concatenate([g.reshape(-1) for g in gradients])
    return frozen(flat)
