"""Paddle's functions for static graphs, which optlab does not have.

`to_static` is capture under its documented name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

from optlab.backend.namespaces import missing as _missing

__all__ = ["disable_static", "in_dynamic_mode", "to_static"]

F = TypeVar("F", bound=Callable[..., Any])


@overload
def to_static(function: F, input_spec: None = None, **others: Any) -> F: ...
@overload
def to_static(
    function: None = None, input_spec: None = None, **others: Any
) -> Callable[[F], F]: ...
def to_static(function: Any = None, input_spec: Any = None, **others: Any) -> Any:
    """Mark a function or a layer to be captured: for now it is returned and **runs eagerly**.

    Nothing is compiled yet, so nothing is faster yet; the values are the same, and ``if`` and
    ``while`` on values work. It exists so that programs with this decorator run without a change.

    Parameters
    ----------
    function : callable or Layer, optional
        Without it, a decorator is returned: ``@to_static()`` is the same as ``@to_static``.
    input_spec : None
        Shapes to compile for; other values are refused.
    **others
        ``build_strategy``, ``backend``, ``full_graph``: only None, as for ``input_spec``.

    Returns
    -------
    callable
        `function` itself.

    Raises
    ------
    TypeError
        If `function` cannot be called, or an argument is given that eager execution would ignore.

    Examples
    --------
    >>> import optlab as ol
    >>> @ol.jit.to_static
    ... def double(x):
    ...     return 2 * x
    >>> double(ol.ones([2]))
    Tensor([2., 2.], dtype=float32)
    """
    for name, value in {"input_spec": input_spec, **others}.items():
        if name not in ("input_spec", "build_strategy", "backend", "full_graph"):
            raise TypeError(f"to_static has no argument {name!r}.")
        if value is not None:
            raise TypeError(
                f"to_static does not do {name}={value!r}: the function runs eagerly, and nothing "
                "is compiled. Leave it out."
            )
    if function is None:
        return to_static
    if not callable(function):
        raise TypeError(
            f"to_static takes a function or a layer; got {type(function).__name__}, which cannot "
            "be called."
        )
    return function


def disable_static() -> None:
    """Run eagerly from now on, as optlab always does; there is nothing to switch off.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.disable_static()
    """


def in_dynamic_mode() -> bool:
    """Return whether operations run eagerly; they always do.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.in_dynamic_mode()
    True
    """
    return True


def __getattr__(name: str) -> object:
    raise _missing("optlab.jit", name, __all__)


def __dir__() -> list[str]:
    return __all__
