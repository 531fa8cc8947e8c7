"""The answer to NumPy's array protocols (NEP 13 and NEP 18) when a function meets a Tensor."""

from optlab.autograd.dispatch.array_protocols import (
    PLAIN,
    REDUCTIONS,
    WHOLE_NUMBERS,
    array_function,
    composed_of_ensembles,
    universal_function,
)

__all__ = [
    "PLAIN", "REDUCTIONS", "WHOLE_NUMBERS", "array_function",
    "composed_of_ensembles", "universal_function",
]  # fmt: skip
