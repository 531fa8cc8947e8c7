"""Recordings of other people's optimizers: torch.optim by its hooks, others by arrays a step."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from optlab.trace.probes.base import Part, Probe, Run
from optlab.trace.recordings.recording import Recording


class _Row(NamedTuple):
    """The arrays of one parameter in one step, as `optlab.optimizer.Update` has them."""

    parameter: Any
    raw_gradient: Any
    gradient: Any
    slots: dict[str, Any]
    terms: dict[str, Any]


def is_torch_optimizer(optimizer: Any) -> bool:
    """Return whether something is an optimizer of PyTorch, without importing it."""
    return any(
        cls.__module__.startswith("torch.optim") and cls.__name__ == "Optimizer"
        for cls in type(optimizer).__mro__
    )


def _numpy(x: Any) -> np.ndarray:
    """Return a tensor of PyTorch as a flat array of its own."""
    x = x.detach()
    if x.is_sparse:
        x = x.to_dense()
    x = x.cpu()
    if str(x.dtype) == "torch.bfloat16":  # NumPy has none; its values are those of float32, too
        x = x.float()
    return np.array(x.numpy()).reshape(-1)


class TorchRecording(Recording):
    """A recording of an optimizer of PyTorch.

    It registers step hooks, and observes the tensors whose ``backward`` is called: they are the
    losses. Neither changes the run.
    """

    def __init__(self, optimizer: Any, model: Any, trace: Any, *rest: Any) -> None:
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        self.optimizer, self.parameters = optimizer, parameters
        named = {} if model is None else {id(p): name for name, p in model.named_parameters()}
        names = _distinct([named.get(id(p), f"parameter {i}") for i, p in enumerate(parameters)])
        parts = [self._part(name, p) for name, p in zip(names, parameters, strict=True)]
        super().__init__(trace, Run(optimizer, parts, model), *rest)
        self._loss: float | None = None
        self._old: list[np.ndarray] = []
        self._gradients: list[np.ndarray] = []
        self._handles: list[Any] = []
        self._backward: Any = None

    def _part(self, name: str, p: Any) -> Part:
        def gradients(given: Any) -> tuple[list[np.ndarray], bool]:
            if p.grad is None:
                return [np.full_like(_numpy(p), np.nan)], True
            return [_numpy(p.grad)], False

        return Part(
            [name], [0, p.numel()], [tuple(p.shape)],
            lambda: _numpy(p), lambda: self._slots(p), gradients,
        )  # fmt: skip

    def _slots(self, p: Any) -> dict[str, np.ndarray]:
        """Return the state of a parameter that has its shape."""
        state = self.optimizer.state.get(p, {})
        return {
            name: _numpy(x)
            for name, x in state.items()
            if hasattr(x, "shape") and x.shape == p.shape and (x.ndim or name != "step")
        }

    def start(self) -> None:
        """Begin to listen."""
        super().start()
        torch: Any = sys.modules["torch"]  # imported by whoever made the optimizer
        self._handles = [
            self.optimizer.register_step_pre_hook(self._before_step),
            self.optimizer.register_step_post_hook(self._after_step),
        ]
        self._backward = original = torch.Tensor.backward

        def backward(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(tensor, *args, **kwargs)
            if not self.busy:
                total = float(tensor.detach().sum())
                self._loss = total if self._loss is None else self._loss + total
            return result

        torch.Tensor.backward = backward

    def stop(self) -> None:
        """End to listen."""
        if self._backward is not None:
            torch: Any = sys.modules["torch"]
            torch.Tensor.backward = self._backward
            self._backward = None
        while self._handles:
            self._handles.pop().remove()
        super().stop()

    def _before_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        if self.needs_update(self.trace.steps_taken + 1):
            self._old = [_numpy(p) for p in self.parameters]
            self._gradients = [part.gradients(None)[0][0] for part in self.run.parts]

    def _after_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        number = self.trace.steps_taken = self.trace.steps_taken + 1
        loss, self._loss = self._loss, None
        self.take(number, loss, lambda: float(optimizer.param_groups[0]["lr"]), self._rows)

    def _rows(self) -> list[_Row]:
        rows = []
        for part, old, gradient in zip(self.run.parts, self._old, self._gradients, strict=True):
            new = part.values()
            update = new - old
            if len(gradient) and np.isnan(gradient).all():
                update = np.full_like(update, np.nan)
            rows.append(_Row(new, gradient, gradient, part.slots(), {"update": update}))
        return rows


def settings_of_torch(optimizer: Any) -> dict[str, Any]:
    """Return the class and the settings of an optimizer of PyTorch, for its trace."""
    first = {k: x for k, x in optimizer.param_groups[0].items() if k != "params"}
    rate = first.pop("lr", None)
    return {"class": type(optimizer).__name__, "learning_rate": rate, **first}


def _distinct(names: list[str]) -> list[str]:
    """Return names with a number behind those that occur again."""
    found: list[str] = []
    for name in names:
        new, count = name, 2
        while new in found:
            new, count = f"{name} ({count})", count + 1
        found.append(new)
    return found


class ArraysRecording(Recording):
    """A recording of a run that hands its arrays over, step by step; see `Trace.append`."""

    def __init__(
        self, trace: Any, before: Mapping[str, Any], probes: list[Probe], every: int, limit: int
    ) -> None:
        self.now = {name: np.array(x) for name, x in before.items()}
        parts = [self._part(name, x) for name, x in self.now.items()]
        super().__init__(trace, Run(None, parts, None), probes, every, limit, False)
        self.slots: dict[str, dict[str, np.ndarray]] = {}
        self.gradients: dict[str, np.ndarray] = {}

    def _part(self, name: str, x: np.ndarray) -> Part:
        def gradients(given: Any) -> tuple[list[np.ndarray], bool]:
            found = self.gradients.get(name)
            if found is None:
                return [np.full(self.now[name].size, np.nan)], True
            return [found.reshape(-1)], False

        def slots() -> dict[str, np.ndarray]:
            return {k: x[name].reshape(-1) for k, x in self.slots.items() if name in x}

        return Part(
            [name], [0, x.size], [x.shape], lambda: self.now[name].reshape(-1), slots, gradients
        )

    def append(
        self,
        loss: float,
        learning_rate: float,
        parameters: Mapping[str, Any],
        gradients: Mapping[str, Any],
        slots: Mapping[str, Mapping[str, Any]],
        terms: Mapping[str, Mapping[str, Any]],
    ) -> None:
        """Record a step of these arrays."""
        old = self.now
        self.now = old | self._checked("parameters", parameters)
        self.gradients = self._checked("gradients", gradients)
        self.slots = {name: self._checked(f"slot {name}", x) for name, x in slots.items()}
        named = {name: self._checked(f"term {name}", x) for name, x in terms.items()}
        if "update" not in named:
            named["update"] = {name: self.now[name] - old[name] for name in parameters}

        def rows() -> list[_Row]:
            found = []
            for name, part in zip(self.now, self.run.parts, strict=True):
                gradient = part.gradients(None)[0][0]
                own = {k: x[name].reshape(-1) for k, x in named.items() if name in x}
                found.append(_Row(part.values(), gradient, gradient, part.slots(), own))
            return found

        number = self.trace.steps_taken = self.trace.steps_taken + 1
        rate: Callable[[], float] = lambda: float(learning_rate)  # noqa: E731
        self.take(number, float(loss), rate, rows)

    def _checked(self, what: str, given: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """Return arrays by the names of parameters, copied.

        Raises
        ------
        ValueError
            If a name or a shape is not that of a parameter.
        """
        found = {}
        for name, x in given.items():
            array = np.array(x)
            if name not in self.now:
                raise ValueError(
                    f"{what}: there is no parameter {name!r}; there is {', '.join(self.now)}."
                )
            if array.shape != self.now[name].shape:
                raise ValueError(
                    f"{what}: {name} has shape {array.shape}; its parameter has "
                    f"{self.now[name].shape}."
                )
            found[name] = array
        return found
