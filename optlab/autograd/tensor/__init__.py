"""`Tensor`: its operators, methods, conversions, creation and in-place writes."""

from optlab.autograd.tape.apply import apply, apply_several
from optlab.autograd.tape.base import raw
from optlab.autograd.tensor.conversions import SilentDetachError
from optlab.autograd.tensor.tensor import Tensor

__all__ = ["SilentDetachError", "Tensor", "apply", "apply_several", "raw"]
