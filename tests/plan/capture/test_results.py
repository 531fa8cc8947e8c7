"""Results belong to the caller, arguments too: a later call overwrites neither."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import optlab as ol
from tests.plan.capture.forms import PLAIN, STEPS
from tests.plan.capture.twins import F, given, leaves, mlp

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "a new array": lambda x: x * 2,
    "an array in the middle": lambda x: (y := x * 2, np.exp(y).sum()),
    "a view of a result": lambda x: (x * 2)[1:].T,
    "two views of one result": lambda x: ((y := x * 2)[0], y[1:]),
    "a view of the argument": lambda x: x[1:],
    "the argument": lambda x: x,
    "a constant": lambda x: (x, np.ones(3, "float32")),
    "a broadcast": lambda x: np.broadcast_to((x * 2)[0], x.shape),
    "a number": lambda x: x.sum(),
}


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("kind", [np.asarray, ol.to_tensor], ids=["arrays", "Tensors"])
def test_results_are_not_overwritten_by_later_calls(name: str, kind: Any) -> None:
    captured = ol.capture(FUNCTIONS[name])
    found = [captured(kind(given(3, 3, seed=i))) for i in range(5)]
    for i, result in enumerate(found):
        wanted = FUNCTIONS[name](kind(given(3, 3, seed=i)))
        assert dict(leaves({"": result})) == dict(leaves({"": wanted}))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_the_caller_writes_into_results_reaches_no_later_call(name: str) -> None:
    captured = ol.capture(FUNCTIONS[name])
    for i in range(4):
        x = given(3, 3, seed=i)
        result = captured(x)
        wanted = dict(leaves({"": FUNCTIONS[name](x.copy())}))
        assert dict(leaves({"": result})) == wanted
        for part in result if isinstance(result, tuple) else (result,):
            if isinstance(part, np.ndarray) and part.flags.writeable:
                part[...] = np.nan


@pytest.mark.parametrize("name", [*STEPS, *PLAIN])
def test_arguments_are_not_written(name: str) -> None:
    ol.seed(0)
    form = (STEPS | PLAIN)[name]()
    captured = ol.capture(form.f)
    with np.errstate(all="ignore"):
        for args, options in form.calls:
            before = dict(leaves({"args": args, "options": options}))
            for array in arrays_in((args, options)):
                array.flags.writeable = False
            captured(*args, **options)
            assert dict(leaves({"args": args, "options": options})) == before


test_arguments_are_not_written = pytest.mark.filterwarnings(
    "ignore:no parameter of this Adam has a gradient"
)(test_arguments_are_not_written)


def arrays_in(value: Any) -> list[Any]:
    if isinstance(value, dict):
        value = tuple(value.values())
    if isinstance(value, (tuple, list)):
        return [array for part in value for array in arrays_in(part)]
    return [value] if isinstance(value, np.ndarray) and value.ndim else []


def test_an_argument_that_the_function_writes_into_is_written_as_eagerly_or_refused() -> None:
    def f(x: Any) -> Any:
        x += 1
        return x * 2

    captured = ol.capture(f)
    for i in range(3):
        one, other = given(3, seed=i), given(3, seed=i)
        try:
            found = captured(one)
        except ol.CaptureError as error:
            assert "test_results.py" in str(error)  # noqa: PT017 (one of two right ways)
            np.testing.assert_array_equal(one, other)
            return
        np.testing.assert_array_equal(found, f(other))
        np.testing.assert_array_equal(one, other)


def test_losses_of_a_run_stay() -> None:
    model = mlp()
    optimizer = ol.optimizer.Adam(0.01, parameters=model.parameters())

    @ol.capture
    def step(x: Any, y: Any) -> Any:
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    x, y = ol.to_tensor(given(8, 6)), np.arange(8) % 4
    found, at_once = [], []
    for _ in range(30):
        found.append(step(x, y))
        at_once.append(found[-1].item())
    assert [loss.item() for loss in found] == at_once
    assert len(set(at_once)) == 30


def test_gradients_that_the_user_holds_stay() -> None:
    model = mlp()
    captured = ol.capture(lambda x: F.mse_loss(model(x), ol.zeros([5, 4])).backward())
    held, copies = [], []
    for i in range(4):
        captured(ol.to_tensor(given(5, 6, seed=i)))
        held.append([p.grad for p in model.parameters()])
        copies.append([g.numpy().copy() for g in held[-1]])
        for p in model.parameters():
            p.grad = None
    for ones, others in zip(held, copies, strict=True):
        for one, other in zip(ones, others, strict=True):
            np.testing.assert_array_equal(one.numpy(), other)


def test_old_results_still_go_backward() -> None:
    """What backward reads of one call is not overwritten by the next."""
    w = ol.Parameter(given(3, 3))
    f = lambda x: np.tanh(x @ w).sum()  # noqa: E731
    captured = ol.capture(f)
    xs = [ol.to_tensor(given(2, 3, seed=i)) for i in range(4)]
    found = [captured(x) for x in xs]
    for x, y in reversed(list(zip(xs, found, strict=True))):
        y.backward()
        one = w.grad.numpy().copy()
        w.grad = None
        f(x).backward()
        np.testing.assert_array_equal(one, w.grad.numpy())
        w.grad = None


def test_results_of_a_capture_need_no_plan_to_live() -> None:
    captured = ol.capture(lambda x: x * 2)
    y = captured(given(3))
    wanted = y.copy()
    del captured
    np.testing.assert_array_equal(y, wanted)
