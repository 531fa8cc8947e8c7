"""How past gradients and hyper-parameters act on a run: derivatives through the update rules."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from optlab.autograd.tensor.tensor import raw
from optlab.autograd.transforms.functional import grad, value_and_grad
from optlab.nn.clip import ClipGradByValue
from optlab.optimizer.rule.namespaces import HyperParameters
from optlab.trace.loss_functions import takes_step
from optlab.trace.named_arrays import NamedArray


def influence(
    trace: Any, step: int | None = None, direction: Any = None, optimizer: Any = None
) -> Any:
    """Return the derivatives of one update by every gradient so far; see `Trace.influence`."""
    step = last_step(trace) if step is None else step
    optimizer = optimizer_of(trace, optimizer, "influence")
    innermost = _innermost(optimizer)
    if innermost.custom_step or getattr(optimizer, "needs_closure", False):
        evaluator = innermost if innermost.custom_step else optimizer
        raise TypeError(
            f"influence follows rules that take one gradient a step; {type(evaluator).__name__} "
            "evaluates the loss itself."
        )
    if direction is None and (why := _coupling(optimizer)):
        raise TypeError(
            f"{why}: one element of the update depends on all of the gradient. Give a direction, "
            "an array like the parameter (or a dict of them by names): the derivatives of the "
            "update's component along it are returned."
        )
    check_values(trace, step, "influence")
    start = {name: a[0].astype(np.float64) for name, a in trace.parameters.items()}
    given = {name: a[:step].astype(np.float64) for name, a in trace.gradients.items()}
    there = {name: ~_skipped(a) for name, a in given.items()}
    weights = {name: np.ones_like(a) for name, a in start.items()}
    if direction is not None:
        named = direction if isinstance(direction, Mapping) else dict.fromkeys(start, direction)
        if set(named) != set(start):
            raise ValueError(
                f"the direction has {', '.join(map(str, named))}; the run has {', '.join(start)}."
            )
        for name, x in named.items():
            weights[name] = np.asarray(x, dtype=np.float64)
            if weights[name].shape != start[name].shape:
                raise ValueError(
                    f"the direction of {name} has shape {weights[name].shape}; the parameter has "
                    f"{start[name].shape}."
                )
    rates = rates_of(trace, optimizer, step)

    def along(gradients: dict[str, Any]) -> Any:
        """Return the sum of the update's elements, weighted by the direction."""
        now: Any = dict(start)
        before, state = now, optimizer.functional_init(now)
        for t in range(step):
            before = now
            row = {name: gradients[name][t] if there[name][t] else None for name in now}
            now, state = optimizer.functional_step(now, row, state, learning_rate=rates[t])
        return sum(np.sum((now[name] - before[name]) * weights[name]) for name in now)

    clean = {name: np.where(np.isnan(a), 0.0, a) for name, a in given.items()}
    found = {name: np.asarray(raw(g)) for name, g in grad(along)(clean).items()}
    if len(found) > 1:
        return found
    [(name, array)] = found.items()
    return NamedArray.of(array, name)


def _skipped(rows: np.ndarray) -> np.ndarray:
    """Return the steps at which a parameter had no gradient: all NaN."""
    flat = rows.reshape(len(rows), -1) if rows.size else np.zeros((len(rows), 1))
    return np.asarray(np.isnan(flat).all(axis=1))


def _innermost(optimizer: Any) -> Any:
    while hasattr(optimizer, "inner_optimizer"):
        optimizer = optimizer.inner_optimizer
    return optimizer


def _coupling(optimizer: Any) -> str:
    """Return why an element of the update depends on other elements; empty if it does not."""
    innermost = _innermost(optimizer)
    if innermost.kind != "elementwise":
        return f"{type(innermost).__name__} is a rule of whole parameters"
    for group in optimizer.groups:
        if group.grad_clip is not None and not isinstance(group.grad_clip, ClipGradByValue):
            return f"{type(group.grad_clip).__name__} takes a norm"
    return ""


def optimizer_of(trace: Any, optimizer: Any, what: str) -> Any:
    """Return the optimizer of a trace, or the one that was given.

    Raises
    ------
    TypeError
        If there is none, as for a trace from a file.
    """
    found = trace.optimizer if optimizer is None else optimizer
    if found is None or not hasattr(found, "functional_step"):
        raise TypeError(
            f"{what} needs the optimizer of the run, which a file does not hold: give it as "
            "optimizer=..., with its parameters"
            + ("." if what == "fork" else ", or a template of its settings.")
        )
    return found


def last_step(trace: Any) -> int:
    """Return the number of the last recorded step of a trace.

    Raises
    ------
    ValueError
        If there is none.
    """
    if not len(trace.step):
        raise ValueError(
            "influence is that of past gradients on a step; this trace has no step yet. Take some "
            "inside of ol.record(...)."
        )
    return int(trace.step[-1])


def check_values(trace: Any, step: int, what: str) -> None:
    """Raise ValueError unless a trace has all values of every step up to `step`.

    Raises
    ------
    ValueError
        Naming what is missing.
    """
    steps = trace.steps("values") if "values" in trace.layouts else np.zeros(0)
    if not isinstance(step, (int, np.integer)) or isinstance(step, bool):
        raise TypeError(f"step is the number of a step; got {step!r}.")
    last = trace._now()
    if not 1 <= step <= last:
        raise ValueError(f"step must be between 1 and {last}, the steps of the run; got {step}.")
    if trace.steps_before:
        raise ValueError(
            f"{what} needs the run from its first step; this recording began after "
            f"{trace.steps_before}."
        )
    if not np.array_equal(steps[:step], np.arange(1, step + 1)) or not len(trace.step) >= step:
        raise ValueError(
            f"{what} needs the gradients of every step up to {step}: record with probes='toy' (or "
            "ol.probes.Values()) and every=1."
        )
    recorded = sum(int(np.prod(a.shape[1:])) for a in trace.parameters.values())
    if trace.optimizer is not None and hasattr(trace.optimizer, "parameters"):
        size = sum(p.size for p in trace.optimizer.parameters)
        if size != recorded:
            raise ValueError(
                f"{what} needs all {size} elements of the run; {recorded} were recorded. Record "
                "with probes='toy'."
            )


def rates_of(trace: Any, optimizer: Any, steps: int) -> list[float]:
    """Return the learning rates of the first steps, without the multiplier of the group."""
    multiplier = optimizer.groups[0].multiplier if getattr(optimizer, "groups", None) else 1.0
    rates = trace.learning_rate[:steps]
    return [float(x) if multiplier == 1.0 else float(x / multiplier) for x in rates]


class Hypergradient(NamedTuple):
    """Derivatives of a final loss by the hyper-parameters of a run; see `hypergradient`.

    Attributes
    ----------
    loss : float
        The final loss.
    parameters
        The final parameters, built like those that were given.
    per_step : dict of str to array, shape (steps,)
        The derivative by the value of each hyper-parameter in each step.
    total : dict of str to float
        Their sums: the derivative by a hyper-parameter that is the same in all steps.
    """

    loss: float
    parameters: Any
    per_step: dict[str, np.ndarray]
    total: dict[str, float]


def hypergradient(
    optimizer: Any,
    loss: Callable[..., Any],
    parameters: Any,
    steps: int,
    hyperparameters: Sequence[str] | None = None,
    final: Callable[[Any], Any] | None = None,
) -> Hypergradient:
    r"""Return the derivative of the final loss of a run by each hyper-parameter at each step.

    The run of :math:`T` steps is differentiated as a whole (Maclaurin et al. 2015): for the final
    loss :math:`L(w_T)` and the value :math:`h_t` of a hyper-parameter in step t, the result is
    :math:`\mathrm{d}L / \mathrm{d}h_t`.

    Parameters
    ----------
    optimizer : Optimizer
        Its settings, a schedule included, are those of the run. A template will do.
    loss : callable
        Takes the parameters, or the parameters and the number of the step from 0 (for batches), and
        returns the loss. It is a function of NumPy, or of a network: `optlab.nn.functional_call`.
    parameters : array, or list, tuple or dict of arrays
        The start.
    steps : int
        The number of steps.
    hyperparameters : list of str, optional
        Which; by default all settings of the rule that are Python floats.
    final : callable, optional
        The loss at the end as a function of the parameters, such as that of held-out data; by
        default `loss` (of step `steps`).

    Returns
    -------
    Hypergradient
        Its ``per_step`` and ``total`` are dicts by the names of the hyper-parameters.

    Raises
    ------
    TypeError, ValueError
        If the optimizer has no functional step, a hyper-parameter is unknown, or `steps` is below
        1.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> found = ol.hypergradient(
    ...     ol.optimizer.SGD(0.1), lambda w: np.sum(w**2), np.array([1.0]), steps=2
    ... )
    >>> {name: round(x, 4) for name, x in found.total.items()}
    {'learning_rate': -4.096}
    >>> found.per_step["learning_rate"].round(4)
    array([-2.048, -2.048])
    """
    if not hasattr(optimizer, "functional_step"):
        raise TypeError(f"hypergradient takes an optimizer; got {type(optimizer).__name__}.")
    for name, given in (("loss", loss), ("final", final)):
        if not callable(given) and not (name == "final" and given is None):
            raise TypeError(
                f"{name} is a function of the parameters: lambda w: np.sum(w**2); got {given!r}. "
                "Of a problem write lambda w: ol.problems.find(name)(*w)."
            )
    if not isinstance(steps, (int, np.integer)) or isinstance(steps, bool) or steps < 1:
        raise ValueError(f"steps must be a whole number of at least 1; got {steps!r}.")
    settings = _innermost(optimizer).settings
    floats = [name for name, x in settings.items() if type(x) is float or name == "learning_rate"]
    chosen = floats if hyperparameters is None else list(hyperparameters)
    for name in chosen:
        if name not in floats:
            raise ValueError(
                f"{type(optimizer).__name__} has no hyper-parameter {name!r} that is a number; it "
                f"has {', '.join(floats)}."
            )
    by_step = takes_step(loss)
    schedule = copy.deepcopy(optimizer.schedule)
    values = {name: np.full(steps, _value(settings, name)) for name in chosen}
    rates = _rates(schedule, _value(settings, "learning_rate"), steps)
    if "learning_rate" in chosen:
        values["learning_rate"] = rates
    # Slots that begin at a setting are made before the first step.
    starts = [name for name in chosen if _starts_a_slot(_innermost(optimizer), name)]
    last: list[Any] = []

    def run(h: dict[str, Any]) -> Any:
        now: Any = parameters
        state = optimizer.functional_init(now, **{name: h[name][0] for name in starts})
        for t in range(steps):
            g = grad(lambda w, t=t: loss(w, t) if by_step else loss(w))(now)
            named: dict[str, Any] = {"learning_rate": rates[t]}
            named |= {name: x[t] for name, x in h.items() if name not in starts}
            now, state = optimizer.functional_step(now, g, state, **named)
        last[:] = [now]
        if final is not None:
            return final(now)
        return loss(now, steps) if by_step else loss(now)

    value, found = value_and_grad(run)(values)
    per_step = {name: np.asarray(raw(found[name])) for name in chosen}
    total = {name: float(x.sum()) for name, x in per_step.items()}
    return Hypergradient(float(raw(value)), _plain(last[0]), per_step, total)


def _plain(x: Any) -> Any:
    """Return containers of arrays in place of Tensors."""
    if isinstance(x, Mapping):
        return {key: _plain(part) for key, part in x.items()}
    if isinstance(x, (list, tuple)):
        return type(x)(_plain(part) for part in x)
    return np.asarray(raw(x))


def _starts_a_slot(rule: Any, name: str) -> bool:
    """Return whether a slot of the rule begins at a setting."""
    settings = {**rule.settings, "learning_rate": 0.1}
    moved = {**settings, name: settings[name] + 1.0}
    return bool(
        rule.slots_for(HyperParameters(**settings)) != rule.slots_for(HyperParameters(**moved))
    )


def _value(settings: Mapping[str, Any], name: str) -> float:
    x = settings[name]
    return float(x) if isinstance(x, (int, float)) else 0.0


def _rates(schedule: Any, rate: float, steps: int) -> np.ndarray:
    """Return the learning rate of each step."""
    if schedule is None:
        return np.full(steps, rate)
    found = []
    for _ in range(steps):
        found.append(float(schedule()))
        schedule.step()
    return np.array(found)
