"""The step: how a rule is run over the parameters of an optimizer.

Clip the raw gradients of a group, add the decay, apply the rule, write. Everything is computed and
checked before anything is written, so that an error leaves parameters and slots as they were.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from optlab.backend import events
from optlab.optimizer.arena import Arena
from optlab.optimizer.groups import Group

if TYPE_CHECKING:
    from optlab.optimizer.optimizer import Optimizer


class Update(NamedTuple):
    """One pass of a rule over neighbouring parameters of an arena, as told to listeners.

    All arrays are flat, cover parameters ``first`` to ``last - 1`` of the arena, and are never
    written to afterwards: a listener may keep them without copying.
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

    @property
    def whole(self) -> bool:
        """Whether it covers every parameter of the arena."""
        return self.last - self.first == len(self.arena.parameters)


def take_step(optimizer: Optimizer) -> None:
    """Update every parameter that has a gradient, and tell those who listen."""
    updates = []
    together = optimizer.kind == "elementwise"
    for group in optimizer.groups:
        raws = [arena.gradients() for arena in group.arenas]
        gradients = raws if group.grad_clip is None else _clipped(group, raws)
        for arena, given, ready in zip(group.arenas, raws, gradients, strict=True):
            if not arena.holds_all():
                arena.adopt()
            for first, last, key in arena.runs(ready, group.regularizer, together):
                raw_gradient = _flat(given[first:last])
                g = raw_gradient if ready is given else _flat(ready[first:last])
                updates.append(_apply(optimizer, group, arena, first, last, key, raw_gradient, g))
    for update in updates:
        _write(update)
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
    p, slots = arena.flat, arena.slots
    if last - first < len(arena.parameters):
        place = slice(arena.bounds[first], arena.bounds[last])
        p, slots = p[place], {name: array[place] for name, array in slots.items()}
    if regularizer is not None:
        g = regularizer.add_to(g, p)
    h = group.h
    h.learning_rate = rate = optimizer.settings["learning_rate"] * group.multiplier * multiplier
    c = SimpleNamespace(**optimizer.scalars(t, h))
    if optimizer.kind == "elementwise":
        result = optimizer.update(p, g, SimpleNamespace(**slots), h, c)
    else:
        result = _in_shape(optimizer, arena.parameters[first].data.shape, p, g, slots, h, c)
    new, made = result[0], result[1]
    _check(optimizer, p, new, slots, made)
    # What the rule handed back unchanged is still the arena's own memory, which will be written to.
    if new is p or new.base is not None:
        new = new.copy()
    for name, array in made.items():
        if array is p or array.base is not None:
            made[name] = array.copy()
    terms = result[2] if len(result) > 2 else {}
    return Update(arena, first, last, t, rate, raw_gradient, g, new, made, terms)


def _in_shape(
    optimizer: Optimizer,
    shape: tuple[int, ...],
    p: Any,
    g: Any,
    slots: dict[str, Any],
    h: SimpleNamespace,
    c: SimpleNamespace,
) -> tuple[Any, ...]:
    """Apply a rule that needs one parameter in its own shape; give its results flat."""
    s = SimpleNamespace(**{name: array.reshape(shape) for name, array in slots.items()})
    new, made, *terms = optimizer.update(p.reshape(shape), g.reshape(shape), s, h, c)
    return (
        new.reshape(-1),
        {name: array.reshape(-1) for name, array in made.items()},
        {name: np.reshape(array, -1) for name, array in terms[0].items()} if terms else {},
    )


def _check(
    optimizer: Optimizer, p: Any, new: Any, slots: dict[str, Any], made: dict[str, Any]
) -> None:
    """Say what is wrong with what a rule returned, before it is written anywhere."""
    name = type(optimizer).__name__
    if made.keys() != slots.keys():
        raise ValueError(
            f"{name}.update returned slots {sorted(made)}, but the class declares "
            f"{sorted(slots)}. Return every slot, also one that did not change."
        )
    for label, array in (("parameter", new), *made.items()):
        if array.shape != p.shape:
            raise ValueError(
                f"{name}.update returned the {label} with shape {array.shape} in place of "
                f"{p.shape}. If the rule needs a parameter's own shape, set kind = 'tensor' in the "
                "class."
            )
        if array.dtype != p.dtype:
            raise TypeError(
                f"{name}.update returned the {label} as {array.dtype} for parameters of {p.dtype}: "
                "a NumPy number or array of another dtype entered the rule. Use Python floats for "
                "constants."
            )


def _write(update: Update) -> None:
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
        arena.flat[place] = update.parameter
    arena.t[first:last] = [update.t] * (last - first)


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
    """Lay gradients side by side."""
    if len(gradients) == 1:
        return gradients[0].reshape(-1)
    return np.concatenate([g.reshape(-1) for g in gradients])
