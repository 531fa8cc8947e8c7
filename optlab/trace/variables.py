"""The arrays that a trace has recorded of parameters, one by one."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

#: Quantities of the run as a whole, at every recorded step.
SCALARS = ("loss", "learning_rate", "seconds")


class Variable(NamedTuple):
    """One array of a trace: its clock, its column kind, its label, its parameter."""

    clock: str
    kind: str
    label: str
    parameter: str
    array: np.ndarray


def variables_of(trace: Any) -> Iterator[Variable]:
    """Yield all values and norms of a trace."""
    for clock, prefix in (("values", ""), ("norms", "norm ")):
        groups = trace._groups(prefix)
        labels = trace._recorded() if clock == "values" else trace._recorded_norms()
        for (kind, arrays), label in zip(groups.items(), labels, strict=True):
            for name, array in arrays.items():
                shown = label if clock == "values" else f"norm of {label}"
                yield Variable(clock, prefix + kind, shown, name, array)


def flat_rows(array: np.ndarray) -> np.ndarray:
    """Return an array with one flat row a step."""
    return array.reshape(len(array), math.prod(array.shape[1:]))
