"""recompute_sequential: numbers of runs, contents of a chain, and error messages."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import optlab as ol
from optlab.autograd.schedules import chosen, plain

X = np.linspace(-1.0, 1.5, 12).reshape(3, 4)


def leaf(data: Any = X) -> ol.Tensor:
    return ol.to_tensor(np.array(data, dtype="float64"), requires_grad=True)


def counted(n: int) -> tuple[list[Any], list[int]]:
    runs = [0] * n

    def layer(i: int) -> Any:
        def run(x: Any) -> Any:
            runs[i] += 1
            return np.sin(x) * (1.0 + i)

        return run

    return [layer(i) for i in range(n)], runs


def plain_gradient(n: int) -> np.ndarray:
    x = leaf()
    y = x
    for layer in counted(n)[0]:
        y = layer(y)
    y.sum().backward()
    return x.grad.numpy()


HOWS: list[tuple[Any, int | None]] = [
    (1, None), (2, None), (3, None), ("sqrt", None), ("revolve", None),
    *[("revolve", s) for s in (1, 2, 3, 5, 20)],
]  # fmt: skip


@pytest.mark.parametrize(("segments", "snapshots"), HOWS)
@pytest.mark.parametrize("n", [3, 4, 7, 11])
def test_layers_run_as_often_as_the_schedule_says(n: int, segments: Any, snapshots: Any) -> None:
    layers, runs = counted(n)
    x = leaf()
    y = ol.recompute_sequential(layers, x, segments=segments, snapshots=snapshots).sum()
    assert runs == [1] * n
    y.backward(retain_graph=True)
    schedule = chosen(n, segments, snapshots)
    assert sum(runs) - n == schedule.recomputed_layers
    np.testing.assert_array_equal(x.grad.numpy(), plain_gradient(n))
    x.grad = None
    y.backward()  # everything again, from the start
    np.testing.assert_array_equal(x.grad.numpy(), plain_gradient(n))


@pytest.mark.parametrize(("segments", "snapshots"), HOWS)
def test_higher_derivatives(segments: Any, snapshots: Any) -> None:
    layers = [np.sin, lambda x: x * x, np.tanh, lambda x: x + x**3]
    ol.check_grad(
        lambda x: ol.recompute_sequential(layers, x, segments=segments, snapshots=snapshots),
        np.array([0.4, -0.7]),
        order=2,
    )


@pytest.mark.parametrize(("segments", "snapshots"), HOWS)
def test_tuples_pass_from_layer_to_layer_and_some_of_it_is_not_asked_back(
    segments: Any, snapshots: Any
) -> None:
    def layer(x: Any, h: Any, mask: Any) -> Any:
        unused = np.exp(h) * x  # recorded, but without effect on the output
        return np.sin(x) * mask + h, h * 0.5, mask, unused.detach() * 0.0

    layers = [lambda *a, f=layer: f(*a)[:3] for _ in range(4)]

    def gradients(call: Any) -> list[Any]:
        x, h = leaf(), leaf(X * 0.3)
        out = call(x * 1.0, h, X > 0)
        out[0].sum().backward()
        return [x.grad.numpy(), h.grad.numpy()]

    def plainly(*value: Any) -> Any:
        for f in layers:
            value = f(*value)
        return value

    again = gradients(
        lambda *a: ol.recompute_sequential(layers, *a, segments=segments, snapshots=snapshots)
    )
    for one, other in zip(again, gradients(plainly), strict=True):
        assert one.tobytes() == other.tobytes()


def test_inputs_without_gradients_while_parameters_need_them() -> None:
    model = ol.nn.Sequential(*[ol.nn.Linear(4, 4) for _ in range(5)])
    x = X.astype("float32")
    model(ol.to_tensor(x)).sum().backward()
    plain = [p.grad.numpy() for p in model.parameters()]
    for segments in (1, 2, 5, "sqrt", "revolve"):
        model.clear_gradients()
        ol.recompute_sequential(model, ol.to_tensor(x), segments=segments).sum().backward()
        for p, g in zip(model.parameters(), plain, strict=True):
            np.testing.assert_array_equal(p.grad.numpy(), g)


def test_without_recording_layers_run_once() -> None:
    layers, runs = counted(4)
    with ol.no_grad():
        assert not ol.recompute_sequential(layers, leaf()).requires_grad
    ol.recompute_sequential(layers, X)
    assert runs == [2] * 4


def test_mistakes_are_said() -> None:
    x = leaf()
    with pytest.raises(TypeError, match="takes a Sequential, or a list of layers"):
        ol.recompute_sequential(np.sin, x)
    with pytest.raises(TypeError, match=r"layers\[1\] cannot be called"):
        ol.recompute_sequential([np.sin, 3], x)
    with pytest.raises(TypeError, match=r"recompute_sequential\(net, x, segments=2\)"):
        ol.recompute_sequential({"segments": 2}, ol.nn.Sequential(ol.nn.Tanh()), x)
    with pytest.raises(ValueError, match="there are no layers"):
        ol.recompute_sequential([], x)
    with pytest.raises(ValueError, match="at most one segment a layer"):
        ol.recompute_sequential([np.sin], x, segments=2)
    with pytest.raises(ValueError, match="Did you mean 'revolve'"):
        ol.recompute_sequential([np.sin], x, segments="revolv")
    with pytest.raises(ValueError, match='belongs to segments="revolve"'):
        ol.recompute_sequential([np.sin], x, segments=1, snapshots=1)
    with pytest.raises(TypeError, match="preserve_rng_state is True or False"):
        ol.recompute_sequential([np.sin], x, preserve_rng_state=None)  # type: ignore[arg-type]


@pytest.mark.parametrize("segments", [1, 2, 3, "revolve"])
def test_a_parameter_of_every_layer_gets_the_gradient_of_plain_running(segments: Any) -> None:
    weights = np.random.default_rng(0).standard_normal((6, 6))

    def gradient(call: Any) -> Any:
        w = ol.to_tensor(weights, requires_grad=True)
        call(lambda x: np.tanh(np.tanh(x @ w) @ w)).sum().backward()
        return w.grad.numpy()

    x = ol.ones([3, 6], dtype="float64")
    plain = gradient(lambda f: f(f(f(x))))
    chain = gradient(lambda f: ol.recompute_sequential([f] * 3, x, segments=segments))
    nested = gradient(lambda f: ol.recompute(f, ol.recompute(f, ol.recompute(f, x))))
    assert chain.tobytes() == plain.tobytes() == nested.tobytes()


@pytest.mark.parametrize("segments", [1, 2, 3, 4, "sqrt", "revolve", None])
@pytest.mark.parametrize("place", [0, 1, 3])
def test_layers_that_give_back_what_they_were_given(segments: Any, place: int) -> None:
    ol.seed(0)
    layers: list[Any] = [ol.nn.Linear(8, 8), ol.nn.ReLU(), ol.nn.Linear(8, 2)]
    layers.insert(place, ol.nn.Dropout(0.5).eval())

    def gradients(call: Any) -> list[bytes]:
        for layer in layers:
            layer.clear_gradients()
        call(ol.ones([4, 8])).sum().backward()
        return [p.grad.numpy().tobytes() for layer in layers for p in layer.parameters()]

    def plainly(x: Any) -> Any:
        for layer in layers:
            x = layer(x)
        return x

    again = gradients(lambda x: ol.recompute_sequential(layers, x, segments=segments))
    assert again == gradients(plainly)


@pytest.mark.parametrize("segments", [5, "revolve"])
def test_a_gradient_penalty_through_layers_whose_derivative_reads_nothing(segments: Any) -> None:
    ol.seed(0)
    net = [
        ol.nn.Conv2D(1, 4, 3),
        ol.nn.Tanh(),
        ol.nn.Conv2D(4, 4, 3),
        ol.nn.Tanh(),
        ol.nn.Flatten(),
    ]

    def penalty(call: Any) -> Any:
        data = np.random.default_rng(0).normal(size=(2, 1, 8, 8)).astype("float32")
        x = ol.to_tensor(data, requires_grad=True)
        call(x).sum().backward(create_graph=True)
        slope, x.grad = x.grad, None
        (slope**2).sum().backward()
        return x.grad.numpy()

    def plainly(x: Any) -> Any:
        for layer in net:
            x = layer(x)
        return x

    again = penalty(lambda x: ol.recompute_sequential(net, x, segments=segments))
    np.testing.assert_allclose(again, penalty(plainly), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("segments", [3, "revolve"])
def test_inputs_that_are_views_of_what_was_written_to(segments: Any) -> None:
    def turned(v: Any) -> Any:
        y = v * 1.0
        y *= 0.5
        return y.T

    layers = [turned, lambda v: ol.nn.functional.layer_norm(v, [16]), np.sin]

    def gradient(call: Any) -> bytes:
        x = ol.to_tensor(np.random.default_rng(0).normal(size=(16, 32)), requires_grad=True)
        call(x * 1.0).sum().backward()
        return x.grad.numpy().tobytes()

    again = gradient(lambda x: ol.recompute_sequential(layers, x, segments=segments))
    assert again == gradient(lambda x: layers[2](layers[1](layers[0](x))))


@pytest.mark.parametrize("segments", [1, 2, 4, "revolve"])
@pytest.mark.parametrize("kind", ["data first", "frozen first", "cut in the middle"])
def test_predicted_operations_are_those_that_run(segments: Any, kind: str) -> None:
    ol.seed(0)
    layers: list[Any] = [ol.nn.Flatten(), ol.nn.Linear(6, 6), ol.nn.ReLU(), ol.nn.Linear(6, 2)]
    if kind == "frozen first":
        for p in layers[1].parameters():
            p.requires_grad = False
    if kind == "cut in the middle":
        layers.insert(2, lambda v: (v * 2).detach())
    x = ol.ones([4, 2, 3])
    predicted = ol.memory.predict(layers, x, segments=segments)
    with ol.memory.ledger() as trace:
        ol.recompute_sequential(layers, x, segments=segments).sum().backward()
    assert trace.recomputed_operations == predicted.recomputed_operations


class Recomputing(ol.nn.Layer):
    """A layer that recomputes a part of itself, by the method of its setting."""

    def __init__(self, how: str) -> None:
        super().__init__()
        self.how = how
        self.part = ol.nn.Sequential(ol.nn.Linear(6, 6), ol.nn.Tanh(), ol.nn.Dropout(0.2))
        self.rest = ol.nn.Linear(6, 6)

    def forward(self, x: Any) -> Any:
        def nested(v: Any) -> Any:
            return ol.recompute(lambda u: np.sin(self.part(u)), np.cos(v))

        if self.how == "unused":
            ol.recompute(self.part, x)
        elif self.how == "nested":
            x = x + ol.recompute(nested, x)
        elif self.how == "its operations":
            x = x + ol.recompute(nested, x, use_reentrant=False)
        elif self.how == "a chain":
            inner = [np.sin, self.part, lambda v: ol.recompute(np.tanh, v), np.cos]
            x = x + ol.recompute_sequential(inner, x, segments="revolve", snapshots=1)
        return self.rest(x)


INSIDE = ["unused", "nested", "its operations", "a chain"]


@pytest.mark.parametrize("segments", [1, 2, "revolve", plain(4)])
@pytest.mark.parametrize("how", INSIDE)
def test_so_are_those_that_layers_run_again_by_themselves(segments: Any, how: str) -> None:
    ol.seed(0)
    layers = [np.exp, Recomputing(how), ol.nn.ReLU(), Recomputing(how)]
    x = ol.ones([4, 6])
    predicted = ol.memory.predict(layers, x, segments=segments)
    with ol.memory.ledger() as trace:
        ol.recompute_sequential(layers, x, segments=segments).sum().backward()
    assert trace.recomputed_operations == predicted.recomputed_operations
    assert (predicted.inner_operations > 0) == (how != "unused")
    assert ("layers recompute inside" in str(predicted)) == (how != "unused")


def test_parts_and_actions_are_found_by_their_layer() -> None:
    """Backward of a long chain must not search all parts for each of them."""

    class Parts(dict[Any, Any]):
        seen = 0

        def __getitem__(self, key: Any) -> Any:
            Parts.seen += 1
            return super().__getitem__(key)

        def values(self) -> Any:
            Parts.seen += len(self)
            return super().values()

    class Actions(tuple[Any, ...]):
        __slots__ = ()

        def __getitem__(self, key: Any) -> Any:
            found = super().__getitem__(key)
            Parts.seen += len(found) if isinstance(key, slice) else 1
            return found

    x = ol.to_tensor(np.ones(3), requires_grad=True)
    y = ol.recompute_sequential([np.sin] * 200, x, segments=100)
    chain = y.node.saved[0].chain
    chain.parts = Parts(chain.parts)
    chain.schedule = SimpleNamespace(actions=Actions(chain.schedule.actions))
    y.sum().backward()
    assert 200 < Parts.seen < 10 * 200


@pytest.mark.parametrize("segments", [1, 2, 4])
def test_a_layer_that_a_sequential_has_twice_runs_twice(segments: int) -> None:
    ol.seed(0)
    act = ol.nn.ReLU()
    net = ol.nn.Sequential(ol.nn.Linear(4, 4), act, ol.nn.Linear(4, 4), act)
    x = ol.to_tensor(X.astype("float32"))
    found = ol.recompute_sequential(net, x, segments=segments)
    np.testing.assert_array_equal(found.numpy(), net(x).numpy())
    assert (found.numpy() >= 0).all()
