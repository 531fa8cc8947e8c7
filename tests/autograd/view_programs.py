"""Random programs that write through views: seeded, as data, run by NumPy, optlab, PyTorch and JAX.

A program is a list of steps on numbered values. Each backend gives the few calls in which its names
differ; writes are NumPy's own everywhere but in JAX, which has no views: there every value keeps
the places in the memory that it shows, and a write makes new memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

SIZE = 3
Step = tuple[Any, ...]
#: As often as they are named.
KINDS = ["view", "view", "view", "assign", "augment", "augment", "at", "new"]


def program(seed: int) -> list[Step]:
    """Return the steps of a random program; the first value is a matrix of `SIZE` rows.

    Every step names a value by number. Views append a value with places in the memory of another.
    """
    rng = np.random.default_rng(seed)
    #: For each value: the number of its memory, and where in it its elements are.
    values: list[tuple[int, Any]] = [(0, np.arange(SIZE * SIZE).reshape(SIZE, SIZE))]
    memories, steps = 1, []

    def pick(shapes: set[tuple[int, ...]] | None = None) -> int | None:
        found = [i for i, (_, p) in enumerate(values) if shapes is None or p.shape in shapes]
        return int(rng.choice(found)) if found else None

    for _ in range(rng.integers(6, 14)):
        kind = str(rng.choice(KINDS))
        target = pick()
        assert target is not None
        memory, places = values[target]
        if kind == "view":
            how = str(rng.choice(["slice", "row", "transpose", "reshape", "diagonal", "flip"]))
            if how == "slice" and places.ndim:
                axis = int(rng.integers(places.ndim))
                start = int(rng.integers(places.shape[axis]))
                index = (slice(None),) * axis + (slice(start, None, int(rng.integers(1, 3))),)
                step: Step = ("index", target, index)
            elif how == "row" and places.ndim > 1:
                step = ("index", target, int(rng.integers(places.shape[0])))
            elif how == "transpose":
                step = ("transpose", target)
            elif how == "reshape":
                step = ("reshape", target, (places.size,))
            elif how == "diagonal" and places.ndim == 2 and places.shape[0] == places.shape[1]:
                step = ("diagonal", target)
            elif how == "flip" and places.ndim:
                step = ("flip", target)
            else:
                continue
            shown = NUMPY.view(places, step)
            if not np.shares_memory(shown, places):
                continue  # a copy: its own memory would need a number
            steps.append(step)
            values.append((memory, shown))
            continue
        other = pick({(), places.shape, places.shape[1:]})
        factor = round(float(rng.uniform(-1.2, 1.2)), 3)
        if kind == "new":
            how = str(rng.choice(["multiply", "sin", "matmul"]))
            if how == "matmul" and (places.ndim != 2 or places.shape[0] != places.shape[1]):
                how = "sin"
            # Of what is computed from the value itself backward is refused after a write to it.
            copied = bool(rng.random() < 0.85)
            steps.append(("new", how, target, target if other is None else other, copied))
            values.append((memories, np.arange(places.size).reshape(places.shape)))
            memories += 1
        elif kind == "at":
            if not places.ndim:
                continue
            rows = tuple(int(i) for i in rng.integers(places.shape[0], size=2))
            steps.append(("at", target, rows, target if other is None else other, factor))
        elif kind == "assign" and places.ndim:
            row = int(rng.integers(places.shape[0]))
            source = pick({places.shape[1:]})
            steps.append(("assign", target, row, source, factor))
        else:
            symbol = str(rng.choice(["+", "-", "*"]))
            steps.append(("augment", symbol, target, target if other is None else other, factor))
    return steps


class Numpy:
    """The steps in NumPy's words; Tensors of optlab take them as they are."""

    def start(self, x: Any) -> Any:
        return x * 1.0

    def view(self, value: Any, step: Step) -> Any:
        if step[0] == "index":
            return value[step[2]]
        if step[0] == "transpose":
            return value.T
        if step[0] == "reshape":
            return np.reshape(value, step[2])
        if step[0] == "diagonal":
            return np.einsum("ii->i", value)
        return np.flip(value, 0)

    def copy(self, value: Any) -> Any:
        return value.copy()

    own = copy

    def new(self, how: str, a: Any, b: Any) -> Any:
        y = a * b if how == "multiply" else a @ a.T if how == "matmul" else np.sin(a)
        return np.ravel(y).reshape(y.shape)  # rows lie one after the other in every library

    def at(self, target: Any, rows: tuple[int, ...], value: Any) -> None:
        np.add.at(target, list(rows), value)

    def total(self, value: Any) -> Any:
        return (value * value * 0.5 + value).sum()


NUMPY = Numpy()


def run(steps: list[Step], x: Any, words: Any = NUMPY) -> Any:
    """Run a program; return a scalar that depends on every value, those of old views too."""
    values = [words.start(x)]
    for step in steps:
        if step[0] == "new":
            a, b = values[step[2]], values[step[3]]
            if step[4]:
                a, b = words.own(a), words.own(b)
            values.append(words.new(step[1], a, b))
        elif step[0] == "assign":
            _, target, row, source, factor = step
            value = factor if source is None else words.copy(values[source]) * factor
            values[target][row] = value
        elif step[0] == "augment":
            _, symbol, target, other, factor = step
            value = words.copy(values[other]) * factor
            v = values[target]
            if symbol == "+":
                v += value
            elif symbol == "-":
                v -= value
            else:
                v *= value
        elif step[0] == "at":
            _, target, rows, other, factor = step
            value = words.copy(values[other])
            v = values[target]
            value = (value * factor)[:1] if value.ndim == v.ndim else value * factor
            words.at(v, rows, value)
        else:
            values.append(words.view(values[step[1]], step))
    total = 0.0
    for i, value in enumerate(values):
        total = total + words.total(value) * (1.0 + 0.3 * i)
    return total


class Torch:
    """The same steps in PyTorch's words."""

    def __init__(self, torch: Any) -> None:
        self.torch = torch

    def start(self, x: Any) -> Any:
        return x * 1.0

    def view(self, value: Any, step: Step) -> Any:
        if step[0] == "index":
            return value[step[2]]
        if step[0] == "transpose":
            return value.permute(*reversed(range(value.ndim)))
        if step[0] == "reshape":
            return value.view(step[2]) if value.is_contiguous() else value.reshape(step[2])
        if step[0] == "diagonal":
            return value.diagonal()
        return None

    def copy(self, value: Any) -> Any:
        return value.clone()

    own = copy

    def new(self, how: str, a: Any, b: Any) -> Any:
        y = a * b if how == "multiply" else a @ a.T if how == "matmul" else self.torch.sin(a)
        return y.contiguous()

    def at(self, target: Any, rows: tuple[int, ...], value: Any) -> None:
        index = self.torch.tensor(rows)
        target.index_add_(0, index, value.expand(len(rows), *target.shape[1:]))

    def total(self, value: Any) -> Any:
        return (value * value * 0.5 + value).sum()


@dataclass
class Shown:
    """A value in JAX: the number of its memory, and the places in it that it shows."""

    memory: list[Any]
    places: Any

    @property
    def ndim(self) -> int:
        return int(self.places.ndim)

    def read(self) -> Any:
        return self.memory[0][self.places]

    def write(self, value: Any) -> None:
        self.memory[0] = self.memory[0].at[self.places].set(value)

    def __setitem__(self, row: int, value: Any) -> None:
        self.memory[0] = self.memory[0].at[self.places[row]].set(value)

    def __iadd__(self, value: Any) -> Shown:
        self.write(self.read() + value)
        return self

    def __isub__(self, value: Any) -> Shown:
        self.write(self.read() - value)
        return self

    def __imul__(self, value: Any) -> Shown:
        self.write(self.read() * value)
        return self


class Jax:
    """The same steps without views: memory as a vector, made anew by each write."""

    def __init__(self, jnp: Any) -> None:
        self.jnp = jnp

    def _memory(self, value: Any) -> Shown:
        return Shown([value.reshape(-1)], np.arange(value.size).reshape(value.shape))

    def start(self, x: Any) -> Any:
        return self._memory(x)

    def view(self, value: Any, step: Step) -> Any:
        return Shown(value.memory, NUMPY.view(value.places, step))

    def copy(self, value: Any) -> Any:
        return value.read()

    def own(self, value: Any) -> Any:
        return value

    def new(self, how: str, a: Any, b: Any) -> Any:
        a, b = a.read(), b.read()
        if how == "multiply":
            return self._memory(a * b)
        return self._memory(a @ a.T if how == "matmul" else self.jnp.sin(a))

    def at(self, target: Any, rows: tuple[int, ...], value: Any) -> None:
        target.memory[0] = target.memory[0].at[target.places[np.array(rows)]].add(value)

    def total(self, value: Any) -> Any:
        value = value.read()
        return (value * value * 0.5 + value).sum()
