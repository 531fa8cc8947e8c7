"""RecomputeOptimizer: activation checkpointing set on the optimizer."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Mapping
from typing import Any

from optlab.autograd.checkpoint.layer_checks import is_layer, refuse_layer_class
from optlab.autograd.remat.checkpoints import segments
from optlab.autograd.remat.rematerialize import tensors_in
from optlab.autograd.remat.tensors import recomputable_of
from optlab.autograd.tape import saved_tensors
from optlab.autograd.tape.nodes import Leaf
from optlab.autograd.tensor.tensor import Tensor
from optlab.optimizer.rule.hyperparameters import by_names
from optlab.optimizer.wrappers.state import Memory
from optlab.optimizer.wrappers.wrapper import AfterStep, Wrapper
from optlab.plan.progress import Progress


class RecomputeOptimizer(Wrapper):
    """Recompute parts of the network in the backward pass, in place of saving their results.

    A checkpoint closes a segment: the values that operations saved since the checkpoints before it
    are dropped, and the backward pass runs these operations again when it reaches the segment.
    The numbers are those of the inner optimizer to the bit. The part after the last checkpoint is
    saved as usual.

    Layers as checkpoints close their segment in every forward pass, which then needs less memory,
    too. Tensors close it when they are set, between the two passes and anew in every step, so only
    the backward pass needs less.

    Parameters
    ----------
    optimizer : Optimizer
        The inner optimizer. A template makes this a template, too.

    Raises
    ------
    TypeError
        If `optimizer` is none.

    Notes
    -----
    While a `RecomputeOptimizer` exists, all operations of the program are recorded so that they can
    run again, which costs some microseconds each. Results computed before the first one was made
    cannot be dropped: such Tensors as checkpoints warn.

    Operations run again, layers do not: batch normalisation counts a batch once, dropout drops the
    same elements.

    Source: Chen, Xu, Zhang and Guestrin 2016, arXiv 1604.06174; the interface is that of
    ``paddle.fluid.optimizer.RecomputeOptimizer``.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.seed(0)
    >>> blocks = [ol.nn.Sequential(ol.nn.Linear(8, 8), ol.nn.Tanh()) for _ in range(6)]
    >>> model = ol.nn.Sequential(*blocks)
    >>> adam = ol.optimizer.Adam(0.01, parameters=model.parameters())
    >>> optimizer = ol.optimizer.RecomputeOptimizer(adam)
    >>> optimizer.set_checkpoints([blocks[1], blocks[3]])
    >>> loss = (model(ol.ones([4, 8])) ** 2).mean()
    >>> _ = optimizer.minimize(loss)
    """

    #: A captured function that uses it runs eagerly (see `optlab.capture`).
    recomputes = True

    @by_names
    def __init__(self, optimizer: Any, name: str | None = None) -> None:
        super().__init__(optimizer, name)
        self._forget()

    @property
    def own_settings(self) -> dict[str, Any]:
        """What was set of the wrapper itself."""
        return {}

    def set_checkpoints(self, checkpoints: Any) -> None:
        """Set the ends of the segments.

        Parameters
        ----------
        checkpoints : list of Layer and Tensor
            They replace those set before. An empty list ends recomputation.

        Raises
        ------
        TypeError
            If one is neither; nothing has changed then.

        Warns
        -----
        UserWarning
            If nothing can be dropped before a Tensor: it was computed before this optimizer was
            made, inside `optlab.recompute`, or its backward pass is done.
        """
        refuse_layer_class(checkpoints, "set_checkpoints")
        single = isinstance(checkpoints, (str, Tensor)) or is_layer(checkpoints)
        if single or not hasattr(checkpoints, "__iter__"):
            raise TypeError(
                "checkpoints is a list of Layers or Tensors: set_checkpoints([block1, block2]); "
                f"got {type(checkpoints).__name__}."
            )
        checkpoints = list(checkpoints)
        for one in checkpoints:
            refuse_layer_class(one, "set_checkpoints")
            if not isinstance(one, Tensor) and not is_layer(one):
                what = repr(one) if isinstance(one, str) else f"one of type {type(one).__name__}"
                raise TypeError(
                    "a checkpoint is a Layer or a Tensor (the output of a part of the network); "
                    f"got {what}."
                )
        marks = _marks[self]
        marks.given = True
        marks.remove_hooks()
        tensors = [one for one in checkpoints if isinstance(one, Tensor)]
        marks.layers = [one for one in checkpoints if not isinstance(one, Tensor)]
        marks.hooks = [layer.register_forward_post_hook(marks.close) for layer in marks.layers]
        marks.closed = bool(tensors) or not marks.layers
        marks.by_tensors = bool(tensors)
        unknown = [t for t in tensors if not isinstance(t.node, (Leaf, type(None)))]
        unknown = [t for t in unknown if recomputable_of(t.node)[0] is None]
        if unknown:
            shapes = ", ".join(str(t.shape) for t in unknown)
            warnings.warn(
                f"nothing can be dropped before the checkpoints of shape {shapes}: they were "
                "computed before RecomputeOptimizer was made (or backward has been there). Make "
                "the optimizer before forward, or give Layers as checkpoints.",
                stacklevel=2,
            )
        segments.close((t.node, t.data) for t in tensors)

    _set_checkpoints = set_checkpoints

    @property
    def checkpoints(self) -> list[Any]:
        """The Layers that close segments."""
        return list(_marks[self].layers)

    def state_dict(self) -> dict[str, Any]:
        """Return the state of the inner optimizer.

        So training can continue with or without recomputation from the state of either.
        """
        return self.inner_optimizer.state_dict()

    def checked_state(self, state_dict: Mapping[str, Any]) -> Callable[[], None]:
        """Check a state of the inner optimizer, and return a function that writes it."""
        return self.inner_optimizer.checked_state(state_dict)

    def load(self, state_dict: Any) -> None:
        """Load a state of `state_dict`, as `set_state_dict` does."""
        self.set_state_dict(state_dict)

    def _functional_start(self, leaves: Any, values: list[Any], named: Any) -> dict[str, Any]:
        return self.inner_optimizer._functional_start(leaves, values, named)

    def _functional_take(
        self, leaves: Any, values: list[Any], gradients: list[Any], state: Any, named: Any
    ) -> tuple[list[Any], dict[str, Any], list[bool]]:
        return self.inner_optimizer._functional_take(leaves, values, gradients, state, named)

    # What a wrapper defines ---------------------------------------------------------------------

    def _forget(self) -> None:
        _marks[self] = marks = _Checkpoints()
        weakref.finalize(self, marks.end)

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._forget()

    def __deepcopy__(self, memo: dict[int, Any]) -> RecomputeOptimizer:
        import copy

        twin: RecomputeOptimizer = object.__new__(type(self))
        memo[id(self)] = twin
        twin.__setstate__(copy.deepcopy(vars(self), memo))
        return twin

    def _after(self, updated: list[bool], progress: Progress) -> None:
        marks = _marks[self]
        if not marks.given and not marks.warned:
            marks.warned = True
            warnings.warn(
                "nothing was dropped in this step: no checkpoints were set. Call "
                "set_checkpoints([block1, block2]) with Layers before forward.",
                stacklevel=5,
            )
        if not marks.closed and not marks.warned:
            marks.warned = True
            warnings.warn(
                "nothing was dropped in this step: none of the checkpoint Layers ran in forward. "
                "Give Layers of the network that is trained."
                if marks.layers
                else "nothing was dropped in this step: Tensors are checkpoints of one step alone. "
                "Call set_checkpoints with those of each step, or give Layers.",
                stacklevel=5,
            )
        marks.closed = not (marks.layers or marks.by_tensors)

    def _add_to_row(self, row: Any, acted: Any) -> Any:
        return row

    def _memories(self) -> list[Memory]:
        return [{} for _ in self.places]

    def _set_memories(self, memories: list[Memory]) -> None:
        """Do nothing: there is no state."""

    def _captured(self, own: Mapping[str, Any]) -> None:
        """Return None: the numbers are those of the inner optimizer."""

    def member_memory(self, start: Any) -> Memory:
        """Return the memory of members that start at these points: none."""
        return {}

    def member_after(self, memory: Memory, p: Any) -> tuple[Any, Memory]:
        """Return the weights after a step of the inner optimizer has moved them to `p`."""
        return p, memory

    def over_rows(self, start: Any) -> AfterStep:
        """Return a function that changes nothing."""
        return lambda fast: (fast, {}, {})


class _Checkpoints:
    """The checkpoints of one optimizer; while it exists, operations are recorded to run again."""

    def __init__(self) -> None:
        self.layers: list[Any] = []
        self.hooks: list[Any] = []
        #: Whether a segment was closed since the last step, and whether Tensors closed one before.
        self.closed, self.by_tensors, self.warned = True, False, False
        #: Whether checkpoints, or an empty list, were set.
        self.given = False
        self.leave: Callable[[], None] = saved_tensors.ambient(segments)

    def close(self, layer: Any, inputs: Any, output: Any) -> None:
        """Close the segment that ends with the output of a layer."""
        self.closed = True
        segments.close((t.node, t.data) for t in tensors_in(output))

    def remove_hooks(self) -> None:
        for hook in self.hooks:
            hook.remove()
        self.hooks = []

    def end(self) -> None:
        self.remove_hooks()
        self.leave()


_marks: weakref.WeakKeyDictionary[RecomputeOptimizer, _Checkpoints] = weakref.WeakKeyDictionary()
