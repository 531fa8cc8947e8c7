"""Putting buffers back after a run: those of all layers that it called."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from optlab.nn.base.buffers import Buffers
from optlab.nn.observe.call_stack import CallStack, follow_calls


@contextmanager
def restore_buffers(writer: str) -> Iterator[None]:
    """Put back, afterwards, the buffers of all layers that are called inside.

    Examples
    --------
    >>> import optlab as ol
    >>> norm = ol.nn.BatchNorm1D(2)
    >>> with restore_buffers("nobody"):
    ...     _ = norm(ol.to_tensor([[0.0, 4.0], [8.0, 4.0]]))
    >>> [buffer.tolist() for buffer in norm.buffers()]
    [[0.0, 0.0], [1.0, 1.0]]
    """
    buffers, running = Buffers(writer), CallStack()

    def called(_: Any) -> None:
        if len(running.layers) == 1:
            buffers.record(running.layers[0])

    try:
        with follow_calls(running, called):
            yield
    finally:
        buffers.restore()
