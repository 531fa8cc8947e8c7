"""Twin programs: one runs eagerly, its equal is captured, and every bit of the two is compared."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import optlab as ol

nn = ol.nn
F = nn.functional

#: Rows of the batches of an epoch: the last one is smaller.
EPOCH = (8, 8, 8, 5)

#: A plan is made by at most this many runs of the function: one that writes it down, one that is
#: compared with it, and one more for what an implementation looks at before.
RUNS_PER_PLAN = 3


def given(*shape: int, seed: int = 5, dtype: str = "float32") -> Any:
    """Return random numbers that are the same in every run."""
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


# Networks.


class Sequence2Label(nn.Layer):
    """A recurrent network whose last output is classified."""

    def __init__(self, cell: Any) -> None:
        super().__init__()
        self.recurrent = cell(3, 6, num_layers=2, dropout=0.2)
        self.norm = nn.BatchNorm1D(6)
        self.head = nn.Linear(6, 4)

    def forward(self, x: Any) -> Any:
        y, _ = self.recurrent(x)
        return self.head(self.norm(y[:, -1]))


class Transformer(nn.Layer):
    """Token embeddings, one encoder block, a classification of the mean."""

    def __init__(self) -> None:
        super().__init__()
        self.words = nn.Embedding(11, 8)
        self.block = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1)
        self.norm = nn.BatchNorm1D(8)
        self.head = nn.Linear(8, 4)

    def forward(self, ids: Any) -> Any:
        return self.head(self.norm(self.block(self.words(ids)).mean(axis=1)))


def mlp() -> Any:
    return nn.Sequential(
        nn.Linear(6, 12), nn.BatchNorm1D(12), nn.ReLU(), nn.Dropout(0.3), nn.Linear(12, 4)
    )


def cnn() -> Any:
    return nn.Sequential(
        nn.Conv2D(1, 3, 3, padding=1), nn.BatchNorm2D(3), nn.ReLU(), nn.MaxPool2D(2, 2),
        nn.Flatten(), nn.Dropout(0.2), nn.Linear(27, 4),
    )  # fmt: skip


def lstm() -> Any:
    return Sequence2Label(nn.LSTM)


def gru() -> Any:
    return Sequence2Label(nn.GRU)


def transformer() -> Any:
    return Transformer()


def _words(n: int, seed: int) -> Any:
    return np.random.default_rng(seed).integers(0, 11, (n, 5))


#: The network, and its inputs of n rows.
NETWORKS: dict[str, tuple[Callable[[], Any], Callable[[int, int], Any]]] = {
    "mlp": (mlp, lambda n, seed: given(n, 6, seed=seed)),
    "cnn": (cnn, lambda n, seed: given(n, 1, 6, 6, seed=seed)),
    "lstm": (lstm, lambda n, seed: given(n, 4, 3, seed=seed)),
    "gru": (gru, lambda n, seed: given(n, 4, 3, seed=seed)),
    "transformer": (transformer, _words),
}


# Programs.


@dataclass
class Program:
    """A model, what trains it, and the function of one step.

    Attributes
    ----------
    step : callable
        What is captured.
    batches : sequence of tuple
        Arguments of `step`, taken in turns.
    others : dict
        Further objects whose ``state_dict()`` is compared: schedules, averages, scalers.
    after : callable
        What the loop does after each step, outside of what is captured.
    """

    model: Any
    optimizer: Any
    step: Callable[..., Any]
    batches: Sequence[tuple[Any, ...]]
    others: dict[str, Any] = field(default_factory=dict)
    after: Callable[[], Any] = lambda: None
    #: For what events keep until a later event.
    kept: dict[str, Any] = field(default_factory=dict)


Build = Callable[[], Program]
Event = Callable[[Program], Any]


def batches(network: str, count: int = len(EPOCH)) -> list[tuple[Any, Any]]:
    """Return inputs as Tensors and labels as plain arrays; every fourth batch is smaller."""
    inputs = NETWORKS[network][1]
    sizes = [EPOCH[i % len(EPOCH)] for i in range(count)]
    return [
        (ol.to_tensor(inputs(n, 10 + i)), np.random.default_rng(20 + i).integers(0, 4, n))
        for i, n in enumerate(sizes)
    ]


def train_step(model: Any, optimizer: Any) -> Callable[[Any, Any], Any]:
    """Return the step of every training loop."""

    def step(x: Any, y: Any) -> Any:
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    return step


def program(network: str, make: Callable[..., Any], **common: Any) -> Program:
    """Return a network trained by the optimizer that `make` makes."""
    model = NETWORKS[network][0]()
    optimizer = make(parameters=model.parameters(), **common)
    return Program(model, optimizer, train_step(model, optimizer), batches(network))


# Runs.


def leaves(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield every number and array in nested containers: its name and its bits."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from leaves(part, f"{name}.{key}")
    elif isinstance(value, (tuple, list)):
        yield f"{name}, its kind", (type(value).__name__, len(value))
        for i, part in enumerate(value):
            yield from leaves(part, f"{name}[{i}]")
    elif isinstance(value, (ol.Tensor, np.ndarray, np.generic)):
        array = value.detach().numpy() if isinstance(value, ol.Tensor) else np.asarray(value)
        kind = "Tensor" if isinstance(value, ol.Tensor) else "array"
        yield name, (kind, str(array.dtype), array.shape, array.tobytes())
    elif isinstance(value, float):
        yield name, value.hex()
    else:
        yield name, value


def gradients(model: Any) -> dict[str, Any]:
    """Return the gradients of all parameters, None for those that have none."""
    found = {name: p.grad for name, p in model.named_parameters()}
    return {name: g.to_dense() if hasattr(g, "to_dense") else g for name, g in found.items()}


def state(p: Program) -> dict[str, Any]:
    """Return all that a later step may depend on."""
    return {
        "model": p.model.state_dict(),
        "gradients": gradients(p.model),
        "optimizer": p.optimizer.state_dict(),
        "others": {name: other.state_dict() for name, other in p.others.items()},
        "rate": p.optimizer.get_lr(),
    }


def run(
    build: Build,
    steps: int = 200,
    events: Sequence[tuple[int, Event]] = (),
    how: Callable[[Any], Any] | None = None,
) -> tuple[dict[str, Any], Any]:
    """Run a program; return everything seen, and the function that was called.

    Parameters
    ----------
    events : sequence of (int, callable)
        What happens to the program before the step of that number.
    how : callable, optional
        Makes of the step what is called, `ol.capture` for example.
    """
    ol.seed(3)
    p = build()
    call = p.step if how is None else how(p.step)
    seen: dict[str, Any] = {}
    results = []
    for i in range(steps):
        for at, event in events:
            if at == i:
                seen[f"event {i} {event.__name__}"] = event(p)
        results.append(call(*p.batches[i % len(p.batches)]))
        p.after()
    seen["results"] = results  # all of them are looked at after the last step
    seen["state"] = state(p)
    seen["next random numbers"] = ol.rand([4])
    return dict(leaves(seen)), call


def learns(eager: dict[str, Any]) -> bool:
    """Return whether the results of a run are finite and differ: bits of NaN are easily equal."""
    results = [bits for name, bits in eager.items() if name.startswith(".results[")]
    numbers = [np.frombuffer(bits[3], bits[1]) for bits in results if len(bits) > 3]
    return all(np.isfinite(x).all() for x in numbers) and len(set(results)) > len(results) // 2


def same(captured: dict[str, Any], eager: dict[str, Any]) -> None:
    """Assert that two runs are equal to the bit; name the first difference."""
    assert list(captured) == list(eager)
    for name, bits in eager.items():
        assert captured[name] == bits, f"{name} differs"


def equal_runs(
    build: Build,
    steps: int = 200,
    events: Sequence[tuple[int, Event]] = (),
    planned: bool = True,
    **options: Any,
) -> Any:
    """Assert that captured and eager runs are equal to the bit; return the captured function."""
    eager, _ = run(build, steps, events)
    assert learns(eager)
    found, captured = run(build, steps, events, lambda f: ol.capture(f, **options))
    same(found, eager)
    assert (captured.plan is not None) is planned, captured.execution
    return captured


@contextmanager
def counted(f: Callable[..., Any]) -> Iterator[list[int]]:
    """Count how often the body of `f` runs inside the block, without a change to `f`."""
    code, runs = f.__code__, [0]

    def watch(frame: Any, event: str, _: Any) -> None:
        if event == "call" and frame.f_code is code:
            runs[0] += 1

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        yield runs
    finally:
        sys.setprofile(before)
