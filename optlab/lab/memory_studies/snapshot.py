"""Snapshot of the state before a study, restored so that every run starts the same."""

from __future__ import annotations

import random as of_python
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from optlab.autograd.tape import versions
from optlab.autograd.tape.nodes import Leaf
from optlab.backend import events, random
from optlab.backend.arrays import copied
from optlab.nn.base.buffers import Buffers, overwrite
from optlab.nn.base.layer import Layer
from optlab.nn.observe.call_stack import CallStack, follow_calls
from optlab.optimizer import Optimizer

WRITER = "memory_study()"


class Snapshot:
    """A snapshot of parameters, gradients, slots, buffers and random numbers.

    Slots are those of the given optimizers. Parameters, gradients and buffers are found in the
    first run (`recording`), each just before it is touched.

    Attributes
    ----------
    bookmark : Bookmark
        The start of the random numbers.
    names : dict of Leaf to str
        Names of the parameters in the layers.

    Examples
    --------
    >>> import optlab as ol
    >>> w = ol.Parameter([1.0, 2.0])
    >>> snapshot = Snapshot([])
    >>> with snapshot.recording():
    ...     (w * w).sum().backward()
    >>> snapshot.end()
    >>> w.grad is None
    True
    """

    def __init__(self, optimizers: Sequence[Any]) -> None:
        self.clock = next(versions.clock)
        self.bookmark = random.bookmark()
        self.names: dict[Leaf, str] = {}
        self._of_numpy, self._of_python = np.random.get_state(), of_python.getstate()  # noqa: NPY002
        self._gradients: dict[Leaf, Any] = {}
        self._buffers = Buffers(WRITER)
        self._optimizers = [(optimizer, optimizer.state_dict()) for optimizer in optimizers]
        self._parameters: dict[int, tuple[Any, Any]] = {}
        for optimizer in optimizers:
            for p in optimizer.parameters:
                self._parameters[id(p)] = (p, copied(p.data))

    @contextmanager
    def recording(self) -> Iterator[None]:
        """Record what the first run touches, and clear the gradients that it meets."""
        running = CallStack()

        def called(_: Any) -> None:
            if len(running.layers) == 1:
                self.meet(running.layers[0])

        with (
            follow_calls(running, called),
            events.operation_recorded.subscribed(self._recorded),
            _only_steps_of([optimizer for optimizer, _ in self._optimizers]),
        ):
            yield

    def meet(self, layer: Any, prefix: str = "") -> None:
        """Record the names of parameters, and buffers, before a layer runs."""
        if not isinstance(layer, Layer):
            return
        for name, p in layer.named_parameters():
            if isinstance(p.node, Leaf):
                self.names.setdefault(p.node, prefix + name)
            if id(p) not in self._parameters:
                self._parameters[id(p)] = p, copied(p.data)
        self._buffers.record(layer)

    def _recorded(self, node: Any) -> None:
        for edge in node.edges:
            if isinstance(edge, Leaf) and edge not in self._gradients and self.predates(edge):
                self._gradients[edge] = edge.grad
                edge.grad = None

    def predates(self, leaf: Leaf) -> bool:
        """Return whether a leaf is older than the study: not created by a step."""
        return 0 < leaf.made_at < self.clock

    @property
    def leaves(self) -> list[Leaf]:
        """The older leaves that the step uses."""
        return list(self._gradients)

    def check_writes(self) -> None:
        """Refuse a step that wrote to a Tensor that no layer holds and that cannot be restored."""
        known = {p.node for p, _ in self._parameters.values()}
        for leaf in self._gradients:
            if leaf.overwritten_at > self.clock and leaf not in known:
                raise RuntimeError(
                    f"the step writes to {leaf.name or f'a Tensor of shape {leaf.shape}'} "
                    f"({leaf.writer}), which no layer holds, so memory_study cannot put it back "
                    "before the next run. Leave that out of the step, or let an optimizer do it "
                    "and give optimizer=."
                )

    def state(self) -> dict[str, Any]:
        """Return what a step may have changed, by name: stepped parameters, and buffers."""
        found = {
            f"the parameter {self.names.get(p.node, '') or p.structural_name or i}": p.data
            for i, (p, _) in enumerate(self._parameters.values())
        }
        return found | self._buffers.state()

    def restore(self) -> None:
        """Restore everything but the gradients, which are cleared."""
        self._buffers.restore()
        for p, values in self._parameters.values():
            overwrite(p, values, WRITER)
        for optimizer, state in self._optimizers:
            optimizer.checked_state(state)()  # its own state: no warnings apply
        for leaf in self._gradients:
            leaf.grad = None
        np.random.set_state(self._of_numpy)  # noqa: NPY002
        of_python.setstate(self._of_python)

    def end(self) -> None:
        """Restore everything."""
        self.restore()
        for leaf, grad in self._gradients.items():
            leaf.grad = grad


@contextmanager
def _only_steps_of(known: list[Any]) -> Iterator[None]:
    """Refuse a step of any other optimizer before it changes anything."""
    known = [*known, *(getattr(one, "inner_optimizer", None) for one in known)]
    original = Optimizer._require_parameters

    def require(self: Any) -> None:
        if not any(self is one for one in known):
            raise RuntimeError(
                f"the step makes an update with {type(self).__name__}, and every run of the study "
                "has to start the same: give memory_study(..., optimizer=optimizer) too, or leave "
                "the update out of the step."
            )
        original(self)

    Optimizer._require_parameters = require  # type: ignore[method-assign]
    try:
        yield
    finally:
        Optimizer._require_parameters = original  # type: ignore[method-assign]
