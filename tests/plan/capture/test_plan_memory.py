"""What counts in the memory of a plan, and what does not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import optlab as ol
from tests.plan.capture.twins import F, given, nn

ROWS = 256
ARRAY = ROWS * ROWS * 4


def plan_of(f: Callable[..., Any], *args: Any) -> Any:
    captured = ol.capture(f)
    captured(*args)
    return captured.plan


@pytest.mark.parametrize(
    ("f", "arrays"),
    [
        (lambda x: x[1:].T, 0),
        (lambda x: x.reshape(-1), 0),
        (lambda x: (x * 2)[1:], 1),
        (lambda x: ((y := x * 2)[0], y[1:], y), 1),
        (lambda x: (x * 2, x * 3), 2),
        (lambda x: np.exp(np.tanh(x * 2)).sum(), 1),
        (lambda x: np.broadcast_to((x * 2)[0], x.shape), 1),
    ],
)
def test_views_do_not_count_and_results_do(f: Callable[[Any], Any], arrays: int) -> None:
    assert plan_of(f, given(ROWS, ROWS)).peak_bytes // ARRAY == arrays


def test_operators_reuse_buffers_to_the_bit() -> None:
    def f(x: Any) -> Any:
        y = (1 - x) * (x / 3 + 2) - (-x)
        return np.where(y > x, abs(y), y @ x)

    captured = ol.capture(f)
    for seed in range(3):
        x = given(ROWS, ROWS, seed=seed)
        assert captured(x).tobytes() == f(x).tobytes()
    table = captured.plan.table()
    assert table["buffer"].notna().sum() >= 6
    assert table["buffer"].nunique() <= 4


def test_gradients_that_a_call_leaves_behind_count() -> None:
    layer = nn.Linear(ROWS, ROWS)

    def step(x: Any) -> Any:
        loss = F.mse_loss(layer(x), x)
        loss.backward()
        return loss

    trace = plan_of(step, ol.to_tensor(given(4, ROWS))).memory
    assert trace.during[0, trace.roles.index("gradient")] >= ARRAY


def test_a_plan_is_saved_as_a_picture(tmp_path: Path) -> None:
    pytest.importorskip("plotly")
    plan = plan_of(lambda x: np.tanh(x @ x), given(ROWS, ROWS))
    assert plan.save(tmp_path / "plan.png").read_bytes().startswith(b"\x89PNG")
    assert plan.figure().layout.title.text.startswith("<b>Memory of a plan: at most ")
    assert {"text/plain", "image/png"} <= set(plan._repr_mimebundle_())


def test_describing_a_plan_changes_nothing() -> None:
    layer = nn.Linear(3, 3)
    adam = ol.optimizer.Adam(0.1, parameters=layer.parameters())

    def step(x: Any) -> Any:
        loss = F.mse_loss(F.dropout(layer(x)), x)
        loss.backward()
        adam.step()
        adam.clear_grad()
        return loss

    plan = plan_of(step, ol.to_tensor(given(4, 3)))
    before = [p.numpy().copy() for p in layer.parameters()], ol.get_rng_state()
    slots = {name: np.array(x) for name, x in adam.state_dict().items() if hasattr(x, "shape")}
    assert "sqrt" in str(plan)
    assert plan.peak_bytes > 0
    after = [p.numpy() for p in layer.parameters()], ol.get_rng_state()
    assert all(np.array_equal(a, b) for a, b in zip(before[0], after[0], strict=True))
    assert str(before[1]) == str(after[1])
    now = adam.state_dict()
    assert all(np.array_equal(x, np.array(now[name])) for name, x in slots.items())


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("function", [np.maximum, np.minimum, np.add, np.hypot])
def test_a_replay_into_buffers_does_not_warn(function: Any) -> None:
    captured = ol.capture(lambda x: function(x * 2, x).sum())
    for seed in range(3):
        x = given(8, 8, seed=seed)
        assert captured(x) == function(x * 2, x).sum()
