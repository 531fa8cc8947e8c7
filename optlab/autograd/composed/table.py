"""Registration of NumPy functions that are composed of other functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from optlab.autograd.operation import COMPOSED, MOVING


def composed(
    *functions: Any, moves: bool = False
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the decorated function as the implementation of functions of NumPy on Tensors.

    Parameters
    ----------
    functions : callable
        Of NumPy.
    moves : bool
        Whether it only moves numbers, or calls a function of the user: it is not computed in
        float32 as a whole then (see `tape.half_precision`).
    """

    def register(written: Callable[..., Any]) -> Callable[..., Any]:
        COMPOSED.update(dict.fromkeys(functions, written))
        if moves:
            MOVING.add(written)
        return written

    return register


def not_covered(name: str) -> TypeError:
    """Return the error for a function without a rule, with what to write instead."""
    function, _, remark = name.partition(" ")
    said = f" ({remark})" if remark else ""
    return TypeError(
        f"np.{function}{said} has no derivative rule for Tensors. Write it with functions that "
        "have one, or as an operation of your own, an ol.autograd.Function; or use "
        f"np.{function}(t.detach().numpy(), ...) if no gradient is needed."
    )
