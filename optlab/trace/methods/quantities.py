"""What a trace holds, and how it is read: columns, by kind, by name, by step."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any

import numpy as np

from optlab.backend.memory.ledger import ROLES
from optlab.trace.columns import Column
from optlab.trace.named_arrays import NamedArrays, RecordedArray, one_or_all
from optlab.trace.records import Record

Arrays = Mapping[str, np.ndarray]

#: Quantities of every step on the clock of the trace.
_SCALARS = ("step", "loss", "learning_rate", "seconds")


class Quantities:
    """The columns of a trace, and its quantities as labelled arrays."""

    name: str
    settings: dict[str, Any]
    optimizer: Any
    marks: list[tuple[int, str]]
    columns: defaultdict[tuple[str, int], Column]
    layouts: dict[str, list[list[tuple[str, int, int, tuple[int, ...]]]]]
    records: dict[str, Record]
    sentences: list[str]
    steps_taken: int
    is_resumed: bool
    complete: Callable[[], None]

    # Scalars ------------------------------------------------------------------------------------

    def _scalars(self, kind: str) -> np.ndarray:
        self.complete()
        return self.columns[kind, 0].array(np.float64)

    @property
    def step(self) -> np.ndarray:
        """Numbers of the recorded steps."""
        self.complete()
        return self.columns["step", 0].array(np.int64)

    @property
    def loss(self) -> np.ndarray:
        """The loss before each recorded step."""
        return self._scalars("loss")

    @property
    def learning_rate(self) -> np.ndarray:
        """The learning rate of each recorded step."""
        return self._scalars("learning_rate")

    @property
    def seconds(self) -> np.ndarray:
        """Times of the recorded steps."""
        return self._scalars("seconds")

    @property
    def synchronisations(self) -> np.ndarray:
        """Numbers of the recorded steps after which LookAhead synchronized fast and slow weights.

        Empty if the run had no LookAhead.
        """
        found, clock = self.terms.get("synchronised"), "values"
        if not found:
            found, clock = self._groups("norm ").get("term synchronised", {}), "norms"
        steps = self.steps(clock)
        met = np.zeros(len(steps), dtype=bool)
        for array in found.values():
            met |= (array.reshape(len(array), -1) > 0).any(axis=1)
        return steps[met]

    # Rows of parameters -------------------------------------------------------------------------

    def _clock(self, clock: str) -> Column:
        """Return the column with the steps of "values" or "norms"."""
        own = self.columns.get((f"steps of {clock}", 0))
        return self.columns["step", 0] if own is None else own

    def _group(self, kind: str) -> dict[str, np.ndarray]:
        """Split the flat rows of one kind into parameters of their shapes."""
        self.complete()
        found = {}
        clock = "norms" if kind.startswith("norm ") else "values"
        for number, layout in enumerate(self.layouts.get(clock, ())):
            column = self.columns.get((kind, number))
            if column is None:
                continue
            steps = len(self._clock(clock)) + (kind == "parameter")
            column.fill_as_before(steps)  # not every step has this value
            rows = column.array()
            for i, (name, start, stop, shape) in enumerate(layout):
                if clock == "norms":
                    found[name] = rows[:, i]
                else:
                    found[name] = rows[:, start:stop].reshape(len(rows), *shape)
        return found

    def _groups(self, prefix: str) -> dict[str, Arrays]:
        self.complete()
        kinds = dict.fromkeys(kind for kind, _ in self.columns if kind.startswith(prefix))
        if not prefix:
            plain = {*_SCALARS, "memory"}
            apart = ("norm ", "steps of ")
            kinds = {k: None for k in kinds if k not in plain and not k.startswith(apart)}
        return {kind.removeprefix(prefix): self._group(kind) for kind in kinds}

    @property
    def parameters(self) -> Arrays:
        """Values of the parameters, start included."""
        return self._group("parameter")

    @property
    def gradients(self) -> Arrays:
        """Raw gradients."""
        return self._group("gradient")

    @property
    def slots(self) -> Mapping[str, Arrays]:
        """Slots of the optimizer after each step."""
        return self._groups("slot ")

    @property
    def terms(self) -> Mapping[str, Arrays]:
        """Named terms of the update rule in each step."""
        return self._groups("term ")

    @property
    def norms(self) -> Mapping[str, Arrays]:
        """Norms, recorded as such or computed from recorded values."""
        recorded = self._recorded_norms()
        if recorded:
            return recorded
        return {
            kind: {
                name: np.sqrt(np.sum(_rows(a[1:] if kind == "parameter" else a) ** 2, axis=1))
                for name, a in arrays.items()
            }
            for kind, arrays in self._recorded().items()
        }

    def _recorded_norms(self) -> dict[str, Arrays]:
        """Return the norms that were recorded as such, by their labels."""
        return _by_label(self._groups("norm "))

    @property
    def memory(self) -> Arrays:
        """Bytes by role at the memory peak of each step."""
        self.complete()
        column = self.columns.get(("memory", 0))
        if column is None or not len(column):
            return {}
        return dict(zip(ROLES, column.array().T, strict=True))

    def _recorded(self) -> dict[str, Arrays]:
        """Return everything that was recorded element by element, by its label."""
        return _by_label(self._groups(""))

    # What probes have observed -------------------------------------------------------------------

    def _observed(self) -> dict[str, tuple[Record, str]]:
        """Return the quantities of other probes by their names, with their records.

        A name that two probes use has the label of the second one beside it.
        """
        self.complete()
        found: dict[str, tuple[Record, str]] = {}
        for record in self.records.values():
            for quantity in [*dict.fromkeys(q for q, _ in record.columns), *record.results()]:
                name = f"{quantity} ({record.label})" if quantity in found else quantity
                found[name] = record, quantity
        return found

    @property
    def left_out(self) -> list[str]:
        """What was not recorded, and why."""
        self.complete()
        faults = [line for record in self.records.values() for line in record.faults()]
        return [*self.sentences, *(line for line in faults if line not in self.sentences)]

    @property
    def costs(self) -> dict[str, dict[str, Any]]:
        """The cost of each probe: its steps, its seconds, its bytes."""
        self.complete()
        clocks = {"Values": "values", "Norms": "norms"}
        return {
            label: {
                "steps": len(self._clock(clocks[label]) if label in clocks else record.steps),
                "seconds": record.seconds,
                "bytes": record.bytes,
            }
            for label, record in self.records.items()
        }

    def _now(self) -> int:
        """Return the number of steps that were taken."""
        self.complete()
        recorded = self.columns["step", 0]
        return max(self.steps_taken, int(recorded.last()) if len(recorded) else 0)

    # Reading ------------------------------------------------------------------------------------

    def __len__(self) -> int:
        self.complete()
        return len(self.columns["step", 0])

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    @property
    def names(self) -> list[str]:
        """Names that ``trace[name]`` accepts."""
        norms = [f"norm of {kind}" for kind in self._recorded_norms()]
        return [*_SCALARS[1:], *self._recorded(), *norms, *self._observed()]

    def steps(self, name: str) -> np.ndarray:
        """Return the numbers of the steps at which a quantity was recorded.

        Parameters
        ----------
        name : str
            As for ``trace[name]``; also "values" and "norms" for all of these. Those of "parameter"
            are the steps after which the values were recorded, without the start.

        Raises
        ------
        KeyError
            If nothing of that name was recorded; the message lists the names.
        """
        self.complete()
        if name in _SCALARS:
            return self.step
        if name == "values" or name in self._recorded():
            return self._clock("values").array(np.int64)
        if name == "norms" or name.removeprefix("norm of ") in self._recorded_norms():
            return self._clock("norms").array(np.int64)
        observed = self._observed()
        if name not in observed:
            raise self._no_such(name)
        return observed[name][0].steps.array(np.int64)

    def __getitem__(self, name: str) -> Any:
        """Return one recorded quantity by its name: ``trace["moment1"]["w"]``, ``trace["loss"]``.

        A quantity of parameters is a mapping from their names. Of one parameter alone it is an
        array, which takes the name of the parameter, too. ``trace["moment1"].sel(step=34)`` chooses
        steps and parameters as ``trace.sel`` does.

        Raises
        ------
        KeyError
            If nothing of that name was recorded; the message lists the names.
        """
        if not isinstance(name, str):
            raise TypeError(
                "a trace is read by names, trace['loss']; its steps are selected by "
                f"trace.sel(step={name!r})."
            )
        if name in _SCALARS:
            return RecordedArray.of(getattr(self, name), steps=self.step)
        arrays = self._recorded().get(name)
        if not arrays and name.startswith("norm of "):
            arrays = self._recorded_norms().get(name.removeprefix("norm of "))
        if arrays:
            return one_or_all(NamedArrays(arrays, self.steps(name)))
        observed = self._observed()
        if name not in observed:
            raise self._no_such(name)
        record, quantity = observed[name]
        found = record.arrays().get(quantity)
        if found is None:
            return record.results()[quantity]
        steps = record.steps.array(np.int64)
        if set(found) == {""}:
            return RecordedArray.of(found[""], steps=steps)
        return one_or_all(NamedArrays(found, steps))

    def _no_such(self, name: Any) -> KeyError:
        """Return the error for a name that was not recorded; what is nearest to it comes first."""
        near = get_close_matches(str(name), self.names, n=3)
        names = [*near, *(other for other in self.names if other not in near)]
        hint = ""
        if name in self.norms.get("parameter", ()):
            kind = "gradient" if "gradient" in names else "norm of gradient"
            hint = f"; {name!r} is a parameter: trace[{kind!r}][{name!r}], for example"
        return KeyError(f"nothing named {name!r} was recorded; there is {', '.join(names)}{hint}")


def _by_label(kinds: Mapping[str, Arrays]) -> dict[str, Arrays]:
    """Drop the prefix slot or term, unless a slot and a term have the same name."""
    found: dict[str, Arrays] = {}
    for kind, arrays in kinds.items():
        what, _, name = kind.rpartition(" ")
        found[f"{name} ({what})" if name in found else name] = arrays
    return found


def _rows(array: np.ndarray) -> np.ndarray:
    """Return one row of float64 per step."""
    return array.reshape(len(array), math.prod(array.shape[1:])).astype(np.float64)
