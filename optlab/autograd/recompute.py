"""recompute: run a function again in backward, in place of keeping what it computed.

Backward of a function needs what its operations saved, and all of that waits from forward to
backward. `recompute` keeps the arguments alone, forgets the rest, and calls the function a second
time when backward comes to it (Chen et al. 2016). That costs one more forward of the function.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from optlab.autograd import saving, several, trees, writes
from optlab.autograd.backpropagation import gradients_of_ends
from optlab.autograd.fingerprints import Fingerprint
from optlab.autograd.mode import recording
from optlab.autograd.operation import Operation, Recipe
from optlab.autograd.second_runs import INSIDE, Comparing, Forgetting, Twice
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
        named: its shape, dtype or numbers. (Of large arrays some thousand elements are compared.)
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
    what it records as always. What a layer counts in forward it counts once if it asks
    `optlab.autograd.is_recomputing`, as batch normalisation does.

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
    if not callable(function):
        raise TypeError(
            f"recompute takes a function and its arguments, recompute(f, x); got a "
            f"{type(function).__name__} as the function. (Write f, not f(x).)"
        )
    for name, value in {
        "preserve_rng_state": preserve_rng_state, "use_reentrant": use_reentrant,
    }.items():  # fmt: skip
        if value is not True and value is not False:
            raise TypeError(f"{name} is True or False; got {value!r}.")
    if not recording.on:
        return function(*args, **kwargs)
    twice = Twice(function, args, kwargs, preserve_rng_state)
    if not use_reentrant:
        around = saving.innermost()
        if isinstance(around, (_Promising, _Second)):
            twice.arrays = around.hold(twice)
        with saving.Keeping(_Promising(twice)):
            returned = function(*args, **kwargs)
        twice.ended = True
        return returned
    since = next(writes.clock)
    with saving.Keeping(Forgetting(twice)):
        returned = function(*args, **kwargs)
    parts, _ = trees.flatten(returned)
    made = made_since(parts, since)
    if not made:
        return returned
    edges = ends_behind({parts[i].node for i in made}, since)
    arrays, twice.arrays = twice.arrays, ()  # the node has them

    def gradients(g: Any, saved: Any, static: Any, arriving: dict[Any, Any]) -> list[Any]:
        return _gradients(saved[0], saved[1:], g, edges, arriving)

    return as_one_operation("recompute", twice, arrays, returned, since, gradients)


Walk = Callable[[Any, Any, Any, dict[Any, Any]], Any]


# One operation whose derivative is another walk back.


def as_one_operation(
    name: str, keeps: Any, arrays: tuple[Any, ...], returned: Any, since: int, gradients: Walk
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
    twice: Twice, arrays: Any, g: Any, edges: tuple[Any, ...], arriving: dict[Any, Any]
) -> list[Any]:
    """Run the function again, and walk back through that run."""
    arrived = dict(enumerate([g])) if not isinstance(g, several.Parts) else g.arrived
    create_graph = any(isinstance(one, Tensor) for one in arrived.values())
    since = next(writes.clock)
    parts, _ = trees.flatten(twice.again(arrays, Comparing(twice)))
    made = made_since(parts, since)
    starts: dict[Any, Any] = {}
    for i, one in arrived.items():
        if i >= len(made):
            raise twice.differs("it returned fewer Tensors that need a gradient")
        node = parts[made[i]].node
        starts[node] = starts[node] + one if node in starts else one
    del parts, arrived, g
    ends = gradients_of_ends(starts, since, create_graph, edges, arriving)
    known = set(edges)
    others = [end for end in ends if end not in known and (end.order or end.made_at < since)]
    if others:
        raise twice.differs(f"it read {others[0]!r}, which the first run did not")
    return [ends.pop(edge, None) for edge in edges]


# The operations themselves on the tape, with promises in place of what they save.


class Promise:
    """What an operation saved, once its function has run again."""

    __slots__ = ("node", "number", "places", "second")

    def __init__(self, second: _Second, number: int, node: Node, places: Any) -> None:
        self.second = second
        self.number = number
        self.node = weakref.ref(node)
        self.places = places

    @property
    def twice(self) -> Twice:
        """The call that will bring it back."""
        return self.second.twice

    @property
    def values(self) -> tuple[Any, ...]:
        """The arguments of the call, which all its operations keep for it."""
        arrays = self.twice.arrays
        return () if isinstance(arrays, _Held) else arrays

    def restored(self) -> Any:
        """Give what the operation saves in the second run."""
        node = self.node()
        assert node is not None  # it is the one that asks
        saved, node.static = self.second.given(self.number)
        if self.places is not None:
            saved[0].places = self.places
            return saved
        # Of leaves the memory is not of the second run.
        orders = [0 if edge is None else edge.order for edge in (*node.edges, node)]
        for source, value in zip(node.recipe.sources, saved, strict=False):
            if source < len(orders) and orders[source] and hasattr(value, "dtype"):
                writes.stands_at(value, orders[source])
        return saved


class _Held:
    """The arguments of a call inside another one: forgotten, until that one has run again."""

    def __init__(self, second: _Second, number: int) -> None:
        self.second = second
        self.number = number

    def restored(self) -> tuple[Any, int]:
        """Give the arrays of the second run, and when the call was made in it."""
        _, (arrays, made_at) = self.second.found(self.number)
        return arrays, made_at


#: What stands for the arguments of a call inside, where operations are counted and compared.
_ARGUMENTS = Fingerprint("a call of recompute", (), "", 0)


class _Promising(Forgetting):
    """The keeper of a first run whose operations stay on the tape: they get promises."""

    def __init__(self, twice: Twice) -> None:
        super().__init__(twice)
        self.second = _Second(twice)

    def level(self, opened: int) -> int:
        """Remember the level of a `vmap`."""
        self.second.levels.append(opened)
        return opened

    def hold(self, twice: Twice) -> _Held:
        """Forget the arguments of a call inside, too."""
        self.twice.log.append(_ARGUMENTS)
        return _Held(self.second, len(self.twice.log) - 1)

    def keep(self, node: Node, saved: Any, forward: Any, values: Any) -> Any:
        """Keep nothing but the promise, and a chain: its nodes know it, and do not let it go."""
        self.twice.note(node, values)
        places = None
        if node.recipe.walks:
            if not isinstance(saved[0], Twice):
                return saved
            # The call inside is made from where it stands now, not from the second run around it.
            places = saved[0].places
        return Promise(self.second, len(self.twice.log) - 1, node, places)


class _Second(Comparing):
    """The second run: made for the first operation that asks, it serves all the others."""

    def __init__(self, twice: Twice) -> None:
        super().__init__(twice)
        self.nodes: dict[int, tuple[Any, Any]] = {}
        #: The levels of each `vmap` of the first run, and how many of them opened again.
        self.levels: list[int] = []
        self.opened = 0

    def level(self, opened: int) -> int:
        """Give the level that a `vmap` had in the first run."""
        self.opened += 1
        return self.levels[self.opened - 1] if self.opened <= len(self.levels) else opened

    def hold(self, twice: Twice) -> tuple[Any, ...]:
        """Hold the arguments of a call inside for that of the first run."""
        self.twice.compare(self.count, _ARGUMENTS)
        self.nodes[self.count] = None, (twice.arrays, twice.made_at)
        self.count += 1
        return twice.arrays  # type: ignore[no-any-return]

    def keep(self, node: Node, saved: Any, forward: Any, values: Any) -> Any:
        kept = super().keep(node, saved, forward, values)
        if not node.recipe.walks or isinstance(saved[0], Twice):
            self.nodes[self.count - 1] = node, kept
        return kept

    def given(self, number: int) -> tuple[Any, dict[str, Any]]:
        """Give what an operation saved, and its static arguments (a random key may be another)."""
        node, kept = self.found(number)
        node.check_unchanged()
        node.saved = None  # the walk frees what it is done with
        return kept if kept.__class__ is tuple else kept.restored(), node.static

    def found(self, number: int) -> tuple[Any, Any]:
        """Find what was noted as a number in the second run; once, and then it is made again."""
        if not self.twice.ended:
            raise RuntimeError(INSIDE)
        if number not in self.nodes:
            arrays, made_at = self.twice.arrays, None
            if isinstance(arrays, _Held):
                arrays, made_at = arrays.restored()
            self.count, self.opened, self.outer = 0, 0, saving.innermost()
            self.nodes.clear()
            try:
                self.twice.again(arrays, self, made_at)
            except BaseException:
                self.nodes.clear()  # nobody is to go on with half a run
                raise
        return self.nodes.pop(number)
