"""The registry of batching rules."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from optlab.backend.errors import EnsembleError

Rule = Callable[..., Any]

#: The batching rule of every supported function: ``rule(call, *arguments)``.
RULES: dict[Any, Rule] = {}

#: Functions composed of others, which need no batching rule: ``call(function, args, kwargs)``, or
#: NotImplemented. The package above that has them registers them here.
composed: list[Callable[[Any, Any, Any], Any]] = []

#: What to write instead of functions whose results have no member axis.
INSTEAD: dict[Any, str] = {}


def numpy_function(path: str) -> Any:
    """Return the NumPy function at a path such as ``linalg.inv``; None if NumPy lacks it."""
    found: Any = np
    for part in path.split("."):
        found = getattr(found, part, None)
    return found


def batched(*paths: str) -> Callable[[Rule], Rule]:
    """Register a batching rule for the functions at these paths (those this NumPy has)."""

    def put(rule: Rule) -> Rule:
        for path in paths:
            function = numpy_function(path)
            if function is not None:
                RULES[function] = rule
        return rule

    return put


def public_name(function: Any) -> str:
    """Return the name by which a user calls a NumPy function.

    Examples
    --------
    >>> public_name(np.linalg.inv), public_name(np.sum)
    ('np.linalg.inv', 'np.sum')
    """
    module = getattr(function, "__module__", None) or "numpy"
    return f"{module}.{function.__name__}".replace("numpy.", "np.", 1)


def refusal(name: str, instead: str = "") -> TypeError:
    """Return the error for a call that has no batching rule, with what to do instead."""
    return EnsembleError(
        f"{name} has no batching rule for ensembles. "
        + (
            instead
            or "Write it with functions that have one, or run it member by member on .members."
        )
    )


@cache
def _signature(function: Any) -> inspect.Signature:
    return inspect.signature(function)


def bind(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call by NumPy's names, without those left at their defaults."""
    bound = _signature(function).bind(*args, **kwargs).arguments
    given = {name: value for name, value in bound.items() if value is not np._NoValue}
    if given.pop("out", None) is not None:
        raise refusal(f"{public_name(function)} with out=", "Use the value that it returns.")
    return given
