"""Layers that run a recurrent cell over sequences."""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.tensor.tensor import raw
from optlab.nn.base.layer import Layer
from optlab.nn.functional.arguments import given_with, scores
from optlab.nn.layers.recurrent.cells import Gated


def _split_steps(x: Any, axis: int) -> list[Any]:
    """Split a sequence into its steps, as one operation."""
    shape = (*x.shape[:axis], *x.shape[axis + 1 :])
    return [part.reshape(shape) for part in np.split(x, x.shape[axis], axis=axis)]


def _select(running: Any, new: Any, old: Any) -> Any:
    """Return the new states of sequences that are still running, the old ones of the others."""
    if isinstance(new, (tuple, list)):
        return tuple(_select(running, a, b) for a, b in zip(new, old, strict=True))
    return np.where(running.reshape(-1, *[1] * (new.ndim - 1)), new, old)


def checked_lengths(given: Any, x: Any, time: int) -> Any:
    """Return the lengths of sequences as an array on the device of x; None if none are given."""
    if given is None:
        return None
    found = given_with(raw(x), given, "sequence_length")
    if found.shape != (x.shape[1 - time],) or found.dtype.kind not in "iu":
        raise ValueError(
            f"sequence_length is one whole number for each of the {x.shape[1 - time]} sequences; "
            f"got {given!r}."
        )
    return found


def run_cell(
    cell: Any, x: Any, states: Any, lengths: Any, time: int, backwards: bool
) -> tuple[Any, Any]:
    """Run a cell along axis `time` of x; return the stacked outputs and the last states."""
    own = isinstance(cell, Gated) and type(cell).forward is Gated.forward and cell._hooks is None
    at_once = own and lengths is None and cell._runs_at_once(x, states, x.shape[1 - time])
    if own:  # the inputs of all steps are projected by one product
        x, weight_hh_t = cell._project_input(x, not at_once), cell.weight_hh.T
    if states is None:
        if not hasattr(cell, "get_initial_states"):
            raise TypeError(
                f"{type(cell).__name__} does not say what states to start with: give "
                "initial_states, or make it an RNNCellBase with state_shape."
            )
        states = cell.get_initial_states(x[:, 0] if time else x[0])
    if at_once:
        return cell._run_sequence(x, states, weight_hh_t, time, backwards)  # type: ignore[no-any-return]
    steps, outputs = _split_steps(x, time), []
    count = len(steps)
    for t in range(count - 1, -1, -1) if backwards else range(count):
        output, new = cell._step(steps[t], states, weight_hh_t) if own else cell(steps[t], states)
        if lengths is not None:
            running = lengths > t
            new = _select(running, new, states)
            output = _select(running, output, 0.0)
        states = new
        outputs.append(output)
    return np.stack(outputs[::-1] if backwards else outputs, axis=time), states


def read_sequences(inputs: Any, time_major: bool, who: str) -> tuple[Any, int]:
    """Return the inputs as a Tensor, and the time axis."""
    x = scores(inputs)
    time = 0 if time_major else 1
    if x.ndim < 3 or not x.shape[time]:
        wanted = "[time, batch, features]" if time_major else "[batch, time, features]"
        raise ValueError(f"{who} takes {wanted}, with at least one step; got shape {x.shape}.")
    return x, time


class RNN(Layer):
    """Run a cell over sequences.

    Parameters
    ----------
    cell : Layer
        Called with the inputs of a step and the states; returns the output and the new states.
    is_reverse : bool
        Whether to run from the last step to the first.
    time_major : bool
        Whether sequences are [time, batch, ...] rather than [batch, time, ...].

    Examples
    --------
    >>> import optlab as ol
    >>> y, h = ol.nn.RNN(ol.nn.GRUCell(3, 4))(ol.ones([2, 5, 3]))
    >>> y.shape, h.shape
    ((2, 5, 4), (2, 4))
    """

    def __init__(self, cell: Any, is_reverse: bool = False, time_major: bool = False) -> None:
        super().__init__()
        self.cell, self.is_reverse, self.time_major = cell, is_reverse, time_major

    def forward(
        self, inputs: Any, initial_states: Any = None, sequence_length: Any = None
    ) -> tuple[Any, Any]:
        """Return the outputs of all steps, and the last states.

        Parameters
        ----------
        inputs : Tensor, shape [batch, time, ...]
        initial_states : Tensor or tuple of Tensors, optional
            By default 0.
        sequence_length : array of integers, shape [batch], optional
            Length of each sequence: beyond it outputs are 0 and states stay.
        """
        x, time = read_sequences(inputs, self.time_major, "RNN")
        lengths = checked_lengths(sequence_length, x, time)
        return run_cell(self.cell, x, initial_states, lengths, time, self.is_reverse)


class BiRNN(Layer):
    """Run one cell forward and one backward over sequences, and concatenate their outputs.

    Parameters
    ----------
    cell_fw, cell_bw : Layer
    time_major : bool
        Whether sequences are [time, batch, ...] rather than [batch, time, ...].

    Examples
    --------
    >>> import optlab as ol
    >>> layer = ol.nn.BiRNN(ol.nn.GRUCell(3, 4), ol.nn.GRUCell(3, 4))
    >>> y, (forwards, backwards) = layer(ol.ones([2, 5, 3]))
    >>> y.shape, forwards.shape, backwards.shape
    ((2, 5, 8), (2, 4), (2, 4))
    """

    def __init__(self, cell_fw: Any, cell_bw: Any, time_major: bool = False) -> None:
        super().__init__()
        self.cell_fw, self.cell_bw, self.time_major = cell_fw, cell_bw, time_major

    def forward(
        self, inputs: Any, initial_states: Any = None, sequence_length: Any = None
    ) -> tuple[Any, Any]:
        """Return the outputs of all steps, and the pair of last states, see `RNN`."""
        x, time = read_sequences(inputs, self.time_major, "BiRNN")
        lengths = checked_lengths(sequence_length, x, time)
        one, two = (None, None) if initial_states is None else initial_states
        forth, last = run_cell(self.cell_fw, x, one, lengths, time, False)
        back, first = run_cell(self.cell_bw, x, two, lengths, time, True)
        return np.concatenate([forth, back], axis=-1), (last, first)
