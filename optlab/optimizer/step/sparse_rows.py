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
    """New values for some rows of parameter number `place` of `flat`."""

    flat: FlatParameters
    place: int
    t: int
    learning_rate: float
    rows: Any
    parameter: Any
    slots: dict[str, Any]


def update_rows(
    optimizer: UpdateRule, group: Group, flat: FlatParameters, gradients: list[Any], rate: float
) -> list[RowUpdate]:
    """Apply the rule to the rows of every parameter that has a row-sparse gradient.

    Parameters with a regularizer are left out: decay moves every row.
    """
    updates: list[RowUpdate] = []
    if optimizer.kind != "elementwise":
        return updates
    for place, (p, g) in enumerate(zip(flat.parameters, gradients, strict=True)):
        h, multiplier = flat.settings[place]
        own = p.regularizer if isinstance(p, Parameter) else None
        if (
            not isinstance(g, RowSparse)
            or (own or group.regularizer) is not None
            or not optimizer.applies_by_rows(h)
        ):
            continue
        g = g.merged()
        t = flat.t[place] + 1
        if isinstance(p, Parameter):
            multiplier *= p.learning_rate
        h.__dict__["learning_rate"] = rate * multiplier
        c = Scalars(**scalars_of(optimizer, t, h, (flat, place)))
        span = slice(flat.bounds[place], flat.bounds[place + 1])
        wide = np.float32 if flat.values.dtype.itemsize < 4 else flat.values.dtype
        rows = {
            name: array[span].reshape(g.shape)[g.rows].astype(wide, copy=False)
            for name, array in {**flat.slots, "": flat.values}.items()
        }
        values = g.values.astype(wide, copy=False)
        before = rows.pop("")
        result = optimizer.update(before, values, Slots(**rows), h, c)
        new, made, _ = check_result(optimizer, before, rows, result)
        updates.append(RowUpdate(flat, place, t, h.learning_rate, g.rows, new, made))
    return updates


def write_rows(update: RowUpdate, writer: str) -> None:
    """Write new rows into the parameter, its slots and its step count."""
    flat, place, rows = update.flat, update.place, update.rows
    p = flat.parameters[place]
    p.data[rows] = update.parameter
    span = slice(flat.bounds[place], flat.bounds[place + 1])
    if flat.master is not None:
        flat.master[span].reshape(p.data.shape)[rows] = update.parameter
    flat.make_slots_writable()
    for name, new in update.slots.items():
        flat.slots[name][span].reshape(p.data.shape)[rows] = new
    flat.t[place] = update.t
    flat.mark_written(place, place + 1, writer)
