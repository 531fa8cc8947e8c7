"""Layers of all kinds: shapes, dropout, lookup, and pairs of inputs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from optlab.autograd.tensor import Tensor
from optlab.nn import functional
from optlab.nn.attributes import made, named, needed
from optlab.nn.initializer import Constant, Uniform, XavierUniform
from optlab.nn.layer import Layer
from optlab.nn.layers.shown import Shown


class Identity(Layer):
    """Give the input, whatever the layer was made with.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.Identity()(ol.ones([2]))
    Tensor([1., 1.], dtype=float32)
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, x: Any) -> Any:
        """Give `x`."""
        return x


class Flatten(Shown):
    """Make one axis of several neighbouring ones.

    Parameters
    ----------
    start_axis, stop_axis : int
        The first and the last of them.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.Flatten()(ol.ones([2, 3, 4])).shape
    (2, 12)
    """

    def __init__(self, start_axis: int = 1, stop_axis: int = -1) -> None:
        super().__init__(start_axis=start_axis, stop_axis=stop_axis)

    def forward(self, x: Any) -> Tensor:
        """Give `x` with fewer axes."""
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
        return as_tensor(x).reshape((*shape[:first], flat, *shape[last + 1 :]))


class Unflatten(Shown):
    """Make several axes of one.

    Parameters
    ----------
    axis : int
        Which axis.
    shape : list of int
        The lengths of the new ones; one of them may be -1, for what remains.
    name : str, optional
        Shown by ``repr``.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.Unflatten(1, [3, -1])(ol.ones([2, 12])).shape
    (2, 3, 4)
    """

    def __init__(self, axis: int, shape: Sequence[int], name: str | None = None) -> None:
        super().__init__(name, axis=axis, shape=list(shape))

    def forward(self, x: Any) -> Tensor:
        """Give `x` with more axes."""
        lengths = tuple(x.shape)
        at = self.axis % len(lengths)
        return as_tensor(x).reshape((*lengths[:at], *self.shape, *lengths[at + 1 :]))


def as_tensor(x: Any) -> Any:
    """Give a Tensor, of whole numbers too."""
    return x if isinstance(x, Tensor) else Tensor(np.asarray(x))


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


class Embedding(Layer):
    """Look up a vector for each whole number.

    Parameters
    ----------
    num_embeddings : int
        How many vectors; numbers are from 0 to num_embeddings - 1.
    embedding_dim : int
        Their length.
    padding_idx : int, optional
        A number that stands for nothing: its vector is 0 and gets no gradient.
    sparse : bool
        Whether the gradient is kept as the rows that were read.
    weight_attr : ParamAttr, str or Initializer, optional
        Settings of the table; by default it starts by Xavier's uniform rule.
    name : str, optional
        What the name of the parameter starts with.
    dtype : str or dtype
        Of the table.

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
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        sparse: bool = False,
        weight_attr: Any = None,
        name: str | None = None,
        *,
        dtype: Any = "float32",
    ) -> None:
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
        table = made(
            (num_embeddings, embedding_dim), weight_attr, "weight_attr", dtype, XavierUniform(),
            named(name, "weight"),
        )  # fmt: skip
        self.weight = needed(table, "Embedding", "weight_attr")
        if padding_idx is not None:
            start = self.weight.numpy()
            start[padding_idx] = 0.0
            self.weight.set_value(start)

    def forward(self, x: Any) -> Tensor:
        """Look up a vector for each number."""
        return functional.embedding(x, self.weight, self.padding_idx, self.sparse)

    def extra_repr(self) -> str:
        """Say the sizes."""
        shown = f"{self.num_embeddings}, {self.embedding_dim}"
        if self.padding_idx is not None:
            shown += f", padding_idx={self.padding_idx}"
        return f"{shown}, sparse=True" if self.sparse else shown


class Bilinear(Layer):
    r"""Give :math:`x_1^\top W_o\, x_2 + b_o` for each output o.

    Parameters
    ----------
    in1_features, in2_features, out_features : int
        Lengths of the inputs and of the output.
    weight_attr, bias_attr : ParamAttr, str, Initializer or bool, optional
        Settings of the parameters, of shapes [out, in1, in2] and [1, out], which start uniformly
        within 1 / sqrt(in1). ``bias_attr=False`` leaves the bias out.
    name : str, optional
        What the names of the parameters start with.
    dtype : str or dtype
        Of the parameters.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.Bilinear(2, 3, 4)(ol.ones([5, 2]), ol.ones([5, 3])).shape
    (5, 4)
    """

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        weight_attr: Any = None,
        bias_attr: Any = None,
        name: str | None = None,
        *,
        dtype: Any = "float32",
    ) -> None:
        super().__init__()
        self.in1_features, self.in2_features = in1_features, in2_features
        self.out_features = out_features
        bound = 1 / math.sqrt(in1_features)
        weight = made(
            (out_features, in1_features, in2_features), weight_attr, "weight_attr", dtype,
            Uniform(-bound, bound), named(name, "weight"),
        )  # fmt: skip
        self.weight = needed(weight, "Bilinear", "weight_attr")
        self.bias = made(
            (1, out_features), bias_attr, "bias_attr", dtype, Constant(0.0), named(name, "bias")
        )

    def forward(self, x1: Any, x2: Any) -> Tensor:
        """Give what is linear in both inputs."""
        return functional.bilinear(x1, x2, self.weight, self.bias)

    def extra_repr(self) -> str:
        """Say the sizes."""
        return f"{self.in1_features}, {self.in2_features}, {self.out_features}"


class CosineSimilarity(Shown):
    """Give the cosine of the angle between vectors.

    Parameters
    ----------
    axis : int
        Along which the vectors lie.
    eps : float
        The least product of lengths that is divided by.

    Examples
    --------
    >>> import optlab as ol
    >>> similarity = ol.nn.CosineSimilarity()
    >>> round(similarity(ol.to_tensor([[3.0, 4.0]]), ol.to_tensor([[4.0, 3.0]])).item(), 4)
    0.96
    """

    def __init__(self, axis: int = 1, eps: float = 1e-8) -> None:
        super().__init__(axis=axis, eps=eps)

    def forward(self, x1: Any, x2: Any) -> Tensor:
        """Give the cosine of the angle."""
        return functional.cosine_similarity(x1, x2, self.axis, self.eps)


class PairwiseDistance(Shown):
    """Give the distance of vectors along the last axis.

    Parameters
    ----------
    p : float
        Which norm.
    epsilon : float
        Added to the differences, so that equal vectors have a slope.
    keepdim : bool
        Keep the last axis, with length 1.
    name : str, optional
        Shown by ``repr``.

    Examples
    --------
    >>> import optlab as ol
    >>> round(ol.nn.PairwiseDistance()(ol.to_tensor([[3.0, 4.0]]), ol.zeros([1, 2])).item(), 4)
    5.0
    """

    def __init__(
        self,
        p: float = 2.0,
        epsilon: float = 1e-6,
        keepdim: bool = False,
        name: str | None = None,
    ) -> None:
        super().__init__(name, p=p, epsilon=epsilon, keepdim=keepdim)

    def forward(self, x: Any, y: Any) -> Tensor:
        """Give the distance."""
        return functional.pairwise_distance(x, y, self.p, self.epsilon, self.keepdim)
