"""What a function does without the knowledge of a recording is found before a plan is trusted."""

from __future__ import annotations

import collections
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import optlab as ol
from tests.plan.capture.forms import Form, arrays, calls, outcome, tensors
from tests.plan.capture.twins import F, given, leaves, nn, same


def bits(value: Any) -> dict[str, Any]:
    return dict(leaves({"": value}))


def eager(f: Any) -> Any:
    return f


# Writes into the array of a Tensor, and questions after types.


def assigns(w: Any, g: Any) -> None:
    w.data = w.data - 0.1 * g.data


def subtracts(w: Any, g: Any) -> None:
    w.data -= 0.1 * g.data


def overwrites(w: Any, _: Any) -> None:
    w.data[...] = 0.5


@pytest.mark.parametrize("write", [assigns, subtracts, overwrites])
def test_a_write_into_data_is_refused_by_name(write: Any) -> None:
    def make() -> tuple[Any, Any]:
        w = ol.Parameter([1.0, 2.0, 3.0])

        def f(x: Any) -> Any:
            loss = (w * x).sum()
            loss.backward()
            write(w, w.grad)
            w.clear_grad()
            return loss

        return w, f

    w, f = make()
    with pytest.raises(ol.CaptureError, match=r"set_value.*test_seen\.py"):
        ol.capture(f)(ol.ones([3]))
    assert w.tolist() == [1.0, 2.0, 3.0]
    found = []
    for how in (eager, lambda f: ol.capture(f, strict=False)):
        w, f = make()
        f = how(f)
        found.append(bits([[f(x), w.numpy().copy()] for x in tensors(3)]))
    same(found[1], found[0])


def test_a_question_after_the_type_is_refused_by_name() -> None:
    f = lambda x: x * 2 if type(x) is np.ndarray else x * 3  # noqa: E731
    with pytest.raises(ol.CaptureError, match=r"isinstance.*test_seen\.py"):
        ol.capture(f)(given(3))
    loose = ol.capture(f, strict=False)
    for x in arrays(3):
        np.testing.assert_array_equal(loose(x), x * 2)
    allowed = ol.capture(lambda x: x * 2 if isinstance(x, np.ndarray) else x * 3)
    for x in arrays(3):
        np.testing.assert_array_equal(allowed(x), x * 2)


def test_whole_numbers_that_numpy_sums_unseen_are_no_constants() -> None:
    """Labels in another order have the same sum."""
    f = lambda x: x * int(x.data.sum())  # noqa: E731
    with pytest.raises(ol.CaptureError):
        ol.capture(f)(ol.to_tensor([0, 1, 2, 3]))


def test_values_are_read_only_where_they_are_eagerly() -> None:
    def f(x: Any) -> Any:
        y = x.numpy()
        y[0] = 0.0
        return y

    for how in (eager, ol.capture):
        with pytest.raises(ValueError, match="read-only"):
            how(f)(ol.ones([3]))
    w = ol.Parameter([1.0, 2.0])
    captured = ol.capture(lambda x: f(w) * x)
    for x in tensors(2):
        np.testing.assert_array_equal(captured(x).numpy(), (np.array([0.0, 2.0]) * x).numpy())


# Effects of the user, in hooks, and on lists.


@pytest.mark.parametrize("where", ["a layer", "a gradient"])
def test_effects_in_hooks_are_refused(where: str) -> None:
    seen: list[Any] = []
    model = nn.Linear(3, 2)
    if where == "a layer":
        model.register_forward_post_hook(lambda layer, inputs, output: seen.append(1))
    else:
        model.weight.register_hook(lambda g: seen.append(1))

    def f(x: Any) -> Any:
        loss = (model(x) ** 2).mean()
        loss.backward()
        return loss.detach()

    with pytest.raises(ol.CaptureError, match="seen"):
        ol.capture(f)(ol.ones([2, 3]))
    seen.clear()
    loose = ol.capture(f, strict=False)
    for _ in range(4):
        loose(ol.ones([2, 3]))
    assert seen == [1] * 4


class Slotted:
    __slots__ = ("x",)


@pytest.mark.parametrize("strict", [True, False])
def test_the_user_never_holds_recorded_arrays(strict: bool) -> None:
    held: dict[str, Any] = {"list": [], "deque": collections.deque(), "object": Slotted()}

    def f(x: Any) -> Any:
        y = np.tanh(x)
        held["list"].append((y, [y], {"y": (y,)}))
        held["deque"].append(y)
        held["object"].x = y
        held["y"] = y
        held["tensor"] = ol.to_tensor(y)
        held["function"] = lambda: y
        held["number"] = y.sum().item()
        return y * 2 if y.sum() > 0 else y

    captured = ol.capture(f, strict=strict)
    if strict:
        with pytest.raises(ol.CaptureError):
            captured(np.ones(3))
    else:
        captured(np.ones(3))
    ((a, (b,), c),) = held["list"]
    found = [
        a, b, c["y"][0], held["deque"][0], held["object"].x, held["y"], held["tensor"].data,
        held["function"](),
    ]  # fmt: skip
    assert {type(x) for x in found} == {np.ndarray}
    assert type(held["number"]) is float


def test_a_function_in_c_is_refused_and_runs_once_if_not_strict() -> None:
    counted: list[int] = []

    def f(x: Any) -> Any:
        counted.append(1)
        return np.frombuffer(x) * len(counted)

    with pytest.raises(ol.CaptureError, match=r"written in C.*test_seen\.py.*view"):
        ol.capture(f)(np.ones(2))
    counted.clear()
    loose = ol.capture(f, strict=False)
    for i in range(1, 4):
        np.testing.assert_array_equal(loose(np.ones(2)), [i, i])


def test_an_error_of_the_function_is_its_own() -> None:
    def f(x: Any) -> Any:
        raise TypeError("a real number is missing here")

    with pytest.raises(TypeError, match="missing here") as error:
        ol.capture(f)("text")
    assert not isinstance(error.value, ol.CaptureError)


# Results.


RESULTS: dict[str, Callable[[Any], Any]] = {
    "a constant Tensor": lambda x: ol.zeros([3]),
    "constants of all kinds": lambda x: (ol.ones([2]), [ol.arange(3)], {"n": ol.to_tensor(2.0)}),
    "a parameter and a graph": lambda x: (W, (W * x).sum()),
    "named results": lambda x: np.linalg.svd(np.outer(x, x)).S[:1],
    "whole numbers": lambda x: np.unravel_index(np.argmax(x), (3,)),
    "an element": lambda x: x.sum().item(),
    "an index": lambda x: ol.arange(7)[ol.to_tensor([1, 0]) + (x[:2] > 0)],
    "sums at indices": lambda x: added(ol.zeros([3]), x),
    "sums in an array": lambda x: added(np.zeros(3, "float32"), x),
    "sums in an array like the argument": lambda x: added(np.zeros_like(x), x),
    "written by functions": lambda x: written(np.zeros_like(x), x),
    "given memory": lambda x: np.multiply(x, x, out=np.empty_like(x), where=x < 9),
}
W = ol.Parameter([1.0, 2.0, 3.0])


def added(to: Any, x: Any) -> Any:
    np.add.at(to, [0, 1, 1], x)
    return to


def written(to: Any, x: Any) -> Any:
    np.copyto(to, 2 * x)
    np.put(to, [0], 9.0)
    return to


@pytest.mark.parametrize("name", RESULTS)
def test_results(name: str) -> None:
    kinds = [np.asarray] if "array" in name or name in ("written by functions", "given memory",
                                                        "named results", "whole numbers") else [
        ol.to_tensor
    ]  # fmt: skip
    for kind in kinds:
        captured = ol.capture(RESULTS[name])
        for x in arrays(3):
            same(bits(captured(kind(x))), bits(RESULTS[name](kind(x))))
        assert len(captured.plans) == 1


def test_named_results_of_numpy_keep_their_names() -> None:
    captured = ol.capture(lambda x: np.linalg.svd(x))
    for _ in range(2):
        assert type(captured(np.eye(2))).__name__ == "SVDResult"


def test_containers_are_the_caller_s() -> None:
    captured = ol.capture(lambda x: {"n": 3, "parts": []})
    for _ in range(3):
        found = captured(np.ones(2))
        assert found == {"n": 3, "parts": []}
        found["n"], found["x"] = 4, 1
        found["parts"].append(1)


# Random numbers.


def reseeds(x: Any) -> Any:
    ol.seed(5)
    return x + ol.rand([3])


def opens_scopes(x: Any) -> Any:
    with ol.random_scope("a"):
        one = ol.rand([3])
    with ol.random_scope("b", seed=4):
        return x + one + ol.rand([3]) + ol.randn([3])


@pytest.mark.parametrize("f", [reseeds, opens_scopes])
def test_random_numbers_are_those_of_eager_calls(f: Any) -> None:
    def make() -> Form:
        return Form(f, calls(*tensors(3)), lambda: ol.get_rng_state()["draws"])

    same(outcome(make, ol.capture), outcome(make, eager))


def test_a_capture_in_a_thread_takes_back_the_draws_of_the_thread() -> None:
    import threading

    def drawn(how: Any) -> list[Any]:
        ol.seed(2)
        found: list[Any] = []

        def work() -> None:
            f = how(lambda x: x + ol.rand([3]))
            found.extend([f(ol.zeros([3])).tolist() for _ in range(3)])

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        return [*found, ol.rand([2]).tolist()]

    assert drawn(ol.capture) == drawn(eager)


# Layers.


@pytest.mark.parametrize("wrap", [nn.utils.weight_norm, lambda layer: layer])
def test_weights_that_are_computed(wrap: Any) -> None:
    def make() -> Form:
        layer = wrap(nn.Linear(3, 2))
        optimizer = ol.optimizer.SGD(0.1, parameters=layer.parameters())

        def step(x: Any) -> Any:
            loss = (layer(x) ** 2).mean()
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            return loss

        return Form(step, calls(*tensors(4, 3)), lambda: [layer.state_dict(), layer.weight.numpy()])

    same(outcome(make, ol.capture), outcome(make, eager))


def test_a_new_sublayer_is_followed() -> None:
    model = nn.Sequential(nn.Linear(3, 3))
    captured = ol.capture(model)
    x = ol.ones([2, 3])
    for _ in range(2):
        same(bits(captured(x)), bits(model(x)))
    model.add_sublayer("more", nn.Linear(3, 2))
    for _ in range(2):
        same(bits(captured(x)), bits(model(x)))


def test_iterating_over_a_loader_is_refused_by_name() -> None:
    loader = ol.io.DataLoader(ol.io.TensorDataset([np.arange(6.0)]), batch_size=2)
    with pytest.raises(ol.CaptureError, match=r"DataLoader.*argument.*test_seen\.py"):
        ol.capture(lambda x: x + sum(batch.sum() for (batch,) in loader))(ol.ones([2]))


def test_a_step_with_a_closure_says_what_to_do() -> None:
    w = ol.Parameter([3.0, 4.0])
    optimizer = ol.optimizer.LBFGS(parameters=[w])

    def f(x: Any) -> Any:
        def closure() -> Any:
            optimizer.clear_grad()
            loss = ((w - x) ** 2).sum()
            loss.backward()
            return loss

        return optimizer.step(closure)

    with pytest.raises(ol.CaptureError, match=r"LBFGS\.step.*outside.*test_seen\.py"):
        ol.capture(f)(ol.ones([2]))
    loose = ol.capture(f, strict=False)
    for _ in range(3):
        loose(ol.ones([2]))
    np.testing.assert_allclose(w.numpy(), 1.0, rtol=1e-5)


def test_an_optimizer_of_the_call_is_refused_by_name() -> None:
    def f(x: Any) -> Any:
        w = ol.Parameter([1.0, 2.0])
        optimizer = ol.optimizer.SGD(0.1, parameters=[w])
        ((w - x) ** 2).sum().backward()
        optimizer.step()
        return w.detach()

    with pytest.raises(ol.CaptureError, match=r"SGD that every call makes anew"):
        ol.capture(f)(ol.ones([2]))


# What else lives.


def test_a_recompute_optimizer_concerns_those_who_use_it() -> None:
    def make(recomputing: bool) -> tuple[Any, Any]:
        model = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 3))
        optimizer: Any = ol.optimizer.SGD(0.1, parameters=model.parameters())
        if recomputing:
            optimizer = ol.optimizer.RecomputeOptimizer(optimizer)
            optimizer.set_checkpoints([model[1]])

        def step(x: Any) -> Any:
            loss = (model(x) ** 2).mean()
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            return loss

        return step, model

    (uses, _), (others, _) = make(recomputing=True), make(recomputing=False)
    x = ol.ones([2, 3])
    eagerly, planned = ol.capture(uses), ol.capture(others)
    for _ in range(3):
        eagerly(x)
        planned(x)
    assert "decides what operations save" in eagerly.execution
    assert planned.plan is not None


def test_anomaly_mode_is_heeded() -> None:
    w = ol.Parameter([1.0, 2.0])
    captured = ol.capture(lambda x: np.log(w * x).sum())
    captured(np.array([1.0, 2.0]))
    anomalies = ol.autograd.detect_anomaly()
    with np.errstate(all="ignore"), anomalies, pytest.raises(ol.autograd.AnomalyError, match="log"):
        captured(np.array([-1.0, 2.0]))


# Numbers.


NUMBERS: dict[str, Callable[..., Any]] = {
    "in an array": lambda x, t: x * np.array([t, 2 * t, 1.0]),
    "as all elements": lambda x, t: (x * np.full(3, t), ol.full([2], t)),
    "as a Tensor": lambda x, t: x * ol.to_tensor(t),
    "in a branch": lambda x, t: x if t > 1 else -x,
    "as an operand": lambda x, t: x * (1 - 0.9**t) / t,
}


@pytest.mark.parametrize("kind", [float, np.float32, np.float64])
@pytest.mark.parametrize("name", NUMBERS)
def test_numbers(name: str, kind: Any) -> None:
    captured = ol.capture(NUMBERS[name])
    for i, x in enumerate(arrays(3, dtype="float64")):
        same(bits(captured(x, kind(i + 0.5))), bits(NUMBERS[name](x, kind(i + 0.5))))


def test_a_whole_number_of_numpy_may_be_an_index() -> None:
    captured = ol.capture(lambda x, n: x[:n])
    for n in (1, 2, 3, 2):
        np.testing.assert_array_equal(captured(np.arange(4), np.int64(n)), np.arange(n))


# Captures in every call.


def called(captured: Any, numbers: range) -> None:
    for n in numbers:
        captured(np.ones(2), n)


def test_an_argument_that_is_another_one_in_every_call_is_warned_of_once() -> None:
    captured = ol.capture(lambda x, n: x * n)
    with pytest.warns(UserWarning, match=r"argument 'n'.*as a float") as found:
        called(captured, range(30))
    assert len([w for w in found if "in a row" in str(w.message)]) == 1
    assert len(captured.plans) <= 32


def test_a_number_from_outside_that_is_another_one_in_every_call_is_warned_of() -> None:
    outside = {"n": 0}
    captured = ol.capture(lambda x, n: x * outside["n"])

    def work() -> None:
        for outside["n"] in range(12):
            np.testing.assert_array_equal(captured(np.ones(2), 1), np.full(2, outside["n"]))

    with pytest.warns(UserWarning, match="outside"):
        work()


@pytest.mark.filterwarnings("error")
def test_other_captures_are_not_warned_of() -> None:
    captured = ol.capture(lambda x, rate: x * rate)
    for n in range(1, 20):
        captured(np.ones(n), 0.1 * n)
    model = nn.Linear(3, 2)
    step = ol.capture(lambda x, y: F.cross_entropy(model(x), y))
    for n in range(1, 15):
        step(ol.ones([n, 3]), np.zeros(n, int))
