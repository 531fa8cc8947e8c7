"""Reports of the memory of a step, and predictions of that of recomputation."""

from __future__ import annotations

import random
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from optlab.autograd.checkpoint import prediction
from optlab.autograd.checkpoint.prediction import Prediction
from optlab.autograd.graph.memory_tracker import MemoryTracker, arrays_of
from optlab.autograd.tensor.tensor import Tensor
from optlab.backend import events
from optlab.backend.memory.ledger import Ledger
from optlab.nn.observe.call_stack import CallStack, follow_calls
from optlab.nn.observe.restore_buffers import restore_buffers
from optlab.optimizer import Optimizer
from optlab.trace.memory.holding import Holding
from optlab.trace.memory.layer_names import LayerNames
from optlab.trace.memory.trace import MemoryTrace

__all__ = ["Holding", "MemoryTrace", "Prediction", "ledger", "predict", "report"]

_one_at_a_time = threading.Lock()


def predict(
    layers: Any, *args: Any, segments: Any = None, snapshots: int | None = None
) -> Prediction:
    """Predict what `recompute_sequential` will store and recompute, without running it.

    The layers run once, one after the other, and each is dropped before the next but one, so it
    takes little more memory than the largest. Nothing remains of it in layers and random numbers:
    buffers are restored, and random numbers, NumPy's and Python's too, are as before. (What
    `forward` changes elsewhere, such as a list that it appends to, stays changed.) What layers
    recompute inside is counted among the operations, but its bytes are not counted as stored:
    ``inner`` names these layers.

    Parameters
    ----------
    layers, *args, segments, snapshots
        As for `optlab.recompute_sequential`; a custom schedule works too.

    Returns
    -------
    Prediction
        Its ``peak`` is what is kept for the backward pass: stored inputs, and what recorded layers
        saved. Temporaries of operations, pending gradients, and what is computed from the chain's
        output come on top; `optlab.lab.memory_study` measures all of it.

    Examples
    --------
    >>> import optlab as ol
    >>> layers = [ol.nn.Tanh() for _ in range(16)]
    >>> x = ol.to_tensor(ol.ones([256, 1024]), requires_grad=True)
    >>> print(ol.memory.predict(layers, x, segments=4))  # doctest: +NORMALIZE_WHITESPACE
    4 segments: 6 MiB kept for backward at most (plainly 16 MiB), 16 layers and 16 operations
    run again
    """
    of_numpy, of_python = np.random.get_state(), random.getstate()  # noqa: NPY002
    try:
        with restore_buffers("memory.predict()"):
            return prediction.predict(layers, *args, segments=segments, snapshots=snapshots)
    finally:
        np.random.set_state(of_numpy)  # noqa: NPY002
        random.setstate(of_python)


@contextmanager
def ledger(verify: bool = False) -> Iterator[MemoryTrace]:
    """Track every array of Tensors in a ``with`` block: what is alive, why, and what created it.

    Arrays that NumPy creates outside of Tensors are not seen: ``verify=True`` reports how much they
    are.

    The run does not change by one bit. Results, gradients and slots are recorded when they are
    created and dropped when they are freed; the highest point between two events comes from
    `tracemalloc`, which is started for the duration of the block. If it is running already it
    continues; only its peak is reset at every event, and restored afterwards. It takes time: a step
    is slower, one of many small operations several times.

    Parameters
    ----------
    verify : bool
        Also read the bytes of all arrays from NumPy's allocator (by `tracemalloc`) and CuPy's pool
        at every event, into ``trace.measured``. ``trace.made`` should be the same; measured bytes
        beyond it are arrays that NumPy created outside of Tensors. This is slow.

    Yields
    ------
    MemoryTrace
        Complete when the block ends.

    Raises
    ------
    RuntimeError
        Inside another ledger.

    Examples
    --------
    >>> import optlab as ol
    >>> x = ol.to_tensor([1.0, 2.0], requires_grad=True)
    >>> with ol.memory.ledger() as trace:
    ...     (x * x).sum().backward()
    >>> trace.operation
    ['start', 'multiply', 'sum', 'start', 'sum', 'multiply', 'gradients', 'end']
    """
    if not _one_at_a_time.acquire(blocking=False):
        raise RuntimeError("a memory ledger is open already; close it before another is opened.")
    try:
        book, running = Ledger(verify), CallStack()
        places = LayerNames(running)
        trace = MemoryTrace(book, places.label)
        watch = MemoryTracker(book, places.path)
        try:
            with (
                watch,
                follow_calls(running, watch.track_inputs),
                events.step_finished.subscribed(_Steps(watch)),
            ):
                yield trace
        finally:
            trace.call_layers(places.names())  # so that the trace does not keep the layers alive
    finally:
        _one_at_a_time.release()


def report(step: Callable[[], Any], verify: bool = False) -> MemoryTrace:
    """Run a training step, and report where the memory of its Tensors went.

    Arrays that NumPy creates outside of Tensors, such as ``np.zeros(10**6)`` appended to a list,
    are not seen, except with ``verify=True``: then a line under the table reports how much they
    are.

    Parameters
    ----------
    step : callable
        Runs one step: forward, backward, the optimizer. It is called once, without arguments.
    verify : bool
        As for `ledger`.

    Returns
    -------
    MemoryTrace
        It prints as a table: bytes by role at the start, at the peak and at the end, and the
        operations whose arrays make up the peak. ``.figure()`` draws the timeline.

    Raises
    ------
    TypeError
        If `step` cannot be called.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> w = ol.to_tensor(np.ones((256, 1024)), requires_grad=True)
    >>> print(ol.memory.report(lambda: np.sum(np.tanh(w)).backward()))
    Memory of a step: peak 8 MiB, 6 MiB above the start, in tanh (backward)
    <BLANKLINE>
                       | start |  peak |   end
    -------------------+-------+-------+------
    parameters         | 2 MiB | 2 MiB | 2 MiB
    gradients          |       | 2 MiB | 2 MiB
    saved for backward |       | 2 MiB |
    temporary          |       | 2 MiB |
    -------------------+-------+-------+------
    total              | 2 MiB | 8 MiB | 4 MiB
    <BLANKLINE>
    At the peak
    made by         | kept as   | layer | arrays | largest             | bytes | share
    ----------------+-----------+-------+--------+---------------------+-------+------
    parameter       | parameter |       |      1 | (256, 1024) float64 | 2 MiB |   25%
    tanh (forward)  | saved     |       |      1 | (256, 1024) float64 | 2 MiB |   25%
    tanh (backward) | gradient  |       |      1 | (256, 1024) float64 | 2 MiB |   25%
    tanh (backward) | temporary |       |        | while it runs       | 2 MiB |   25%
    sum (backward)  | temporary |       |      1 | () float64          |   8 B |    0%
    """
    if not callable(step):
        raise TypeError(
            f"memory.report takes a function that makes one training step; got "
            f"{type(step).__name__}. Write report(step), not report(step())."
        )
    with ledger(verify) as trace:
        step()
    return trace


class _Steps:
    """Records the arrays of optimizers after each step."""

    def __init__(self, watch: MemoryTracker) -> None:
        self.watch = watch

    def __call__(self, optimizer: Any) -> None:
        book, name = self.watch.ledger, type(optimizer).__name__
        with book.paused():
            for group in optimizer.groups:
                for params in group.arenas:
                    count = len(params.parameters)
                    flat = book.hold(params.flat, "parameter", "parameter", "step")
                    if flat is not None and count > 1:  # mostly known as the first of them
                        flat.name, flat.shape = f"{count} parameters", params.flat.shape
                    for p in params.parameters:
                        if p.node is not None:
                            self.watch.track_leaf(p.node, p.data)
                    for slot, array in params.slots.items():
                        book.hold(array, "slot", slot, "step")
            for array in _held_by(optimizer):
                book.hold(array, "slot", name, "step")
            self.watch.track_gradients()
            book.event(name, "step")


def _held_by(thing: Any, depth: int = 6, seen: set[int] | None = None) -> Iterator[Any]:
    """Yield the arrays that an optimizer holds, at any depth."""
    seen = set() if seen is None else seen
    if id(thing) in seen or isinstance(thing, Tensor):  # parameters are known
        return
    seen.add(id(thing))
    if isinstance(thing, Mapping):
        parts = list(thing.values())
    elif isinstance(thing, (list, tuple, set, deque)):
        parts = list(thing)
    elif isinstance(thing, Optimizer) or getattr(type(thing), "holds_arrays", False):
        names = {name for kind in type(thing).__mro__ for name in getattr(kind, "__slots__", ())}
        parts = [getattr(thing, name, None) for name in names]
        parts += list(getattr(thing, "__dict__", {}).values())
    else:
        yield from arrays_of(thing)
        return
    for part in parts if depth else ():
        yield from _held_by(part, depth - 1, seen)


def __dir__() -> list[str]:
    return __all__
