"""Powers: integer exponents from -64 to 64 become products."""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.rules.elementwise import (
    INTEGER_POWER,
    NUMBER_POWER,
    POSITIVE,
    POWER,
    SQRT,
    SQUARE,
)
from optlab.autograd.tape.apply import apply
from optlab.autograd.tape.base import raw
from optlab.backend.dtypes import common_dtype, is_floating


def power(base: Any, exponent: Any) -> Any:
    """Return ``base ** exponent`` as a Tensor."""
    kind = type(exponent)
    if kind is not int and isinstance(exponent, np.generic) and exponent.dtype.kind in "fiu":
        # A NumPy scalar takes part in type promotion, a Python number does not.
        dtype = raw(base).dtype
        wanted = common_dtype(dtype, exponent.dtype)
        if is_floating(wanted):
            base = base if wanted == dtype else base.astype(wanted)
            exponent = exponent.item()
    if type(exponent) in (int, float) and is_floating(raw(base).dtype):
        if exponent == 2:
            return apply(SQUARE, (base,))
        if exponent == 1:
            return apply(POSITIVE, (base,))
        if exponent == 0.5:
            return apply(SQRT, (base,))
        if exponent and -64 <= exponent <= 64 and exponent % 1 == 0:
            return apply(INTEGER_POWER, (base,), {"exponent": int(exponent)})
        return apply(NUMBER_POWER, (base,), {"exponent": exponent})
    return apply(POWER, (base, exponent))
