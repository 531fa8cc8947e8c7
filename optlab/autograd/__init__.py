"""Floor 1: Tensor, tape, derivative rules, functional derivatives and the gradient check."""

from optlab.autograd.anomaly import AnomalyError, detect_anomaly
from optlab.autograd.check import check_grad
from optlab.autograd.creation import arange, full, ones, to_tensor, zeros
from optlab.autograd.drawing import (
    bernoulli,
    multinomial,
    normal,
    poisson,
    rand,
    randint,
    randn,
    randperm,
    standard_normal,
    uniform,
)
from optlab.autograd.function import Function
from optlab.autograd.functional import grad, hessian, hvp, jacobian, jvp, value_and_grad, vjp
from optlab.autograd.mode import enable_grad, is_grad_enabled, no_grad
from optlab.autograd.operation import rule
from optlab.autograd.saving import saved_tensors_hooks
from optlab.autograd.sparse import RowSparse
from optlab.autograd.tensor import Tensor
from optlab.autograd.vmap import ensemble, members, vmap

__all__ = [
    "AnomalyError", "Function", "RowSparse", "Tensor", "arange", "bernoulli", "check_grad",
    "detect_anomaly", "enable_grad", "ensemble", "full", "grad", "hessian", "hvp",
    "is_grad_enabled", "jacobian", "jvp", "members", "multinomial", "no_grad", "normal", "ones",
    "poisson", "rand", "randint", "randn", "randperm", "rule", "saved_tensors_hooks",
    "standard_normal", "to_tensor", "uniform", "value_and_grad", "vjp", "vmap", "zeros",
]  # fmt: skip
