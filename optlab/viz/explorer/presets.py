"""Presets: four races, each with one lesson."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from optlab.optimizer import Adam


class AdamWithoutCorrection(Adam):
    """Adam without bias correction of the moments, which start at zero."""

    def scalars(self, t: int, h: Any) -> dict[str, float]:
        """Return the learning rate itself, without Adam's corrections."""
        return {"rate": h.learning_rate, "root": 1.0}


@dataclass(frozen=True)
class Preset:
    """One race, and what to observe.

    Attributes
    ----------
    says : str
        One or two sentences on what to observe.
    problem, start, steps, optimizers, mode, equal_rate, selected, step, slot, coordinate
        As in `State`; optimizers as name to (class, settings).
    """

    says: str
    problem: str
    optimizers: dict[str, tuple[str, dict[str, Any]]]
    selected: str
    start: tuple[float, ...] | None = None
    steps: int = 300
    mode: str = "best"
    equal_rate: float | None = None
    step: int = 34
    slot: str = ""
    coordinate: int = 0


FOUR: dict[str, tuple[str, dict[str, Any]]] = {
    "SGD": ("SGD", {}),
    "Momentum": ("Momentum", {}),
    "RMSProp": ("RMSProp", {}),
    "Adam": ("Adam", {}),
}

PRESETS: dict[str, Preset] = {
    "narrow valley": Preset(
        says="Every optimizer drops into the valley at once; then the floor is nearly flat. "
        "Compare how far each has come along it, and watch the angle: the faster ones stop "
        "following the gradient.",
        problem="rosenbrock",
        optimizers=FOUR,
        selected="Adam",
        step=34,
        slot="moment1",
    ),
    "saddle escape": Preset(
        says="At the saddle in the middle the gradient vanishes. SGD waits there; rules that "
        "divide by the gradient's own size leave at full stride. See the length of the update.",
        problem="monkey_saddle",
        optimizers=FOUR,
        selected="RMSProp",
        start=(0.9, 0.02),
        steps=300,
        mode="equal",
        equal_rate=0.01,
        step=60,
        slot="mean_square",
        coordinate=1,
    ),
    "bias correction": Preset(
        says="Adam's moments start at zero. Without the correction the root is far too small at "
        "first, so the first steps are three times too long, and grow: see the length of the "
        "update, and play the first ten steps.",
        problem="booth",
        optimizers={"Adam": ("Adam", {}), "uncorrected": ("AdamWithoutCorrection", {})},
        selected="uncorrected",
        steps=100,
        mode="equal",
        equal_rate=0.2,
        step=5,
        slot="root",
    ),
    "stability limit": Preset(
        says="The curvature λ is 4, so gradient descent is stable below a rate of 2/λ = 0.5. At "
        "0.5 SGD swings for ever; move its slider one notch down and it converges, one up and it "
        "diverges.",
        problem="parabola",
        optimizers={"SGD": ("SGD", {}), "Momentum": ("Momentum", {})},
        selected="SGD",
        steps=40,
        mode="equal",
        equal_rate=0.5,
        step=6,
    ),
}
