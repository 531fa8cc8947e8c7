"""Buffers of layers, restored after a run that must leave no trace."""

from __future__ import annotations

from typing import Any

from optlab.autograd.tensor import in_place
from optlab.autograd.tensor.tensor import raw
from optlab.backend.arrays import copied
from optlab.nn.base.parameter import Parameter


class Buffers:
    """Buffers of layers, with the values that they had when they were recorded.

    Parameters
    ----------
    writer : str
        Name of the caller, for the error if the backward pass still needs an overwritten value.

    Examples
    --------
    >>> import optlab as ol
    >>> norm = ol.nn.BatchNorm1D(2)
    >>> buffers = Buffers("example")
    >>> buffers.record(norm)
    >>> _ = norm(ol.to_tensor([[0.0, 4.0], [8.0, 4.0]]))
    >>> buffers.restore()
    >>> [buffer.tolist() for buffer in norm.buffers()]
    [[0.0, 0.0], [1.0, 1.0]]
    """

    def __init__(self, writer: str) -> None:
        self._writer = writer
        self._known: dict[tuple[int, str], tuple[Any, str, Any, Any]] = {}

    def record(self, layer: Any) -> None:
        """Record the buffers of a layer and its sublayers, each one once."""
        for part in layer.sublayers(include_self=True):
            for name, buffer in part._own_buffers():
                if (id(part), name) not in self._known:
                    self._known[id(part), name] = part, name, buffer, copied(buffer.data)

    def state(self) -> dict[str, Any]:
        """Return the current values by name."""
        return {
            f"the buffer {name} of {type(part).__name__} ({i})": raw(getattr(part, name))
            for i, (part, name, _, _) in enumerate(self._known.values())
        }

    def restore(self) -> None:
        """Restore the buffers, whether they were replaced or overwritten."""
        for part, name, buffer, values in self._known.values():
            setattr(part, name, buffer)
            overwrite(buffer, values, self._writer)


def overwrite(tensor: Any, values: Any, writer: str) -> None:
    """Write values to a Tensor, unless it holds the same bits already."""
    if tensor.data.shape == values.shape and tensor.data.tobytes() == values.tobytes():
        return
    if isinstance(tensor, Parameter):
        tensor.set_value(values)
    else:
        in_place.overwrite(tensor, values, writer)
