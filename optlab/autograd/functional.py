"""Derivatives of functions: grad, vjp, jvp, jacobian, hessian, hvp, all built on one walk back.

The functions here give arrays for arrays and Tensors for Tensors, and containers (dicts, lists,
tuples) of them for containers. A result that something outside still differentiates (an enclosing
`grad`, a Parameter of the user) stays a Tensor on its tape, so transforms can be nested through
closures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np

from optlab.autograd import tape, trees
from optlab.autograd.mode import grad_mode, recording
from optlab.autograd.run import Argnums, Run, name_of, positions
from optlab.autograd.tensor import Tensor
from optlab.backend.arrays import as_array, spread_beside, zeros_beside


def _one_number(run: Run, f: Callable[..., Any]) -> None:
    if issubclass(run.returned, (tuple, list, dict)):
        raise TypeError(
            f"grad needs a function whose value is one number; {name_of(f)} returned a "
            f"{run.returned.__name__}. Join its parts with optlab.numpy.stack and take a sum, or "
            "use jacobian or vjp, which take containers."
        )
    if run.value.size != 1:
        raise TypeError(
            f"grad needs a function whose value is one number; {name_of(f)} gave shape "
            f"{run.value.shape}. Take a sum or mean, or use jacobian or vjp."
        )
    if run.value.dtype.kind == "b":
        raise TypeError(
            f"grad needs a function whose value is one number; {name_of(f)} returned a truth value "
            "(of a comparison, np.all or np.allclose), which has no derivative."
        )


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
        places, single = positions(argnums, args)
        run = Run(f, args, places, kwargs)
        _one_number(run, f)
        gradients = run.built(run.pull(np.ones_like(run.value.data)))
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

    Parameters
    ----------
    f : callable
        Gives one array, or a container of arrays.
    args
        Arrays, or containers of arrays, of a floating dtype.

    Returns
    -------
    value
        ``f(*args)``.
    pullback : callable
        Takes `u` built like the value; returns a tuple, one gradient an argument. It may be called
        any number of times.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> y, pullback = ol.vjp(lambda x: x**2, np.array([1.0, 2.0]))
    >>> pullback(np.array([1.0, 10.0]))
    (array([ 2., 40.]),)
    """
    run = Run(f, args, range(len(args)), {})
    value = run.result()

    def pullback(u: Any) -> tuple[Any, ...]:
        given = trees.matching(value, u, "what the pullback takes", "the value")
        traced = any(getattr(part, "node", None) is not None for part in given)
        parts = [
            u if isinstance(u, Tensor) else spread_beside(as_array(u, y.dtype), y.data)
            for u, y in zip(given, run.parts, strict=True)
        ]
        seed = (
            np.concatenate([np.reshape(part, (-1,)) for part in parts])
            if run.returns_container
            else parts[0]
        )
        watched = run.watched
        try:
            run.watched |= traced and recording.on
            return tuple(run.built(run.pull(seed, retain_graph=True)))
        finally:
            run.watched = watched

    return value, pullback


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
    for given in (args, tangents):
        if not isinstance(given, (tuple, list)):
            raise TypeError(
                "jvp takes the arguments as one tuple and their tangents as another, as in "
                f"ol.jvp(f, (x,), (v,)); got {type(given).__name__}."
            )
    args, tangents = tuple(args), tuple(tangents)
    if len(args) != len(tangents):
        raise TypeError(
            f"jvp needs one tangent for each of {len(args)} arguments; got {len(tangents)}."
        )
    directions = [
        part
        for x, v in zip(args, tangents, strict=True)
        for part in trees.matching(x, v, "a tangent", "its argument")
    ]
    run = Run(f, args, range(len(args)), {})
    run.watched |= recording.on and any(getattr(v, "node", None) is not None for v in directions)
    run.gives_tensors |= any(isinstance(v, Tensor) for v in directions)
    # Linear in u, so that any u will do; but a rule may ask where nothing arrives.
    u = Tensor(np.ones_like(run.value.data))
    found = None
    if run.value.node is not None:
        u.node = tape.Entry(u.shape, u.dtype)
        pulled = tape.backpropagate(
            run.value.node, u, targets=run.nodes, create_graph=True, retain_graph=True
        )
        with grad_mode(True):
            along: Any = sum(
                np.sum(g * v) for g, v in zip(pulled, directions, strict=True) if g is not None
            )
        if isinstance(along, Tensor) and along.node is not None:
            seed = np.ones_like(along.data)
            (found,) = tape.backpropagate(
                along.node,
                Tensor(seed) if run.watched else seed,
                targets=[u.node],
                create_graph=run.watched,
                retain_graph=run.watched,
            )
    tangent = np.zeros_like(u.data) if found is None else found
    return run.result(), run.build_value([run.hand_out(part) for part in run.in_parts(tangent)])


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
    directions = trees.matching(x, v, "v", "x")
    gradient = grad(f)

    def slope(x: Any) -> Any:
        parts, _ = trees.flatten(gradient(x))
        return sum(np.sum(g * v) for g, v in zip(parts, directions, strict=True))

    return grad(slope)(x)


def jacobian(f: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """Give a function that returns the matrix of all derivatives of `f`.

    Parameters
    ----------
    f : callable
        Gives one array, or a container of arrays.
    argnums : int or sequence of int
        With respect to which positional arguments; several give a tuple of matrices.

    Returns
    -------
    callable
        Takes what `f` takes; returns an array of shape (shape of the value) + (shape of the
        argument), one walk back for each element of the value. Where the value or the argument is
        a container, so is the result: for each part of the value, for each part of the argument.

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
        places, single = positions(argnums, args)
        run = Run(f, args, places, kwargs)
        rows = []
        for i in range(run.value.size):
            seed = zeros_beside(run.value.data, (run.value.size,))
            seed[i] = 1
            rows.append(run.pull(seed.reshape(run.value.shape), retain_graph=True))
        blocks: list[list[Any]] = []
        start = 0
        for part in run.parts:
            mine = rows[start : start + part.size]
            start += part.size
            blocks.append(
                [
                    np.reshape(np.stack([row[i] for row in mine]), part.shape + x.shape)
                    if mine
                    else run.hand_out(zeros_beside(x, part.shape + x.shape))
                    for i, x in enumerate(run.given)
                ]
            )
        columns = [run.built(block) for block in blocks]
        built = run.build_value([c[0] if single else tuple(c) for c in columns])
        if single or run.returns_container:
            return built
        return tuple(built)

    return matrix


def hessian(f: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
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
