"""Derivatives of functions: grad, vjp, jvp, hvp, all built on the backward pass.

These transforms return arrays for arrays, Tensors for Tensors, and containers (dicts, lists,
tuples) of them for containers. A result that something outside still differentiates (an enclosing
`grad`, a Parameter of the user) stays a Tensor on its tape, so transforms nest through closures.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np

from optlab.autograd import pytrees
from optlab.autograd.tape import backward, nodes
from optlab.autograd.tape.base import first_gradient
from optlab.autograd.tape.grad_mode import grad_mode, recording
from optlab.autograd.tape.saved_tensors import outside_recompute
from optlab.autograd.tensor.tensor import Tensor
from optlab.autograd.transforms.evaluation import (
    Argnums,
    Evaluation,
    check_callable,
    explained_transform,
    name_of,
    positions,
)
from optlab.backend.arrays import as_array, spread_beside


def _check_scalar(run: Evaluation, f: Callable[..., Any]) -> None:
    """Raise TypeError unless the value of the function is one number."""
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


@explained_transform
def value_and_grad(f: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """Return a function that computes the value of `f` and its gradient.

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

    Raises
    ------
    TypeError
        If the value of `f` is not one number, or an argument is of an integer type.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> value, gradient = ol.value_and_grad(lambda x: np.sum(x**2))(np.array([1.0, 2.0]))
    >>> float(value), gradient
    (5.0, array([2., 4.]))
    """
    check_callable(f, "value_and_grad")

    @wraps(f)
    @outside_recompute
    def differentiated(*args: Any, **kwargs: Any) -> Any:
        places, single = positions(argnums, args)
        run = Evaluation(f, args, places, kwargs)
        _check_scalar(run, f)
        gradients = run.built(run.pull(first_gradient(run.value, None)))
        return run.result(), gradients[0] if single else tuple(gradients)

    return differentiated


@explained_transform
def grad(f: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """Return the gradient function of `f`.

    Parameters
    ----------
    f : callable
        Its value must be one number.
    argnums : int or sequence of int
        With respect to which positional arguments; several give a tuple of gradients.

    Returns
    -------
    callable
        Takes what `f` takes, returns the gradient, df/dx_i for each element of the argument: in
        its shape, and in the same containers where it is a dict, list or tuple of arrays. It can be
        differentiated again.

    Raises
    ------
    TypeError
        If the value of `f` is not one number, or an argument is of an integer type.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> float(ol.grad(lambda x: x**3)(2.0))
    12.0
    >>> float(ol.grad(lambda x: x * ol.grad(lambda y: x * y)(1.0))(2.0))
    4.0
    >>> point = {"a": np.array([1.0, 2.0]), "b": np.array([3.0, 4.0])}
    >>> ol.grad(lambda p: np.sum(p["a"] * p["b"]))(point)
    {'a': array([3., 4.]), 'b': array([1., 2.])}
    """
    check_callable(f, "grad")
    both = value_and_grad(f, argnums)

    @wraps(f)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        return both(*args, **kwargs)[1]

    return gradient


@outside_recompute
@explained_transform
def vjp(f: Callable[..., Any], *args: Any) -> tuple[Any, Callable[[Any], tuple[Any, ...]]]:
    """Return the value of `f` and its pullback, the vector-Jacobian product u -> u'J.

    J is the matrix of all derivatives, dy_i/dx_j; it is never formed. One backward pass computes
    u'J, so the gradient of a number costs about as much as the number, whatever the size of x.

    Parameters
    ----------
    f : callable
        Returns one array, or a container of arrays.
    args
        Arrays, or containers of arrays, of a floating dtype.

    Returns
    -------
    value
        ``f(*args)``.
    pullback : callable
        Takes `u` built like the value; returns a tuple, one gradient an argument. It can be called
        any number of times.

    Raises
    ------
    TypeError, ValueError
        If an argument is of an integer type, or `u` is not built like the value.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> y, pullback = ol.vjp(lambda x: x**2, np.array([1.0, 2.0]))
    >>> pullback(np.array([1.0, 10.0]))
    (array([ 2., 40.]),)
    """
    check_callable(f, "vjp")
    run = Evaluation(f, args, range(len(args)), {})
    value = run.result()

    def pullback(u: Any) -> tuple[Any, ...]:
        given = pytrees.leaves_like(value, u, "what the pullback takes", "the value")
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
        before = run.traced
        try:
            run.traced |= traced and recording.on
            return tuple(run.built(run.pull(seed, retain_graph=True)))
        finally:
            run.traced = before

    return value, pullback


@outside_recompute
@explained_transform
def jvp(f: Callable[..., Any], args: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
    """Return the value of `f` and its Jacobian-vector product Jv, by two backward passes.

    The pullback u -> u'J is linear in u, so the gradient of <u'J, v> with respect to u is Jv.

    Parameters
    ----------
    f : callable
        Returns one array, or a container of arrays.
    args : sequence
        The point of evaluation: arrays, or containers of arrays.
    tangents : sequence
        The direction v: for each argument a tangent that is built like it.

    Returns
    -------
    value
        ``f(*args)``.
    tangent
        Jv, built like the value: its directional derivative along v.

    Raises
    ------
    TypeError, ValueError
        If the tangents are not built like the arguments.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> y, tangent = ol.jvp(lambda x: x**2, (np.array([1.0, 2.0]),), (np.array([1.0, 10.0]),))
    >>> tangent
    array([ 2., 40.])
    """
    check_callable(f, "jvp")
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
        for part in pytrees.leaves_like(x, v, "a tangent", "its argument")
    ]
    run = Evaluation(f, args, range(len(args)), {})
    run.traced |= recording.on and any(getattr(v, "node", None) is not None for v in directions)
    run.gives_tensors |= any(isinstance(v, Tensor) for v in directions)
    # Linear in u, so any u will do, except zeros: a rule may test where a gradient arrives.
    u = Tensor(np.ones_like(run.value.data))
    found = None
    if run.value.node is not None:
        u.node = nodes.InputLeaf(u.shape, u.dtype)
        pulled = backward.backpropagate(
            run.value.node, u, targets=run.nodes, create_graph=True, retain_graph=True
        )
        with grad_mode(True):
            along: Any = sum(
                np.sum(g * v) for g, v in zip(pulled, directions, strict=True) if g is not None
            )
        if isinstance(along, Tensor) and along.node is not None:
            seed = np.ones_like(along.data)
            (found,) = backward.backpropagate(
                along.node,
                Tensor(seed) if run.traced else seed,
                targets=[u.node],
                create_graph=run.traced,
                retain_graph=run.traced,
            )
    tangent = np.zeros_like(u.data) if found is None else found
    return run.result(), run.build_value([run.hand_out(part) for part in run.in_parts(tangent)])


@explained_transform
def hvp(f: Callable[..., Any], x: Any, v: Any) -> Any:
    """Return the Hessian of `f` at `x` times `v`, at the cost of a few gradients.

    Hv is the gradient of <grad f(x), v>; the Hessian itself is never formed.

    Parameters
    ----------
    f : callable
        Its value must be one number.
    x, v : array, or container of arrays
        The point and the direction, built alike.

    Raises
    ------
    TypeError, ValueError
        If the value of `f` is not one number, or `v` is not built like `x`.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> ol.hvp(lambda x: np.sum(x**3), np.array([1.0, 2.0]), np.array([1.0, 1.0]))
    array([ 6., 12.])
    """
    check_callable(f, "hvp")
    directions = pytrees.leaves_like(x, v, "v", "x")
    gradient = grad(f)

    def slope(x: Any) -> Any:
        parts, _ = pytrees.flatten(gradient(x))
        return sum(np.sum(g * v) for g, v in zip(parts, directions, strict=True))

    return grad(slope)(x)
