"""Updates on a budget: a number of gradient evaluations, however many an update takes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext, suppress
from typing import Any

from optlab.backend import events
from optlab.optimizer import lr


class _SpentError(Exception):
    """All evaluations of a run have been made."""


def run_updates(
    optimizer: Any, run: Any, steps: int, counts: list[int]
) -> Iterator[tuple[int, Any]]:
    """Run an optimizer for `steps` gradient evaluations; yield the number of updates and the loss.

    `counts` receives, for every update, how many gradients were evaluated before it.
    """
    if getattr(optimizer, "needs_closure", False):
        return _with_closure(optimizer, run, steps, counts)
    return _without_closure(optimizer, run, steps, counts)


def _without_closure(
    optimizer: Any, run: Any, steps: int, counts: list[int]
) -> Iterator[tuple[int, Any]]:
    """Make one update per gradient, and yield the loss before it."""
    for step in range(steps):
        last = run.backward(step)
        yield step, last
        optimizer.step()
        counts.append(step + 1)
        if optimizer.schedule is not None:
            advance(optimizer.schedule, last)


def _with_closure(
    optimizer: Any, run: Any, steps: int, counts: list[int]
) -> Iterator[tuple[int, Any]]:
    """Let the optimizer evaluate as often as it needs, until all evaluations are spent.

    All evaluations of one step use the same batch.
    """
    evaluated = taken = 0

    def closure() -> Any:
        nonlocal evaluated
        if evaluated == steps:
            raise _SpentError
        evaluated += 1
        return run.backward(taken)

    def count(who: Any, updates: Any) -> None:
        counts.append(evaluated)

    with events.step_taken.subscribed(count, of=optimizer), suppress(_SpentError):
        while evaluated < steps:
            before = _updates_of(optimizer)
            last = optimizer.step(closure)
            yield len(counts), last
            if optimizer.schedule is not None:
                advance(optimizer.schedule, last)
            taken += 1
            if _updates_of(optimizer) == before and not getattr(run, "noise", None):
                return  # converged


def _updates_of(optimizer: Any) -> list[int]:
    """Return how many updates each parameter has had."""
    return [t for group in optimizer.groups for flat in group.arenas for t in flat.t]


def advance(schedule: Any, loss: float) -> None:
    """Step a schedule, as a training loop does."""
    if isinstance(schedule, lr.ReduceOnPlateau):
        schedule.step(loss)
    else:
        schedule.step()


def evaluation_weights(optimizer: Any) -> Any:
    """Return a context with the weights that are evaluated: averages if there are any."""
    apply = getattr(optimizer, "apply", None)
    return nullcontext() if apply is None else apply()
