"""Wrong arguments of transforms: the error says what to write."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import optlab as ol

TRANSFORMS = ("grad", "value_and_grad", "jacobian", "hessian", "vmap")
AT_ONCE = ("vjp", "jvp", "hvp", "check_grad")
X = ol.ones([2, 3])


@pytest.mark.parametrize("name", TRANSFORMS)
def test_paddles_grad_is_named(name: str) -> None:
    transform = getattr(ol, name)
    for call in (lambda: transform(outputs=X, inputs=X), lambda: transform(X, create_graph=True)):
        with pytest.raises(TypeError, match=rf"{name} has no argument.*y\.backward\(\).*x\.grad"):
            call()
    with pytest.raises(TypeError, match=rf"{name} takes a function; got a Tensor.*y\.backward"):
        transform(X)
    with pytest.raises(TypeError, match=rf"{name} takes a function; got 3.*ol\.{name}\(f\)\(x\)"):
        transform(3.0)
    with pytest.raises(TypeError, match=rf"{name}\(f, .*\) needs f"):
        transform()
    with pytest.raises(TypeError, match=rf"{name} takes at most [23] arguments.*; got 9"):
        transform(*[np.sin] * 9)


@pytest.mark.parametrize("name", AT_ONCE)
def test_transforms_that_take_the_point_too(name: str) -> None:
    with pytest.raises(TypeError, match=re.escape(f"Write ol.{name}(f, x)")):
        getattr(ol, name)(3.0, (X,), (X,))
    with pytest.raises(TypeError, match="needs f"):
        getattr(ol, name)()


CALLS: dict[str, tuple[Callable[[], Any], str]] = {
    "func": (lambda: ol.grad(func=np.sin), "Write f="),
    "argnum": (lambda: ol.grad(np.sin, argnum=1), "Write argnums=1."),
    "in_dims": (lambda: ol.vmap(np.sin, in_dims=1), "Write in_axes="),
    "out_dims": (lambda: ol.vmap(np.sin, out_dims=1), "Write out_axes="),
    "primals": (lambda: ol.jvp(np.sin, primals=(X,)), r"ol\.jvp\(f, \(x,\), \(v,\)\)"),
}


@pytest.mark.parametrize("given", CALLS)
def test_arguments_of_other_libraries(given: str) -> None:
    call, written = CALLS[given]
    with pytest.raises(TypeError, match=f"has no argument '{given}'.*{written}"):
        call()


def test_an_error_of_the_function_itself_passes_unchanged() -> None:
    def f(x: Any) -> Any:
        return x.no_such_thing_of_mine

    for call in (
        lambda: ol.grad(f)(1.0),
        lambda: ol.vjp(f, 1.0),
        lambda: ol.hvp(f, 1.0, 1.0),
        lambda: ol.vmap(f)(np.ones(3)),
    ):
        with pytest.raises(AttributeError, match="no_such_thing_of_mine"):
            call()
