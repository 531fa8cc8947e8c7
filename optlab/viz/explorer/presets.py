"""Presets: races that make one point each, as a claim that their own numbers prove."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from optlab.optimizer import Adam
from optlab.viz.style.geometry import Floats


class AdamWithoutCorrection(Adam):
    """Adam without bias correction of the moments, which start at zero."""

    def scalars(self, t: int, h: Any) -> dict[str, float]:
        """Return the learning rate itself, without Adam's corrections."""
        return {"rate": h.learning_rate, "root": 1.0}


@dataclass(frozen=True)
class ShownRun:
    """One optimizer's run at the rate that is shown.

    Attributes
    ----------
    rate : float
    loss : array (steps + 1,)
        Before every step and after the last; NaN after a run has ended.
    path : array (steps + 1, dimension)
    update : array (steps, dimension)
    """

    rate: float
    loss: Floats
    path: Floats
    update: Floats

    def settled(self, level: float) -> int:
        """Return the step from which on the loss stays below a level; steps + 1 if it never does.

        Examples
        --------
        >>> loss = np.array([9.0, 0.5, 2.0, 0.4, 0.3])
        >>> ShownRun(0.1, loss, np.zeros((5, 1)), np.zeros((4, 1))).settled(1.0)
        3
        """
        return _settled(self.loss, level)

    def coordinate_settled(self, coordinate: int, level: float) -> int:
        """Return the step from which on a coordinate stays within a distance of 0."""
        return _settled(np.abs(self.path[:, coordinate]), level)

    def crossings(self, coordinate: int) -> int:
        """Return how often a coordinate changes its sign."""
        signs = np.sign(self.path[:, coordinate])
        return int((signs[1:] * signs[:-1] < 0).sum())

    def lengths(self) -> Floats:
        """Return the length of every update."""
        found: Floats = np.linalg.norm(self.update, axis=1)
        return found


def _settled(values: Floats, level: float) -> int:
    above = np.flatnonzero(~(values < level))
    return int(above[-1]) + 1 if len(above) else 0


Shown = Mapping[str, ShownRun]
"""The runs of a race as they are shown, by the names of the optimizers."""


@dataclass(frozen=True)
class Preset:
    """One race that makes one point.

    Attributes
    ----------
    short : str
        Its name on a button.
    claim : str
        What is to be seen, in one or two sentences that `holds` proves.
    holds : callable
        Maps the runs that are shown, `ShownRun` by name, to whether the claim is true of them. It
        is asked again after a change, so that a page can mute a claim that no longer holds.
    problem, start, steps, seed, mode, equal_rate, selected, step, slot, coordinate
        As in `State`.
    optimizers : dict of str to (class, settings)
    rates : dict of str to float
        The rates of mode "custom".
    around : dict of str to dict
        The wrappers, as in `Entry`.
    parts : tuple of (str, int, int)
        Names of parts of the run, with their first and last steps, written over the losses.
    """

    short: str
    claim: str
    holds: Callable[[Shown], bool]
    problem: str
    optimizers: dict[str, tuple[str, dict[str, Any]]]
    selected: str
    start: tuple[float, ...] | None = None
    steps: int = 300
    seed: int = 0
    mode: str = "custom"
    equal_rate: float | None = None
    rates: dict[str, float] = field(default_factory=dict)
    around: dict[str, dict[str, Any]] = field(default_factory=dict)
    step: int = 34
    slot: str = ""
    coordinate: int = 0
    parts: tuple[tuple[str, int, int], ...] = ()

    @property
    def says(self) -> str:
        """The claim, under the name that pages have for it."""
        return self.claim

    def is_true_of(self, shown: Shown) -> bool:
        """Return whether the claim holds for runs, False if one that it speaks of is missing.

        Examples
        --------
        >>> PRESETS["stability limit"].is_true_of({})
        False
        """
        if not self.optimizers.keys() <= shown.keys():
            return False
        with np.errstate(all="ignore"):
            return bool(self.holds(shown))


FOUR: dict[str, tuple[str, dict[str, Any]]] = {
    "SGD": ("SGD", {}),
    "Momentum": ("Momentum", {}),
    "RMSProp": ("RMSProp", {}),
    "Adam": ("Adam", {}),
}


# What the claims say of the numbers; those that name a number compare with that number. -----------


def _fall_then_floor(shown: Shown) -> bool:
    return all(
        30 <= run.settled(4.0) <= 40 and len(run.loss) > 300 and run.loss[300] > 0.1
        for run in shown.values()
    )


def _crosses_at_every_step(shown: Shown) -> bool:
    large, small = shown["large rate"], shown["small rate"]
    crosses = np.all(large.path[1:41, 1] * large.path[:40, 1] < 0)
    slower = small.settled(0.1) / large.settled(0.1)
    return bool(crosses) and small.crossings(1) == 0 and 4.5 < slower < 5.5


def _one_rate_for_both(shown: Shown) -> bool:
    [run] = shown.values()
    across, along = (run.coordinate_settled(i, abs(run.path[0, i]) / 1000) for i in (1, 0))
    return (across, along) == (6, 342)


def _remembers(shown: Shown) -> bool:
    momentum, plain = shown["Momentum"], shown["SGD"]
    faster = plain.settled(0.1) / momentum.settled(0.1)
    same = momentum.rate == plain.rate
    return same and 3.5 < faster < 4.5 and plain.crossings(0) == 0 < momentum.crossings(0)


def _waits_at_the_saddle(shown: Shown) -> bool:
    waits = {name: (np.linalg.norm(run.path, axis=1) < 0.3).sum() for name, run in shown.items()}
    arrives = shown["SGD"].loss[-1] < -6
    return 270 < waits["SGD"] < 300 and waits["RMSProp"] == 0 and bool(arrives)


def _too_long_at_first(shown: Shown) -> bool:
    corrected, uncorrected = shown["Adam"], shown["uncorrected"]
    ratios = uncorrected.lengths()[:5] / corrected.lengths()[:5]
    past = uncorrected.path[:, 0].max() / corrected.path[:, 0].max()
    return bool(abs(ratios[0] - np.sqrt(10)) < 0.01 and ratios.max() < 4.5 and past > 2)


def _limit(shown: Shown) -> bool:
    below, at, above = (shown[name] for name in ("below", "at the limit", "above"))
    rates = below.rate < at.rate == 0.5 < above.rate
    ends = below.loss[-1] < 1e-3 and above.loss[-1] > 10 * above.loss[0]
    return bool(rates and ends and np.all(at.loss == at.loss[0]))


def _hovers(shown: Shown) -> bool:
    large, small = shown["large rate"], shown["small rate"]
    lower = large.loss[-300:].mean() / small.loss[-300:].mean()
    first = [int(np.argmax(run.loss < 0.1)) for run in (large, small)]
    arrived = all(step > 0 for step in first)
    return bool(arrived and 5 < lower < 20 and 8 < first[1] / first[0] < 12)


def _damps(shown: Shown) -> bool:
    return (shown["LookAhead"].settled(0.1), shown["Momentum"].settled(0.1)) == (22, 57)


def _walks_uphill(shown: Shown) -> bool:
    adam, amsgrad = shown["Adam"], shown["AMSGrad"]
    away = np.all(np.diff(adam.path[::3, 0]) > 0) and adam.loss[-1] > 4 * adam.loss[0]
    arrives = np.abs(amsgrad.path[-30:, 0] + 1).max() < 0.15
    return bool(adam.rate == amsgrad.rate and away and arrives)


PRESETS: dict[str, Preset] = {
    "narrow valley": Preset(
        short="valley",
        claim="Falling into the valley takes 40 steps. Its flat floor takes all the rest.",
        holds=_fall_then_floor,
        problem="rosenbrock",
        optimizers={"Momentum": ("Momentum", {}), "Adam": ("Adam", {})},
        rates={"Momentum": 0.0002, "Adam": 0.2},
        selected="Adam",
        step=34,
        slot="moment1",
        parts=(("fall", 0, 40), ("floor", 40, 300)),
    ),
    "oscillation": Preset(
        short="oscillation",
        claim="A large rate crosses the valley at every step. A fifth of it never does, and "
        "takes five times as long.",
        holds=_crosses_at_every_step,
        problem="valley",
        optimizers={"large rate": ("SGD", {}), "small rate": ("SGD", {})},
        rates={"large rate": 0.05, "small rate": 0.01},
        selected="large rate",
        steps=300,
        step=12,
        coordinate=1,
    ),
    "conditioning": Preset(
        short="conditioning",
        claim="One rate for both directions: across the valley, 36 times as curved, it needs 6 "
        "steps; along it, 342.",
        holds=_one_rate_for_both,
        problem="valley",
        optimizers={"SGD": ("SGD", {})},
        rates={"SGD": 0.02},
        selected="SGD",
        steps=400,
        step=6,
        coordinate=1,
        parts=(("across", 0, 6), ("along", 6, 342)),
    ),
    "momentum": Preset(
        short="momentum",
        claim="Momentum remembers gradients: at an equal rate it is four times as fast, and "
        "swings past the minimum.",
        holds=_remembers,
        problem="valley",
        optimizers={"SGD": ("SGD", {}), "Momentum": ("Momentum", {})},
        rates={"SGD": 0.01, "Momentum": 0.01},
        selected="Momentum",
        steps=300,
        step=24,
        slot="velocity",
    ),
    "saddle escape": Preset(
        short="saddle",
        claim="At a saddle the gradient vanishes: SGD waits nearly 300 steps. RMSProp divides "
        "by it, and goes on.",
        holds=_waits_at_the_saddle,
        problem="monkey_saddle",
        optimizers={"SGD": ("SGD", {}), "RMSProp": ("RMSProp", {})},
        rates={"SGD": 0.02, "RMSProp": 0.02},
        selected="RMSProp",
        start=(0.9, 0.001),
        steps=450,
        step=60,
        slot="mean_square",
        coordinate=1,
        parts=(("arrives", 0, 31), ("SGD stays", 31, 318), ("leaves", 318, 404)),
    ),
    "bias correction": Preset(
        short="bias",
        claim="Adam's averages start at zero. Uncorrected, its first steps are three to four "
        "times as long.",
        holds=_too_long_at_first,
        problem="valley",
        optimizers={"Adam": ("Adam", {}), "uncorrected": ("AdamWithoutCorrection", {})},
        rates={"Adam": 0.2, "uncorrected": 0.2},
        selected="uncorrected",
        steps=60,
        step=5,
        slot="root",
    ),
    "stability limit": Preset(
        short="stability",
        claim="At curvature 4 gradient descent arrives below the rate 2/4, swings for ever at "
        "it, and ever wider above.",
        holds=_limit,
        problem="parabola",
        optimizers={"below": ("SGD", {}), "at the limit": ("SGD", {}), "above": ("SGD", {})},
        rates={"below": 0.45, "at the limit": 0.5, "above": 0.52},
        selected="at the limit",
        start=(-1.0,),
        steps=40,
        step=7,
    ),
    "noise": Preset(
        short="noise",
        claim="With noise SGD only hovers. A tenth of the rate hovers lower, and takes ten times "
        "as long to get there.",
        holds=_hovers,
        problem="noisy_bowl",
        optimizers={"large rate": ("SGD", {}), "small rate": ("SGD", {})},
        rates={"large rate": 0.1, "small rate": 0.01},
        selected="large rate",
        steps=1000,
        step=200,
        parts=(("small rate arrives", 0, 177), ("both hover", 177, 1000)),
    ),
    "LookAhead": Preset(
        short="LookAhead",
        claim="Every five steps LookAhead goes half of the way back: the loss stays below 0.1 "
        "from step 22 on, not 57.",
        holds=_damps,
        problem="valley",
        optimizers={"Momentum": ("Momentum", {}), "LookAhead": ("Momentum", {})},
        rates={"Momentum": 0.02, "LookAhead": 0.02},
        around={"LookAhead": {"kind": "LookAhead", "alpha": 0.5, "k": 5}},
        selected="LookAhead",
        steps=120,
        step=20,
    ),
    "Adam diverges": Preset(
        short="Adam fails",
        claim="Of three slopes one is 3, two are −1. Adam forgets the 3 too soon and walks "
        "uphill; AMSGrad arrives.",
        holds=_walks_uphill,
        problem="reddi",
        optimizers={
            "Adam": ("Adam", {"beta1": 0.0, "beta2": 0.1}),
            "AMSGrad": ("Adam", {"beta1": 0.0, "beta2": 0.1, "amsgrad": True}),
        },
        rates={"Adam": 0.1, "AMSGrad": 0.1},
        selected="Adam",
        steps=300,
        step=90,
        slot="moment2",
    ),
}
"""The presets by name, in the order of a page."""

PLACES: dict[str, tuple[tuple[str, float, float], ...]] = {"monkey_saddle": (("saddle", 0.0, 0.0),)}
"""What a map names of known problems beside their minima: places of which claims speak."""
