"""Many runs of one network as one ensemble: batched products in place of a loop over runs.

Parameters with a leading axis of members pass through the layers together, and share the batches of
data; each member has settings of its own. A product of matrices is one call for all members, and an
update is one pass over all of them. A member's numbers are those of a run by itself: to the bit
where the BLAS computes the products of a stack as it computes single ones (NumPy's OpenBLAS does),
else within rounding.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Executor
from typing import Any

import numpy as np

from optlab.autograd.tape.grad_mode import no_grad
from optlab.autograd.tensor.tensor import raw
from optlab.backend import random
from optlab.backend.ensemble import EnsembleArray
from optlab.backend.text import one_line
from optlab.lab.cell_store import Quantity, Sent, SweepStore, mapped
from optlab.lab.evaluation_budget import evaluation_weights, run_updates
from optlab.lab.problems.networks import Network, NetworkRun
from optlab.optimizer import Optimizer

#: Parameters of all members of one ensemble: the arrays of an update then stay in the cache.
_MOST_ELEMENTS = 1 << 20
#: Steps that some members also take by themselves before all take them together.
_TRIAL = 3


class NotTogetherError(TypeError):
    """Runs that cannot be one ensemble; the text says why."""


class NetworkRuns:
    """The results of many runs of one network.

    Attributes
    ----------
    loss : array, shape (runs, steps)
        On the batch of each step, before it; NaN after the run diverged.
    final_loss, accuracy : array, shape (runs,)
        On all training data, and on held-out data, after the last step.
    stopped : array of int, shape (runs,)
        The step at which the loss was no longer finite, or -1.
    parameters : dict of str to array, shape (runs, ...)
    said : list of str
        How the runs were executed, and why.
    """

    def __init__(self, runs: int, steps: int) -> None:
        self.loss = np.full((runs, steps), np.nan)
        self.final_loss = np.full(runs, np.nan)
        self.accuracy = np.full(runs, np.nan)
        self.stopped = np.full(runs, -1)
        self.parameters: dict[str, np.ndarray] = {}
        self.said: list[str] = []

    def keep(self, where: Sequence[int], found: NetworkRuns) -> None:
        """Take over the results of some of the runs."""
        rows = list(where)
        for name in ("loss", "final_loss", "accuracy", "stopped"):
            getattr(self, name)[rows] = getattr(found, name)
        for name, values in found.parameters.items():
            if name not in self.parameters:
                shape = (len(self.stopped), *values.shape[1:])
                self.parameters[name] = np.empty(shape, values.dtype)
            self.parameters[name][rows] = values


def run_network(
    network: Network,
    optimizer_class: Callable[..., Optimizer],
    members: Sequence[dict[str, Any]],
    steps: int,
    seed: int,
    executor: Executor | Callable[[], Executor] | None = None,
) -> NetworkRuns:
    """Run a network once with each dict of settings, together where that is possible.

    Parameters
    ----------
    network : Network
    optimizer_class : type
    members : sequence of dict
        Settings, all with the same names.
    steps, seed : int
    executor : concurrent.futures.Executor, optional
        Executes runs that do not run together.
    """
    runs = NetworkRuns(len(members), steps)
    templates = [optimizer_class(**settings) for settings in members]
    apart: list[int] = []
    for group, spread in _groups(optimizer_class, members):
        try:
            for some in _chunks(network, templates[group[0]], group, seed):
                chosen = [members[k] for k in some]
                runs.keep(some, _together(network, optimizer_class, chosen, spread, steps, seed))
                apart = [k for k in apart if k not in some]
                runs.said.append(f"{len(some)} runs together, as an ensemble of batched products")
        except NotTogetherError as error:
            runs.said.append(f"{len(group)} run{'s' * (len(group) > 1)} one after another: {error}")
            apart += group
    tasks = [Sent((network, templates[k], steps, seed)) for k in apart]
    results: Iterable[NetworkRuns] = mapped(executor, _run_sent, tasks)
    for k, found in zip(apart, results, strict=True):
        runs.keep([k], found)
    return runs


def store_network(
    network: Network,
    optimizer_class: Callable[..., Optimizer],
    members: Sequence[dict[str, Any]],
    steps: int,
    seed: int,
    executor: Executor | Callable[[], Executor] | None,
    to: Any,
    report: Callable[[int], None],
) -> NetworkRuns:
    """Run a network once with each dict of settings, one by one, each written to a Zarr store.

    Parameters
    ----------
    to : path
        The store; see `optlab.lab.cell_store`.
    report : callable
        Takes the number of runs that have ended.
    """
    templates = [optimizer_class(**settings) for settings in members]
    named = dict(network.run(None, seed).model.named_parameters())
    quantities = {
        "loss": Quantity((steps,), "float64", ("step",)),
        "final_loss": Quantity((), "float64", ()),
        "accuracy": Quantity((), "float64", ()),
        "stopped": Quantity((), "int64", ()),
    }
    for name, p in named.items():
        axes = tuple(f"{name}, axis {i}" for i in range(len(p.shape)))
        quantities[f"parameter {name}"] = Quantity(tuple(p.shape), str(p.dtype), axes)
    described = {
        "problem": network.title,
        "optimizers": [repr(template) for template in templates],
        "steps": steps,
        "seed": seed,
    }
    store = SweepStore(to, len(members), quantities, described)
    tasks = [Sent((network, one, steps, seed)) for one in templates]
    store.run(_cell, tasks, executor, report)
    errors = store.errors()
    if errors:
        first = min(errors)
        raise RuntimeError(
            f"{len(errors)} of {len(members)} cells raised; the first, {members[first]}: "
            f"{errors[first]}. The others are in {store.path}."
        )
    runs = NetworkRuns(len(members), steps)
    for name in quantities:
        if name.startswith("parameter "):
            runs.parameters[name.removeprefix("parameter ")] = store.read(name)
        else:
            setattr(runs, name, store.read(name))
    runs.said.append(f"{len(members)} runs one after another into {store.path}")
    return runs


def _run_sent(task: Sent) -> NetworkRuns:
    """Run one member for another thread or process."""
    return _alone(task.value)


def _cell(task: Sent) -> dict[str, Any]:
    """Run one member for a store."""
    found = _alone(task.value)
    parameters = {f"parameter {name}": x[0] for name, x in found.parameters.items()}
    names = ("loss", "final_loss", "accuracy", "stopped")
    return {name: getattr(found, name)[0] for name in names} | parameters


def _groups(
    optimizer_class: Callable[..., Optimizer], members: Sequence[dict[str, Any]]
) -> list[tuple[list[int], list[str]]]:
    """Return the runs that may go together, and the settings in which they differ."""
    first = members[0]
    spread = []
    for name in first:
        values = [settings[name] for settings in members]
        if not all(type(value) is float for value in values) or len(set(values)) < 2:
            continue
        try:
            optimizer_class(**first | {name: EnsembleArray(np.array(values))})
        except Exception:  # noqa: BLE001  # a setting of which there is one for all members
            continue
        spread.append(name)
    found: dict[Any, list[int]] = {}
    for k, settings in enumerate(members):
        rest = {name: x for name, x in settings.items() if name not in spread}
        key = tuple((name, x if _is_plain(x) else id(x)) for name, x in rest.items())
        found.setdefault(key, []).append(k)
    return [(group, spread) for group in found.values()]


def _is_plain(value: Any) -> bool:
    return isinstance(value, (int, float, str, type(None)))


def _chunks(
    network: Network, template: Optimizer, group: list[int], seed: int
) -> Iterable[list[int]]:
    """Yield the runs of a group in parts whose parameters fit a cache.

    Raises
    ------
    NotTogetherError
        If they cannot run together.
    """
    if getattr(template, "needs_closure", False):
        raise NotTogetherError(f"{type(template).__name__} chooses its own evaluations")
    if template.schedule is not None:
        raise NotTogetherError("a schedule changes the rate from step to step")
    if template.draws:
        raise NotTogetherError(f"{type(template).__name__} draws random numbers in each run")
    if len(group) == 1:
        raise NotTogetherError("no other run differs from it in nothing but numbers")
    elements = sum(parameter.size for parameter in network.run(None, seed).parameters)
    most = _MOST_ELEMENTS // max(elements, 1)
    if most < 2:
        raise NotTogetherError(
            f"with {elements:,} parameters its products are as fast one at a time"
        )
    for start in range(0, len(group), most):
        yield group[start : start + most]


def _together(
    network: Network,
    optimizer_class: Callable[..., Optimizer],
    members: list[dict[str, Any]],
    spread: list[str],
    steps: int,
    seed: int,
) -> NetworkRuns:
    """Run members as one ensemble.

    Raises
    ------
    NotTogetherError
        If the model or the rule cannot, or gives other numbers than runs by themselves.
    """
    few = min(_TRIAL, steps)

    def tried(steps: int, evaluated: bool = True) -> NetworkRuns:
        try:
            return _ensemble(network, optimizer_class, members, spread, steps, seed, evaluated)
        except Exception as error:
            raise NotTogetherError(one_line(f"{type(error).__name__}: {error}")) from error

    trial = tried(few, evaluated=False)
    for k in dict.fromkeys([0, len(members) // 2, len(members) - 1]):
        own = _alone((network, optimizer_class(**members[k]), few, seed))
        if not _agree(trial, own, k):
            raise NotTogetherError(
                "the model gives a member of an ensemble other numbers than a run by itself (it "
                "draws random numbers, or keeps a state)"
            )
    return tried(steps)


def _agree(together: NetworkRuns, own: NetworkRuns, k: int) -> bool:
    """Return whether the k-th member agrees with its own run, within rounding."""
    pairs = [(together.loss[k], own.loss[0])]
    pairs += [(values[k], own.parameters[name][0]) for name, values in together.parameters.items()]
    return all(_close(a, b) for a, b in pairs)


def _close(a: Any, b: Any) -> bool:
    a, b = np.asarray(a), np.asarray(b)
    with np.errstate(all="ignore"):
        scale = np.max(np.abs(b[np.isfinite(b)]), initial=0.0)
        return bool(np.allclose(a, b, rtol=1e-3, atol=1e-3 * float(scale), equal_nan=True))


def _bound(run: NetworkRun, template: Optimizer, seed: int) -> Any:
    with random.scope("optimizer", seed=seed):
        return template.bind(run.parameters)


def _alone(task: tuple[Network, Optimizer, int, int]) -> NetworkRuns:
    """Run one member by itself."""
    network, template, steps, seed = task
    run = network.run(None, seed)
    found = NetworkRuns(1, steps)
    optimizer = _bound(run, template, seed)
    with random.scope("race", seed=seed), np.errstate(all="ignore"):
        step = 0
        try:
            for step, last in run_updates(optimizer, run, steps, []):
                found.loss[0, step] = last
                if not math.isfinite(last):
                    found.stopped[0] = step
                    break
        except FloatingPointError:  # the policy for gradients that are not finite
            found.stopped[0] = step
        with evaluation_weights(optimizer):
            found.final_loss[0] = run.loss()
            found.accuracy[0] = run.accuracy
            names = dict(run.model.named_parameters())
            found.parameters = {name: p.numpy()[None].copy() for name, p in names.items()}
    if found.stopped[0] < 0 and not math.isfinite(found.final_loss[0]):
        found.stopped[0] = steps
    return found


def _ensemble(
    network: Network,
    optimizer_class: Callable[..., Optimizer],
    members: list[dict[str, Any]],
    spread: list[str],
    steps: int,
    seed: int,
    evaluated: bool,
) -> NetworkRuns:
    """Run members as one ensemble; `evaluated` on all data at the end."""
    run = network.run(None, seed)
    if any(True for _ in run.model.buffers()):
        raise NotTogetherError("the model keeps a state beside its parameters (a running mean)")
    count = len(members)
    for parameter in run.parameters:
        parameter.data = EnsembleArray(np.repeat(parameter.data[None], count, axis=0))
    values = {name: EnsembleArray(np.array([m[name] for m in members])) for name in spread}
    optimizer = _bound(run, optimizer_class(**members[0] | values), seed)
    found = NetworkRuns(count, steps)
    #: The parameters of a run that has diverged, as they were then.
    left: dict[int, list[np.ndarray]] = {}
    with random.scope("race", seed=seed), np.errstate(all="ignore"):
        for step in range(steps):
            losses = run.backward(step).members
            going = found.stopped < 0
            found.loss[going, step] = losses[going]
            for k in np.flatnonzero(going & ~np.isfinite(losses)):
                found.stopped[k] = step
                left[int(k)] = [p.data.members[k].copy() for p in run.parameters]
            if (found.stopped >= 0).all():
                break
            optimizer.step()
        for i, parameter in enumerate(run.parameters if left else ()):
            rows = parameter.data.members.copy()
            rows[list(left)] = [arrays[i] for arrays in left.values()]
            parameter.data = EnsembleArray(rows)
        with evaluation_weights(optimizer), no_grad():
            names = dict(run.model.named_parameters())
            found.parameters = {name: p.data.members.copy() for name, p in names.items()}
            if not evaluated:
                return found
            scores = run.model(run.data.train_x)
            found.final_loss[:] = raw(run.loss_function(scores, run.data.train_y)).members
            guesses = raw(run.model(run.data.test_x).argmax(axis=1)).members
            found.accuracy[:] = np.mean(guesses == run.data.test_y, axis=1)
    found.stopped[(found.stopped < 0) & ~np.isfinite(found.final_loss)] = steps
    return found
