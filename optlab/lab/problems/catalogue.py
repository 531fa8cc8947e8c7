"""The built-in surfaces, in plain NumPy."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

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
    r"""Return a long narrow bowl with curvatures 1 and `condition`.

    .. math:: \tfrac{1}{2} (u^2 + \kappa v^2)

    with (u, v) the coordinates rotated by `angle`. Gradient descent is stable for rates below
    :math:`2 / \kappa`, and then still needs about :math:`\kappa` steps.

    Parameters
    ----------
    condition : float
        The condition number :math:`\kappa`, at least 1.
    angle : float
        In degrees. It matters to rules that scale every coordinate separately, such as Adam, and
        not to gradient descent.

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


valley = quadratic(36.0)
valley.name, valley.title = "valley", "Straight valley, curvature 36 : 1"
valley.shows = "One rate for both directions: the steep one limits it, the flat one needs more."


def _round_bowl(x: Any, y: Any) -> Any:
    return 0.5 * (x * x + y * y)


noisy_bowl = Surface(
    _round_bowl,
    name="noisy_bowl",
    title="Round bowl, gradient noise 1",
    domain=((-3.0, 3.0), (-2.5, 2.5)),
    start=(-2.0, 1.5),
    minima=[(0.0, 0.0)],
    minimum_value=0.0,
    formula=r"\tfrac{1}{2} (x^2 + y^2)",
    source="the noisy quadratic model, as in T. Schaul, S. Zhang and Y. LeCun, No more pesky "
    "learning rates (2013)",
    shows="Every gradient has normal noise: a constant rate hovers around the minimum.",
    repeatable=True,
)
noisy_bowl.noise = 1.0


def _rastrigin(x: Any, y: Any) -> Any:
    waves = np.cos(2 * math.pi * x) + np.cos(2 * math.pi * y)
    return 20 + x**2 + y**2 - 10 * waves


rastrigin = Surface(
    _rastrigin,
    name="rastrigin",
    title="Rastrigin",
    domain=((-5.12, 5.12), (-5.12, 5.12)),
    start=(-3.4, 2.7),
    minima=[(0.0, 0.0)],
    minimum_value=0.0,
    formula=r"20 + x^2 + y^2 - 10 (\cos 2 \pi x + \cos 2 \pi y)",
    source="L. A. Rastrigin, Systems of Extremal Control (1974), in the form of H. Muehlenbein, "
    "D. Schomisch and J. Born (1991)",
    shows="A regular grid of local minima: a path stops in the first basin that fits its steps.",
    repeatable=True,
)


def _ackley(x: Any, y: Any) -> Any:
    # The offset makes the root differentiable at the minimum, and changes the value by 2e-7 there.
    distance = np.sqrt(0.5 * (x**2 + y**2) + 1e-14)
    waves = 0.5 * (np.cos(2 * math.pi * x) + np.cos(2 * math.pi * y))
    return 20 + math.e - 20 * np.exp(-0.2 * distance) - np.exp(waves)


ackley = Surface(
    _ackley,
    name="ackley",
    title="Ackley",
    domain=((-5.0, 5.0), (-5.0, 5.0)),
    start=(-3.3, 2.2),
    minima=[(0.0, 0.0)],
    minimum_value=0.0,
    formula=r"20 + e - 20 e^{-0.2 \sqrt{(x^2 + y^2) / 2}} - e^{(\cos 2 \pi x + \cos 2 \pi y) / 2}",
    source="D. H. Ackley, A Connectionist Machine for Genetic Hillclimbing (1987)",
    shows="A nearly flat, rippled plain around one deep funnel.",
    repeatable=True,
)


def _booth(x: Any, y: Any) -> Any:
    return (x + 2 * y - 7) ** 2 + (2 * x + y - 5) ** 2


booth = Surface(
    _booth,
    name="booth",
    title="Booth",
    domain=((-6.0, 8.0), (-6.0, 8.0)),
    start=(-4.0, -2.0),
    minima=[(1.0, 3.0)],
    minimum_value=0.0,
    formula="(x + 2y - 7)^2 + (2x + y - 5)^2",
    source="the collection of M. Jamil and X.-S. Yang, arXiv 1308.4008, no. 17",
    shows="A round bowl, turned by 45 degrees: rules that scale each coordinate cut the corner.",
    repeatable=True,
)


def _matyas(x: Any, y: Any) -> Any:
    return 0.26 * (x**2 + y**2) - 0.48 * x * y


matyas = Surface(
    _matyas,
    name="matyas",
    title="Matyas",
    domain=((-10.0, 10.0), (-10.0, 10.0)),
    start=(-8.0, 3.0),
    minima=[(0.0, 0.0)],
    minimum_value=0.0,
    formula="0.26 (x^2 + y^2) - 0.48 xy",
    source="the collection of M. Jamil and X.-S. Yang, arXiv 1308.4008, no. 71",
    shows="A diagonal valley, so flat along its floor that every small rate gets stuck.",
    repeatable=True,
)


def _styblinski_tang(x: Any, y: Any) -> Any:
    return 0.5 * (x**4 - 16 * x**2 + 5 * x + (y**4 - 16 * y**2 + 5 * y))


_STYBLINSKI_TANG = -2.9035340277711772

styblinski_tang = Surface(
    _styblinski_tang,
    name="styblinski_tang",
    title="Styblinski-Tang",
    domain=((-5.0, 5.0), (-5.0, 5.0)),
    start=(0.5, 3.8),
    minima=[(_STYBLINSKI_TANG, _STYBLINSKI_TANG)],
    formula=r"\tfrac{1}{2} (x^4 - 16x^2 + 5x + y^4 - 16y^2 + 5y)",
    source="M. A. Styblinski and T.-S. Tang, Experiments in nonconvex optimization, Neural "
    "Networks 3 (1990)",
    shows="Four basins of different depth: momentum can carry a path over a ridge.",
    repeatable=True,
)


def _six_hump_camel(x: Any, y: Any) -> Any:
    return (4 - 2.1 * x**2 + x**4 / 3) * x**2 + x * y + (-4 + 4 * y**2) * y**2


six_hump_camel = Surface(
    _six_hump_camel,
    name="six_hump_camel",
    title="Six-hump camel",
    domain=((-2.2, 2.2), (-1.3, 1.3)),
    start=(1.9, 0.9),
    minima=[(0.08984201368301331, -0.7126564032704135), (-0.08984201368301331, 0.7126564032704135)],
    formula=r"(4 - 2.1x^2 + x^4 / 3) x^2 + xy + (-4 + 4y^2) y^2",
    source="L. C. W. Dixon and G. P. Szegoe, The global optimization problem, in Towards Global "
    "Optimisation 2 (1978)",
    shows="Six minima, two of them global: small differences in a path decide between them.",
    repeatable=True,
)


def _monkey_saddle(x: Any, y: Any) -> Any:
    # The fourth-order bowl bounds the function below; near 0 the monkey saddle dominates.
    return x**3 - 3 * x * y**2 + 0.25 * (x**2 + y**2) ** 2


monkey_saddle = Surface(
    _monkey_saddle,
    name="monkey_saddle",
    title="Monkey saddle",
    domain=((-4.2, 4.2), (-4.2, 4.2)),
    start=(0.9, 0.02),
    minima=[(-3.0, 0.0), (1.5, 1.5 * math.sqrt(3)), (1.5, -1.5 * math.sqrt(3))],
    minimum_value=-6.75,
    formula=r"x^3 - 3xy^2 + \tfrac{1}{4} (x^2 + y^2)^2",
    source="the classical saddle with three ways down (D. Hilbert and S. Cohn-Vossen 1932), with a "
    "bowl around it",
    shows="Gradients vanish at the saddle: who leaves it first, and by which of the three ways?",
    repeatable=True,
)


def _cliff(x: Any, y: Any) -> Any:
    # A sigmoid by tanh: flat on both sides, with a drop of 4 between.
    return 2 - 2 * np.tanh(3 * (x - 1)) + 0.1 * y**2 + 0.02 * (x - 3) ** 2


cliff = Surface(
    _cliff,
    name="cliff",
    title="Plateau and cliff",
    domain=((-4.0, 6.0), (-3.5, 3.5)),
    start=(-3.0, 2.2),
    minima=[(3.003607545541452, 0.0)],
    formula=r"2 - 2 \tanh 3(x - 1) + 0.1 y^2 + 0.02 (x - 3)^2",
    source="the exploding gradient at a cliff, as drawn by R. Pascanu, T. Mikolov and Y. Bengio, "
    "On the difficulty of training recurrent neural networks (2013)",
    shows="Almost no slope, then a wall of it: a rate that crosses the plateau is thrown far.",
    repeatable=True,
)


def _parabola(x: Any) -> Any:
    return 2 * x**2


parabola = Surface(
    _parabola,
    name="parabola",
    title="Parabola",
    domain=((-3.0, 3.0),),
    start=(-2.5,),
    minima=[(0.0,)],
    minimum_value=0.0,
    formula="2x^2",
    source="the simplest case; curvature 4, so gradient descent is stable below a rate of 0.5",
    shows="The stability limit: below 2 / curvature it converges, above it swings ever wider.",
    repeatable=True,
)


def _reddi(x: Any) -> Any:
    return (np.sqrt(1 + (x + 1) ** 2) - 1) / 3


reddi = Surface(
    _reddi,
    name="reddi",
    title="A large slope every third step",
    domain=((-4.0, 6.0),),
    start=(0.0,),
    minima=[(-1.0,)],
    minimum_value=0.0,
    formula=r"\tfrac{1}{3} (\sqrt{1 + (x + 1)^2} - 1)",
    source="S. J. Reddi, S. Kale and S. Kumar, On the convergence of Adam and beyond (2018), "
    "section 3 with C = 3: slopes 3, -1, -1 in turn; a smooth bowl in place of the interval "
    "[-1, 1]",
    shows="To the right of the minimum the slopes are about 3, -1, -1 in turn: their mean points "
    "downhill, most of them uphill.",
    repeatable=True,
)
reddi.noise = 8 / 3
reddi.pattern = (1.0, -0.5, -0.5)


def _double_well(x: Any) -> Any:
    return x**4 - 4 * x**2 + 0.6 * x + 5


double_well = Surface(
    _double_well,
    name="double_well",
    title="Double well",
    domain=((-2.4, 2.4),),
    start=(2.2,),
    minima=[(-1.4503191078369881,)],
    formula="x^4 - 4x^2 + 0.6x + 5",
    source="the standard example of a global beside a local minimum",
    shows="Momentum can roll through the nearer, shallower well into the deeper one.",
    repeatable=True,
)


def _ripples(x: Any) -> Any:
    return 0.05 * x**2 + 1 - np.cos(2 * x) * np.exp(-0.02 * x**2)


ripples = Surface(
    _ripples,
    name="ripples",
    title="Ripples",
    domain=((-10.0, 10.0),),
    start=(-8.7,),
    minima=[(0.0,)],
    minimum_value=0.0,
    formula=r"0.05x^2 + 1 - e^{-0.02x^2} \cos 2x",
    source="a bowl with waves, after the one-variable Rastrigin function",
    shows="A small rate rests in the first trough, a large one skips them all.",
    repeatable=True,
)
