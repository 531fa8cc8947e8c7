"""Recurrent cells, one step of a recurrent network."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from optlab.autograd.tape.half_precision import HALVES, halves
from optlab.autograd.tensor.tensor import Tensor, apply, apply_several, raw
from optlab.backend.arrays import zeros_beside
from optlab.nn.base.layer import Layer
from optlab.nn.base.param_attr import parameter_name, require_parameter
from optlab.nn.base.parameter import Parameter
from optlab.nn.docstrings import inherit_docstring
from optlab.nn.functional.activation.rectifiers import relu
from optlab.nn.functional.affine import linear
from optlab.nn.functional.recurrent import GRU_STEP, LSTM, LSTM_STEP
from optlab.nn.initializer import Uniform


class RNNCellBase(Layer):
    """Base class of recurrent cells, with their initial states.

    A subclass sets ``state_shape``, the shape of its state without the batch axis (or a tuple of
    shapes, for several states), and defines ``forward(inputs, states)``, which returns the output
    and the new states.

    Examples
    --------
    >>> import optlab as ol
    >>> class Sum(ol.nn.RNNCellBase):
    ...     state_shape = (1,)
    ...     def forward(self, inputs, states):
    ...         states = inputs + states
    ...         return states, states
    >>> y, last = ol.nn.RNN(Sum())(ol.ones([1, 3, 1]))
    >>> y.ravel()
    Tensor([1., 2., 3.], dtype=float32)
    """

    state_shape: Any

    def get_initial_states(
        self, batch_ref: Any, shape: Any = None, dtype: Any = None, init_value: float = 0.0,
        batch_dim_idx: int = 0,
    ) -> Any:  # fmt: skip
        """Return initial states.

        Parameters
        ----------
        batch_ref : Tensor
            Tensor whose axis `batch_dim_idx` has the length of the batch.
        shape : tuple of int, or tuple of such, optional
            Shape without the batch axis; by default ``state_shape``.
        dtype : str or dtype, optional
            By default that of `batch_ref`.
        init_value : float
        batch_dim_idx : int

        Returns
        -------
        Tensor or tuple of Tensors
        """
        shape = self.state_shape if shape is None else shape
        if shape and isinstance(shape[0], (tuple, list)):
            return tuple(
                self.get_initial_states(batch_ref, one, dtype, init_value, batch_dim_idx)
                for one in shape
            )
        full = (batch_ref.shape[batch_dim_idx], *shape)
        start = zeros_beside(raw(batch_ref), full) + init_value
        return Tensor(start.astype(batch_ref.dtype if dtype is None else dtype))


class Gated(RNNCellBase):
    """Base class of cells whose gates are affine functions of input and state.

    Parameters
    ----------
    input_size, hidden_size : int
        Lengths of the last axis of input and state.
    weight_ih_attr, weight_hh_attr : ParamAttr, str or Initializer, optional
        Settings of the weights, of shapes [gates * hidden, input] and [gates * hidden, hidden] for
        1 gate, 3 of a GRU and 4 of an LSTM. By default all parameters are uniform within
        1 / sqrt(hidden).
    bias_ih_attr, bias_hh_attr : ParamAttr, str, Initializer or bool, optional
        Settings of the biases; False omits one.
    name : str, optional
        Prefix of the parameter names.
    dtype : str or dtype
        Dtype of the parameters.
    """

    _gates = 1
    proj_size = 0

    def __init__(
        self, input_size: int, hidden_size: int, weight_ih_attr: Any = None,
        weight_hh_attr: Any = None, bias_ih_attr: Any = None, bias_hh_attr: Any = None,
        name: str | None = None, *, dtype: Any = "float32",
    ) -> None:  # fmt: skip
        super().__init__()
        kind = type(self).__name__
        for argument, size in (("input_size", input_size), ("hidden_size", hidden_size)):
            if not isinstance(size, (int, np.integer)) or size < 1:
                raise ValueError(f"{kind}: {argument} must be at least 1; got {size!r}.")
        proj_size = self.proj_size
        if not 0 <= proj_size < hidden_size:
            raise ValueError(
                f"{kind}: proj_size must be less than hidden_size={hidden_size}, or 0 for none; "
                f"got {proj_size!r}."
            )
        self.input_size, self.hidden_size = input_size, hidden_size
        self._start = Uniform(-1 / math.sqrt(hidden_size), 1 / math.sqrt(hidden_size))
        rows = self._gates * hidden_size
        shapes = {
            "weight_ih": (rows, input_size), "weight_hh": (rows, proj_size or hidden_size),
            "bias_ih": (rows,), "bias_hh": (rows,),
        }  # fmt: skip
        attrs = (weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr)
        for (role, shape), attr in zip(shapes.items(), attrs, strict=True):
            argument = f"{role}_attr"
            made = self._new_parameter(
                shape, attr, argument, dtype, self._start, parameter_name(name, role)
            )
            if role.startswith("weight"):
                made = require_parameter(made, kind, argument)
            setattr(self, role, made)

    weight_ih: Parameter
    weight_hh: Parameter
    bias_ih: Parameter | None
    bias_hh: Parameter | None

    @property
    def state_shape(self) -> Any:
        """Shape of the state, without the batch axis."""
        return (self.hidden_size,)

    def _project_input(self, inputs: Any, biased: bool = True) -> Tensor:
        """Apply the affine function of the inputs, to one step or to many."""
        if inputs.shape[-1:] != (self.input_size,):
            raise ValueError(
                f"{type(self).__name__} takes inputs whose last axis is {self.input_size} long; "
                f"got shape {inputs.shape}."
            )
        return linear(inputs, self.weight_ih.T, self.bias_ih if biased else None)

    def _project_state(self, hidden: Any, weight_hh_t: Any) -> Tensor:
        """Apply the affine function of the state, given the transpose of ``weight_hh``."""
        return linear(hidden, weight_hh_t, self.bias_hh)

    def _step(self, projected: Any, states: Any, weight_hh_t: Any) -> tuple[Any, Any]:
        """Return the output and the new states from the projected input."""
        raise NotImplementedError

    def _runs_at_once(self, inputs: Any, states: Any, batch: int) -> bool:
        """Return whether `_run_sequence` covers these inputs and initial states (None: zeros)."""
        return False

    def _run_sequence(
        self, projected: Any, states: Any, weight_hh_t: Any, time: int, backwards: bool
    ) -> Any:
        """Run all steps of axis `time` as one operation, given the inputs without their bias."""
        raise NotImplementedError

    def forward(self, inputs: Any, states: Any = None) -> tuple[Any, Any]:
        """Return the output and the new states; initial states are by default 0."""
        projected = self._project_input(inputs)
        states = self.get_initial_states(projected) if states is None else states
        return self._step(projected, states, self.weight_hh.T)

    def extra_repr(self) -> str:
        """Return the sizes."""
        return f"{self.input_size}, {self.hidden_size}"


@inherit_docstring
class SimpleRNNCell(Gated):
    r"""Apply a simple recurrent cell: :math:`h' = \tanh(W_{ih} x + b_{ih} + W_{hh} h + b_{hh})`.

    Parameters
    ----------
    activation : {'tanh', 'relu'}

    Examples
    --------
    >>> import optlab as ol
    >>> y, h = ol.nn.SimpleRNNCell(3, 4)(ol.ones([2, 3]))
    >>> y.shape, h.shape
    ((2, 4), (2, 4))
    """

    def __init__(
        self, input_size: int, hidden_size: int, activation: str = "tanh",
        weight_ih_attr: Any = None, weight_hh_attr: Any = None, bias_ih_attr: Any = None,
        bias_hh_attr: Any = None, name: str | None = None, *, dtype: Any = "float32",
    ) -> None:  # fmt: skip
        if activation not in ("tanh", "relu"):
            raise ValueError(
                f"{type(self).__name__} takes activation='tanh' or 'relu'; got {activation!r}."
            )
        super().__init__(
            input_size, hidden_size, weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr,
            name, dtype=dtype,
        )  # fmt: skip
        self.activation = activation

    def _step(self, projected: Any, states: Any, weight_hh_t: Any) -> tuple[Any, Any]:
        """Return the output and the new state."""
        total = projected + self._project_state(states, weight_hh_t)
        h = np.tanh(total) if self.activation == "tanh" else relu(total)
        return h, h


@inherit_docstring
class LSTMCell(Gated):
    r"""Apply a cell of long short-term memory (LSTM).

    .. math::
        i, f, u, o = W_{ih} x + b_{ih} + W_{hh} h + b_{hh} \\
        c' = \sigma(f) c + \sigma(i) \tanh(u), \quad h' = \sigma(o) \tanh(c')

    Parameters
    ----------
    proj_size : int
        If not 0, h' is multiplied by ``weight_ho``, of shape [hidden, proj_size].

    Notes
    -----
    The states are the pair (h, c). Source: Hochreiter and Schmidhuber 1997, Gers et al. 2000.

    Examples
    --------
    >>> import optlab as ol
    >>> y, (h, c) = ol.nn.LSTMCell(3, 4)(ol.ones([2, 3]))
    >>> y.shape, h.shape, c.shape
    ((2, 4), (2, 4), (2, 4))
    """

    _gates = 4

    def __init__(
        self, input_size: int, hidden_size: int, weight_ih_attr: Any = None,
        weight_hh_attr: Any = None, bias_ih_attr: Any = None, bias_hh_attr: Any = None,
        proj_size: int = 0, name: str | None = None, *, dtype: Any = "float32",
    ) -> None:  # fmt: skip
        self.proj_size = proj_size
        super().__init__(
            input_size, hidden_size, weight_ih_attr, weight_hh_attr, bias_ih_attr, bias_hh_attr,
            name, dtype=dtype,
        )  # fmt: skip
        if proj_size:
            self.weight_ho = self._new_parameter(
                (hidden_size, proj_size), weight_hh_attr, "weight_hh_attr", dtype, self._start,
                parameter_name(name, "weight_ho"),
            )  # fmt: skip

    @property
    def state_shape(self) -> Any:
        """Shapes of h and c, without the batch axis."""
        return ((self.proj_size or self.hidden_size,), (self.hidden_size,))

    def _step(self, projected: Any, states: Any, weight_hh_t: Any) -> tuple[Any, Any]:
        """Return the output and the new pair of states."""
        hidden, cell = states
        h, c = apply_several(
            LSTM_STEP, (projected + self._project_state(hidden, weight_hh_t), cell)
        )
        if self.proj_size:
            h = h @ self.weight_ho
        return h, (h, c)

    def _runs_at_once(self, inputs: Any, states: Any, batch: int) -> bool:
        """Return whether `_run_sequence` covers these inputs and initial states (None: zeros)."""
        if self.proj_size or type(self) is not LSTMCell or self.bias_hh is None:
            return False
        dtype = self.weight_hh.dtype
        if halves.policy is not None or dtype in HALVES:
            return False  # `auto_cast` applies to each product; 16 bits round after each step
        given = [self.weight_ih, self.weight_hh, self.bias_hh, *(states or ())]
        if self.bias_ih is not None:
            given.append(self.bias_ih)
        if any(type(raw(x)) is not np.ndarray or x.dtype != dtype for x in given):
            return False
        shape = batch, self.hidden_size
        return type(raw(inputs)) is np.ndarray and all(x.shape == shape for x in states or ())

    def _run_sequence(
        self, projected: Any, states: Any, weight_hh_t: Any, time: int, backwards: bool
    ) -> Any:
        """Run all steps of axis `time` as one operation, given the inputs without their bias."""
        # One bias for both products: a pass over all gates less.
        bias = self.bias_hh if self.bias_ih is None else self.bias_ih + self.bias_hh
        static = {"time": time, "backwards": backwards}
        y, cells, _ = apply_several(LSTM, (projected, weight_hh_t, bias, *states), static)
        last = 0 if backwards else -1
        return y, (y[:, last] if time else y[last], cells[last])


@inherit_docstring
class GRUCell(Gated):
    r"""Apply a gated recurrent unit (GRU).

    .. math::
        r = \sigma(x_r + h_r), \quad z = \sigma(x_z + h_z), \quad
        u = \tanh(x_u + r\, h_u), \quad h' = z h + (1 - z) u

    where x with its indices is :math:`W_{ih} x + b_{ih}`, and h is :math:`W_{hh} h + b_{hh}`.

    Notes
    -----
    Source: Cho et al. 2014.

    Examples
    --------
    >>> import optlab as ol
    >>> y, h = ol.nn.GRUCell(3, 4)(ol.ones([2, 3]))
    >>> y.shape, h.shape
    ((2, 4), (2, 4))
    """

    _gates = 3

    def _step(self, projected: Any, states: Any, weight_hh_t: Any) -> tuple[Any, Any]:
        """Return the output and the new state."""
        h = apply(GRU_STEP, (projected, self._project_state(states, weight_hh_t), states))
        return h, h
