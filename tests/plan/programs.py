"""Random elementwise functions."""

from __future__ import annotations

import operator

import numpy as np
from hypothesis import strategies as st

NAMES = ("p", "g", "a", "b")
UNARY = [np.sqrt, np.sign, np.abs, np.negative, np.exp, operator.neg]
BINARY = [operator.add, operator.sub, operator.mul, operator.truediv, np.maximum, np.minimum]


@st.composite
def programs(draw):
    """Draw the steps of a function: an operation on earlier results for each."""
    steps = []
    for i in range(draw(st.integers(1, 12))):
        known = len(NAMES) + i
        one, two, three = (draw(st.integers(0, known - 1)) for _ in range(3))
        kind = draw(st.sampled_from(["unary", "binary", "number", "constant", "where", "clip"]))
        which = draw(st.integers(0, 5))
        steps.append((kind, which, one, two, three))
    last = len(NAMES) + len(steps) - 1
    outputs = {
        name: draw(st.integers(0, last)) for name in NAMES if name != "g" and draw(st.booleans())
    }
    return steps, outputs


def run(program, arrays, numbers):
    steps, outputs = program
    values = [arrays[name] for name in NAMES]
    for kind, which, one, two, three in steps:
        x, y, z = values[one], values[two], values[three]
        if kind == "unary":
            values.append(UNARY[which](x))
        elif kind == "binary":
            values.append(BINARY[which](x, y))
        elif kind == "number":
            values.append((numbers["rate"] * (1 - numbers["decay"])) * x)
        elif kind == "constant":
            values.append(0.3 * x - 2)
        elif kind == "where":
            values.append(np.where((x > y) | (x == z), y, z if which % 2 else 0.5))
        else:
            values.append(np.clip(x, -1.0, 1.0))
    return {name: values[number] for name, number in outputs.items()}
