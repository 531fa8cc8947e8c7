"""Dropout layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from optlab.nn import functional
from optlab.nn.layers.configured import Unary


class _Dropout(Unary, settings=True):
    """Base class of dropout."""

    p: float = 0.5

    def forward(self, x: Any) -> Any:
        """Apply dropout in training."""
        return self._call_function(x, training=self.training)


class Dropout(_Dropout, function=functional.dropout):
    """Zero elements at random in training.

    Examples
    --------
    >>> import optlab as ol
    >>> layer = ol.nn.Dropout(0.5)
    >>> layer.training = False
    >>> layer(ol.ones([2]))
    Tensor([1., 1.], dtype=float32)
    """

    axis: int | Sequence[int] | None = None
    mode: str = "upscale_in_train"
    name: str | None = None

    def _check(self) -> None:
        functional.dropout(
            [0.0], self.p, mode=self.mode, training=False
        )  # raises for wrong settings


class Dropout2D(_Dropout, function=functional.dropout2d):
    """Zero whole channels of images at random in training.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.Dropout2D(0.0)(ol.ones([1, 2, 1, 1])).ravel()
    Tensor([1., 1.], dtype=float32)
    """

    data_format: str = "NCHW"
    name: str | None = None


class Dropout3D(_Dropout, function=functional.dropout3d):
    """Zero whole channels of volumes at random in training.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.Dropout3D(0.0)(ol.ones([1, 2, 1, 1, 1])).ravel()
    Tensor([1., 1.], dtype=float32)
    """

    data_format: str = "NCDHW"
    name: str | None = None


class AlphaDropout(_Dropout, function=functional.alpha_dropout):
    """Apply alpha dropout in training, which keeps the mean 0 and variance 1 of SELU.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.AlphaDropout(0.0)(ol.ones([2]))
    Tensor([1., 1.], dtype=float32)
    """

    name: str | None = None
