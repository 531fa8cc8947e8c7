"""Registration of NumPy functions that are composed of other functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from optlab.autograd.operation import COMPOSED


def composed(*functions: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a composed implementation of NumPy functions."""

    def put(written: Callable[..., Any]) -> Callable[..., Any]:
        for function in functions:
            COMPOSED[function] = written
        return written

    return put


def not_covered(name: str) -> TypeError:
    """Return the error for a function without a rule, with what to write instead."""
    function, _, remark = name.partition(" ")
    said = f" ({remark})" if remark else ""
    return TypeError(
        f"np.{function}{said} has no derivative rule for Tensors. Write it with functions that "
        "have one, or as an operation of your own, an ol.autograd.Function; or use "
        f"np.{function}(t.detach().numpy(), ...) if no gradient is needed."
    )
