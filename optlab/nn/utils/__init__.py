"""Utilities for parameters: in-place clipping, vectors, reparameterization, PyTorch weights."""

from optlab.backend.foreign_arguments import hint as _hint
from optlab.backend.namespaces import missing as _missing
from optlab.backend.wrong_arguments import explain_all as _explain_all
from optlab.nn.utils.clips import clip_grad_norm_, clip_grad_value_
from optlab.nn.utils.reparameterizations import remove_weight_norm, spectral_norm, weight_norm
from optlab.nn.utils.torch_weights import from_torch
from optlab.nn.utils.vectors import parameters_to_vector, vector_to_parameters

__all__ = [
    "clip_grad_norm_",
    "clip_grad_value_",
    "from_torch",
    "parameters_to_vector",
    "remove_weight_norm",
    "spectral_norm",
    "vector_to_parameters",
    "weight_norm",
]

_explain_all(globals(), _hint)


def __getattr__(name: str) -> object:
    raise _missing("optlab.nn.utils", name, __all__)


def __dir__() -> list[str]:
    return __all__
