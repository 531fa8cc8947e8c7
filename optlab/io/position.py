"""The position of a `DataLoader`: its epoch, and the number of batches yielded in it."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from optlab.backend.random import Key, Stream

_NAMES = (
    "seed", "path", "loader", "epoch", "batches", "checksum", "sampler", "examples", "batch_size",
)  # fmt: skip


@dataclass
class Order:
    """What fixes the order of a loader's epochs.

    Attributes
    ----------
    stream : Stream
        The program's random numbers when the loader was used first; another one (`ol.seed` was
        called, a scope was opened) restarts the loader.
    key : Key
        The seed and path below which the keys of all epochs are.
    number : int
        Which of the program's loaders it is.
    epochs : int
        Number of epochs begun.
    """

    stream: Stream
    key: Key
    number: int
    epochs: int

    def next_epoch(self) -> Position:
        """Count an epoch and return its start."""
        epoch = self.epochs
        self.epochs += 1
        if self.stream.key == self.key:
            self.stream.epochs[self.number] = self.epochs
        key = self.key.fold("DataLoader", self.number, "epoch", epoch)
        return Position(key, epoch)


@dataclass
class Position:
    """A position in one epoch.

    Attributes
    ----------
    key : Key
        Of the epoch: it fixes the order and the random numbers of the data set.
    epoch : int
        Number of the epoch.
    skip : int
        Number of batches that an earlier run yielded, which this one leaves out.
    expected : int
        Checksum of the indices of those batches.
    batches : int
        Number of batches yielded, those of the earlier run included.
    checksum : int
        Checksum of the indices of the batches yielded.
    sampler : object
        The sampler's state at the start of the epoch; None before the first batch.
    finished : bool
        Whether the epoch is over.
    """

    key: Key
    epoch: int
    skip: int = 0
    expected: int = 0
    batches: int = 0
    checksum: int = 0
    sampler: Any = None
    finished: bool = False

    def passed(self, indices: Any) -> None:
        """Count one batch."""
        self.batches += 1
        self.checksum = zlib.crc32(repr(indices).encode(), self.checksum)

    def check_resumed(self, ended: bool) -> None:
        """Check that the batches left out are those that the earlier run yielded.

        Raises
        ------
        ValueError
            If the order is another one, or the epoch ends earlier.
        """
        if ended:
            raise ValueError(
                f"the loader's state is from behind batch {self.skip} of its epoch, but this "
                f"epoch ends after {self.batches}: resume with the data set and the sampler of "
                "the saved run."
            )
        if self.checksum != self.expected:
            raise ValueError(
                f"the first {self.skip} batches of this epoch are not those of the saved run: the "
                "sampler gives another order. Give it the same arguments as in the saved run; a "
                "sampler that draws from random numbers other than optlab's needs state_dict() "
                "and set_state_dict()."
            )


@dataclass(frozen=True)
class LoaderState:
    """The checked content of a loader's state dict."""

    key: Key | None
    number: int | None
    epoch: int
    batches: int
    checksum: int
    sampler: Any

    def resume(self, start: Position) -> Position:
        """Return the position from which to go on, in an epoch that has just been counted."""
        return replace(start, skip=self.batches, expected=self.checksum)


def parse_state(state: Any, examples: int | None, batch_size: int | None) -> LoaderState:
    """Check a state dict for a loader with so many examples.

    Raises
    ------
    TypeError
        If it is no dict.
    ValueError
        If it is not the state of such a loader.
    """
    if not isinstance(state, Mapping):
        raise TypeError(f"the state of a loader is a dict; got {type(state).__name__}.")
    if set(state) != set(_NAMES):
        raise ValueError(
            "this is no state of a loader: it takes what loader.state_dict() returned, with "
            f"{', '.join(_NAMES)}; got {', '.join(map(str, state)) or 'nothing'}."
        )
    for name, own in (("examples", examples), ("batch_size", batch_size)):
        if state[name] != own:
            raise ValueError(
                f"the state is of a loader with {name}={state[name]!r}, but this one has "
                f"{name}={own!r}."
            )
    epoch, batches, checksum = counts = [state[name] for name in ("epoch", "batches", "checksum")]
    begun = state["loader"] is not None
    path = state["path"]
    if (
        not all(_is_count(count) for count in counts)
        or (begun and not (_is_count(state["loader"]) and type(state["seed"]) is int))
        or (not begun and any(counts))
        or not isinstance(path, (list, tuple))
        or not all(type(part) in (int, str) for part in path)
    ):
        raise ValueError(f"this is no state of a loader, its numbers were altered: {dict(state)!r}")
    key = Key(state["seed"], tuple(path)) if begun else None
    return LoaderState(key, state["loader"], epoch, batches, checksum, state["sampler"])


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def sampler_state(sampler: Any) -> Any:
    """Return the state of a sampler; None if it has none."""
    return sampler.state_dict() if hasattr(sampler, "state_dict") else None


def set_sampler_state(sampler: Any, state: Any) -> None:
    """Restore the state of a sampler, before an epoch begins.

    Raises
    ------
    ValueError
        If there is a state but the sampler takes none, or the reverse.
    """
    if (state is None) != (not hasattr(sampler, "state_dict")):
        raise ValueError(
            f"the state was saved with a sampler that has {'no' if state is None else 'a'} "
            f"state_dict(), other than {type(sampler).__name__} here: resume with the sampler of "
            "the saved run."
        )
    if state is not None:
        restore = getattr(sampler, "set_state_dict", None) or sampler.load_state_dict
        restore(state)
