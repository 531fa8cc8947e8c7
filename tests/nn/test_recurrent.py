"""Recurrent cells and networks: lengths, directions, PyTorch, and refusals."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import optlab as ol
from optlab.backend import events
from tests.autograd.test_guarded import gradients, guarded_leaf, on_device_function
from tests.guarded import GuardedArray

DOUBLE: dict[str, Any] = {"dtype": "float64"}
KINDS = ["SimpleRNN", "LSTM", "GRU"]
ALL = pytest.mark.parametrize("kind", KINDS)
BOTH = pytest.mark.parametrize("direction", ["forward", "bidirect"])


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng((5, *shape)).standard_normal(shape)


def made(kind: str, *args: Any, **options: Any) -> Any:
    ol.seed(0)
    return getattr(ol.nn, kind)(*args, **DOUBLE, **options)


def plain(x: Any) -> np.ndarray:
    return x.detach().numpy()


@ALL
def test_a_network_is_its_cell_step_by_step(kind):
    layer, x = made(kind, 3, 4), ol.to_tensor(numbers(2, 5, 3))
    y, last = layer(x)
    states = None
    for t in range(5):
        output, states = layer.cells[0](x[:, t], states)
        np.testing.assert_allclose(plain(output), plain(y[:, t]), rtol=1e-10)
    for a, b in zip(*([s] if kind != "LSTM" else s for s in (states, last)), strict=True):
        np.testing.assert_allclose(plain(a), plain(b[0]), rtol=1e-10)


@pytest.mark.parametrize("time_major", [False, True])
@BOTH
def test_an_lstm_along_a_sequence_is_its_steps_to_the_second_derivative(direction, time_major):
    layer = made("LSTM", 3, 4, 1, direction, time_major)
    ways = len(layer.cells)
    x, h, c = numbers(2, 5, 3), numbers(ways, 2, 4), numbers(ways, 2, 4) + 1
    x = x.swapaxes(0, 1) if time_major else x
    weigh = [np.cos(numbers(*shape)) for shape in ((*x.shape[:2], 4 * ways), h.shape, c.shape)]
    parameters = layer.parameters()

    def found(lengths):
        def loss(x, h, c):
            y, (last, cell) = layer(x, (h, c), lengths)
            parts = zip((y, last, cell), weigh, strict=True)
            return sum(np.sum(part * part * weight) for part, weight in parts)

        def slope(*at):
            return sum(np.sum(np.sin(g)) for g in ol.grad(loss, (0, 1, 2))(*at))

        gradients = []
        for function in (loss, slope):
            leaves = [ol.to_tensor(a, requires_grad=True) for a in (x, h, c)]
            value = function(*leaves)
            value.backward()
            gradients += [value, *[leaf.grad for leaf in (*leaves, *parameters)]]
            layer.clear_gradients()
        return gradients

    once, by_steps = found(None), found([5, 5])  # lengths select the step-by-step method
    assert len(once) == 2 * (4 + len(parameters))
    for a, b in zip(once, by_steps, strict=True):
        np.testing.assert_allclose(plain(a), plain(b), rtol=1e-9, atol=1e-12)


def test_an_lstm_is_cast_step_by_step():
    layer, x = ol.nn.LSTM(3, 4), ol.ones([2, 5, 3])
    with ol.amp.auto_cast():
        assert (
            layer.cells[0]._project_state(ol.zeros([2, 4]), layer.cells[0].weight_hh.T).dtype
            == "float16"
        )
        y, _ = layer(x)
    np.testing.assert_allclose(plain(y), plain(layer(x)[0]), atol=1e-2)


@pytest.mark.parametrize("elsewhere", ["a Tensor of 16 bits", "another thread that casts"])
def test_an_lstm_of_32_bits_goes_on_at_once_whatever_others_do(elsewhere):
    layer, gradients, counts = ol.nn.LSTM(3, 4), [], []

    def run(steps):
        layer.clear_gradients()
        recorded = []
        with events.operation_recorded.subscribed(recorded.append):
            y, _ = layer(ol.to_tensor(numbers(2, steps, 3).astype("float32")))
            np.sum(y * y).backward()
        gradients.append([p.grad.numpy() for p in layer.parameters()])
        counts.append(len(recorded))

    run(5)
    if elsewhere == "a Tensor of 16 bits":
        ol.ones([2], dtype="float16")
        run(5)
        run(9)
    else:
        with ThreadPoolExecutor(1) as threads:
            casting = threads.submit(ol.amp.auto_cast().__enter__).result()
            run(5)
            run(9)
            threads.submit(casting.__exit__, None, None, None).result()
    assert counts[0] == counts[1] == counts[2]  # one step more is not one operation more
    for a, b in zip(*gradients[:2], strict=True):
        np.testing.assert_array_equal(a, b)


@ALL
@BOTH
def test_what_is_behind_the_end_of_a_sequence_changes_nothing(kind, direction):
    layer, x = made(kind, 3, 4, 2, direction), numbers(2, 5, 3)
    y, last = layer(ol.to_tensor(x), sequence_length=[3, 5])
    x[0, 3:] = 100.0
    z, _ = layer(ol.to_tensor(x), sequence_length=[3, 5])
    short, ends = layer(ol.to_tensor(x[:1, :3]))
    np.testing.assert_array_equal(plain(y), plain(z))
    np.testing.assert_allclose(plain(y)[:1, :3], plain(short), rtol=1e-10)
    assert np.all(plain(y)[0, 3:] == 0)
    h, end = (last[0], ends[0]) if kind == "LSTM" else (last, ends)
    np.testing.assert_allclose(plain(h)[:, :1], plain(end), rtol=1e-10)


@ALL
@BOTH
def test_time_may_come_first(kind, direction):
    layer, other = (made(kind, 3, 4, 2, direction, time_major=major) for major in (False, True))
    x = numbers(2, 5, 3)
    y, z = layer(ol.to_tensor(x))[0], other(ol.to_tensor(np.swapaxes(x, 0, 1)))[0]
    np.testing.assert_allclose(plain(y), np.swapaxes(plain(z), 0, 1), rtol=1e-12)


@ALL
def test_states_may_be_handed_on(kind):
    layer, x = made(kind, 3, 4, 2), ol.to_tensor(numbers(2, 6, 3))
    whole, _ = layer(x)
    first, states = layer(x[:, :4])
    second, _ = layer(x[:, 4:], states)
    np.testing.assert_allclose(
        np.concatenate([plain(first), plain(second)], 1), plain(whole), rtol=1e-10
    )


@ALL
def test_derivatives(kind):
    layer = made(kind, 2, 2, 1, "bidirect")
    for parameter in layer.parameters():
        parameter.trainable = False
    ol.check_grad(lambda x: layer(x, sequence_length=[3, 2])[0], numbers(2, 3, 2), order=2)


@ALL
def test_derivatives_with_respect_to_the_weights(kind):
    layer = made(kind, 2, 3)
    x = ol.to_tensor(numbers(2, 4, 2))
    np.sum(layer(x)[0] ** 2).backward()
    for parameter in layer.parameters():
        values = parameter.numpy()
        step = np.zeros_like(values)
        step.flat[1] = 1e-6
        sides = []
        for sign in (1, -1):
            parameter.set_value(values + sign * step)
            sides.append(np.sum(layer(x)[0].detach() ** 2).item())
        parameter.set_value(values)
        assert parameter.grad.numpy().flat[1] == pytest.approx(
            (sides[0] - sides[1]) / 2e-6, rel=1e-5, abs=1e-8
        )


def test_parameters_are_named_by_layer_and_direction():
    layer = ol.nn.LSTM(3, 4, 2, "bidirect", name="words", bias_hh_attr=False)
    names = [name for name, _ in layer.named_parameters()]
    assert names == [
        f"{role}_l{i}{way}"
        for i in range(2)
        for way in ("", "_reverse")
        for role in ("weight_ih", "weight_hh", "bias_ih")
    ]
    assert layer.weight_ih_l1.shape == (16, 8)
    assert layer.weight_ih_l1 is layer.cells[2].weight_ih
    assert layer.weight_ih_l1.name == "words.l1.weight_ih"
    copy = ol.nn.LSTM(3, 4, 2, "bidirect", bias_hh_attr=False)
    copy.set_state_dict(layer.state_dict())
    x = ol.to_tensor(numbers(1, 2, 3).astype("float32"))
    np.testing.assert_array_equal(plain(copy(x)[0]), plain(layer(x)[0]))


@ALL
def test_values_and_derivatives_stay_on_their_device(kind):
    layer, x = made(kind, 2, 3), numbers(2, 3, 2)
    for parameter in layer.parameters():
        parameter.trainable = False

    def f(x: Any) -> Any:
        return layer(x, sequence_length=[3, 1])[0]

    def on_device(x: Any) -> Any:
        there = made(kind, 2, 3)
        for cell in there.cells:
            for name, parameter in list(vars(cell).items()):
                if isinstance(parameter, ol.Parameter):
                    vars(cell)[name] = ol.Tensor(GuardedArray(parameter.numpy()))
        return there(x, sequence_length=[3, 1])[0]

    wanted = gradients(f, [ol.to_tensor(x, requires_grad=True)])
    got = gradients(on_device_function(on_device), [guarded_leaf(x)])
    for one, two in zip(got, wanted, strict=True):
        assert isinstance(one.data, GuardedArray)
        np.testing.assert_allclose(one.data.get(), two.numpy(), rtol=1e-10, atol=1e-12)


def test_dropout_between_layers_in_training_only():
    layer = made("GRU", 3, 8, 2, dropout=0.5)
    x = ol.to_tensor(numbers(2, 5, 3))
    a, b = plain(layer(x)[0]), plain(layer(x)[0])
    assert np.any(a != b)
    layer.eval()
    np.testing.assert_array_equal(plain(layer(x)[0]), plain(layer(x)[0]))
    assert np.any(plain(layer(x)[0]) != a)


def test_hooks_on_a_cell_run():
    cell, calls = ol.nn.GRUCell(3, 4), []
    cell.register_forward_post_hook(lambda layer, inputs, outputs: calls.append(1))
    ol.nn.RNN(cell)(ol.ones([2, 5, 3]))
    assert len(calls) == 5


def test_per_example_gradients_equal_one_by_one():
    layer, x = made("LSTM", 2, 3), numbers(3, 4, 2)
    of_one = ol.grad(lambda one: np.sum(layer(one[None], sequence_length=[3])[0] ** 2))
    together = ol.vmap(of_one)(ol.to_tensor(x))
    for k in range(3):
        alone = of_one(ol.to_tensor(x[k]))
        np.testing.assert_allclose(plain(together[k]), plain(alone), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: ol.nn.LSTM(3, 4, direction="backward"), "is_reverse=True"),
        (lambda: ol.nn.GRU(3, 4, num_layers=0), "at least 1 layer"),
        (lambda: ol.nn.GRU(3, 0), "hidden_size must be"),
        (lambda: ol.nn.LSTM(3, 4, proj_size=4), "less than hidden_size"),
        (lambda: ol.nn.SimpleRNN(3, 4, activation="cube"), "'tanh' or 'relu'"),
        (lambda: ol.nn.GRUCell(3, 4, weight_ih_attr=False), "weight_ih_attr=False"),
        (lambda: ol.nn.GRU(3, 4)(ol.ones([2, 3])), "at least one step"),
        (lambda: ol.nn.GRU(3, 4)(ol.ones([2, 5, 4])), "last axis is 3 long"),
        (lambda: ol.nn.GRU(3, 4)(ol.ones([2, 5, 3]), ol.ones([2, 2, 4])), r"\[1, batch, 4\]"),
        (lambda: ol.nn.GRU(3, 4)(ol.ones([2, 5, 3]), None, [1, 2, 3]), "each of the 2 sequences"),
        (lambda: ol.nn.RNN(ol.nn.Linear(3, 4))(ol.ones([2, 5, 3])), "initial_states"),
    ],
)
def test_what_is_wrong_is_said(call, words):
    with pytest.raises((TypeError, ValueError), match=words):
        call()


@pytest.mark.peers
@BOTH
@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("SimpleRNN", {}),
        ("SimpleRNN", {"activation": "relu"}),
        ("LSTM", {}),
        ("LSTM", {"proj_size": 2}),
        ("GRU", {}),
    ],
)
@pytest.mark.parametrize("lengths", [None, [5, 3]])
def test_networks_in_pytorch(kind, options, direction, lengths):
    torch = pytest.importorskip("torch")
    ours = made(kind, 3, 4, 2, direction, **options)
    renamed = {"activation": "nonlinearity"}
    theirs = getattr(torch.nn, kind.replace("Simple", ""))(
        3, 4, 2, bidirectional=direction == "bidirect", batch_first=True, dtype=torch.float64,
        **{renamed.get(key, key): value for key, value in options.items()},
    )  # fmt: skip

    def place(name: str) -> str:
        return name.replace("weight_ho", "weight_hr")

    with torch.no_grad():
        for name, parameter in ours.named_parameters():
            value = parameter.numpy()
            value = value.T if "weight_ho" in name else value
            getattr(theirs, place(name)).copy_(torch.tensor(value))
    x = numbers(2, 5, 3)
    a, b = ol.to_tensor(x, requires_grad=True), torch.tensor(x, requires_grad=True)
    y, last = ours(a, sequence_length=lengths)
    if lengths is None:
        z, end = theirs(b)
    else:
        packed = torch.nn.utils.rnn.pack_padded_sequence(b, lengths, batch_first=True)
        z, end = theirs(packed)
        z = torch.nn.utils.rnn.pad_packed_sequence(z, batch_first=True)[0]
    np.testing.assert_allclose(plain(y), z.detach().numpy(), rtol=1e-9, atol=1e-12)
    pairs = zip(last, end, strict=True) if kind == "LSTM" else [(last, end)]
    for one, two in pairs:
        np.testing.assert_allclose(plain(one), two.detach().numpy(), rtol=1e-9, atol=1e-12)
    g = np.cos(np.arange(y.size)).reshape(y.shape)
    y.backward(g)
    z.backward(torch.tensor(g))
    np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-8, atol=1e-10)
    for name, parameter in ours.named_parameters():
        wanted = getattr(theirs, place(name)).grad.numpy()
        got = parameter.grad.numpy()
        got = got.T if "weight_ho" in name else got
        np.testing.assert_allclose(got, wanted, rtol=1e-8, atol=1e-10)
