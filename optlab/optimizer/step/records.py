"""Updates of whole arenas, for listeners that want one row a step whatever the step left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from optlab.optimizer.params.flat import FlatParameters
from optlab.optimizer.step.step import Update


def whole_updates(
    arenas: Sequence[FlatParameters], updates: list[Update], rate: float
) -> list[Update]:
    """Give one update for each arena, after the step that `updates` tell of.

    Where the step left a parameter alone, its gradient and terms are NaN.
    """
    if len(updates) == len(arenas) and all(u.whole for u in updates):
        return updates
    return [_merge(arena, [u for u in updates if u.arena is arena], rate) for arena in arenas]


def _merge(arena: FlatParameters, updates: list[Update], rate: float) -> Update:
    """Give one update for an arena whose parameters were updated apart, or not at all."""
    if len(updates) == 1 and updates[0].whole:
        return updates[0]
    values = arena.values
    gradient, used = np.full_like(values, np.nan), np.full_like(values, np.nan)
    terms: dict[str, Any] = {}
    for u in updates:
        place = slice(arena.bounds[u.first], arena.bounds[u.last])
        gradient[place], used[place] = u.raw_gradient, u.gradient
        for name, array in u.terms.items():
            terms.setdefault(name, np.full_like(values, np.nan))[place] = array
    last = len(arena.parameters)
    return Update(arena, 0, last, 0, rate, gradient, used, values.copy(), arena.slots, terms, True)
