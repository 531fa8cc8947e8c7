"""Recurrent networks: cells that go along sequences."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from optlab.nn import functional
from optlab.nn.attributes import named
from optlab.nn.containers import LayerList
from optlab.nn.layer import Layer
from optlab.nn.layers.recurrent_cell import GRUCell, LSTMCell, SimpleRNNCell
from optlab.nn.layers.sequence import along, checked_lengths, sequences


class _Recurrent(Layer):
    """Several cells above each other, in one or in two directions."""

    _states = 1

    def __init__(
        self,
        cells: Any,
        input_size: int,
        hidden_size: int,
        num_layers: int,
        direction: str,
        time_major: bool,
        dropout: float,
        name: str | None,
        width: int,
    ) -> None:
        super().__init__()
        kind = type(self).__name__
        if direction not in ("forward", "bidirect", "bidirectional"):
            raise ValueError(
                f"{kind} takes direction='forward' or 'bidirect'; got {direction!r}. To go "
                "backwards alone, use RNN(cell, is_reverse=True)."
            )
        if num_layers < 1:
            raise ValueError(f"{kind} has at least 1 layer; got num_layers={num_layers!r}.")
        self.input_size, self.hidden_size, self.num_layers = input_size, hidden_size, num_layers
        self.num_directions = 1 if direction == "forward" else 2
        self.time_major, self.dropout = time_major, dropout
        made = []
        for layer in range(num_layers):
            size = input_size if layer == 0 else width * self.num_directions
            for suffix in ("", "_reverse")[: self.num_directions]:
                place = f"l{layer}{suffix}"
                cell = cells(size, hidden_size, name=named(name, place))
                made.append(cell)
                # Before the cells, so that parameters are named by these.
                for role, parameter in list(cell.named_parameters()):
                    setattr(self, f"{role}_{place}", parameter)
        self.cells = LayerList(made)

    def forward(
        self, inputs: Any, initial_states: Any = None, sequence_length: Any = None
    ) -> tuple[Any, Any]:
        """Give the outputs of the last layer at all steps, and the last states of all layers.

        Parameters
        ----------
        inputs : Tensor, shape [batch, time, input_size]
            Or [time, batch, input_size] where `time_major` is set.
        initial_states : Tensor or pair of Tensors, optional
            Of shape [layers * directions, batch, hidden_size]: h, or (h, c) for LSTM; by default 0.
        sequence_length : array of integers, shape [batch], optional
            How long each sequence is: afterwards outputs are 0 and states stay.
        """
        kind = type(self).__name__
        x, time = sequences(inputs, self.time_major, kind)
        lengths = checked_lengths(sequence_length, x, time)
        starts = self._separate(initial_states)
        last = []
        for layer in range(self.num_layers):
            if layer and self.dropout:
                x = functional.dropout(x, self.dropout, training=self.training)
            outputs = []
            for way in range(self.num_directions):
                cell = self.cells[layer * self.num_directions + way]
                y, states = along(cell, x, next(starts), lengths, time, way == 1)
                outputs.append(y)
                last.append(states)
            x = outputs[0] if len(outputs) == 1 else np.concatenate(outputs, axis=-1)
        if self._states == 1:
            return x, np.stack(last)
        return x, tuple(np.stack(parts) for parts in zip(*last, strict=True))

    def _separate(self, states: Any) -> Iterator[Any]:
        """Give the states that each cell starts with."""
        count = len(self.cells)
        if states is None:
            return iter([None] * count)
        parts = [states] if self._states == 1 else list(states)
        if len(parts) != self._states or any(part.shape[0] != count for part in parts):
            what = "h" if self._states == 1 else "the pair (h, c), each"
            raise ValueError(
                f"{type(self).__name__}: initial_states is {what} of shape [{count}, batch, "
                f"{self.hidden_size}]; got {[part.shape for part in parts]}."
            )
        if self._states == 1:
            return iter([parts[0][i] for i in range(count)])
        return iter([tuple(part[i] for part in parts) for i in range(count)])

    def extra_repr(self) -> str:
        """Say the sizes."""
        return (
            f"{self.input_size}, {self.hidden_size}, num_layers={self.num_layers}, "
            f"num_directions={self.num_directions}"
        )


class SimpleRNN(_Recurrent):
    """Recurrent networks of `SimpleRNNCell`.

    Parameters
    ----------
    input_size, hidden_size : int
        Lengths of the last axis of input and state.
    num_layers : int
        How many cells stand above each other.
    direction : {'forward', 'bidirect'}
        'bidirect': a second cell in each layer goes backwards, and the outputs are joined.
    time_major : bool
        Whether sequences are [time, batch, ...] rather than [batch, time, ...].
    dropout : float
        The probability of elements to be dropped between layers in training.
    activation : {'tanh', 'relu'}
    weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr
        Settings of the parameters, as in `SimpleRNNCell`; they are ``weight_ih_l0``,
        ``weight_ih_l0_reverse``, ``weight_ih_l1`` and so on.
    name : str, optional
        What the names of the parameters start with.
    dtype : str or dtype
        Of the parameters.

    See Also
    --------
    optlab.nn.SimpleRNNCell : the formula.

    Examples
    --------
    >>> import optlab as ol
    >>> y, h = ol.nn.SimpleRNN(3, 4, num_layers=2, direction="bidirect")(ol.ones([2, 5, 3]))
    >>> y.shape, h.shape
    ((2, 5, 8), (4, 2, 4))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        direction: str = "forward",
        time_major: bool = False,
        dropout: float = 0.0,
        activation: str = "tanh",
        weight_ih_attr: Any = None,
        weight_hh_attr: Any = None,
        bias_ih_attr: Any = None,
        bias_hh_attr: Any = None,
        name: str | None = None,
        *,
        dtype: Any = "float32",
    ) -> None:
        settings: dict[str, Any] = {
            "weight_ih_attr": weight_ih_attr, "weight_hh_attr": weight_hh_attr,
            "bias_ih_attr": bias_ih_attr, "bias_hh_attr": bias_hh_attr, "dtype": dtype,
            "activation": activation,
        }  # fmt: skip
        super().__init__(
            partial(SimpleRNNCell, **settings), input_size, hidden_size, num_layers, direction,
            time_major, dropout, name, hidden_size,
        )  # fmt: skip


class LSTM(_Recurrent):
    """Recurrent networks of `LSTMCell`.

    Parameters
    ----------
    input_size, hidden_size : int
        Lengths of the last axis of input and state.
    num_layers : int
        How many cells stand above each other.
    direction : {'forward', 'bidirect'}
        'bidirect': a second cell in each layer goes backwards, and the outputs are joined.
    time_major : bool
        Whether sequences are [time, batch, ...] rather than [batch, time, ...].
    dropout : float
        The probability of elements to be dropped between layers in training.
    weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr
        Settings of the parameters, as in `LSTMCell`; they are ``weight_ih_l0``,
        ``weight_ih_l0_reverse``, ``weight_ih_l1`` and so on.
    proj_size : int
        If not 0: outputs are multiplied with ``weight_ho``, of shape [hidden_size, proj_size].
    name : str, optional
        What the names of the parameters start with.
    dtype : str or dtype
        Of the parameters.

    See Also
    --------
    optlab.nn.LSTMCell : the formula.

    Examples
    --------
    >>> import optlab as ol
    >>> y, (h, c) = ol.nn.LSTM(3, 4, num_layers=2, direction="bidirect")(ol.ones([2, 5, 3]))
    >>> y.shape, h.shape
    ((2, 5, 8), (4, 2, 4))
    """

    _states = 2

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        direction: str = "forward",
        time_major: bool = False,
        dropout: float = 0.0,
        weight_ih_attr: Any = None,
        weight_hh_attr: Any = None,
        bias_ih_attr: Any = None,
        bias_hh_attr: Any = None,
        proj_size: int = 0,
        name: str | None = None,
        *,
        dtype: Any = "float32",
    ) -> None:
        settings: dict[str, Any] = {
            "weight_ih_attr": weight_ih_attr, "weight_hh_attr": weight_hh_attr,
            "bias_ih_attr": bias_ih_attr, "bias_hh_attr": bias_hh_attr, "dtype": dtype,
            "proj_size": proj_size,
        }  # fmt: skip
        super().__init__(
            partial(LSTMCell, **settings), input_size, hidden_size, num_layers, direction,
            time_major, dropout, name, proj_size or hidden_size,
        )  # fmt: skip


class GRU(_Recurrent):
    """Recurrent networks of `GRUCell`.

    Parameters
    ----------
    input_size, hidden_size : int
        Lengths of the last axis of input and state.
    num_layers : int
        How many cells stand above each other.
    direction : {'forward', 'bidirect'}
        'bidirect': a second cell in each layer goes backwards, and the outputs are joined.
    time_major : bool
        Whether sequences are [time, batch, ...] rather than [batch, time, ...].
    dropout : float
        The probability of elements to be dropped between layers in training.
    weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr
        Settings of the parameters, as in `GRUCell`; they are ``weight_ih_l0``,
        ``weight_ih_l0_reverse``, ``weight_ih_l1`` and so on.
    name : str, optional
        What the names of the parameters start with.
    dtype : str or dtype
        Of the parameters.

    See Also
    --------
    optlab.nn.GRUCell : the formula.

    Examples
    --------
    >>> import optlab as ol
    >>> y, h = ol.nn.GRU(3, 4, num_layers=2, direction="bidirect")(ol.ones([2, 5, 3]))
    >>> y.shape, h.shape
    ((2, 5, 8), (4, 2, 4))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        direction: str = "forward",
        time_major: bool = False,
        dropout: float = 0.0,
        weight_ih_attr: Any = None,
        weight_hh_attr: Any = None,
        bias_ih_attr: Any = None,
        bias_hh_attr: Any = None,
        name: str | None = None,
        *,
        dtype: Any = "float32",
    ) -> None:
        settings: dict[str, Any] = {
            "weight_ih_attr": weight_ih_attr, "weight_hh_attr": weight_hh_attr,
            "bias_ih_attr": bias_ih_attr, "bias_hh_attr": bias_hh_attr, "dtype": dtype,
        }  # fmt: skip
        super().__init__(
            partial(GRUCell, **settings), input_size, hidden_size, num_layers, direction,
            time_major, dropout, name, hidden_size,
        )  # fmt: skip
