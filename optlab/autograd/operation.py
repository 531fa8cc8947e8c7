"""Operations: a function beside its derivative rules.

A rule says by the names of its arguments what it reads, and the tape keeps exactly that:

=====================  ==================================================================
name in the rule       what it is given
=====================  ==================================================================
first argument (g)     the gradient that arrives
``x`` / ``a``, ``b``   the input of one-input / two-input functions (or the input's own name)
``y``                  the output
``x_shape``            the shape of that input (costs no memory)
``needs``              for each input, whether its gradient is wanted
any other name         a static argument such as ``axis``, by keyword
=====================  ==================================================================

An operation with several outputs has ``g[i]`` and ``y[i]``; ``y1`` is a single output of whole
numbers, kept without the others. Where the gradients of several inputs
share much of their work, one rule (``joint=``) gives them all, as a tuple.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np

Pullback = Callable[..., Any]
#: ``run(g, saved, static)`` gives a rule what it names of the saved values and static arguments.
Run = Callable[[Any, Sequence[Any], dict[str, Any]], Any]

#: Every function that Tensors know as one operation, filled by the files in `rules`.
TABLE: dict[Any, Operation] = {}

#: Functions written with other functions, filled by the files in `composed`. They come first.
COMPOSED: dict[Any, Callable[..., Any]] = {}

#: Those among them that compute nothing, or call a function of the user: in 16 bits too each
#: operation inside runs on its own.
MOVING: set[Callable[..., Any]] = set()


#: Up to so many outputs can be kept one by one.
_OUTPUTS = 4


class Recipe:
    """What to keep and which rules to run when a given set of inputs needs gradients.

    Attributes
    ----------
    sources : tuple of int
        Where each saved value comes from, in the order inputs, output, shapes of the inputs, single
        outputs.
    pullbacks : tuple
        For each input that needs a gradient: its position, and what runs its rule on the gradient
        that arrives, the saved values and the static arguments.
    """

    __slots__ = (
        "constants", "joint", "needs_shapes", "over", "pullbacks", "saved_inputs", "select",
        "sources", "walks",
    )  # fmt: skip

    def __init__(self, operation: Operation, mask: int) -> None:
        names = operation.inputs
        arity = len(names)
        place = {name: i for i, name in enumerate(names)}
        place["y"] = arity
        place |= {f"{name}_shape": arity + 1 + i for i, name in enumerate(names)}
        if operation.several:
            place |= {f"y{i}": 2 * arity + 1 + i for i in range(_OUTPUTS)}
        needs = tuple(bool(mask >> position & 1) for position in range(arity))
        sources: list[int] = []

        def runner(pullback: Pullback) -> Run:
            """Find where the arguments of a rule come from, and see that they are saved."""
            reads, static = [], []
            for name in _arguments_of(pullback):
                if name in place:
                    if place[name] not in sources:
                        sources.append(place[name])
                    reads.append(sources.index(place[name]))
                elif name != "needs":
                    static.append(name)
            if "needs" in _arguments_of(pullback):
                pullback = partial(pullback, needs=needs)
            return _runner(pullback, tuple(reads), tuple(static))

        wanted = [position for position in range(arity) if needs[position]]
        #: Whether `joint` is a walk back itself, which adds to gradients that are on their way.
        self.walks = False
        #: Runs the rule that gives all gradients at once, if there is one.
        self.joint: Callable[..., Any] | None = None
        #: Does the same, and may write the result over the gradient that arrives.
        self.over: Run | None = None
        if operation.over is not None:
            (pullback,) = operation.pullbacks
            assert pullback is not None
            self.joint, self.over = runner(pullback), runner(operation.over)
            chosen: list[Any] = [(0, lambda g, saved, static: g)]
        elif operation.joint is not None:
            self.joint = runner(operation.joint)
            chosen = [(position, lambda g, saved, static, i=position: g[i]) for position in wanted]
        else:
            chosen = []
            for position in wanted:
                pullback = operation.pullbacks[position]
                if pullback is None:
                    raise TypeError(
                        f"{operation.name} has no derivative with respect to its argument "
                        f"{names[position]!r}; give it an array, or the Tensor's .detach()."
                    )
                chosen.append((position, runner(pullback)))
        self.sources = tuple(sources)
        self.pullbacks = tuple(chosen)
        #: Inputs whose values are kept: if one is a leaf, it must not be overwritten meanwhile.
        self.saved_inputs = tuple(source for source in sources if source < arity)
        #: Those among them that need no gradient themselves: plain arrays, mostly.
        self.constants = tuple(i for i in self.saved_inputs if not needs[i])
        self.needs_shapes = any(source > arity for source in sources)
        self.select = _selector(self.sources)


def _arguments_of(pullback: Pullback) -> tuple[str, ...]:
    """Name what a rule reads besides the arriving gradient."""
    code = pullback.__code__
    return code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]


def _must_be_given(pullback: Pullback, names: tuple[str, ...]) -> bool:
    """Say whether a rule takes static arguments last, by position and without defaults."""
    code = getattr(pullback, "__code__", None)
    if code is None or pullback.__defaults__ or code.co_kwonlyargcount:
        return False
    return bool(code.co_varnames[: code.co_argcount][-len(names) :] == names)


def _runner(pullback: Pullback, reads: tuple[int, ...], names: tuple[str, ...]) -> Run:
    """Give what runs a rule, in its quickest form: to unpack arguments takes twice as long."""
    if not reads:
        plain: Run = lambda g, saved, static: pullback(g)
    elif len(reads) == 1:
        (i,) = reads
        plain = lambda g, saved, static: pullback(g, saved[i])
    elif len(reads) == 2:
        i, j = reads
        plain = lambda g, saved, static: pullback(g, saved[i], saved[j])
    else:
        several = itemgetter(*reads)
        plain = lambda g, saved, static: pullback(g, *several(saved))
    if not names:
        return plain
    if len(reads) + len(names) == 2 and _must_be_given(pullback, names):
        if reads:
            (i,), (name,) = reads, names
            return lambda g, saved, static: pullback(g, saved[i], static[name])
        one, two = names
        return lambda g, saved, static: pullback(g, static[one], static[two])

    known = frozenset(names)
    pick = _selector(reads)

    def run(g: Any, saved: Sequence[Any], static: dict[str, Any]) -> Any:
        if not static:
            return plain(g, saved, static)
        if static.keys() <= known:  # the rule reads them all
            return pullback(g, *pick(saved), **static)
        named = {name: static[name] for name in names if name in static}
        return pullback(g, *pick(saved), **named)

    return run


def _selector(sources: tuple[int, ...]) -> Callable[[Any], tuple[Any, ...]]:
    """Give the function that picks `sources` out of a tuple, as a tuple, as fast as can be."""
    if len(sources) > 1:
        return itemgetter(*sources)
    # A slice of a tuple is a tuple: of one value, or of none.
    start = sources[0] if sources else 0
    return itemgetter(slice(start, start + len(sources)))


class Operation:
    """A function on arrays, and one vector-Jacobian product for each of its inputs.

    Attributes
    ----------
    name : str
    forward : callable
        Plain NumPy: arrays in, array out.
    pullbacks : tuple of callables or None
        One rule for each input; None where there is no derivative.
    inputs : tuple of str
        The names of the inputs, by which rules ask for them.
    static : tuple of str
        The names of the arguments that are not arrays, in their positional order.
    view : bool
        Whether the output may lie in the memory of the first input.
    several : bool
        Whether `forward` gives a tuple of arrays.
    joint : callable or None
        One rule that gives the gradients of all inputs, in place of `pullbacks`.
    over : callable or None
        The rule of the only input, in a form that may write over the gradient that arrives.
    """

    __slots__ = (
        "forward", "inputs", "joint", "name", "over", "pullbacks", "recipes", "several", "static",
        "view",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        forward: Callable[..., Any],
        pullbacks: Sequence[Pullback | None],
        inputs: Sequence[str],
        static: Sequence[str] = (),
        view: bool = False,
        several: bool = False,
        joint: Pullback | None = None,
        over: Pullback | None = None,
    ) -> None:
        self.name = name
        self.forward = forward
        self.pullbacks = tuple(pullbacks)
        self.inputs = tuple(inputs)
        self.static = tuple(static)
        self.view = view
        self.several = several
        self.joint = joint
        self.over = over
        self.recipes: dict[int, Recipe] = {}

    def recipe(self, mask: int) -> Recipe:
        """Give the recipe for the inputs whose bits are set in `mask`."""
        known = self.recipes.get(mask)
        if known is None:
            known = self.recipes[mask] = Recipe(self, mask)
        return known

    def bind(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Sort the arguments of a call into inputs and static arguments.

        Raises
        ------
        TypeError
            For an argument that the operation does not cover: it is named, never ignored.
        """
        arity = len(self.inputs)
        inputs, rest = args[:arity], args[arity:]
        if not rest and not kwargs:
            if len(inputs) < arity:
                raise TypeError(f"{self.name} takes {arity} inputs ({', '.join(self.inputs)}).")
            return inputs, {}
        kwargs = self._in_our_names(kwargs)
        for name in self.inputs[len(inputs) :]:
            if name not in kwargs:
                raise TypeError(f"{self.name} takes {arity} inputs ({', '.join(self.inputs)}).")
            inputs += (kwargs.pop(name),)
        if len(rest) > len(self.static):
            raise TypeError(
                f"{self.name} on Tensors takes at most {arity + len(self.static)} positional "
                f"arguments: {', '.join(self.inputs + self.static)}."
            )
        static = dict(zip(self.static, rest, strict=False))
        for name, value in kwargs.items():
            if name in self.static:
                static[name] = value
            elif value is not None and value is not np._NoValue:
                covered = ", ".join(self.static) or "no keyword arguments"
                raise TypeError(
                    f"{self.name}(..., {name}={value!r}) is not covered on Tensors; "
                    f"covered: {covered}."
                )
        return inputs, static

    def _in_our_names(self, kwargs: dict[str, Any]) -> dict[str, Any]:
        """Rename the inputs that NumPy calls a, x, x1 and x2."""
        aliases = {
            "a": self.inputs[0], "x": self.inputs[0], "x1": self.inputs[0], "x2": self.inputs[-1],
        }  # fmt: skip
        return {
            aliases.get(name, name) if name not in self.inputs else name: value
            for name, value in kwargs.items()
        }

    def __repr__(self) -> str:
        return f"<Operation {self.name}({', '.join(self.inputs + self.static)})>"


def as_one(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a function of ours so that what records calls records it as one operation.

    NumPy's own functions ask their arguments by themselves; ours have to. Tensors and captured
    arrays say ``records_calls``.

    Examples
    --------
    >>> as_one(max, 2, 3)
    3
    """
    for x in args:
        if getattr(type(x), "records_calls", False):
            types = tuple({type(x) for x in args if getattr(type(x), "records_calls", False)})
            result = x.__array_function__(function, types, args, kwargs)
            if result is not NotImplemented:
                return result
    return function(*args, **kwargs)


def rule(
    function: Callable[..., Any],
    *pullbacks: Pullback | None,
    inputs: str = "",
    static: str = "",
    forward: Callable[..., Any] | None = None,
    view: bool = False,
    several: bool = False,
    joint: Pullback | None = None,
    over: Pullback | None = None,
    name: str = "",
) -> Operation:
    """Write one row of the table: a function and its vector-Jacobian products.

    Parameters
    ----------
    function
        The NumPy function (or one of ours) that a user calls.
    pullbacks
        One for each input, in plain NumPy; their argument names say what they read.
    inputs
        The names of the inputs, separated by spaces; by default ``x``, or ``a b``.
    static
        The names of the arguments that are not arrays, in positional order.
    forward
        What computes the value, if it is not `function` itself.
    view : bool
        Whether the output may lie in the memory of the first input.
    several : bool
        Whether the function gives a tuple of arrays.
    joint
        One rule that gives the gradients of all inputs as a tuple (None for an input that has no
        derivative), in place of `pullbacks`; `inputs` must be named.
    over
        For one input: the same rule for large arrays of NumPy, reading the same, that may write its
        result over `g`. It runs where nobody else holds the gradient.
    name : str
        What the operation is called; by default as the function, without the mark of a private one.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> def cube(x):
    ...     return x * x * x
    >>> operation = rule(cube, lambda g, x: g * 3 * x * x)
    >>> t = ol.to_tensor(2.0, requires_grad=True)
    >>> from optlab.autograd.tensor import apply
    >>> apply(operation, (t,)).backward()
    >>> t.grad.item()
    12.0
    """
    names = inputs.split() or (["x"] if len(pullbacks) == 1 else ["a", "b"])
    operation = Operation(
        name or function.__name__.lstrip("_"),
        forward or function,
        pullbacks,
        names,
        static.split(),
        view,
        several,
        joint,
        over,
    )
    TABLE[function] = operation
    return operation
