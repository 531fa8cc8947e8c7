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
    def seed(self) -> int | None:
        """The seed of all runs; None if it is not known."""

    @property
    def final_loss(self) -> Mapping[str, float]:
        """The loss after the last step."""

    @property
    def accuracy(self) -> Mapping[str, float]:
        """Held-out accuracy, 0 to 1; empty if the problem has none."""


class SweepLike(Protocol):
    """The final losses of one optimizer over a grid of settings."""

    @property
    def problem(self) -> ProblemLike:
        """What was minimized."""

    @property
    def optimizer(self) -> type:
        """The class that was swept."""

    @property
    def settings(self) -> Mapping[str, NDArray[Any]]:
        """The values of each setting, in the order of the axes."""

    @property
    def axes(self) -> Mapping[str, Sequence[Any]]:
        """The values along each axis of the losses: settings, then starts if there are several."""

    @property
    def steps(self) -> int:
        """Updates of each run."""

    @property
    def final_loss(self) -> NDArray[Any]:
        """Losses after the last step: infinite where a run diverged, NaN where it is missing."""

    @property
    def start_loss(self) -> float:
        """The highest loss before the first step; NaN if no run has one."""

    @property
    def ends(self) -> Mapping[str, str]:
        """The best settings at an end of their range."""


class BasinsLike(Protocol):
    """Which minimum an optimizer reaches from each start of a grid, and how fast."""

    @property
    def problem(self) -> Any:
        """The surface."""

    @property
    def optimizer(self) -> Any:
        """The template."""

    @property
    def axes(self) -> Sequence[NDArray[Any]]:
        """The coordinates of the starts."""

    @property
    def steps(self) -> int:
        """Updates from each start."""

    @property
    def basin(self) -> NDArray[Any]:
        """The number of the minimum, or -1 (not arrived), -2 (diverged), -3 (not run)."""

    @property
    def arrival(self) -> NDArray[Any]:
        """Steps until a start stays near its minimum."""

    @property
    def minima(self) -> NDArray[Any]:
        """The minima, one a row."""

    @property
    def values(self) -> NDArray[Any]:
        """The losses at the minima."""
