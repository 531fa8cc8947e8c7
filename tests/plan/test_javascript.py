"""Plans in JavaScript: the bits of NumPy where both have IEEE 754's, else 2 units at most."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import optlab as ol
from optlab.plan import CaptureError, capture, capture_blocks, capture_value_and_grad
from optlab.plan.javascript.elementwise import ElementLoop, loop_source
from optlab.plan.javascript.operations import FLOAT, Atom, helpers_in
from tests.plan.javascript import as_javascript, evaluated, needs_node, same_bits
from tests.plan.programs import NAMES, programs, run
from tests.plan.test_capture import SURFACES

pytestmark = needs_node

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 3.0, np.inf, -np.inf, np.nan, 5e-324, -1e308, 1e17]


def values_of(plan: Any, points: Any, folder: Any) -> list[Any]:
    """Return what a plan in JavaScript gives at points, each a list of arguments."""
    return all_values_of([(plan, points)], folder)[0]


def all_values_of(pairs: list[Any], folder: Any) -> list[Any]:
    """Return what plans in JavaScript give at points, all by one process."""
    sources = [
        # Each in a scope of its own, because the helpers have the same names.
        f"const f{i} = (() => {{ {plan.to_javascript('f').replace('export ', '')}\nreturn f; }})();"
        for i, (plan, _) in enumerate(pairs)
    ]
    calls = [
        f"{as_javascript([list(point) for point in points])}"
        f".map((given) => [f{i}(...given)].flat(3))"
        for i, (_, points) in enumerate(pairs)
    ]
    return list(evaluated("\n".join(sources), f"[{', '.join(calls)}]", folder))


def units(found: Any, wanted: Any) -> float:
    """Return the largest difference in units of the last place; NaN and infinities are equal."""
    found, wanted = np.asarray(found, float), np.asarray(wanted, float)
    same = (found == wanted) | (np.isnan(found) & np.isnan(wanted))
    zeros = (wanted == 0) & (found == 0)
    assert (np.signbit(found) == np.signbit(wanted))[zeros].all()
    with np.errstate(all="ignore"):
        return float(np.max(np.where(same, 0, np.abs(found - wanted) / np.spacing(np.abs(wanted)))))


# Single operations.

EXACT: dict[str, Any] = {
    "add": lambda x, y: x + y, "subtract": lambda x, y: x - y, "multiply": lambda x, y: x * y,
    "divide": lambda x, y: x / y, "negative": lambda x, y: -x, "sqrt": lambda x, y: np.sqrt(x),
    "square": lambda x, y: np.square(x), "reciprocal": lambda x, y: np.reciprocal(y),
    "absolute": lambda x, y: np.abs(x), "fabs": lambda x, y: np.fabs(x),
    "sign": lambda x, y: np.sign(x), "floor": lambda x, y: np.floor(x),
    "ceil": lambda x, y: np.ceil(x), "trunc": lambda x, y: np.trunc(x),
    "rint": lambda x, y: np.rint(x), "round": lambda x, y: np.round(x, 1),
    "round to tens": lambda x, y: np.round(x, -1), "maximum": np.maximum, "minimum": np.minimum,
    "remainder": lambda x, y: x % y, "floor_divide": lambda x, y: x // y, "fmod": np.fmod,
    "copysign": np.copysign, "heaviside": np.heaviside,
    "clip": lambda x, y: np.clip(x, -1.0, y), "clip below": lambda x, y: np.clip(x, 0.25, None),
    "where": lambda x, y: np.where(x > y, x, 0.5),
    "where of a float": lambda x, y: np.where(x, y, 1),
    "comparisons": lambda x, y: (x < y) * 1.0 + (x <= y) * 2.0 + (x == y) * 4.0 + (x != y) * 8.0,
    "logic": lambda x, y: np.where(((x > 0) & (y > 0)) | ~(x < y), x, y),
    "kinds": lambda x, y: np.where(np.isnan(x) | np.isinf(y), 1.0, np.where(np.isfinite(x), 2, y)),
    "signbit": lambda x, y: np.where(np.signbit(x), 3.0, y),
    "nan_to_num": lambda x, y: np.nan_to_num(x), "a mask": lambda x, y: (x > y) * x,
    "constants": lambda x, y: 1e-8 * x - 3 + 1e300 * y + (-0.5) * x,
    "degrees": lambda x, y: np.radians(x) + np.degrees(y), "constant": lambda x, y: x * 0 + 7,
    "power of 2": lambda x, y: np.power(x, 2),
}  # fmt: skip


@pytest.fixture(scope="module")
def exact(tmp_path_factory: Any) -> Any:
    """Points, and for each name what NumPy and JavaScript give there."""
    rng = np.random.default_rng(3)
    points = [(x, y) for x in SPECIAL for y in SPECIAL]
    points += list(zip(rng.normal(size=300) * 3, rng.normal(size=300), strict=True))
    plans = [capture(f, np.float64(0.3), np.float64(0.7)) for f in EXACT.values()]
    with np.errstate(all="ignore"):
        wanted = [[plan(np.float64(x), np.float64(y)) for x, y in points] for plan in plans]
    found = all_values_of([(plan, points) for plan in plans], tmp_path_factory.mktemp("exact"))
    return points, dict(zip(EXACT, zip(wanted, found, strict=True), strict=True))


@pytest.mark.parametrize("name", EXACT)
def test_arithmetic_and_selections_have_the_bits_of_numpy(name: str, exact: Any) -> None:
    points, both = exact
    for point, one, other in zip(points, *both[name], strict=True):
        assert same_bits([one], other), (point, one, other)


#: Functions that two libraries round differently, and where they are looked at.
ROUNDED: dict[str, Any] = {
    "exp": (np.exp, -740, 709), "expm1": (np.expm1, -40, 40), "exp2": (np.exp2, -60, 60),
    "log": (np.log, 0, 50), "log1p": (np.log1p, -1, 9), "log2": (np.log2, 0, 50),
    "log10": (np.log10, 0, 50), "sin": (np.sin, -50, 50), "cos": (np.cos, -50, 50),
    "tan": (np.tan, -9, 9), "arcsin": (np.arcsin, -1, 1), "arccos": (np.arccos, -1, 1),
    "arctan": (np.arctan, -9, 9), "sinh": (np.sinh, -9, 9), "cosh": (np.cosh, -9, 9),
    "tanh": (np.tanh, -4, 4), "arcsinh": (np.arcsinh, -9, 9), "arccosh": (np.arccosh, 1, 9),
    "arctanh": (np.arctanh, -1, 1), "cbrt": (np.cbrt, -9, 9),
    **{f"power {e}": (lambda x, e=e: np.power(x, e), 0, 9) for e in (0.5, 1.5, -0.7, 3, 7.0, -2)},
    "a power of a negative number": (lambda x: np.power(x, 5.0), -9, 0),
    "a power of 2": (lambda x: 2.0**x, -9, 9),
    "hypot": (lambda x: np.hypot(x, 0.7), -9, 9),
    "hypot of large numbers": (lambda x: np.hypot(1e200 * x, 3e199), -9, 9),
    "hypot of small numbers": (lambda x: np.hypot(1e-200 * x, 3e-199), -9, 9),
    "arctan2": (lambda x: np.arctan2(x, -0.7), -9, 9),
    "logaddexp": (lambda x: np.logaddexp(x, 1.5), -3, 9),
}  # fmt: skip


@pytest.fixture(scope="module")
def rounded(tmp_path_factory: Any) -> Any:
    """What NumPy and JavaScript give for each name."""
    rng = np.random.default_rng(4)
    pairs, wanted = [], []
    for f, low, high in ROUNDED.values():
        points = [*rng.uniform(low, high, 2000), *rng.uniform(max(low, -1), min(high, 2), 1000)]
        points += SPECIAL
        with np.errstate(all="ignore"):
            plan = capture(f, np.float64(1.0))
            wanted.append([plan(np.float64(x)) for x in points])
        pairs.append((plan, [(x,) for x in points]))
    found = all_values_of(pairs, tmp_path_factory.mktemp("rounded"))
    return dict(zip(ROUNDED, zip(wanted, found, strict=True), strict=True))


@pytest.mark.parametrize("name", ROUNDED)
def test_functions_are_within_2_units_of_the_last_place(name: str, rounded: Any) -> None:
    wanted, found = rounded[name]
    assert units(np.ravel(found), wanted) <= 2


# Surfaces and their gradients.

POLYNOMIALS = ("rosenbrock", "beale", "himmelblau", "quadratic", "ridge", "a number",
               "one is unused", "guarded", "mask", "limits", "infinity beside")  # fmt: skip


def test_surfaces_of_sums_and_products_have_the_bits_of_the_plan(tmp_path: Any) -> None:
    plans = [
        capture_value_and_grad(SURFACES[name], np.float64(0.3), np.float64(-0.7))
        for name in POLYNOMIALS
    ]
    points = np.random.default_rng(5).normal(size=(300, 2)) * 3
    found = all_values_of([(plan, points) for plan in plans], tmp_path)
    for name, plan, one in zip(POLYNOMIALS, plans, found, strict=True):
        assert same_bits(one, [plan(*point) for point in points]), name


def rows_of(p: Any) -> Any:
    x, y = p
    return x * x + 3 * y


#: Functions of one vector.
VECTORS: dict[str, Any] = {
    "elements": lambda p: (1 - p[0]) ** 2 + 100 * (p[1] - p[0] ** 2) ** 2,
    "unpacked": rows_of,
    "sum": lambda p: np.sum((p - 1) ** 2) + p.sum() * 3,
    "mean": lambda p: np.mean(p * p) + p.mean() ** 2,
    "norm": lambda p: np.linalg.norm(p) + np.linalg.norm(p - 1, ord=1) + np.linalg.norm(p, np.inf),
    "prod": lambda p: np.prod(p) + np.max(p) - np.min(p),
    "var": lambda p: np.var(p) + np.std(p, ddof=1),
    "stack": lambda p: np.sum(np.stack([p[0], p[1]]) ** 2) + np.sum(np.concatenate([p, p[::-1]])),
    "cumsum": lambda p: np.sum(np.cumsum(p) ** 2) + np.sum(np.diff(p) ** 2),
    "whole powers": lambda p: np.sum(p**3 + p**5 - p**-2),
    "where": lambda p: np.sum(np.where(p > 0, p, 0.1 * p) + np.maximum(p, 0.5) + np.abs(p)),
    "a line": lambda p: np.mean((p[0] * np.linspace(0, 1, 5) + p[1] - np.arange(5)) ** 2),
    "a line through many points": lambda p: np.sum(
        (p[0] * np.linspace(0, 1, 150) + p[1] - np.sqrt(np.arange(150.0))) ** 2
    ),
    "a table": lambda p: np.sum((np.outer(p, p) - np.arange(4.0).reshape(2, 2)) ** 2),
    "axes": lambda p: (
        np.sum(np.sum(np.outer(p, np.arange(9.0)), axis=1) ** 2)
        + np.sum(np.mean(np.outer(p, p), axis=0))
    ),
    "relu": lambda p: np.sum(ol.nn.functional.relu(p)),
}


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: Any) -> Any:
    """What NumPy and JavaScript give for each name."""
    points = np.random.default_rng(6).normal(size=(100, 2)) * 2
    plans = [capture_value_and_grad(f, np.array([0.3, -0.7])) for f in VECTORS.values()]
    wanted = [[np.concatenate([[v], slope]) for v, slope in map(plan, points)] for plan in plans]
    pairs = [(plan, [[point] for point in points]) for plan in plans]
    found = all_values_of(pairs, tmp_path_factory.mktemp("vectors"))
    return dict(zip(VECTORS, zip(wanted, found, strict=True), strict=True))


@pytest.mark.parametrize("name", VECTORS)
def test_functions_of_a_vector_have_the_bits_of_the_plan(name: str, vectors: Any) -> None:
    wanted, found = vectors[name]
    assert same_bits(found, wanted)


def test_sums_are_in_numpys_order(tmp_path: Any) -> None:
    pairs, wanted = [], []
    for n in (1, 2, 3, 7, 8, 9, 16, 37, 128, 129, 300):
        plan = capture(lambda x: (np.sum(x), np.mean(x), np.sum(x * np.ones((3, 1)))), np.ones(n))
        rng = np.random.default_rng(n)
        rows = [rng.normal(size=n) * 10.0 ** rng.integers(-4, 4, n), np.full(n, -0.0)]
        pairs.append((plan, [[row] for row in rows]))
        wanted.append([plan(row) for row in rows])
    for one, other in zip(all_values_of(pairs, tmp_path), wanted, strict=True):
        assert same_bits(one, other)


def test_products_of_matrices(tmp_path: Any) -> None:
    a = np.array([[2.0, 1.0], [1.0, 3.0]])
    plan = capture_value_and_grad(lambda p: p @ a @ p + np.dot(p, p), np.ones(2))
    points = np.random.default_rng(7).normal(size=(20, 2))
    wanted = [[value, *slope] for value, slope in map(plan, points)]
    found = values_of(plan, [[point] for point in points], tmp_path)
    np.testing.assert_allclose(found, wanted, rtol=1e-13)


def test_matrices_are_lists_of_their_elements(tmp_path: Any) -> None:
    plan = capture(lambda x: (x.T * 2, np.sum(x, axis=0), x[0, 1]), np.ones((2, 3)))
    x = np.arange(6.0).reshape(2, 3)
    found = evaluated(
        plan.to_javascript("f", ["x"]), f"f({as_javascript(x.reshape(-1))})", tmp_path
    )
    for one, other in zip(found, plan(x), strict=True):
        np.testing.assert_array_equal(one, np.reshape(other, -1) if np.ndim(other) else other)


# Random elementwise functions, as loops.


@settings(deadline=None, max_examples=12, derandomize=True)
@given(st.lists(programs(), min_size=12, max_size=12), st.integers(0, 1000))
def test_random_functions_have_the_bits_of_numpy(
    tmp_path_factory: Any, several: Any, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    numbers = {"rate": 0.3, "decay": 0.9}
    sources, calls, wanted, exponentials = [], [], [], []
    for i, program in enumerate(several):
        plan = capture_blocks(
            lambda arrays, given, program=program: run(program, arrays, given),
            dict.fromkeys(NAMES, np.ones(2)),
            numbers,
        )
        body = loop_source(
            ElementLoop.of(plan),
            {name: Atom(name, FLOAT) for name in numbers},
            {name: name for name in NAMES},
        )
        sources.append(
            f"function f{i}(p, g, a, b, rate, decay) {{\n" + "\n".join(body)
            + "\nreturn [p, g, a, b];\n}"
        )  # fmt: skip
        arrays = {name: rng.choice([*SPECIAL, *rng.normal(size=20)], size=9) for name in NAMES}
        calls.append(f"f{i}({as_javascript(list(arrays.values()))[1:-1]}, 0.3, 0.9)")
        with np.errstate(all="ignore"):
            wanted.append({**arrays, **run(program, arrays, numbers)})
        exponentials.append(any("Math.exp(" in line for line in body))
    source = "\n".join(sources)
    source = "\n".join([*helpers_in(source), source])
    found = evaluated(source, f"[{', '.join(calls)}]", tmp_path_factory.mktemp("random"))
    for one, other, rounded in zip(found, wanted, exponentials, strict=True):
        if not rounded:  # two libraries round exp differently, and what follows amplifies that
            for name, column in zip(NAMES, one, strict=True):
                assert same_bits(column, other[name])


# What the source is like, and what is refused.


def test_the_source_is_small_and_readable() -> None:
    source = ol.problems.rosenbrock.plan.to_javascript("rosenbrock", ["x", "y"])
    assert "export function rosenbrock(x, y) {\n  const v2 = 1 - x;\n" in source
    assert len(source) < 1500
    assert "Math.pow" not in source
    assert "**" not in re.sub(r"//.*|/\*\*", "", source)


def test_what_is_computed_twice_is_written_once() -> None:
    plan = capture(lambda x: (x * x + 1) / (x * x + 1) + 0 * np.exp(x), np.float64(1))
    assert plan.to_javascript().count("* v0") == 1


def sorts(p: Any) -> Any:
    return np.sum(np.sort(p))  # here


def finds(p: Any) -> Any:
    return p[0] * np.interp(p[1], np.array([0.0, 1.0]), np.array([0.0, 2.0]))  # here


@pytest.mark.parametrize(("f", "name"), [(sorts, "sort"), (finds, "interp")])
def test_what_cannot_be_written_is_refused_by_name_and_line(f: Any, name: str) -> None:
    plan = capture(f, np.array([0.3, 0.7]))
    line = f.__code__.co_firstlineno + 1
    with pytest.raises(CaptureError, match=rf"{name}.*test_javascript.py, line {line}\)"):
        plan.to_javascript()


def test_other_dtypes_are_refused() -> None:
    plan = capture(lambda x: x * 2, np.ones(2, np.float32))
    with pytest.raises(CaptureError, match="float32"):
        plan.to_javascript()


def test_a_plan_of_many_elements_is_refused() -> None:
    plan = capture(lambda x: np.sum(x * x), np.ones(6000))
    with pytest.raises(CaptureError, match="fewer elements"):
        plan.to_javascript()


def test_json_reads_what_python_wrote() -> None:
    numbers = [1e-8, 0.1, 1e22, 5e-324, -2.5, 1.7976931348623157e308]
    from optlab.plan.javascript.operations import number_text

    assert [json.loads(number_text(x)) for x in numbers] == numbers
