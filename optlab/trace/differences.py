"""The first difference of two runs: at which step, in which quantity and parameter, by how much."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class Difference(NamedTuple):
    """The first difference of two traces; see `first_difference`.

    Attributes
    ----------
    step : int
        The step; 0 if the runs start at different points.
    term : str
        What differs there first in the order of a step: "parameter" (before step 1), "loss",
        "learning_rate", "gradient", "used_gradient", slots, terms, "parameter".
    parameter : str
        The name of the parameter; "" of loss and rate.
    element : tuple of int
        The element that differs most.
    a, b : float
        Its values.
    size : float
        The largest absolute difference of that array.
    relative : float
        It over the largest magnitude in either array.
    """

    step: int
    term: str
    parameter: str
    element: tuple[int, ...]
    a: float
    b: float
    size: float
    relative: float

    def __str__(self) -> str:
        where = f"{self.term} of {self.parameter}" if self.parameter else self.term
        at = f"[{', '.join(map(str, self.element))}]" if self.element else ""
        when = f"step {self.step}" if self.step else "the start"
        return (
            f"first difference at {when}: {where}{at} is {self.a:.9g} and {self.b:.9g} (up to "
            f"{self.size:.3g}, relative {self.relative:.3g})"
        )


def first_difference(a: Any, b: Any, rtol: float = 0.0, atol: float = 0.0) -> Difference | None:
    """Find where two runs first differ: the step, the term and the parameter, and by how much.

    Steps that both have recorded are compared, earliest first, and within a step in the order in
    which it computes: loss, rate, gradient, what clip and decay made of it, slots, terms of the
    update, the new parameters. Norms and quantities of probes are compared where both have them.

    Parameters
    ----------
    a, b : Trace
    rtol : float
        How much an array may differ, relative to the largest magnitude in either of the two. With 0
        every bit counts (but for the sign of zero; NaN equals NaN).
    atol : float
        How much it may differ absolutely.

    Returns
    -------
    Difference or None
        None if nothing differs.

    Raises
    ------
    ValueError
        If the traces have no step or no quantity in common, a parameter has two shapes, or a
        tolerance is negative.

    Examples
    --------
    >>> import optlab as ol
    >>> def run(beta2):
    ...     w = ol.Parameter([3.0, 1.0], name="w")
    ...     optimizer = ol.optimizer.Adam(0.1, beta2=beta2, parameters=[w])
    ...     with ol.record(optimizer) as trace:
    ...         for _ in range(3):
    ...             (w * w).sum().backward()
    ...             optimizer.step()
    ...             optimizer.clear_grad()
    ...     return trace
    >>> difference = ol.trace.first_difference(run(0.999), run(0.99))
    >>> difference.step, difference.term, difference.parameter
    (1, 'moment2', 'w')
    >>> ol.trace.first_difference(run(0.999), run(0.999)) is None
    True
    """
    for given in (a, b):
        if not hasattr(given, "_recorded"):
            raise TypeError(
                "first_difference compares two traces, as of ol.record, or race['Adam'] of a "
                f"comparison; got {type(given).__name__}."
            )
    if rtol < 0 or atol < 0:
        raise ValueError(f"rtol and atol are at least 0; got {rtol!r} and {atol!r}.")
    first, second = _quantities(a), _quantities(b)
    common = [key for key in first if key in second]
    found: list[tuple[int, int, Difference]] = []
    met = False
    for order, (term, parameter) in enumerate(common):
        steps_a, array_a = first[term, parameter]
        steps_b, array_b = second[term, parameter]
        if array_a.shape[1:] != array_b.shape[1:]:
            raise ValueError(
                f"{term} of {parameter} has shape {array_a.shape[1:]} in {a.name} and "
                f"{array_b.shape[1:]} in {b.name}: these are runs of two problems."
            )
        _, of_a, of_b = np.intersect1d(steps_a, steps_b, return_indices=True)
        met |= bool(len(of_a))
        rows = _differing(array_a[of_a], array_b[of_b], rtol, atol)
        if rows.any():
            i = int(np.argmax(rows))
            step = int(steps_a[of_a[i]])
            one = _describe(step, term, parameter, array_a[of_a[i]], array_b[of_b[i]])
            found.append((step, order, one))
    if not met:
        raise ValueError(
            f"{a.name} and {b.name} have nothing in common that was recorded at the same step."
        )
    return min(found, key=lambda one: one[:2])[2] if found else None


def _quantities(trace: Any) -> dict[tuple[str, str], tuple[np.ndarray, np.ndarray]]:
    """Return steps and arrays in the order of a step, by quantity and parameter."""
    found: dict[tuple[str, str], tuple[np.ndarray, np.ndarray]] = {}
    start = np.zeros(1, dtype=np.int64)
    values = trace.steps("values")
    for name, array in trace.parameters.items():
        found["start", name] = start, array[:1]
    for name in ("loss", "learning_rate"):
        found[name, ""] = trace.step, trace[name]
    kinds = {k: x for k, x in trace._recorded().items() if k != "parameter"}
    first = [k for k in ("gradient", "used_gradient") if k in kinds]
    for kind in [*first, *(k for k in kinds if k not in first and k in trace.slots),
                 *(k for k in kinds if k not in first and k not in trace.slots)]:  # fmt: skip
        for name, array in kinds[kind].items():
            found[kind, name] = values, array
    for name, array in trace.parameters.items():
        found["parameter", name] = values, array[1:]
    norms = trace.steps("norms")
    recorded = trace._recorded_norms()
    for kind in sorted(recorded, key=lambda kind: kind == "parameter"):
        arrays = recorded[kind]
        for name, array in arrays.items():
            found[f"norm of {kind}", name] = norms, array
    for name, (record, quantity) in trace._observed().items():
        if record.label == "Time":
            continue
        for parameter, array in record.arrays().get(quantity, {}).items():
            if array.dtype.kind in "biuf":
                found[name, parameter] = record.steps.array(np.int64), array
    return found


def _differing(a: np.ndarray, b: np.ndarray, rtol: float, atol: float) -> np.ndarray:
    """Return which rows differ."""
    count = len(a)
    a = a.reshape(count, -1) if a.size else np.zeros((count, 0))
    b = b.reshape(count, -1) if b.size else np.zeros((count, 0))
    if not a.shape[1]:
        return np.zeros(count, dtype=bool)
    with np.errstate(all="ignore"):
        apart = _apart(a, b)
        allowed = np.full(count, atol)
        if rtol:  # not 0 times infinity
            allowed = np.maximum(allowed, rtol * _largest(a, b))
        return np.asarray((apart > allowed[:, None]).any(axis=1))


def _apart(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return absolute differences: 0 of equal elements and of two NaN, infinite of one NaN."""
    a, b = a.astype(np.float64), b.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(all="ignore"):
        difference = np.abs(a - b)
    return np.where(same, 0.0, np.where(np.isnan(difference), np.inf, difference))


def _largest(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the largest finite magnitude of each row in either array."""
    both = np.abs(np.concatenate([a, b], axis=1).astype(np.float64))
    found: np.ndarray = np.where(np.isfinite(both), both, 0.0).max(axis=1)
    return found


def _describe(step: int, term: str, parameter: str, a: np.ndarray, b: np.ndarray) -> Difference:
    apart = _apart(a, b)
    index = np.unravel_index(int(np.argmax(apart)), apart.shape) if apart.shape else ()
    size = float(apart[index])
    largest = float(_largest(a.reshape(1, -1), b.reshape(1, -1))[0])
    return Difference(
        step,
        "parameter" if term == "start" else term,
        parameter,
        tuple(int(i) for i in index),
        float(a[index]),
        float(b[index]),
        size,
        size / largest if largest else float("inf"),
    )
