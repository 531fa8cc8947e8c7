"""The part of a schedule that displays read, so that they need not import the class."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from optlab.autograd.checkpoint.schedules.actions import Action


class State(NamedTuple):
    """What is kept after an action.

    Attributes
    ----------
    number : int
        Position of the action in the schedule.
    action : Action
    stored : tuple of int
        Layers whose input is stored.
    recorded : tuple of int
        Layers that are recorded and not yet backpropagated.
    """

    number: int
    action: Action
    stored: tuple[int, ...]
    recorded: tuple[int, ...]


class ScheduleLike(Protocol):
    """The part of a `Schedule` that tables, timelines and pictures read."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def layers(self) -> int:
        """Length of the chain."""

    @property
    def actions(self) -> tuple[Action, ...]:
        """All actions, in order."""

    @property
    def forward(self) -> tuple[Action, ...]:
        """The actions up to the first run of the last layer."""

    @property
    def recomputed_layers(self) -> int:
        """Runs of layers beyond the first of each."""

    @property
    def most_stored(self) -> int:
        """The largest number of inputs stored at the same time."""

    def states(self) -> Iterator[State]:
        """Yield what is kept after each action."""
