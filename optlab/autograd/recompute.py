"""recompute: run a function again in backward, in place of keeping what it computed.

Backward of a function needs what its operations saved, and all of that waits from forward to
backward. `recompute` keeps the arguments alone, forgets the rest, and calls the function a second
time when backward comes to it (Chen et al. 2016). That costs one more forward of the function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from optlab.autograd import saving, several, trees, writes
from optlab.autograd.backpropagation import gradients_of_ends
from optlab.autograd.fingerprints import Fingerprint, fingerprint
from optlab.autograd.halves import halves
from optlab.autograd.mode import RecomputationError, grad_mode, recomputing, recording
from optlab.autograd.operation import Operation, Recipe
from optlab.autograd.tape import Leaf, Node
from optlab.autograd.tensor import Tensor
from optlab.backend import events, random


def recompute(
    function: Callable[..., Any],
    *args: Any,
    preserve_rng_state: bool = True,
    use_reentrant: bool = True,
    **kwargs: Any,
) -> Any:
    """Call a function, keep nothing of what it computes, and call it again in backward.

    Values, gradients and parameters are those of ``function(*args, **kwargs)`` to the bit.

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
    graph runs it once more.

    Random numbers that do not come from optlab (``np.random``, ``random``) are not drawn again: the
    numbers differ, and that is an error. What a layer counts in forward it counts once if it asks
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
        with saving.Keeping(_Promising(twice)):
            return function(*args, **kwargs)
    since = next(writes.clock)
    with saving.Keeping(Forgetting(twice)):
        returned = function(*args, **kwargs)
    parts, _ = trees.flatten(returned)
    made = made_since(parts, since)
    if not made:
        return returned
    edges = ends_behind({parts[i].node for i in made}, since)
    arrays, twice.arrays = twice.arrays, ()  # the node has them

    def gradients(g: Any, saved: Any, static: Any) -> list[Any]:
        return _gradients(saved[0], saved[1:], g, edges)

    return as_one_operation("recompute", twice, arrays, returned, since, gradients)


Run = Callable[[Any, Any, Any], Any]


class Twice:
    """A call that will be made a second time, and what is remembered of the first.

    Attributes
    ----------
    arrays : tuple
        The arrays among the arguments, which the call needs again.
    log : list of Fingerprint
        One for each operation of the first run.
    """

    def __init__(
        self, function: Callable[..., Any], args: Any, kwargs: Any, preserve_rng_state: bool
    ) -> None:
        self.function = function
        self.parts, self.build = trees.flatten((list(args), kwargs))
        self.places: dict[int, Any] = {}  # of arrays among the parts, with their nodes
        arrays = []
        for i, part in enumerate(self.parts):
            is_tensor = isinstance(part, Tensor)
            if is_tensor and not isinstance(part.node, Leaf):
                self.places[i] = part.node
                arrays.append(part.data)
                self.parts[i] = None
        self.arrays: Any = tuple(arrays)
        self.bookmark = random.bookmark() if preserve_rng_state else None
        self.policy = halves.policy
        self.log: list[Fingerprint] = []

    @property
    def name(self) -> str:
        """What the function is called."""
        return getattr(self.function, "__name__", type(self.function).__name__)

    def note(self, node: Node, values: Any) -> None:
        """Remember an operation of the first run."""
        self.log.append(self._fingerprint(node, values))

    def _fingerprint(self, node: Node, values: Any) -> Fingerprint:
        name = node.operation.name
        if self.bookmark is None or not len(values):  # its numbers are free to differ
            return Fingerprint(name, node.shape, str(node.dtype), 0)
        return fingerprint(name, values[len(node.edges)])

    def check(self, number: int, node: Node, values: Any) -> None:
        """Compare an operation of the second run with that of the first."""
        if number >= len(self.log):
            raise self.differs(
                f"the first run ended after {len(self.log)} operations, the second went on with "
                f"{node.operation.name!r}"
            )
        again = self._fingerprint(node, values)
        if again != self.log[number]:
            raise self.differs(
                f"operation {number + 1} of {len(self.log)}: {self.log[number].difference(again)}"
            )

    def differs(self, how: str) -> RecomputationError:
        """Give the error for a second run that is not like the first."""
        return RecomputationError(
            f"recompute ran {self.name} again for backward, and it was not the same: {how}. The "
            "second run has to be like the first: let it read nothing that changes in between "
            "(buffers, counters, switches such as training), and draw random numbers from "
            "optlab, with preserve_rng_state=True."
        )

    def again(self, arrays: Any, keeper: Comparing) -> Any:
        """Make the call a second time."""
        parts = list(self.parts)
        for (i, node), array in zip(self.places.items(), arrays, strict=True):
            parts[i] = Tensor(array, node)
        args, kwargs = self.build(parts)
        with saving.Keeping(keeper), grad_mode(True), self.as_before():
            returned = self.function(*args, **kwargs)
        keeper.check_complete()
        return returned

    @contextmanager
    def as_before(self) -> Iterator[None]:
        """Put back what the first run met: the random stream, and what casts."""
        policy, halves.policy = halves.policy, self.policy
        recomputing.depth += 1
        try:
            if self.bookmark is None:
                yield
            else:
                with random.replayed(self.bookmark):
                    yield
        finally:
            halves.policy = policy
            recomputing.depth -= 1


# One operation whose derivative is another walk back.


class _Forgotten:
    """What an operation inside a recomputed function keeps: nothing."""

    values = ()

    def restored(self) -> tuple[Any, ...]:
        raise RuntimeError(
            "this Tensor was computed inside a function that recompute called, which kept nothing "
            "of it. Return it from that function, or call recompute(..., use_reentrant=False)."
        )


_FORGOTTEN = _Forgotten()


class Forgetting:
    """The keeper of a first run: it remembers what ran, and keeps nothing."""

    def __init__(self, twice: Twice) -> None:
        self.twice = twice

    def keep(self, node: Node, saved: Any, forward: Any, values: Any) -> Any:
        """Keep nothing."""
        self.twice.note(node, values)
        return _FORGOTTEN


class Comparing:
    """Compares the second run with the first; what is saved is kept as it would be without."""

    def __init__(self, twice: Twice) -> None:
        self.twice = twice
        self.count = 0
        self.outer = saving.innermost()

    def keep(self, node: Node, saved: Any, forward: Any, values: Any) -> Any:
        """Compare, and keep."""
        self.twice.check(self.count, node, values)
        self.count += 1
        return saved if self.outer is None else self.outer.keep(node, saved, forward, values)

    def check_complete(self) -> None:
        """Make sure that the second run did not end before the first."""
        log = self.twice.log
        if self.count < len(log):
            raise self.twice.differs(
                f"the second run ended after {self.count} operations, the first went on with "
                f"{log[self.count].operation!r}"
            )


def as_one_operation(
    name: str, keeps: Any, arrays: tuple[Any, ...], returned: Any, since: int, gradients: Run
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
        Takes the gradient of the outputs, what the node has kept, and its static arguments; gives
        the gradient of each of its edges, which are `ends_behind` the outputs.
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
    recipe.joint = gradients
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


def _gradients(twice: Twice, arrays: Any, g: Any, edges: tuple[Any, ...]) -> list[Any]:
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
    ends = gradients_of_ends(starts, since, create_graph, retain_graph=create_graph)
    known = set(edges)
    others = [end for end in ends if end not in known and (end.order or end.made_at < since)]
    if others:
        raise twice.differs(f"it read {others[0]!r}, which the first run did not")
    return [ends.pop(edge, None) for edge in edges]


# The operations themselves on the tape, with promises in place of what they save.


class _Promise:
    """What an operation saved, once its function has run again."""

    __slots__ = ("number", "second")

    values = ()

    def __init__(self, second: _Second, number: int) -> None:
        self.second = second
        self.number = number

    def restored(self) -> Any:
        return self.second.saved(self.number)


class _Promising:
    def __init__(self, twice: Twice) -> None:
        self.twice = twice
        self.second = _Second(twice)

    def keep(self, node: Node, saved: Any, forward: Any, values: Any) -> Any:
        self.twice.note(node, values)
        return _Promise(self.second, len(self.twice.log) - 1)


class _Second(Comparing):
    """The second run: made for the first operation that asks, it serves all the others."""

    def __init__(self, twice: Twice) -> None:
        super().__init__(twice)
        self.nodes: dict[int, tuple[Node, Any]] = {}

    def keep(self, node: Node, saved: Any, forward: Any, values: Any) -> Any:
        kept = super().keep(node, saved, forward, values)
        self.nodes[self.count - 1] = node, kept
        return kept

    def saved(self, number: int) -> Any:
        """Give what an operation saved; each is given once, and then made again."""
        if number not in self.nodes:
            self.count, self.outer = 0, saving.innermost()
            self.nodes.clear()
            self.twice.again(self.twice.arrays, self)
        node, kept = self.nodes.pop(number)
        node.check_unchanged()
        node.saved = None  # the walk frees what it is done with
        return kept if kept.__class__ is tuple else kept.restored()
