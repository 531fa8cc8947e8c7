"""Random programs are captured and replayed on other values, to the bit of eager running."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

import optlab as ol
from tests.autograd import view_programs
from tests.optimizer.helpers import EACH
from tests.plan.capture import interventions as between
from tests.plan.capture.twins import F, Program, leaves, nn, run, same, train_step
from tests.plan.programs import NAMES, programs
from tests.plan.programs import run as run_program

#: 2,000 programs: elementwise functions, programs that write through views, networks.
ELEMENTWISE, VIEWS, NETWORKS = 1000, 700, 300
QUICK = 20  # one of so many runs in the quick part of the suite


def bits(value: Any) -> dict[str, Any]:
    return dict(leaves({"": value}))


# Elementwise functions of four arrays.


def check_elementwise(drawn: Any) -> None:
    def f(arrays: Any, numbers: Any) -> Any:
        return run_program(drawn, arrays, numbers)

    captured = ol.capture(f)
    for seed, kind in enumerate((np.asarray, np.asarray, ol.to_tensor, ol.to_tensor)):
        rng = np.random.default_rng(seed)
        arrays = {name: kind(rng.standard_normal(7).astype("float32")) for name in NAMES}
        numbers = {"rate": 0.1 + 0.2 * seed, "decay": 0.01 * seed}
        with np.errstate(all="ignore"):
            same(bits(captured(arrays, numbers)), bits(f(arrays, numbers)))
    assert len(captured.plans) == 2


_common: dict[str, Any] = {
    "deadline": None,
    "derandomize": True,
    "suppress_health_check": list(HealthCheck),
}


@settings(max_examples=ELEMENTWISE // QUICK, **_common)
@given(programs())
def test_elementwise_programs(drawn: Any) -> None:
    check_elementwise(drawn)


@pytest.mark.nightly
@pytest.mark.slow
@settings(max_examples=ELEMENTWISE, **_common)
@given(programs())
def test_many_elementwise_programs(drawn: Any) -> None:
    check_elementwise(drawn)


# Programs that write through views, and their gradients.


def check_views(seeds: range) -> None:
    for seed in seeds:
        steps = view_programs.program(seed)

        def f(x: Any, steps: Any = steps) -> Any:
            return view_programs.run(steps, x)

        both = ol.value_and_grad(f)
        plain, slopes = ol.capture(f), ol.capture(both)
        for other in range(3):
            x = np.random.default_rng(other).uniform(-1, 1, (3, 3))
            try:
                wanted = both(x)
            except Exception:  # noqa: BLE001 (a value of the tape was overwritten)
                with pytest.raises(Exception):  # noqa: B017, PT011 (the same, captured)
                    slopes(x)
                continue
            same(bits(by_plan_or_not(slopes, both, x)), bits(wanted))
            same(bits(by_plan_or_not(plain, f, x)), bits(f(x)))
            t = ol.to_tensor(x)
            same(bits(by_plan_or_not(plain, f, t)), bits(f(t)))


def by_plan_or_not(captured: Any, f: Any, x: Any) -> Any:
    """Call a captured function; where it is refused (a write with a gradient), run it eagerly."""
    try:
        return captured(x)
    except ol.CaptureError:
        return ol.capture(f, strict=False)(x)


def test_programs_that_write_through_views() -> None:
    check_views(range(VIEWS // QUICK))


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("part", range(10))
def test_many_programs_that_write_through_views(part: int) -> None:
    check_views(range(part * VIEWS // 10, (part + 1) * VIEWS // 10))


# Networks: random layers, losses, optimizers, clips, decays, and what happens between the steps.

WIDTH = 6


class Residual(nn.Layer):
    """A layer around which its input is added."""

    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Any) -> Any:
        return x + self.inner(x)


class Written(nn.Layer):
    """Columns are exchanged by writes in place."""

    def forward(self, x: Any) -> Any:
        y = np.zeros_like(x)
        y[:, 0] = x[:, 1]
        y[:, 1:] = x[:, 1:] * 0.5
        y[:, ::2] += 0.1
        return y


class Attention(nn.Layer):
    """Rows attend to each other."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.MultiHeadAttention(WIDTH, 2)

    def forward(self, x: Any) -> Any:
        return self.inner(x[None])[0]


LAYERS: list[Callable[[], Any]] = [
    lambda: nn.Linear(WIDTH, WIDTH), lambda: nn.Linear(WIDTH, WIDTH),
    lambda: Residual(nn.Linear(WIDTH, WIDTH)), lambda: nn.BatchNorm1D(WIDTH),
    lambda: nn.LayerNorm(WIDTH), nn.ReLU, nn.Tanh, nn.GELU, nn.Sigmoid, nn.Softmax,
    lambda: nn.Dropout(0.3), lambda: nn.Dropout(0.3, mode="downscale_in_infer"), Written, Attention,
    lambda: nn.LeakyReLU(0.2), lambda: nn.Softplus(), lambda: nn.ELU(), lambda: nn.Hardswish(),
]  # fmt: skip
LOSSES: list[Callable[[Any, Any], Any]] = [
    lambda out, y: F.cross_entropy(out, y),
    lambda out, y: F.cross_entropy(out, y, label_smoothing=0.1),
    lambda out, y: F.mse_loss(out, F.one_hot(y, WIDTH).astype("float32")),
    lambda out, y: F.smooth_l1_loss(out, F.one_hot(y, WIDTH).astype("float32")),
    lambda out, y: np.log(np.sum(np.exp(out), axis=1)).mean() - out[np.arange(len(y)), y].mean(),
]
EVENTS = [
    between.set_rate, between.evaluate, between.train, between.draw, between.step_eagerly,
    between.write_in_place, between.leave_gradients, between.drop_gradients, between.seed,
]  # fmt: skip


def network(seed: int) -> tuple[Callable[[], Program], list[Any]]:
    """Return a random program, and events on its way."""
    rng = np.random.default_rng(seed)
    chosen = [int(i) for i in rng.integers(len(LAYERS), size=rng.integers(1, 6))]
    loss = LOSSES[int(rng.integers(len(LOSSES)))]
    rule = str(rng.choice(list(EACH)))
    clip = [None, 0.1, 1.0][int(rng.integers(3))]
    decay = [0.0, 0.01][int(rng.integers(2))]
    sizes = [int(n) for n in rng.integers(2, 7, size=3)]
    events = [
        (int(i), EVENTS[int(rng.integers(len(EVENTS)))])
        for i in sorted(rng.integers(1, 10, size=3))
    ]

    def build() -> Program:
        model = nn.Sequential(*[LAYERS[i]() for i in chosen], nn.Linear(WIDTH, WIDTH))
        common: dict[str, Any] = {"weight_decay": decay} if decay else {}
        if clip is not None:
            common["grad_clip"] = ol.nn.ClipGradByGlobalNorm(clip)
        optimizer = EACH[rule](parameters=model.parameters(), **common)
        optimizer.set_lr(0.1 * optimizer.get_lr())
        draw = np.random.default_rng(seed + 1)
        batches = [
            (ol.to_tensor(draw.standard_normal((n, WIDTH)).astype("float32")),
             draw.integers(0, WIDTH, n))
            for n in sizes
        ]  # fmt: skip
        p = Program(model, optimizer, train_step(model, optimizer), batches)

        def step(x: Any, y: Any) -> Any:
            out = model(x)
            value = loss(out, y)
            value.backward()
            optimizer.step()
            optimizer.clear_grad()
            return value, out

        p.step = step
        return p

    return build, events


def check_networks(seeds: range) -> None:
    for seed in seeds:
        build, events = network(seed)
        with np.errstate(all="ignore"):
            eager, _ = run(build, 10, events)
            found, _ = run(build, 10, events, ol.capture)
        same(found, eager)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_random_networks() -> None:
    check_networks(range(NETWORKS // QUICK))


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("part", range(10))
def test_many_random_networks(part: int) -> None:
    check_networks(range(part * NETWORKS // 10, (part + 1) * NETWORKS // 10))
