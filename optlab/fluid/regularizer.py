"""Regularizers under the names and arguments of ``paddle.fluid.regularizer`` 1.8.5."""

from __future__ import annotations

from optlab.fluid.instead import no_such_name
from optlab.optimizer import regularizer as modern

__all__ = ["L1Decay", "L1DecayRegularizer", "L2Decay", "L2DecayRegularizer"]


class L1DecayRegularizer(modern.L1Decay):
    """`optlab.regularizer.L1Decay` under its old name.

    Parameters
    ----------
    regularization_coeff : float
        The factor of the penalty.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.fluid.regularizer.L1Decay(regularization_coeff=0.1)
    L1DecayRegularizer(0.1)
    """

    def __init__(self, regularization_coeff: float = 0.0) -> None:
        super().__init__(regularization_coeff)


class L2DecayRegularizer(modern.L2Decay):
    """`optlab.regularizer.L2Decay` under its old name.

    Parameters
    ----------
    regularization_coeff : float
        The factor of the penalty.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.fluid.regularizer.L2Decay(0.1)
    L2DecayRegularizer(0.1)
    """

    def __init__(self, regularization_coeff: float = 0.0) -> None:
        super().__init__(regularization_coeff)


L1Decay = L1DecayRegularizer
L2Decay = L2DecayRegularizer


def __getattr__(name: str) -> object:
    raise no_such_name("optlab.fluid.regularizer", name, __all__, {})


def __dir__() -> list[str]:
    return __all__
