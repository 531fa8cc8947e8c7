"""Checkpointing schedules of a chain of layers.

The backward pass goes through a chain from its last layer to its first and needs at each layer the
values of forward. A schedule decides, before anything runs, which inputs are stored, and which
layers run once more and when. It is plain data: it holds no arrays and predicts its own costs.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from optlab.autograd.checkpoint.schedules import display
from optlab.autograd.checkpoint.schedules.actions import (
    Action,
    Advance,
    Back,
    Free,
    OfLayers,
    Record,
    Restore,
    Snapshot,
    fault_of,
    whose_inputs,
)
from optlab.autograd.checkpoint.schedules.protocol import State

#: A number for every layer, or one for each of them.
PerLayer = int | Sequence[int]


class Moment(NamedTuple):
    """Bytes kept at one moment of a schedule: during an action, at one layer."""

    number: int
    layer: int
    kept: int


@dataclass(frozen=True, repr=False)
class Schedule:
    """Sequence of actions that runs a chain of layers forward and backward.

    `optlab.autograd.schedules` builds the known ones. A schedule of your own is checked when it is
    made: every layer has to be backpropagated once, the last first, from the input that it had.

    Parameters
    ----------
    name : str
    layers : int
        Length of the chain.
    actions : sequence of Action

    Raises
    ------
    ValueError
        If the actions do not reverse the chain; names the first that is impossible, and why.

    Examples
    --------
    >>> from optlab.autograd.reversal_actions import (
    ...     Advance, Back, Free, Record, Restore, Snapshot)
    >>> mine = Schedule("mine", 2, [Snapshot(0), Advance(0, 1), Record(1, 2),
    ...                             Back(1, 2), Restore(0), Free(0), Record(0, 1), Back(0, 1)])
    >>> mine.layer_runs, mine.recomputed_layers
    ((2, 1), 1)
    >>> mine.peak(saved=100, inputs=10)
    110
    """

    name: str
    layers: int
    actions: tuple[Action, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "actions", tuple(self.actions))
        for _ in self.states():
            pass

    @cached_property
    def _turn(self) -> int:
        """Position of the first action of backward."""
        ends = (
            number
            for number, action in enumerate(self.actions)
            if isinstance(action, (Advance, Record)) and action.stop == self.layers
        )
        return next(ends) + 1

    @property
    def forward(self) -> tuple[Action, ...]:
        """The actions up to the first run of the last layer, which returns the chain's output."""
        return self.actions[: self._turn]

    @property
    def backward(self) -> tuple[Action, ...]:
        """The actions after `forward`: they need the gradient of the output."""
        return self.actions[self._turn :]

    @cached_property
    def layer_runs(self) -> tuple[int, ...]:
        """Number of runs of each layer, recorded or not."""
        return self.runs()

    def runs(self, first: int = 0) -> tuple[int, ...]:
        """Count the runs of each layer if the backward pass ends at the layer `first`.

        Examples
        --------
        >>> from optlab.autograd.schedules import in_segments
        >>> in_segments(4, 2).runs(), in_segments(4, 2).runs(first=2)
        ((2, 2, 2, 2), (1, 1, 2, 2))
        """
        runs = [0] * self.layers
        for action in self.forward if first >= self.layers else self.actions:
            if isinstance(action, (Advance, Record)):
                for layer in action.layers:
                    runs[layer] += 1
            elif isinstance(action, Back) and first in action.layers:
                break
        return tuple(runs)

    @property
    def recomputed_layers(self) -> int:
        """Number of runs of layers beyond the first of each."""
        return sum(self.layer_runs) - self.layers

    @cached_property
    def most_stored(self) -> int:
        """Largest number of inputs stored at the same time."""
        return max(len(state.stored) for state in self.states())

    def operations(self, per_layer: PerLayer) -> int:
        """Return the number of recomputed operations.

        Parameters
        ----------
        per_layer : int or sequence of int
            Operations (or multiplications, or nanoseconds) of one run of each layer.

        Examples
        --------
        >>> from optlab.autograd.schedules import in_segments
        >>> in_segments(3, 3).operations([10, 20, 30])
        60
        """
        costs = self._each(per_layer, "per_layer")
        return sum((runs - 1) * cost for runs, cost in zip(self.layer_runs, costs, strict=True))

    def peak(
        self, saved: PerLayer, inputs: PerLayer, *, shared: PerLayer = 0, working: PerLayer = 0
    ) -> int:
        """Return the peak of the bytes that are kept, forward and backward.

        It counts the stored inputs, and what the recorded layers save for their backward. Values
        that only pass from one layer to the next, gradients and parameters are not counted, unless
        `working` includes them.

        Parameters
        ----------
        saved : int or sequence of int
            Bytes that each layer, recorded alone, saves for backward (its own input included if it
            saves that); a single number applies to every layer.
        inputs : int or sequence of int
            Bytes of the input of each layer: the cost of storing it. For the first, 0 if the
            caller holds the input of the chain anyway.
        shared : int or sequence of int, optional
            Bytes that a layer saves and that the layer before it saves too (the same array, its
            own input): they count once while both are recorded.
        working : int or sequence of int, optional
            Additional bytes while a layer runs forward or backward: temporaries, the value that
            passes, gradients.

        Returns
        -------
        int

        Raises
        ------
        ValueError
            If the length of a sequence is not the number of layers.

        Examples
        --------
        Sixteen layers that save ten times the size of their input:

        >>> from optlab.autograd.schedules import in_segments, plain, revolve
        >>> ways = plain(16), in_segments(16, 4), revolve(16, 4)
        >>> [way.peak(saved=10, inputs=1) for way in ways]
        [160, 43, 14]
        """
        course = self.course(saved, inputs, shared=shared, working=working)
        return max(moment.kept for moment in course)

    def course(
        self, saved: PerLayer, inputs: PerLayer, *, shared: PerLayer = 0, working: PerLayer = 0
    ) -> list[Moment]:
        """Return the bytes that are kept, moment by moment; `peak` is their maximum.

        An action on one input is one moment, an action on layers one moment a layer. The
        parameters are those of `peak`.

        Examples
        --------
        >>> from optlab.autograd.schedules import plain
        >>> [moment.kept for moment in plain(3).course(saved=[5, 6, 7], inputs=1)]
        [5, 11, 18, 18, 11, 5]
        """
        saves, sizes = self._each(saved, "saved"), self._each(inputs, "inputs")
        common, extra = self._each(shared, "shared"), self._each(working, "working")
        recorded: set[int] = set()
        kept, moments = 0, []
        for number, action in enumerate(self.actions):
            for layer in reversed(action.layers) if isinstance(action, Back) else action.layers:
                own = saves[layer]
                own -= common[layer] if layer - 1 in recorded else 0
                own -= common[layer + 1] if layer + 1 in recorded else 0
                if isinstance(action, Record):
                    recorded.add(layer)
                    kept += own
                elif isinstance(action, Snapshot):
                    kept += sizes[layer]
                elif isinstance(action, Free):
                    kept -= sizes[layer]
                busy = extra[layer] if isinstance(action, OfLayers) else 0
                moments.append(Moment(number, layer, kept + busy))
                if isinstance(action, Back):
                    recorded.remove(layer)
                    kept -= own
        return moments

    def _each(self, given: Any, name: str) -> list[int]:
        """Return one number for each layer."""
        try:
            if hasattr(given, "__iter__"):
                numbers = [operator.index(one) for one in given]
            else:
                numbers = [operator.index(given)] * self.layers
        except TypeError:
            raise TypeError(f"{name} takes whole numbers, got {given!r}.") from None
        if len(numbers) != self.layers:
            raise ValueError(
                f"{name} has {len(numbers)} numbers, and the chain has {self.layers} layers; give "
                f"one number for each layer, or a single one for all."
            )
        return numbers

    def states(self) -> Iterator[State]:
        """Yield what is kept after each action.

        Examples
        --------
        >>> from optlab.autograd.schedules import in_segments
        >>> for state in in_segments(2, 1).states():
        ...     print(state.action, state.stored, state.recorded)
        Snapshot(layer=0) (0,) ()
        Advance(start=0, stop=2) (0,) ()
        Restore(layer=0) (0,) ()
        Free(layer=0) () ()
        Record(start=0, stop=2) () (0, 1)
        Back(start=0, stop=2) () ()
        """
        stored: tuple[int, ...] = ()
        recorded: tuple[int, ...] = ()
        at: int | None = 0  # the value at hand is the input of this layer
        left = self.layers  # layers that are not yet backpropagated
        for number, action in enumerate(self.actions):
            fault = fault_of(action, stored, recorded, at, left)
            if fault:
                raise ValueError(
                    f"action {number} of the schedule {self.name!r}, {action}: {fault}"
                )
            match action:
                case Snapshot(layer):
                    stored = tuple(sorted((*stored, layer)))
                case Restore(layer):
                    at = layer
                case Free(layer):
                    stored = tuple(one for one in stored if one != layer)
                case Advance(_, stop):
                    at = stop
                case Record(_, stop):
                    at = stop
                    recorded = tuple(sorted((*recorded, *action.layers)))
                case Back(start, _):
                    at, left = None, start
                    recorded = tuple(one for one in recorded if one < start)
            yield State(number, action, stored, recorded)
        if left or stored:
            raise ValueError(
                f"the schedule {self.name!r} does not finish: "
                + (f"layers 0 to {left - 1} are not backpropagated yet." if left else
                   f"{whose_inputs(stored)} still stored; Free what is not needed.")
            )  # fmt: skip

    def rows(self) -> list[tuple[str, str, str, str]]:
        """Return the table of the actions as text: number, action, stored inputs, recorded layers.

        Examples
        --------
        >>> from optlab.autograd.schedules import in_segments
        >>> in_segments(4, 2).rows()[3]
        ('3', 'advance 2-3', '0, 2', '')
        """
        return display.rows(self)

    def timeline(self) -> list[tuple[int, int, str]]:
        """Return rows of (number of the action, layer, what).

        ``what`` is ``"snapshot"``, ``"restore"``, ``"free"``, ``"advance"``, ``"record"`` or
        ``"back"`` for the layers of the action, ``"stored"`` for other layers whose input is stored
        after it, ``"recorded"`` for others that are recorded after it (two rows if both hold).

        Examples
        --------
        >>> from optlab.autograd.schedules import in_segments
        >>> in_segments(2, 2).timeline()[:4]
        [(0, 0, 'snapshot'), (1, 0, 'advance'), (1, 0, 'stored'), (2, 1, 'snapshot')]
        """
        return display.timeline(self)

    def spans(self) -> list[display.Span]:
        """Return the bars of a drawing: layers over time, counted in runs of one layer.

        Examples
        --------
        >>> from optlab.autograd.schedules import plain
        >>> for span in plain(1).spans():
        ...     print(span)
        Span(layer=0, what='record', start=0, stop=1)
        Span(layer=0, what='back', start=1, stop=2)
        Span(layer=0, what='recorded', start=1, stop=2)
        """
        return display.spans(self)

    def picture(self) -> str:
        """Draw the schedule with characters: one line a layer, one column a run of a layer.

        Examples
        --------
        >>> from optlab.autograd.schedules import revolve
        >>> print(revolve(6, 2).picture())
        layer 0 |>...........>.....#<
        layer 1 | >           >..#<
        layer 2 |  >           #<
        layer 3 |   >...>..#<
        layer 4 |    >   #<
        layer 5 |     #<
        > runs  # runs, recorded  = is recorded  < backpropagated  . its input is stored
        """
        return display.picture(self)

    def __repr__(self) -> str:
        return f"<Schedule {display.headline(self)}>"

    def __str__(self) -> str:
        return display.table(self)

    def _repr_html_(self) -> str:
        return display.page(self)
