"""Actions of a checkpointing schedule, and the conditions under which each is possible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class OfInput:
    """Action on the input of one layer."""

    layer: int
    verb: ClassVar[str]

    @property
    def layers(self) -> range:
        """The layer, as a range of length 1."""
        return range(self.layer, self.layer + 1)


@dataclass(frozen=True, slots=True)
class OfLayers:
    """Action on the layers ``start`` to ``stop - 1``, as in a slice."""

    start: int
    stop: int
    verb: ClassVar[str]

    @property
    def layers(self) -> range:
        """The layers, in forward order."""
        return range(self.start, self.stop)


@dataclass(frozen=True, slots=True)
class Snapshot(OfInput):
    """Store the value at hand, which is the input of `layer`."""

    verb: ClassVar[str] = "snapshot"


@dataclass(frozen=True, slots=True)
class Restore(OfInput):
    """Make the stored input of `layer` the value at hand; it stays stored."""

    verb: ClassVar[str] = "restore"


@dataclass(frozen=True, slots=True)
class Free(OfInput):
    """Free the stored input of `layer`; the value at hand stays."""

    verb: ClassVar[str] = "free"


@dataclass(frozen=True, slots=True)
class Advance(OfLayers):
    """Run ``layers[start:stop]`` on the value at hand without recording."""

    verb: ClassVar[str] = "advance"


@dataclass(frozen=True, slots=True)
class Record(OfLayers):
    """Run ``layers[start:stop]`` on the value at hand and record them for the backward pass."""

    verb: ClassVar[str] = "record"


@dataclass(frozen=True, slots=True)
class Back(OfLayers):
    """Run the backward pass of ``layers[start:stop]``, the last first, and free their records."""

    verb: ClassVar[str] = "back"


Action = Snapshot | Restore | Free | Advance | Record | Back


def fault_of(
    action: Action, stored: tuple[int, ...], recorded: tuple[int, ...], at: int | None, left: int
) -> str:
    """Return why an action is impossible, or an empty string if it is possible.

    `at` is the layer whose input is the value at hand, None if there is none; `left` is the number
    of layers that are not yet backpropagated.
    """
    hand = "there is no value at hand" if at is None else f"the value at hand is layer {at}'s input"
    match action:
        case Snapshot(layer):
            if layer in stored:
                return "that input is stored already."
            if layer != at:
                return f"{hand}; Restore and Advance to layer {layer} first."
            return "" if layer < left else f"no layer {layer} is left to backpropagate."
        case Restore(layer) | Free(layer):
            if layer in stored:
                return ""
            return f"that input is not stored ({whose_inputs(stored)} stored)."
        case Advance(start, stop) | Record(start, stop):
            if not start < stop <= left:
                return f"layers that can run are 0 to {left - 1}, stop at most {left}."
            if start != at:
                return (
                    f"{hand}; Restore an input at or below layer {start} and Advance to it first."
                )
            again = [layer for layer in recorded if layer in action.layers]
            if isinstance(action, Record) and again:
                return f"layer {again[0]} is recorded already."
            return ""
        case Back(start, stop):
            if stop != left or not start < stop:
                return f"the layer to backpropagate next is {left - 1}, so stop has to be {left}."
            missing = [layer for layer in action.layers if layer not in recorded]
            return f"layer {missing[-1]} is not recorded; Record it first." if missing else ""
    raise TypeError(
        f"{action!r} is no action; expected Snapshot, Restore, Free, Advance, Record or Back."
    )


def whose_inputs(stored: tuple[int, ...]) -> str:
    """Return a clause that names the layers whose inputs are stored."""
    if not stored:
        return "no input is"
    one = len(stored) == 1
    return f"the {'input of layer' if one else 'inputs of layers'} {in_words(stored)} " + (
        "is" if one else "are"
    )


def in_words(layers: Sequence[int]) -> str:
    """Format layer numbers, consecutive ones as a range.

    Examples
    --------
    >>> in_words([0, 1, 2, 5, 7, 8])
    '0-2, 5, 7-8'
    """
    runs: list[list[int]] = []
    for layer in layers:
        if runs and runs[-1][-1] == layer - 1:
            runs[-1].append(layer)
        else:
            runs.append([layer])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
