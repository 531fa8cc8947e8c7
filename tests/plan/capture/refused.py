"""Functions that no plan can repeat; the comment ``# here`` marks the line that the error names
(two, where a value is taken out in one line and used in another).

Each is made by a function of a `Bench`, which holds what it uses.
"""

from __future__ import annotations

import contextlib
import inspect
import io
import itertools
import os
import random
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import optlab as ol
from tests.optimizer.helpers import WithNorms
from tests.plan.capture.twins import F, given, leaves, nn


class Bench:
    """A small model with its optimizer, and Python objects of the user."""

    def __init__(self) -> None:
        self.model = nn.Sequential(
            nn.Linear(3, 4), nn.BatchNorm1D(4), nn.Tanh(), nn.Dropout(0.2), nn.Linear(4, 2)
        )
        self.optimizer = ol.optimizer.Adam(0.05, parameters=self.model.parameters())
        self.schedule = ol.optimizer.lr.StepDecay(0.05, 2)
        self.list: list[Any] = []
        self.dict: dict[str, Any] = {}
        self.set: set[Any] = set()
        self.deque: deque[Any] = deque(maxlen=100)
        self.array = np.zeros(3)
        self.rng = np.random.default_rng(3)
        self.n = 0

    def step(self, x: Any) -> Any:
        """Take a whole training step."""
        loss = F.cross_entropy(self.model(x), np.arange(6) % 2)
        loss.backward()
        self.optimizer.step()
        self.optimizer.clear_grad()
        return loss.detach()

    def state(self) -> dict[str, Any]:
        """Return the bits of what the engine owns."""
        kept = ol.get_rng_state()
        after = ol.rand([2])
        ol.set_rng_state(kept)
        return dict(leaves({
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "schedule": self.schedule.state_dict(),
            "gradients": [p.grad for p in self.model.parameters()],
            "modes": [layer.training for layer in self.model.sublayers(include_self=True)],
            "random": after,
        }))  # fmt: skip

    def of_the_user(self) -> list[Any]:
        """Return the effects on the user's own objects."""
        return [
            len(self.list), len(self.dict), len(self.set), len(self.deque), self.n,
            self.array.tolist(), [type(part).__name__ for part in self.list],
        ]  # fmt: skip


def inputs(count: int = 4) -> list[Any]:
    return [ol.to_tensor(given(6, 3, seed=i)) for i in range(count)]


Make = Callable[[Bench], Callable[[Any], Any]]


# Values that decide what is computed.


def branch(b: Bench) -> Any:
    def f(x: Any) -> Any:
        loss = b.step(x)
        if loss > 0.5:  # here
            return loss * 2
        return loss

    return f


def branch_on_a_plain_array(b: Bench) -> Any:
    def f(x: Any) -> Any:
        b.step(x)
        return x * 2 if np.mean(x.numpy()) > 0 else x  # here

    return f


def loop_on_a_value(b: Bench) -> Any:
    def f(x: Any) -> Any:
        b.step(x)
        while np.abs(x).max() > 0.1:  # here
            x = 0.5 * x
        return x

    return f


def assertion(b: Bench) -> Any:
    def f(x: Any) -> Any:
        loss = b.step(x)
        assert loss < 1e6  # here
        return loss

    return f


def number_used_further(b: Bench) -> Any:
    def f(x: Any) -> Any:
        loss = b.step(x)
        scale = loss.item()  # here
        return x * (scale + 1)  # here

    return f


def float_used_further(b: Bench) -> Any:
    def f(x: Any) -> Any:
        b.step(x)
        return x * (float(x.sum()) + 1)  # here

    return f


def whole_number_used_further(b: Bench) -> Any:
    def f(x: Any) -> Any:
        b.step(x)
        n = int(np.argmax(x[0]))  # here
        return x[:, n]

    return f


def list_of_numbers(b: Bench) -> Any:
    def f(x: Any) -> Any:
        b.step(x)
        return x * sum(x.sum(axis=0).tolist())  # here

    return f


def largest_by_python(b: Bench) -> Any:
    def f(x: Any) -> Any:
        b.step(x)
        return max(x.sum(axis=0))  # here

    return f


def comparison_of_arrays(b: Bench) -> Any:
    def f(x: Any) -> Any:
        b.step(x)
        return x if np.allclose(x, 0) else -x  # here

    return f


def caught_by_the_user(b: Bench) -> Any:
    """The user's `except` must not turn a refusal into another path."""

    def f(x: Any) -> Any:
        b.step(x)
        try:
            if x.sum() > 0:  # here
                return x * 2
        except Exception:  # noqa: BLE001 (that is what is tried)
            return x * 3
        return x

    return f


def anything_caught_by_the_user(b: Bench) -> Any:
    def f(x: Any) -> Any:
        b.step(x)
        try:
            k = x.sum().item()  # here
        except:  # noqa: E722 (that is what is tried)
            k = 1.0
        return x * k  # here

    return f


# Shapes that depend on values.


def masked(b: Bench) -> Any:
    def f(x: Any) -> Any:
        b.step(x)
        return x[x > 0]  # here

    return f


def nonzero(b: Bench) -> Any:
    def f(x: Any) -> Any:
        b.step(x)
        return np.nonzero(np.maximum(x, 0))[0]  # here

    return f


def unique(b: Bench) -> Any:
    def f(x: Any) -> Any:
        b.step(x)
        return np.unique(np.round(x))  # here

    return f


def masked_select(b: Bench) -> Any:
    def f(x: Any) -> Any:
        b.step(x)
        return ol.masked_select(x, x > 0)  # here

    return f


def repeated(b: Bench) -> Any:
    def f(x: Any) -> Any:
        b.step(x)
        return np.repeat(np.arange(3), (x[0] > 0).astype("int64"))  # here

    return f


# Effects on Python objects.


def append_the_loss(b: Bench) -> Any:
    def f(x: Any) -> Any:
        loss = b.step(x)
        b.list.append(loss)  # here
        return loss

    return f


def append_a_constant(b: Bench) -> Any:
    def f(x: Any) -> Any:
        b.list.append("called")  # here
        return b.step(x)

    return f


def append_of_a_closure(b: Bench) -> Any:
    losses = b.list

    def f(x: Any) -> Any:
        loss = b.step(x)
        losses.append(loss.detach())  # here
        return loss

    return f


def counter(b: Bench) -> Any:
    def f(x: Any) -> Any:
        b.n += 1  # here
        return b.step(x)

    return f


def counter_that_is_read(b: Bench) -> Any:
    def f(x: Any) -> Any:
        b.n += 1  # here
        return b.step(x) * b.n

    return f


def counter_that_branches(b: Bench) -> Any:
    def f(x: Any) -> Any:
        b.n += 1  # here
        return b.step(x) if b.n % 2 else x

    return f


def counter_of_a_closure(b: Bench) -> Any:
    n = 0

    def f(x: Any) -> Any:
        nonlocal n
        n += 1  # here
        b.n = n
        return b.step(x)

    return f


COUNT = 0


def counter_of_a_module(b: Bench) -> Any:
    def f(x: Any) -> Any:
        global COUNT
        COUNT += 1  # here
        b.n = 0
        return b.step(x)

    return f


def entry_of_a_dict(b: Bench) -> Any:
    def f(x: Any) -> Any:
        loss = b.step(x)
        b.dict["last"] = loss  # here
        return loss

    return f


def element_of_a_set(b: Bench) -> Any:
    def f(x: Any) -> Any:
        b.set.add(id(x))  # here
        return b.step(x)

    return f


def append_to_a_deque(b: Bench) -> Any:
    def f(x: Any) -> Any:
        loss = b.step(x)
        b.deque.append(loss)  # here
        return loss

    return f


def next_of_an_iterator(b: Bench) -> Any:
    numbers = itertools.count()

    def f(x: Any) -> Any:
        k = next(numbers)  # here
        b.n = 0
        return b.step(x) * (1.0 + k)

    return f


def iterator_that_gives_the_same_at_first(b: Bench) -> Any:
    """The first two runs agree, and a later one would not."""
    numbers = itertools.chain([1.0] * 3, itertools.count(2.0))

    def f(x: Any) -> Any:
        k = next(numbers)  # here
        return b.step(x) * k

    return f


def write_into_a_plain_array(b: Bench) -> Any:
    def f(x: Any) -> Any:
        b.array += 1  # here
        return b.step(x) * b.array.sum()

    return f


def printing(b: Bench) -> Any:
    def f(x: Any) -> Any:
        loss = b.step(x)
        print(loss)  # here
        return loss

    return f


def text_of_a_value(b: Bench) -> Any:
    def f(x: Any) -> Any:
        loss = b.step(x)
        return loss, f"loss {loss.item():.3f}"  # here

    return f


# Random numbers and clocks that are not the engine's.


def random_of_python(b: Bench) -> Any:
    def f(x: Any) -> Any:
        b.step(x)
        return x * random.random()  # here

    return f


def random_of_numpy(b: Bench) -> Any:
    def f(x: Any) -> Any:
        b.step(x)
        return x * np.random.default_rng().random((6, 3))  # here

    return f


def random_generator_of_the_user(b: Bench) -> Any:
    def f(x: Any) -> Any:
        b.step(x)
        return x + b.rng.standard_normal((6, 3))  # here

    return f


def global_random_of_numpy(b: Bench) -> Any:
    def f(x: Any) -> Any:
        b.step(x)
        return x * np.random.rand(3).astype("float32")  # noqa: NPY002  # here

    return f


def clock(b: Bench) -> Any:
    def f(x: Any) -> Any:
        b.step(x)
        return x * (time.perf_counter_ns() % 9973)  # here

    return f


def branch_on_a_clock(b: Bench) -> Any:
    """Both runs take one branch, and a later call would not."""
    end = time.monotonic() + 3600

    def f(x: Any) -> Any:
        b.step(x)
        return x if time.monotonic() < end else -x  # here

    return f


# Files.


def number_in_a_file(b: Bench) -> Any:
    def f(x: Any) -> Any:
        b.step(x)
        return x * len(Path(__file__).read_text(encoding="utf-8"))  # here

    return f


def array_in_a_file(b: Bench) -> Any:
    def f(x: Any) -> Any:
        b.step(x)
        with contextlib.suppress(OSError):
            return x * np.loadtxt(os.devnull + "/numbers")  # here
        return x

    return f


def whether_a_file_is_there(b: Bench) -> Any:
    def f(x: Any) -> Any:
        b.step(x)
        return x if os.path.exists(os.devnull) else -x  # here

    return f


def line_of_an_open_file(b: Bench) -> Any:
    """At its end it gives the same text again and again."""
    stream = io.StringIO("2")

    def f(x: Any) -> Any:
        b.step(x)
        return x * float(stream.readline() or 3)  # here

    return f


# What of the engine decides by values.


def schedule_that_watches_the_loss(b: Bench) -> Any:
    plateau = ol.optimizer.lr.ReduceOnPlateau(0.05, patience=0)

    def f(x: Any) -> Any:
        loss = b.step(x)
        plateau.step(loss)  # here
        return loss * plateau.get_lr()

    return f


def lbfgs(b: Bench) -> Any:
    b.optimizer = ol.optimizer.LBFGS(0.5, max_iter=3, parameters=b.model.parameters())
    b.model.eval()

    def f(x: Any) -> Any:
        def closure() -> Any:
            b.optimizer.clear_grad()
            loss = F.cross_entropy(b.model(x), np.arange(6) % 2)
            loss.backward()
            return loss

        return b.optimizer.step(closure)  # here

    return f


def rule_that_reads_a_number(b: Bench) -> Any:
    b.optimizer = WithNorms(0.05, parameters=b.model.parameters())

    def f(x: Any) -> Any:
        loss = F.cross_entropy(b.model(x), np.arange(6) % 2)
        loss.backward()
        b.optimizer.step()  # here
        b.optimizer.clear_grad()
        return loss

    return f


VALUES: dict[str, Make] = {
    f.__name__: f
    for f in (
        branch, branch_on_a_plain_array, loop_on_a_value, assertion, number_used_further,
        float_used_further, whole_number_used_further, list_of_numbers, largest_by_python,
        comparison_of_arrays, caught_by_the_user, anything_caught_by_the_user, masked, nonzero,
        unique, masked_select, repeated, printing, text_of_a_value, branch_on_a_clock,
        number_in_a_file, array_in_a_file, whether_a_file_is_there,
    )
}  # fmt: skip
EFFECTS: dict[str, Make] = {
    f.__name__: f
    for f in (
        append_the_loss, append_a_constant, append_of_a_closure, counter, counter_that_is_read,
        counter_that_branches, counter_of_a_closure, counter_of_a_module, entry_of_a_dict,
        element_of_a_set, append_to_a_deque, next_of_an_iterator,
        iterator_that_gives_the_same_at_first, write_into_a_plain_array, line_of_an_open_file,
    )
}  # fmt: skip
CHANCE: dict[str, Make] = {
    f.__name__: f
    for f in (
        random_of_python, random_of_numpy, random_generator_of_the_user, global_random_of_numpy,
        clock,
    )
}  # fmt: skip
OF_THE_ENGINE: dict[str, Make] = {f.__name__: f for f in (lbfgs,)}
#: What the engine does with values inside of a step is an entry of the plan.
FOLLOWED: dict[str, Make] = {
    f.__name__: f for f in (schedule_that_watches_the_loss, rule_that_reads_a_number)
}
REFUSED = VALUES | EFFECTS | CHANCE | OF_THE_ENGINE


def marked_lines(make: Make) -> set[int]:
    """Return the numbers of the lines that are marked in the source of a function."""
    lines, first = inspect.getsourcelines(make)
    return {first + i for i, line in enumerate(lines) if "# here" in line}


def lines_of(make: Make) -> range:
    """Return the lines of a function in its file."""
    lines, first = inspect.getsourcelines(make)
    return range(first, first + len(lines))
