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
    writer = f"{type(optimizer).__name__}.step()"
    for update in updates:
        _write(update, writer)
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
        shape = arena.parameters[first].data.shape
        p, g = p.reshape(shape), g.reshape(shape)
        slots = {name: array.reshape(shape) for name, array in slots.items()}
        result = optimizer.update(p, g, SimpleNamespace(**slots), h, c)
    new, made, terms = _checked(optimizer, p, slots, result)
    if optimizer.kind != "elementwise":
        g, new = g.reshape(-1), new.reshape(-1)
        made = {name: array.reshape(-1) for name, array in made.items()}
        terms = {name: np.reshape(array, -1) for name, array in terms.items()}
    # What the rule handed back unchanged is still the arena's own memory, which will be written to.
    if new is p or new.base is not None:
        new = new.copy()
    for name, array in made.items():
        if array is p or array.base is not None:
            made[name] = array.copy()
    return Update(arena, first, last, t, rate, raw_gradient, g, new, made, terms)


def _checked(optimizer: Optimizer, p: Any, slots: dict[str, Any], result: Any) -> tuple[Any, ...]:
    """Give what a rule returned, or say what is wrong with it before it is written anywhere."""
    name = f"{type(optimizer).__name__}.update"
    if not (
        isinstance(result, tuple)
        and len(result) in (2, 3)
        and all(isinstance(part, dict) for part in result[1:])
    ):
        raise TypeError(
            f"{name} must return (parameter, slots) or (parameter, slots, terms), slots and terms "
            f"as dicts; it returned {_described(result)}."
        )
    new, made, terms = result if len(result) == 3 else (*result, {})
    if made.keys() != slots.keys():
        raise ValueError(
            f"{name} returned slots {sorted(made)}, but the class declares {sorted(slots)}. "
            "Return every slot, also one that did not change."
        )
    shape, dtype = p.shape, p.dtype
    for array in (new, *made.values()):
        if getattr(array, "dtype", None) != dtype or array.shape != shape:
            raise _misfit(name, p, {"parameter": new, **made})
    return new, made, terms


def _misfit(name: str, p: Any, returned: dict[str, Any]) -> Exception:
    """Say which of the returned arrays does not fit the parameter, and why."""
    for label, array in returned.items():
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


def _described(result: Any) -> str:
    kind = type(result).__name__
    return f"a {kind} of {len(result)}" if isinstance(result, tuple) else f"a {kind}"


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
        arena.flat[place] = update.parameter
    arena.t[first:last] = [update.t] * (last - first)
    for p in arena.parameters[first:last]:
        p.node.version += 1
        p.node.writer = writer


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
