"""The runs of a comparison as tasks: here one after another, or by an executor."""

from __future__ import annotations

import pickle
from collections.abc import Hashable, Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

import numpy as np

from optlab.lab.cell_store import mapped, sendable
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
    payloads = [sendable(task, "problem and optimizer") for task in tasks.values()]
    yield from zip(tasks, mapped(executor, train_copy, payloads), strict=True)


def train_copy(payload: bytes) -> FairRun:
    """Run a task; what a worker of an executor does."""
    return train(*pickle.loads(payload))
