"""All parameters of an optimizer as one flat point, which L-BFGS moves along a line.

The point is the concatenation of all parameters, in the order of groups and their `arenas`. This
module checks that they can be one point, reads and writes it, makes flat arrays of the gradients
that a closure left, and returns a step as updates of the parameters.
"""

from __future__ import annotations

from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from optlab.autograd.tape.nodes import ZERO
from optlab.autograd.tensor.tensor import raw
from optlab.backend.arrays import as_float, exact_sum, readonly
from optlab.backend.ensemble import EnsembleArray
from optlab.optimizer.params.groups import Group
from optlab.optimizer.params.labels import label_of
from optlab.optimizer.rule.members import PerMember
from optlab.optimizer.step.step import Update, clip_gradients


class Evaluation(NamedTuple):
    """The results of one closure call, with flat gradients, raw and after clip and decay.

    `penalised` is the loss plus the penalty of the decay.
    """

    returned: Any
    loss: float
    penalised: float
    raw_gradient: Any
    gradient: Any


def check_one_run(value: Any) -> None:
    """Raise TypeError for an ensemble: its members would need different step lengths."""
    if isinstance(value, (EnsembleArray, PerMember)):
        raise TypeError(
            "LBFGS takes no ensembles: each member would need steps, searches and an end of its "
            "own. Make one LBFGS for each run, or race them: ol.compare(problem, {'a': LBFGS(1.0), "
            "'b': LBFGS(0.1)})."
        )


def check_same_kind(groups: list[Group]) -> None:
    """Raise ValueError for parameters that cannot be moved along one direction."""
    kinds = set()
    for group in groups:
        for p in group.parameters:
            kinds.add((str(p.dtype), str(p.device)))
            if group.multiplier * getattr(p, "learning_rate", 1.0) != 1:
                raise ValueError(
                    "LBFGS moves all parameters along one direction: "
                    f"{label_of(p)} cannot have a learning rate "
                    "of its own. Use one optimizer for each."
                )
    if len(kinds) > 1:
        found = ", ".join(sorted(f"{dtype} on {device}" for dtype, device in kinds))
        raise ValueError(f"LBFGS needs all parameters in one dtype and on one device; got {found}.")


def read_point(groups: list[Group]) -> Any:
    """Return a flat copy of all parameters."""
    return np.concatenate([a.values for group in groups for a in group.arenas])


def write_point(groups: list[Group], point: Any) -> None:
    """Write a flat array into the parameters."""
    start = 0
    for group in groups:
        for flat in group.arenas:
            end = start + flat.bounds[-1]
            flat.write(slice(None), point[start:end])
            flat.mark_written(0, len(flat.parameters), "LBFGS.step()")
            start = end


def read_evaluation(groups: list[Group], returned: Any, first: bool) -> Evaluation:
    """Return the result of the closure, and the gradients that it left, as flat arrays.

    Raises
    ------
    TypeError
        If the closure did not return one number.
    RuntimeError
        If it is the `first` call and left no gradient.
    """
    loss = as_float(raw(returned), "the loss that the closure returns")
    if first and all(
        p.node is None or p.node.grad is None or p.node.grad is ZERO
        for group in groups
        for p in group.parameters
    ):
        raise RuntimeError(
            "no parameter of LBFGS has a gradient after the closure. Does it call "
            "loss.backward(), and clear_grad() before that, not after it? Is the loss computed "
            "from these parameters? Nothing was changed."
        )
    all_raw, all_used, penalties = [], [], [loss]
    for group in groups:
        held = ready = [flat.gradients() for flat in group.arenas]
        if group.grad_clip is not None:
            ready = clip_gradients(group, held)
        params = [p for flat in group.arenas for p in flat.parameters]
        for p, g, used in zip(params, chain(*held), chain(*ready), strict=True):
            if g is None:
                g = used = np.zeros_like(p.data)
            else:
                regularizer = getattr(p, "regularizer", None) or group.regularizer
                if regularizer is not None:
                    used = regularizer.add_to(used, p.data)
                    penalties.append(float(regularizer.penalty(p.data)))
            all_raw.append(g.reshape(-1))
            all_used.append(used.reshape(-1))
    dtype = groups[0].arenas[0].values.dtype
    return Evaluation(
        returned,
        loss,
        exact_sum(penalties),
        np.concatenate(all_raw).astype(dtype, copy=False),
        np.concatenate(all_used).astype(dtype, copy=False),
    )


def updates_of_step(
    groups: list[Group], rate: float, before: Evaluation, start: Any
) -> list[Update]:
    """Return the step from `start` to the current point, which has been counted, as updates."""
    updates, first, point = [], 0, read_point(groups)
    for group in groups:
        for flat in group.arenas:
            place = slice(first, first + flat.bounds[-1])
            first = place.stop
            new = readonly(point[place])
            updates.append(
                Update(
                    flat,
                    0,
                    len(flat.parameters),
                    flat.t[0],
                    rate,
                    before.raw_gradient[place],
                    before.gradient[place],
                    new,
                    {},
                    {"update": new - start[place]},
                    True,
                )
            )
    return updates
