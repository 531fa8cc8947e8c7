"""Rows of differences, integrals, polynomials, convolutions and interpolation."""

from __future__ import annotations

from itertools import product

import numpy as np

from tests.autograd.rows.table import numbers, put, quietly, with_static

for n, axis in ((0, 0), (1, -1), (1, 0), (2, 1), (3, 0), (5, 0)):
    put(np.diff, f"{n} {axis}", lambda x, n=n, axis=axis: np.diff(x, n, axis), numbers((4, 5)))
put(np.diff, "whole", np.diff, numbers((4,)))
put(np.diff, "a number before", with_static(np.diff, prepend=0), numbers((2, 3)))
put(np.diff, "a number after", with_static(np.diff, append=1.5, axis=0), numbers((2, 3)))
put(
    np.diff,
    "arrays before and after",
    lambda x, a, b: np.diff(x, 2, -1, a, b),
    numbers((2, 3)),
    numbers((2, 2)),
    numbers((2, 1)),
)
put(np.diff, "a Tensor before", lambda x, a: np.diff(x, prepend=a), numbers((2, 3)), numbers(()))

put(np.ediff1d, "whole", np.ediff1d, numbers((2, 3)))
put(np.ediff1d, "numbers around", with_static(np.ediff1d, to_end=[1, 2], to_begin=3), numbers((4,)))
put(
    np.ediff1d,
    "arrays around",
    lambda x, a, b: np.ediff1d(x, a, b),
    numbers((4,)),
    numbers((2, 2)),
    numbers((1,)),
)
put(np.ediff1d, "one", with_static(np.ediff1d, to_end=2.0), numbers((1,)))

UNEVEN = np.array([0.0, 0.7, 1.0, 2.5, 3.1])
for edge_order in (1, 2):
    static = {"edge_order": edge_order}
    put(np.gradient, f"one axis {static}", with_static(np.gradient, **static), numbers((5,)))
    put(
        np.gradient,
        f"all axes {static}",
        lambda x, static=static: np.stack(np.gradient(x, **static)),
        numbers((3, 5)),
    )
    for axis in (0, -1):
        put(
            np.gradient,
            f"{axis} {static}",
            lambda x, axis=axis, static=static: np.gradient(x, 0.5, axis=axis, **static),
            numbers((4, 5)),
        )
    put(
        np.gradient,
        f"each axis its own {static}",
        lambda x, static=static: np.stack(np.gradient(x, 2.0, UNEVEN, axis=(0, 1), **static)),
        numbers((3, 5)),
    )
    put(
        np.gradient,
        f"even coordinates {static}",
        lambda x, static=static: np.gradient(x, np.arange(5) * 0.5, **static),
        numbers((5,)),
    )
    put(
        np.gradient,
        f"with respect to coordinates {static}",
        lambda x, c, static=static: np.gradient(x, c, axis=0, **static),
        numbers((5, 2)),
        UNEVEN,
    )
    put(
        np.gradient,
        f"with respect to a distance {static}",
        lambda x, h, static=static: np.gradient(x, h, **static),
        numbers((5,)),
        np.array(0.7),
    )
put(np.gradient, "two elements", np.gradient, numbers((2,)))
put(np.gradient, "two, uneven", lambda x, c: np.gradient(x, c), numbers((2,)), UNEVEN[:2])
put(np.gradient, "three, uneven", lambda x: np.gradient(x, UNEVEN[:3], edge_order=2), numbers((3,)))

for name in ("trapezoid", "trapz"):
    function = getattr(np, name, None)
    if function is None:  # NumPy 2.0 to 2.3 have both
        continue
    f = function if name == "trapezoid" else quietly(function)
    put(function, "whole", f, numbers((4,)))
    put(function, "step", with_static(f, dx=0.5, axis=0), numbers((3, 4)))
    put(function, "list", with_static(f, x=[0.0, 1.0, 3.0], axis=0), numbers((3, 4)))
    for axis in (1, -1):
        put(
            function,
            f"coordinates {axis}",
            lambda y, x, axis=axis, f=f: f(y, x, axis=axis),
            numbers((3, 5)),
            UNEVEN,
        )
    put(
        function,
        "coordinates of the same shape",
        lambda y, x, f=f: f(y, x),
        numbers((3, 4)),
        numbers((3, 4), seed=1),
    )

for (n, m), mode in product(
    ((5, 3), (3, 5), (4, 4), (6, 2), (2, 6), (1, 4)), ("full", "same", "valid")
):
    for function in (np.convolve, np.correlate):
        put(
            function,
            f"{n} {m} {mode}",
            lambda a, v, mode=mode, f=function: f(a, v, mode),
            numbers((n,)),
            numbers((m,), seed=1),
        )
for function in (np.convolve, np.correlate):
    put(function, "by default", lambda a, v, f=function: f(a, v), numbers((4,)), numbers((2,)))
    put(function, "a list", lambda a, f=function: f(a, [1, 2, 3]), numbers((4,)))

put(np.convolve, "a number", lambda a, v: np.convolve(a, v), numbers((4,)), numbers(()))

NODES = np.array([-2.0, -0.5, 0.3, 2.1])
HEIGHTS = np.array([1.0, -1.0, 0.4, 2.0])
PLACES = np.array([[-3.0, -1.1, 0.0], [0.7, 1.9, 4.0]])
put(np.interp, "all three", np.interp, PLACES, NODES, HEIGHTS)
put(np.interp, "one place", np.interp, np.array(0.1), NODES, HEIGHTS)
put(np.interp, "many places", np.interp, np.linspace(-2.9, 2.95, 17), NODES, HEIGHTS)
put(np.interp, "one node", np.interp, PLACES, NODES[:1], HEIGHTS[:1])
put(np.interp, "of a plain array", lambda fp: np.interp(PLACES, NODES, fp), HEIGHTS)
put(np.interp, "of a number", lambda fp: np.interp(0.1, NODES.tolist(), fp), HEIGHTS)
put(np.interp, "at places", lambda x: np.interp(x, NODES, HEIGHTS), PLACES)
for static in ({"left": -7.0}, {"right": 5}, {"left": 0.0, "right": 1.0}, {"period": 3.6}):
    put(
        np.interp,
        f"{static}",
        lambda x, xp, fp, static=static: np.interp(x, xp, fp, **static),
        PLACES,
        NODES,
        HEIGHTS,
    )

put(np.polyval, "both", np.polyval, numbers((4,)), numbers((2, 3)))
put(np.polyval, "coefficients", lambda p: np.polyval(p, 2.0), numbers((3,)))
put(np.polyval, "a list", lambda x: np.polyval([1, 2, 3], x), numbers((3,)))
put(np.polyval, "at integers", lambda p: np.polyval(p, np.arange(3)), numbers((3,)))

for static in ({}, {"N": 3}, {"increasing": True}, {"N": 6, "increasing": True}, {"N": 1}):
    put(np.vander, f"{static}", with_static(np.vander, **static), numbers((4,)))
put(np.vander, "at 0", np.vander, np.array([0.0, 1.0, 0.0, -2.0]))

TURNING = np.array([[0.0, 2.9, -2.8, -0.2], [3.0, -3.1, 1.0, -3.0]])
for static in ({}, {"axis": 0}, {"discont": 3.7}, {"period": 2.5}):
    put(np.unwrap, f"{static}", with_static(np.unwrap, **static), TURNING)
