"""recompute: numbers of runs, requirements on the function, and changes between runs."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import optlab as ol
from optlab.autograd.tape import saved_tensors
from optlab.autograd.tape.slow_path import slow_path
from optlab.backend import random

BOTH = pytest.mark.parametrize("reentrant", [True, False])
X = np.linspace(-1.0, 1.5, 12).reshape(3, 4)


def leaf(data: Any = X) -> ol.Tensor:
    return ol.to_tensor(np.array(data, dtype="float64"), requires_grad=True)


class Counted:
    """A function that counts its runs."""

    def __init__(self, f: Callable[..., Any]) -> None:
        self.f = f
        self.runs = 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.runs += 1
        return self.f(*args, **kwargs)


class Cube(ol.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 3 * x * x * g


def spectrum(x: Any) -> Any:
    values, vectors = np.linalg.eigh(np.transpose(x) @ x)
    return values.sum() + (vectors**4).sum()


def in_place(x: Any) -> Any:
    y = x * 2.0
    y[0] = np.sin(x[1])
    y += x
    y[1:] = np.exp(y[:2])
    return np.exp(y)


BUFFER = np.full((3, 4), 0.3)
LARGE = np.random.default_rng(0).standard_normal((4, 40000))
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "elementwise": lambda x: np.tanh(np.exp(x) * x),
    "itself": lambda x: x,
    "view": lambda x: np.sin(x.T[1:].reshape(-1)),
    "several outputs": spectrum,
    "split": lambda x: np.split(x * x, 2, axis=1)[1] * 3.0,
    "Function": lambda x: Cube.apply(np.sin(x)),
    "in place": in_place,
    "constant": lambda x: np.exp(x * BUFFER),
    "large constant": lambda x: np.sin(np.sin(x @ LARGE) * LARGE[:3]),
    "transform": lambda x: ol.grad(lambda z: np.sum(np.sin(z) * x))(x) * x,
    "hvp": lambda x: ol.hvp(lambda z: np.sum(z**3), x, x),
    "vmap": lambda x: ol.vmap(lambda row: np.sum(np.exp(row)))(x) * x[:, 0],
    "vmap beside what it shares": lambda x: ol.vmap(lambda row: np.sin(x @ row))(np.cos(x)),
    "vmap in vmap": lambda x: ol.vmap(lambda r: ol.vmap(lambda a: np.sin(a * r + x[0]))(r))(x),
    "dropout": lambda x: ol.nn.functional.dropout(np.exp(x), 0.4),
    "no_grad inside": lambda x: x * ol.no_grad(np.exp)(x),
    "nothing": lambda x: ol.zeros([3]),
}


def gradient_and_next_draw(f: Callable[..., Any], x: Any) -> tuple[bytes, float, float]:
    ol.seed(1)
    x = leaf(x)
    y = f(x * 1.5).sum()
    drawn = random.next_key().generator().random()
    if y.requires_grad:
        y.backward()
    g = np.zeros(1) if x.grad is None else x.grad.numpy()
    return y.numpy().tobytes() + g.tobytes(), drawn, random.next_key().generator().random()


@BOTH
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_bits_are_those_of_a_plain_call(name: str, reentrant: bool) -> None:
    f = FUNCTIONS[name]
    twice = gradient_and_next_draw(lambda x: ol.recompute(f, x, use_reentrant=reentrant), X)
    assert twice == gradient_and_next_draw(f, X)


@BOTH
@pytest.mark.parametrize("name", [name for name in FUNCTIONS if not name.startswith("vmap")])
def test_so_are_they_under_the_users_own_hooks_and_checks(name: str, reentrant: bool) -> None:
    f = FUNCTIONS[name]
    with ol.autograd.saved_tensors_hooks(lambda t: t, lambda t: t):
        twice = gradient_and_next_draw(lambda x: ol.recompute(f, x, use_reentrant=reentrant), X)
    assert twice == gradient_and_next_draw(f, X)
    with ol.autograd.detect_anomaly():
        again = gradient_and_next_draw(lambda x: ol.recompute(f, x, use_reentrant=reentrant), X)
    assert again == twice


@BOTH
@pytest.mark.parametrize(
    "name", ["elementwise", "several outputs", "split", "Function", "transform", "hvp", "view"]
)
def test_derivatives_of_higher_order(name: str, reentrant: bool) -> None:
    ol.check_grad(
        lambda x: ol.recompute(FUNCTIONS[name], x, use_reentrant=reentrant),
        np.random.default_rng(2).standard_normal((3, 4)) * 0.5,
        order=2,
    )


@BOTH
def test_the_third_derivative(reentrant: bool) -> None:
    def cube(x: Any) -> Any:
        return ol.recompute(lambda x: np.sin(x) ** 3, x, use_reentrant=reentrant)

    ol.check_grad(cube, np.array([0.3, -0.8]), order=3)


@BOTH
def test_transforms_around_it(reentrant: bool) -> None:
    def plain(x: Any) -> Any:
        return np.sum(np.tanh(x) * np.exp(x), axis=-1)

    def twice(x: Any) -> Any:
        return ol.recompute(plain, x, use_reentrant=reentrant)

    row, v = X[0], X[1]
    for transform in (
        lambda f: ol.grad(f)(row),
        lambda f: ol.jacobian(lambda x: f(x.reshape(2, 2)))(row),
        lambda f: ol.hessian(f)(row),
        lambda f: ol.hvp(f, row, v),
        lambda f: ol.jvp(f, (row,), (v,))[1],
        lambda f: ol.vjp(f, row)[1](1.0)[0],
        lambda f: ol.vmap(ol.grad(f))(X),
        lambda f: ol.grad(lambda x: np.sum(ol.vmap(f)(x)))(X),
    ):
        np.testing.assert_array_equal(transform(twice), transform(plain))


@BOTH
def test_ensembles(reentrant: bool) -> None:
    def gradients(call: Any) -> Any:
        w = ol.to_tensor(ol.ensemble(X), requires_grad=True)
        call(lambda w: np.tanh(w * 2.0) * w, w).sum().backward()
        return ol.members(w.grad)

    twice = gradients(lambda f, w: ol.recompute(f, w, use_reentrant=reentrant))
    np.testing.assert_array_equal(twice, gradients(lambda f, w: f(w)))


# Numbers of runs -------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_nested_functions_run_as_often_as_documented(reentrant: bool, depth: int) -> None:
    counted: list[Counted] = []

    def nested(d: int) -> Counted:
        inner = nested(d + 1) if d + 1 < depth else None
        f = Counted(
            lambda x: (
                np.sin(x)
                if inner is None
                else ol.recompute(inner, np.sin(x), use_reentrant=reentrant)
            )
        )
        counted.append(f)
        return f

    outermost, x = nested(0), leaf()
    y = ol.recompute(outermost, x, use_reentrant=reentrant).sum()
    assert [f.runs for f in counted] == [1] * depth
    y.backward()
    assert [f.runs for f in reversed(counted)] == [d + 2 for d in range(depth)]


@BOTH
def test_a_retained_graph_runs_it_once_more_and_a_freed_one_is_an_error(reentrant: bool) -> None:
    f, x = Counted(lambda x: np.exp(x) * x), leaf()
    y = ol.recompute(f, x, use_reentrant=reentrant).sum()
    y.backward(retain_graph=True)
    first = x.grad.numpy()
    y.backward()
    assert f.runs == 3
    np.testing.assert_array_equal(x.grad.numpy(), first + first)
    with pytest.raises(RuntimeError, match="a second time"):
        y.backward()
    assert f.runs == 3


@BOTH
def test_it_runs_once_where_nothing_is_asked_back(reentrant: bool) -> None:
    f = Counted(lambda x: x * 2.0)
    with ol.no_grad():
        assert not ol.recompute(f, leaf(), use_reentrant=reentrant).requires_grad
    ol.recompute(f, X, use_reentrant=reentrant)
    (leaf() * 2.0 + ol.recompute(f, leaf(), use_reentrant=reentrant)).detach()
    assert f.runs == 3


@BOTH
@pytest.mark.parametrize("asked", [("a",), ("b", 0), ("b", 1), ("a", "b")])
def test_only_some_outputs_are_asked_back(reentrant: bool, asked: tuple[Any, ...]) -> None:
    f = Counted(lambda x: {"a": np.sin(x), "b": (np.exp(x) * x, x @ x.T), "n": 3})

    def gradient(call: Any) -> Any:
        x = leaf()
        out = call(x)
        assert list(out) == ["a", "b", "n"]
        assert isinstance(out["b"], tuple)
        assert out["n"] == 3
        if asked == ("a", "b"):
            (out["a"].sum() + (out["b"][0] * out["b"][1][0, 0]).sum()).backward()
        else:
            for key in asked:
                out = out[key]
            out.sum().backward()
        return x.grad.numpy()

    plain = gradient(f)
    f.runs = 0
    twice = gradient(lambda x: ol.recompute(f, x, use_reentrant=reentrant))
    np.testing.assert_array_equal(twice, plain)
    assert f.runs == 2


@BOTH
def test_outputs_one_after_the_other(reentrant: bool) -> None:
    x = leaf()
    a, b = ol.recompute(lambda x: (np.sin(x), np.exp(x)), x, use_reentrant=reentrant)
    a.sum().backward(retain_graph=True)
    first = x.grad.numpy()
    b.sum().backward()
    np.testing.assert_array_equal(first, np.cos(X))
    np.testing.assert_array_equal(x.grad.numpy(), np.cos(X) + np.exp(X))


# Arguments and closures ------------------------------------------------------------------------


@BOTH
def test_what_the_function_reaches_by_itself_gets_gradients(reentrant: bool) -> None:
    w = leaf()
    h = np.sin(w)  # not a leaf

    class Model:
        def step(self, x: Any, scale: float = 1.0) -> Any:
            return np.exp(h * x) * scale + w

    plain_w = leaf()
    (np.exp(np.sin(plain_w) * BUFFER) * 2.0 + plain_w).sum().backward()
    y = ol.recompute(Model().step, BUFFER, scale=2.0, use_reentrant=reentrant)
    y.sum().backward()
    np.testing.assert_array_equal(w.grad.numpy(), plain_w.grad.numpy())


@BOTH
def test_containers_are_arguments_too(reentrant: bool) -> None:
    def f(pair: Any, *, more: Any) -> Any:
        return pair[0] * np.exp(pair[1]["x"]) + more

    def gradients(call: Any) -> Any:
        a, b, c = leaf(), leaf(X + 1), leaf(X - 1)
        call(f, (a * 1.0, {"x": b * 2.0}), more=c * 3.0).sum().backward()
        return [t.grad.numpy().tobytes() for t in (a, b, c)]

    twice = gradients(lambda f, *a, **k: ol.recompute(f, *a, use_reentrant=reentrant, **k))
    assert twice == gradients(lambda f, *a, **k: f(*a, **k))


def test_wrong_arguments_are_said() -> None:
    with pytest.raises(TypeError, match=r"recompute\(f, x\)"):
        ol.recompute(np.sin(leaf()), 3)
    with pytest.raises(TypeError, match="unexpected keyword argument 'scale'"):
        ol.recompute(lambda x: x, leaf(), scale=2)
    for name in ("preserve_rng_state", "use_reentrant"):
        with pytest.raises(TypeError, match=f"{name} is True or False"):
            ol.recompute(np.sin, leaf(), **{name: 1})  # type: ignore[arg-type]


@BOTH
def test_hooks_run_once_with_the_gradients_of_plain_running(reentrant: bool) -> None:
    def seen(call: Any) -> list[bytes]:
        found: list[bytes] = []

        def note(g: Any) -> None:
            found.append(g.numpy().tobytes())

        def f(h: Any) -> Any:
            inside = np.sin(h)
            inside.register_hook(note)
            return inside * h

        x = leaf()
        x.register_hook(note)
        h = x * 2.0
        h.register_hook(lambda g: note(g) or g * 3.0)
        y = call(f, h)
        y.register_hook(note)
        y.sum().backward()
        return found

    plain = seen(lambda f, h: f(h))
    assert len(plain) == 4
    assert seen(lambda f, h: ol.recompute(f, h, use_reentrant=reentrant)) == plain


# Random numbers, threads -----------------------------------------------------------------------


@BOTH
def test_without_preserving_the_second_run_draws_anew(reentrant: bool) -> None:
    def after(**how: Any) -> tuple[Any, int]:
        ol.seed(2)
        x = leaf(np.ones(200))
        drop = ol.nn.Dropout(0.5)
        ol.recompute(drop, x, use_reentrant=reentrant, **how).sum().backward()
        return x.grad.numpy(), ol.get_rng_state()["draws"]

    (kept, once), (drawn, twice) = after(), after(preserve_rng_state=False)
    assert (kept != drawn).any()
    assert (once, twice) == (1, 2)


@BOTH
def test_random_scopes_inside_and_outside(reentrant: bool) -> None:
    def f(x: Any) -> Any:
        with ol.random_scope("inner"):
            x = ol.nn.functional.dropout(x, 0.5)
        return ol.nn.functional.dropout(x, 0.5) * x

    def run(call: Any) -> bytes:
        ol.seed(4)
        x = leaf(np.arange(300.0))
        with ol.random_scope("outer"):
            y = call(f, x)
        y.sum().backward()
        return y.numpy().tobytes() + x.grad.numpy().tobytes()

    assert run(lambda f, x: ol.recompute(f, x, use_reentrant=reentrant)) == run(lambda f, x: f(x))


@BOTH
def test_threads_do_not_meet(reentrant: bool) -> None:
    found: dict[tuple[int, bool], bytes] = {}

    def work(i: int, call: Any, twice: bool) -> None:
        with ol.random_scope("job", i, seed=3):
            for _ in range(10):
                x = leaf(np.arange(500.0) + i)
                y = call(lambda x: ol.nn.functional.dropout(np.sin(x), 0.5), x)
                y.sum().backward()
        found[i, twice] = x.grad.numpy().tobytes()

    jobs = {
        True: lambda f, x: ol.recompute(f, x, use_reentrant=reentrant), False: lambda f, x: f(x),
    }  # fmt: skip
    threads = [
        threading.Thread(target=work, args=(i, call, twice))
        for i in range(2)
        for twice, call in jobs.items()
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found[0, True] == found[0, False] != found[1, True] == found[1, False]
    assert slow_path.any == 0 or saved_tensors.innermost() is None
