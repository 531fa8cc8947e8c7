"""Floor 1: Tensor, tape, derivative rules, transforms of functions, rematerialization.

The rooms, top to bottom; a room imports from rooms below it only:

=====================  =============================================================================
room                   what it holds
=====================  =============================================================================
``reference/``         ``optlab rules NAME`` and `rule_of`: every function, with its derivative rule
``remat/``             `optlab.rematerialize`: single results are dropped and computed again (DTR)
``checkpoint/``        `optlab.recompute`: functions and chains of layers run again in the backward
                       pass; ``checkpoint/schedules`` has Revolve and other schedules
``dispatch/``          what a NumPy function does when it meets a Tensor (NEP 13, NEP 18)
``composed/``          NumPy functions written with other functions, so that they need no rule
``random/``            NumPy's distributions, drawn from keys (``optlab.numpy.random``)
``function.py``        `Function`, an operation of the user's own
``graph/``             the recorded graph as data: nodes, saved memory, roles of arrays
``transforms/``        `grad`, `vjp`, `jvp`, `jacobian`, `hessian`, `hvp`, `vmap`, `check_grad`
``tensor/``            `Tensor`: operators, methods, conversions, creation, in-place writes
``rules/``             derivative rules, a file a subject, in plain NumPy: ``rules/linalg``,
                       ``rules/manipulation``, ``rules/reductions``, and elementwise functions
``tape/``              nodes and leaves, `apply`, the backward pass, grad mode, saved tensors,
                       versions of written memory, anomaly mode, 16-bit arithmetic
``operation.py``       `Operation` and `rule`: a function beside its vector-Jacobian products
``pytrees.py``         nested containers of arrays
=====================  =============================================================================

``schedules.py``, ``schedule_costs.py``, ``reversal.py``, ``reversal_actions.py`` and ``sparse.py``
are documented module paths of what lies in these rooms.

Plain NumPy arrays beside Tensors may be written to between forward and backward: one of up to 1 MB
is copied where a rule needs it later, and of a larger one a checksum of all its elements is
compared when backward reads it, so that backward raises a RuntimeError rather than use other
numbers. The checksum takes about as long as a copy; a read-only array
(``x.flags.writeable = False``) that owns its memory needs none.

To find the rule of a function: ``optlab rules tanh``, or `rule_of`; all of them are listed in
``rules/README.md``.
"""

from typing import Any as _Any

from optlab.autograd.function import Function
from optlab.autograd.operation import rule
from optlab.autograd.random.creation import (
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
from optlab.autograd.reference.lookup import rule_of
from optlab.autograd.remat.errors import MemoryBudgetError
from optlab.autograd.sparse import RowSparse
from optlab.autograd.tape.anomaly_mode import AnomalyError, detect_anomaly
from optlab.autograd.tape.grad_mode import (
    RecomputationError,
    enable_grad,
    is_grad_enabled,
    is_recomputing,
    no_grad,
)
from optlab.autograd.tape.saved_tensors import saved_tensors_hooks
from optlab.autograd.tensor.creation import arange, full, ones, to_tensor, zeros
from optlab.autograd.tensor.tensor import Tensor, answer_with
from optlab.autograd.transforms.functional import grad, hvp, jvp, value_and_grad, vjp
from optlab.autograd.transforms.gradcheck import check_grad
from optlab.autograd.transforms.jacobian import hessian, jacobian
from optlab.autograd.transforms.vmap import ensemble, members, vmap
from optlab.backend.ensemble.registry import composed as _composed_of_ensembles
from optlab.backend.foreign_arguments import hint as _hint
from optlab.backend.memory.allocator import keep_freed_memory as _keep_freed_memory
from optlab.backend.namespaces import set_module as _set_module
from optlab.backend.wrong_arguments import explain_all as _explain_all

_keep_freed_memory()


def _dispatch() -> _Any:
    """Load the answers to NumPy's calls, with all composed functions: 65 ms or more."""
    from optlab.autograd import dispatch

    return dispatch


answer_with(_dispatch)
_composed_of_ensembles.append(
    lambda function, args, kwargs: _dispatch().composed_of_ensembles(function, args, kwargs)
)

__all__ = [
    "AnomalyError", "Function", "MemoryBudgetError", "RecomputationError", "RowSparse", "Tensor",
    "arange", "bernoulli", "check_grad", "detect_anomaly", "enable_grad", "ensemble", "full",
    "grad", "hessian", "hvp", "is_grad_enabled", "is_recomputing", "jacobian", "jvp", "members",
    "multinomial", "no_grad", "normal", "ones", "poisson", "rand", "randint", "randn", "randperm",
    "rule", "rule_of", "saved_tensors_hooks", "standard_normal", "to_tensor", "uniform",
    "value_and_grad", "vjp", "vmap", "zeros",
]  # fmt: skip

_explain_all(globals(), _hint, classes=False)  # Tensors are made in every operation
_set_module(__name__)
