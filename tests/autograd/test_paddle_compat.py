"""Names that Paddle documents: values and gradients of any Tensor."""

import numpy as np
import pytest

import optlab as ol


def test_set_value_writes_the_memory_itself_and_keeps_the_dtype():
    x = ol.to_tensor([1.0, 2.0])
    part = x[:1]
    x.set_value(np.array([3, 4]))
    assert x.numpy().tolist() == [3.0, 4.0]
    assert part.numpy().tolist() == [3.0]
    assert x.dtype == np.float32
    x.set_value(x * 2)
    assert x.numpy().tolist() == [6.0, 8.0]


def test_a_value_of_another_shape_is_refused():
    x = ol.to_tensor([1.0, 2.0])
    with pytest.raises(ValueError, match=r"this Tensor has shape \(2,\); a value of shape \(1,\)"):
        x.set_value([5.0])
    assert x.numpy().tolist() == [1.0, 2.0]


def test_what_an_operation_made_is_not_set():
    x = ol.to_tensor([1.0, 2.0], stop_gradient=False)
    y = x * 2
    with pytest.raises(TypeError, match="made by an operation on the tape"):
        y.set_value([0.0, 0.0])
    assert y.numpy().tolist() == [2.0, 4.0]


def test_backward_finds_a_value_that_was_set_after_it_was_saved():
    x = ol.to_tensor([1.0, 2.0], stop_gradient=False)
    loss = (x * x).sum()
    x.set_value([3.0, 4.0])
    with pytest.raises(RuntimeError, match="set_value"):
        loss.backward()


@pytest.mark.parametrize(("zero", "left"), [(True, [0.0, 0.0]), (False, None)])
@pytest.mark.parametrize("name", ["clear_grad", "clear_gradient"])
def test_gradients_are_cleared(name, zero, left):
    x = ol.to_tensor([1.0, 2.0], stop_gradient=False)
    getattr(x, name)(zero)
    assert x.grad is None  # none stays none
    (x * x).sum().backward()
    getattr(x, name)(zero)
    assert (x.grad if left is None else x.grad.numpy().tolist()) == left
    (x * 3).sum().backward()
    assert x.grad.numpy().tolist() == [3.0, 3.0]
