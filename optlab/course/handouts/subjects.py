"""Which optimizers have a handout, how each runs for its picture, and which code is its rule."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from optlab import optimizer as ol
from optlab.lab.problems import noisy
from optlab.optimizer.quasi_newton.history import History


@dataclass(frozen=True)
class Subject:
    """An optimizer with a handout.

    Attributes
    ----------
    cls : type
        The optimizer's class, or that of an average.
    make : callable
        Return the optimizer that runs for the picture.
    rule : tuple of callables
        The functions that are its rule: their sources are the code on the page.
    ranks : int
        The simulated ranks on which it runs for the picture, of an optimizer that needs several.
    problem, steps : str or Surface, int
        The surface of the picture, and how many steps are taken on it.
    note : str
        A sentence under the picture. Where SGD ends lower, it says so and why.
    """

    cls: Any
    make: Callable[[], Any]
    rule: tuple[Callable[..., Any], ...] = ()
    ranks: int = 1
    problem: Any = "valley"
    steps: int = 60
    note: str = ""

    @property
    def name(self) -> str:
        """The name of the class."""
        return str(self.cls.__name__)

    @property
    def summary(self) -> str:
        """The first paragraph of the docstring, without its markup."""
        text = inspect.cleandoc(self.cls.__doc__ or "").split("\n\n")[0]
        for markup, plain in {":math:": "", "``": "", "`": "", r"\beta_1": "β₁"}.items():
            text = text.replace(markup, plain)
        return " ".join(text.split())

    @property
    def call(self) -> str:
        """How the optimizer is made, with the defaults that are its own."""
        shared = {"parameters", "grad_clip", "multi_precision", "name", "not_finite"}
        own = [
            parameter.replace(annotation=inspect.Parameter.empty)
            for parameter in inspect.signature(self.cls).parameters.values()
            if parameter.name not in shared
        ]
        if not issubclass(self.cls, (ol.AdamW, ol.Lion, ol.Muon)):
            own = [parameter for parameter in own if parameter.name != "weight_decay"]
        listed = ", ".join(str(parameter) for parameter in own)
        return f"ol.optimizer.{self.name}({listed})"

    @property
    def code(self) -> str:
        """The source of the rule."""
        functions = self.rule or (self.cls.update,)
        return "\n\n".join(
            textwrap.dedent(inspect.getsource(function)).rstrip() for function in functions
        )


def _sgd() -> Any:
    return ol.SGD(0.03)


def _cosine(rate: float) -> Any:
    """Return a rate that falls to zero over the steps of the picture."""
    return ol.lr.CosineAnnealingDecay(rate, 60)


_EMA, _MEAN = ol.ExponentialMovingAverage, ol.ModelAverage
_LENGTH = (
    "The rate falls to zero (cosine): at a constant one the steps keep their length to the end."
)
_WITH_NOISE: Any = {
    "problem": noisy("valley", 2.0),
    "steps": 100,
    "note": "The gradients are noisy: SGD at the same rate wanders around the minimum, the average "
    "less.",
}

_ALL = [
    Subject(ol.SGD, _sgd),
    Subject(ol.Momentum, lambda: ol.Momentum(0.01, 0.9)),
    Subject(ol.Adagrad, lambda: ol.Adagrad(1.0)),
    Subject(ol.DecayedAdagrad, lambda: ol.DecayedAdagrad(0.1)),
    Subject(ol.Adadelta, lambda: ol.Adadelta(100.0)),
    Subject(ol.RMSProp, lambda: ol.RMSProp(0.1)),
    Subject(ol.Rprop, lambda: ol.Rprop(0.05)),
    Subject(ol.Adam, lambda: ol.Adam(0.2)),
    Subject(ol.AdamW, lambda: ol.AdamW(0.2)),
    Subject(ol.Adamax, lambda: ol.Adamax(0.2)),
    Subject(ol.NAdam, lambda: ol.NAdam(0.2)),
    Subject(
        ol.RAdam,
        lambda: ol.RAdam(0.08),
        note="The first five steps are those of momentum alone, so the steep direction bounds the "
        "rate, as it does SGD's. On this valley, at that rate, it ends above SGD.",
    ),
    Subject(ol.Lion, lambda: ol.Lion(_cosine(0.3)), note=_LENGTH),
    Subject(ol.Lamb, lambda: ol.Lamb(0.05)),
    Subject(ol.LarsMomentum, lambda: ol.LarsMomentum(1.0, 0.9, lars_coeff=0.01)),
    Subject(ol.Ftrl, lambda: ol.Ftrl(1.0)),
    Subject(ol.ASGD, lambda: ol.ASGD(0.03, batch_num=2)),
    Subject(ol.Dpsgd, lambda: ol.Dpsgd(0.1, clip=1.0, batch_size=16.0, sigma=1.0)),
    Subject(ol.Muon, lambda: ol.Muon(_cosine(0.3)), note=_LENGTH),
    Subject(ol.DGCMomentum, lambda: ol.DGCMomentum(0.01, 0.9, 10, sparsity=[0.5]), ranks=2),
    Subject(ol.LBFGS, lambda: ol.LBFGS(line_search_fn="strong_wolfe"), (History.newton_direction,)),
    Subject(
        ol.SAM,
        lambda: ol.SAM(_sgd(), rho=0.1),
        (ol.SAM._ascents,),
        note="Two gradients a step: of as many gradients it makes half of the steps. It swings "
        "across the floor, about rho wide, and this valley has no flatter place to find. It ends "
        "above SGD.",
    ),
    Subject(
        ol.LookAhead,
        lambda: ol.LookAhead(ol.Momentum(0.01, 0.9), alpha=0.5, k=5),
        (ol.LookAhead._moved, ol.LookAhead._after),
    ),
    Subject(
        _EMA,
        lambda: _EMA.around(_sgd(), 0.9),
        (_EMA._next_memory, _EMA._average),
        **_WITH_NOISE,
    ),
    Subject(
        _MEAN,
        lambda: _MEAN.around(_sgd(), 0.5, min_average_window=5, max_average_window=20),
        (_MEAN._next_memory, _MEAN._average),
        **_WITH_NOISE,
    ),
]

SUBJECTS = {subject.name: subject for subject in _ALL}
"""Every optimizer that has a rule of its own, by name.

`PipelineOptimizer`, `RecomputeOptimizer` and `Averaged` have none: they change how a step is
computed, or carry an average.
"""
