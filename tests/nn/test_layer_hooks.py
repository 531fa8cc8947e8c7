"""Hooks of layers: inputs, outputs, and their gradients."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import optlab as ol


class Half(ol.nn.Layer):
    """A layer with an option and several outputs."""

    def forward(self, x, y=None, *, by=2.0):
        return {"half": x / by, "parts": [x * 1.0, 3], "y": y}


class TestForward:
    def test_before(self):
        layer = ol.nn.ReLU()
        seen = []
        layer.register_forward_pre_hook(lambda layer, inputs: seen.append((layer, inputs)))
        x = ol.ones([1])
        assert layer(x).item() == 1.0
        assert seen == [(layer, (x,))]

    @pytest.mark.parametrize("result", [lambda x: x * 2, lambda x: (x * 2,)])
    def test_inputs_are_replaced(self, result):
        layer = ol.nn.ReLU()
        layer.register_forward_pre_hook(lambda layer, inputs: result(inputs[0]))
        assert layer(ol.ones([1])).item() == 2.0

    def test_outputs_are_replaced_in_turn(self):
        layer = ol.nn.ReLU()
        layer.register_forward_post_hook(lambda layer, inputs, output: output * 2)
        layer.register_forward_post_hook(lambda layer, inputs, output: output + inputs[0])
        layer.register_forward_post_hook(
            lambda layer, inputs, output: output + 1, prepend=True
        )  # runs first
        assert layer(ol.ones([1])).item() == 5.0

    def test_with_keyword_arguments(self):
        layer = Half()
        seen = []
        layer.register_forward_pre_hook(
            lambda layer, inputs, kwargs: (inputs, {**kwargs, "by": 4.0}), with_kwargs=True
        )
        layer.register_forward_post_hook(
            lambda layer, inputs, kwargs, output: seen.append(kwargs), with_kwargs=True
        )
        assert layer(ol.ones([1]), by=1.0)["half"].item() == 0.25
        assert seen == [{"by": 4.0}]
        layer.register_forward_pre_hook(lambda layer, inputs, kwargs: inputs, with_kwargs=True)
        with pytest.raises(TypeError, match="returns None or a pair"):
            layer(ol.ones([1]))

    def test_handles_take_off_their_own_hook(self):
        layer = ol.nn.ReLU()
        hook = lambda layer, inputs, output: output + 1  # noqa: E731
        first, second = (layer.register_forward_post_hook(hook) for _ in range(2))
        first.remove()
        first.remove()
        assert layer(ol.ones([1])).item() == 2.0
        second()
        assert layer(ol.ones([1])).item() == 1.0

    def test_a_hook_may_take_itself_off(self):
        layer = ol.nn.ReLU()
        calls = []

        def once(layer, inputs):
            calls.append(1)
            handle.remove()

        handle = layer.register_forward_pre_hook(once)
        layer(ol.ones([1]))
        layer(ol.ones([1]))
        assert calls == [1]

    def test_what_is_no_function(self):
        with pytest.raises(TypeError, match="a hook is a function"):
            ol.nn.ReLU().register_forward_pre_hook(3)

    def test_a_copy_has_hooks_of_its_own(self):
        layer = ol.nn.ReLU()
        handle = layer.register_forward_post_hook(lambda layer, inputs, output: output + 1)
        twin = copy.deepcopy(layer)
        handle.remove()
        assert (layer(ol.ones([1])).item(), twin(ol.ones([1])).item()) == (1.0, 2.0)


class TestBackward:
    def test_sees_both_gradients(self):
        layer = ol.nn.Linear(2, 1)
        seen = []
        layer.register_backward_hook(lambda *what: seen.append(what))
        x = ol.to_tensor([[1.0, 2.0]], requires_grad=True)
        (layer(x) * 3).sum().backward()
        ((hooked, grad_input, grad_output),) = seen
        assert hooked is layer
        assert [g.tolist() for g in grad_output] == [[[3.0]]]
        assert np.allclose(grad_input[0].numpy(), 3 * layer.weight.numpy().T)
        assert x.grad.tolist() == grad_input[0].tolist()

    def test_data_has_no_gradient(self):
        layer = ol.nn.Linear(2, 1)
        seen = []
        layer.register_backward_hook(lambda layer, given, came: seen.append((given, came)))
        layer(ol.ones([1, 2])).sum().backward()
        assert [(given, came[0].tolist()) for given, came in seen] == [((None,), [[1.0]])]

    @pytest.mark.parametrize("result", [lambda g: g * 10, lambda g: (g * 10,)])
    def test_the_gradient_is_replaced_and_that_of_parameters_is_not(self, result):
        layer = ol.nn.Linear(1, 1)
        layer.register_backward_hook(lambda layer, given, came: result(given[0]))
        x = ol.to_tensor([[1.0]], requires_grad=True)
        layer(x).sum().backward()
        assert np.allclose(x.grad.numpy(), 10 * layer.weight.numpy())
        assert layer.weight.grad.tolist() == [[1.0]]

    def test_many_inputs_and_outputs(self):
        layer = Half()
        seen = []
        layer.register_backward_hook(lambda layer, given, came: seen.append((given, came)))
        x = ol.to_tensor([1.0], requires_grad=True)
        y = ol.ones([2])
        out = layer(x, y)
        assert out["parts"][1] == 3
        assert out["y"] is y
        (out["half"] * 4).sum().backward()
        ((given, came),) = seen
        assert given[0].tolist() == [2.0]
        assert given[1] is None
        assert [None if g is None else g.tolist() for g in came] == [[4.0], [0.0], None]

    def test_values_and_their_memory_order_stay(self):
        layer = ol.nn.Tanh()
        x = ol.to_tensor(np.asfortranarray(np.ones((3, 2))), requires_grad=True)
        plain = layer(x)
        layer.register_backward_hook(lambda *what: None)
        assert np.array_equal(layer(x).numpy(), plain.numpy())
        assert layer(x).data.strides == plain.data.strides

    def test_a_wrong_number_of_gradients(self):
        layer = ol.nn.Tanh()
        layer.register_backward_hook(lambda layer, given, came: (1, 2))
        with pytest.raises(ValueError, match="returned 2 gradients for 1 inputs"):
            layer(ol.to_tensor(1.0, requires_grad=True)).backward()

    def test_nothing_happens_without_recording(self):
        layer = ol.nn.Linear(1, 1)
        layer.register_backward_hook(lambda *what: pytest.fail("no gradient is wanted"))
        with ol.no_grad():
            assert not layer(ol.ones([1, 1])).requires_grad

    def test_derivatives_of_higher_order_pass_through(self):
        layer = ol.nn.Tanh()
        handle = layer.register_backward_hook(lambda *what: None)
        ol.check_grad(lambda x: layer(x), np.array([0.3, -0.7]), order=2)
        handle.remove()

    def test_members_of_an_ensemble(self):
        layer = ol.nn.Tanh()
        layer.register_backward_hook(lambda layer, given, came: given[0] * 2)
        x = np.array([[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]])
        grads = ol.vmap(ol.grad(lambda x: layer(x).sum()))(x)
        assert np.allclose(grads, 2 * (1 - np.tanh(x) ** 2))
