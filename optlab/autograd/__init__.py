"""Floor 1: Tensor, tape, derivative rules, functional derivatives and the gradient check.

To find the rule of a function: ``optlab rules tanh``, or `rule_of`; all of them are listed in
``rules/README.md``. Which file holds what:

=========================  =========================================================================
file                       what it holds
=========================  =========================================================================
**a Tensor**
``tensor.py``              `Tensor`
``gradients.py``           ``t.requires_grad``, ``t.backward()``, ``t.grad``, ``t.register_hook(f)``
``operators.py``           ``a + b``, ``a @ b``, ``a < b``, ``t[i]``
``methods.py``             ``t.reshape(...)``, ``t.copy()``: the methods of NumPy's arrays
``reduction_methods.py``   ``t.sum()``, ``t.mean(axis)``: those that go through elements along axes
``paddle_names.py``        ``t.stop_gradient``: what Paddle's documents call what is there
``conversions.py``         ``float(t)``, ``t.numpy()``; ``sharing.py``: whose an array is alone
``places.py``              ``t.device``, ``t.to(device)``
``creation.py``            `to_tensor`, `zeros`, `ones`, `full`, `arange`
``documented.py``          ``ol.sum``, ``ol.mean``: NumPy's functions with Paddle's ``keepdim``
``in_place.py``            ``t[i] = v`` and ``t += v``; ``powers.py``: ``t ** n``
``dispatch.py``            what a call of a NumPy function does when it meets a Tensor
``universal.py``           the keyword arguments of ufuncs
**derivative rules**
``operation.py``           `rule`, a row of the table: a function beside its derivative rules
``rules/``                 the rows, a file a subject, in plain NumPy
``composed/``              functions of NumPy written with other functions, so that they need no row
``several.py``             operations with several outputs, such as ``np.linalg.eigh``
``rule_text.py``           the text of a rule; ``reference.py``, ``reference_notes.py``,
                           ``reference_text.py``, ``lookup.py``: ``optlab rules`` and `rule_of`
**the tape**
``base.py``                `TensorBase`: an array and its node; ``tape.py``: nodes and leaves
``apply.py``               `apply`: run an operation, and record it
``backpropagation.py``     the backward pass
``writes.py``              writes in place, by memory; ``write_observers.py``: who is told first
``mode.py``                `no_grad`, `enable_grad`: whether operations are recorded
``hooks.py``               the user's hooks on gradients
``saving.py``              who keeps what is saved for backward; `saved_tensors_hooks` packs it
``recompute.py``           `recompute`: a function runs again in backward
``second_runs.py``         the two runs of one call, and how they are compared
``promises.py``            what operations inside it keep, where they stay on the tape
``written_inside.py``      what it writes to in place, which it writes once
``layer_classes.py``       classes given where layers were meant
``rematerialize.py``       `rematerialize`: operations drop what they saved, and run again
``pieces.py``              results that know how they were made; ``budget.py``: which go first, by
                           ``recomputation_costs.py``
``checkpoints.py``         those that go before checkpoints, or all at once
``sequential.py``          `recompute_sequential`: a chain of layers, by segments or a schedule
``chain_arguments.py``     what it is given, read and checked
``schedules.py``           the known schedules; ``reversal.py``, ``reversal_actions.py``,
                           ``schedule_protocol.py``, ``reversal_views.py``: what a schedule is, and
                           how it is shown
``schedule_costs.py``      what they cost, by formula; ``chain_costs.py``: on layers that are there
``fingerprints.py``        what the second run of an operation is compared with
``constants.py``           plain arrays beside Tensors: copied or watched while backward needs them
``sparse.py``              `RowSparse`, the gradient of a large table of which few rows were read
``halves.py``              float16 and bfloat16: kept in 16 bits, computed in 32
``anomaly.py``             `detect_anomaly`; ``extras.py``: one flag for all that is rare
**derivatives of functions**
``functional.py``          `grad`, `vjp`, `jvp`, `hvp`
``derivative_matrices.py`` `jacobian`, `hessian`
``run.py``, ``trees.py``   one evaluation with its arguments on the tape; containers of arrays
``vmap.py``                `vmap`, `ensemble`, `members`
``check.py``               `check_grad`, against finite differences
``function.py``            `Function`, a user's own operation
**random numbers**
``random/``                NumPy's distributions, drawn from keys (``optlab.numpy.random``)
``drawing.py``             `rand`, `randn`, `normal` and others that make Tensors
**the tape as data**
``walk.py``                nodes and the walk back, one node at a time; ``read_tape.py`` reads them
``kept_memory.py``         what operations keep for backward, and how its bytes are counted
``memory_roles.py``        what every array is, for the ledger of `optlab.backend`
=========================  =========================================================================
"""

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
from optlab.autograd.remat.budget import MemoryBudgetError
from optlab.autograd.tape.anomaly_mode import AnomalyError, detect_anomaly
from optlab.autograd.tape.grad_mode import (
    RecomputationError,
    enable_grad,
    is_grad_enabled,
    is_recomputing,
    no_grad,
)
from optlab.autograd.tape.row_sparse import RowSparse
from optlab.autograd.tape.saved_tensors import saved_tensors_hooks
from optlab.autograd.tensor.creation import arange, full, ones, to_tensor, zeros
from optlab.autograd.tensor.tensor import Tensor, answer_with
from optlab.autograd.transforms.functional import grad, hvp, jvp, value_and_grad, vjp
from optlab.autograd.transforms.gradcheck import check_grad
from optlab.autograd.transforms.jacobian import hessian, jacobian
from optlab.autograd.transforms.vmap import ensemble, members, vmap
from optlab.backend.memory.allocator import keep_freed_memory as _keep_freed_memory

_keep_freed_memory()


def _dispatch() -> object:
    """Load the answers to NumPy's calls, with all composed functions: 65 ms or more."""
    from optlab.autograd.dispatch import array_protocols

    return array_protocols


answer_with(_dispatch)

__all__ = [
    "AnomalyError", "Function", "MemoryBudgetError", "RecomputationError", "RowSparse", "Tensor",
    "arange", "bernoulli", "check_grad", "detect_anomaly", "enable_grad", "ensemble", "full",
    "grad", "hessian", "hvp", "is_grad_enabled", "is_recomputing", "jacobian", "jvp", "members",
    "multinomial", "no_grad", "normal", "ones", "poisson", "rand", "randint", "randn", "randperm",
    "rule", "rule_of", "saved_tensors_hooks", "standard_normal", "to_tensor", "uniform",
    "value_and_grad", "vjp", "vmap", "zeros",
]  # fmt: skip
