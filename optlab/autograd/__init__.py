"""Floor 1: Tensor, tape, derivative rules, functional derivatives and the gradient check."""

from optlab.autograd.anomaly import AnomalyError, detect_anomaly
from optlab.autograd.check import check_grad
from optlab.autograd.creation import (
    arange,
    full,
    normal,
    ones,
    rand,
    randint,
    randn,
    to_tensor,
    uniform,
    zeros,
)  # fmt: skip
from optlab.autograd.function import Function
from optlab.autograd.functional import grad, hessian, hvp, jacobian, jvp, value_and_grad, vjp
from optlab.autograd.mode import enable_grad, is_grad_enabled, no_grad
from optlab.autograd.operation import rule
from optlab.autograd.saving import saved_tensors_hooks
from optlab.autograd.sparse import RowSparse
from optlab.autograd.tensor import Tensor

__all__ = [
    "AnomalyError", "Function", "RowSparse", "Tensor", "arange", "check_grad", "detect_anomaly",
    "enable_grad", "full", "grad", "hessian", "hvp", "is_grad_enabled", "jacobian", "jvp",
    "no_grad", "normal", "ones", "rand", "randint", "randn", "rule", "saved_tensors_hooks",
    "to_tensor", "uniform", "value_and_grad", "vjp", "zeros",
]  # fmt: skip
