"""Telling those who listen which operations run, and what they give."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from optlab.backend import events

Forward = Callable[..., Any]


def reported(name: str, forward: Forward, inputs: Sequence[Any]) -> Forward:
    """Give what computes an operation and tells of it."""
    events.operation_starts.publish(name, inputs)
    return partial(_run, name, forward)


def _run(name: str, forward: Forward, /, *values: Any, **static: Any) -> Any:
    events.operation_starts.publish(name, (*values, *static.values()))
    y = forward(*values, **static)
    events.operation_ran.publish(name, values, y)
    return y


def plain(forward: Forward) -> Forward:
    """Give what computes an operation without telling of it."""
    if isinstance(forward, partial) and forward.func is _run:
        return forward.args[1]  # type: ignore[no-any-return]
    return forward
