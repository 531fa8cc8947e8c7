"""Protocols of the results that figures read: everything that they need from the floors below."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from numpy.typing import NDArray


class TraceLike(Protocol):
    """One recorded run: arrays over its steps."""

    @property
    def name(self) -> str:
        """Name of the run in its figure."""

    @property
    def step(self) -> NDArray[Any]:
        """Numbers of the recorded steps, from 1."""

    @property
    def loss(self) -> NDArray[Any]:
        """The loss before each step."""

    @property
    def learning_rate(self) -> NDArray[Any]:
        """The learning rate of each step."""

    @property
    def parameters(self) -> Mapping[str, NDArray[Any]]:
        """Values of each parameter, the start first; empty if only norms were recorded."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """The optimizer's class and its settings."""

    @property
    def stopped(self) -> str | None:
        """Why the run ended early, in a sentence; None if it did not."""


class ProblemLike(Protocol):
    """Attributes of every problem; surfaces have those of `SurfaceLike` as well."""

    @property
    def kind(self) -> str:
        """``"surface"`` or ``"network"``."""

    @property
    def title(self) -> str:
        """Name of the problem in its figure."""


class SurfaceLike(ProblemLike, Protocol):
    """A loss of two coordinates that can be drawn as a map."""

    @property
    def dimension(self) -> int:
        """Number of coordinates of a point."""

    @property
    def domain(self) -> Sequence[Sequence[float]]:
        """Low and high end of each coordinate."""

    @property
    def minima(self) -> Sequence[Sequence[float]]:
        """The known minima."""

    @property
    def minimum_value(self) -> float | None:
        """The loss at the minima; None if it is not known."""

    @property
    def start(self) -> Sequence[float]:
        """The point at which runs start."""

    def values(self, x: NDArray[Any], y: NDArray[Any], /) -> NDArray[Any]:
        """Compute the losses at arrays of coordinates."""


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
        """Number of steps that each run was given."""

    @property
    def seed(self) -> int:
        """The seed of all runs."""

    @property
    def final_loss(self) -> Mapping[str, float]:
        """The loss after the last step."""

    @property
    def accuracy(self) -> Mapping[str, float]:
        """Held-out accuracy, 0 to 1; empty if the problem has none."""
