"""vmap: a function of one example, run for all; derivatives inside and outside."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import optlab as ol
from optlab.autograd.tensor.tensor import raw
from optlab.backend.ensemble import EnsembleError
from tests.autograd.rows import numbers

# Every length is 3: a mixed-up axis fits the shapes and shows only in the numbers.
W, X, Y = numbers((3, 3)), numbers((3, 3), seed=1), numbers((3, 3), seed=2)
B = numbers((3,), seed=3)
ROWS = np.array([2, 0, 2])


def network(w: Any, x: Any) -> Any:
    return np.tanh(x @ w)


def loss(w: Any, x: Any, y: Any) -> Any:
    return np.sum((network(w, x) - y) ** 2)


# Values -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("in_axis", [0, 1, -1])
@pytest.mark.parametrize("out_axis", [0, 1, -1])
def test_vmap_runs_along_any_axis_and_puts_it_anywhere(in_axis: int, out_axis: int) -> None:
    x = numbers((2, 4))
    got = ol.vmap(lambda row: row * row[0], in_axis, out_axis)(x)
    moved = np.moveaxis(x, in_axis, 0)
    np.testing.assert_array_equal(got, np.stack([row * row[0] for row in moved], out_axis))


def test_a_member_broadcasts_by_its_own_axes() -> None:
    got = ol.vmap(lambda x: x + W)(X)
    np.testing.assert_array_equal(got, np.stack([x + W for x in X]))


def test_arguments_and_results_may_be_tuples_lists_and_dicts() -> None:
    def f(pair: Any, named: Any) -> Any:
        a, b = pair
        return {"sum": a + b, "both": (a * named["c"], [b])}

    got = ol.vmap(f, in_axes=((0, None), {"c": 1}))((X, B), {"c": W})
    np.testing.assert_array_equal(got["sum"], X + B)
    np.testing.assert_array_equal(got["both"][0], X * W.T)
    np.testing.assert_array_equal(got["both"][1][0], np.stack([B] * 3))


def test_keyword_arguments_are_shared() -> None:
    np.testing.assert_array_equal(ol.vmap(lambda x, w: x * w)(X, w=W[0]), X * W[0])


def test_tensors_give_tensors() -> None:
    got = ol.vmap(network, (None, 0))(ol.to_tensor(W), ol.to_tensor(X))
    assert isinstance(got, ol.Tensor)
    np.testing.assert_allclose(got.numpy(), network(W, X), rtol=1e-14)


F = ol.nn.functional


@pytest.mark.parametrize(
    "f",
    [
        F.relu, F.softmax, F.gelu, lambda x: F.mse_loss(x, 2 * x), lambda x: F.linear(x, W.T),
        lambda x: ol.to_tensor(x) * 2, ol.grad(lambda x: F.softplus(x).sum()), ol.mean,
        lambda x: np.sum(ol.vmap(lambda y: F.relu(x * y))(Y)), lambda x: ol.ones([2]),
    ],
)  # fmt: skip
def test_arrays_give_arrays_whatever_is_called_inside(f: Any) -> None:
    x = X - 0.5
    y = ol.vmap(f)(x)
    assert type(y) is np.ndarray
    each = [f(ol.ensemble(one[None])) for one in x]
    wanted = [ol.members(one)[0] if hasattr(raw(one), "members") else one for one in each]
    np.testing.assert_allclose(y, np.stack([np.asarray(raw(one)) for one in wanted]), rtol=1e-12)


def test_arrays_in_containers_give_arrays() -> None:
    got = ol.vmap(lambda pair: {"relu": F.relu(pair[0]), "both": (pair[1], F.tanh(pair[1]))})(
        (X, Y)
    )
    assert type(got["relu"]) is type(got["both"][0]) is type(got["both"][1]) is np.ndarray
    got = ol.vmap(lambda x, scale: F.relu(x) * scale)(X, scale=ol.to_tensor(2.0))
    assert isinstance(got, ol.Tensor)  # an argument is one


def test_what_needs_a_gradient_stays_a_tensor() -> None:
    layer = ol.nn.Linear(3, 2)
    x = X.astype("float32")
    y = ol.vmap(layer)(x)
    assert y.requires_grad
    y.sum().backward()
    np.testing.assert_allclose(layer.bias.grad.numpy(), [3.0, 3.0])
    with ol.no_grad():
        np.testing.assert_allclose(ol.vmap(layer)(x), y.numpy(), rtol=1e-6)
        assert type(ol.vmap(layer)(x)) is np.ndarray
    outer = ol.grad(lambda w: np.sum(ol.vmap(lambda one: F.relu(one * w))(X)))(2.0)
    np.testing.assert_allclose(outer, X[X > 0].sum())


def test_a_result_that_is_the_same_for_all_is_repeated() -> None:
    np.testing.assert_array_equal(ol.vmap(lambda x: 2.0)(X), [2.0, 2.0, 2.0])


def test_a_shared_array_is_read_at_an_index_of_each() -> None:
    np.testing.assert_array_equal(ol.vmap(lambda i: ol.numpy.take(W, i, 0))(ROWS), W[ROWS])
    np.testing.assert_array_equal(ol.vmap(lambda i: ol.numpy.take(W, i))(ROWS), W.ravel()[ROWS])
    with pytest.raises(EnsembleError, match=r"numpy\.take"):
        ol.vmap(lambda i: W[i])(ROWS)


def test_nested_vmap_is_every_pair() -> None:
    def pair(x: Any, y: Any) -> Any:
        return np.sum(np.tanh(W @ x) * y) * x[0]

    got = ol.vmap(lambda x: ol.vmap(lambda y: pair(x, y), 1)(Y))(X)
    np.testing.assert_allclose(got, [[pair(x, y) for y in Y.T] for x in X], rtol=1e-13)


def test_three_levels_and_indices_of_each() -> None:
    i = np.array([2, 0, 1])

    def cell(x: Any, j: Any, y: Any) -> Any:
        return x[j] * np.take(y, j) - y[0] * x[1]

    got = ol.vmap(lambda x: ol.vmap(lambda j: ol.vmap(lambda y: cell(x, j, y))(Y))(i))(X)
    wanted = [[[cell(x, j, y) for y in Y] for j in i] for x in X]
    np.testing.assert_allclose(got, wanted, rtol=1e-14)


# Derivatives inside -------------------------------------------------------------------------------


def test_the_gradient_of_each_example() -> None:
    got = ol.vmap(ol.grad(loss), in_axes=(None, 0, 0))(W, X, Y)
    wanted = [ol.grad(loss)(W, x, y) for x, y in zip(X, Y, strict=True)]
    np.testing.assert_allclose(got, wanted, rtol=1e-12)


@pytest.mark.parametrize("derivative", [ol.jacobian, ol.hessian])
def test_matrices_of_derivatives_of_each_example(derivative: Any) -> None:
    f = (lambda x: network(W, x)) if derivative is ol.jacobian else (lambda x: loss(W, x, B))
    got = ol.vmap(derivative(f))(X)
    np.testing.assert_allclose(got, [derivative(f)(x) for x in X], rtol=1e-12)


def test_products_with_derivatives_of_each_example() -> None:
    def f(x: Any) -> Any:
        return network(W, x)

    got = ol.vmap(lambda x, v: ol.jvp(f, (x,), (v,))[1])(X, Y)
    wanted = [ol.jvp(f, (x,), (v,))[1] for x, v in zip(X, Y, strict=True)]
    np.testing.assert_allclose(got, wanted, rtol=1e-12)
    got = ol.vmap(lambda x, u: ol.vjp(f, x)[1](u)[0])(X, Y)
    wanted = [ol.vjp(f, x)[1](u)[0] for x, u in zip(X, Y, strict=True)]
    np.testing.assert_allclose(got, wanted, rtol=1e-12)
    got = ol.vmap(lambda x, v: ol.hvp(lambda x: np.sum(f(x) ** 3), x, v))(X, Y)
    wanted = [ol.hvp(lambda x: np.sum(f(x) ** 3), x, v) for x, v in zip(X, Y, strict=True)]
    np.testing.assert_allclose(got, wanted, rtol=1e-12)


def test_one_seed_for_all_with_an_index_of_each() -> None:
    def picked(x: Any, i: Any) -> Any:
        return ol.vjp(lambda x: x[i] ** 2, x)[1](np.ones(3))[0]

    i = np.array([[0, 0, 1], [2, 1, 2], [1, 1, 1]])
    got = ol.vmap(picked)(X, i)
    np.testing.assert_allclose(got, [picked(x, j) for x, j in zip(X, i, strict=True)])


# Derivatives outside ------------------------------------------------------------------------------

OUTSIDE = {
    "an argument that all share": lambda w: np.sum(ol.vmap(network, (None, 0))(w, X) ** 2),
    "a closure": lambda w: np.sum(ol.vmap(lambda x: network(w, x))(X) ** 2),
    "a closure over a result": lambda w: np.sum(ol.vmap(lambda x, v=2 * w: network(v, x))(X)),
    "an argument run along": lambda w: np.sum(ol.vmap(lambda w, x: np.sum(w * x) ** 2, 1)(w, X)),
    "both at once": lambda w: np.sum(ol.vmap(lambda row: np.tanh(w @ row))(w) * Y),
    "several results": lambda w: sum(map(np.sum, ol.vmap(lambda x: (x @ w, np.sin(w)))(X))),
    "a result without the examples": lambda w: np.sum(ol.vmap(lambda x: w * 2.0)(X) * W),
    "nested": lambda w: np.sum(
        ol.vmap(lambda x: ol.vmap(lambda y: np.tanh(x @ w @ y) * y[0], 1)(Y))(X)
    ),
    "nested, shared in the middle": lambda w: np.sum(
        ol.vmap(lambda x: (lambda h: np.sum(ol.vmap(lambda y: h * y)(Y)))(network(w, x)))(X)
    ),
    "one after the other": lambda w: np.sum(
        ol.vmap(lambda h: h @ w)(ol.vmap(lambda x: network(w, x))(X))
    ),
    "a gradient inside": lambda w: np.sum(
        ol.vmap(lambda x: np.sum(ol.grad(lambda x: np.sum(network(w, x) ** 2))(x) ** 2))(X)
    ),
    "a gradient by the shared weight inside": lambda w: np.sum(
        ol.vmap(ol.grad(loss), (None, 0, 0))(w, X, Y) ** 2
    ),
    "a gradient by a closed-over weight inside": lambda w: np.sum(
        ol.vmap(lambda x: ol.grad(lambda v: np.sum(network(v, x) ** 2))(w) * w)(X)
    ),
    "an index of each": lambda w: np.sum(
        ol.vmap(lambda i: (w if isinstance(w, ol.Tensor) else ol.to_tensor(w))[i] ** 2)(ROWS)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OUTSIDE)
def test_vmap_can_be_differentiated(name: str) -> None:
    ol.check_grad(OUTSIDE[name], W, order=2)


def test_to_third_order() -> None:
    ol.check_grad(OUTSIDE["a closure"], W, order=3)


def test_a_gradient_that_comes_from_outside_equals_the_loop() -> None:
    def looped(w: Any) -> Any:
        return sum(np.sum(ol.grad(loss)(w, x, y) ** 2) for x, y in zip(X, Y, strict=True))

    got = ol.grad(OUTSIDE["a gradient by the shared weight inside"])(W)
    np.testing.assert_allclose(got, ol.grad(looped)(W), rtol=1e-12)


def test_backward_through_vmap_reaches_parameters() -> None:
    w, x = ol.to_tensor(W, requires_grad=True), ol.to_tensor(X, requires_grad=True)
    np.sum(ol.vmap(lambda x: network(w, x))(x) ** 2).backward()
    by_w, by_x = ol.grad(lambda w, x: np.sum(network(w, x) ** 2), (0, 1))(W, X)
    assert w.grad is not None
    assert x.grad is not None
    np.testing.assert_allclose(w.grad.numpy(), by_w, rtol=1e-12)
    np.testing.assert_allclose(x.grad.numpy(), by_x, rtol=1e-12)


def test_a_parameter_written_over_before_backward_is_found_out() -> None:
    w = ol.to_tensor(W, requires_grad=True)
    total = np.sum(ol.vmap(lambda x: network(w, x))(ol.to_tensor(X, requires_grad=True)))
    w.node.mark_overwritten("a test")
    with pytest.raises(RuntimeError, match="a test"):
        total.backward()


# Refusals -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("f", "named"),
    [
        (lambda x: x if np.sum(x) > 0 else -x, "np.where"),
        (lambda x: x[x > 0], "np.where"),
        (lambda x: np.unique(x), "np.unique"),
        (lambda x: float(x[0]), "float"),
        (lambda x: np.allclose(x, 1.0), "np.isclose"),
        (lambda x: np.array([x, x]), "np.stack"),
    ],
)
def test_what_needs_one_answer_is_refused_by_name(f: Any, named: str) -> None:
    with pytest.raises(EnsembleError, match=named):
        ol.vmap(f)(X)


def test_axes_that_do_not_fit_are_named() -> None:
    with pytest.raises(
        ValueError, match=r"(?s)argument 0, shape \(2,\): 2.*argument 1, shape \(3,\): 3"
    ):
        ol.vmap(np.add)(np.ones(2), np.ones(3))
    with pytest.raises(ValueError, match="axis 1 of an argument of shape"):
        ol.vmap(np.sum, 1)(np.ones(2))
    with pytest.raises(ValueError, match="2 entries for 1"):
        ol.vmap(np.sum, (0, 0))(np.ones(2))
    with pytest.raises(ValueError, match="in_axes are None"):
        ol.vmap(np.sum, None)(np.ones(2))
    with pytest.raises(TypeError, match="returned None"):
        ol.vmap(lambda x: None)(np.ones(2))


def test_what_leaks_out_of_a_vmap_does_not_mix_with_the_next() -> None:
    leaked: list[Any] = []
    ol.vmap(lambda x: leaked.append(x) or x)(X)
    got = ol.vmap(lambda y: y + leaked[0][0])(Y[0])  # pairs of both, not one of each
    assert (got.shape, got.member_count) == ((3,), 3)
    np.testing.assert_array_equal(got.members, Y[0] + X[:, :1])


@pytest.mark.peers
@pytest.mark.parametrize("name", ["closure", "per example", "nested", "penalty"])
def test_vmap_equals_that_of_jax(name: str) -> None:
    jax = pytest.importorskip("jax")
    jax.config.update("jax_enable_x64", True)
    jnp = jax.numpy

    def program(np: Any, grad: Any, vmap: Any) -> Any:
        def loss(w: Any, x: Any, y: Any) -> Any:
            return np.sum((np.tanh(x @ w) - y) ** 2)

        return {
            "closure": grad(lambda w: np.sum(vmap(lambda x: np.tanh(x @ w))(X) ** 2)),
            "per example": lambda w: vmap(grad(loss), in_axes=(None, 0, 0))(w, X, Y),
            "nested": grad(
                lambda w: np.sum(vmap(lambda x: vmap(lambda y: loss(w, x, y), 1, 0)(Y))(X) ** 2)
            ),
            "penalty": grad(
                lambda w: np.sum(vmap(lambda x: np.sum(grad(loss, 1)(w, x, B) ** 2))(X))
            ),
        }[name](W)

    np.testing.assert_allclose(
        program(np, ol.grad, ol.vmap), program(jnp, jax.grad, jax.vmap), rtol=1e-10
    )


def test_backward_inside_vmap_is_refused_where_the_gradient_would_leave() -> None:
    weight = ol.to_tensor(np.ones(3), requires_grad=True)

    def loss(x: Any) -> Any:
        value = np.sum(weight * x)
        value.backward()
        return value

    with pytest.raises(EnsembleError, match=r"backward\(\) inside vmap.*ol\.vmap\(ol\.grad"):
        ol.vmap(loss)(np.ones((5, 3)))
    assert weight.grad is None


def test_one_mask_of_dropout_is_shared_by_all_examples() -> None:
    ol.seed(0)
    y = np.asarray(ol.vmap(lambda x: ol.nn.functional.dropout(x, 0.5))(np.ones((4, 50), "float32")))
    assert (y == y[0]).all()
    assert set(np.unique(y)) == {0.0, 2.0}


def test_lengths_that_differ_are_told_by_argument_with_the_in_axes_that_were_meant() -> None:
    def loss(net: Any, x: Any, y: Any) -> Any:
        return np.sum((x @ net["w"] - y) ** 2)

    net = {"w": np.ones((3, 2)), "b": np.ones(2)}
    with pytest.raises(ValueError, match="these differ") as caught:
        ol.vmap(ol.grad(loss))(net, np.ones((64, 3)), np.ones((64, 2)))
    said = str(caught.value)
    assert "argument 0 (net)['w'], shape (3, 2): 3 along axis 0" in said
    assert "argument 1 (x), shape (64, 3): 64 along axis 0" in said
    assert "in_axes=(None, 0, 0)) runs 64 examples" in said
    ol.vmap(ol.grad(loss), in_axes=(None, 0, 0))(net, np.ones((64, 3)), np.ones((64, 2)))
    with pytest.raises(ValueError, match=r"in_axes=\(None, 1\)"):
        ol.vmap(np.dot, in_axes=(0, 1))(np.ones(3), np.ones((3, 5)))


@pytest.mark.parametrize(
    ("f", "instead"),
    [(lambda x: float(x) * x, "return what you want to see"),
     (lambda x: x.item(), r"np\.sqrt\(x\)"),
     (lambda x: x if x > 0 else -x, r"np.where\(x > 0, a, b\)")],
)  # fmt: skip
def test_one_answer_for_all_examples_is_refused_in_plain_words(f: Any, instead: str) -> None:
    with pytest.raises(EnsembleError, match=rf"stands for 3 examples at once.*vmap.*{instead}"):
        ol.vmap(f)(np.arange(3.0))


@pytest.mark.parametrize("data", [0.1, np.float32(1), ol.nn.Linear(2, 2)])
def test_an_ensemble_of_no_members_is_refused(data: Any) -> None:
    with pytest.raises(TypeError, match="takes the members in one array"):
        ol.ensemble(data)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda x: x.detach(), r"has no attribute 'detach'; leave \.detach\(\) out"),
        (lambda x: x.numpy(), r"has no attribute 'numpy'; leave \.numpy\(\) out"),
        (lambda x: x.backward(), r"'backward'; write ol\.grad inside"),
        (lambda x: x.tanh(), r"'tanh'; write np\.tanh\(x\)\."),
        (lambda x: x.nonsense, r"of shape \(2,\), and has no attribute 'nonsense'\.$"),
    ],
)
def test_methods_of_tensors_inside_a_mapped_function(call, said):
    """What it gets is an array, which the message calls by what the user wrote: vmap."""
    with pytest.raises(AttributeError, match=rf"function inside ol\.vmap gets.*{said}") as error:
        ol.vmap(call)(np.ones((3, 2)))
    assert "EnsembleArray" not in str(error.value)
