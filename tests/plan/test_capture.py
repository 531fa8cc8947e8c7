"""Capture: a plan repeats the function bitwise, or the function is refused by name."""

from __future__ import annotations

import inspect
import itertools
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import optlab as ol
from optlab.plan import CaptureError, capture, capture_value_and_grad

FLOATS = st.floats(-4, 4)
laws = settings(deadline=None, max_examples=60, derandomize=True)

# Replay equals eager.

SURFACES = {
    "rosenbrock": lambda x, y: (1 - x) ** 2 + 100 * (y - x**2) ** 2,
    "beale": lambda x, y: (
        (1.5 - x + x * y) ** 2 + (2.25 - x + x * y**2) ** 2 + (2.625 - x + x * y**3) ** 2
    ),
    "himmelblau": lambda x, y: (x**2 + y - 11) ** 2 + (x + y**2 - 7) ** 2,
    "quadratic": lambda x, y: 0.5 * (x * x + 1e3 * y * y),
    "ackley": lambda x, y: (
        -20 * np.exp(-0.2 * np.sqrt(0.5 * (x * x + y * y) + 1e-12))
        - np.exp(0.5 * (np.cos(2 * np.pi * x) + np.cos(2 * np.pi * y))) + np.e + 20
    ),
    "ridge": lambda x, y: np.abs(x - y) + np.maximum(x, 0.5) + np.minimum(y, x) + np.clip(y, -1, 1),
    "steps": lambda x, y: np.sin(np.floor(x) * y) - (-x) % 3.0 + 2.0**y,
    "a number": lambda x, y: 2.0 * y + 0.0 * x,
    "one is unused": lambda x, y: y**3,
    "guarded": lambda x, y: np.where(x > 0, x * x, -y) + np.where(y > x, x, 1.0),
    "mask": lambda x, y: (x > y) * x + y * (x <= 0),
    "limits": lambda x, y: np.minimum(x, np.inf) + np.maximum(-np.inf, y),
    "infinity beside": lambda x, y: np.exp(-np.inf) * x + y * y,
}  # fmt: skip


@pytest.mark.parametrize("name", SURFACES)
@laws
@given(FLOATS, FLOATS)
def test_value_and_gradient_of_a_surface_equal_eager_to_the_bit(
    name: str, x: float, y: float
) -> None:
    f = SURFACES[name]
    plan = capture_value_and_grad(f, np.float64(0.3), np.float64(-0.7))
    value, dx, dy = plan(np.float64(x), np.float64(y))
    wanted, slopes = ol.value_and_grad(f, (0, 1))(np.float64(x), np.float64(y))
    np.testing.assert_array_equal([value, dx, dy], [wanted, *slopes])
    assert np.signbit([value, dx, dy]).tolist() == np.signbit([wanted, *slopes]).tolist()
    assert {np.asarray(part).dtype for part in (value, dx, dy)} == {np.dtype("float64")}


M = np.linspace(-1.0, 1.0, 12).reshape(3, 4)
OF_ARRAYS = {
    "sum": lambda x: np.sum(x * x),
    "mean over an axis": lambda x: np.sum(np.mean(x, axis=0) ** 2),
    "log-sum-exp": lambda x: np.sum(np.log(np.sum(np.exp(x), axis=1, keepdims=True)) * 2.0),
    "max": lambda x: np.sum(np.max(x, axis=1)) + np.min(x),
    "matmul": lambda x: np.sum(np.tanh(x @ x.T) @ M),
    "reads": lambda x: np.sum(x[1:] * x[:-1]) + x[0, 1] * x[-1, -1] + np.sum(x[[0, 0]]),
    "shapes": lambda x: np.sum(np.reshape(x, (4, 3)).T * np.flip(x, 1) * np.roll(x, 1)),
    "var": lambda x: np.var(x, ddof=1) + np.sum(np.std(x, axis=0)),
    "cumsum": lambda x: np.sum(np.cumsum(x, axis=1) * M),
    "two sums": lambda x: np.sum(np.sum(x, axis=0) * np.sum(np.exp(x), axis=0)),
    "length": lambda x: np.sum(x) / len(x),
    "unpacking": lambda x: (lambda a, b, c: np.sum(a * b - c))(*x),
    "rows": lambda x: sum(np.sum(row * row) for row in x),
    "mask": lambda x: np.sum(np.where(x > 0, x, 0.1 * x)),
    "methods": lambda x: (x.sum(0) * x.mean(axis=0)).sum() + x.reshape(-1).max(),
    "arrays of optlab": lambda x: np.sum(x * ol.ones([3, 4], "float64")),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_ARRAYS)
@laws
@given(arrays(np.float64, (3, 4), elements=FLOATS))
def test_value_and_gradient_of_arrays_equal_eager_to_the_bit(name: str, x: Any) -> None:
    f = OF_ARRAYS[name]
    plan = capture_value_and_grad(f, M)
    with np.errstate(all="ignore"):
        value, slope = plan(x)
        wanted, wanted_slope = ol.value_and_grad(f)(x)
    np.testing.assert_array_equal(value, wanted)
    np.testing.assert_array_equal(slope, wanted_slope)
    assert slope.shape == (3, 4)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_plan_keeps_the_dtype(dtype: str) -> None:
    f = lambda x, rate: (x - rate * np.tanh(x) / 3, x.astype("float64"))  # noqa: E731
    x, rate = np.linspace(-1, 1, 6).astype(dtype), np.asarray(0.1, dtype)
    found = capture(f, x, rate)(x * 2, rate)
    for one, other in zip(found, f(x * 2, rate), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


def test_a_plan_of_plain_numpy() -> None:
    constants = np.arange(3.0)

    def f(x: Any, y: Any) -> Any:
        return np.where(x > y, x, 0.5) + (x @ y) * constants, np.sum(x, axis=0), 7.0

    x, y = np.array([1.0, -2.0, 3.0]), np.array([0.5, 0.1, 4.0])
    plan = capture(f, x, y)
    for one, other in zip(plan(y, x), f(y, x), strict=True):
        np.testing.assert_array_equal(one, other)


def test_operations_whose_results_nobody_reads_are_left_out() -> None:
    def f(x: Any) -> Any:
        np.exp(x) * 5 + x
        used = x * 2
        np.sin(used)
        return used + 1

    plan = capture(f, np.ones(3))
    assert [step.name for step in plan.instructions] == ["mul", "add"]
    np.testing.assert_array_equal(plan(np.arange(3.0)), [1.0, 3.0, 5.0])


def test_the_value_that_the_slope_does_not_need_is_not_computed_twice() -> None:
    plan = capture_value_and_grad(lambda x: np.exp(x) * x, np.float64(1))
    assert [step.name for step in plan.instructions].count("exp") == 1


def test_a_plan_prints_as_a_table() -> None:
    plan = capture(lambda x, y: -x @ y.T + 1.5, np.ones((2, 3)), np.ones((4, 3), "float32"))
    lines = str(plan).splitlines()
    assert lines[0] == "2 inputs, 4 operations"
    assert lines[-1].split() == ["return", "v5"]
    body = "\n".join(lines[1:-1])
    for written in (r"= -v0 +\(2, 3\) float64", r"transpose\(v1\) +\(3, 4\) float32",
                    r"v\d @ v\d +\(2, 4\) float64", r"v4 \+ 1.5 +\(2, 4\) float64"):  # fmt: skip
        assert re.search(written, body), written
    assert "4" in repr(plan)
    assert all(line.strip() in plan.source for line in re.findall(r"v\d = \S+ ?\S? ?\S*", body))


# Refusals.


def line_of(function: Any, text: str) -> int:
    """Return the line number of the line of `function` that contains `text`."""
    lines, first = inspect.getsourcelines(function)
    return first + next(i for i, line in enumerate(lines) if text in line)


def branches(x: Any) -> Any:
    if np.sum(x) > 0:  # here
        return x
    return -x


def takes_a_float(x: Any) -> Any:
    y = x * 2
    return y * float(np.sum(y))  # here


def takes_an_item(x: Any) -> Any:
    return x * np.sum(x).item()  # here


def takes_a_list(x: Any) -> Any:
    return x * x.tolist()[0]  # here


def takes_an_index(x: Any) -> Any:
    return x * [1.0, 2.0][np.argmax(x)]  # here


def makes_an_array(x: Any) -> Any:
    return x * np.asarray(x)  # here


def writes_into_an_array(x: Any) -> Any:
    total = np.zeros(2)
    total += x  # here
    return total


def writes_an_element(x: Any) -> Any:
    total = np.zeros(2)
    total[0] = np.sum(x)  # here
    return total


def writes_into_its_input(x: Any) -> Any:
    x[0] = 5.0  # here
    return x


def loops_while(x: Any) -> Any:
    while np.max(x) > 1:  # here
        x = x / 2
    return x


REFUSED = [
    (branches, "branch"), (takes_a_float, "Python number"), (takes_an_item, "Python number"),
    (takes_a_list, "Python number"), (takes_an_index, "Python number"),
    (makes_an_array, "NumPy array"), (writes_into_an_array, "existing array"),
    (writes_an_element, ""), (writes_into_its_input, ""), (loops_while, "branch"),
]  # fmt: skip


def refusal(error: BaseException | None) -> CaptureError:
    """Return the refusal in a chain of errors; NumPy may chain its own error on top."""
    while error is not None and not isinstance(error, CaptureError):
        error = error.__cause__
    assert error is not None, "something else refused it"
    return error


@pytest.mark.parametrize(("f", "what"), REFUSED, ids=lambda part: getattr(part, "__name__", ""))
def test_what_a_plan_cannot_repeat_is_refused_with_its_line(f: Any, what: str) -> None:
    with pytest.raises((TypeError, ValueError)) as caught:
        capture(f, np.array([0.5, 0.25]))
    said = str(refusal(caught.value))
    assert what in said
    assert f"test_capture.py, line {line_of(f, '# here')}" in said


@pytest.mark.parametrize("f", [branches, takes_a_float, takes_an_item, loops_while])
def test_it_is_refused_in_a_function_to_differentiate_too(f: Any) -> None:
    def loss(x: Any) -> Any:
        return np.sum(f(x))

    with pytest.raises(TypeError) as caught:
        capture_value_and_grad(loss, np.array([0.5, 0.25]))
    assert f"line {line_of(f, '# here')}" in str(refusal(caught.value))


@pytest.mark.parametrize("join", [np.stack, np.concatenate, np.vstack, np.hstack])
@pytest.mark.parametrize("take", [capture, capture_value_and_grad])
def test_joining_captured_arrays_is_repeated_or_refused(join: Any, take: Any) -> None:
    def joins(x: Any, y: Any) -> Any:
        return np.sum(join([x, y * 2.0]) ** 2)  # here

    one, two = np.array([1.0, -2.0]), np.array([0.5, 3.0])
    try:
        plan = take(joins, one, two)
    except CaptureError as refused:
        said = str(refused)
        plan = None
    if plan is None:
        assert re.search(rf"line {line_of(joins, '# here')}\b", said), said
    else:
        found = plan(two, one)
        assert (found if take is capture else found[0]) == joins(two, one)


def test_a_product_is_repeated_or_refused_by_its_own_name() -> None:
    """Zeros select another formula of its derivative; the user wrote no branch."""
    try:
        plan = capture_value_and_grad(np.prod, np.array([1.0, 2.0]))
    except CaptureError as refused:
        said = str(refused)
        plan = None
    if plan is None:
        assert "prod" in said
    else:
        assert plan(np.array([0.0, 3.0]))[1].tolist() == [3.0, 0.0]


def test_a_counter_is_refused() -> None:
    steps = itertools.count(1)

    def decays(x: Any) -> Any:
        return x / next(steps)

    with pytest.raises(CaptureError, match=r"decays did different things.*counter"):
        capture(decays, np.ones(2))


def test_a_path_that_changes_is_refused() -> None:
    steps = itertools.count()

    def alternates(x: Any) -> Any:
        return np.exp(x) if next(steps) % 2 else np.sin(x)

    with pytest.raises(CaptureError, match="alternates did different things"):
        capture(alternates, np.ones(2))


@pytest.mark.parametrize("differentiated", [False, True])
def test_fresh_random_numbers_are_refused(differentiated: bool) -> None:
    numbers = np.random.default_rng(0)

    def noisy(x: Any) -> Any:
        return np.sum(x + numbers.standard_normal(2))

    def noisy_by_optlab(x: Any) -> Any:
        return np.sum(x * ol.rand([2]).numpy())

    take = capture_value_and_grad if differentiated else capture
    for f in (noisy, noisy_by_optlab):
        with pytest.raises(CaptureError, match=r"different things.*random"):
            take(f, np.ones(2))


def test_a_constant_that_is_not_a_number_does_not_count_as_different() -> None:
    plan = capture(lambda x: np.where(x > 0, x, float("nan")), np.ones(2))
    np.testing.assert_array_equal(plan(np.array([1.0, -1.0])), [1.0, np.nan])


def test_a_value_that_does_not_depend_on_the_inputs_is_refused() -> None:
    with pytest.raises(CaptureError, match="does not depend"):
        capture_value_and_grad(lambda x: 3.0, np.float64(1))


def test_other_shapes_and_dtypes_than_captured_are_refused() -> None:
    """The number of elements is a constant of a mean; five elements are not divided by three."""
    plan = capture_value_and_grad(np.mean, np.ones(3))
    with pytest.raises((TypeError, ValueError), match="shape"):
        plan(np.ones(5))
    with pytest.raises(TypeError):
        plan(np.ones(3), np.ones(3))


def test_results_are_nobody_elses() -> None:
    """Results of a plan may be overwritten: neither the plan nor its inputs change."""
    plan = capture_value_and_grad(lambda x, y: np.sum(x * x), np.ones(2), np.ones(2))
    _, _, unused = plan(np.ones(2), np.ones(2))
    unused[:] = 99.0
    assert plan(np.ones(2), np.ones(2))[2].tolist() == [0.0, 0.0]
    for f in (lambda x: x, lambda x: x.T, lambda x: x[0], lambda x: np.reshape(x, -1)):
        x = np.ones((2, 2))
        capture(f, np.ones((2, 2)))(x)[...] = 99.0
        assert x.tolist() == [[1.0, 1.0], [1.0, 1.0]]
