"""The methods of Tensors for gradients: ``t.backward()``, ``t.grad``, hooks."""

from __future__ import annotations

from collections.abc import Callable
from sys import getrefcount
from typing import TYPE_CHECKING, Any, Never

import numpy as np

from optlab.autograd.tape import base, nodes, views
from optlab.autograd.tape.backward import REFERENCES_WHEN_ALONE, backpropagate
from optlab.autograd.tape.base import first_gradient, raw
from optlab.autograd.tape.nodes import InputLeaf, Leaf, leaf_for
from optlab.autograd.tape.row_sparse import RowSparse
from optlab.autograd.tape.slow_path import slow_path
from optlab.autograd.tensor.conversions import is_differentiated, refusal
from optlab.backend.arrays import copied, placed_beside
from optlab.backend.call_recorder import here
from optlab.backend.foreign_arguments import hint
from optlab.backend.wrong_arguments import closed, surplus

if TYPE_CHECKING:
    from optlab.autograd.tensor.tensor import Tensor

_array = np.ndarray
_new: Any = object.__new__


class GradientMethods:
    """``t.requires_grad``, ``t.backward()``, ``t.grad`` and ``t.register_hook(f)``."""

    __slots__ = ()

    data: Any
    node: Any

    @property
    def requires_grad(self) -> bool:
        """Whether a backward pass computes a gradient for this Tensor."""
        return views.is_recorded(self)

    @requires_grad.setter
    def requires_grad(self, wanted: bool) -> None:
        if here.recorder is not None:
            here.recorder.needs_gradient(self, wanted)
        if not self.is_leaf:
            raise RuntimeError(
                "requires_grad can be set on Tensors that you made, not on the result of "
                f"{self.node.operation.name!r}; use .detach() to cut it off."
            )
        if wanted and self.node is None:
            self.node = leaf_for(self.data)
        elif not wanted:
            self.node = None

    @property
    def is_leaf(self) -> bool:
        """Whether this Tensor is not the result of a recorded operation."""
        return not views.is_recorded(self) or isinstance(self.node, Leaf)

    @property
    def grad(self) -> Any:
        """The accumulated gradient: a Tensor, a `RowSparse` gradient, or None."""
        if slow_path.any and here.recorder is not None:  # the first takes 15 ns, the second 45
            return here.recorder.gradient(self, _read_grad)
        node = self.node
        if not isinstance(node, Leaf):
            return None
        g = node.grad
        if g.__class__ is not _array:
            if g is None or isinstance(g, (base.Tensor, RowSparse)):
                return g
            if g is nodes.ZERO:
                g = node.gradient(self.data)
        # The user may write to the returned Tensor, so it needs its own memory; the array may be
        # shared with another gradient, or be a view of it.
        if getrefcount(g) > REFERENCES_WHEN_ALONE or getattr(g, "base", None) is not None:
            g = g.copy()
        handed: Tensor = _new(base.Tensor)
        handed.data, handed.node = g, None
        node.grad = handed
        return handed

    @grad.setter
    def grad(self, value: Any) -> None:
        if here.recorder is not None:
            here.recorder.set_gradient(self, value, _write_grad)
            return
        if not isinstance(self.node, Leaf):
            if value is None:
                return  # nothing to clear
            raise RuntimeError(
                "grad can be set only on Tensors made with requires_grad=True; the gradients of "
                "results in between are not kept."
            )
        if value is not None:
            # A copy: the caller may still write to the array.
            array = copied(raw(value), self.data.dtype)
            array = placed_beside(self.data, array, "the gradient")
            if array.shape != self.data.shape:
                raise ValueError(
                    f"a gradient must have the shape of its Tensor, {self.data.shape}; "
                    f"got {array.shape}."
                )
            keeps_graph = isinstance(value, base.Tensor) and value.node is not None
            value = value.astype(self.data.dtype) if keeps_graph else array
        self.node.grad = value

    @closed
    def backward(
        self, grad: Any = None, retain_graph: bool | None = None, create_graph: bool = False,
        *rest: Never, **unknown: Never,
    ) -> None:  # fmt: skip
        """Run the backward pass: add the gradient of this Tensor to ``grad`` of its leaves.

        Gradients accumulate until they are cleared.

        Parameters
        ----------
        grad : array or Tensor, optional
            The gradient of this Tensor, of its shape. Ones by default.
        retain_graph : bool, optional
            Keep the saved values, so that backward can run again. Default: `create_graph`.
        create_graph : bool
            Record the gradients on the tape, for derivatives of higher order.

        Raises
        ------
        RuntimeError
            If this Tensor needs no gradient, or an earlier backward freed its graph.
        ValueError
            If `grad` has another shape.
        SilentDetachError
            Inside a transform that differentiates this Tensor, without `create_graph`: the
            gradients would be constants to it.

        Examples
        --------
        >>> import optlab as ol
        >>> x = ol.to_tensor(3.0, requires_grad=True)
        >>> (x * x).backward()
        >>> x.grad.item()
        6.0
        """
        if rest or unknown:
            raise surplus("Tensor.backward", GradientMethods.backward, rest, unknown, hint)
        if slow_path.any:
            views.check_fresh((self,))
        node = self.node
        if node is None:
            raise RuntimeError(
                "backward() has nowhere to go: nothing that this Tensor was computed from needs a "
                "gradient. Make the inputs with requires_grad=True, and compute outside no_grad()."
            )
        if InputLeaf.transforms and not create_graph and is_differentiated(self):
            raise refusal(
                self,
                "backward() of what a transform (ol.grad, ol.jvp, ...) differentiates",
                "ol.grad(loss)(parameters), whose result is differentiated again, and "
                "optimizer.functional_step(parameters, gradients, state) for a step; or "
                "backward(create_graph=True)",
            )
        seed = first_gradient(self.data, grad)
        if create_graph and not isinstance(seed, base.Tensor):
            seed = base.Tensor(seed)
        if retain_graph is None:
            retain_graph = create_graph
        backpropagate(node, seed, self.data, None, create_graph, retain_graph)

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> GradientHook:
        """Call `hook` with the gradient of this Tensor; its result, if any, replaces the gradient.

        Returns
        -------
        GradientHook
            Its ``remove()``, or a call of it, removes the hook.

        Examples
        --------
        >>> import optlab as ol
        >>> x = ol.to_tensor(3.0, requires_grad=True)
        >>> handle = x.register_hook(lambda g: g * 10)
        >>> (x * 2).backward()
        >>> x.grad.item()
        20.0
        >>> handle.remove()
        """
        if here.recorder is not None:
            here.recorder.hooked(self)
        if not views.is_recorded(self):
            raise RuntimeError("a hook needs a Tensor that needs a gradient.")
        node = self.node

        def registered(g: Tensor) -> Tensor | None:  # one object for each registration
            return hook(g)

        node.hooks = [*(node.hooks or ()), registered]
        return GradientHook(node, registered)


class GradientHook:
    """A registered hook of a Tensor: `remove`, a call, or the end of a ``with`` block removes it.

    Examples
    --------
    >>> import optlab as ol
    >>> x = ol.to_tensor(3.0, requires_grad=True)
    >>> with x.register_hook(lambda g: g * 10):
    ...     (x * 2).backward()
    >>> (x * 2).backward()
    >>> x.grad.item()
    22.0
    """

    __slots__ = ("_node", "_registered")

    def __init__(self, node: Any, registered: Any) -> None:
        self._node, self._registered = node, registered

    def remove(self) -> None:
        """Remove the hook; a second call does nothing."""
        kept = [one for one in self._node.hooks or () if one is not self._registered]
        self._node.hooks = kept or None

    __call__ = remove

    def __enter__(self) -> GradientHook:
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()


def _read_grad(t: Any) -> Any:
    return t.grad


def _write_grad(t: Any, value: Any) -> None:
    t.grad = value
