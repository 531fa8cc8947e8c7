"""Undo: what a run of a captured function changes in the engine, put back.

The state of the engine is reached from the objects that are about to change: Tensors and their
leaves, optimizers, schedules. Arrays are put back by their contents, containers and attributes by
what they held.
"""

from __future__ import annotations

import random as of_python
from collections import deque
from collections.abc import Iterable
from typing import Any

import numpy as np

from optlab.autograd.tape.nodes import Leaf, Node
from optlab.backend import random
from optlab.backend.arrays import owner_of

_PLAIN = (int, float, complex, str, bytes, bool, type(None), type, np.dtype, np.generic)


class Undo:
    """The state of objects before a run changes them."""

    def __init__(self) -> None:
        self._seen: dict[int, Any] = {}
        self._arrays: list[tuple[Any, Any]] = []
        self._attributes: list[tuple[Any, dict[str, Any], tuple[str, ...]]] = []
        self._containers: list[tuple[Any, Any]] = []
        self.program = random.current_stream()
        self._stream = random.stream_of_this_thread()
        self._draws = self._stream.draws
        self._of_python = of_python.getstate()
        self._of_numpy = np.random.get_state()  # noqa: NPY002

    def protect(self, root: Any) -> None:
        """Record the state of an object and of what it holds; once."""
        waiting = [root]
        while waiting:
            x = waiting.pop()
            if getattr(x, "is_traced", False):
                x = x.value
            if isinstance(x, _PLAIN) or id(x) in self._seen or (callable(x) and not _is_ours(x)):
                continue
            self._seen[id(x)] = x
            if isinstance(x, np.ndarray):
                self._array(x)
            elif isinstance(x, (list, deque, set)):
                self._containers.append((x, list(x)))
                waiting.extend(x)
            elif isinstance(x, dict):
                self._containers.append((x, dict(x)))
                waiting.extend(x.values())
            elif isinstance(x, (tuple, frozenset)):
                waiting.extend(x)
            elif isinstance(x, Node):
                continue
            elif _is_ours(x):
                slots = tuple(slots_of(type(x)))
                found = {name: getattr(x, name) for name in slots if _has(x, name)}
                own = dict(vars(x)) if hasattr(x, "__dict__") else {}
                self._attributes.append((x, own, slots))
                self._containers.append((_Slots(x, slots), found))
                waiting.extend(found.values())
                waiting.extend(own.values())

    def _array(self, x: Any) -> None:
        owner = owner_of(x)
        if isinstance(owner, np.ndarray) and (owner is x or id(owner) not in self._seen):
            self._seen[id(owner)] = owner
            if owner.dtype.kind != "O":
                self._arrays.append((owner, owner.copy()))

    def protect_all(self, roots: Iterable[Any]) -> None:
        """Record the state of several objects."""
        for root in roots:
            self.protect(root)

    def arrays(self) -> list[Any]:
        """Return the arrays, as they are now."""
        return [array.copy() for array, _ in self._arrays]

    def drawn(self) -> str:
        """Return which random numbers other than those of optlab were drawn; empty for none."""
        if of_python.getstate() != self._of_python:
            return "the random numbers of Python's random; ol.rand draws anew in every call"
        now: Any = np.random.get_state()  # noqa: NPY002
        then: Any = self._of_numpy
        if now[2] != then[2] or not np.array_equal(now[1], then[1]):
            return "the random numbers of np.random; ol.rand draws anew in every call"
        return ""

    def restore(self) -> None:
        """Put everything back."""
        for array, values in self._arrays:
            if array.flags.writeable:
                array[...] = values
            elif not np.array_equal(array, values, equal_nan=array.dtype.kind == "f"):
                array.flags.writeable = True
                array[...] = values
                array.flags.writeable = False
        for x, own, _ in self._attributes:
            if hasattr(x, "__dict__"):
                vars(x).clear()
                vars(x).update(own)
        for container, values in self._containers:
            if isinstance(container, _Slots):
                container.put_back(values)
            elif isinstance(container, (dict, set)):
                container.clear()
                container.update(values)
            elif isinstance(container, list):
                container[:] = values
            else:
                container.clear()
                container.extend(values)
        if random.current_stream() is not self.program:  # reseeded
            random.set_stream(self.program)
        self._stream.draws = self._draws
        of_python.setstate(self._of_python)
        np.random.set_state(self._of_numpy)  # noqa: NPY002

    def forget(self) -> None:
        """Let go of the objects and of the copies of their arrays."""
        self._seen, self._arrays, self._attributes, self._containers = {}, [], [], []


class _Slots:
    """The slots of an object."""

    def __init__(self, x: Any, names: tuple[str, ...]) -> None:
        self.x, self.names = x, names

    def put_back(self, found: dict[str, Any]) -> None:
        for name in self.names:
            if name in found:
                if not _has(self.x, name) or getattr(self.x, name) is not found[name]:
                    object.__setattr__(self.x, name, found[name])
            elif _has(self.x, name):
                object.__delattr__(self.x, name)


def slots_of(cls: type) -> list[str]:
    """Return the names of the slots of a class and those that it is derived from."""
    return [
        name
        for one in cls.__mro__
        for name in getattr(one, "__slots__", ())
        if name not in ("__weakref__", "__dict__")
    ]


def _has(x: Any, name: str) -> bool:
    try:
        object.__getattribute__(x, name)
    except AttributeError:
        return False
    return True


def _is_ours(x: Any) -> bool:
    """Return whether an object is of the engine: a class of optlab, or derived from one."""
    if isinstance(x, (type, Leaf)):
        return isinstance(x, Leaf)
    return any(one.__module__.partition(".")[0] == "optlab" for one in type(x).__mro__)
