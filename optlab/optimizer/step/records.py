"""Updates of all parameters, for listeners that want one record a step whatever it left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from optlab.optimizer.params.flat import FlatParameters
from optlab.optimizer.step.step import Update


def whole_updates(
    flats: Sequence[FlatParameters], updates: list[Update], rate: float
) -> list[Update]:
    """Return one update for each of the flat parameters, after the step of `updates`.

    Gradient and terms of a parameter that the step left alone are NaN.
    """
    if len(updates) == len(flats) and all(u.whole for u in updates):
        return updates
    return [_merge(flat, [u for u in updates if u.arena is flat], rate) for flat in flats]


def _merge(flat: FlatParameters, updates: list[Update], rate: float) -> Update:
    """Return one update for parameters that were updated separately, or not at all."""
    if len(updates) == 1 and updates[0].whole:
        return updates[0]
    values = flat.values
    gradient, used = np.full_like(values, np.nan), np.full_like(values, np.nan)
    terms: dict[str, Any] = {}
    for u in updates:
        place = slice(flat.bounds[u.first], flat.bounds[u.last])
        gradient[place], used[place] = u.raw_gradient, u.gradient
        for name, array in u.terms.items():
            terms.setdefault(name, np.full_like(values, np.nan))[place] = array
    last = len(flat.parameters)
    return Update(flat, 0, last, 0, rate, gradient, used, values.copy(), flat.slots, terms, True)
