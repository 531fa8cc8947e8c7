"""The buffers of a call that changes nothing: what is written to them is dropped with the call."""

from __future__ import annotations

from typing import Any

from optlab.autograd.tensor.tensor import Tensor


class PrivateBuffer(Tensor):
    """A buffer that belongs to one call of a layer, see `functional_call`.

    Members of an ensemble may each have a value of their own, as nothing outlives the call.
    """

    __slots__ = ()

    def replace(self, values: Any) -> None:
        """Take over new values, which may be those of an ensemble."""
        self.data, self.node = values, None
