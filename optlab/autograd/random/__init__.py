"""NumPy's random distributions, sampled from keys: ``optlab.numpy.random``.

Every function draws from the next random key (`optlab.seed`, `optlab.random_scope`), so one seed
makes a program reproducible to the bit. For arrays and numbers it returns what NumPy returns. For a
Tensor among the parameters it returns a Tensor, differentiable where its docstring states it; the
tape then saves the key, not the noise.

Classes such as ``Generator`` and ``RandomState`` and the function ``default_rng`` are NumPy's: they
have their own state, are not controlled by `optlab.seed`, and do not support Tensors.

Examples
--------
>>> import optlab as ol
>>> import optlab.numpy as np
>>> ol.seed(0)
>>> scale = ol.to_tensor(2.0, requires_grad=True)
>>> noise = np.random.normal(0.0, scale, size=3)
>>> noise.backward()
>>> bool(abs(scale.grad - noise.sum() / 2) < 1e-6)
True
"""

from __future__ import annotations

from typing import Any

from optlab.autograd.random.continuous import (
    exponential,
    gumbel,
    laplace,
    logistic,
    lognormal,
    multivariate_normal,
    normal,
    pareto,
    power,
    rayleigh,
    standard_cauchy,
    standard_exponential,
    standard_normal,
    triangular,
    uniform,
    vonmises,
    wald,
    weibull,
)
from optlab.autograd.random.discrete import (
    binomial,
    geometric,
    hypergeometric,
    integers,
    logseries,
    multinomial,
    multivariate_hypergeometric,
    negative_binomial,
    poisson,
    randint,
    zipf,
)
from optlab.autograd.random.gammas import (
    beta,
    chisquare,
    dirichlet,
    f,
    gamma,
    noncentral_chisquare,
    noncentral_f,
    standard_gamma,
    standard_t,
)
from optlab.autograd.random.sequences import (
    choice,
    permutation,
    rand,
    randn,
    random,
    random_sample,
    ranf,
    sample,
    seed,
    shuffle,
)

__all__ = [
    "beta", "binomial", "chisquare", "choice", "dirichlet", "exponential", "f", "gamma",
    "geometric", "gumbel", "hypergeometric", "integers", "laplace", "logistic", "lognormal",
    "logseries", "multinomial", "multivariate_hypergeometric", "multivariate_normal",
    "negative_binomial", "noncentral_chisquare", "noncentral_f", "normal", "pareto", "permutation",
    "poisson", "power", "rand", "randint", "randn", "random", "random_sample", "ranf", "rayleigh",
    "sample", "seed", "shuffle", "standard_cauchy", "standard_exponential", "standard_gamma",
    "standard_normal", "standard_t", "triangular", "uniform", "vonmises", "wald", "weibull", "zipf",
]  # fmt: skip

#: NumPy's functions that have no meaning with keys, and what to write instead.
_REFUSED = {
    "bytes": "default_rng(seed).bytes(n)",
    "get_state": "optlab.seed(n) or optlab.random_scope(...): keys have no state to keep",
    "set_state": "optlab.seed(n) or optlab.random_scope(...): keys have no state to set",
    "get_bit_generator": "optlab.seed(n) or default_rng(seed)",
    "set_bit_generator": "optlab.seed(n) or default_rng(seed)",
    "random_integers": "randint(low, high + 1, size)",
}


def __getattr__(name: str) -> Any:
    if name in _REFUSED:

        def refused(*args: Any, **kwargs: Any) -> Any:
            raise TypeError(f"random.{name} is not covered. Use {_REFUSED[name]}.")

        refused.__name__ = name
        return refused
    import numpy.random

    if name == "default_rng" or isinstance(getattr(numpy.random, name, None), type):
        return getattr(numpy.random, name)
    raise AttributeError(f"optlab.numpy.random has no {name!r}; dir() lists what it has.")


def __dir__() -> list[str]:
    return __all__
