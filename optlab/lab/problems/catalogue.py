"""The surfaces of the house, in plain NumPy."""

from __future__ import annotations

import math
from typing import Any

from optlab.lab.problems.surface import Surface


def _rosenbrock(x: Any, y: Any) -> Any:
    return (1 - x) ** 2 + 100 * (y - x**2) ** 2


rosenbrock = Surface(
    _rosenbrock,
    name="rosenbrock",
    title="Rosenbrock valley",
    domain=((-2.0, 2.0), (-1.0, 3.0)),
    start=(-0.35, 1.75),
    minima=[(1.0, 1.0)],
    minimum_value=0.0,
    formula=r"(1 - x)^2 + 100 (y - x^2)^2",
    source="H. H. Rosenbrock, An automatic method for finding the greatest or least value of a "
    "function, The Computer Journal 3 (1960)",
    shows="Reaching the curved valley is easy; following its flat floor is not.",
    repeatable=True,
)


def _beale(x: Any, y: Any) -> Any:
    return (1.5 - x + x * y) ** 2 + (2.25 - x + x * y**2) ** 2 + (2.625 - x + x * y**3) ** 2


beale = Surface(
    _beale,
    name="beale",
    title="Beale",
    domain=((-1.5, 4.5), (-3.0, 3.0)),
    start=(1.0, 1.5),
    minima=[(3.0, 0.5)],
    minimum_value=0.0,
    formula=r"(1.5 - x + xy)^2 + (2.25 - x + xy^2)^2 + (2.625 - x + xy^3)^2",
    source="E. M. L. Beale, On an iterative method for finding a local minimum of a function of "
    "more than one variable, Princeton Technical Report 25 (1958)",
    shows="Steep walls beside a flat floor: one rate does not fit both.",
    repeatable=True,
)


def _himmelblau(x: Any, y: Any) -> Any:
    return (x**2 + y - 11) ** 2 + (x + y**2 - 7) ** 2


himmelblau = Surface(
    _himmelblau,
    name="himmelblau",
    title="Himmelblau",
    domain=((-5.0, 5.0), (-5.0, 5.0)),
    start=(0.2, -1.0),
    minima=[
        (3.0, 2.0),
        (-2.805118086952745, 3.131312518250573),
        (-3.779310253377747, -3.283185991286170),
        (3.584428340330492, -1.848126526964404),
    ],
    minimum_value=0.0,
    formula=r"(x^2 + y - 11)^2 + (x + y^2 - 7)^2",
    source="D. M. Himmelblau, Applied Nonlinear Programming (1972)",
    shows="Four equal minima: which one is reached depends on the path.",
    repeatable=True,
)


def quadratic(condition: float = 100.0, angle: float = 0.0) -> Surface:
    r"""Give a long narrow bowl whose curvatures are 1 and `condition`.

    .. math:: \tfrac{1}{2} (u^2 + \kappa v^2)

    with (u, v) the coordinates turned by `angle`. Gradient descent is stable for rates below
    :math:`2 / \kappa`, and then still needs about :math:`\kappa` steps.

    Parameters
    ----------
    condition : float
        The condition number :math:`\kappa`, at least 1.
    angle : float
        In degrees. Rules that scale every coordinate by itself, as Adam does, feel it; gradient
        descent does not.

    Raises
    ------
    ValueError
        If `condition` is below 1 or not finite.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.problems.quadratic(condition=4.0)(1.0, 1.0)
    2.5
    """
    condition, angle = float(condition), float(angle)
    if not 1 <= condition < math.inf:
        raise ValueError(f"a condition number is at least 1; got {condition!r}.")
    cosine, sine = math.cos(math.radians(angle)), math.sin(math.radians(angle))

    def bowl(x: Any, y: Any) -> Any:
        if angle == 0:
            return 0.5 * (x * x + condition * (y * y))
        u, v = cosine * x + sine * y, cosine * y - sine * x
        return 0.5 * (u * u + condition * (v * v))

    start = (-4.0, 1.5)
    return Surface(
        bowl,
        name="quadratic",
        title=f"Narrow bowl, condition {condition:g}" + (f", turned {angle:g}°" if angle else ""),
        domain=((-5.0, 5.0), (-3.0, 3.0)),
        start=(cosine * start[0] - sine * start[1], sine * start[0] + cosine * start[1]),
        minima=[(0.0, 0.0)],
        minimum_value=0.0,
        formula=r"\frac{1}{2} (u^2 + \kappa v^2)",
        source="the standard example, as in B. T. Polyak, Introduction to Optimization (1987)",
        shows="The largest curvature limits the rate, the smallest the speed.",
        repeatable=True,
    )
