"""The runs of a comparison as tasks: here one after another, or by an executor."""

from __future__ import annotations

import pickle
from collections.abc import Hashable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

import numpy as np

from optlab.backend.text import one_line
from optlab.lab.cell_store import mapped
from optlab.lab.fair_comparisons.trainees import Trainee
from optlab.lab.fair_comparisons.training import FairRun, train
from optlab.optimizer import Optimizer

Key = TypeVar("Key", bound=Hashable)


class Task(NamedTuple):
    """The arguments of `train`."""

    what: Trainee
    template: Optimizer
    shares: np.ndarray | None
    budget: int
    seed: int
    judged: bool


def results(tasks: Mapping[Key, Task], executor: Any) -> Iterator[tuple[Key, FairRun]]:
    """Yield the run of each task, as soon as it is there; by an executor, in order."""
    if executor is None:
        for key, task in tasks.items():
            yield key, train(*task)
        return
    payloads = [_pickled(task) for task in tasks.values()]
    yield from zip(tasks, mapped(executor, train_copy, payloads), strict=True)


def train_copy(payload: bytes) -> FairRun:
    """Run a task; what a worker of an executor does."""
    return train(*pickle.loads(payload))


def _pickled(task: Task) -> bytes:
    try:
        import cloudpickle as pickler  # type: ignore[import-untyped]  # recipes are made of lambdas
    except ModuleNotFoundError:
        pickler = pickle
    try:
        found: bytes = pickler.dumps(task)
    except Exception as error:  # each kind of object has an error of its own
        raise TypeError(
            f"executor= sends problem and optimizer to other processes: {one_line(str(error))}. "
            "Install cloudpickle, which sends any function."
        ) from error
    return found
