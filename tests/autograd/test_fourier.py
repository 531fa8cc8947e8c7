"""Spectra on the tape: pairs of real Tensors that take part in arithmetic as complex numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import optlab as ol
from optlab.autograd.tensor.complex_pairs import ComplexTensor
from tests.autograd.rows import numbers

X, Y = numbers((5,)), numbers((5,), seed=1)
W = np.exp(1j * np.arange(5))

#: Functions of a spectrum z, a real x of its shape and complex constants.
CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "z + x": lambda z, x: z + x, "x + z": lambda z, x: x + z, "x - z": lambda z, x: x - z,
    "z - x": lambda z, x: z - x, "x * z": lambda z, x: x * z, "z * x": lambda z, x: z * x,
    "z / x": lambda z, x: z / x, "x / z": lambda z, x: x / z, "z * w": lambda z, x: z * W,
    "w * z": lambda z, x: W * z, "w / z": lambda z, x: W / z, "2j * z": lambda z, x: 2j * z,
    "-z": lambda z, x: -z, "z ** 3": lambda z, x: z**3, "z ** -1": lambda z, x: z**-1,
    "z ** 0": lambda z, x: z**0, "z * z": lambda z, x: z * z, "z @ z": lambda z, x: z @ z,
    "x @ z": lambda z, x: x @ z, "z @ w": lambda z, x: z @ W, "conj": lambda z, x: np.conj(z) * z,
    "method conj": lambda z, x: z.conj(), "abs": lambda z, x: abs(z),
    "angle": lambda z, x: np.angle(z), "degrees": lambda z, x: np.angle(z, deg=True),
    "exp": lambda z, x: np.exp(z), "square": lambda z, x: np.square(z),
    "np.multiply": lambda z, x: np.multiply(x, z), "np.subtract": lambda z, x: np.subtract(x, z),
    "real": lambda z, x: np.real(z), "imag": lambda z, x: z.imag, "sum": lambda z, x: np.sum(z),
    "method sum": lambda z, x: z.sum(), "mean": lambda z, x: np.mean(z),
    "slice": lambda z, x: z[1:3],
    "reshape": lambda z, x: z.reshape(5, 1), "T": lambda z, x: (z[None] * x[:, None]).T,
    "roll": lambda z, x: np.roll(z, 2), "concatenate": lambda z, x: np.concatenate([z, x]),
    "stack": lambda z, x: np.stack([z, W, z]), "where": lambda z, x: np.where(X > 0, z, x),
    "where, the other way": lambda z, x: np.where(X > 0, x, z),
    "add.reduce": lambda z, x: np.add.reduce(z), "dot": lambda z, x: np.dot(z, W),
    "fftshift": lambda z, x: np.fft.fftshift(z),
    "moveaxis": lambda z, x: np.moveaxis(z[None], 0, 1),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_arithmetic_of_spectra_is_numpy_s_and_differentiates_to_second_order(name: str) -> None:
    call = CALLS[name]
    x, y = ol.to_tensor(X, requires_grad=True), ol.to_tensor(Y, requires_grad=True)
    got, wanted = call(np.fft.fft(x), y), call(np.fft.fft(X), Y)
    assert got.shape == wanted.shape
    assert got.dtype == wanted.dtype
    np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-12, atol=1e-12)

    def real(x: Any, y: Any) -> Any:
        z = call(np.fft.fft(x), y)
        return np.sum(np.cos(z.real) + z.imag * z.real) if np.iscomplexobj(z) else np.sum(np.cos(z))

    ol.check_grad(real, X, Y, order=2)


def test_the_values_of_a_spectrum_that_needs_no_gradient_become_an_array() -> None:
    z = np.fft.rfft(ol.to_tensor(X))
    np.testing.assert_allclose(np.asarray(z), np.fft.rfft(X))
    assert np.allclose(z, np.fft.rfft(X))
    assert (z == z).all()
    assert z[0].item() == pytest.approx(complex(X.sum()))


MESSAGES: dict[str, tuple[Callable[[Any], Any], type[Exception], str]] = {
    "backward": (lambda z: z.backward(), AttributeError, r"np\.sum\(np\.abs\(z\) \*\* 2\)"),
    "an array": (np.asarray, TypeError, "silently cut"),
    "a ufunc": (np.sqrt, TypeError, r"np\.sqrt is not covered.*z\.real"),
    "a function": (np.sort, TypeError, r"np\.sort is not covered.*z\.real"),
    "a condition": (bool, TypeError, r"np\.abs\(z\)"),
    "an attribute": (lambda z: z.foo, AttributeError, "z.real and z.imag are Tensors"),
    "rfft": (np.fft.rfft, TypeError, r"np\.fft\.fft"),
    "a Tensor's function": (lambda z: np.maximum(ol.to_tensor(1.0), z), TypeError, "not covered"),
    "norm": (lambda z: np.fft.fft(z, norm="none"), ValueError, "'ortho'"),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_what_is_not_covered_says_what_to_write(name: str) -> None:
    call, error, words = MESSAGES[name]
    with pytest.raises(error, match=words):
        call(np.fft.fft(ol.to_tensor(X, requires_grad=True)))


def test_a_filter_is_learned_in_the_spectrum() -> None:
    signal = numbers((64,), seed=3)
    kernel = np.exp(-np.arange(8.0))
    wanted = np.convolve(signal, kernel)[:64]
    h = ol.Parameter(np.zeros(8))
    optimizer = ol.optimizer.Adam(0.05, parameters=[h])
    for _ in range(400):
        y = np.fft.irfft(np.fft.rfft(signal, 128) * np.fft.rfft(h, 128), 128)[:64]
        loss = np.mean((y - wanted) ** 2)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
    np.testing.assert_allclose(h.numpy(), kernel, atol=1e-2)


def test_vmap_gives_a_spectrum_for_each_example() -> None:
    rows = numbers((3, 6))
    got = ol.vmap(np.fft.rfft)(ol.to_tensor(rows))
    assert isinstance(got, ComplexTensor)
    np.testing.assert_allclose(got.numpy(), np.fft.rfft(rows), rtol=1e-12)
    np.testing.assert_allclose(ol.vmap(np.fft.rfft)(rows), np.fft.rfft(rows), rtol=1e-12)
    each = ol.vmap(ol.grad(lambda x: np.sum(np.abs(np.fft.rfft(x)) ** 4)))(rows)
    for got_row, row in zip(each, rows, strict=True):
        wanted = ol.grad(lambda x: np.sum(np.abs(np.fft.rfft(x)) ** 4))(row)
        np.testing.assert_allclose(got_row, wanted, rtol=1e-10)


@pytest.mark.peers
@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize("n", [None, 4, 9])
def test_gradients_are_those_of_pytorch(n: int | None, norm: str) -> None:
    torch = pytest.importorskip("torch")

    def loss(fft: Any, sum: Any, absolute: Any, x: Any, h: Any) -> Any:
        z = fft.rfft(x, n, norm=norm) * fft.rfft(h, n, norm=norm)
        w = fft.fft(x, n, norm=norm) / (fft.fft(h, n, norm=norm) + 3)
        return sum(fft.irfft(z, n, norm=norm) ** 3) + sum(absolute(fft.ifft(w * w)) ** 3)

    x, h = numbers((7,)), numbers((7,), seed=4)
    ours = ol.grad(lambda x, h: loss(np.fft, np.sum, np.abs, x, h), (0, 1))(x, h)
    t = [torch.tensor(v, requires_grad=True) for v in (x, h)]
    loss(torch.fft, torch.sum, torch.abs, *t).backward()
    for got, wanted in zip(ours, t, strict=True):
        np.testing.assert_allclose(got, wanted.grad.numpy(), rtol=1e-9)
