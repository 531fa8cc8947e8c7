"""backward: gradients of leaves, repeated calls, starting gradients, and hooks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import optlab as ol


def leaf(data: Any, dtype: str = "float64") -> ol.Tensor:
    return ol.to_tensor(data, dtype=dtype, requires_grad=True)


def grad_of(t: ol.Tensor) -> Any:
    """Return the accumulated gradient as nested lists."""
    assert t.grad is not None
    return t.grad.tolist()


# Gradients of leaves.


def test_gradients_of_several_backward_calls_add_up() -> None:
    x = leaf([1.0, 2.0])
    np.sum(x * x).backward()
    np.sum(3.0 * x).backward()
    assert grad_of(x) == [5.0, 7.0]
    x.grad = None
    assert x.grad is None
    np.sum(x).backward()
    assert grad_of(x) == [1.0, 1.0]


def test_a_diamond_adds_up_both_sides() -> None:
    x = leaf(3.0)
    y = x * x
    (y * y + 2.0 * y + x).backward()
    assert grad_of(x) == 4 * 27 + 4 * 3 + 1


def test_a_ladder_of_diamonds_is_walked_once_a_node() -> None:
    x = leaf(1.0)
    y = x * 1.0
    for _ in range(60):  # 2**60 paths
        y = y + y
    y.backward()
    assert grad_of(x) == 2.0**60


def test_a_tensor_used_as_both_inputs_gets_both_parts() -> None:
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    (x @ x).backward()
    ones = np.ones((2, 2))
    np.testing.assert_array_equal(grad_of(x), ones @ x.numpy().T + x.numpy().T @ ones)


def test_every_leaf_gets_its_part_and_constants_none() -> None:
    a, b, constant = leaf(2.0), leaf(5.0), ol.to_tensor(7.0)
    (a * b * constant).backward()
    assert (grad_of(a), grad_of(b), constant.grad) == (35.0, 14.0, None)


def test_deep_chains_need_no_deep_stack() -> None:
    x = leaf(1.0)
    y = x
    for _ in range(20_000):
        y = y * 1.0
    y.backward()
    assert grad_of(x) == 1.0
    z = x
    for _ in range(20_000):
        z = z + x
    z.backward(create_graph=True)
    assert x.grad is not None
    assert x.grad.item() == 20_002.0
    del y, z  # freeing a long chain must not recurse either
    x.grad = None


def test_deep_chains_in_transforms() -> None:
    def f(x: Any) -> Any:
        y = x
        for _ in range(20_000):
            y = y + 1.0
        return y * y

    assert ol.grad(f)(0.0) == 40_000.0


def test_results_in_between_keep_no_gradient() -> None:
    x = leaf(2.0)
    y = x * x
    (y * 3.0).backward()
    assert y.grad is None
    with pytest.raises(RuntimeError, match="in between are not kept"):
        y.grad = ol.to_tensor(1.0)


def test_backward_of_a_leaf_itself() -> None:
    x = leaf([1.0, 2.0])
    x.backward()
    x.backward(np.array([3.0, 4.0]))
    assert grad_of(x) == [4.0, 5.0]


def test_parts_of_one_tensor_write_into_one_gradient() -> None:
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    row, column = x[0], x[:, 1]
    (np.sum(row * row) + np.sum(column)).backward()
    assert grad_of(x) == [[2.0, 5.0], [0.0, 1.0]]


def test_a_gradient_is_no_window_on_the_arrays_of_others() -> None:
    for f in (lambda x: x, lambda x: x + 1.0, lambda x: np.reshape(x, (2,)), lambda x: x[:]):
        x, start = leaf([1.0, 2.0]), np.array([3.0, 4.0])
        f(x).backward(start)
        start[:] = 99.0
        assert grad_of(x) == [3.0, 4.0]


def test_gradients_of_two_leaves_do_not_share_what_can_be_written() -> None:
    a, b = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    (a + b).backward()
    assert a.grad is not None
    first = np.array(a.grad)
    first[:] = 99.0
    assert (grad_of(a), grad_of(b)) == ([1.0, 1.0], [1.0, 1.0])


# Starting gradients.


def test_a_non_scalar_starts_from_ones() -> None:
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    (x * x).backward()
    assert grad_of(x) == [[2.0, 4.0], [6.0, 8.0]]


@pytest.mark.parametrize("kind", [list, tuple, np.array, ol.to_tensor])
def test_it_starts_from_what_is_given(kind: Any) -> None:
    x = leaf([1.0, 2.0])
    (x * x).backward(kind([1.0, -1.0]))
    assert grad_of(x) == [2.0, -4.0]


@pytest.mark.parametrize("start", [1.0, [1.0], [1.0, 2.0, 3.0], [[1.0, 2.0]]])
def test_a_start_of_another_shape_is_refused(start: Any) -> None:
    x = leaf([1.0, 2.0])
    with pytest.raises(ValueError, match=r"must have the shape of the Tensor, \(2,\); got"):
        (x * x).backward(start)
    assert x.grad is None


def test_backward_with_nowhere_to_go_says_so() -> None:
    with ol.no_grad():
        unrecorded = leaf(1.0) * 2.0
    for t in (ol.to_tensor(1.0), leaf(1.0).detach() * 2.0, unrecorded):
        with pytest.raises(RuntimeError, match="requires_grad=True"):
            t.backward()


@pytest.mark.parametrize("data", [[1, 2], [True, False]])
def test_whole_numbers_have_no_gradient(data: Any) -> None:
    with pytest.raises(TypeError, match="only floating numbers have gradients"):
        ol.to_tensor(data, requires_grad=True)
    t = ol.to_tensor(data)
    with pytest.raises(TypeError, match="only floating numbers have gradients"):
        t.requires_grad = True


def test_requires_grad_is_set_on_what_the_user_made_only() -> None:
    x = ol.to_tensor([1.0])
    x.requires_grad = True
    (x * 2).backward()
    assert grad_of(x) == [2.0]
    with pytest.raises(RuntimeError, match="result of 'multiply'"):
        (x * 2).requires_grad = False
    x.requires_grad = False
    assert not (x * 2).requires_grad


def test_a_gradient_that_the_user_sets_has_the_right_shape() -> None:
    x = leaf([1.0, 2.0])
    x.grad = ol.to_tensor([5.0, 6.0])
    np.sum(x).backward()
    assert grad_of(x) == [6.0, 7.0]
    with pytest.raises(ValueError, match=r"shape of its Tensor, \(2,\); got \(3,\)"):
        x.grad = np.ones(3)


# Repeated backward passes through one graph.


def test_retain_graph_lets_the_same_graph_be_walked_again() -> None:
    x = leaf([1.0, 2.0])
    y = np.sum(np.exp(x) * x)
    y.backward(retain_graph=True)
    once = np.array(grad_of(x))
    y.backward()
    np.testing.assert_array_equal(grad_of(x), 2 * once)


@pytest.mark.parametrize(
    ("f", "name"),
    [(np.exp, "exp"), (lambda x: x * 2.0, "multiply"), (lambda x: x + 1.0, "add"), (np.sum, "sum")],
)
def test_a_second_backward_names_the_operation(f: Any, name: str) -> None:
    y = f(leaf([1.0, 2.0]))
    y.backward()
    with pytest.raises(RuntimeError, match=f"'{name}' a second time.*retain_graph=True"):
        y.backward()


def test_a_second_backward_through_a_shared_part_names_that_part() -> None:
    x = leaf(0.5)
    shared = np.tanh(x)
    (shared * 2.0).backward()
    with pytest.raises(RuntimeError, match="'tanh' a second time"):
        (shared * 3.0).backward()


def test_recording_goes_on_after_an_error_in_backward() -> None:
    y = np.exp(leaf(1.0))
    y.backward()
    with pytest.raises(RuntimeError):
        y.backward()
    assert ol.is_grad_enabled()


def test_create_graph_puts_the_gradient_on_the_tape() -> None:
    x = leaf([1.0, 2.0])
    np.sum(x**3).backward(create_graph=True)
    slope = x.grad
    assert slope is not None
    assert slope.requires_grad
    x.grad = None
    np.sum(slope * slope).backward()  # d/dx (3 x^2)^2 = 36 x^3
    assert grad_of(x) == [36.0, 288.0]


def test_without_create_graph_the_gradient_is_off_the_tape() -> None:
    x = leaf([1.0, 2.0])
    np.sum(x**3).backward()
    assert x.grad is not None
    assert not x.grad.requires_grad


def test_a_start_that_is_itself_traced() -> None:
    x, u = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    (x * x).backward(u, create_graph=True)
    assert x.grad is not None
    slope, x.grad = x.grad, None
    np.sum(slope).backward()
    assert (grad_of(u), grad_of(x)) == ([2.0, 4.0], [6.0, 8.0])


# Hooks.


def test_a_hook_sees_the_gradient_and_may_replace_it() -> None:
    x, seen = leaf([1.0, 2.0]), []
    y = x * x
    y.register_hook(lambda g: seen.append(g.tolist()))
    y.register_hook(lambda g: g * 10.0)
    y.register_hook(lambda g: seen.append(g.tolist()))
    np.sum(y * 3.0).backward()
    assert seen == [[3.0, 3.0], [30.0, 30.0]]
    assert grad_of(x) == [60.0, 120.0]


@pytest.mark.parametrize("create_graph", [False, True])
def test_a_hook_is_recorded_only_with_the_gradient(create_graph: bool) -> None:
    x = ol.to_tensor(2.0, requires_grad=True)
    recorded = []
    y = x * x
    y.register_hook(lambda g: recorded.append(ol.is_grad_enabled()))
    x.register_hook(lambda g: recorded.append(ol.is_grad_enabled()))
    with ol.no_grad():
        y.backward(create_graph=create_graph)
        assert not ol.is_grad_enabled()
    assert recorded == [create_graph, create_graph]
    assert x.grad is not None
    assert x.grad.requires_grad == create_graph


def test_a_hook_sees_the_whole_gradient_once() -> None:
    x, seen = leaf(2.0), []
    x.register_hook(lambda g: seen.append(g.item()))
    (x * x + 5.0 * x).backward()
    assert seen == [9.0]


def test_a_hook_goes_when_it_is_removed_and_only_this_one() -> None:
    x = leaf(1.0)

    def double(g: Any) -> Any:
        return g * 2.0

    first = x.register_hook(double)
    x.register_hook(double)
    first()
    (x * 1.0).backward()
    assert grad_of(x) == 2.0
    first()  # again: nothing more to remove
    (x * 1.0).backward()
    assert grad_of(x) == 4.0


def test_a_hook_on_a_leaf_replaces_what_is_added() -> None:
    x = leaf([1.0, 2.0])
    x.register_hook(lambda g: np.clip(g, -1.0, 1.0))
    np.sum(5.0 * x).backward()
    np.sum(-0.5 * x).backward()
    assert grad_of(x) == [0.5, 0.5]


def test_a_hook_may_return_an_array() -> None:
    x = leaf([1.0, 2.0])
    x.register_hook(lambda g: np.array([7.0, 8.0]))
    np.sum(x).backward()
    assert grad_of(x) == [7.0, 8.0]


def test_a_hook_that_returns_another_shape_is_refused() -> None:
    x = leaf([1.0, 2.0])
    x.register_hook(lambda g: g[:1])
    with pytest.raises(ValueError, match=r"hook returned .* of shape \(2,\)"):
        np.sum(x).backward()


def test_a_hook_works_under_create_graph_and_in_transforms() -> None:
    def f(x: Any) -> Any:
        y = x * x
        y.register_hook(lambda g: g * 3.0)
        return y

    assert ol.grad(f)(2.0) == 12.0
    assert ol.grad(ol.grad(f))(2.0) == 6.0


def test_a_hook_needs_a_tensor_that_needs_a_gradient() -> None:
    with pytest.raises(RuntimeError, match="needs a gradient"):
        ol.to_tensor(1.0).register_hook(lambda g: g)


def test_a_hook_cannot_write_to_a_gradient_that_others_share() -> None:
    x = ol.to_tensor([1.0, 2.0], requires_grad=True)

    def doubled(g: Any) -> None:
        g *= 2

    x.register_hook(doubled)
    with pytest.raises(TypeError, match=r"read-only.*g = g \* 2"):
        np.sum(x * 1.0).backward()


def test_a_gradient_of_none_may_be_cleared_where_none_is_kept():
    x = ol.to_tensor([1.0], requires_grad=True)
    for t in (ol.to_tensor([1.0]), x * 2):
        t.grad = None
        assert t.grad is None
        with pytest.raises(RuntimeError, match="grad can be set only on"):
            t.grad = [1.0]


def test_a_hook_is_removed_by_its_handle_a_call_or_the_end_of_a_block() -> None:
    x = leaf(1.0)
    handles = [x.register_hook(lambda g, k=k: g * k) for k in (2.0, 3.0)]
    with x.register_hook(lambda g: g * 5.0):
        x.backward()
    x.backward()
    handles[0].remove()
    handles[0].remove()
    x.backward()
    handles[1]()
    x.backward()
    assert grad_of(x) == 30.0 + 6.0 + 3.0 + 1.0
