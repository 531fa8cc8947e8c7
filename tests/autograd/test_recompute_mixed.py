"""Nested methods of recomputation: values, gradients and second derivatives equal plain ones."""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import optlab as ol
from optlab.autograd.schedules import plain

RNG = np.random.default_rng(3)
X, W = RNG.normal(size=(2, 3)), RNG.normal(size=(3, 3))
Function = Callable[[Any], Any]


def within(way: str, inner: Function, w: Any) -> Function:
    """Put a function between two others, so that its argument is recomputed too."""

    def before(v: Any) -> Any:
        y = np.sin(v @ w)
        y *= 1.5  # a replay writes to its own memory
        return y

    def after(v: Any) -> Any:
        return v * v + np.sum(w)

    def all_three(v: Any) -> Any:
        return after(inner(before(v)))

    if way == "plainly":
        return all_three
    if way == "one operation":
        return lambda v: ol.recompute(all_three, v)
    if way == "its operations":
        return lambda v: ol.recompute(all_three, v, use_reentrant=False)
    segments = {"two segments": 2, "revolve": "revolve", "recorded at once": plain(3)}[way]
    return lambda v: ol.recompute_sequential([before, inner, after], v, segments=segments)


def nested(ways: tuple[str, ...], w: Any) -> Function:
    def inner(v: Any) -> Any:
        return np.tanh(v) * np.exp(0.1 * v)

    for way in reversed(ways):
        inner = within(way, inner, w)
    return inner


def gradients_of(ways: tuple[str, ...]) -> list[Any]:
    """Return gradients, those of a second backward pass, and the gradient of a squared gradient."""
    x, w = (ol.to_tensor(a, requires_grad=True) for a in (X, W))
    loss = np.sum(nested(ways, w)(np.cos(x)))
    gradients = []
    for again in (True, False):
        loss.backward(retain_graph=again)
        gradients += [x.grad.numpy().copy(), w.grad.numpy().copy()]
        x.grad = w.grad = None

    def slope(x: Any, w: Any) -> Any:
        return np.sum(ol.grad(lambda v: np.sum(nested(ways, w)(np.cos(v))))(x) ** 2)

    return [*gradients, *ol.grad(slope, (0, 1))(X, W)]


WAYS = ["one operation", "its operations", "two segments", "revolve", "recorded at once"]


@pytest.mark.parametrize(
    "ways",
    [
        *itertools.product(WAYS, WAYS),
        ("plainly", "its operations", "one operation"),
        ("its operations", "one operation", "its operations"),
        ("its operations", "plainly", "revolve"),
        ("revolve", "its operations", "recorded at once"),
    ],
    ids=" - ".join,
)
def test_one_inside_the_other(ways: tuple[str, ...]) -> None:
    expected, given = gradients_of(("plainly",) * len(ways)), gradients_of(ways)
    for a, b in zip(expected[:4], given[:4], strict=True):
        np.testing.assert_array_equal(a, b)
    for a, b in zip(expected[4:], given[4:], strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-11)


@pytest.mark.parametrize("inner", [True, False])
@pytest.mark.parametrize("outer", [True, False])
def test_arguments_of_functions_inside_go_with_the_rest(outer: bool, inner: bool) -> None:
    x, w = (ol.to_tensor(a, requires_grad=True) for a in (X, W))
    met: list[weakref.ref[Any]] = []

    def layer(v: Any, options: dict[str, Any]) -> Any:
        met.append(weakref.ref(v.data))
        return np.tanh(np.sin(v @ options["w"]) * options["scale"])

    def layers(v: Any) -> Any:
        v = v * 1.0
        for scale in range(3):
            v = ol.recompute(layer, v, {"w": w, "scale": scale + v}, use_reentrant=inner)
        return v

    loss = np.sum(ol.recompute(layers, x, use_reentrant=outer))
    assert [array() for array in met] == [None, None, None]
    loss.backward()
    expected = ol.grad(lambda x, w: np.sum(plain_layers(x, w)), (0, 1))(X, W)
    for leaf, g in zip((x, w), expected, strict=True):
        np.testing.assert_array_equal(leaf.grad.numpy(), g)
    assert [array() for array in met] == [None] * len(met)


def plain_layers(v: Any, w: Any) -> Any:
    v = v * 1.0
    for scale in range(3):
        v = np.tanh(np.sin(v @ w) * (scale + v))
    return v
