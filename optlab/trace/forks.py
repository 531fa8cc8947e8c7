"""What if: a recorded run that goes on from one of its steps with other settings."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from optlab.backend import random
from optlab.nn.base.parameter import Parameter
from optlab.trace.influences import _innermost, check_values, optimizer_of
from optlab.trace.loss_functions import check_takes_parameters, takes_step
from optlab.trace.probes import Norms, Values
from optlab.trace.probes.base import Run
from optlab.trace.probes.rows import flat_state, with_leaves
from optlab.trace.recordings.of_optimizer import OptimizerRecording
from optlab.trace.recordings.parts import changes_gradients, parts_of
from optlab.trace.selections import select
from optlab.trace.variables import flat_rows, variables_of


def fork(
    trace: Any,
    step: int,
    steps: int | None,
    loss: Callable[..., Any] | None,
    optimizer: Any,
    settings: dict[str, Any],
) -> Any:
    """Return the trace of a run that goes on from `step` with other settings; see `Trace.fork`."""
    old = optimizer_of(trace, optimizer, "fork")
    if not old.groups:
        raise TypeError("fork needs an optimizer that has parameters; this one is a template.")
    if _innermost(old).custom_step or getattr(old, "needs_closure", False):
        evaluator = _innermost(old) if _innermost(old).custom_step else old
        raise TypeError(
            f"fork replays steps of one gradient; {type(evaluator).__name__} evaluates the "
            "loss itself."
        )
    changed = {name: x for name, x in settings.items() if name != "learning_rate"}
    _check_settings(old, changed)
    if not isinstance(step, (int, np.integer)) or isinstance(step, bool):
        raise TypeError(f"step is the number of a step; got {step!r}.")
    if not 0 <= step <= trace._now():
        raise ValueError(
            f"step must be between 0 and {trace._now()}, the steps of the run; got {step}."
        )
    if not np.array_equal(trace.step, np.arange(1, trace._now() + 1)):
        raise ValueError("fork needs the learning rate of every step: record with every=1.")
    until = trace._now() if steps is None else steps
    if not isinstance(until, (int, np.integer)) or isinstance(until, bool) or until < step:
        raise ValueError(f"steps is the length of the whole run, at least {step}; got {until!r}.")
    loss = trace.loss_function if loss is None else loss
    if loss is not None:
        check_takes_parameters(loss, "fork")
        run: _ProblemRun | _LossRun = _LossRun(trace, loss)
    elif trace.problem is not None and trace.origin is not None:
        run = _ProblemRun(trace)
    else:
        lost = (
            f"This trace was pickled, and its loss, {trace.lost_loss!r}, did not come along. "
            if trace.lost_loss
            else ""
        )
        raise TypeError(
            f"{lost}fork needs the loss of the run, to compute the gradients of the new steps: "
            "give fork(..., loss=f), or record with ol.record(optimizer, loss=f), where f takes a "
            "dict of parameters by names (and, if it takes two arguments, the number of the step "
            "from 0). Traces of ol.compare know it."
        )
    with run.scope():
        first = rebuilt(old, run.parameters, {}, run.template_scope())
        rates = trace.learning_rate / first.groups[0].multiplier
        run.replay(first, rates, step)
        new = first
        if changed:
            new = rebuilt(old, run.parameters, changed, nullcontext())
            new.set_state_dict(first.state_dict())
        if "learning_rate" in settings:
            new.set_lr(settings["learning_rate"])
        found = type(trace)(_name(trace, step, settings), {**trace.settings, **settings})
        found.steps_taken = step
        probes: list[Any] = []
        if "values" in trace.layouts:
            probes.append(Values(parameters=list(trace.parameters)))
        probes += [Norms()] if "norms" in trace.layouts else []
        parts = [  # by the names of the run, whose parameters may be those of a model
            part._replace(names=before.names)
            for part, before in zip(parts_of(new), parts_of(old), strict=True)
        ]
        recording = OptimizerRecording(
            new, None, found, Run(new, parts), probes, 1, 1 << 62, changes_gradients(new)
        )
        recording.start()
        try:
            for t in range(step, until):
                if "learning_rate" not in settings and t < len(rates):
                    new.set_lr(float(rates[t]))
                if not math.isfinite(float(run.backward(t))):
                    found.stopped = f"diverged at step {t}: the loss is not finite"
                    break
                new.step()
        finally:
            recording.stop()
    whole = _joined(select(trace, slice(None, step)), found)
    whole.optimizer, whole.loss_function = new, loss
    return whole


def _name(trace: Any, step: int, settings: dict[str, Any]) -> str:
    changes = ", ".join(f"{name}={x}" for name, x in settings.items())
    return f"{trace.name}, from step {step}: {changes}" if changes else trace.name


class _ProblemRun:
    """A run of a comparison, computed again from its start."""

    def __init__(self, trace: Any) -> None:
        self.origin = trace.origin
        start, seed = self.origin
        self.run = trace.problem.run(start, seed)
        self.parameters = self.run.parameters

    def scope(self) -> Any:
        """Return the scope of random draws of the comparison."""
        return random.scope("race", seed=self.origin[1])

    def template_scope(self) -> Any:
        """Return the scope in which a rule that draws gets its key."""
        return random.scope("optimizer", seed=self.origin[1])

    def replay(self, optimizer: Any, rates: np.ndarray, steps: int) -> None:
        """Take the first steps again."""
        for t in range(steps):
            self.run.backward(t)
            optimizer.set_lr(float(rates[t]))
            optimizer.step()

    def backward(self, t: int) -> Any:
        """Compute loss and gradients of step `t`, from 0."""
        with np.errstate(all="ignore"):
            return self.run.backward(t)


class _LossRun:
    """A run whose loss was given: its first steps are those of the recorded gradients."""

    def __init__(self, trace: Any, loss: Callable[..., Any]) -> None:
        self.trace, self.loss, self.by_step = trace, loss, takes_step(loss)
        owners = dict(zip(
            [name for part in parts_of(trace.optimizer) for name in part.names],
            [p for g in trace.optimizer.groups for flat in g.arenas for p in flat.parameters],
            strict=True,
        )) if trace.optimizer is not None else {}  # fmt: skip
        self.named = {}
        values, snapshots = trace.parameters, trace.records.get("Snapshots")
        if not values and (snapshots is None or not len(snapshots.steps)):
            raise ValueError(
                "fork needs the values of the parameters, or snapshots: record with probes='toy', "
                "or with ol.probes.Snapshots(every)."
            )
        have_snapshots = snapshots is not None and len(snapshots.steps) > 0
        shapes = {name: a.shape[1:] for name, a in values.items()}
        wanted = {name: p.shape for name, p in owners.items()}
        if have_snapshots:
            wanted = {name: a.shape[1:] for name, a in trace["snapshot"].items()}
        #: Whether it begins with the recorded values, not with snapshots.
        self.from_values = bool(values) and shapes == (wanted or shapes)
        if values and not self.from_values and not have_snapshots:
            missing = [name for name in wanted if shapes.get(name) != wanted[name]]
            raise ValueError(
                f"fork needs all values of the parameters; those of {', '.join(missing)} were not "
                "recorded. Record with probes='toy', or with ol.probes.Snapshots(every)."
            )
        if values and any(shapes[name] != wanted.get(name, shapes[name]) for name in shapes):
            raise ValueError(
                "fork goes on with whole parameters; Values(elements=[...]) has recorded some "
                "elements. Record these without a list of elements."
            )
        start = values if self.from_values else dict(trace["snapshot"].items())
        for name, array in start.items():
            owner = owners.get(name)
            p = Parameter(array[0].copy(), name=getattr(owner, "name", name) or name)
            for own in ("_learning_rate", "_regularizer", "need_clip"):
                if hasattr(owner, own):
                    setattr(p, own, getattr(owner, own))
            self.named[name] = p
        order = [n for n in owners if n in self.named] or list(self.named)
        self.parameters = self._in_order(order)

    def _in_order(self, order: list[str]) -> list[Any]:
        """Return the parameters in the order of the optimizer's groups."""
        optimizer = self.trace.optimizer
        if optimizer is None:
            return [self.named[name] for name in order]
        names = {
            id(p): name
            for part, flat in zip(
                parts_of(optimizer),
                [flat for g in optimizer.groups for flat in g.arenas],
                strict=True,
            )
            for name, p in zip(part.names, flat.parameters, strict=True)
        }
        return [self.named[names[id(p)]] for g in optimizer.groups for p in g.parameters]

    def scope(self) -> Any:
        """Return a scope of draws of its own."""
        return random.scope("fork")

    def template_scope(self) -> Any:
        """Return nothing: the key of a rule that draws comes from the optimizer."""
        return nullcontext()

    def replay(self, optimizer: Any, rates: np.ndarray, steps: int) -> None:
        """Take the first steps again, by the recorded gradients or from a snapshot."""
        trace = self.trace
        if trace.optimizer is not None and trace.optimizer.key is not None:
            _innermost(optimizer).key = trace.optimizer.key
        record = trace.records.get("Snapshots")
        taken = record.steps.array(np.int64) if record is not None else np.zeros(0, int)
        if not self.from_values:
            earlier = np.flatnonzero(taken <= steps)
            if not len(earlier):
                raise ValueError(
                    f"the first snapshot is of step {taken[0]}; step must not be before it."
                )
            row = int(earlier[-1])
            self._restore(optimizer, row)
            for t in range(int(taken[row]), steps):
                optimizer.set_lr(float(rates[t]))
                self.backward(t)
                optimizer.step()
            return
        if not steps:
            return
        check_values(trace, steps, "fork")
        gradients, values = trace.gradients, trace.parameters
        for t in range(steps):
            optimizer.set_lr(float(rates[t]))
            for name, p in self.named.items():
                g = gradients[name][t]
                p.grad = None if np.isnan(g).all() else g.copy()
            optimizer.step()
        for name, p in self.named.items():
            if not np.array_equal(p.numpy(), values[name][steps], equal_nan=True):
                raise RuntimeError(
                    f"the recorded gradients do not lead to the recorded values of {name} at step "
                    f"{steps}: it was written to between steps, or had row-sparse gradients. Fork "
                    "from a snapshot: ol.probes.Snapshots(every), without values."
                )

    def _restore(self, optimizer: Any, row: int) -> None:
        for name, array in self.trace["snapshot"].items():
            self.named[name].set_value(array[row])
        if "state" not in self.trace.names:
            raise ValueError("the snapshots have no state of the optimizer (state=False).")
        # The names of the parameters may be those of a model there; the order is the same.
        leaves = [a[row] for _, a in self.trace["state"].items()]
        state = optimizer.state_dict()
        paths = list(flat_state(state))
        if len(paths) != len(leaves):
            raise ValueError(
                "the snapshots lack a part of the optimizer's state: "
                f"{'; '.join(self.trace.left_out) or 'it is made in the first step'}."
            )
        optimizer.set_state_dict(with_leaves(state, dict(zip(paths, leaves, strict=True))))

    def backward(self, t: int) -> Any:
        """Compute loss and gradients of step `t`, from 0."""
        for p in self.parameters:
            p.grad = None
        value = self.loss(self.named, t) if self.by_step else self.loss(self.named)
        if not hasattr(value, "backward"):
            raise TypeError(
                "fork: loss returns the loss as a Tensor that depends on the parameters it is "
                f"given; got {type(value).__name__}."
            )
        value.backward()
        return value.data


def _check_settings(optimizer: Any, changes: Iterable[str]) -> None:
    """Raise TypeError, with what there is, if a setting to change is not one of the rule."""
    rule = type(_innermost(optimizer))
    known = [*rule.hyperparameters, "weight_decay", "grad_clip"]
    for name in changes:
        if name not in known:
            raise TypeError(
                f"{rule.__name__} has no setting {name!r} that a fork can change; it has "
                f"{', '.join(known)}."
            )


def rebuilt(
    optimizer: Any,
    parameters: list[Any],
    changes: dict[str, Any],
    scope: AbstractContextManager[Any],
) -> Any:
    """Return an optimizer of the same settings, but for some, for other parameters."""
    if hasattr(optimizer, "inner_optimizer"):
        inner = rebuilt(optimizer.inner_optimizer, parameters, changes, scope)
        fresh = copy.copy(optimizer)
        vars(fresh).update(inner_optimizer=inner, _published_loss=[])
        fresh._forget()
        return fresh
    count = iter(parameters)
    groups = []
    for group in optimizer.groups:
        own = {
            name: x for name, x in vars(group.h).items()
            if name != "learning_rate" and name not in changes
        }  # fmt: skip
        one = {"params": [next(count) for _ in group.parameters], **own}
        one["learning_rate"] = group.multiplier
        for name, x in (("weight_decay", group.regularizer), ("grad_clip", group.grad_clip)):
            if name not in changes and name not in type(optimizer).hyperparameters:
                one[name] = x
        groups.append(one)
    common = {k: x for k, x in optimizer._common.items() if k not in changes}
    settings = {**optimizer.settings, **changes}
    if optimizer.schedule is not None:
        settings["learning_rate"] = 0.0
    with scope:
        return type(optimizer)(**{**common, **settings}, parameters=groups)


def _joined(first: Any, second: Any) -> Any:
    """Return the trace of a run whose later steps are another trace."""
    first.records = {k: r for k, r in first.records.items() if k in ("Values", "Norms")}
    seconds = first.seconds[-1] if len(first) else 0.0
    for kind in ("step", "loss", "learning_rate", "seconds"):
        rows = second.columns[kind, 0].array()
        if kind == "seconds":
            rows = rows + seconds
        if len(rows):
            first.columns[kind, 0].extend(np.asarray(rows))
    places = {
        (clock, layout[0][0]): i
        for clock, layouts in first.layouts.items()
        for i, layout in enumerate(layouts)
        if layout
    }
    own = {clock: len(second.steps(clock)) for clock in second.layouts}
    for clock in first.layouts:
        if (column := first.columns.get((f"steps of {clock}", 0))) is not None:
            column.extend(second.steps(clock))
    for one in variables_of(second):
        place = places.get((one.clock, one.parameter))
        if place is None:
            continue
        array = one.array[1:] if one.kind == "parameter" else one.array
        rows = flat_rows(array)
        column = first.columns[one.kind, place]
        before = len(first._clock(one.clock)) - own[one.clock] + (one.kind == "parameter")
        if len(rows):
            column.fill(before, rows[0])
            column.extend(rows)
    for name in ("name", "settings", "stopped", "steps_taken"):
        setattr(first, name, getattr(second, name))
    return first
