"""Floor 3, neural networks: layers, losses, parameters, initializers and gradient clipping."""

from optlab.backend.foreign_arguments import hint as _hint
from optlab.backend.namespaces import missing as _missing
from optlab.backend.namespaces import set_module as _set_module
from optlab.backend.wrong_arguments import explain_all as _explain_all
from optlab.nn import functional, initializer, layers, loss, utils
from optlab.nn.base.functional_call import functional_call
from optlab.nn.base.layer import Layer
from optlab.nn.base.param_attr import ParamAttr, create_parameter
from optlab.nn.base.parameter import Parameter
from optlab.nn.clip import ClipGradByGlobalNorm, ClipGradByNorm, ClipGradByValue
from optlab.nn.layers import *  # noqa: F403  (its __all__ says what)

__all__ = [
    "ClipGradByGlobalNorm", "ClipGradByNorm", "ClipGradByValue", "Layer", "ParamAttr", "Parameter",
    "create_parameter", "functional", "functional_call", "initializer", "loss", "utils",
]  # fmt: skip
__all__ += layers.__all__

_explain_all(globals(), _hint)
_set_module(__name__)


def __getattr__(name: str) -> object:
    raise _missing("optlab.nn", name, __all__)


def __dir__() -> list[str]:
    return __all__
