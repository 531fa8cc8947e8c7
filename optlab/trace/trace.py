"""Trace: labelled arrays over the steps of a run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from optlab.backend.memory.ledger import ROLES

Arrays = Mapping[str, np.ndarray]


class Trace:
    """The quantities of a run, step by step.

    Step 1 is the first update. ``loss[0]`` is the loss before it, at ``parameters[...][0]``.

    Attributes
    ----------
    name : str
        The label of the run in tables and figures.
    settings : dict
        The class of the optimizer and its hyper-parameters.
    step : array of int, shape (n,)
        The numbers of the recorded steps: 1, 2, ... unless only every k-th was recorded.
    loss : array of float64, shape (n,)
        The value that the backward pass started from before each step (their sum if there were
        several; NaN if there was none).
    learning_rate : array of float64, shape (n,)
        The rate of the first group, without the multipliers of its parameters.
    seconds : array of float64, shape (n,)
        The time of the step since the start of the recording.
    parameters : mapping of str to array, shape (n + 1, ...)
        The value of each parameter: at the start, then after each recorded step.
    gradients : mapping of str to array, shape (n, ...)
        The raw gradients, before clipping and decay. NaN in a step that skipped the parameter.
    slots : mapping of str to mapping of str to array, shape (n, ...)
        The optimizer's slots of each parameter after each step.
    terms : mapping of str to mapping of str to array, shape (n, ...)
        The named terms of the update rule, "update" included, for each parameter; also
        "used_gradient" if clipping or decay changed the gradient.
    norms : mapping of str to mapping of str to array, shape (n,)
        Euclidean norms of "parameter" (after the step), "gradient", every slot and every term.
    memory : mapping of str to array of int, shape (n,)
        With the probe "memory": the bytes of each role (parameter, gradient, slot, data, saved,
        recomputed, temporary) at the memory peak of the step. Otherwise empty.
    stopped : str or None
        Why the run ended early, if it did.
    error : exception or None
        The exception that ended the run, if any.
    problem : Surface, Network or None
        The problem of a comparison; None for a run outside of one.

    Examples
    --------
    >>> import optlab as ol
    >>> w = ol.Parameter([3.0], name="w")
    >>> optimizer = ol.optimizer.Adam(0.1, parameters=[w])
    >>> with ol.record(optimizer) as trace:
    ...     for _ in range(2):
    ...         (w * w).sum().backward()
    ...         optimizer.step()
    ...         optimizer.clear_grad()
    >>> trace
    <Trace Adam: 2 steps, loss 9 -> 8.41; parameters w; slots moment1, moment2; terms root, update>
    >>> trace.slots["moment1"]["w"].shape
    (2, 1)
    """

    def __init__(self, name: str, settings: dict[str, Any]) -> None:
        self.name = name
        self.settings = settings
        self.stopped: str | None = None
        self.error: BaseException | None = None
        self.problem: Any = None
        self.columns: defaultdict[tuple[str, int], Column] = defaultdict(Column)
        #: For each flat array: name, first element, end and shape of its parameters.
        self.layouts: list[list[tuple[str, int, int, tuple[int, ...]]]] = []
        #: Writes the steps that the recorder still holds; called before anything is read.
        self.complete: Callable[[], None] = _nothing

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
        found = self.terms.get("synchronised") or self._groups("norm ").get("term synchronised", {})
        met = np.zeros(len(self), dtype=bool)
        for array in found.values():
            met |= (array.reshape(len(array), -1) > 0).any(axis=1)
        return self.step[met]

    def _group(self, kind: str) -> dict[str, np.ndarray]:
        """Split the flat rows of one kind into parameters of their shapes."""
        self.complete()
        found = {}
        for number, layout in enumerate(self.layouts):
            column = self.columns.get((kind, number))
            if column is None:
                continue
            steps = len(self.columns["step", 0]) + (kind == "parameter")
            if len(column) < steps:  # not every step has this value
                column.fill(steps, column.array()[-1])
            rows = column.array()
            for i, (name, start, stop, shape) in enumerate(layout):
                if kind.startswith("norm "):
                    found[name] = rows[:, i]
                else:
                    found[name] = rows[:, start:stop].reshape(len(rows), *shape)
        return found

    def _groups(self, prefix: str) -> dict[str, Arrays]:
        self.complete()
        kinds = dict.fromkeys(kind for kind, _ in self.columns if kind.startswith(prefix))
        plain = {"step", "loss", "learning_rate", "seconds", "memory"}
        if not prefix:
            kinds = {k: None for k in kinds if k not in plain and not k.startswith("norm ")}
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
        recorded = _by_label(self._groups("norm "))
        if recorded:
            return recorded
        return {
            kind: {
                name: np.sqrt(np.sum(_rows(a[1:] if kind == "parameter" else a) ** 2, axis=1))
                for name, a in arrays.items()
            }
            for kind, arrays in self._recorded().items()
        }

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

    def __len__(self) -> int:
        self.complete()
        return len(self.columns["step", 0])

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    @property
    def names(self) -> list[str]:
        """Names that ``trace[name]`` accepts."""
        return ["loss", "learning_rate", "seconds", *self._recorded()]

    def __getitem__(self, name: str) -> Any:
        """Return one recorded quantity by its name: ``trace["moment1"]``, ``trace["loss"]``.

        With several parameters it is a mapping from their names.

        Raises
        ------
        KeyError
            If nothing of that name was recorded; the message lists the names.
        """
        if name in ("loss", "learning_rate", "seconds", "step"):
            return getattr(self, name)
        arrays = self._recorded().get(name)
        if not arrays:
            raise KeyError(f"nothing named {name!r} was recorded; there is {', '.join(self.names)}")
        return next(iter(arrays.values())) if len(arrays) == 1 else arrays

    def to_xarray(self) -> Any:
        """Return the trace as an `xarray.Dataset`, for labelled selection and plotting.

        Variables are named ``loss``, ``learning_rate``, ``parameter/w``, ``gradient/w``,
        ``moment1/w`` and so on. They share the coordinate ``step``; parameters have their values
        after each step, and their start is ``start/w``.

        Raises
        ------
        ModuleNotFoundError
            If xarray is not installed (it comes with the extra ``lab``).
        """
        import xarray

        variables: dict[str, Any] = {
            name: (("step",), self[name]) for name in ("loss", "learning_rate", "seconds")
        }

        def put(kind: str, name: str, array: np.ndarray) -> None:
            axes = tuple(f"{name} axis {i}" for i in range(array.ndim - 1))
            variables[f"{kind}/{name}"] = (("step", *axes), array)

        for name, array in self.parameters.items():
            axes = tuple(f"{name} axis {i}" for i in range(array.ndim - 1))
            variables[f"start/{name}"] = (axes, array[0])
            put("parameter", name, array[1:])
        if self.parameters:
            kinds = {k: arrays for k, arrays in self._recorded().items() if k != "parameter"}
        else:
            kinds = {f"norm of {kind}": arrays for kind, arrays in self.norms.items()}
        for kind, arrays in kinds.items():
            for name, array in arrays.items():
                put(kind, name, array)
        if self.memory:
            variables["memory"] = (("step", "role"), np.stack(list(self.memory.values()), axis=1))
        attributes = {"name": self.name, **{k: str(v) for k, v in self.settings.items()}}
        if self.stopped:
            attributes["stopped"] = self.stopped
        return xarray.Dataset(variables, coords=self._coordinates(), attrs=attributes)

    def _coordinates(self) -> dict[str, Any]:
        roles = {"role": list(ROLES)} if self.memory else {}
        return {"step": self.step, **roles}

    def __repr__(self) -> str:
        n = len(self)
        parts = [f"{n} step{'s' * (n != 1)}"]
        if n:
            parts[0] += f", loss {self.loss[0]:.3g} -> {self.loss[-1]:.3g}"
        for label, names in (
            ("parameters", list(self.parameters) or list(self.norms.get("parameter", ()))),
            ("slots", self.slots),
            ("terms", self.terms),
        ):
            if names:
                parts.append(f"{label} {', '.join(names)}")
        if self.stopped:
            parts.append(self.stopped)
        return f"<Trace {self.name}: {'; '.join(parts)}>"


def _by_label(kinds: Mapping[str, Arrays]) -> dict[str, Arrays]:
    """Drop the prefix slot or term, unless a slot and a term have the same name."""
    found: dict[str, Arrays] = {}
    for kind, arrays in kinds.items():
        what, _, name = kind.rpartition(" ")
        found[f"{name} ({what})" if name in found else name] = arrays
    return found


def _nothing() -> None:
    """Do nothing: no recorder holds back steps."""


def _rows(array: np.ndarray) -> np.ndarray:
    """Return one row of float64 per step."""
    return array.reshape(len(array), -1).astype(np.float64)


class Column:
    """An array that grows by one row per step.

    Rows are stored by reference and joined in blocks, so that appending is cheap.
    """

    __slots__ = ("blocks", "count", "rows")

    BLOCK = 512

    def __init__(self) -> None:
        self.rows: list[Any] = []
        self.blocks: list[np.ndarray] = []
        self.count = 0

    def append(self, row: Any) -> None:
        """Append a row; it is stored, not copied, and must not change later."""
        self.rows.append(row)
        self.count += 1
        if len(self.rows) >= self.BLOCK:
            self.blocks.append(np.array(self.rows))
            self.rows = []

    def fill(self, count: int, like: Any) -> None:
        """Append rows of NaN of the given shape until there are `count`."""
        while self.count < count:
            self.append(np.full_like(like, np.nan))

    def __len__(self) -> int:
        return self.count

    def array(self, dtype: Any = None) -> np.ndarray:
        """Return all rows as one array."""
        if self.rows or not self.blocks:
            self.blocks.append(np.array(self.rows, dtype=dtype))
            self.rows = []
        if len(self.blocks) > 1:
            self.blocks = [np.concatenate([block for block in self.blocks if len(block)])]
        return self.blocks[0]
