"""Replay of the recorded trajectories in `tests/data/paddle`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

import optlab as ol

FOLDER = Path(__file__).parent / "data" / "paddle"
DESCRIPTION: dict[str, Any] = json.loads((FOLDER / "golden.json").read_text())
ARRAYS = dict(np.load(FOLDER / "golden.npz"))


def regularizer(described: Any) -> Any:
    """Build a regularizer from its description: None, a number, or a type with a coefficient."""
    if not isinstance(described, dict):
        return described
    return getattr(ol.regularizer, described["type"])(described["coeff"])


def clip(described: Any) -> Any:
    """Build a gradient clip from its description."""
    if described is None:
        return None
    return getattr(ol.nn, described["type"])(**{k: v for k, v in described.items() if k != "type"})


class Replay:
    """The run of one recorded case with our optimizer."""

    def __init__(self, case: dict[str, Any], rounded: bool) -> None:
        self.case = case
        dtype = case["dtype"]
        kwargs = dict(case["kwargs_rounded"] if rounded else case["kwargs"])
        attrs = case.get("param_attrs") or {}
        self.parameters = {
            name: ol.Parameter(
                ARRAYS[key].astype(dtype),
                name=name,
                **{
                    k: regularizer(v) if k == "regularizer" else v
                    for k, v in attrs.get(name, {}).items()
                },
            )
            for name, key in case["params"].items()
        }
        fluid = case["case"].startswith("fluid/")
        cls = getattr(ol.fluid.optimizer if fluid else ol.optimizer, case["optimizer"])
        described = case.get("lr_schedule")
        self.schedule: Any = None
        if described:
            self.schedule = getattr(ol.optimizer.lr, described["class"])(**described["kwargs"])
            kwargs["learning_rate"] = self.schedule
        for name, condition in (case.get("fn") or {}).items():
            kwargs[name] = lambda p, names=condition["in"]: getattr(p, "name", p) in names
        if case["weight_decay"] is not None:
            kwargs["weight_decay"] = regularizer(case["weight_decay"])
        groups = case.get("param_groups")
        parameters: Any = list(self.parameters.values())
        if groups:
            parameters = [
                {k: self._group_value(k, v) for k, v in group.items()} for group in groups
            ]
        self.optimizer = cls(
            **kwargs,
            parameters=parameters,
            grad_clip=clip(case["grad_clip"]),
        )
        self.zero = (case.get("clear_grad") or {}).get("set_to_zero", True)

    def _group_value(self, key: str, value: Any) -> Any:
        if key == "params":
            return [self.parameters[name] for name in value]
        return {"weight_decay": regularizer, "grad_clip": clip}.get(key, lambda v: v)(value)

    def loss(self, t: int) -> Any:
        """Return the loss of step t (from 0) of the described problem."""
        case, p = self.case, self.parameters
        dtype = case["dtype"]
        if case["problem"] == "quadratic_rosenbrock":
            w = p["w"]
            centre, matrix = ARRAYS["rb/c"].astype(dtype), ARRAYS["rb/A"].astype(dtype)
            d = w - centre
            return (1 - w[0]) ** 2 + 5 * (w[1] - w[0] ** 2) ** 2 + 0.5 * (d @ (matrix @ d))
        if case["problem"] == "embedding":
            ids, factors = ARRAYS["emb/ids"][t], ARRAYS["emb/C"][t].astype(dtype)
            rows = ol.nn.functional.embedding(ol.to_tensor(ids), p["emb"], sparse=True)
            return (rows * factors).sum()
        total: Any = 0.0
        for name, key in case["grads"].items():
            if (case.get("grad_mask") or {}).get(name, [1] * case["steps"])[t]:
                total = total + (p[name] * ARRAYS[key][t].astype(dtype)).sum()
        return total

    def _closure(self) -> Any:
        self.optimizer.clear_grad()
        loss = self.loss(0)
        loss.backward()
        return loss

    def run(self) -> dict[str, np.ndarray]:
        """Return the trajectory of every parameter."""
        path: dict[str, list[np.ndarray]] = {name: [] for name in self.parameters}
        for t in range(self.case["steps"]):
            if self.case["optimizer"] == "LBFGS":
                self.optimizer.step(self._closure)
            else:
                self.loss(t).backward()
                self.optimizer.step()
            if self.schedule is not None:
                self.schedule.step()
            for name, parameter in self.parameters.items():
                path[name].append(parameter.numpy())
            self.optimizer.clear_grad(self.zero)
        return {name: np.stack(values) for name, values in path.items()}
