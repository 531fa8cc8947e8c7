"""Operations: a function with its derivative rules (vector-Jacobian products).

The argument names of a rule declare what it reads, and the tape saves exactly that:

=====================  ==================================================================
argument of the rule   value that it receives
=====================  ==================================================================
first argument (g)     the incoming gradient (the cotangent of the output)
``x`` / ``a``, ``b``   the input of one-input / two-input functions (or the input's own name)
``y``                  the output
``x_shape``            the shape of that input (costs no memory)
``needs``              for each input, whether its gradient is needed
any other name         a static argument such as ``axis``, by keyword
=====================  ==================================================================

An operation with several outputs has ``g[i]`` and ``y[i]``; ``y1`` is a single integer output,
saved without the others. Where the gradients of several inputs share much of their work, one rule
(``joint=``) returns them all, as a tuple.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np

Pullback = Callable[..., Any]
#: ``run(g, saved, static)`` calls a rule with the saved values and static arguments that it reads.
Run = Callable[[Any, Sequence[Any], dict[str, Any]], Any]

#: Every function that is one operation on Tensors, filled by the modules in `rules`.
TABLE: dict[Any, Operation] = {}

#: Functions composed of other functions, filled by the modules in `composed`; looked up first.
COMPOSED: dict[Any, Callable[..., Any]] = {}

#: Those among them that compute nothing, or call a function of the user: in 16 bits too each
#: operation inside runs on its own.
MOVING: set[Callable[..., Any]] = set()


#: The number of outputs that can be saved one by one.
_OUTPUTS = 4


class Recipe:
    """What to save and which rules to run for a given set of inputs that need gradients.

    Attributes
    ----------
    sources : tuple of int
        The source of each saved value, numbered in the order inputs, output, shapes of the inputs,
        single outputs.
    pullbacks : tuple
        For each input that needs a gradient: its position, and a callable that runs its rule on
        the incoming gradient, the saved values and the static arguments.
    """

    __slots__ = (
        "calls", "constants", "joint", "needs_shapes", "of_user", "over", "pullbacks",
        "runs_backward", "saved_inputs", "select", "sources",
    )  # fmt: skip

    def __init__(self, operation: Operation, mask: int) -> None:
        names = operation.inputs
        #: Whether its rule is the user's, as that of `autograd.Function`.
        self.of_user = False
        arity = len(names)
        place = {name: i for i, name in enumerate(names)}
        place["y"] = arity
        place |= {f"{name}_shape": arity + 1 + i for i, name in enumerate(names)}
        if operation.several:
            place |= {f"y{i}": 2 * arity + 1 + i for i in range(_OUTPUTS)}
        #: The rule behind each callable, with the saved values and static arguments that it reads.
        self.calls: dict[Run, tuple[Pullback, tuple[int, ...], tuple[str, ...]]] = {}
        needs = tuple(bool(mask >> position & 1) for position in range(arity))
        sources: list[int] = []

        def runner(pullback: Pullback) -> Run:
            """Bind the arguments of a rule to their sources, and mark these as saved."""
            reads, static = [], []
            for name in _arguments_read(pullback):
                if name in place:
                    if place[name] not in sources:
                        sources.append(place[name])
                    reads.append(sources.index(place[name]))
                elif name != "needs":
                    static.append(name)
            if "needs" in _arguments_read(pullback):
                pullback = partial(pullback, needs=needs)
            run = _runner(pullback, tuple(reads), tuple(static))
            self.calls[run] = (pullback, tuple(reads), tuple(static))
            return run

        wanted = [position for position in range(arity) if needs[position]]
        #: Whether `joint` runs a backward pass itself, which accumulates into pending gradients.
        self.runs_backward = False
        #: Runs the rule that returns all gradients at once, if there is one.
        self.joint: Callable[..., Any] | None = None
        #: Does the same, and may write the result over the incoming gradient.
        self.over: Run | None = None
        if operation.over is not None:
            (pullback,) = operation.pullbacks
            assert pullback is not None
            self.joint, self.over = runner(pullback), runner(operation.over)
            chosen: list[Any] = [(0, lambda g, saved, static: g)]
        elif operation.joint is not None and (all(needs) or not operation.pullbacks):
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
        #: Inputs whose values are saved: a leaf among them must not be overwritten until backward.
        self.saved_inputs = tuple(source for source in sources if source < arity)
        #: Saved inputs that need no gradient themselves: mostly plain arrays.
        self.constants = tuple(i for i in self.saved_inputs if not needs[i])
        self.needs_shapes = any(source > arity for source in sources)
        self.select = _selector(self.sources)


def _arguments_read(pullback: Pullback) -> tuple[str, ...]:
    """Return the names of the arguments that a rule reads besides the incoming gradient."""
    code = pullback.__code__
    return code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]


def _takes_static_by_position(pullback: Pullback, names: tuple[str, ...]) -> bool:
    """Return whether a rule takes `names` as its last positional arguments, without defaults."""
    code = getattr(pullback, "__code__", None)
    if code is None or pullback.__defaults__ or code.co_kwonlyargcount:
        return False
    return bool(code.co_varnames[: code.co_argcount][-len(names) :] == names)


def _runner(pullback: Pullback, reads: tuple[int, ...], names: tuple[str, ...]) -> Run:
    """Return a callable that runs a rule, specialized because unpacking takes twice as long."""
    if not reads:
        without_static: Run = lambda g, saved, static: pullback(g)
    elif len(reads) == 1:
        (i,) = reads
        without_static = lambda g, saved, static: pullback(g, saved[i])
    elif len(reads) == 2:
        i, j = reads
        without_static = lambda g, saved, static: pullback(g, saved[i], saved[j])
    else:
        several = itemgetter(*reads)
        without_static = lambda g, saved, static: pullback(g, *several(saved))
    if not names:
        return without_static
    if len(reads) + len(names) == 2 and _takes_static_by_position(pullback, names):
        if reads:
            (i,), (name,) = reads, names
            return lambda g, saved, static: pullback(g, saved[i], static[name])
        one, two = names
        return lambda g, saved, static: pullback(g, static[one], static[two])

    known = frozenset(names)
    pick = _selector(reads)

    def run(g: Any, saved: Sequence[Any], static: dict[str, Any]) -> Any:
        if not static:
            return without_static(g, saved, static)
        if static.keys() <= known:  # the rule reads all of them
            return pullback(g, *pick(saved), **static)
        named = {name: static[name] for name in names if name in static}
        return pullback(g, *pick(saved), **named)

    return run


def _selector(sources: tuple[int, ...]) -> Callable[[Any], tuple[Any, ...]]:
    """Return the fastest function that selects `sources` from a tuple, as a tuple."""
    if len(sources) > 1:
        return itemgetter(*sources)
    # A slice of a tuple stays a tuple, of one value or none.
    start = sources[0] if sources else 0
    return itemgetter(slice(start, start + len(sources)))


class Operation:
    """A function on arrays with one vector-Jacobian product for each of its inputs.

    Attributes
    ----------
    name : str
    forward : callable
        Plain NumPy: arrays in, array out.
    pullbacks : tuple of callables or None
        One rule for each input; None where there is no derivative.
    inputs : tuple of str
        The names of the inputs, which rules read as arguments.
    static : tuple of str
        The names of the arguments that are not arrays, in positional order.
    view : bool
        Whether the output may share memory with the first input.
    several : bool
        Whether `forward` returns a tuple of arrays.
    joint : callable or None
        One rule that returns the gradients of all inputs: in place of `pullbacks`, or, if there are
        any, where all gradients are needed.
    over : callable or None
        The rule of the only input, in a form that may write over the incoming gradient.
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
        """Return the cached recipe for the inputs whose bits are set in `mask`."""
        known = self.recipes.get(mask)
        if known is None:
            known = self.recipes[mask] = Recipe(self, mask)
        return known

    def bind(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Separate the arguments of a call into inputs and static arguments.

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
        kwargs = self._canonical_names(kwargs)
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

    def _canonical_names(self, kwargs: dict[str, Any]) -> dict[str, Any]:
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


def as_single_operation(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a function so that Tensors and captured arrays record it as one operation.

    NumPy's functions dispatch through ``__array_function__`` of their arguments; this does the same
    for functions of optlab. Types that record declare ``records_calls``.

    Examples
    --------
    >>> as_single_operation(max, 2, 3)
    3
    """
    for x in args:
        if getattr(type(x), "records_calls", False):
            types = tuple({type(x) for x in args if getattr(type(x), "records_calls", False)})
            result = x.__array_function__(function, types, args, kwargs)
            if result is not NotImplemented:
                return result
    return function(*args, **kwargs)


def _input_names(count: int) -> list[str]:
    """Return names for the inputs of a function: x, a b, or a b c."""
    return ["x"] if count == 1 else list("abcdefghij"[:count])


def rule_call(name: str, inputs: int) -> str:
    """Return how a user gives a function of so many inputs its rule.

    Examples
    --------
    >>> rule_call("jv", 2)
    'optlab.autograd.rule(jv, lambda g, a, b: g * ..., lambda g, a, b: g * ...)'
    """
    arguments = ", ".join(["g", *_input_names(inputs)])
    pullbacks = ", ".join([f"lambda {arguments}: g * ..."] * inputs)
    return f"optlab.autograd.rule({name}, {pullbacks})"


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
    """Register a function and its vector-Jacobian products as one operation.

    Parameters
    ----------
    function
        The function of NumPy or optlab that users call.
    pullbacks
        One for each input, in plain NumPy; their argument names declare what they read. None for an
        input that has no derivative.
    inputs
        The names of the inputs, separated by spaces; by default ``x``, ``a b``, ``a b c``.
    static
        The names of the arguments that are not arrays, in positional order.
    forward
        The function that computes the value; by default `function` itself.
    view : bool
        Whether the output may share memory with the first input.
    several : bool
        Whether the function returns a tuple of arrays.
    joint
        One rule that returns the gradients of all inputs as a tuple (None for an input without a
        derivative); requires `inputs`. Without `pullbacks` it is the only rule; with them it runs
        where the gradients of all inputs are needed.
    over
        For one input: the same rule for large NumPy arrays, with the same arguments, that may write
        its result over `g`. It runs where `g` has no other reference.
    name : str
        The name of the operation; by default that of the function, without leading underscores.

    Raises
    ------
    TypeError
        If a ufunc has another number of inputs than there are pullbacks.

    Examples
    --------
    A ufunc of another package, with its derivative by the second input alone:

    >>> import numpy as np
    >>> import optlab as ol
    >>> hyp = np.frompyfunc(lambda a, b: (a * a + b * b) ** 0.5, 2, 1)
    >>> _ = ol.autograd.rule(hyp, None, lambda g, y, b: g * b / y)

    A function of one's own:

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
    count = getattr(function, "nin", None)
    if count is not None and joint is None and len(pullbacks) + len(static.split()) != count:
        raise TypeError(
            f"{function.__name__} has {count} inputs, and needs one pullback for each: got "
            f"{len(pullbacks)}. Write {rule_call(function.__name__, count)}."
        )
    names = inputs.split() or _input_names(len(pullbacks))
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
