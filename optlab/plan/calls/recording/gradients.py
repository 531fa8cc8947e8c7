"""The gradients of a call that is recorded: what leaves collect, and what the call reads of it.

The gradient of a leaf from outside is state, which a replay changes as the call did. The gradient
of a leaf that the call has made is a value like others.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from optlab.autograd.tape import backward
from optlab.autograd.tape.base import TensorBase, new_tensor, raw
from optlab.autograd.tape.grad_mode import grad_mode
from optlab.autograd.tape.hooks import run_hooks
from optlab.autograd.tape.nodes import ZERO, Leaf
from optlab.backend.call_recorder import suspended
from optlab.plan.calls.entries import OfTensor
from optlab.plan.calls.recording.arrays import plain
from optlab.plan.calls.recording.recorded_pass import announce, collect, recorded_pass
from optlab.plan.calls.recording.values import RecordedValues


class RecordedGradients(RecordedValues):
    """The gradients of a call."""

    #: Leaves from outside that got a gradient with a graph.
    _with_graph: list[Any]

    def backward_pass(self, *args: Any) -> Any:
        """Run a backward pass, and record its rules."""
        return recorded_pass(self, *args)

    def made_here(self, leaf: Any) -> bool:
        """Return whether the call has made a leaf."""
        return bool(leaf.made_at > self.started)

    def collect(self, leaf: Any, g: Any, create_graph: bool) -> None:
        """Add a gradient to that of a leaf, and record that."""
        if self.made_here(leaf):
            if leaf.hooks:
                g = run_hooks(leaf, g)
            leaf.grad = self._sum(leaf.grad, g, create_graph)
            return
        self.undo.protect(leaf)
        if isinstance(g, TensorBase) and g.node is not None:
            if leaf.hooks:
                self.refuse("a hook of a leaf whose gradient has a graph (create_graph=True)")
            before = leaf.grad
            if before is not None and before is not ZERO and not isinstance(before, TensorBase):
                before = new_tensor(self.read(_gradient_of, leaf))
            leaf.grad = self._sum(before, g, create_graph)
            self._with_graph.append(leaf)
            place = self.place_of(leaf.grad.data)
            self.add("effect", "set gradient", _set_gradient, (leaf, place), {}, None)
            return
        with suspended():
            backward.collect(leaf, g, create_graph)
        self.add("effect", "collect", collect, (leaf, self.template(g)), {}, None)

    def backward_done(self, value: Any, leaves: list[Any]) -> None:
        """Record that a backward pass is finished, for those who listen to it in a replay."""
        outside = tuple([leaf for leaf in leaves if not self.made_here(leaf)])
        if outside and value is not None and self.known(value) is not None:
            self.add(
                "effect", "backward finished", announce, (self.place_of(value), outside), {}, None
            )

    def _sum(self, total: Any, g: Any, create_graph: bool) -> Any:
        """Return the sum of a gradient and those before, recorded as an operation."""
        if total is None or total is ZERO:
            return g
        if isinstance(total, TensorBase) or isinstance(g, TensorBase):
            with grad_mode(create_graph):
                return total + g
        return self.compute("add gradients", operator.add, total, g)

    def gradient(self, t: Any, read: Callable[[Any], Any]) -> Any:
        """Return the gradient of a leaf."""
        leaf = t.node
        g = leaf.grad if isinstance(leaf, Leaf) else None
        if isinstance(g, TensorBase) and (g.node is not None or self.made_here(leaf)):
            return g
        if g is None or not self.made_here(leaf):
            return self.read(read, t)
        g = leaf.gradient(t.data)
        if isinstance(g, np.ndarray):
            # A copy: the array may be another gradient, too, and the user may write to it.
            leaf.grad = g = new_tensor(self.compute("copy", np.array, g))
        return g

    def set_gradient(self, t: Any, value: Any, write: Callable[[Any, Any], None]) -> None:
        """Set the gradient of a Tensor, as ``t.grad = value`` does, and record that."""
        here = isinstance(t.node, Leaf) and self.made_here(t.node)
        graph = isinstance(value, TensorBase) and getattr(value.node, "order", 0) > 0
        if not here and not graph:
            self.effect(write, (t, value), {})
            return
        self.settle(value)
        self.undo.protect(t)
        with suspended():
            write(t, plain(value))
        if graph:
            t.node.grad = value if value.dtype == t.dtype else value.astype(t.dtype)
        elif value is not None:
            t.node.grad = self.copied(raw(value), t.dtype)
        if not here:
            self._with_graph.append(t.node)
            given = OfTensor(self.place_of(t.node.grad.data))
            self.add("effect", "set gradient", write, (t, given), {}, None)

    def check_graphs(self) -> None:
        """Refuse a call that leaves gradients with a graph behind."""
        for leaf in self._with_graph:
            if isinstance(leaf.grad, TensorBase) and leaf.grad.node is not None:
                self.refuse(
                    "backward(create_graph=True), whose gradients still have their graph when the "
                    "call ends (clear them: optimizer.clear_grad(), p.grad = None),"
                )

    def needs_gradient(self, t: Any, wanted: bool) -> None:
        """Refuse another ``requires_grad`` of a Tensor from outside."""
        if (t.node is not None) != bool(wanted) and self.from_outside(t):
            self.refuse(
                "a change of requires_grad (stop_gradient, trainable) of a Tensor from outside, "
                "which is made before the call, or by x.detach(),"
            )

    def hooked(self, t: Any) -> None:
        """Refuse a new hook of a leaf from outside."""
        if isinstance(t.node, Leaf) and not self.made_here(t.node):
            self.refuse("register_hook of a Tensor from outside, which is done before the call,")


def _gradient_of(leaf: Any) -> Any:
    return np.array(leaf.grad)


def _set_gradient(leaf: Any, g: Any) -> None:
    leaf.grad = g
