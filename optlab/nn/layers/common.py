"""Identity, reshaping and embedding layers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from optlab.autograd.tensor.creation import zeros
from optlab.autograd.tensor.tensor import Tensor
from optlab.nn import functional
from optlab.nn.base.layer import Layer
from optlab.nn.base.param_attr import parameter_name, require_parameter
from optlab.nn.initializer import XavierUniform
from optlab.nn.layers.configured import Configured


class Identity(Layer):
    """Return the input unchanged; arguments of the constructor are ignored.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.Identity()(ol.ones([2]))
    Tensor([1., 1.], dtype=float32)
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, x: Any) -> Any:
        """Return `x`."""
        return x


class Flatten(Configured, settings=True):
    """Flatten a range of axes to one.

    Parameters
    ----------
    start_axis, stop_axis : int
        First and last axis of the range.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.Flatten()(ol.ones([2, 3, 4])).shape
    (2, 12)
    """

    start_axis: int = 1
    stop_axis: int = -1

    def forward(self, x: Any) -> Tensor:
        """Return `x` with the axes flattened."""
        shape = tuple(x.shape)
        first, last = (
            axis + len(shape) if axis < 0 else axis for axis in (self.start_axis, self.stop_axis)
        )
        if not 0 <= first <= last < len(shape):
            raise ValueError(
                f"Flatten(start_axis={self.start_axis}, stop_axis={self.stop_axis}) got x of shape "
                f"{shape}, which has no such axes."
            )
        flat = math.prod(shape[first : last + 1])
        y: Tensor = as_tensor(x).reshape((*shape[:first], flat, *shape[last + 1 :]))
        return y


class Unflatten(Configured, settings=True):
    """Split an axis into several.

    Parameters
    ----------
    axis : int
        Axis to split.
    shape : list of int
        Lengths of the new axes; one of them may be -1, to be inferred.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.Unflatten(1, [3, -1])(ol.ones([2, 12])).shape
    (2, 3, 4)
    """

    axis: int
    shape: Sequence[int]
    name: str | None = None

    def _check(self) -> None:
        self.shape = list(self.shape)

    def forward(self, x: Any) -> Tensor:
        """Return `x` with the axis split."""
        lengths = tuple(x.shape)
        at = self.axis % len(lengths)
        y: Tensor = as_tensor(x).reshape((*lengths[:at], *self.shape, *lengths[at + 1 :]))
        return y


def as_tensor(x: Any) -> Any:
    """Return `x` as a Tensor; integers stay integers."""
    return x if isinstance(x, Tensor) else Tensor(np.asarray(x))


class Embedding(Layer):
    """Look up a learned vector for each integer.

    Parameters
    ----------
    num_embeddings : int
        Number of vectors; indices are from 0 to num_embeddings - 1.
    embedding_dim : int
        Length of a vector.
    padding_idx : int, optional
        Index of padding: its vector is 0 and gets no gradient.
    sparse : bool
        Whether the gradient is row-sparse: only the rows that were read.
    weight_attr : ParamAttr, str or Initializer, optional
        Settings of the table, by default Xavier uniform.
    name : str, optional
        Prefix of the parameter name.
    dtype : str or dtype
        Dtype of the table.

    See Also
    --------
    optlab.nn.functional.embedding

    Examples
    --------
    >>> import optlab as ol
    >>> layer = ol.nn.Embedding(10, 3)
    >>> layer(ol.to_tensor([[1, 2, 4, 5]])).shape
    (1, 4, 3)
    """

    def __init__(
        self, num_embeddings: int, embedding_dim: int, padding_idx: int | None = None,
        sparse: bool = False, weight_attr: Any = None, name: str | None = None, *,
        dtype: Any = "float32",
    ) -> None:  # fmt: skip
        super().__init__()
        for argument, length in (
            ("num_embeddings", num_embeddings), ("embedding_dim", embedding_dim),
        ):  # fmt: skip
            if not isinstance(length, (int, np.integer)) or length < 1:
                raise ValueError(
                    f"Embedding: {argument} must be a whole number of at least 1; got {length!r}."
                )
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise ValueError(
                f"Embedding: padding_idx must be one of the {num_embeddings} rows; got "
                f"{padding_idx!r}."
            )
        self.num_embeddings, self.embedding_dim = num_embeddings, embedding_dim
        self.padding_idx, self.sparse = padding_idx, sparse
        table = self._new_parameter(
            (num_embeddings, embedding_dim), weight_attr, "weight_attr", dtype, XavierUniform(),
            parameter_name(name, "weight"),
        )  # fmt: skip
        self.weight = require_parameter(table, "Embedding", "weight_attr")
        if padding_idx is not None:
            start = self.weight.numpy()
            start[padding_idx] = 0.0
            self.weight.set_value(start)

    def forward(self, x: Any) -> Tensor:
        """Look up the vectors."""
        return functional.embedding(x, self.weight, self.padding_idx, self.sparse)

    def example_input(self, shape: Any) -> Tensor:
        """Return indices of the first row, in this shape, for `summary`."""
        return zeros(shape, "int64")

    def extra_repr(self) -> str:
        """Return the sizes and settings."""
        shown = f"{self.num_embeddings}, {self.embedding_dim}"
        if self.padding_idx is not None:
            shown += f", padding_idx={self.padding_idx}"
        return f"{shown}, sparse=True" if self.sparse else shown
