"""Buffers of layers, put back as they were when a run must leave no trace."""

from __future__ import annotations

from typing import Any

from optlab.autograd.tensor import in_place
from optlab.autograd.tensor.tensor import raw
from optlab.backend.arrays import copied
from optlab.nn.base.parameter import Parameter


class Buffers:
    """The buffers of some layers as they were when they were met.

    Parameters
    ----------
    writer : str
        Who puts them back: what an error says if backward still needs what is written over.

    Examples
    --------
    >>> import optlab as ol
    >>> norm = ol.nn.BatchNorm1D(2)
    >>> buffers = Buffers("nobody")
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
        """Take note of the buffers of a layer and of those inside, the first time they are met."""
        for part in layer.sublayers(include_self=True):
            for name, buffer in part._own_buffers():
                if (id(part), name) not in self._known:
                    self._known[id(part), name] = part, name, buffer, copied(buffer.data)

    def state(self) -> dict[str, Any]:
        """Give what they are now, by name."""
        return {
            f"the buffer {name} of {type(part).__name__} ({i})": raw(getattr(part, name))
            for i, (part, name, _, _) in enumerate(self._known.values())
        }

    def restore(self) -> None:
        """Put back what was there, whether it was replaced or written over."""
        for part, name, buffer, values in self._known.values():
            setattr(part, name, buffer)
            overwrite(buffer, values, self._writer)


def overwrite(tensor: Any, values: Any, writer: str) -> None:
    """Write the values that a Tensor had, where it has others."""
    if tensor.data.shape == values.shape and tensor.data.tobytes() == values.tobytes():
        return
    if isinstance(tensor, Parameter):
        tensor.set_value(values)
    else:
        in_place.overwrite(tensor, values, writer)
