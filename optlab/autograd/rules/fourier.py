"""Derivative rules of discrete Fourier transforms, on pairs of real and imaginary parts.

A transform is linear, so its rule is its transpose, which is another transform: no value is kept,
and derivatives of every order follow. Parts are real arrays, so a gradient is that of two real
numbers, and no convention of complex derivatives is needed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.operation import rule
from optlab.autograd.rules.guarded import run_or_record
from optlab.backend.arrays import constants_beside

#: The normalization of the transpose: a transform has the same factor, but NumPy names that of a
#: transform and of its inverse together.
TRANSPOSED = {None: "forward", "backward": "forward", "forward": "backward", "ortho": "ortho"}


def _parts(z: Any) -> tuple[Any, Any]:
    return +z.real, +z.imag  # in memory of their own


def fit(x: Any, length: int, axis: int) -> Any:
    """Cut an axis to a length, or fill it up with zeros: as transforms do with ``n=``.

    Examples
    --------
    >>> import numpy as np
    >>> fit(np.ones(2), 3, 0), fit(np.ones(2), 1, 0)
    (array([1., 1., 0.]), array([1.]))
    """
    axis %= len(x.shape)
    missing = length - x.shape[axis]
    if missing > 0:
        return np.pad(x, [(0, missing if i == axis else 0) for i in range(len(x.shape))])
    return x if not missing else x[(slice(None),) * axis + (slice(length),)]


def real_fft(x: Any, n: int | None = None, axis: int = -1, norm: Any = None) -> tuple[Any, Any]:
    """Return ``np.fft.rfft`` as real and imaginary parts.

    Examples
    --------
    >>> import numpy as np
    >>> real_fft(np.array([1.0, 0.0, 0.0]))
    (array([1., 1.]), array([0., 0.]))
    """
    return run_or_record(REAL_FFT, x, n=n, axis=axis, norm=norm)  # type: ignore[no-any-return]


def inverse_real_fft(a: Any, b: Any, n: int | None = None, axis: int = -1, norm: Any = None) -> Any:
    """Return ``np.fft.irfft`` of real and imaginary parts.

    Examples
    --------
    >>> import numpy as np
    >>> inverse_real_fft(np.array([1.0, 1.0]), np.zeros(2), 3)
    array([1., 0., 0.])
    """
    return run_or_record(INVERSE_REAL_FFT, a, b, n=n, axis=axis, norm=norm)


def complex_fft(
    a: Any, b: Any, n: int | None = None, axis: int = -1, norm: Any = None
) -> tuple[Any, Any]:
    """Return ``np.fft.fft`` of real and imaginary parts, as real and imaginary parts.

    Examples
    --------
    >>> import numpy as np
    >>> complex_fft(np.array([0.0, 1.0]), np.array([0.0, 0.0]))
    (array([ 1., -1.]), array([0., 0.]))
    """
    return run_or_record(COMPLEX_FFT, a, b, n=n, axis=axis, norm=norm)  # type: ignore[no-any-return]


def _weights(g: Any, n: int, axis: int, inside: float) -> Any:
    """Return a weight for each frequency of real input: 1 where it has no mirror image."""
    weights = np.full(n // 2 + 1, inside, g.dtype)
    weights[0] = 1.0
    if n % 2 == 0:
        weights[-1] = 1.0
    axis %= len(g.shape)
    shape = [1] * len(g.shape)
    shape[axis] = len(weights)
    return constants_beside(g, weights.reshape(shape))


def _real_fft_back(
    g: Any, x_shape: Any, n: int | None = None, axis: int = -1, norm: Any = None
) -> Any:
    length = x_shape[axis]
    n = length if n is None else n
    weights = _weights(g[0], n, axis, 0.5)
    x = inverse_real_fft(g[0] * weights, g[1] * weights, n, axis, TRANSPOSED[norm])
    return fit(x, length, axis)


def _inverse_real_fft_back(
    g: Any, a_shape: Any, n: int | None = None, axis: int = -1, norm: Any = None
) -> tuple[Any, Any]:
    length = a_shape[axis]
    n = 2 * (length - 1) if n is None else n
    weights = _weights(g, n, axis, 2.0)
    a, b = real_fft(g, n, axis, TRANSPOSED[norm])
    return fit(a * weights, length, axis), fit(b * weights, length, axis)


def _complex_fft_back(
    g: Any, a_shape: Any, n: int | None = None, axis: int = -1, norm: Any = None
) -> tuple[Any, Any]:
    a, b = complex_fft(g[0], -g[1], n, axis, norm)
    return fit(a, a_shape[axis], axis), -fit(b, a_shape[axis], axis)


REAL_FFT = rule(
    real_fft,
    _real_fft_back,
    static="n axis norm",
    forward=lambda x, n, axis, norm: _parts(np.fft.rfft(x, n, axis, norm)),
    several=True,
)
INVERSE_REAL_FFT = rule(
    inverse_real_fft,
    joint=_inverse_real_fft_back,
    inputs="a b",
    static="n axis norm",
    forward=lambda a, b, n, axis, norm: np.fft.irfft(a + 1j * b, n, axis, norm),
)
COMPLEX_FFT = rule(
    complex_fft,
    joint=_complex_fft_back,
    inputs="a b",
    static="n axis norm",
    forward=lambda a, b, n, axis, norm: _parts(np.fft.fft(a + 1j * b, n, axis, norm)),
    several=True,
)
