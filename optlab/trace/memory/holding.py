"""What makes up the memory at one event, and what tables read of a memory trace."""

# ruff: noqa: D102 (the properties are described in MemoryTrace)

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np


@dataclass(frozen=True)
class Holding:
    """The live arrays that one operation created.

    Attributes
    ----------
    name : str
        The operation, or the name of a parameter or slot.
    phase : str
        "forward", "backward", "recompute" or "step"; empty if it was there before.
    role : str
        Why the arrays are alive.
    layers : tuple of str
        The layers that ran, if any.
    arrays, nbytes : int
        How many arrays there are, and their bytes. No arrays: temporaries of the operation while it
        runs.
    shape, dtype
        Of the largest.
    share : float
        The share of all live bytes, 0 to 1.
    """

    name: str
    phase: str
    role: str
    layers: tuple[str, ...]
    arrays: int
    nbytes: int
    shape: tuple[int, ...]
    dtype: str
    share: float


class TracedMemory(Protocol):
    """What tables read of a `MemoryTrace`."""

    @property
    def operation(self) -> Sequence[str]: ...
    @property
    def phase(self) -> Sequence[str]: ...
    @property
    def layer(self) -> Sequence[str]: ...
    @property
    def bytes(self) -> np.ndarray: ...
    @property
    def during(self) -> np.ndarray: ...
    @property
    def total(self) -> np.ndarray: ...
    @property
    def made(self) -> np.ndarray: ...
    @property
    def measured(self) -> np.ndarray | None: ...
    @property
    def peak(self) -> int: ...
    @property
    def peak_event(self) -> int: ...
    @property
    def recomputed_operations(self) -> int: ...
    @property
    def recomputed_bytes(self) -> int: ...
    def __len__(self) -> int: ...
    def by_operation(self) -> list[Holding]: ...
