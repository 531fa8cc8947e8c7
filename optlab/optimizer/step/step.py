"""One step of an optimizer, in five phases: gather, clip, update, write, publish.

All results are computed and checked before any is written, so an error leaves parameters and slots
unchanged. An exception that comes during the writing, such as Ctrl-C, is raised when all is
written: see `roll_forward`. Fused updates (`FusedPass`) warn of floating-point errors when the
whole step is written, so that this holds where warnings are errors, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from optlab.autograd.tape.nodes import ZERO
from optlab.autograd.tape.row_sparse import RowSparse
from optlab.autograd.tensor.tensor import raw
from optlab.backend import events
from optlab.backend.arrays import readonly
from optlab.nn.clip import scaled
from optlab.optimizer.params.flat import FlatParameters, Span, check_gradient
from optlab.optimizer.params.groups import Group
from optlab.optimizer.params.usage_warnings import (
    warn_of_no_gradient,
    warn_of_unstepped_schedule,
    warn_of_zero_gradients,
)
from optlab.optimizer.regularizer import with_decay
from optlab.optimizer.rule.protocols import UpdateRule
from optlab.optimizer.step import bound
from optlab.optimizer.step.apply_rule import apply_rule
from optlab.optimizer.step.fused import FusedPass, FusedUpdate, prepare_fused
from optlab.optimizer.step.not_finite import gradients_are_finite, results_are_finite
from optlab.optimizer.step.roll_forward import roll_forward
from optlab.optimizer.step.sparse_rows import RowUpdate, update_rows, write_rows


class Update(NamedTuple):
    """One application of a rule to neighboring flat parameters, as published to listeners.

    All arrays are flat, cover parameters ``first`` to ``last - 1`` of `arena`, and are never
    written to afterwards: a listener may keep them without copying. `whole` tells whether these are
    all its parameters.
    """

    arena: FlatParameters
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


#: The gradients of a group: a list for each of its `arenas`, with None for a missing gradient.
_Gradients = list[list[Any]]

#: `Update(...)` takes 0.5 us, this 0.25, of the 9 us of a whole step of two scalars.
_new_tuple = tuple.__new__


def take_step(optimizer: UpdateRule, given: dict[int, Any] | None = None) -> None:
    """Update every parameter that has a gradient: gather, clip, update, write, publish.

    Parameters
    ----------
    optimizer
    given : dict of int to array, optional
        Gradients by the identities of parameters, in place of those that they hold.
    """
    if optimizer.unfinished:
        optimizer.unfinished.finish()
    listeners = events.step_taken.listeners
    if listeners:
        listeners = events.step_taken.audience_of(optimizer)
    has_listeners = bool(listeners)
    if given is None and (
        not has_listeners or len(events.step_shown.audience_of(optimizer)) >= len(listeners)
    ):
        if optimizer.bound_step is None:
            bound.bind_when_due(optimizer)
        step = optimizer.bound_step
        if step is not None and has_listeners:
            step = step.with_terms(optimizer)
        if step is not None:
            if step.take(optimizer):
                step.warn()
                if has_listeners:
                    events.step_shown.publish(optimizer, step.shown)
                return
            optimizer.bound_step = None
    rate = optimizer.get_lr()
    gathered = _gather(optimizer, rate, given)
    looks = optimizer.not_finite != "pass"
    if looks:
        pairs = (pair for group, raws in gathered for pair in _pairs(group, raws))
        if not gradients_are_finite(optimizer, pairs):
            optimizer.skipped += 1
            return
    clipped = _clip(gathered, has_listeners)
    dense, fused, rows = _update(optimizer, rate, clipped, has_listeners)
    run = FusedPass(optimizer, fused) if fused else None
    if looks and not results_are_finite(optimizer, dense, run, rows):
        optimizer.skipped += 1
        return
    try:
        write_results(optimizer, dense, run, rows, has_listeners)
    except BaseException as error:
        again = partial(write_results, optimizer, dense, run, rows, has_listeners)
        roll_forward(optimizer.unfinished, again, error)
        raise
    if run is not None:
        run.warn()
    if has_listeners:
        events.step_taken.publish(optimizer, dense)
    if given is None and not (dense or fused or rows):
        warn_of_no_gradient(optimizer)


def _gather(
    optimizer: UpdateRule, rate: Any, given: dict[int, Any] | None
) -> list[tuple[Group, _Gradients]]:
    """Return each group with its raw gradients, checked; warn of a step that will do nothing."""
    if rate == 0:
        warn_of_unstepped_schedule(optimizer)
    node = optimizer.groups[0].parameters[0].node
    if given is None and node is not None and node.grad is ZERO:
        warn_of_zero_gradients(optimizer)
    gathered = []
    for group in optimizer.groups:
        gathered.append((group, [params.gradients(given) for params in group.arenas]))
    return gathered


def _clip(
    gathered: list[tuple[Group, _Gradients]], has_listeners: bool
) -> list[tuple[Group, _Gradients, _Gradients, Any]]:
    """Return each group with its raw and its clipped gradients, and a factor for these or None.

    A factor that is common to all gradients is applied in the update, block by block, which saves
    a pass over them. Listeners are given clipped gradients.
    """
    found = []
    for group, raws in gathered:
        gradients, factor, clip = raws, None, group.grad_clip
        if clip is not None:
            factor = None if has_listeners else _common_factor(group, raws)
            if factor is None:
                gradients = clip_gradients(group, raws)
            elif getattr(clip, "auto_skip_clip", False) and clip.skips(factor):
                factor = None
        found.append((group, raws, gradients, factor))
    return found


def _update(
    optimizer: UpdateRule,
    base_rate: Any,
    clipped: list[tuple[Group, _Gradients, _Gradients, Any]],
    has_listeners: bool,
) -> tuple[list[Update], list[FusedUpdate], list[RowUpdate]]:
    """Apply the rule to all parameters that have a gradient; nothing is written yet.

    The results are new values of whole parameters; fused updates, ready to run; and new rows. With
    listeners all are of the first kind.
    """
    dense: list[Update] = []
    fused: list[FusedUpdate] = []
    rows: list[RowUpdate] = []
    together = optimizer.kind == "elementwise"
    for group, raw_of_group, clipped_of_group, factor in clipped:
        rate = base_rate * group.multiplier
        for i, params in enumerate(group.arenas):
            raws, gradients = raw_of_group[i], clipped_of_group[i]
            params.make_ready()
            if RowSparse in map(type, gradients):
                sparse = update_rows(optimizer, group, params, gradients, rate)
                if has_listeners:
                    dense += [_as_dense(one, raws, gradients) for one in sparse]
                else:
                    rows += sparse
                done = {one.place for one in sparse}
                gradients = [None if k in done else g for k, g in enumerate(gradients)]
            for span in params.spans(gradients, group.regularizer, together):
                ready = None
                if not has_listeners:
                    ready = prepare_fused(optimizer, params, span, gradients, rate, factor)
                if ready is not None:
                    fused.append(ready)
                    continue
                dense.append(
                    _update_span(
                        optimizer, params, span, rate, raws, gradients, factor, has_listeners
                    )
                )
    return dense, fused, rows


def _update_span(
    optimizer: UpdateRule,
    params: FlatParameters,
    span: Span,
    rate: Any,
    raws: list[Any],
    gradients: list[Any],
    factor: Any,
    has_listeners: bool,
) -> Update:
    """Apply the rule to the parameters of a span, unfused."""
    first, last, t, multiplier, regularizer, h = span
    p, slots, changed = params.read_only, params.slots, gradients is not raws
    whole = last - first == len(params.parameters)
    if not whole:
        raws, gradients = raws[first:last], gradients[first:last]
        place = slice(params.bounds[first], params.bounds[last])
        p, slots = p[place], {name: readonly(array[place]) for name, array in slots.items()}
    elif params.slots_writable:
        slots = {name: readonly(array[:]) for name, array in slots.items()}
    raw_gradient = g = _flat(raws, p)
    if changed:
        g = _flat(gradients, p)
    if factor is not None:
        g = readonly(scaled(g, factor))
    decay = None
    if regularizer is not None:
        g, decay = with_decay(regularizer, g, p, optimizer.separate_decay)
        g = readonly(g)
    h.__dict__["learning_rate"] = rate = rate * multiplier  # without the checks of a user's value
    shape = None if optimizer.kind == "elementwise" else params.parameters[first].data.shape
    new, made, terms = apply_rule(
        optimizer, p, g, slots, h, t, shape, (params, first), has_listeners, decay
    )
    if params.master is not None:
        new.astype(params.flat.dtype)  # an overflow warns, or raises, before anything is written
    results = (params, first, last, t, rate, raw_gradient, g, new, made, terms, whole)
    return _new_tuple(Update, results)


def _as_dense(update: RowUpdate, raws: list[Any], gradients: list[Any]) -> Update:
    """Return an update of some rows as one of the whole parameter, for listeners."""
    params, i, t, rate, rows, new, slots = update
    span = slice(params.bounds[i], params.bounds[i + 1])

    def with_rows(values: Any, changed: Any) -> Any:
        values = values[span].copy()
        values.reshape(raws[i].shape)[rows] = changed
        return readonly(values)

    new = with_rows(params.values, new)
    slots = {name: with_rows(array, slots[name]) for name, array in params.slots.items()}
    raw_gradient, g = _flat([raws[i]], params.values), _flat([gradients[i]], params.values)
    whole = len(params.parameters) == 1
    return Update(params, i, i + 1, t, rate, raw_gradient, g, new, slots, {}, whole)


def write_results(
    optimizer: UpdateRule,
    dense: list[Update],
    fused: FusedPass | None,
    rows: list[RowUpdate],
    has_listeners: bool,
) -> None:
    """Write all results into parameters, slots and step counts; may be called again."""
    writer = f"{type(optimizer).__name__}.step()"
    in_parts: dict[int, FlatParameters] = {}
    for update in dense:
        params, first, last = update.arena, update.first, update.last
        if update.whole:
            params.replace_slots(update.slots)
            params.write(..., update.parameter)
        else:
            place = slice(params.bounds[first], params.bounds[last])
            if id(params) not in in_parts:
                in_parts[id(params)] = params
                params.make_slots_writable(has_listeners)
            for name, array in update.slots.items():
                params.slots[name][place] = array
            params.write(place, update.parameter)
        params.t[first:last] = [update.t] * (last - first)
        params.mark_written(first, last, writer)
    if has_listeners:
        for params in in_parts.values():
            for array in params.slots.values():
                readonly(array)
    for one in rows:
        write_rows(one, writer)
    if fused is not None:
        fused.run()


def _pairs(group: Group, raws: list[list[Any]]) -> list[tuple[Any, Any]]:
    """Return the (parameter, gradient) pairs of a group."""
    return [
        pair
        for params, gradients in zip(group.arenas, raws, strict=True)
        for pair in zip(params.parameters, gradients, strict=True)
    ]


def _common_factor(group: Group, raws: list[list[Any]]) -> Any:
    """Return the one number by which a clip multiplies all gradients of a group, or None."""
    find = getattr(group.grad_clip, "common_factor", None)  # a clip may be any callable
    pairs = _pairs(group, raws)
    if find is None or any(isinstance(g, RowSparse) for _, g in pairs):
        return None
    return find(pairs)


def clip_gradients(group: Group, raws: list[list[Any]]) -> list[list[Any]]:
    """Return the gradients of a group, clipped together; None stays None."""
    pairs = [(p, g) for p, g in _pairs(group, raws) if g is not None]
    if not pairs:
        return raws
    name = getattr(group.grad_clip, "__name__", type(group.grad_clip).__name__)
    try:
        # Read-only views, as a clip must not write into p.grad.
        views = [(p, g if isinstance(g, RowSparse) else readonly(g[...])) for p, g in pairs]
        originals = {id(view): g for (_, view), (_, g) in zip(views, pairs, strict=True)}
        found = {id(p): originals.get(id(raw(g)), raw(g)) for p, g in group.grad_clip(views)}
    except (TypeError, ValueError) as error:
        message = f"grad_clip {name} takes (parameter, gradient) pairs and returns such pairs"
        if "read-only" in str(error):
            message = (
                f"grad_clip {name} writes into a gradient, which is that of p.grad. Write g = g * "
                "factor in place of g *= factor"
            )
        raise TypeError(f"{message}: {error}") from error
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
    """Return gradients as one flat read-only array of the dtype of `beside`."""
    several = len(gradients) > 1
    flat = np.concatenate(gradients, axis=None) if several else gradients[0].reshape(-1)
    if flat.dtype != beside.dtype:
        flat = flat.astype(beside.dtype)
    return readonly(flat)
