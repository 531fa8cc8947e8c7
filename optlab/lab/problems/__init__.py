"""Problems for optimizers: surfaces over the plane, and real networks.

Wherever a problem is expected, these are accepted: an object of this package, its name, a
formula as text (``"x**2 + 3*y**2"``), or a function of your own in plain NumPy: ``f(x, y)``,
``f(p)`` of a vector, or ``f(x)`` of one number.
"""

from optlab.backend.namespaces import missing as _missing
from optlab.backend.namespaces import set_module as _set_module
from optlab.lab.problems.catalogue import (
    ackley,
    beale,
    booth,
    cliff,
    double_well,
    himmelblau,
    matyas,
    monkey_saddle,
    noisy_bowl,
    parabola,
    quadratic,
    rastrigin,
    reddi,
    ripples,
    rosenbrock,
    six_hump_camel,
    styblinski_tang,
    valley,
)  # fmt: skip
from optlab.lab.problems.lookup import find, names
from optlab.lab.problems.networks import Network, digits_mlp
from optlab.lab.problems.noise import noisy
from optlab.lab.problems.surface import Surface

__all__ = [
    "Network", "Surface", "ackley", "beale", "booth", "cliff", "digits_mlp", "double_well", "find",
    "himmelblau", "matyas", "monkey_saddle", "names", "noisy", "noisy_bowl", "parabola",
    "quadratic", "rastrigin", "reddi", "ripples", "rosenbrock", "six_hump_camel",
    "styblinski_tang", "valley",
]  # fmt: skip

_set_module(__name__)


def __getattr__(name: str) -> object:
    raise _missing("optlab.lab.problems", name, __all__)


def __dir__() -> list[str]:
    return __all__
