"""Row-sparse gradients: applying a rule to the rows that have one.

Done for rules that leave a parameter and its slots as they are where the gradient is zero
(``by_rows = True`` in the class); for all others a row-sparse gradient is made whole.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from optlab.autograd.sparse import RowSparse
from optlab.backend.arrays import frozen
from optlab.nn.parameter import Parameter
from optlab.optimizer.arena import Arena
from optlab.optimizer.groups import Group
from optlab.optimizer.values import Scalars, Slots

if TYPE_CHECKING:
    from optlab.optimizer.optimizer import Optimizer


class RowUpdate(NamedTuple):
    """New values for some rows of one parameter, number `place` of its arena."""

    arena: Arena
    place: int
    t: int
    rows: Any
    parameter: Any
    slots: dict[str, Any]


def rows_updated(
    optimizer: Optimizer, group: Group, arena: Arena, gradients: list[Any]
) -> list[RowUpdate]:
    """Apply the rule to the rows of every parameter that has a row-sparse gradient.

    Parameters with a regularizer are left out: decay moves every row.
    """
    done = []
    for place, (p, g) in enumerate(zip(arena.parameters, gradients, strict=True)):
        own = p.regularizer if isinstance(p, Parameter) else None
        if not isinstance(g, RowSparse) or (own or group.regularizer) is not None:
            continue
        g = g.merged()
        t = arena.t[place] + 1
        multiplier = p.learning_rate if isinstance(p, Parameter) else 1.0
        h = group.h
        h.learning_rate = float(optimizer.settings["learning_rate"] * group.multiplier * multiplier)
        c = Scalars(**optimizer.scalars(t, h))
        span = slice(arena.bounds[place], arena.bounds[place + 1])
        rows = {
            name: array[span].reshape(g.shape)[g.rows]
            for name, array in {**arena.slots, "": arena.flat}.items()
        }
        new, made, *_ = optimizer.update(rows.pop(""), g.values, Slots(**rows), h, c)
        done.append(RowUpdate(arena, place, t, g.rows, new, made))
    return done


def write_rows(update: RowUpdate, writer: str) -> None:
    """Put the new rows where they belong."""
    arena, place = update.arena, update.place
    p = arena.parameters[place]
    p.data[update.rows] = update.parameter
    span = slice(arena.bounds[place], arena.bounds[place + 1])
    for name, new in update.slots.items():
        slot = arena.slots[name] = arena.slots[name].copy()  # listeners may hold the present one
        slot[span].reshape(p.data.shape)[update.rows] = new
        frozen(slot)
    arena.t[place] = update.t
    p.node.overwritten(writer)
