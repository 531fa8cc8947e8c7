"""Attention and transformers as layers: masks, caches, PyTorch, and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import optlab as ol

F = ol.nn.functional
DOUBLE: dict[str, Any] = {"dtype": "float64"}


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng((5, *shape)).standard_normal(shape)


def shaken(layer: Any) -> Any:
    """Perturb biases and scales, since their initial values 0 and 1 hide mistakes."""
    for parameter in layer.parameters():
        if parameter.ndim == 1:
            parameter.set_value(parameter.numpy() + 0.3 * numbers(*parameter.shape))
    return layer


PAST = np.tri(4, dtype=bool)
MASKS = [None, PAST, PAST.astype(int), np.where(PAST, 0.0, -np.inf), np.tri(4) * 0.7]


@pytest.mark.parametrize("mask", MASKS)
def test_weights_that_are_asked_for_change_nothing(mask):
    ol.seed(0)
    attention = shaken(ol.nn.MultiHeadAttention(6, 2, **DOUBLE))
    x = ol.to_tensor(numbers(3, 4, 6), requires_grad=True)
    y = attention(x, attn_mask=mask)
    (y**2).sum().backward()
    by_x, x.grad = x.grad, None
    attention.need_weights = True
    z, weights = attention(x, attn_mask=mask)
    np.testing.assert_allclose(y.detach(), z.detach(), rtol=1e-12)
    assert weights.shape == (3, 2, 4, 4)
    np.testing.assert_allclose(weights.detach().sum(-1), np.ones((3, 2, 4)))
    (z**2).sum().backward()
    np.testing.assert_allclose(by_x.numpy(), x.grad.numpy(), rtol=1e-10, atol=1e-12)


def test_a_query_that_may_look_nowhere_gets_nothing():
    q = ol.to_tensor(numbers(1, 2, 1, 3), requires_grad=True)
    mask = np.array([[True, True], [False, False]])
    y = F.scaled_dot_product_attention(q, q, q, mask)
    assert np.all(y[:, 1].numpy() == 0)
    (y**2).sum().backward()
    assert np.all(np.isfinite(q.grad.numpy()))


def test_dropout_drops_weights_in_training_only_and_keeps_the_mean():
    ol.seed(1)
    q, v = ol.zeros([1, 200, 1, 2]), ol.ones([1, 50, 1, 1])
    k = ol.zeros([1, 50, 1, 2])
    y = F.scaled_dot_product_attention(q, k, v, dropout_p=0.5)
    assert np.std(y) > 0.05
    assert abs(np.mean(y).item() - 1) < 0.05
    plain = F.scaled_dot_product_attention(q, k, v, dropout_p=0.5, training=False)
    np.testing.assert_allclose(plain, np.ones_like(plain), rtol=1e-6)


def test_little_is_kept_for_backward():
    q = ol.ones([1, 64, 2, 4])
    q.requires_grad = True
    kept = []
    with ol.autograd.saved_tensors_hooks(lambda x: kept.append(x.nbytes) or x, lambda x: x):
        F.scaled_dot_product_attention(q, q, q, is_causal=True)
    # Query, key and value, the output, and one number per query and head; no square of the length.
    assert sum(kept) <= 4 * q.nbytes + 64 * 2 * 4


def test_a_cache_gives_what_the_whole_sentence_gives():
    ol.seed(2)
    encoder = ol.nn.TransformerEncoder(
        ol.nn.TransformerEncoderLayer(6, 2, 8, 0.0, normalize_before=True, **DOUBLE), 2
    )
    x = ol.to_tensor(numbers(2, 4, 6))
    whole = encoder(x, PAST)
    cache, parts = encoder.gen_cache(x), []
    for i in range(4):
        y, cache = encoder(x[:, i : i + 1], cache=cache)
        parts.append(y)
    np.testing.assert_allclose(np.concatenate(parts, 1).numpy(), whole.numpy(), rtol=1e-10)
    assert cache[0].k.shape == (2, 2, 4, 3)


def test_a_decoder_s_caches_give_what_the_whole_sentence_gives():
    ol.seed(2)
    decoder = ol.nn.TransformerDecoder(ol.nn.TransformerDecoderLayer(6, 2, 8, 0.0, **DOUBLE), 2)
    x, memory = ol.to_tensor(numbers(2, 4, 6)), ol.to_tensor(numbers(2, 3, 6))
    whole = decoder(x, memory, PAST)
    cache, parts = decoder.gen_cache(memory), []
    for i in range(4):
        y, cache = decoder(x[:, i : i + 1], memory, cache=cache)
        parts.append(y)
    np.testing.assert_allclose(np.concatenate(parts, 1).numpy(), whole.numpy(), rtol=1e-10)
    own, other = decoder.gen_cache(memory, do_zip=True)
    assert [len(own), len(other)] == [2, 2]


def test_each_layer_of_a_stack_starts_with_its_own_values():
    layer = ol.nn.TransformerEncoderLayer(4, 2, 8, activation="gelu", weight_attr=[None, None])
    encoder = ol.nn.TransformerEncoder(layer, 3, ol.nn.LayerNorm(4))
    assert encoder.layers[0] is layer
    first, second = (encoder.layers[i].linear1.weight.numpy() for i in (0, 1))
    assert np.any(first != second)
    names = [name for name, _ in encoder.named_parameters()]
    assert "layers.2.self_attn.q_proj.weight" in names
    assert len(names) == 3 * 16 + 2


def test_derivatives_of_a_layer():
    ol.seed(3)
    layer = shaken(ol.nn.TransformerDecoderLayer(4, 2, 3, 0.0, activation="tanh", **DOUBLE))
    for parameter in layer.parameters():
        parameter.trainable = False
    ol.check_grad(lambda x, m: layer(x, m, np.tri(2)), numbers(1, 2, 4), numbers(1, 3, 4), order=2)


def test_per_example_gradients_equal_one_by_one():
    ol.seed(3)
    layer = ol.nn.TransformerEncoderLayer(4, 2, 3, 0.0, **DOUBLE)
    x = numbers(3, 2, 4)
    of_one = ol.grad(lambda one: np.sum(layer(one[None]) ** 2))
    together = ol.vmap(of_one)(ol.to_tensor(x))
    for k in range(3):
        alone = of_one(ol.to_tensor(x[k]))
        np.testing.assert_allclose(
            together[k].detach().numpy(), alone.detach().numpy(), rtol=1e-8, atol=1e-10
        )


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ol.nn.MultiHeadAttention(6, 4), "divided into 4 heads"),
        (lambda: ol.nn.TransformerEncoderLayer(4, 2, 8, activation="cube"), "activation='relu'"),
        (lambda: ol.nn.TransformerEncoderLayer(4, 2, 8, bias_attr=[None] * 5), "5 settings"),
        (lambda: ol.nn.TransformerEncoder(ol.nn.ReLU(), 2), "takes a TransformerEncoderLayer"),
        (lambda: ol.nn.MultiHeadAttention(4, 2)(ol.ones([1, 2, 4]), cache=3), "gen_cache"),
        (lambda: attend((1, 2, 1, 3), (1, 2, 1, 4)), "same width"),
        (lambda: attend((1, 2, 3, 4), (1, 2, 2, 4)), "3 heads of query"),
        (lambda: attend((2, 4), (2, 4)), "heads, width"),
        (lambda: attend((1, 2, 1, 3), (1, 4, 1, 3), np.ones((3, 4))), r"here \[..., 1, 2, 4\]"),
        (lambda: attend((1, 2, 1, 3), (1, 4, 1, 3), dropout_p=2), "probability"),
        (lambda: attend((1, 2, 1, 3), (1, 4, 1, 3), backend="flash"), "not covered"),
    ],
)
def test_what_is_wrong_is_said(call, words):
    with pytest.raises((TypeError, ValueError), match=words):
        call()


def attend(query: Any, key: Any, *rest: Any, **options: Any) -> Any:
    return F.scaled_dot_product_attention(
        ol.ones(query), ol.ones(key), ol.ones(key), *rest, **options
    )


# PyTorch.


def _copy(torch: Any, ours: Any, theirs: Any) -> None:
    """Copy our weights into a layer of PyTorch."""
    places = {"self_attn": "self_attn", "cross_attn": "multihead_attn"}
    with torch.no_grad():
        for name, other in places.items():
            if hasattr(ours, name):
                _copy_attention(torch, getattr(ours, name), getattr(theirs, other))
        for name in ("linear1", "linear2", "norm1", "norm2", "norm3"):
            if hasattr(ours, name):
                one, two = getattr(ours, name), getattr(theirs, name)
                two.weight.copy_(torch.tensor(one.weight.numpy().T))
                two.bias.copy_(torch.tensor(one.bias.numpy()))


def _copy_attention(torch: Any, ours: Any, theirs: Any) -> None:
    parts = [ours.q_proj, ours.k_proj, ours.v_proj]
    weights = [torch.tensor(part.weight.numpy().T) for part in parts]
    with torch.no_grad():
        if theirs.in_proj_weight is None:
            for one, name in zip(weights, "qkv", strict=True):
                getattr(theirs, f"{name}_proj_weight").copy_(one)
        else:
            theirs.in_proj_weight.copy_(torch.cat(weights))
        theirs.in_proj_bias.copy_(torch.tensor(np.concatenate([p.bias.numpy() for p in parts])))
        theirs.out_proj.weight.copy_(torch.tensor(ours.out_proj.weight.numpy().T))
        theirs.out_proj.bias.copy_(torch.tensor(ours.out_proj.bias.numpy()))


def agree(torch: Any, y: Any, z: Any, pairs: Any) -> None:
    np.testing.assert_allclose(y.detach().numpy(), z.detach().numpy(), rtol=1e-9, atol=1e-12)
    g = np.cos(np.arange(y.size)).reshape(y.shape)
    y.backward(g)
    z.backward(torch.tensor(g))
    for a, b in pairs:
        theirs = b.grad.numpy()
        ours = a.grad.numpy()
        ours = ours if ours.shape == theirs.shape and ours.ndim != 2 else ours.T
        np.testing.assert_allclose(ours, theirs, rtol=1e-8, atol=1e-10)


@pytest.mark.peers
@pytest.mark.parametrize("widths", [(6, 6), (3, 5)])
@pytest.mark.parametrize("mask", [None, PAST[:, :3]])
def test_attention_in_pytorch(widths, mask):
    torch = pytest.importorskip("torch")
    ol.seed(1)
    ours = shaken(ol.nn.MultiHeadAttention(6, 2, kdim=widths[0], vdim=widths[1], **DOUBLE))
    theirs = torch.nn.MultiheadAttention(
        6, 2, kdim=widths[0], vdim=widths[1], batch_first=True, dtype=torch.float64
    )
    _copy_attention(torch, ours, theirs)
    arrays = numbers(2, 4, 6), numbers(2, 3, widths[0]), numbers(2, 3, widths[1])
    a = [ol.to_tensor(x, requires_grad=True) for x in arrays]
    b = [torch.tensor(x, requires_grad=True) for x in arrays]
    blocked = None if mask is None else torch.tensor(~mask)
    y, z = ours(*a, mask), theirs(*b, attn_mask=blocked, need_weights=False)[0]
    agree(torch, y, z, [*zip(a, b, strict=True), (ours.out_proj.weight, theirs.out_proj.weight)])


@pytest.mark.peers
@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_layers_in_pytorch(before, activation):
    torch = pytest.importorskip("torch")
    ol.seed(1)
    options: Any = {"batch_first": True, "norm_first": before, "dtype": torch.float64}
    one = shaken(
        ol.nn.TransformerEncoderLayer(6, 2, 8, 0.0, activation, None, None, before, **DOUBLE)
    )
    two = torch.nn.TransformerEncoderLayer(6, 2, 8, 0.0, activation, **options)
    _copy(torch, one, two)
    x = numbers(2, 4, 6)
    a, b = ol.to_tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
    blocked = torch.tensor(~PAST)
    agree(torch, one(a, PAST), two(b, blocked), [(a, b), (one.linear1.weight, two.linear1.weight)])

    one = shaken(
        ol.nn.TransformerDecoderLayer(6, 2, 8, 0.0, activation, None, None, before, **DOUBLE)
    )
    two = torch.nn.TransformerDecoderLayer(6, 2, 8, 0.0, activation, **options)
    _copy(torch, one, two)
    arrays = x, numbers(2, 3, 6)
    a, c = (ol.to_tensor(x, requires_grad=True) for x in arrays)
    b, d = (torch.tensor(x, requires_grad=True) for x in arrays)
    y, z = one(a, c, PAST), two(b, d, tgt_mask=blocked)
    agree(torch, y, z, [(a, b), (c, d), (one.norm3.weight, two.norm3.weight)])


# The whole transformer -------------------------------------------------------------------------


def whole(**options: Any) -> Any:
    ol.seed(0)
    return ol.nn.Transformer(6, 2, 2, 1, 8, 0.0, **options, **DOUBLE)


def test_the_whole_transformer_is_its_two_stacks():
    model = whole()
    src, tgt = numbers(2, 4, 6), numbers(2, 3, 6)
    mask = model.generate_square_subsequent_mask(3)
    assert mask.dtype == np.float64
    memory = model.encoder(src)
    expected = model.decoder(tgt, memory, mask)
    np.testing.assert_array_equal(model(src, tgt, tgt_mask=mask).numpy(), expected.numpy())
    # A later position does not affect earlier ones.
    other = tgt.copy()
    other[:, 2] += 1
    np.testing.assert_allclose(
        model(src, other, tgt_mask=mask)[:, :2].numpy(), expected[:, :2].numpy(), rtol=1e-12
    )
    assert type(model.encoder.norm) is type(model.decoder.norm) is ol.nn.LayerNorm
    assert repr(model).startswith("Transformer(")


def test_the_mask_lies_where_the_parameters_lie():
    model = whole().to("guarded", "float32")
    mask = model.generate_square_subsequent_mask(2)
    assert (mask.device, mask.dtype) == ("guarded", np.float32)
    with pytest.raises(ValueError, match="at least 1 place"):
        model.generate_square_subsequent_mask(0)


def test_settings_for_parts_of_the_whole():
    model = whole(bias_attr=[False, True])
    assert model.encoder.layers[0].self_attn.q_proj.bias is None
    assert model.encoder.layers[0].linear1.bias is not None
    assert model.decoder.layers[0].cross_attn.q_proj.bias is None
    model = whole(bias_attr=[True, False, True])
    assert model.decoder.layers[0].self_attn.q_proj.bias is not None
    assert model.decoder.layers[0].cross_attn.q_proj.bias is None
    with pytest.raises(ValueError, match="a list of 1 to 3; got 4"):
        whole(weight_attr=[None] * 4)


def test_stacks_of_ones_own():
    class Twice(ol.nn.Layer):
        def forward(self, src, src_mask):
            return src * 2

    model = whole(custom_encoder=Twice())
    src, tgt = numbers(2, 4, 6), numbers(2, 3, 6)
    expected = model.decoder(tgt, ol.to_tensor(src) * 2)
    np.testing.assert_array_equal(model(src, tgt).numpy(), expected.numpy())


def test_derivatives_of_the_whole_and_vmap():
    model = ol.nn.Transformer(2, 1, 1, 1, 3, 0.0, "gelu", **DOUBLE)
    src, tgt = numbers(1, 2, 2), numbers(1, 2, 2)
    mask = model.generate_square_subsequent_mask(2)
    ol.check_grad(lambda a, b: model(a, b, tgt_mask=mask), src, tgt, order=2)
    many = numbers(3, 1, 2, 2), numbers(3, 1, 2, 2) + 0.5
    together = ol.vmap(lambda a, b: model(a, b, tgt_mask=mask))(*many)
    for k in range(3):
        alone = model(many[0][k], many[1][k], tgt_mask=mask)
        np.testing.assert_allclose(together[k].numpy(), alone.numpy(), rtol=1e-9, atol=1e-12)


@pytest.mark.peers
def test_the_whole_in_pytorch():
    torch = pytest.importorskip("torch")
    ours = shaken(whole())
    theirs = torch.nn.Transformer(6, 2, 2, 1, 8, 0.0, batch_first=True, dtype=torch.float64)
    for one, two in [
        *zip(ours.encoder.layers, theirs.encoder.layers, strict=True),
        *zip(ours.decoder.layers, theirs.decoder.layers, strict=True),
    ]:
        _copy(torch, one, two)
    with torch.no_grad():
        for one, two in ((ours.encoder, theirs.encoder), (ours.decoder, theirs.decoder)):
            two.norm.weight[...] = torch.tensor(one.norm.weight.numpy())
            two.norm.bias[...] = torch.tensor(one.norm.bias.numpy())
    arrays = numbers(2, 4, 6), numbers(2, 3, 6)
    a, c = (ol.to_tensor(x, requires_grad=True) for x in arrays)
    b, d = (torch.tensor(x, requires_grad=True) for x in arrays)
    y = ours(a, c, tgt_mask=ours.generate_square_subsequent_mask(3))
    z = theirs(b, d, tgt_mask=theirs.generate_square_subsequent_mask(3, dtype=torch.float64))
    layer = ours.encoder.layers[1].linear1.weight, theirs.encoder.layers[1].linear1.weight
    agree(torch, y, z, [(a, b), (c, d), layer])
