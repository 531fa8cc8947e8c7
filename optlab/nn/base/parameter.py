"""Parameter, a Tensor that an optimizer updates."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from optlab.autograd.tape.nodes import leaf_for
from optlab.autograd.tensor.creation import DEFAULT_DTYPE, to_tensor
from optlab.autograd.tensor.tensor import Tensor
from optlab.backend.arrays import as_float, on_host


class Parameter(Tensor):
    """A Tensor that an optimizer updates, with settings of its own.

    Parameters
    ----------
    data : array_like
        Initial value, copied; integers become float32.
    name : str, optional
        Name in traces and errors. A layer names its parameters by their attributes.
    trainable : bool
        Whether it collects a gradient and is updated.
    learning_rate : float
        Factor of the optimizer's learning rate.
    regularizer : L1Decay or L2Decay, optional
        Regularizer in place of the optimizer's.
    need_clip : bool
        Whether gradient clipping includes it.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.Parameter([1.0, 2.0], name="w")
    Parameter 'w' ([1., 2.], dtype=float32, requires_grad=True)
    """

    __slots__ = ("_learning_rate", "_name", "_regularizer", "need_clip")

    def __init__(
        self, data: Any, name: str | None = None, trainable: bool = True,
        learning_rate: float = 1.0, regularizer: Any = None, need_clip: bool = True,
    ) -> None:  # fmt: skip
        array = to_tensor(data).data
        if array.dtype.kind in "iub":
            array = array.astype(DEFAULT_DTYPE)
        super().__init__(array)
        node = leaf_for(array)
        node.name = name
        if trainable:
            self.node = node
        self.name = name
        self.learning_rate = learning_rate
        self.regularizer = regularizer
        self.need_clip = need_clip

    @property
    def name(self) -> str | None:
        """Name in traces and errors."""
        return self._name

    @name.setter
    def name(self, name: str | None) -> None:
        self._name = name
        if self.node is not None:
            self.node.name = name

    @property
    def learning_rate(self) -> float:
        """Factor of the optimizer's learning rate."""
        return self._learning_rate

    @learning_rate.setter
    def learning_rate(self, value: float) -> None:
        rate = as_float(value, "learning_rate")
        if not 0 <= rate < math.inf:
            raise ValueError(
                f"a parameter's learning_rate must be finite and at least 0; got {rate!r}."
            )
        self._learning_rate = rate

    @property
    def regularizer(self) -> Any:
        """Regularizer in place of the optimizer's, or None."""
        return self._regularizer

    @regularizer.setter
    def regularizer(self, value: Any) -> None:
        if value is not None and (isinstance(value, type) or not hasattr(value, "add_to")):
            raise TypeError(
                "a parameter's regularizer is optlab.regularizer.L1Decay(c) or L2Decay(c); got "
                f"{value!r}."
            )
        self._regularizer = value

    @property
    def trainable(self) -> bool:
        """Whether it collects a gradient and is updated."""
        return self.node is not None

    @trainable.setter
    def trainable(self, wanted: bool) -> None:
        self.requires_grad = wanted
        self.name = self._name

    def numpy(self) -> np.ndarray:
        """Return a copy of the values: an optimizer overwrites the array itself."""
        return np.array(on_host(self.data))

    def __repr__(self) -> str:
        body = super().__repr__().removeprefix(f"{type(self).__name__}(").rpartition(", dtype=")[0]
        body = body.replace("\n", "\n    ")  # the name of this class is longer than Tensor's
        label = f" {self.name!r}" if self.name else ""
        return f"Parameter{label} ({body}, dtype={self.dtype}, requires_grad={self.trainable})"
