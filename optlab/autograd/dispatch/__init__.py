"""The answer to NumPy's array protocols (NEP 13 and NEP 18) when a function meets a Tensor."""

from optlab.autograd.dispatch.array_protocols import (
    IN_PLACE,
    PLAIN,
    REDUCTIONS,
    WHOLE_NUMBERS,
    array_function,
    universal_function,
)

__all__ = [
    "IN_PLACE", "PLAIN", "REDUCTIONS", "WHOLE_NUMBERS", "array_function", "universal_function",
]  # fmt: skip
