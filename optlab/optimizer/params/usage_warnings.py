"""Warnings, once per optimizer, of steps that do nothing and of shared memory."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from optlab.autograd.tape.nodes import ZERO
from optlab.backend.user_frames import stack_level_outside
from optlab.optimizer.rule.protocols import UpdateRule

#: Steps at a rate of zero after which to warn that the schedule was never stepped.
_PATIENCE = 10


def warn_of_no_gradient(optimizer: UpdateRule) -> None:
    """Warn of a step that found no gradient, unless there was one before."""
    if "backward" in optimizer.warned or any(
        any(flat.t) for group in optimizer.groups for flat in group.arenas
    ):
        return
    optimizer.warned["backward"] = 1
    _warn(
        f"no parameter of this {type(optimizer).__name__} has a gradient, so step() changed "
        "nothing. Was loss.backward() called before it, and the gradients not cleared in between? "
        "Is the loss computed from these parameters?"
    )


def warn_of_zero_gradients(optimizer: UpdateRule) -> None:
    """Warn of a step whose gradients are all the zeros that `clear_grad` left."""
    if "zeros" in optimizer.warned:
        return
    nodes = [p.node for group in optimizer.groups for p in group.parameters]
    if any(node is not None and node.grad is not None and node.grad is not ZERO for node in nodes):
        return
    optimizer.warned["zeros"] = 1
    _warn(
        f"all gradients of this {type(optimizer).__name__} are the zeros that clear_grad() left, "
        "and step() takes them for gradients: moments and decay go on moving the parameters. Was "
        "loss.backward() forgotten, or clear_grad() called between it and step()?"
    )


def warn_of_shared_memory(parameters: Iterable[Any]) -> None:
    """Warn if parameters share memory: the optimizer is about to give each its own."""
    given = [p for p in parameters if type(p.data) is np.ndarray and p.size]
    places = sorted((*byte_bounds(p.data), number) for number, p in enumerate(given))
    for (_, end, one), (start, _, other) in pairwise(places):
        if start < end and np.shares_memory(given[one].data, given[other].data):
            first, second = (
                getattr(given[i], "structural_name", None) or f"number {i}" for i in (one, other)
            )
            _warn(
                f"parameters {first} and {second} share memory. An optimizer gives each memory of "
                "its own, so from now on they differ. To tie weights use one Parameter in both "
                "places."
            )
            return


def warn_of_unstepped_schedule(optimizer: UpdateRule) -> None:
    """Count a step at a rate of zero, and warn of the tenth if the schedule was never stepped."""
    schedule = optimizer.schedule
    if schedule is None or getattr(schedule, "last_epoch", 1) != 0:
        return
    count = optimizer.warned["schedule"] = optimizer.warned.get("schedule", 0) + 1
    if count == _PATIENCE:
        _warn(
            f"{_PATIENCE} steps of this {type(optimizer).__name__} were taken at a rate of 0, at "
            f"which its {type(schedule).__name__} begins, and the schedule was never stepped. Did "
            "you call schedule.step()? optimizer.step() does not."
        )


def _warn(message: str) -> None:
    """Warn at the line of the user's code."""
    warnings.warn(message, UserWarning, stacklevel=stack_level_outside("optlab"))
