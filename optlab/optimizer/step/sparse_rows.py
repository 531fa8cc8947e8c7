"""Row-sparse updates: a rule applied to those rows alone that have a gradient.

For rules that leave rows without a gradient unchanged, slots included (``applies_by_rows``); for
all others a row-sparse gradient is made dense.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from optlab.autograd.tape.row_sparse import RowSparse
from optlab.nn.base.parameter import Parameter
from optlab.optimizer.params.flat import FlatParameters
from optlab.optimizer.params.groups import Group
from optlab.optimizer.rule.namespaces import Scalars, Slots
from optlab.optimizer.rule.protocols import UpdateRule
from optlab.optimizer.step.apply_rule import check_result, scalars_of


class RowUpdate(NamedTuple):
    """New values for some rows of parameter number `place` of an arena."""

    arena: FlatParameters
    place: int
    t: int
    learning_rate: float
    rows: Any
    parameter: Any
    slots: dict[str, Any]


def update_rows(
    optimizer: UpdateRule, group: Group, arena: FlatParameters, gradients: list[Any], rate: float
) -> list[RowUpdate]:
    """Apply the rule to the rows of every parameter that has a row-sparse gradient.

    Parameters with a regularizer are left out: decay moves every row.
    """
    updates: list[RowUpdate] = []
    if optimizer.kind != "elementwise":
        return updates
    for place, (p, g) in enumerate(zip(arena.parameters, gradients, strict=True)):
        h, multiplier = arena.settings[place]
        own = p.regularizer if isinstance(p, Parameter) else None
        if (
            not isinstance(g, RowSparse)
            or (own or group.regularizer) is not None
            or not optimizer.applies_by_rows(h)
        ):
            continue
        g = g.merged()
        t = arena.t[place] + 1
        if isinstance(p, Parameter):
            multiplier *= p.learning_rate
        h.learning_rate = rate * multiplier
        c = Scalars(**scalars_of(optimizer, t, h, (arena, place)))
        span = slice(arena.bounds[place], arena.bounds[place + 1])
        wide = np.float32 if arena.values.dtype.itemsize < 4 else arena.values.dtype
        rows = {
            name: array[span].reshape(g.shape)[g.rows].astype(wide, copy=False)
            for name, array in {**arena.slots, "": arena.values}.items()
        }
        values = g.values.astype(wide, copy=False)
        before = rows.pop("")
        result = optimizer.update(before, values, Slots(**rows), h, c)
        new, made, _ = check_result(optimizer, before, rows, result)
        updates.append(RowUpdate(arena, place, t, h.learning_rate, g.rows, new, made))
    return updates


def write_rows(update: RowUpdate, writer: str) -> None:
    """Write new rows into the parameter, its slots and its step count."""
    arena, place, rows = update.arena, update.place, update.rows
    p = arena.parameters[place]
    p.data[rows] = update.parameter
    span = slice(arena.bounds[place], arena.bounds[place + 1])
    if arena.master is not None:
        arena.master[span].reshape(p.data.shape)[rows] = update.parameter
    arena.make_slots_writable()
    for name, new in update.slots.items():
        arena.slots[name][span].reshape(p.data.shape)[rows] = new
    arena.t[place] = update.t
    arena.mark_written(place, place + 1, writer)
