"""Rows of checks: discrete Fourier transforms, by real numbers made of their spectra."""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.rules.fourier import complex_fft, inverse_real_fft, real_fft
from optlab.autograd.tensor.complex_pairs import ComplexTensor
from tests.autograd.rows.table import numbers, put, with_static


def parts(z: Any) -> Any:
    """Return real and imaginary part beside each other."""
    return np.concatenate([z.real, z.imag])


OPTIONS: list[dict[str, Any]] = [
    {}, {"n": 3}, {"n": 8}, {"norm": "ortho"}, {"n": 7, "norm": "forward"}, {"norm": "backward"},
    {"axis": 0}, {"axis": -2, "n": 2, "norm": "ortho"},
]  # fmt: skip

for options in OPTIONS:
    shape = (4, 5) if "axis" in options else (6,)
    for n_dimensions in (
        (shape,) if "n" in options else (shape, (5,) if len(shape) == 1 else (3, 2))
    ):
        x = numbers(n_dimensions)
        for transform in (np.fft.rfft, np.fft.fft, np.fft.ifft, np.fft.ihfft):
            put(transform, f"{options} {n_dimensions}",
                lambda x, f=transform, o=options: parts(f(x, **o)), x)  # fmt: skip
        for transform in (np.fft.irfft, np.fft.hfft):
            put(transform, f"{options} {n_dimensions}", with_static(transform, **options), x)
            put(transform, f"of a product {options} {n_dimensions}",
                lambda x, f=transform, o=options: f(np.fft.fft(x) * np.fft.fft(x + 1), **o),
                x)  # fmt: skip
put(np.fft.rfft, "power spectrum", lambda x: np.abs(np.fft.rfft(x)) ** 2, numbers((7,)))
put(np.fft.rfft, "rows of power", lambda x: np.abs(np.fft.rfft(x)) ** 2, numbers((3, 8)))
put(np.fft.irfft, "convolution",
    lambda x, h: np.fft.irfft(np.fft.rfft(x, 9) * np.fft.rfft(h, 9), 9), numbers((6,)),
    numbers((4,)))  # fmt: skip
put(
    np.fft.fft,
    "of a complex product",
    lambda x: parts(np.fft.fft(np.fft.fft(x) * np.exp(1j * np.arange(5)))),
    numbers((5,)),
)
put(
    np.fft.ifft,
    "there and back",
    lambda x: np.real(np.fft.ifft(np.fft.fft(x) / (2 + np.arange(5)))),
    numbers((5,)),
)
for several in (np.fft.rfft2, np.fft.fft2, np.fft.ifft2, np.fft.rfftn, np.fft.fftn, np.fft.ifftn):
    for options in ({}, {"s": (3, 5), "axes": (0, 1)}, {"axes": (1, 0), "norm": "ortho"}):
        put(several, f"{options}", lambda x, f=several, o=options: parts(f(x, **o)),
            numbers((4, 3)))  # fmt: skip
for several in (np.fft.irfft2, np.fft.irfftn):
    for options in ({}, {"s": (3, 5), "axes": (0, 1)}, {"axes": (1, 0), "norm": "forward"}):
        put(several, f"{options}", lambda x, f=several, o=options: f(np.fft.rfft2(x) ** 2, **o),
            numbers((4, 4)))  # fmt: skip
put(real_fft, "as a pair", lambda x: parts(ComplexTensor(*real_fft(x))), numbers((5,)))
put(complex_fft, "as a pair", lambda a, b: parts(ComplexTensor(*complex_fft(a, b))),
    numbers((5,)), numbers((5,), seed=1))  # fmt: skip
put(inverse_real_fft, "of a pair", inverse_real_fft, numbers((4,)), numbers((4,), seed=1))
