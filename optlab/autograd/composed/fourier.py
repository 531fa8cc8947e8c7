"""``np.fft`` on Tensors: transforms of real and of complex numbers along one axis or several.

Spectra are `ComplexTensor`, pairs of real Tensors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from optlab.autograd.composed.table import composed
from optlab.autograd.rules.fourier import TRANSPOSED, complex_fft, inverse_real_fft, real_fft
from optlab.autograd.tensor.complex_pairs import ComplexTensor, pair_of


def _no_out(name: str, out: Any) -> None:
    if out is not None:
        raise TypeError(
            f"np.fft.{name}(..., out=) writes into an existing array, which would lose the "
            "gradient of a Tensor. Use the value that it returns."
        )


def _real(x: Any, name: str) -> Any:
    """Return a real array or Tensor of at least one axis; raise for complex numbers."""
    if isinstance(x, ComplexTensor):
        raise TypeError(f"np.fft.{name} takes real numbers; of complex ones write np.fft.fft.")
    x = x if hasattr(x, "dtype") else np.asarray(x)
    return x if x.dtype.kind not in "iub" else x.astype(float)


def _checked_norm(norm: Any) -> Any:
    if norm not in TRANSPOSED:
        raise ValueError(f"norm is 'backward', 'ortho' or 'forward'; got {norm!r}.")
    return norm


@composed(np.fft.rfft, moves=True)
def _rfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    _no_out("rfft", out)
    return ComplexTensor(*real_fft(_real(a, "rfft"), n, axis, _checked_norm(norm)))


@composed(np.fft.irfft, moves=True)
def _irfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    _no_out("irfft", out)
    z = pair_of(a)
    return inverse_real_fft(z.real, z.imag, n, axis, _checked_norm(norm))


@composed(np.fft.fft, moves=True)
def _fft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    _no_out("fft", out)
    z = pair_of(a)
    return ComplexTensor(*complex_fft(z.real, z.imag, n, axis, _checked_norm(norm)))


@composed(np.fft.ifft, moves=True)
def _ifft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    _no_out("ifft", out)
    z, other = pair_of(a), TRANSPOSED[_checked_norm(norm)]
    return ComplexTensor(*complex_fft(z.real, -z.imag, n, axis, other)).conj()


@composed(np.fft.hfft, moves=True)
def _hfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    return _irfft(pair_of(a).conj(), n, axis, TRANSPOSED[_checked_norm(norm)], out)


@composed(np.fft.ihfft, moves=True)
def _ihfft(a: Any, n: Any = None, axis: int = -1, norm: Any = None, out: Any = None) -> Any:
    return _rfft(a, n, axis, TRANSPOSED[_checked_norm(norm)], out).conj()


# Several axes: one after the other, the last first ------------------------------------------------


def _lengths_and_axes(shape: Sequence[int], s: Any, axes: Any, halved: bool) -> tuple[Any, Any]:
    """Return the length and the axis of each transform, as NumPy reads them."""
    if axes is None:
        axes = range(len(shape)) if s is None else range(-len(s), 0)
    axes = [int(axis) for axis in axes]
    if s is None:
        lengths = [shape[axis] for axis in axes]
        if halved and lengths:
            lengths[-1] = 2 * (lengths[-1] - 1)
    else:
        lengths = [shape[a] if n == -1 else int(n) for n, a in zip(s, axes, strict=False)]
    if len(lengths) != len(axes):
        raise ValueError(f"there are {len(lengths)} lengths in s={s!r} for {len(axes)} axes.")
    if not axes:
        raise ValueError("a transform needs at least one axis.")
    return lengths, axes


def _each_axis(transform: Any, z: Any, lengths: Any, axes: Any, norm: Any) -> Any:
    for n, axis in reversed(list(zip(lengths, axes, strict=True))):
        z = transform(z, n, axis, norm)
    return z


@composed(np.fft.fftn, moves=True)
def _fftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Any:
    _no_out("fftn", out)
    return _each_axis(_fft, a, *_lengths_and_axes(np.shape(a), s, axes, False), norm)


@composed(np.fft.ifftn, moves=True)
def _ifftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Any:
    _no_out("ifftn", out)
    return _each_axis(_ifft, a, *_lengths_and_axes(np.shape(a), s, axes, False), norm)


@composed(np.fft.rfftn, moves=True)
def _rfftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Any:
    _no_out("rfftn", out)
    lengths, axes = _lengths_and_axes(np.shape(a), s, axes, False)
    z = _rfft(a, lengths[-1], axes[-1], norm)
    return _each_axis(_fft, z, lengths[:-1], axes[:-1], norm)


@composed(np.fft.irfftn, moves=True)
def _irfftn(a: Any, s: Any = None, axes: Any = None, norm: Any = None, out: Any = None) -> Any:
    _no_out("irfftn", out)
    lengths, axes = _lengths_and_axes(np.shape(a), s, axes, True)
    z = a
    for n, axis in zip(lengths[:-1], axes[:-1], strict=True):
        z = _ifft(z, n, axis, norm)
    return _irfft(z, lengths[-1], axes[-1], norm)


def _of_planes(several: Any) -> Any:
    def transform(
        a: Any, s: Any = None, axes: Any = (-2, -1), norm: Any = None, out: Any = None
    ) -> Any:
        return several(a, s, axes, norm, out)

    return transform


for function, several in (
    (np.fft.fft2, _fftn), (np.fft.ifft2, _ifftn), (np.fft.rfft2, _rfftn), (np.fft.irfft2, _irfftn),
):  # fmt: skip
    composed(function, moves=True)(_of_planes(several))
