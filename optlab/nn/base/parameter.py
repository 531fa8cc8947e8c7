"""Parameter, a Tensor that an optimizer updates."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from optlab.autograd.tape.nodes import leaf_for
from optlab.autograd.tensor.conversions import as_setting
from optlab.autograd.tensor.creation import DEFAULT_DTYPE, to_tensor
from optlab.autograd.tensor.tensor import Tensor
from optlab.backend.arrays import on_host
from optlab.backend.call_recorder import here
from optlab.nn.base.names import GeneratedName, UniqueName


class Parameter(Tensor):
    """A Tensor that an optimizer updates, with settings of its own.

    Parameters
    ----------
    data : array_like
        Initial value, copied; integers become float32.
    name : str, optional
        Its name, also in states and traces. By default `name` is a generated one, and states and
        traces use `structural_name`.
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

    A parameter of a layer has a unique name, as in Paddle; the model's name of it is another:

    >>> layer = ol.nn.Linear(3, 2)
    >>> layer.bias.name == f"{layer.full_name()}.b_0"
    True
    >>> [p.structural_name for p in layer.parameters()]
    ['weight', 'bias']
    """

    __slots__ = ("_generated", "_learning_rate", "_name", "_place", "_regularizer", "need_clip")

    def __init__(
        self, data: Any, name: str | None = None, trainable: bool = True,
        learning_rate: float = 1.0, regularizer: Any = None, need_clip: bool = True,
    ) -> None:  # fmt: skip
        array = to_tensor(data).data
        if array.dtype.kind in "iub":
            array = array.astype(DEFAULT_DTYPE)
        super().__init__(array)
        node = leaf_for(array)
        if trainable:
            self.node = node
        generated = name if isinstance(name, GeneratedName) else None
        self._generated = generated or UniqueName("parameter").of_parameter()
        self._place: str | None = None
        self.name = None if generated else name
        self.learning_rate = learning_rate
        self.regularizer = regularizer
        self.need_clip = need_clip

    @property
    def name(self) -> str:
        """The given name, else a generated one that is unique, such as ``"linear_0.w_0"``.

        Predicates such as ``exclude_from_weight_decay_fn`` of `Lamb` tell parameters apart by it.
        """
        return self._name or str(self._generated)

    @name.setter
    def name(self, name: str | None) -> None:
        self._name = None if name == str(self._generated) else name  # p.name = p.name
        self._label_node()

    @property
    def structural_name(self) -> str | None:
        """The name in states and traces: the given one, else the qualified name in a model.

        That is the name in the model whose `parameters` listed it first, such as ``"body.0.bias"``;
        None before.
        """
        return self._name or self._place

    @structural_name.setter
    def structural_name(self, place: str | None) -> None:
        self._place = place
        self._label_node()

    def _label_node(self) -> None:
        if self.node is not None:
            self.node.name = self.structural_name

    @property
    def learning_rate(self) -> float:
        """Factor of the optimizer's learning rate."""
        return self._learning_rate

    @learning_rate.setter
    def learning_rate(self, value: float) -> None:
        rate = as_setting(value, "learning_rate")
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
        self._label_node()

    def numpy(self) -> np.ndarray:
        """Return a copy of the values: an optimizer overwrites the array itself."""
        if here.recorder is not None:
            return here.recorder.as_array(self)  # type: ignore[no-any-return]
        return np.array(on_host(self.data))

    def __repr__(self) -> str:
        body = super().__repr__().removeprefix(f"{type(self).__name__}(").rpartition(", dtype=")[0]
        body = body.replace("\n", "\n    ")  # the name of this class is longer than Tensor's
        name = self.structural_name
        label = f" {name!r}" if name else ""
        return f"Parameter{label} ({body}, dtype={self.dtype}, requires_grad={self.trainable})"
