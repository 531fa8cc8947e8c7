"""Floor 1: Tensor, tape, derivative rules, functional derivatives and the gradient check."""

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
from optlab.autograd.functional import grad, hessian, hvp, jacobian, jvp, value_and_grad, vjp
from optlab.autograd.mode import enable_grad, is_grad_enabled, no_grad
from optlab.autograd.operation import rule
from optlab.autograd.tensor import Tensor
from optlab.autograd.vmap import ensemble, members, vmap

__all__ = [
    "Tensor", "arange", "check_grad", "enable_grad", "ensemble", "full", "grad", "hessian", "hvp",
    "is_grad_enabled", "jacobian", "jvp", "members", "no_grad", "normal", "ones", "rand", "randint",
    "randn", "rule", "to_tensor", "uniform", "value_and_grad", "vjp", "vmap", "zeros",
]  # fmt: skip
