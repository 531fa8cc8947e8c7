# The face as editors and type checkers see it.
# tests/test_house.py holds that it names what __init__.py hands on.

from collections.abc import Callable
from typing import Any

from optlab import amp as amp
from optlab import autograd as autograd
from optlab import fluid as fluid
from optlab import incubate as incubate
from optlab import io as io
from optlab import jit as jit
from optlab import lab as lab
from optlab import nn as nn
from optlab import numpy as numpy
from optlab import optimizer as optimizer
from optlab import trace as trace
from optlab import viz as viz
from optlab._doctor import doctor as doctor
from optlab.autograd import Tensor as Tensor
from optlab.autograd import arange as arange
from optlab.autograd import bernoulli as bernoulli
from optlab.autograd import check_grad as check_grad
from optlab.autograd import enable_grad as enable_grad
from optlab.autograd import ensemble as ensemble
from optlab.autograd import full as full
from optlab.autograd import grad as grad
from optlab.autograd import hessian as hessian
from optlab.autograd import hvp as hvp
from optlab.autograd import is_grad_enabled as is_grad_enabled
from optlab.autograd import jacobian as jacobian
from optlab.autograd import jvp as jvp
from optlab.autograd import members as members
from optlab.autograd import multinomial as multinomial
from optlab.autograd import no_grad as no_grad
from optlab.autograd import normal as normal
from optlab.autograd import ones as ones
from optlab.autograd import poisson as poisson
from optlab.autograd import rand as rand
from optlab.autograd import randint as randint
from optlab.autograd import randn as randn
from optlab.autograd import randperm as randperm
from optlab.autograd import standard_normal as standard_normal
from optlab.autograd import to_tensor as to_tensor
from optlab.autograd import uniform as uniform
from optlab.autograd import value_and_grad as value_and_grad
from optlab.autograd import vjp as vjp
from optlab.autograd import vmap as vmap
from optlab.autograd import zeros as zeros
from optlab.autograd.checkpoint.recompute import recompute as recompute
from optlab.autograd.checkpoint.sequential import recompute_sequential as recompute_sequential
from optlab.autograd.dispatch.paddle_reductions import max as max
from optlab.autograd.dispatch.paddle_reductions import mean as mean
from optlab.autograd.dispatch.paddle_reductions import min as min
from optlab.autograd.dispatch.paddle_reductions import prod as prod
from optlab.autograd.dispatch.paddle_reductions import sum as sum
from optlab.autograd.remat.rematerialize import rematerialize as rematerialize
from optlab.backend.device import get_device as get_device
from optlab.backend.device import set_device as set_device
from optlab.backend.random import scope as random_scope  # noqa: F401
from optlab.backend.random import seed as seed
from optlab.backend.random_state import get_cuda_rng_state as get_cuda_rng_state
from optlab.backend.random_state import get_rng_state as get_rng_state
from optlab.backend.random_state import set_cuda_rng_state as set_cuda_rng_state
from optlab.backend.random_state import set_rng_state as set_rng_state
from optlab.io import load as load
from optlab.io import save as save
from optlab.jit import disable_static as disable_static
from optlab.jit import in_dynamic_mode as in_dynamic_mode
from optlab.lab import compare as compare
from optlab.lab import data as data
from optlab.lab import problems as problems
from optlab.lab import sweep as sweep
from optlab.nn import ParamAttr as ParamAttr
from optlab.nn import Parameter as Parameter
from optlab.nn import create_parameter as create_parameter
from optlab.optimizer import regularizer as regularizer
from optlab.trace import memory as memory
from optlab.trace import record as record
from optlab.viz.explorer import explore as explore

__version__: str
bfloat16: Any

# NumPy's functions: Tensors in, Tensors out (NumPy's own annotations know only of arrays).
_Function = Callable[..., Any]

abs: _Function
broadcast_to: _Function
clip: _Function
concatenate: _Function
cos: _Function
cosh: _Function
cumsum: _Function
exp: _Function
expand_dims: _Function
expm1: _Function
flip: _Function
hypot: _Function
log: _Function
log10: _Function
log1p: _Function
log2: _Function
logaddexp: _Function
matmul: _Function
maximum: _Function
minimum: _Function
moveaxis: _Function
power: _Function
ravel: _Function
reshape: _Function
roll: _Function
sign: _Function
sin: _Function
sinh: _Function
sqrt: _Function
square: _Function
squeeze: _Function
stack: _Function
std: _Function
swapaxes: _Function
tan: _Function
tanh: _Function
transpose: _Function
var: _Function
where: _Function

bool: type
float16: type
float32: type
float64: type
int8: type
int16: type
int32: type
int64: type
uint8: type
