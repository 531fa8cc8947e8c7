"""Side effects of a replayed function: in-place writes to running statistics, counters, caches.

The replay starts from the values that the first run started from, and writes to copies: so it
computes the same and leaves no trace. This covers Tensors that are not on the tape, wherever they
are held, and buffers of Layers, which forward may also replace by a new Tensor.
"""

from __future__ import annotations

import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from optlab.autograd.tape.grad_mode import recomputing
from optlab.autograd.tape.write_observers import observing
from optlab.backend.arrays import owner_of

#: Arrays of more bytes are not copied before the first run writes: the replay starts from their
#: current values.
LARGE = 1 << 20


#: By id of a Tensor: its data and node outside of all replays, and how many have replaced them.
_originals: dict[int, list[Any]] = {}
_lock = threading.Lock()


class _Exchange:
    """Temporary exchange of the arrays of Tensors, safe if several threads do so at once."""

    def __init__(self) -> None:
        self.before: dict[int, tuple[Any, Any, Any]] = {}

    def put(self, t: Any, data: Any) -> None:
        """Replace the array of a Tensor."""
        with _lock:
            _originals.setdefault(id(t), [t.data, t.node, 0])[2] += 1
            self.before[id(t)] = t, t.data, t.node
            t.data, t.node = data, None

    def put_back(self) -> None:
        """Restore the arrays of all Tensors."""
        for key, (t, data, node) in self.before.items():
            with _lock:
                original = _originals[key]
                original[2] -= 1
                if not original[2]:
                    data, node, _ = _originals.pop(key)
                t.data, t.node = data, node


def _layers_of(function: Any) -> Iterator[Any]:
    """Yield the Layers of a function: itself, the owner of the method, and names in its code."""
    named = [function, getattr(function, "__self__", None)]
    code = getattr(function, "__code__", None)
    if code is not None:
        around = getattr(function, "__globals__", {})
        named += [around.get(name) for name in code.co_names]
        for cell in getattr(function, "__closure__", None) or ():
            with suppress(ValueError):  # an empty cell
                named.append(cell.cell_contents)
    seen = set()
    for one in named:
        if hasattr(type(one), "_own_buffers") and id(one) not in seen:
            seen.add(id(one))
            yield one


def _writer_asked() -> bool:
    """Return whether a caller has asked `is_recomputing`, and so handles replays itself."""
    frame: Any = sys._getframe(1) if recomputing.asked else None
    while frame is not None:
        if (id(frame), frame.f_code) in recomputing.asked:  # type: ignore[operator]
            return True
        frame = frame.f_back
    return False


class _ViewedMemory:
    """Memory that was written to through a view, with a copy unless it is large."""

    def __init__(self, owner: Any) -> None:
        self.owner = weakref.ref(owner)
        self.copy = owner.copy() if owner.nbytes <= LARGE else None


class SideEffects:
    """Values before the writes of a first run, from which the replay starts.

    Parameters
    ----------
    function : callable
        Replaced buffers of Layers that it is, belongs to or names are restored too.
    """

    def __init__(self, function: Any) -> None:
        self.slots = [
            (part, name, vars(part).get(name))
            for layer in _layers_of(function)
            for part in layer.sublayers(include_self=True)
            for name in part._buffer_names
        ]
        #: By id of a Tensor: a reference to it, and a copy of its array; None if that is large, or
        #: if the writer called `is_recomputing`: these start from their current values.
        self.tensors: dict[int, tuple[weakref.ref[Any], Any]] = {}
        self.memory: dict[int, _ViewedMemory] = {}

    @contextmanager
    def recorded(self) -> Iterator[None]:
        """Record the writes of a first run."""
        before = recomputing.asked
        recomputing.asked = set() if before is None else before
        try:
            with observing(self._copy_before_write):
                yield
        finally:
            recomputing.asked = before
        self.slots = [one for one in self.slots if vars(one[0]).get(one[1]) is not one[2]]
        tensors: list[Any] = [(key, *one, one[0]()) for key, one in list(self.tensors.items())]
        tensors = [one for one in tensors if self._is_untaped(one[-1])]
        self.tensors = {key: (reference, copy) for key, reference, copy, _ in tensors}
        owners = {id(owner_of(t.data)) for *_, t in tensors}
        memory = [(key, one, one.owner()) for key, one in self.memory.items() if key not in owners]
        self.memory = {key: one for key, one, owner in memory if owner is not None}
        for one in self.memory.values():
            one.copy = None

    @staticmethod
    def _is_untaped(t: Any) -> bool:
        return t is not None and t.node is None

    def _copy_before_write(self, t: Any) -> None:
        """Copy an array before it is written to."""
        key, data = id(t), t.data
        if t.node is not None or not hasattr(data, "nbytes"):
            return
        if key in self.tensors:
            return
        owner = owner_of(data)
        uncopied = data.nbytes > LARGE or _writer_asked()
        copy = None if uncopied else data.copy()
        if owner is not data:
            known = self.memory.get(id(owner))
            if known is None or known.owner() is not owner:
                self.memory[id(owner)] = _ViewedMemory(owner)
        elif (known := self.memory.get(id(owner))) is not None and known.owner() is owner:
            copy = None if uncopied else known.copy  # a view was written to first

        def forget(_: Any) -> None:
            self.tensors.pop(key, None)

        self.tensors[key] = weakref.ref(t, forget), copy

    @contextmanager
    def replayed(self, refused: Callable[[str], Exception]) -> Iterator[None]:
        """Start a replay from the values before the first run; restore the current ones at its end.

        Parameters
        ----------
        refused : callable
            Returns the error for a write that cannot be undone, given its description.
        """
        if not (self.tensors or self.slots or self.memory):
            yield
            return
        exchanged = _Exchange()
        slots = [(part, name, vars(part).get(name)) for part, name, _ in self.slots]
        for part, name, value in self.slots:
            vars(part)[name] = value
        for reference, copy in list(self.tensors.values()):
            t = reference()
            if copy is not None and self._is_untaped(t):
                exchanged.put(t, copy.copy())

        def keep_apart(t: Any) -> None:
            if id(t) in exchanged.before:
                return
            if id(t) in self.tensors and self._is_untaped(t):
                exchanged.put(t, t.data.copy())
                return
            known = self.memory.get(id(owner_of(t.data)))
            if known is not None and known.owner() is owner_of(t.data):
                raise refused(
                    f"it wrote a second time to a part of memory (shape {t.shape}) that was there "
                    "before; write to the whole Tensor, t[i] = x, or only the first time, `if not "
                    "ol.autograd.is_recomputing():`"
                )

        try:
            with observing(keep_apart):
                yield
        finally:
            exchanged.put_back()
            for part, name, value in slots:
                vars(part)[name] = value
