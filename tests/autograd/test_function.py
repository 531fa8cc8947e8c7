"""autograd.Function: operations defined by users."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import optlab as ol

Function = ol.autograd.Function


class Cube(Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 3 * x * x * g


class Exponential(Function):
    """An exponential that saves its output."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        y = np.exp(x)
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (y,) = ctx.saved_tensors
        return g * y


class SinAndScaledCos(Function):
    """Two arguments and two outputs, all of them saved, one of them broadcast."""

    @staticmethod
    def forward(ctx: Any, x: Any, k: Any) -> Any:
        s, c = np.sin(x), np.cos(x) * k
        ctx.save_for_backward(s, c, k, x)
        return s, c

    @staticmethod
    def backward(ctx: Any, gs: Any, gc: Any) -> Any:
        s, c, k, x = ctx.saved_tensors
        return gs * c / k - gc * s * k, gc * np.cos(x)


def sin_and_cos(x: Any, k: Any) -> Any:
    s, c = SinAndScaledCos.apply(x, k)
    return s * c


def leaf(*values: float) -> ol.Tensor:
    return ol.to_tensor(values, dtype="float64", requires_grad=True)


@pytest.mark.parametrize(
    ("f", "args"),
    [
        (lambda x: Cube.apply(x), [[0.5, -2.0]]),
        (lambda x: Exponential.apply(x), [[0.5, -2.0]]),
        (lambda x: Cube.apply(Exponential.apply(x)) * x, [[0.5, -0.3]]),
        (sin_and_cos, [[0.5, -2.0], 1.7]),
        (sin_and_cos, [[0.5, -2.0], [1.7, 0.6]]),
        (lambda x, k: SinAndScaledCos.apply(x, k)[1], [[0.5, -2.0], 1.7]),
    ],
)
def test_derivatives_of_third_order(f: Any, args: Any) -> None:
    ol.check_grad(f, *[np.array(x) for x in args], order=3)


def test_it_works_with_transforms_and_hooks() -> None:
    x = np.array([0.5, -2.0])
    np.testing.assert_allclose(ol.grad(lambda x: np.sum(Cube.apply(x)))(x), 3 * x**2)
    np.testing.assert_allclose(ol.hessian(lambda x: np.sum(Cube.apply(x)))(x), np.diag(6 * x))
    t = leaf(2.0)
    y = Cube.apply(t)
    y.register_hook(lambda g: g * 10)
    y.backward()
    assert t.grad.tolist() == [120.0]


def test_arguments_that_are_no_tensors_and_keyword_arguments() -> None:
    class Scale(Function):
        @staticmethod
        def forward(ctx: Any, x: Any, factor: Any, *, power: int) -> Any:
            assert ctx.needs_input_grad == (True, False)
            ctx.factor = factor**power
            return x * ctx.factor

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * ctx.factor, None

    x = leaf(1.0, 2.0)
    Scale.apply(x, 3.0, power=2).backward()
    assert x.grad.tolist() == [9.0, 9.0]
    with pytest.raises(TypeError, match="by keyword"):
        Scale.apply(x, 3.0, power=x)


def test_without_gradient_nothing_is_recorded() -> None:
    assert not Cube.apply(ol.to_tensor([1.0])).requires_grad
    with ol.no_grad():
        assert not Cube.apply(leaf(1.0)).requires_grad
    assert Cube.apply(np.array([2.0])).tolist() == [8.0]


def test_forward_runs_unrecorded_and_backward_only_under_create_graph() -> None:
    seen = []

    class Watch(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            seen.append(x.requires_grad or ol.is_grad_enabled())
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            seen.append(ol.is_grad_enabled())
            return g * 2

    x = leaf(1.0)
    Watch.apply(x).backward()
    Watch.apply(x).backward(create_graph=True)
    assert seen == [False, False, False, True]


def test_a_straight_through_estimator() -> None:
    class Round(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return np.rint(x)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    x = leaf(0.4, 1.7)
    y = Round.apply(x)
    assert y.tolist() == [0.0, 2.0]
    np.sum(y * y).backward()
    assert x.grad.tolist() == [0.0, 4.0]


def test_an_input_handed_back_is_a_copy() -> None:
    class Same(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return -g

    x = leaf(1.0)
    y = Same.apply(x)
    y += 1.0
    assert x.tolist() == [1.0]
    y.backward()
    assert x.grad.tolist() == [-1.0]


def test_outputs_without_gradient() -> None:
    class Sorted(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            order = np.argsort(x)
            largest = x[order[-1]]
            ctx.order, ctx.n = order, x.size
            ctx.mark_non_differentiable(largest)
            return x[order], order, largest

        @staticmethod
        def backward(ctx: Any, g: Any, g_order: Any, g_largest: Any) -> Any:
            return g[np.argsort(ctx.order)]

    x = leaf(3.0, 1.0, 2.0)
    y, order, largest = Sorted.apply(x)
    assert order.dtype.kind == "i"
    assert not order.requires_grad
    assert not largest.requires_grad
    np.sum(y * np.array([1.0, 10.0, 100.0])).backward()
    assert x.grad.tolist() == [100.0, 1.0, 10.0]


def test_wrong_gradients_are_refused_by_name() -> None:
    def made(returned: Any) -> Any:
        class Wrong(Function):
            @staticmethod
            def forward(ctx: Any, x: Any, k: Any) -> Any:
                return x * k

            @staticmethod
            def backward(ctx: Any, g: Any) -> Any:
                return returned

        return Wrong.apply(leaf(1.0, 2.0), 3.0)

    with pytest.raises(TypeError, match=r"Wrong\.backward returned 1 gradients.* 2 arguments"):
        made(np.ones(2)).backward()
    with pytest.raises(ValueError, match=r"shape \(3,\) for argument 0, which has shape \(2,\)"):
        made((np.ones(3), None)).backward()


def test_a_missing_return_is_said() -> None:
    class Nothing(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            pass

    with pytest.raises(TypeError, match=r"Nothing\.forward returned None.*missing return"):
        Nothing.apply(leaf(1.0))

    class Half(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 0.5

    with pytest.raises(NotImplementedError, match="backward"):
        Half.apply(leaf(1.0)).backward()


def test_saved_values_are_freed_and_watched() -> None:
    x = leaf(2.0)
    y = Exponential.apply(x)
    y.backward()
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()
    z = Exponential.apply(x)
    z += 1.0
    with pytest.raises(RuntimeError, match=r"'Exponential' saved.* but \+= \("):
        z.backward()
    w = Cube.apply(x)
    with ol.no_grad():
        x += 1.0
    with pytest.raises(RuntimeError, match=r"'Cube' saved.* but \+= \("):
        w.backward()


def test_saved_tensors_hooks_apply_to_it() -> None:
    packed = []
    x = leaf(2.0)
    with ol.autograd.saved_tensors_hooks(
        lambda t: packed.append(t.numpy()), lambda _: np.array([3.0])
    ):
        y = Cube.apply(x)
    assert [array.tolist() for array in packed] == [[2.0]]
    y.backward()
    assert x.grad.tolist() == [27.0]


def test_no_cycle_keeps_it_alive() -> None:
    gc.collect()
    gc.disable()
    try:
        for operation in (Cube, Exponential):
            y = operation.apply(leaf(2.0))
            node = weakref.ref(y.node)
            del y
            assert node() is None
    finally:
        gc.enable()


def test_forward_cannot_write_to_its_arguments() -> None:
    class Doubled(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            x *= 2
            return x

    w = leaf(1.0, 2.0)
    with pytest.raises(TypeError, match="shared by others and read-only"):
        Doubled.apply(w)
    assert w.tolist() == [1.0, 2.0]


def test_tensors_in_a_list_are_refused_instead_of_cut_off() -> None:
    class Total(Function):
        @staticmethod
        def forward(ctx: Any, parts: Any) -> Any:
            return sum(parts[1:], parts[0])

    with pytest.raises(TypeError, match="list that holds Tensors that need a gradient"):
        Total.apply([leaf(1.0), leaf(2.0)])


def test_a_missing_return_of_backward_is_said() -> None:
    class Forgetful(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            g * 2

    with pytest.raises(TypeError, match=r"backward returned None.*missing return"):
        Forgetful.apply(leaf(1.0)).backward()


def test_an_input_handed_back_as_constant_has_no_gradient() -> None:
    class Constant(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.mark_non_differentiable(x)
            return x

    assert not Constant.apply(leaf(1.0)).requires_grad
