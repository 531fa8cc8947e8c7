"""The GPT of ol.lab.models."""

from __future__ import annotations

import math

import numpy as np
import pytest

import optlab as ol
from optlab.lab.models import GPT, Block


@pytest.fixture
def model():
    ol.seed(0)
    return GPT(vocabulary=11, length=8, width=16, depth=2, heads=2)


def test_no_place_knows_what_comes_after_it(model):
    text = np.arange(8)[None] % 11
    before = model(text).numpy()
    text[0, 5] = 9
    after = model(text).numpy()
    np.testing.assert_array_equal(before[0, :5], after[0, :5])
    assert not np.allclose(before[0, 5:], after[0, 5:])


def test_places_matter(model):
    found = model(np.array([[3, 3]])).numpy()
    assert not np.allclose(found[0, 0], found[0, 1])


def test_a_text_that_is_too_long_is_refused(model):
    with pytest.raises(ValueError, match="reads 8 symbols at once; got 9"):
        model(np.zeros((1, 9), int))


@pytest.mark.parametrize("count", [2, 5, 8, 9, 10, 13, 21])
def test_bits_are_those_of_each_symbol_from_three_quarters_of_the_length(model, count):
    text = np.random.default_rng(0).integers(0, 11, count)
    expected = 0.0
    for i in range(1, len(text)):
        # Windows start at 0, 2, 4, ...; a symbol is predicted in the first window that has it.
        start = max(0, math.ceil((i - 8) / 2)) * 2
        found = model(text[None, start:i])[0, -1].numpy().astype(float)
        expected += np.log2(np.exp(found).sum()) - found[text[i]] / math.log(2)
    assert model.bits(text) == pytest.approx(expected, rel=1e-5)
    assert model.bits(text, batch=1) == pytest.approx(expected, rel=1e-5)


def test_bits_and_generate_leave_the_model_in_training(model):
    model.bits(np.arange(11))
    model.generate([1], 2, seed=0)
    assert model.training


def test_a_text_goes_on_the_same_way_with_the_same_seed(model):
    one, other = (model.generate([1, 2, 3], 12, seed=4) for _ in range(2))
    assert np.array_equal(one, other)
    assert one[:3].tolist() == [1, 2, 3]
    assert not np.array_equal(one, model.generate([1, 2, 3], 12, seed=5))
    likeliest = model.generate([1, 2, 3], 1, temperature=0)
    assert likeliest[-1] == model(np.array([[1, 2, 3]]))[0, -1].numpy().argmax()
    with pytest.raises(ValueError, match="at least one symbol"):
        model.generate([], 1)


def test_weights_are_tied_unless_asked_otherwise():
    tied, other = (GPT(11, 8, 16, 1, 2, tied=tied) for tied in (True, False))
    sizes = [sum(p.size for p in m.parameters()) for m in (tied, other)]
    assert sizes[1] - sizes[0] == 11 * 16


def test_it_learns_a_text_by_heart():
    ol.seed(0)
    model = GPT(vocabulary=5, length=8, width=16, depth=1, heads=2)
    text = np.array([0, 1, 2, 3, 4, 3, 2, 1] * 20)
    optimizer = ol.optimizer.Adam(1e-2, parameters=model.parameters())
    for step in range(100):
        x, y = ol.data.windows(text, 8, 8, step)
        ol.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        optimizer.clear_grad()
    assert model.bits(text) / len(text) < 0.2


@pytest.mark.parametrize("heads", [0, 3])
def test_a_width_that_heads_do_not_divide_is_refused(heads):
    with pytest.raises(ValueError, match="cannot be divided"):
        Block(8, heads)


def test_a_model_without_blocks_is_refused():
    with pytest.raises(ValueError, match="at least one block"):
        GPT(5, 8, depth=0)


@pytest.mark.peers
def test_a_block_gives_what_pytorch_gives():
    torch = pytest.importorskip("torch")
    F = torch.nn.functional
    ol.seed(0)
    block = Block(16, 4)
    numbers = np.random.default_rng(0)
    inputs, gradient = (numbers.standard_normal((2, 7, 16)).astype(np.float32) for _ in range(2))
    x = ol.to_tensor(inputs, requires_grad=True)
    y = block(x)
    y.backward(gradient)

    p = {n: torch.tensor(v.numpy(), requires_grad=True) for n, v in block.named_parameters()}
    tx = torch.tensor(inputs, requires_grad=True)

    def linear(h, name):
        return h @ p[f"{name}.weight"] + p[f"{name}.bias"]

    def norm(h, name):
        return F.layer_norm(h, (16,), p[f"{name}.weight"], p[f"{name}.bias"])

    q, k, v = linear(norm(tx, "norm1"), "look").view(2, 7, 3, 4, 4).permute(2, 0, 3, 1, 4)
    seen = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2)
    h = tx + linear(seen.reshape(2, 7, 16), "mix")
    ty = h + linear(F.gelu(linear(norm(h, "norm2"), "wide")), "narrow")
    ty.backward(torch.tensor(gradient))
    np.testing.assert_allclose(y.numpy(), ty.detach().numpy(), atol=1e-5)
    np.testing.assert_allclose(x.grad, tx.grad.numpy(), atol=1e-5)
    for name, parameter in block.named_parameters():
        np.testing.assert_allclose(parameter.grad, p[name].grad.numpy(), atol=2e-5, err_msg=name)
