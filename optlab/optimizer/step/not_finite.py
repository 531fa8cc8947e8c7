"""The policies for values that are not finite: gradients before a step, its results after it.

Results are looked at before any is written. A fused update has no results before it writes, so it
is tried first, block by block on copies: with a policy, such steps take about twice the time.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from optlab.autograd.tape.row_sparse import RowSparse
from optlab.backend.ensemble import EnsembleArray, EnsembleError
from optlab.backend.text import comma_list
from optlab.optimizer.params.flat import FlatParameters
from optlab.optimizer.params.labels import label_of
from optlab.optimizer.rule.protocols import UpdateRule
from optlab.optimizer.step.fused import FusedPass, FusedUpdate
from optlab.plan import sizes
from optlab.plan.executors import Executor
from optlab.plan.scratch import scratch
from optlab.plan.threads import on_all_cores, over_all_cores

_ADVICE = (
    "Nothing was changed. Try a smaller learning rate or grad_clip; "
    "optlab.autograd.detect_anomaly() finds the operation."
)


def gradients_are_finite(optimizer: UpdateRule, pairs: Iterator[tuple[Any, Any]]) -> bool:
    """Return whether all gradients are finite, given (parameter, gradient) pairs.

    Raises
    ------
    FloatingPointError
        If one is not and the policy is to raise. Nothing has changed then.
    """
    for p, g in pairs:
        values = g.values if isinstance(g, RowSparse) else g
        if values is None:
            continue
        plain = _members(values)
        if bool(np.isfinite(plain).all()):
            continue
        if optimizer.not_finite == "skip":
            return False
        bad = ~np.isfinite(plain)
        who = _which_members(bad) if isinstance(values, EnsembleArray) else ""
        raise FloatingPointError(
            f"the gradient of {label_of(p)} (shape {p.shape}) has "
            f"{_elements(int(bad.sum()))}{who}. {_ADVICE}"
        )
    return True


class _Written(NamedTuple):
    """New and old values of some elements: of parameters from `start`, or of a slot of theirs."""

    flat: FlatParameters
    start: int
    slot: str
    new: Any
    old: Any


def results_are_finite(
    optimizer: UpdateRule, dense: Sequence[Any], fused: FusedPass | None, rows: Sequence[Any]
) -> bool:
    """Return whether a step leaves finite what is finite: parameters and slots.

    Raises
    ------
    FloatingPointError
        If it does not and the policy is to raise. Nothing has changed then.
    """
    for one in _results(dense, rows):
        if fault := _fault(one):
            return _refuse(optimizer, one, fault)
    if fused is not None:
        for update, executor in zip(fused.updates, fused.executors, strict=True):
            with np.errstate(all="ignore"):
                found = _tried(update, executor)
            if found is not None:
                return _refuse(optimizer, *found)
    return True


def functional_results_are_finite(
    optimizer: UpdateRule, results: Iterable[tuple[str, Any, Any]]
) -> bool:
    """Return whether a functional step leaves finite what is finite.

    Parameters
    ----------
    optimizer
    results : iterable of (str, array, array)
        What it is, for messages; new and old values.

    Raises
    ------
    FloatingPointError
        If it does not and the policy is to raise.
    EnsembleError
        If it does not for examples of a `vmap`, and the policy is to skip.
    """
    for what, new, old in results:
        finite = np.isfinite(new)
        if bool(np.all(_members(finite))):
            continue
        bad = _members(~finite & np.isfinite(old))
        if not bool(bad.any()):
            continue
        if isinstance(new, EnsembleArray):
            refuse_skip_of_members(optimizer)
        if optimizer.not_finite == "skip":
            return False
        who = _which_members(bad) if isinstance(new, EnsembleArray) else ""
        raise FloatingPointError(
            f"{type(optimizer).__name__}.functional_step() would write "
            f"{_elements(int(bad.sum()))}{who} into {what}, though the gradients are finite. "
            f"{_ADVICE}"
        )
    return True


def refuse_skip_of_members(optimizer: UpdateRule) -> None:
    """Raise EnsembleError if the policy is to skip, which examples of a `vmap` cannot do apart."""
    if optimizer.not_finite == "skip":
        raise EnsembleError(
            "not_finite='skip' would skip a step for some examples of a vmap, but all take the "
            "same steps. Use not_finite='pass', or run them apart."
        )


def _refuse(optimizer: UpdateRule, one: _Written, count: int) -> bool:
    """Return False, or raise if that is the policy."""
    if optimizer.not_finite == "skip":
        return False
    flat = one.flat
    p = flat.parameters[min(bisect_right(flat.bounds, one.start), len(flat.parameters)) - 1]
    what = f"{label_of(p)} (shape {p.shape})"
    if one.slot:
        what = f"the slot {one.slot!r} of {what}"
    raise FloatingPointError(
        f"{type(optimizer).__name__}.step() would write {_elements(count)} into {what}, though the "
        f"gradients are finite. {_ADVICE}"
    )


def _results(dense: Sequence[Any], rows: Sequence[Any]) -> Iterator[_Written]:
    """Yield what a step is going to write, parameter by parameter."""
    for update in dense:
        flat = update.arena
        for i in range(update.first, update.last):
            first, stop = flat.bounds[i], flat.bounds[i + 1]
            here = slice(first - flat.bounds[update.first], stop - flat.bounds[update.first])
            yield from _of_parameter(
                flat,
                first,
                {"": update.parameter[here]} | {name: x[here] for name, x in update.slots.items()},
                {"": flat.values[first:stop]}
                | {name: x[first:stop] for name, x in flat.slots.items()},
            )
    for update in rows:
        flat, i = update.flat, update.place
        span, shape = slice(flat.bounds[i], flat.bounds[i + 1]), flat.parameters[i].shape
        old = {"": flat.values, **flat.slots}
        yield from _of_parameter(
            flat,
            span.start,
            {"": update.parameter, **update.slots},
            {name: x[span].reshape(shape)[update.rows] for name, x in old.items()},
        )


def _of_parameter(
    flat: FlatParameters, start: int, new: dict[str, Any], old: dict[str, Any]
) -> Iterator[_Written]:
    for name, x in new.items():
        yield _Written(flat, start, name, x, old[name])
    if flat.master is not None:
        with np.errstate(over="ignore"):
            yield _Written(flat, start, "", new[""].astype(flat.flat.dtype), old[""])


def _fault(one: _Written) -> int:
    """Return how many elements would be no longer finite."""
    new = _members(one.new)
    if bool(np.isfinite(new).all()):
        return 0
    return int((~np.isfinite(new) & np.isfinite(_members(one.old))).sum())


def _tried(update: FusedUpdate, executor: Executor) -> tuple[_Written, int] | None:
    """Try a fused update on copies of its blocks; return the first fault found, or None."""
    found: list[tuple[_Written, int]] = []
    prepared: list[Any] = [executor.prepare(*update.numbers)]
    if not executor.afters:
        jobs: Iterator[Any] = (
            partial(_try_block, update, executor, prepared, found, piece)
            for piece in update.pieces(executor)
        )
        on_all_cores(jobs, update.size)
        return found[0] if found else None
    pieces = list(update.pieces(executor))
    try_all: Any = over_all_cores if update.size >= sizes.LARGE else map
    for after in [*executor.afters, None]:
        totals: Any = None
        for parts in try_all(partial(_try_block, update, executor, prepared, found), pieces):
            totals = (
                parts if totals is None else [a + b for a, b in zip(totals, parts, strict=True)]
            )
        if after is not None:
            prepared = [*prepared, after(*totals, *prepared[-1])]
    return found[0] if found else None


def _try_block(
    update: FusedUpdate,
    executor: Executor,
    prepared: Sequence[Any],
    found: list[tuple[_Written, int]],
    piece: list[Any],
) -> list[Any]:
    """Run the phases of `prepared` on copies of a block; return the parts of the last one.

    After all phases, a fault is appended to `found`.
    """
    values, g, *slots = piece
    copies = scratch([x.dtype for x in (values, *slots)], len(values), "trial")
    for copy, x in zip(copies, (values, *slots), strict=True):
        copy[...] = x
    parts: list[Any] = []
    for number, numbers in enumerate(prepared):
        parts = list(executor.phase(number, numbers)([copies[0], g, *copies[1:]]))
    if len(prepared) == len(executor.afters) + 1:
        flat = update.params
        start = _address(values) - _address(flat.values)
        names = ["", *flat.slots]
        of_block = _of_parameter(
            flat,
            start // values.itemsize,
            dict(zip(names, copies, strict=True)),
            dict(zip(names, (values, *slots), strict=True)),
        )
        found += [(one._replace(new=None, old=None), n) for one in of_block if (n := _fault(one))]
    return parts


def _address(array: Any) -> int:
    return int(array.__array_interface__["data"][0])


def _members(values: Any) -> Any:
    while isinstance(values, EnsembleArray):
        values = values.members
    return values


def _elements(count: int) -> str:
    return f"{count} element{'s' * (count != 1)} that {'is' if count == 1 else 'are'} not finite"


def _which_members(bad: Any) -> str:
    found = np.flatnonzero(bad.reshape(len(bad), -1).any(1)).tolist()
    return f" in member{'s' * (len(found) != 1)} {comma_list(found, most=8)} of the ensemble"
