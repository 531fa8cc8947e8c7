"""Dropout as layers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from optlab.autograd.tensor import Tensor
from optlab.nn import functional
from optlab.nn.layers.shown import Shown


class Dropout(Shown):
    """Set elements to 0 at random while training.

    Parameters
    ----------
    p : float
        The probability of each element to be set to 0.
    axis : int or list of int, optional
        The axes along which elements are dropped one by one; by default all.
    mode : {'upscale_in_train', 'downscale_in_infer'}
        Divide by 1 - p while training, or multiply by 1 - p outside training.
    name : str, optional
        Shown by ``repr``.

    See Also
    --------
    optlab.nn.functional.dropout

    Examples
    --------
    >>> import optlab as ol
    >>> layer = ol.nn.Dropout(0.5)
    >>> layer.training = False
    >>> layer(ol.ones([2]))
    Tensor([1., 1.], dtype=float32)
    """

    def __init__(
        self,
        p: float = 0.5,
        axis: int | Sequence[int] | None = None,
        mode: str = "upscale_in_train",
        name: str | None = None,
    ) -> None:
        super().__init__(name, p=p, axis=axis, mode=mode)
        functional.dropout([0.0], p, mode=mode, training=False)  # refuses what it cannot take

    def forward(self, x: Any) -> Tensor:
        """Drop elements while training."""
        return functional.dropout(x, self.p, self.axis, self.training, self.mode)


class Dropout2D(Shown):
    """Set whole channels of pictures to 0 at random while training.

    Parameters
    ----------
    p : float
        The probability of each channel to be set to 0.
    data_format : {'NCHW', 'NHWC'}
        Where the channels are.
    name : str, optional
        Shown by ``repr``.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.Dropout2D(0.0)(ol.ones([1, 2, 1, 1])).ravel()
    Tensor([1., 1.], dtype=float32)
    """

    def __init__(self, p: float = 0.5, data_format: str = "NCHW", name: str | None = None) -> None:
        super().__init__(name, p=p, data_format=data_format)

    def forward(self, x: Any) -> Tensor:
        """Drop channels while training."""
        return functional.dropout2d(x, self.p, self.training, self.data_format)


class Dropout3D(Shown):
    """Set whole channels of volumes to 0 at random while training.

    Parameters
    ----------
    p : float
        The probability of each channel to be set to 0.
    data_format : {'NCDHW', 'NDHWC'}
        Where the channels are.
    name : str, optional
        Shown by ``repr``.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.Dropout3D(0.0)(ol.ones([1, 2, 1, 1, 1])).ravel()
    Tensor([1., 1.], dtype=float32)
    """

    def __init__(self, p: float = 0.5, data_format: str = "NCDHW", name: str | None = None) -> None:
        super().__init__(name, p=p, data_format=data_format)

    def forward(self, x: Any) -> Tensor:
        """Drop channels while training."""
        return functional.dropout3d(x, self.p, self.training, self.data_format)


class AlphaDropout(Shown):
    """Drop elements behind SELU while training, so that mean 0 and variance 1 stay.

    Parameters
    ----------
    p : float
        The probability of each element to be dropped; less than 1.
    name : str, optional
        Shown by ``repr``.

    See Also
    --------
    optlab.nn.functional.alpha_dropout : the source.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.AlphaDropout(0.0)(ol.ones([2]))
    Tensor([1., 1.], dtype=float32)
    """

    def __init__(self, p: float = 0.5, name: str | None = None) -> None:
        super().__init__(name, p=p)

    def forward(self, x: Any) -> Tensor:
        """Drop elements while training."""
        return functional.alpha_dropout(x, self.p, self.training)
