"""Initializers of parameters.

An initializer is called with a shape and a dtype and returns an array. The fans, the numbers of
inputs and outputs of a weight, follow from its shape: [in, out], or [out, in, ...] of a
convolution, whose kernel size multiplies both.
"""

from optlab.backend.foreign_arguments import hint as _hint
from optlab.backend.namespaces import set_module as _set_module
from optlab.backend.wrong_arguments import explain_all as _explain_all
from optlab.nn.initializer.fans import (
    KaimingNormal,
    KaimingUniform,
    XavierNormal,
    XavierUniform,
    calculate_gain,
)
from optlab.nn.initializer.laws import (
    Assign,
    Constant,
    Initializer,
    Normal,
    TruncatedNormal,
    Uniform,
)
from optlab.nn.initializer.patterns import Bilinear, Dirac, Orthogonal

__all__ = [
    "Assign", "Bilinear", "Constant", "Dirac", "Initializer", "KaimingNormal", "KaimingUniform",
    "Normal", "Orthogonal", "TruncatedNormal", "Uniform", "XavierNormal", "XavierUniform",
    "calculate_gain",
]  # fmt: skip

_explain_all(globals(), _hint)
_set_module(__name__)


def __dir__() -> list[str]:
    return __all__
