"""What the pictures read of a result: the whole of what the floors below owe to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from numpy.typing import NDArray


class TraceLike(Protocol):
    """One recorded run: arrays over its steps."""

    @property
    def name(self) -> str:
        """What the run is called in its figure."""

    @property
    def step(self) -> NDArray[Any]:
        """Numbers of the recorded steps, from 1."""

    @property
    def loss(self) -> NDArray[Any]:
        """The loss before each step."""

    @property
    def learning_rate(self) -> NDArray[Any]:
        """The rate of each step."""

    @property
    def parameters(self) -> Mapping[str, NDArray[Any]]:
        """Values of each parameter, the start first; empty where only norms were recorded."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """The optimizer's class and its settings."""

    @property
    def stopped(self) -> str | None:
        """Why the run ended early, in a sentence; None if it did not."""


class ProblemLike(Protocol):
    """What every problem has; surfaces have `SurfaceLike`'s attributes as well."""

    @property
    def kind(self) -> str:
        """``"surface"`` or ``"network"``."""

    @property
    def title(self) -> str:
        """What the problem is called in its figure."""


class SurfaceLike(ProblemLike, Protocol):
    """A loss of two coordinates, which can be drawn as a map."""

    @property
    def dimension(self) -> int:
        """How many coordinates a point has."""

    @property
    def domain(self) -> Sequence[Sequence[float]]:
        """Low and high end of each coordinate."""

    @property
    def minima(self) -> Sequence[Sequence[float]]:
        """The known minima."""

    @property
    def minimum_value(self) -> float | None:
        """The loss there; None if it is not known."""

    @property
    def start(self) -> Sequence[float]:
        """Where runs start."""

    def values(self, x: NDArray[Any], y: NDArray[Any], /) -> NDArray[Any]:
        """Losses at arrays of coordinates."""


class ComparisonLike(Protocol):
    """Several optimizers on one problem: same start, same steps, same seed."""

    @property
    def problem(self) -> Any:
        """A `ProblemLike`."""

    @property
    def traces(self) -> Mapping[str, Any]:
        """A `TraceLike` for each name, in the order in which they were given."""

    @property
    def steps(self) -> int:
        """How many steps each was allowed."""

    @property
    def seed(self) -> int:
        """The seed that all share."""

    @property
    def final_loss(self) -> Mapping[str, float]:
        """The loss after the last step."""

    @property
    def accuracy(self) -> Mapping[str, float]:
        """Held-out accuracy, 0 to 1; empty where the problem has none."""
