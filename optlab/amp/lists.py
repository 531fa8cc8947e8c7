"""The operations that `auto_cast` computes with 16 bits, and those with 32.

Lists name operations: those of the table of rules (NumPy's names: ``add``, ``matmul``), functions
of ``ol.nn.functional``, and Paddle's names (``elementwise_add``, ``conv2d``).
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from importlib import import_module

import numpy as np

from optlab.autograd.operation import TABLE

_CONVOLUTIONS = "convolution biased_convolution convolution_input"
_OF_CLASSES = "picked picked_rows"
_CROSS_ENTROPY = f"cross_entropy log_softmax {_OF_CLASSES}"  # the first for large scores
_MAX_POOL = "max_pool max_pool_with_indices"
_SUMS = "sum nansum cumsum nancumsum"
_NORMS = "euclidean_norm power_norm nuclear_norm hypot_reduce"

#: Names that stand for other operations.
ALIASES: dict[str, str] = {
    "linear": "linear matmul",
    "linear_v2": "linear matmul",
    "matmul_v2": "matmul",
    "einsum": "einsum_of_one einsum_of_two",
    "conv1d": _CONVOLUTIONS,
    "conv2d": _CONVOLUTIONS,
    "conv3d": _CONVOLUTIONS,
    "conv1d_transpose": _CONVOLUTIONS,
    "conv2d_transpose": _CONVOLUTIONS,
    "conv3d_transpose": _CONVOLUTIONS,
    "scaled_dot_product_attention": "attend attend_masked",
    "flash_attn": "attend attend_masked",
    "embedding": "take_rows",
    "lookup_table_v2": "take_rows",
    "elementwise_add": "add",
    "elementwise_sub": "subtract",
    "elementwise_mul": "multiply",
    "elementwise_div": "divide quotient",
    "elementwise_max": "maximum",
    "elementwise_min": "minimum",
    "elementwise_mod": "remainder",
    "elementwise_floordiv": "floor_divide",
    "elementwise_pow": "power integer_power number_power float_power",
    "abs": "absolute",
    "acos": "arccos",
    "asin": "arcsin",
    "atan": "arctan",
    "acosh": "arccosh",
    "asinh": "arcsinh",
    "atanh": "arctanh",
    "pow": "power integer_power number_power float_power",
    "reduce_sum": _SUMS,
    "reduce_mean": "mean nanmean",
    "reduce_prod": "prod nanprod",
    "reduce_max": "max",
    "reduce_min": "min",
    "p_norm": _NORMS,
    "pnorm": _NORMS,
    "frobenius_norm": _NORMS,
    "norm": _NORMS,
    "batch_norm": "standardize",
    "layer_norm": "standardize",
    "group_norm": "standardize",
    "instance_norm": "standardize",
    "rms_norm": "rescale",
    "cross_entropy": _CROSS_ENTROPY,
    "softmax_with_cross_entropy": _CROSS_ENTROPY,
    "nll_loss": _OF_CLASSES,
    "binary_cross_entropy": "binary",
    "binary_cross_entropy_with_logits": "with_logits with_weighted_logits",
    "sigmoid_cross_entropy_with_logits": "with_logits with_weighted_logits",
    "kl_div": "divergence divergence_of_logarithms",
    "huber_loss": "huber",
    "smooth_l1_loss": "huber",
    "avg_pool1d": "average_pool",
    "avg_pool2d": "average_pool",
    "avg_pool3d": "average_pool",
    "max_pool1d": _MAX_POOL,
    "max_pool2d": _MAX_POOL,
    "max_pool3d": _MAX_POOL,
}

#: Products, for whose cost 16 bits are used; they accumulate in float32 anyway.
WHITE = "linear matmul dot vecdot einsum conv2d scaled_dot_product_attention".split()
if hasattr(np, "matvec"):  # since NumPy 2.2
    WHITE += ["matvec", "vecmat"]

#: Operations that overflow easily, or lose digits in long sums.
BLACK = (
    "tan acos asin sinh cosh acosh atanh exp exp2 expm1 log log10 log1p log2 reciprocal pow square "
    "logaddexp logaddexp2 logaddexp_reduce logaddexp2_reduce reduce_sum reduce_mean reduce_prod "
    "cumprod nancumprod var std nanvar nanstd norm deviation_about variance_about "
    "softmax log_softmax softplus layer_norm rms_norm unit cross_entropy nll_loss "
    "binary_cross_entropy binary_cross_entropy_with_logits kl_div huber_loss "
    "inv det slogdet solve lstsq pinv cholesky qr svd eig eigh eigvalsh"
).split()

#: Operations that stay black even if all others are computed with 16 bits.
ALWAYS_BLACK = ["embedding", "scatter", "interp"]


#: Modules that define the operations that lists may name.
_MODULES = ["optlab.autograd.dispatch", "optlab.nn.functional"]


def operations_named(names: Iterable[str], argument: str) -> frozenset[str]:
    """Return the operations that a list names.

    Raises
    ------
    TypeError
        If a string is given in place of a list.
    ValueError
        If a name is not an operation.

    Examples
    --------
    >>> sorted(operations_named(["linear", "elementwise_add"], "custom_white_list"))
    ['add', 'linear', 'matmul']
    """
    if isinstance(names, str):
        raise TypeError(f"{argument} is a list of names; write [{names!r}].")
    for file in _MODULES:  # operations are registered when their modules are imported
        import_module(file)
    known = {operation.name for operation in TABLE.values()}
    found: set[str] = set()
    for name in names:
        stands_for = ALIASES[name].split() if name in ALIASES else [name]
        if name not in ALIASES and name not in known:
            near = get_close_matches(str(name), [*ALIASES, *known], n=2)
            hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
            raise ValueError(f"{argument} names {name!r}, but there is no such operation.{hint}")
        found.update(stands_for)
    return frozenset(found)
