"""Interrupts at any line of optlab: a step must be taken completely or not at all."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import optlab as ol

ROOT = str(Path(ol.__file__).parent)


class Stop(KeyboardInterrupt):
    """The interrupt of a test."""


def _is_ours(name: str) -> bool:
    return name.startswith((ROOT, "<optlab"))


def interrupted_at(number: int, f: Callable[[], Any]) -> bool:
    """Call `f` and raise at the line `number` (from 0) that it runs; return whether it had it."""
    left = number

    def on_line(frame: Any, event: str, argument: Any) -> Any:
        nonlocal left
        if event == "line":
            if not left:
                left = -1
                raise Stop
            left -= 1
        return on_line

    def on_call(frame: Any, event: str, argument: Any) -> Any:
        return on_line if _is_ours(frame.f_code.co_filename) else None

    before = sys.gettrace()
    sys.settrace(on_call)
    try:
        f()
    except Stop:
        return True
    finally:
        sys.settrace(before)
    return left == -1


def lines_of(f: Callable[[], Any]) -> int:
    """Return the number of lines that `f` runs."""
    count = 0

    def on_line(frame: Any, event: str, argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return on_line

    before = sys.gettrace()
    sys.settrace(lambda frame, *_: on_line if _is_ours(frame.f_code.co_filename) else None)
    try:
        f()
    finally:
        sys.settrace(before)
    return count


def values_of(parameters: Any, *others: Any) -> dict[str, Any]:
    """Return parameters, and the states of optimizers and the like, as arrays and numbers."""
    found: dict[str, Any] = {f"p{i}": np.array(p.numpy()) for i, p in enumerate(parameters)}
    for number, one in enumerate(others):
        found |= dict(_flat(one.state_dict(), f"{number} "))
    return found


def _flat(state: Any, name: str) -> Iterator[tuple[str, Any]]:
    for key, value in state.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{name}{key} ")
        else:
            yield f"{name}{key}", value.numpy() if isinstance(value, ol.Tensor) else value


def same(a: dict[str, Any], b: dict[str, Any]) -> bool:
    """Return whether two results of `values_of` are the same to the bit."""
    return a.keys() == b.keys() and all(np.array_equal(a[k], b[k]) for k in a)
