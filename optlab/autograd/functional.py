"""Derivatives of functions: grad, vjp, jvp, jacobian, hessian, hvp, all built on one walk back.

The functions here give arrays for arrays and Tensors for Tensors. A result that something outside
still differentiates (an enclosing `grad`, a Parameter of the user) stays a Tensor on its tape, so
transforms can be nested through closures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np

from optlab.autograd import tape
from optlab.autograd.mode import grad_mode, recording
from optlab.autograd.rules.elementwise import POSITIVE
from optlab.autograd.tensor import Tensor, _leaf, apply, raw
from optlab.backend.arrays import as_array, spread_beside, zeros_beside

Argnums = int | Sequence[int]


class _Run:
    """One evaluation of a function, with its arguments put on the tape.

    Attributes
    ----------
    inputs : list of Tensor
        What the function was given in place of the arguments that are differentiated.
    value : Tensor
        What it returned.
    watched : bool
        Whether something outside traces the result, so that derivatives must be recorded too.
    """

    def __init__(
        self, f: Callable[..., Any], args: tuple[Any, ...], argnums: Sequence[int], kwargs: Any
    ) -> None:
        enabled = recording.on
        self.gives_tensors = any(isinstance(args[i], Tensor) for i in argnums)
        with grad_mode(True):
            filled = list(args)
            self.inputs = []
            for i in argnums:
                filled[i] = _entry(args[i], traced=enabled)
                self.inputs.append(filled[i])
            try:
                value = f(*filled, **kwargs)
            finally:
                # Nobody but this run will ever ask for the gradients of its own leaves.
                for t in self.inputs:
                    if not t.node.order:
                        t.node.live = False
        if isinstance(value, (tuple, list)):
            raise TypeError(
                f"{_name(f)} returned a {type(value).__name__}; a function to differentiate "
                "returns one array. Join its parts with optlab.numpy.stack or np.concatenate."
            )
        self.value = value if isinstance(value, Tensor) else Tensor(as_array(value))
        if self.value.dtype.kind not in "fiub":
            raise TypeError(
                f"{_name(f)} returned {value!r} of type {type(value).__name__}; a function to "
                "differentiate returns one array of numbers. (A missing return?)"
            )
        own = {t.node for t in self.inputs}
        self.watched = False
        if enabled and self.value.node is not None:
            nodes = tape.ancestors(self.value.node)
            self.watched = any(not n.order and n.live and n not in own for n in nodes)

    def pull(self, seed: Any, retain_graph: bool = False) -> list[Any]:
        """Give the gradient of <seed, value> for each input, as the caller should see it."""
        nodes = [t.node for t in self.inputs]
        found: list[Any] = [None] * len(nodes)
        if self.value.node is not None:
            found = tape.backpropagate(
                self.value.node,
                Tensor(raw(seed), getattr(seed, "node", None)) if self.watched else raw(seed),
                targets=nodes,
                create_graph=self.watched,
                retain_graph=retain_graph or self.watched,
            )
        return [
            self.hand_out(np.zeros_like(t.data) if g is None else g)
            for t, g in zip(self.inputs, found, strict=True)
        ]

    def hand_out(self, value: Any) -> Any:
        """Give a Tensor where Tensors were given or something traces it, else an array."""
        if isinstance(value, Tensor):
            if value.node is not None and self.watched:
                return value
            value = value.data
        return Tensor(value) if self.gives_tensors else value

    def result(self) -> Any:
        """Give the value of the function, as the caller should see it."""
        return self.hand_out(self.value if self.watched else self.value.data)


def _entry(x: Any, traced: bool) -> Tensor:
    """Put an argument on the tape: a leaf, or, where it is traced already, a node of its own."""
    if isinstance(x, Tensor):
        if x.node is not None and traced:
            return apply(POSITIVE, (x,))
        x = x.data
    array = as_array(x)
    if array.dtype.kind in "iub":
        raise TypeError(
            f"derivatives are with respect to floating numbers; got {array.dtype} "
            f"({x!r}). Write 2.0 instead of 2, or convert with .astype(float)."
        )
    return Tensor(array if array.ndim or not isinstance(x, float) else np.float64(x), _leaf(array))


def _positions(argnums: Argnums, args: tuple[Any, ...]) -> tuple[list[int], bool]:
    """Read `argnums`; say also whether it was a single number."""
    single = isinstance(argnums, (int, np.integer))
    numbers = [int(argnums)] if single else [int(i) for i in argnums]  # type: ignore[arg-type, union-attr]
    for i in numbers:
        if not -len(args) <= i < len(args):
            raise TypeError(f"argnums names argument {i}, but {len(args)} were given.")
    places = [i % len(args) for i in numbers]
    if len(set(places)) < len(places):
        raise TypeError(f"argnums names an argument twice: {argnums!r}.")
    return places, single


def _one_number(run: _Run, f: Callable[..., Any]) -> None:
    if run.value.size != 1:
        raise TypeError(
            f"grad needs a function whose value is one number; {_name(f)} gave shape "
            f"{run.value.shape}. Take a sum or mean, or use jacobian or vjp."
        )


def _name(f: Callable[..., Any]) -> str:
    return getattr(f, "__name__", type(f).__name__)


def value_and_grad(f: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """Give a function that returns the value of `f` and its gradient.

    Parameters
    ----------
    f : callable
        Its value must be one number.
    argnums : int or sequence of int
        With respect to which positional arguments; several give a tuple of gradients.

    Returns
    -------
    callable
        Takes what `f` takes, returns ``(value, gradient)``: arrays for arrays, Tensors for Tensors.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> value, gradient = ol.value_and_grad(lambda x: np.sum(x**2))(np.array([1.0, 2.0]))
    >>> float(value), gradient
    (5.0, array([2., 4.]))
    """

    @wraps(f)
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        positions, single = _positions(argnums, args)
        run = _Run(f, args, positions, kwargs)
        _one_number(run, f)
        gradients = run.pull(np.ones_like(run.value.data))
        return run.result(), gradients[0] if single else tuple(gradients)

    return differentiated


def grad(f: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """Give the gradient function of `f`.

    Parameters
    ----------
    f : callable
        Its value must be one number.
    argnums : int or sequence of int
        With respect to which positional arguments; several give a tuple of gradients.

    Returns
    -------
    callable
        Takes what `f` takes, returns the gradient. It can be differentiated again.

    Raises
    ------
    TypeError
        If the value of `f` is not one number, or an argument is of an integer type.

    Examples
    --------
    >>> import optlab as ol
    >>> float(ol.grad(lambda x: x**3)(2.0))
    12.0
    >>> float(ol.grad(lambda x: x * ol.grad(lambda y: x * y)(1.0))(2.0))
    4.0
    """
    both = value_and_grad(f, argnums)

    @wraps(f)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        return both(*args, **kwargs)[1]

    return gradient


def vjp(f: Callable[..., Any], *args: Any) -> tuple[Any, Callable[[Any], tuple[Any, ...]]]:
    """Give the value of `f` and its pullback, which maps u to u'J for every argument.

    Returns
    -------
    value
        ``f(*args)``.
    pullback : callable
        Takes `u` of the shape of the value; returns a tuple, one gradient an argument. It may be
        called any number of times.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> y, pullback = ol.vjp(lambda x: x**2, np.array([1.0, 2.0]))
    >>> pullback(np.array([1.0, 10.0]))
    (array([ 2., 40.]),)
    """
    run = _Run(f, args, range(len(args)), {})

    def pullback(u: Any) -> tuple[Any, ...]:
        u = u if isinstance(u, Tensor) else as_array(u, run.value.dtype)
        if u.shape != run.value.shape:
            raise ValueError(
                f"the pullback takes an array of the shape of the value, {run.value.shape}; "
                f"got {u.shape}."
            )
        watched = run.watched
        try:
            run.watched |= isinstance(u, Tensor) and u.node is not None and recording.on
            u = u if isinstance(u, Tensor) else spread_beside(u, run.value.data)
            return tuple(run.pull(u, retain_graph=True))
        finally:
            run.watched = watched

    return run.result(), pullback


def jvp(f: Callable[..., Any], args: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """Give the value of `f` and its derivative Jv along `tangents`, by two walks back.

    The pullback u -> u'J is linear in u, so the gradient of <u'J, v> with respect to u is Jv.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> y, tangent = ol.jvp(lambda x: x**2, (np.array([1.0, 2.0]),), (np.array([1.0, 10.0]),))
    >>> tangent
    array([ 2., 40.])
    """
    args, tangents = tuple(args), tuple(tangents)
    if len(args) != len(tangents):
        raise TypeError(
            f"jvp needs one tangent for each of {len(args)} arguments; got {len(tangents)}."
        )
    for x, v in zip(args, tangents, strict=True):
        if np.shape(x) != np.shape(v):
            raise ValueError(
                f"a tangent must have its argument's shape {np.shape(x)}; got {np.shape(v)}."
            )
    run = _Run(f, args, range(len(args)), {})
    run.watched |= recording.on and any(getattr(v, "node", None) is not None for v in tangents)
    run.gives_tensors |= any(isinstance(v, Tensor) for v in tangents)
    u = Tensor(np.zeros_like(run.value.data))
    u.requires_grad = True
    tangent = [None]
    if run.value.node is not None:
        nodes = [t.node for t in run.inputs]
        pulled = tape.backpropagate(
            run.value.node, u, targets=nodes, create_graph=True, retain_graph=True
        )
        with grad_mode(True):
            along: Any = sum(
                np.sum(g * v) for g, v in zip(pulled, tangents, strict=True) if g is not None
            )
        if isinstance(along, Tensor):
            seed = np.ones_like(along.data)
            tangent = tape.backpropagate(
                along.node,
                Tensor(seed) if run.watched else seed,
                targets=[u.node],
                create_graph=run.watched,
                retain_graph=run.watched,
            )
    found = np.zeros_like(u.data) if tangent[0] is None else tangent[0]
    return run.result(), run.hand_out(found)


def hvp(f: Callable[..., Any], x: Any, v: Any) -> Any:
    """Give the Hessian of `f` at `x` times `v`, at the cost of a few gradients.

    Hv is the gradient of <grad f(x), v>; the Hessian itself is never formed.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> ol.hvp(lambda x: np.sum(x**3), np.array([1.0, 2.0]), np.array([1.0, 1.0]))
    array([ 6., 12.])
    """
    if np.shape(x) != np.shape(v):
        raise ValueError(f"v must have the shape of x, {np.shape(x)}; got {np.shape(v)}.")
    gradient = grad(f)
    return grad(lambda x: np.sum(gradient(x) * v))(x)


def jacobian(f: Callable[..., Any], argnums: int = 0) -> Callable[..., Any]:
    """Give a function that returns the matrix of all derivatives of `f`.

    Returns
    -------
    callable
        Takes what `f` takes; returns an array of shape (shape of the value) + (shape of the
        argument), one walk back for each element of the value.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> ol.jacobian(lambda x: x**2)(np.array([1.0, 2.0]))
    array([[2., 0.],
           [0., 4.]])
    """

    @wraps(f)
    def matrix(*args: Any, **kwargs: Any) -> Any:
        (position,), _ = _positions(argnums, args)
        run = _Run(f, args, [position], kwargs)
        shape = run.value.shape + run.inputs[0].shape
        rows = []
        for i in range(run.value.size):
            seed = zeros_beside(run.value.data, (run.value.size,))
            seed[i] = 1
            rows.append(run.pull(seed.reshape(run.value.shape), retain_graph=True)[0])
        if not rows:
            return run.hand_out(np.zeros(shape, run.value.dtype))
        return np.reshape(np.stack(rows), shape)

    return matrix


def hessian(f: Callable[..., Any], argnums: int = 0) -> Callable[..., Any]:
    """Give a function that returns the matrix of second derivatives of `f`.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> ol.hessian(lambda x: np.sum(x**3))(np.array([1.0, 2.0]))
    array([[ 6.,  0.],
           [ 0., 12.]])
    """
    return jacobian(grad(f, argnums), argnums)
