"""recompute: run a function again in backward, in place of keeping what it computed.

Backward of a function needs what its operations saved, and all of that waits from forward to
backward. `recompute` keeps the arguments alone, forgets the rest, and calls the function a second
time when backward comes to it (Chen et al. 2016). That costs one more forward of the function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from optlab.autograd import saving, several, trees, writes
from optlab.autograd.backpropagation import gradients_of_ends
from optlab.autograd.layer_classes import refuse_layer_class
from optlab.autograd.mode import recording
from optlab.autograd.operation import Operation, Recipe
from optlab.autograd.promises import DeferSaved, Replay
from optlab.autograd.second_runs import CompareReplay, DropSaved, ReplayedCall
from optlab.autograd.tape import Node
from optlab.autograd.tensor import Tensor
from optlab.backend import events


def recompute(
    function: Callable[..., Any],
    *args: Any,
    preserve_rng_state: bool = True,
    use_reentrant: bool = True,
    **kwargs: Any,
) -> Any:
    """Call a function, keep nothing of what it computes, and call it again in backward.

    Values, gradients and parameters are those of ``function(*args, **kwargs)`` to the bit. So are
    second derivatives, but for the order in which gradients of what several calls share are added
    up where ``use_reentrant=True``: their last bits may differ.

    Parameters
    ----------
    function : callable
        A Layer, a function, a bound method. Parameters and Tensors that it reaches by itself get
        their gradients, also where no argument needs one.
    *args, **kwargs
        What it is called with, both times.
    preserve_rng_state : bool
        Draw the same random numbers the second time (dropout drops the same elements), and leave
        the stream outside where it was. If False the second run draws anew, from where the stream
        is then: under dropout the gradients are not those of the value.
    use_reentrant : bool
        How the function stands on the tape; the numbers are the same. True: as one operation, whose
        derivative is another walk back, through the second run. False: its operations stand there
        themselves, and the first of which backward asks something has the function run again for
        all of them.

    Returns
    -------
    What the function returns.

    Raises
    ------
    TypeError
        If `function` cannot be called, or not with these arguments.
    RecomputationError
        In backward, if the second run is not like the first. The first operation that differs is
        named: its shape, dtype or numbers (of large arrays some thousand elements are compared),
        or who has written to a Tensor without gradient that it reads.
    RuntimeError
        In backward, if a parameter or an argument was written to in between.

    Notes
    -----
    The function runs forward twice. A function inside another, both recomputed, runs three times,
    one at depth d runs d + 2 times (the outermost is at depth 0). A second walk through a retained
    graph runs it once more. Inside one with ``use_reentrant=False``, what a chain stores stays from
    forward on; everything else that is recomputed inside goes with the rest.

    Random numbers that do not come from optlab (``np.random``, ``random``) are not drawn again: the
    numbers differ, and that is an error. A transform inside the function, such as `ol.grad`, keeps
    what it records as always.

    What `function` writes to in place, it writes once: the second run begins from what the first
    began from, and afterwards all is what it was before. That goes for Tensors without a gradient
    (running statistics, counters) and for buffers that a Layer is given anew; Tensors of more than
    1 MiB begin as they are then. What it counts otherwise (``self.calls += 1``) it counts twice,
    unless it asks `optlab.autograd.is_recomputing`.

    Source: Chen, Xu, Zhang and Guestrin 2016, arXiv 1604.06174; the interface is that of
    ``paddle.distributed.fleet.utils.recompute``.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.seed(0)
    >>> block = ol.nn.Sequential(ol.nn.Linear(4, 8), ol.nn.Dropout(0.5), ol.nn.Linear(8, 4))
    >>> x = ol.ones([2, 4])
    >>> loss = ol.recompute(block, x).sum()  # keeps x alone
    >>> loss.backward()                      # runs block again
    >>> block[0].weight.grad.shape
    (4, 8)
    """
    refuse_layer_class(function, "recompute")
    if not callable(function):
        several_layers = isinstance(function, (list, tuple))
        raise TypeError(
            f"recompute takes a function and its arguments, recompute(f, x); got a "
            f"{type(function).__name__} as the function. "
            + (
                "(Several layers, one after the other: ol.recompute_sequential(layers, x).)"
                if several_layers
                else "(Write f, not f(x).)"
            )
        )
    for name, value in {
        "preserve_rng_state": preserve_rng_state, "use_reentrant": use_reentrant,
    }.items():  # fmt: skip
        if value is not True and value is not False:
            raise TypeError(f"{name} is True or False; got {value!r}.")
    if not recording.on:
        return function(*args, **kwargs)
    call = ReplayedCall(function, args, kwargs, preserve_rng_state)
    if not use_reentrant:
        around = saving.innermost()
        if isinstance(around, (DeferSaved, Replay)):
            call.arrays = around.hold_arguments(call)
        with call.first_run(DeferSaved(call)):
            return function(*args, **kwargs)
    since = next(writes.clock)
    with call.first_run(DropSaved(call)):
        returned = function(*args, **kwargs)
    parts, _ = trees.flatten(returned)
    made = made_since(parts, since)
    if not made:
        return returned
    edges = ends_behind({parts[i].node for i in made}, since)
    arrays, call.arrays = call.arrays, ()  # the node has them

    def gradients(g: Any, saved: Any, static: Any, arriving: dict[Any, Any]) -> list[Any]:
        return _gradients(saved[0], saved[1:], g, edges, arriving)

    return as_one_operation("recompute", call, arrays, returned, since, gradients)


GradientRule = Callable[[Any, Any, Any, dict[Any, Any]], Any]


# One operation whose derivative is another walk back.


def as_one_operation(
    name: str,
    keeps: Any,
    arrays: tuple[Any, ...],
    returned: Any,
    since: int,
    gradients: GradientRule,
) -> Any:
    """Give what a first run returned, as the outputs of one node.

    Parameters
    ----------
    name : str
        What the operation is called.
    keeps, arrays
        What the node keeps: anything, and arrays.
    returned
        What the run returned; its Tensors that were made `since` a time become outputs.
    since : int
        A number on the clock that also numbers nodes.
    gradients : callable
        Takes the gradient of the outputs, what the node has kept, its static arguments, and the
        gradients on their way in the walk around; gives the gradient of each of its edges, which
        are `ends_behind` the outputs (None where it was added to one on its way).
    """
    parts, build = trees.flatten(returned)
    made = made_since(parts, since)
    outputs = [parts[i] for i in made]
    edges = ends_behind({t.node for t in outputs}, since)
    values = tuple(t.data for t in outputs)
    many = len(outputs) > 1
    operation = Operation(
        name,
        _not_run,
        (),
        [f"input {i}" for i in range(len(edges))],
        several=many,
        joint=lambda g: None,
    )
    recipe = Recipe(operation, (1 << len(edges)) - 1)
    recipe.saved_inputs = tuple(range(len(edges)))  # all are read again
    # What is saved is neither an input of the node nor its output.
    recipe.sources = (len(edges) + 1,) * (1 + len(arrays))
    recipe.joint, recipe.walks = gradients, True
    shape, source = ((), None) if many else (values[0].shape, outputs[0].node.source)
    saved = (keeps, *arrays)
    node = Node(operation, edges, saved, recipe, {}, shape, values[0].dtype, source)
    y = values if many else values[0]
    node.saved = saving.kept(node, node.saved, None, (*edges, y))
    if events.operation_recorded.listeners:
        events.operation_recorded.publish(node)
    tensors = several.outputs_of(node, values) if many else [Tensor(values[0], node)]
    for i, t in zip(made, tensors, strict=True):
        parts[i] = t
    return build(parts)


def _not_run(*values: Any) -> Any:
    """Stand in for the forward of an operation that is made of others."""
    raise NotImplementedError


def made_since(parts: list[Any], since: int) -> list[int]:
    """Find the Tensors that were computed since a time, and need a gradient."""
    return [
        i
        for i, part in enumerate(parts)
        if isinstance(part, Tensor) and part.node is not None and part.node.order > since
    ]


def ends_behind(nodes: set[Any], since: int) -> tuple[Any, ...]:
    """Find where the graph behind nodes goes on beyond what was recorded since a time."""
    seen, stack, ends = set(nodes), list(nodes), {}
    while stack:
        for edge in stack.pop().edges:
            if edge is None or edge in seen:
                continue
            seen.add(edge)
            if edge.order > since:
                stack.append(edge)
            elif edge.order or edge.made_at < since:  # a leaf made inside is nobody's
                ends[edge] = edge.order or edge.made_at
    return tuple(sorted(ends, key=ends.__getitem__))


def _gradients(
    call: ReplayedCall, arrays: Any, g: Any, edges: tuple[Any, ...], arriving: dict[Any, Any]
) -> list[Any]:
    """Run the function again, and walk back through that run."""
    arrived = dict(enumerate([g])) if not isinstance(g, several.Parts) else g.arrived
    create_graph = any(isinstance(one, Tensor) for one in arrived.values())
    since = next(writes.clock)
    parts, _ = trees.flatten(call.replay(arrays, CompareReplay(call)))
    made = made_since(parts, since)
    starts: dict[Any, Any] = {}
    for i, one in arrived.items():
        if i >= len(made):
            raise call.mismatch("it returned fewer Tensors that need a gradient")
        node = parts[made[i]].node
        starts[node] = starts[node] + one if node in starts else one
    del parts, arrived, g
    ends = gradients_of_ends(starts, since, create_graph, edges, arriving)
    known = set(edges)
    others = [end for end in ends if end not in known and (end.order or end.made_at < since)]
    if others:
        raise call.mismatch(f"it read {others[0]!r}, which the first run did not")
    return [ends.pop(edge, None) for edge in edges]
