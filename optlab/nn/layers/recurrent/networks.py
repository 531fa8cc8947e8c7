"""Multi-layer recurrent networks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from optlab.nn import functional
from optlab.nn.base.layer import Layer
from optlab.nn.base.param_attr import parameter_name
from optlab.nn.docstrings import documented_like, inherit_docstring
from optlab.nn.layers.containers import LayerList
from optlab.nn.layers.recurrent.cells import Gated, GRUCell, LSTMCell, SimpleRNNCell
from optlab.nn.layers.recurrent.rnn import checked_lengths, read_sequences, run_cell


def _stacked(states: Sequence[Any]) -> Any:
    # Of a single one, which most networks have, in half of the time.
    return np.stack(states) if len(states) > 1 else states[0][None]


@documented_like(Gated)
class _Recurrent(Layer):
    """Base class of recurrent networks: stacked cells, in one or in two directions.

    Parameters
    ----------
    num_layers : int
        Number of stacked layers.
    direction : {'forward', 'bidirect'}
        'bidirect': a second cell in each layer runs backward, and the outputs are concatenated.
    time_major : bool
        Whether sequences are [time, batch, ...] rather than [batch, time, ...].
    dropout : float
        Dropout probability between layers in training.
    weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr
        Settings of the parameters, as for the cell; they are named ``weight_ih_l0``,
        ``weight_ih_l0_reverse``, ``weight_ih_l1`` and so on.
    """

    _states = 1
    #: Makes a cell from its sizes and the settings of its parameters.
    _cell: Callable[..., Any]

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, direction: str = "forward",
        time_major: bool = False, dropout: float = 0.0, weight_ih_attr: Any = None,
        weight_hh_attr: Any = None, bias_ih_attr: Any = None, bias_hh_attr: Any = None,
        name: str | None = None, *, dtype: Any = "float32",
    ) -> None:  # fmt: skip
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
        cells: list[Any] = []
        for layer in range(num_layers):
            width = (cells[-1].proj_size or hidden_size) if cells else 0
            size = width * self.num_directions if layer else input_size
            for suffix in ("", "_reverse")[: self.num_directions]:
                place = f"l{layer}{suffix}"
                cell = self._cell(
                    size, hidden_size, weight_ih_attr=weight_ih_attr,
                    weight_hh_attr=weight_hh_attr, bias_ih_attr=bias_ih_attr,
                    bias_hh_attr=bias_hh_attr, name=parameter_name(name, place), dtype=dtype,
                )  # fmt: skip
                cells.append(cell)
                # Set before the cells, so that these are the first names of the parameters.
                for role, parameter in list(cell.named_parameters()):
                    setattr(self, f"{role}_{place}", parameter)
        self.cells = LayerList(cells)

    def forward(
        self, inputs: Any, initial_states: Any = None, sequence_length: Any = None
    ) -> tuple[Any, Any]:
        """Return the outputs of the last layer at all steps, and the last states of all layers.

        Parameters
        ----------
        inputs : Tensor, shape [batch, time, input_size]
            Or [time, batch, input_size] if `time_major`.
        initial_states : Tensor or pair of Tensors, optional
            h, or (h, c) of an LSTM, of shape [layers * directions, batch, hidden_size]; by default
            0.
        sequence_length : array of integers, shape [batch], optional
            Length of each sequence: beyond it outputs are 0 and states stay.

        Returns
        -------
        tuple of (Tensor, Tensor or pair of Tensors)
        """
        kind = type(self).__name__
        x, time = read_sequences(inputs, self.time_major, kind)
        lengths = checked_lengths(sequence_length, x, time)
        starts = self._split_states(initial_states)
        last = []
        for layer in range(self.num_layers):
            if layer and self.dropout:
                x = functional.dropout(x, self.dropout, training=self.training)
            outputs = []
            for way in range(self.num_directions):
                cell = self.cells[layer * self.num_directions + way]
                y, states = run_cell(cell, x, next(starts), lengths, time, way == 1)
                outputs.append(y)
                last.append(states)
            x = outputs[0] if len(outputs) == 1 else np.concatenate(outputs, axis=-1)
        if self._states == 1:
            return x, _stacked(last)
        return x, tuple(map(_stacked, zip(*last, strict=True)))

    def _split_states(self, states: Any) -> Iterator[Any]:
        """Return an iterator of the initial states of each cell."""
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
        """Return the sizes."""
        return (
            f"{self.input_size}, {self.hidden_size}, num_layers={self.num_layers}, "
            f"num_directions={self.num_directions}"
        )


@inherit_docstring
class SimpleRNN(_Recurrent):
    """Apply a multi-layer `SimpleRNNCell` to sequences.

    Parameters
    ----------
    activation : {'tanh', 'relu'}

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
        self, input_size: int, hidden_size: int, num_layers: int = 1, direction: str = "forward",
        time_major: bool = False, dropout: float = 0.0, activation: str = "tanh",
        weight_ih_attr: Any = None, weight_hh_attr: Any = None, bias_ih_attr: Any = None,
        bias_hh_attr: Any = None, name: str | None = None, *, dtype: Any = "float32",
    ) -> None:  # fmt: skip
        self._cell = partial(SimpleRNNCell, activation=activation)
        super().__init__(
            input_size, hidden_size, num_layers, direction, time_major, dropout, weight_ih_attr,
            weight_hh_attr, bias_ih_attr, bias_hh_attr, name, dtype=dtype,
        )  # fmt: skip


@inherit_docstring
class LSTM(_Recurrent):
    """Apply a multi-layer `LSTMCell` to sequences.

    Parameters
    ----------
    proj_size : int
        If not 0, outputs are multiplied by ``weight_ho``, of shape [hidden_size, proj_size].

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
        self, input_size: int, hidden_size: int, num_layers: int = 1, direction: str = "forward",
        time_major: bool = False, dropout: float = 0.0, weight_ih_attr: Any = None,
        weight_hh_attr: Any = None, bias_ih_attr: Any = None, bias_hh_attr: Any = None,
        proj_size: int = 0, name: str | None = None, *, dtype: Any = "float32",
    ) -> None:  # fmt: skip
        self._cell = partial(LSTMCell, proj_size=proj_size)
        super().__init__(
            input_size, hidden_size, num_layers, direction, time_major, dropout, weight_ih_attr,
            weight_hh_attr, bias_ih_attr, bias_hh_attr, name, dtype=dtype,
        )  # fmt: skip


@inherit_docstring
class GRU(_Recurrent):
    """Apply a multi-layer `GRUCell` to sequences.

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

    _cell = GRUCell
