"""Instance normalization layers."""

from __future__ import annotations

from typing import Any

from optlab.autograd.tensor.tensor import Tensor
from optlab.nn import functional
from optlab.nn.docstrings import documented_like, inherit_docstring
from optlab.nn.layers.norm.layer_norm import Normalization


@inherit_docstring
class _InstanceNorm(Normalization):
    """Base class of instance normalization.

    Parameters
    ----------
    momentum : float
        Must be 0.9: there are no running averages over batches.

    See Also
    --------
    optlab.nn.functional.instance_norm : the formula, and its source.
    """

    _ndim = 4
    _formats: tuple[str, ...] = ("NCHW", "NHWC")

    def __init__(
        self, num_features: int, epsilon: float = 1e-5, momentum: float = 0.9,
        weight_attr: Any = None, bias_attr: Any = None, data_format: str | None = None,
        name: str | None = None, *, dtype: Any = "float32",
    ) -> None:  # fmt: skip
        super().__init__()
        data_format = self._formats[0] if data_format is None else data_format
        if data_format not in self._formats:
            raise ValueError(
                f"{type(self).__name__} takes data_format="
                f"{' or '.join(map(repr, self._formats))}; got {data_format!r}."
            )
        self.num_features, self.epsilon, self.momentum = num_features, epsilon, momentum
        self.data_format = data_format
        self._make_parameters((num_features,), weight_attr, bias_attr, name, dtype)

    def forward(self, x: Any) -> Tensor:
        """Normalize each channel of each example."""
        if len(x.shape) != self._ndim:
            raise ValueError(
                f"{type(self).__name__} takes x of {self._ndim} axes; got shape {tuple(x.shape)}."
            )
        return functional.instance_norm(
            x, weight=self.weight, bias=self.bias, momentum=self.momentum, eps=self.epsilon,
            data_format=self.data_format,
        )  # fmt: skip

    def extra_repr(self) -> str:
        """Return the sizes and settings."""
        return f"num_features={self.num_features}, epsilon={self.epsilon}"


@documented_like(_InstanceNorm, dims=1)
class InstanceNorm1D(_InstanceNorm):
    """Apply instance normalization to sequences of shape [N, C, L].

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> np.round(ol.nn.InstanceNorm1D(1)(ol.to_tensor([[[1.0, 3.0]]])).detach(), 4).tolist()
    [[[-1.0, 1.0]]]
    """

    _ndim, _formats = 3, ("NCL", "NLC")


@inherit_docstring
class InstanceNorm2D(_InstanceNorm):
    """Apply instance normalization to images of shape [N, C, H, W].

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.InstanceNorm2D(3)(ol.ones([2, 3, 4, 4])).shape
    (2, 3, 4, 4)
    """

    _ndim, _formats = 4, ("NCHW", "NHWC")


@documented_like(_InstanceNorm, dims=3)
class InstanceNorm3D(_InstanceNorm):
    """Apply instance normalization to volumes of shape [N, C, D, H, W].

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.InstanceNorm3D(3)(ol.ones([2, 3, 4, 4, 4])).shape
    (2, 3, 4, 4, 4)
    """

    _ndim, _formats = 5, ("NCDHW", "NDHWC")
