"""`recompute`: activation checkpointing of one function (Chen et al. 2016).

The backward pass needs what the operations of forward saved. `recompute` keeps only the arguments
of the function and calls it a second time in backward, at the cost of one more forward.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from optlab.autograd import pytrees
from optlab.autograd.checkpoint.layer_checks import refuse_layer_class
from optlab.autograd.checkpoint.non_reentrant import DeferSaved, Replay
from optlab.autograd.checkpoint.replay import CompareReplay, DropSaved, ReplayedCall
from optlab.autograd.operation import Operation, Recipe
from optlab.autograd.tape import multi_output, saved_tensors, versions
from optlab.autograd.tape.backward import gradients_of_ends
from optlab.autograd.tape.grad_mode import recording
from optlab.autograd.tape.nodes import Node
from optlab.autograd.tensor.tensor import Tensor
from optlab.backend import events


def recompute(
    function: Callable[..., Any],
    *args: Any,
    preserve_rng_state: bool = True,
    use_reentrant: bool = True,
    **kwargs: Any,
) -> Any:
    """Call a function without saving its intermediate results, and call it again in backward.

    Values, gradients and parameters are those of ``function(*args, **kwargs)`` to the bit. So are
    second derivatives, except that with ``use_reentrant=True`` gradients of values that several
    calls share are summed in another order: their last bits may differ.

    Parameters
    ----------
    function : callable
        A Layer, a function, a bound method. Parameters and Tensors that it reads from outside get
        their gradients, also if no argument needs one.
    *args, **kwargs
        Arguments of both calls.
    preserve_rng_state : bool
        Draw the same random numbers in the replay (dropout drops the same elements), and leave the
        random stream outside unchanged. If False the replay draws new numbers: under dropout the
        gradients are not those of the value.
    use_reentrant : bool
        How the function is recorded; the numbers are the same. True: as one operation, whose
        derivative is a nested backward pass through the replay. False: as its own operations; the
        first one that backward reaches triggers one replay for all of them.

    Returns
    -------
    The value of the function.

    Raises
    ------
    TypeError
        If `function` cannot be called, or not with these arguments.
    RecomputationError
        In backward, if the replay differs from the first run. The message names the first operation
        that differs: its shape, dtype or numbers (of large arrays some thousand elements are
        compared), or the write to a Tensor without gradient that it reads.
    RuntimeError
        In backward, if a parameter or an argument was written to in between.

    Notes
    -----
    The function runs forward twice. If recomputed functions are nested, one at depth d runs d + 2
    times (the outermost is at depth 0). A second backward pass through a retained graph runs it
    once more. Inside one with ``use_reentrant=False``, inputs that a chain stores are kept from
    forward on; everything else that is recomputed inside is dropped with the rest.

    Random numbers from other sources (``np.random``, ``random``) are not replayed: the numbers
    differ, and that is an error. A transform inside the function, such as `ol.grad`, saves its own
    values as usual.

    In-place writes of `function` take effect once: the replay starts from the values that the first
    run started from, and restores the current ones at its end. That holds for Tensors without a
    gradient (running statistics, counters) and for buffers that a Layer replaces; Tensors of more
    than 1 MiB start from their current values. Other side effects (``self.calls += 1``) happen
    twice, unless the function checks `optlab.autograd.is_recomputing`.

    Source: Chen, Xu, Zhang and Guestrin 2016, arXiv 1604.06174; the interface is that of
    ``paddle.distributed.fleet.utils.recompute``.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.seed(0)
    >>> block = ol.nn.Sequential(ol.nn.Linear(4, 8), ol.nn.Dropout(0.5), ol.nn.Linear(8, 4))
    >>> x = ol.ones([2, 4])
    >>> loss = ol.recompute(block, x).sum()  # keeps only x
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
        around = saved_tensors.innermost()
        if isinstance(around, (DeferSaved, Replay)):
            call.arrays = around.hold_arguments(call)
        with call.first_run(DeferSaved(call)):
            return function(*args, **kwargs)
    since = next(versions.clock)
    with call.first_run(DropSaved(call)):
        returned = function(*args, **kwargs)
    parts, _ = pytrees.flatten(returned)
    made = made_since(parts, since)
    if not made:
        return returned
    edges = ends_behind({parts[i].node for i in made}, since)
    arrays, call.arrays = call.arrays, ()  # the node has them

    def gradients(g: Any, saved: Any, static: Any, arriving: dict[Any, Any]) -> list[Any]:
        return _gradients(saved[0], saved[1:], g, edges, arriving)

    return as_one_operation("recompute", call, arrays, returned, since, gradients)


GradientRule = Callable[[Any, Any, Any, dict[Any, Any]], Any]


# One operation whose derivative is a nested backward pass.


def as_one_operation(
    name: str,
    keeps: Any,
    arrays: tuple[Any, ...],
    returned: Any,
    since: int,
    gradients: GradientRule,
) -> Any:
    """Return the results of a first run as the outputs of one node.

    Parameters
    ----------
    name : str
        Name of the operation.
    keeps, arrays
        Saved values of the node: an object, and arrays.
    returned
        Results of the run; Tensors that were recorded after `since` become outputs.
    since : int
        A time of the clock that also numbers nodes.
    gradients : callable
        Takes the gradient of the outputs, the saved values of the node, its static arguments, and
        the pending gradients of the enclosing backward pass; returns the gradient of each edge, the
        `ends_behind` the outputs (None if it was added to a pending one).
    """
    parts, build = pytrees.flatten(returned)
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
    recipe.saved_inputs = tuple(range(len(edges)))  # the replay reads all of them
    # The saved values are neither inputs of the node nor its output.
    recipe.sources = (len(edges) + 1,) * (1 + len(arrays))
    recipe.joint, recipe.runs_backward = gradients, True
    shape, source = ((), None) if many else (values[0].shape, outputs[0].node.source)
    saved = (keeps, *arrays)
    node = Node(operation, edges, saved, recipe, {}, shape, values[0].dtype, source)
    y = values if many else values[0]
    node.saved = saved_tensors.apply_policy(node, node.saved, None, (*edges, y))
    if events.operation_recorded.listeners:
        events.operation_recorded.publish(node)
    tensors = multi_output.outputs_of(node, values) if many else [Tensor(values[0], node)]
    for i, t in zip(made, tensors, strict=True):
        parts[i] = t
    return build(parts)


def _not_run(*values: Any) -> Any:
    """Stand in for the forward of an operation that is composed of others."""
    raise NotImplementedError


def made_since(parts: list[Any], since: int) -> list[int]:
    """Return the positions of Tensors that were recorded after a time."""
    return [
        i
        for i, part in enumerate(parts)
        if isinstance(part, Tensor) and part.node is not None and part.node.order > since
    ]


def ends_behind(nodes: set[Any], since: int) -> tuple[Any, ...]:
    """Return the nodes recorded before a time that the later graph behind `nodes` reads."""
    seen, stack, ends = set(nodes), list(nodes), {}
    while stack:
        for edge in stack.pop().edges:
            if edge is None or edge in seen:
                continue
            seen.add(edge)
            if edge.order > since:
                stack.append(edge)
            elif edge.order or edge.made_at < since:  # gradients of leaves made inside are unused
                ends[edge] = edge.order or edge.made_at
    return tuple(sorted(ends, key=ends.__getitem__))


def _gradients(
    call: ReplayedCall, arrays: Any, g: Any, edges: tuple[Any, ...], arriving: dict[Any, Any]
) -> list[Any]:
    """Replay the function, and run the backward pass of the replay."""
    arrived = dict(enumerate([g])) if not isinstance(g, multi_output.OutputGradients) else g.arrived
    create_graph = any(isinstance(one, Tensor) for one in arrived.values())
    since = next(versions.clock)
    parts, _ = pytrees.flatten(call.replay(arrays, CompareReplay(call)))
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
