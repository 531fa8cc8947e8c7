"""Dropout as layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from optlab.nn import functional
from optlab.nn.layers.configured import Unary


class Dropout(Unary, function=functional.dropout):
    """Set elements to 0 at random while training.

    Examples
    --------
    >>> import optlab as ol
    >>> layer = ol.nn.Dropout(0.5)
    >>> layer.training = False
    >>> layer(ol.ones([2]))
    Tensor([1., 1.], dtype=float32)
    """

    p: float = 0.5
    axis: int | Sequence[int] | None = None
    mode: str = "upscale_in_train"
    name: str | None = None

    def _check(self) -> None:
        functional.dropout([0.0], self.p, mode=self.mode, training=False)  # refuses what it cannot

    def forward(self, x: Any) -> Any:
        """Drop elements while training."""
        return self._call_function(x, training=self.training)


class Dropout2D(Unary, function=functional.dropout2d):
    """Set whole channels of pictures to 0 at random while training.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.Dropout2D(0.0)(ol.ones([1, 2, 1, 1])).ravel()
    Tensor([1., 1.], dtype=float32)
    """

    p: float = 0.5
    data_format: str = "NCHW"
    name: str | None = None

    def forward(self, x: Any) -> Any:
        """Drop channels while training."""
        return self._call_function(x, training=self.training)


class Dropout3D(Unary, function=functional.dropout3d):
    """Set whole channels of volumes to 0 at random while training.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.Dropout3D(0.0)(ol.ones([1, 2, 1, 1, 1])).ravel()
    Tensor([1., 1.], dtype=float32)
    """

    p: float = 0.5
    data_format: str = "NCDHW"
    name: str | None = None

    def forward(self, x: Any) -> Any:
        """Drop channels while training."""
        return self._call_function(x, training=self.training)


class AlphaDropout(Unary, function=functional.alpha_dropout):
    """Drop elements behind SELU while training, so that mean 0 and variance 1 stay.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.AlphaDropout(0.0)(ol.ones([2]))
    Tensor([1., 1.], dtype=float32)
    """

    p: float = 0.5
    name: str | None = None

    def forward(self, x: Any) -> Any:
        """Drop elements while training."""
        return self._call_function(x, training=self.training)
