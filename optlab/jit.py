"""Paddle's functions for static graphs: `to_static` is `optlab.capture`, which is not strict."""

from __future__ import annotations

import inspect
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
    """Capture a function, and replay it as a plan where one can repeat it.

    It is ``ol.capture(function, strict=False)``: a function with ``if`` or ``while`` on values, or
    with effects on objects of Python, runs eagerly, as it is. The values are the same either way.
    A layer is returned itself: what is worth a plan is the step that calls it.

    Parameters
    ----------
    function : callable or Layer, optional
        Without it, a decorator is returned: ``@to_static()`` is the same as ``@to_static``.
    input_spec : None
        Shapes to compile for: other values are refused, as there is a plan for each combination of
        shapes that calls have.
    **others
        ``build_strategy``, ``backend``, ``full_graph``: only None, as for ``input_spec``.

    Returns
    -------
    callable
        The captured function (see `optlab.capture`): ``execution`` says how its last call ran. A
        layer or a class is returned as it is.

    Raises
    ------
    TypeError
        If `function` cannot be called, or an argument is given that capture would ignore.

    Examples
    --------
    >>> import optlab as ol
    >>> @ol.jit.to_static
    ... def double(x):
    ...     return 2 * x
    >>> double(ol.ones([2]))
    Tensor([2., 2.], dtype=float32)
    >>> double.execution
    'captured: by a plan'
    """
    for name, value in {"input_spec": input_spec, **others}.items():
        if name not in ("input_spec", "build_strategy", "backend", "full_graph"):
            raise TypeError(f"to_static has no argument {name!r}.")
        if value is not None:
            raise TypeError(
                f"to_static does not do {name}={value!r}: a function is captured for the shapes of "
                "each call, and what no plan can repeat runs eagerly. Leave it out."
            )
    if function is None:
        return to_static
    if not callable(function):
        raise TypeError(
            f"to_static takes a function or a layer; got {type(function).__name__}, which cannot "
            "be called."
        )
    if inspect.isclass(function) or _is_layer(function):
        return function
    # Imported here, as it loads the engine, and `optlab.jit` has names that need none of it.
    from optlab.plan.calls.captured import capture

    return capture(function, strict=False)


def _is_layer(x: Any) -> bool:
    """Return whether this is a layer; their class stands on a floor above."""
    return hasattr(x, "forward") and hasattr(x, "sublayers")


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


#: What to write for what belongs to static graphs.
_ELSEWHERE = {
    "save": "write ol.save(layer.state_dict(), path); later layer = Net() and "
    "layer.set_state_dict(ol.load(path)) bring it back",
    "load": "write layer = Net(), then layer.set_state_dict(ol.load(path))",
    "TranslatedLayer": "a layer is called as it is, after layer.eval()",
    "not_to_static": "what no plan can repeat runs eagerly by itself: leave it out",
    "enable_to_static": "a function without the decorator runs eagerly: leave it out",
    "ignore_module": "what no plan can repeat runs eagerly by itself: leave it out",
}


def __getattr__(name: str) -> object:
    if name in _ELSEWHERE:
        said = f"ol.jit has no {name!r}, as there are no static graphs: {_ELSEWHERE[name]}."
        raise AttributeError(said, name=name, obj=None)
    raise _missing("optlab.jit", name, __all__)


def __dir__() -> list[str]:
    return __all__
