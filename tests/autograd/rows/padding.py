"""Rows of padding: every mode, every form of its arguments."""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.rules.manipulation.padding import PAD, pad_with_numbers
from optlab.autograd.tensor.tensor import apply
from tests.autograd.rows.table import distinct, numbers, put

WIDTHS: list[Any] = [1, (1, 2), ((1, 0), (0, 2)), ((2,), (1,)), np.array([[3, 1], [0, 0]])]
if np.lib.NumpyVersion(np.__version__) >= "2.4.0":
    WIDTHS += [{1: (1, 2)}, {-2: 1, 1: (0, 1)}]
for widths in WIDTHS:
    put(np.pad, f"widths {widths}", lambda x, w=widths: np.pad(x, w), numbers((2, 3)))
for mode, options in [
    ("constant", {"constant_values": 2.5}), ("constant", {"constant_values": ((1, 2), (3, 4))}),
    ("edge", {}), ("wrap", {}), ("reflect", {}), ("reflect", {"reflect_type": "odd"}),
    ("symmetric", {}), ("symmetric", {"reflect_type": "odd"}), ("linear_ramp", {}),
    ("linear_ramp", {"end_values": ((1.5, 2.0), (-3.0, 4.0))}), ("maximum", {}), ("minimum", {}),
    ("mean", {}), ("maximum", {"stat_length": 2}), ("minimum", {"stat_length": ((1, 2), (2, 9))}),
    ("mean", {"stat_length": (2, 1)}),
]:  # fmt: skip
    for shape, widths in [((3, 4), ((1, 2), (2, 0))), ((4,), (2, 3)), ((2, 3), ((0, 7), (8, 5)))]:
        if len(shape) == 1 and "((" in f"{options}".replace(" ", ""):
            continue
        put(np.pad, f"{mode} {options} {shape} {widths}",
            lambda x, w=widths, mode=mode, o=options: np.pad(x, w, mode, **o),
            distinct(shape))  # fmt: skip
for mode in ("edge", "wrap", "reflect", "symmetric", "mean", "maximum"):
    put(np.pad, f"{mode} of one", lambda x, m=mode: np.pad(x, (2, 1), m), numbers((1,)))
put(np.pad, "of none", lambda x: np.pad(x, ((0, 0), (1, 1))), numbers((0, 2)))
put(np.pad, "odd, of one", lambda x: np.pad(x, 2, "reflect", reflect_type="odd"), numbers((1, 3)))
for mode, name in [("constant", "constant_values"), ("linear_ramp", "end_values")]:
    put(np.pad, f"{mode} of a Tensor",
        lambda x, v, m=mode, n=name: np.pad(x, ((1, 2), (2, 1)), m, **{n: v}),
        numbers((2, 3)), numbers(()))  # fmt: skip
    put(np.pad, f"{mode} of Tensors",
        lambda x, v, m=mode, n=name: np.pad(x, ((1, 2), (2, 1)), m, **{n: v}),
        numbers((2, 3)), numbers((2, 2)))  # fmt: skip
put(np.pad, "constant of a tuple of Tensors",
    lambda x, v: np.pad(x, 2, constant_values=(v, v * v)), numbers((3,)), numbers(()))  # fmt: skip
put(pad_with_numbers, "a matrix",
    lambda x: pad_with_numbers(x, ((1, 0), (2, 1)), 3.0) if isinstance(x, np.ndarray)
    else apply(PAD, (x,), {"pad_width": ((1, 0), (2, 1)), "constant_values": 3.0}),
    numbers((2, 3)))  # fmt: skip

for mode in ("constant", "edge", "mean", "reflect"):
    put(np.pad, f"one number, {mode}", lambda x, m=mode: np.pad(x, 2, mode=m), numbers(()))
    put(
        np.pad, f"one number by a pair, {mode}", lambda x, m=mode: np.pad(x, (1, 2), m), numbers(())
    )
