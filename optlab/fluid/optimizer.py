"""Optimizers under the names and arguments of ``paddle.fluid.optimizer`` 1.8.5.

Each is a thin subclass of its modern counterpart in `optlab.optimizer`. Its arguments are called
``parameter_list`` and ``regularization`` (``parameters`` and ``weight_decay`` work as well), and
`minimize` takes a ``grad_clip``. Three use another formula, that of their documentation:
`AdamOptimizer`, `LambOptimizer` and `LarsMomentumOptimizer`.
"""

from __future__ import annotations

import inspect
from typing import Any, ClassVar

from optlab import optimizer as modern
from optlab.fluid.instead import no_such_name
from optlab.fluid.methods import OldMethods
from optlab.fluid.wrappers import (
    ExponentialMovingAverage,
    LookaheadOptimizer,
    ModelAverage,
    PipelineOptimizer,
    RecomputeOptimizer,
)
from optlab.nn.clip import ClipGradByNorm
from optlab.optimizer.rule.hyperparameters import REQUIRED, by_name
from optlab.optimizer.rule.traced import square_root

#: Names of the common arguments in 1.8.5.
OLD_NAMES = {"parameters": "parameter_list", "weight_decay": "regularization"}


class Fluid(OldMethods):
    """Base class of the optimizers of 1.8.5, with its argument names."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        modern_one: inspect.Signature | None = getattr(cls, "__signature__", None)
        if modern_one is not None:
            cls.__signature__ = modern_one.replace(  # type: ignore[attr-defined]
                parameters=[
                    one.replace(name=OLD_NAMES.get(one.name, one.name))
                    for one in modern_one.parameters.values()
                ]
            )

    def __init__(self, *values: Any, **named: Any) -> None:
        for new, old in OLD_NAMES.items():
            if old in named:
                if new in named:
                    raise TypeError(
                        f"{type(self).__name__} got {old} and {new}, which are the same; give one."
                    )
                named[new] = named.pop(old)
        super().__init__(*values, **named)


class SGDOptimizer(Fluid, modern.SGD):
    """`optlab.optimizer.SGD` with the arguments of 1.8.5.

    Examples
    --------
    >>> import optlab as ol
    >>> w = ol.Parameter([1.0])
    >>> optimizer = ol.fluid.optimizer.SGDOptimizer(
    ...     0.1, parameter_list=[w], regularization=ol.regularizer.L2Decay(0.5)
    ... )
    >>> optimizer.minimize((3 * w).sum())
    ([], <1 (parameter, gradient) pair>)
    """

    positional: ClassVar[tuple[str, ...]] = ("learning_rate", "weight_decay", "name")

    hyperparameters: ClassVar[dict[str, Any]] = {"learning_rate": REQUIRED}


class MomentumOptimizer(Fluid, modern.Momentum):
    """`optlab.optimizer.Momentum` with the arguments of 1.8.5."""

    positional: ClassVar[tuple[str, ...]] = (
        "learning_rate",
        "momentum",
        "use_nesterov",
        "weight_decay",
        "name",
    )

    hyperparameters: ClassVar[dict[str, Any]] = {
        **modern.Momentum.hyperparameters,
        "learning_rate": REQUIRED,
        "momentum": REQUIRED,
    }


class AdagradOptimizer(Fluid, modern.Adagrad):
    """`optlab.optimizer.Adagrad` with the arguments of 1.8.5."""

    positional: ClassVar[tuple[str, ...]] = (
        "learning_rate",
        "epsilon",
        "weight_decay",
        "name",
        "initial_accumulator_value",
    )


class DecayedAdagradOptimizer(Fluid, modern.DecayedAdagrad):
    """`optlab.optimizer.DecayedAdagrad` with the arguments of 1.8.5."""

    positional: ClassVar[tuple[str, ...]] = (
        "learning_rate",
        "decay",
        "epsilon",
        "weight_decay",
        "name",
    )


class AdadeltaOptimizer(Fluid, modern.Adadelta):
    """`optlab.optimizer.Adadelta` with the arguments of 1.8.5.

    1.8.5 ignored the rate, and used the mean of steps after the step; this follows the paper.
    """

    positional: ClassVar[tuple[str, ...]] = (
        "learning_rate",
        "epsilon",
        "rho",
        "weight_decay",
        "name",
    )

    hyperparameters: ClassVar[dict[str, Any]] = {
        **modern.Adadelta.hyperparameters,
        "learning_rate": REQUIRED,
    }


class AdamOptimizer(Fluid, modern.Adam):
    r"""Adam by the formula in the documentation of 1.8.5: epsilon is not corrected.

    .. math::
        p \leftarrow p - \eta \frac{\sqrt{1 - \beta_2^t}}{1 - \beta_1^t}
            \frac{m}{\sqrt{v} + \epsilon}

    Notes
    -----
    Source: Kingma and Ba 2015, arXiv 1412.6980, the end of section 2. `optlab.optimizer.Adam`
    corrects v before epsilon is added; at an epsilon of 0.1 the paths differ visibly.

    Examples
    --------
    >>> import optlab as ol
    >>> w = ol.Parameter([1.0])
    >>> optimizer = ol.fluid.optimizer.AdamOptimizer(
    ...     0.1, beta2=0.75, epsilon=0.5, parameter_list=[w]
    ... )
    >>> w.sum().backward()
    >>> optimizer.step()  # 0.1 * 0.5 / 0.1 * 0.1 / (0.5 + 0.5)
    >>> w.numpy()
    array([0.95], dtype=float32)
    """

    positional: ClassVar[tuple[str, ...]] = (
        "learning_rate",
        "beta1",
        "beta2",
        "epsilon",
        "weight_decay",
        "name",
        "lazy_mode",
    )

    def scalars(self, t: int, h: Any) -> dict[str, float]:
        """Return one correction for both moments, and none for the root."""
        corrected = square_root(1 - h.beta2**t) / (1 - h.beta1**t)
        return {"rate": h.learning_rate * corrected, "root": 1.0}


class AdamaxOptimizer(Fluid, modern.Adamax):
    """`optlab.optimizer.Adamax` with the arguments of 1.8.5."""

    positional: ClassVar[tuple[str, ...]] = (
        "learning_rate",
        "beta1",
        "beta2",
        "epsilon",
        "weight_decay",
        "name",
    )


class RMSPropOptimizer(Fluid, modern.RMSProp):
    """`optlab.optimizer.RMSProp` with the arguments of 1.8.5."""

    positional: ClassVar[tuple[str, ...]] = (
        "learning_rate",
        "rho",
        "epsilon",
        "momentum",
        "centered",
        "weight_decay",
        "name",
    )


class FtrlOptimizer(Fluid, modern.Ftrl):
    """`optlab.optimizer.Ftrl` with the arguments of 1.8.5, which passed l1 on as l2 as well."""

    positional: ClassVar[tuple[str, ...]] = (
        "learning_rate",
        "l1",
        "l2",
        "lr_power",
        "weight_decay",
        "name",
    )


class LambOptimizer(Fluid, modern.Lamb):
    r"""LAMB by the formula in the documentation of 1.8.5: moments are not corrected.

    .. math::
        r &= \frac{m}{\sqrt{v} + \epsilon} + \lambda p \\
        p &\leftarrow p - \eta \frac{\lVert p \rVert}{\lVert r \rVert} r

    The ratio of norms is always used, even for parameters without decay: `always_adapt`, which
    1.8.5 did not have, has no effect.

    Examples
    --------
    >>> import optlab as ol
    >>> w = ol.Parameter([3.0, 4.0])
    >>> optimizer = ol.fluid.optimizer.LambOptimizer(0.1, 0.0, parameter_list=[w])
    >>> w.sum().backward()
    >>> optimizer.step()  # 0.1 * 5 along (1, 1) / sqrt(2)
    >>> w.numpy().round(3)
    array([2.646, 3.646], dtype=float32)
    """

    positional: ClassVar[tuple[str, ...]] = (
        "learning_rate",
        "lamb_weight_decay",
        "beta1",
        "beta2",
        "epsilon",
        "weight_decay",
        "exclude_from_weight_decay_fn",
        "name",
    )

    def scalars(self, t: int, h: Any) -> dict[str, Any]:
        """Return no corrections, and a flag that norms are used."""
        return {"moment": 1.0, "root": 1.0, "adapts": True}


class LarsMomentumOptimizer(Fluid, modern.LarsMomentum):
    """`optlab.optimizer.LarsMomentum` as in 1.8.5: with the norm ratio even without decay."""

    positional: ClassVar[tuple[str, ...]] = (
        "learning_rate",
        "momentum",
        "lars_coeff",
        "lars_weight_decay",
        "weight_decay",
        "name",
    )

    def scalars(self, t: int, h: Any) -> dict[str, Any]:
        """Return a flag that the norm ratio is used."""
        return {"adapts": True}


class DGCMomentumOptimizer(Fluid, modern.DGCMomentum):
    """`optlab.optimizer.DGCMomentum` with the arguments of 1.8.5.

    `local_grad_clip_norm` is the limit c of ``grad_clip=ClipGradByNorm(c)``.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.fluid.optimizer.DGCMomentumOptimizer(
    ...     learning_rate=0.0001, momentum=0.9, rampup_step=1000, rampup_begin_step=1252,
    ...     sparsity=[0.999, 0.999]
    ... ).sparsity_at(1252)
    0.999
    """

    positional: ClassVar[tuple[str, ...]] = (
        "learning_rate",
        "momentum",
        "rampup_begin_step",
        "rampup_step",
        "sparsity",
        "use_nesterov",
        "local_grad_clip_norm",
        "num_trainers",
        "weight_decay",
        "name",
    )

    hyperparameters: ClassVar[dict[str, Any]] = {
        **modern.DGCMomentum.hyperparameters,
        "local_grad_clip_norm": None,
    }

    def __init__(self, *values: Any, **named: Any) -> None:
        for new, old in OLD_NAMES.items():
            if old in named and new not in named:
                named[new] = named.pop(old)
        named = by_name(type(self), values, named)
        limit = named.get("local_grad_clip_norm")
        if limit is not None:
            if named.get("grad_clip") is not None:
                raise TypeError("give local_grad_clip_norm or grad_clip, which are the same.")
            named["grad_clip"] = ClipGradByNorm(limit)
        super().__init__(**named)


class DpsgdOptimizer(Fluid, modern.Dpsgd):
    """`optlab.optimizer.Dpsgd` with the arguments of 1.8.5."""


SGD = SGDOptimizer
Momentum = MomentumOptimizer
Adagrad = AdagradOptimizer
DecayedAdagrad = DecayedAdagradOptimizer
Adadelta = AdadeltaOptimizer
Adam = AdamOptimizer
Adamax = AdamaxOptimizer
RMSProp = RMSPropOptimizer
Ftrl = FtrlOptimizer
Lamb = LambOptimizer
LarsMomentum = LarsMomentumOptimizer
DGCMomentum = DGCMomentumOptimizer
Dpsgd = DpsgdOptimizer
LookAhead = LookAheadOptimizer = LookaheadOptimizer
ModelAverageOptimizer = ModelAverage
ExponentialMovingAverageOptimizer = ExponentialMovingAverage
Recompute = RecomputeOptimizer

__all__ = [
    "SGD",
    "Adadelta",
    "AdadeltaOptimizer",
    "Adagrad",
    "AdagradOptimizer",
    "Adam",
    "AdamOptimizer",
    "Adamax",
    "AdamaxOptimizer",
    "DGCMomentum",
    "DGCMomentumOptimizer",
    "DecayedAdagrad",
    "DecayedAdagradOptimizer",
    "Dpsgd",
    "DpsgdOptimizer",
    "ExponentialMovingAverage",
    "ExponentialMovingAverageOptimizer",
    "Ftrl",
    "FtrlOptimizer",
    "Lamb",
    "LambOptimizer",
    "LarsMomentum",
    "LarsMomentumOptimizer",
    "LookAhead",
    "LookAheadOptimizer",
    "LookaheadOptimizer",
    "ModelAverage",
    "ModelAverageOptimizer",
    "Momentum",
    "MomentumOptimizer",
    "PipelineOptimizer",
    "RMSProp",
    "RMSPropOptimizer",
    "Recompute",
    "RecomputeOptimizer",
    "SGDOptimizer",
]


def __getattr__(name: str) -> object:
    raise no_such_name("optlab.fluid.optimizer", name, __all__, {})


def __dir__() -> list[str]:
    return __all__
