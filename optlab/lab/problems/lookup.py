"""Look-up of problems by name or function."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Any

from optlab.lab.problems import catalogue
from optlab.lab.problems.arguments import dimension_of_start
from optlab.lab.problems.formula import looks_like_formula
from optlab.lab.problems.networks import Network, digits_mlp
from optlab.lab.problems.surface import Surface
from optlab.nn import Layer
from optlab.optimizer import Optimizer

Problem = Surface | Network

_SURFACES = (
    catalogue.rosenbrock, catalogue.beale, catalogue.himmelblau, catalogue.rastrigin,
    catalogue.ackley, catalogue.booth, catalogue.matyas, catalogue.styblinski_tang,
    catalogue.six_hump_camel, catalogue.monkey_saddle, catalogue.cliff, catalogue.parabola,
    catalogue.double_well, catalogue.ripples, catalogue.valley, catalogue.noisy_bowl,
    catalogue.reddi,
)  # fmt: skip

#: Problems by name; functions are called without arguments.
NAMED: dict[str, Problem | Callable[[], Problem]] = {
    **{surface.name: surface for surface in _SURFACES},
    "quadratic": catalogue.quadratic,
    "digits_mlp": digits_mlp,
}


def names() -> list[str]:
    """Return the names that `find` knows.

    Examples
    --------
    >>> import optlab as ol
    >>> "rosenbrock" in ol.problems.names()
    True
    """
    return list(NAMED)


def find(problem: Any, start: Any = None) -> Problem:
    """Return the problem for an object, a name, a formula, or a function of your own.

    Parameters
    ----------
    problem : Surface, Network, str or callable
        A problem is returned as it is. A text is the name of one, or a formula of ``x`` and ``y``
        (of ``p[0]`` and ``p[1]``, of ``x`` alone). A function takes two numbers, ``f(x, y)``, or
        one: it is ``f(p)`` of a vector if it maps a vector of two numbers to one number, and
        ``f(x)`` of one number otherwise. It is called to find out.
    start : vector of numbers, optional
        A start; with one of more than two numbers, a function is ``f(p)`` of a vector of that
        length.

    Returns
    -------
    Surface or Network

    Raises
    ------
    ValueError
        If the name is not known (close names are suggested), or the formula is not one.
    TypeError
        If it is none of these.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.problems.find("beale").title
    'Beale'
    >>> ol.problems.find(lambda x, y: x**2 + y**2).dimension
    2
    >>> import numpy as np
    >>> ol.problems.find(lambda p: np.sum((p - 1) ** 2)).dimension
    2
    >>> ol.problems.find(lambda x: (x - 1) ** 2).dimension
    1
    >>> ol.problems.find("(1 - x)**2 + 100*(y - x**2)**2")
    <Surface '(1 - x)**2 + 100*(y - x**2)**2', start (-2, 2)>
    """
    if isinstance(problem, (Surface, Network)):
        return problem
    if isinstance(problem, str):
        if not problem.strip():
            raise ValueError(
                'the problem is an empty text; write a formula such as "x**2 + 3*y**2", or a name: '
                f"{', '.join(NAMED)}."
            )
        known = NAMED.get(problem.lower().replace("-", "_").replace(" ", "_"))
        if known is None and looks_like_formula(problem):
            return Surface(problem)
        if known is None:
            close = difflib.get_close_matches(problem.lower(), list(NAMED), 1)
            hint = f" Did you mean {close[0]!r}?" if close else ""
            raise ValueError(
                f"there is no problem named {problem!r}; there are {', '.join(NAMED)}.{hint} (A "
                'formula is written "x**2 + 3*y**2".)'
            )
        return known if isinstance(known, (Surface, Network)) else known()
    if any(problem is known for known in NAMED.values()):
        return problem()  # type: ignore[no-any-return]
    if isinstance(problem, Layer):
        kind = type(problem).__name__
        raise TypeError(
            f"a network of your own ({kind}) is no problem yet: a problem also says what is "
            "learnt, and begins anew for each run. Write ol.problems.Network("
            f"lambda: {kind}(...), data, name=..., title=...), where data() gives an "
            "ol.data.Data(train_x, train_y, test_x, test_y), y being class labels; or train it in "
            "a loop of your own, inside `with ol.record(optimizer) as trace:`."
        )
    if isinstance(problem, Optimizer):
        raise TypeError(
            f'the problem comes first, then the optimizers: ("rosenbrock", {{'
            f"{type(problem).__name__!r}: ...}}); got {type(problem).__name__} as the problem."
        )
    if callable(problem):
        return Surface(problem, start=start if dimension_of_start(problem, start) else None)
    raise TypeError(
        "a problem is an object from optlab.problems, its name as text, or a function f(x, y) (or "
        'f(p) of a vector, or a formula as text, "x**2 + 3*y**2"); got '
        f"{problem!r} of type {type(problem).__name__}."
    )
