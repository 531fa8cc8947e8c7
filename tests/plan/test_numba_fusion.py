"""Fused groups give NumPy's bits and warnings, whatever the shapes, values and dtypes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from optlab.plan import executors, numba_codegen, sizes, use_executor
from optlab.plan.executors import has_numba
from optlab.plan.numba_codegen import CHUNK
from optlab.plan.numba_fusion import fuse
from optlab.plan.numba_kernels import same_bits
from optlab.plan.plan import Instruction, Place
from tests.plan.test_numba_kernels import pairs

needs_numba = pytest.mark.skipif(not has_numba(), reason="needs the extra `fast` (numba)")
DTYPES = ["float32", "float64"]

UNARY = [np.sqrt, np.negative, np.absolute, np.square, np.reciprocal, np.sign, np.positive]
BINARY = [np.add, np.subtract, np.multiply, np.divide, np.maximum, np.minimum]
COMPARISONS = [np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal]
TESTS = [np.isnan, np.isfinite, np.isinf]
LOGIC = [np.logical_and, np.logical_or, np.logical_xor, np.bitwise_and, np.bitwise_or]
OPERATORS = {np.add: "add", np.subtract: "sub", np.multiply: "mul", np.divide: "truediv"}

#: The common shape, and those of five inputs: floats, and a mask last.
SHAPES = [
    ((7,), [(7,), (7,), (1,), (), (7,)]),
    ((2, 3), [(2, 3), (3,), (2, 1), (), (2, 3)]),
    ((4, 600), [(4, 600), (600,), (4, 1), (1, 1), (600,)]),
    ((3, 4, 5, 6), [(3, 4, 5, 6), (4, 1, 1), (3, 4, 5, 6), (1, 4, 1, 1), (4, 1, 1)]),
    ((2, 1, 700), [(2, 1, 700), (1, 700), (2, 1, 1), (1,), (2, 1, 1)]),
    ((2000,), [(2000,), (2000,), (2000,), (), ()]),
    ((5, 2, 3), [(2, 3), (5, 1, 1), (5, 2, 1), (2, 1), (5, 1, 3)]),
    ((), [(), (), (1,)[:0], (), ()]),
]


class Group:
    """Instructions, and their results by NumPy on examples."""

    def __init__(self, examples):
        self.values = list(examples)
        self.inputs = {
            Place(i): (x.shape, x.dtype) if isinstance(x, np.ndarray) else ((), float)
            for i, x in enumerate(self.values)
        }
        self.steps = []

    def add(self, function, *arguments):
        given = [self.values[x.number] if isinstance(x, Place) else x for x in arguments]
        with np.errstate(all="ignore"):
            value = function(*given)
        result = Place(len(self.values))
        name, known = OPERATORS.get(function, function.__name__), function in OPERATORS
        self.steps.append(
            Instruction(
                name, None if known else function, arguments, (), result, value.shape, value.dtype
            )
        )
        self.values.append(value)
        return result

    def places(self, kind):
        return [Place(i) for i, x in enumerate(self.values) if getattr(x, "dtype", None) == kind]

    def by_numpy(self, arrays):
        values = list(arrays)
        for step in self.steps:
            given = [values[x.number] if isinstance(x, Place) else x for x in step.arguments]
            function = step.function or {name: f for f, name in OPERATORS.items()}[step.name]
            values.append(function(*given))
        return values


def peculiar(draw, shape, dtype):
    limits = np.finfo(dtype)
    special = [0.0, 1.0, 0.5, limits.tiny, limits.smallest_subnormal, limits.max, np.inf, np.nan]
    values = draw.standard_normal(shape).astype(dtype)
    chosen = draw.choice(np.array([*special, *(-x for x in special)], dtype), shape)
    return np.where(draw.random(shape) < draw.choice([0, 0.001, 0.3]), chosen, values)


def arrays_of(draw, shapes, dtypes):
    *floats, mask = shapes
    given = [peculiar(draw, s, d) for s, d in zip(floats, dtypes, strict=True)]
    return [*map(np.asarray, given), np.asarray(draw.random(mask) < 0.5), 0.3]


@st.composite
def groups(draw):
    """Draw a group of elementwise operations with inputs that broadcast."""
    shape, shapes = draw(st.sampled_from(SHAPES))
    main = draw(st.sampled_from(DTYPES))
    mixed = draw(st.booleans())
    dtypes = [draw(st.sampled_from(DTYPES)) if mixed else main for _ in shapes[:-1]]
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    group = Group(arrays_of(random, shapes, dtypes))
    number = Place(len(shapes))
    for _ in range(draw(st.integers(1, 25))):
        kinds = [x for kind in DTYPES for x in group.places(np.dtype(kind))]
        masks = group.places(np.dtype(bool))
        x, y = draw(st.sampled_from(kinds)), draw(st.sampled_from([*kinds, number, 0.1, 2, -0.0]))
        kind = draw(
            st.sampled_from("unary binary swapped compare test logic where cast clip".split())
        )
        if kind == "unary":
            group.add(draw(st.sampled_from(UNARY)), x)
        elif kind in ("binary", "swapped"):
            group.add(draw(st.sampled_from(BINARY)), *((x, y) if kind == "binary" else (y, x)))
        elif kind == "compare":
            group.add(draw(st.sampled_from(COMPARISONS)), x, y)
        elif kind == "test":
            group.add(draw(st.sampled_from(TESTS)), x)
        elif kind == "logic":
            group.add(draw(st.sampled_from(LOGIC)), draw(st.sampled_from(masks)), masks[-1])
        elif kind == "where":
            group.add(np.where, draw(st.sampled_from(masks)), x, y)
        elif kind == "cast":
            group.add(np.multiply, x, draw(st.sampled_from(masks)))
        else:
            group.add(np.clip, x, -0.5, 1.5)
    return group, shape, shapes, dtypes, random


def run(f):
    """Return a result and the kinds of floating-point errors on the way."""
    said = set()
    with np.errstate(
        over="call", divide="call", invalid="call", call=lambda kind, _: said.add(kind)
    ):
        return f(), said


def assert_same(group, fused, outputs, arrays, job=None):
    expected, warned = run(lambda: group.by_numpy(arrays))
    found, said = run(job or (lambda: fused(*arrays)))
    for place, value in zip(outputs, found, strict=True):
        wanted = np.asarray(expected[place.number])
        if wanted.dtype == bool:
            assert value.dtype == bool
            assert np.array_equal(value, wanted)
        else:
            assert same_bits(value, wanted)
    needed = {step.result for step in group.steps}
    if needed == set(outputs):  # else NumPy would not do what nobody asks for
        assert said == warned


@needs_numba
@given(groups())
@settings(max_examples=6, suppress_health_check=list(HealthCheck))
def test_random_groups(drawn):
    check_group(drawn)


@needs_numba
@pytest.mark.nightly
@pytest.mark.slow
@given(groups())
@settings(max_examples=60, suppress_health_check=list(HealthCheck))
def test_more_random_groups(drawn):
    check_group(drawn)


def check_group(drawn):
    group, shape, shapes, dtypes, random = drawn
    outputs = [s.result for s in group.steps if s.shape == shape]
    if not outputs:
        assert fuse(group.steps, group.inputs, outputs) is None
        return
    fused = fuse(group.steps, group.inputs, outputs)
    assert fused is not None
    assert_same(group, fused, outputs, group.values[: len(shapes) + 1])  # by NumPy
    fused.compile()
    for _ in range(4):
        assert_same(group, fused, outputs, arrays_of(random, shapes, dtypes))
    arrays = arrays_of(random, shapes, dtypes)
    out = [np.empty(shape, dtype) for dtype in fused.dtypes]
    job = fused.bind(*arrays, out=out)
    if job is not None:
        assert_same(group, fused, outputs, arrays, lambda: job() or out)


@needs_numba
@pytest.mark.parametrize("dtype", DTYPES)
def test_choices_of_all_pairs_of_peculiar_numbers_are_made_by_the_loop(dtype, monkeypatch):
    x, y = pairs(dtype)
    group = Group([x, y])
    given = Place(0), Place(1)
    for function in (np.maximum, np.minimum, *COMPARISONS):
        group.add(function, *given)
    mask = group.add(np.less, *given)
    for function in (*TESTS, np.sign):
        group.add(function, Place(0))
    group.add(np.where, mask, *given)
    group.add(np.logical_not, mask)
    group.add(np.clip, Place(0), -0.5, 1.5)
    outputs = [step.result for step in group.steps]
    fused = fuse(group.steps, group.inputs, outputs)
    fused.compile()
    monkeypatch.setattr(fused, "_by_numpy", None)  # nothing of it is left to NumPy
    assert_same(group, fused, outputs, [x, y])


@needs_numba
@pytest.mark.parametrize("dtype", DTYPES)
def test_arithmetic_on_all_pairs_of_peculiar_numbers(dtype):
    one = np.ones(1, dtype)
    group = Group([one, one])
    for function in (np.add, np.subtract, np.multiply, np.divide):
        group.add(function, Place(0), Place(1))
    for function in UNARY:
        group.add(function, Place(0))
    singly = [fuse([s], group.inputs, [s.result]) for s in group.steps]
    for step, fused in zip(group.steps, singly, strict=True):
        fused.compile()
        alone = Group([one, one])
        alone.steps = [step._replace(result=Place(2))]
        for x, y in zip(*pairs(dtype), strict=True):
            assert_same(alone, fused, [Place(2)], [np.array([x], dtype), np.array([y], dtype)])


def relu(shape, dtype, bias):
    x, b = np.ones(shape, dtype), np.ones(bias, dtype)
    group = Group([x, b])
    wide = group.add(np.add, Place(0), Place(1))
    result = group.add(np.maximum, wide, 0.0)
    return group, fuse(group.steps, group.inputs, [result]), result


@needs_numba
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("shape", "bias"),
    [((5000,), (5000,)), ((5000,), ()), ((40, 300), (300,)), ((40, 300), (40, 1)),
     ((3, 50, 60), (50, 1)), ((1, 9000), (1, 1)), ((3000, 2), (2,))],
)  # fmt: skip
def test_all_cores_share_a_large_group(monkeypatch, dtype, shape, bias):
    monkeypatch.setattr(sizes, "BLOCK", 256)
    monkeypatch.setattr(sizes, "LARGE", 1024)
    monkeypatch.setattr(sizes, "cores", lambda: 2)
    group, fused, result = relu(shape, dtype, bias)
    fused.compile()
    random = np.random.default_rng(0)
    for wild in (False, True):
        x, b = random.standard_normal(shape).astype(dtype), random.standard_normal(bias)
        b = np.asarray(b, dtype)
        if wild:
            x.flat[[x.size // 3, x.size - 1]] = np.inf, np.nan
        assert_same(group, fused, [result], [x, b])


@needs_numba
@pytest.mark.parametrize("at", [0, 3, CHUNK - 1, CHUNK, 3 * CHUNK + 5])
def test_a_result_may_replace_an_input_even_where_numpy_has_to_report(at):
    x = np.linspace(-1, 1, 4 * CHUNK, dtype=np.float32)
    group = Group([x, x.copy()])
    quotient = group.add(np.divide, Place(0), Place(1))
    total = group.add(np.add, quotient, Place(0))
    fused = fuse(group.steps, group.inputs, [total, quotient])
    fused.compile()
    x[at] = np.inf
    y = np.linspace(2, 3, 4 * CHUNK, dtype=np.float32)
    y[-1 - at] = 0.0
    expected, warned = run(lambda: group.by_numpy([x, y]))
    first, second = x.copy(), y.copy()
    _, said = run(lambda: fused(first, second, out=[first, second]))
    assert same_bits(first, expected[total.number])
    assert same_bits(second, expected[quotient.number])
    assert said == warned == {"divide by zero"}


@needs_numba
@pytest.mark.parametrize("kind", ["strided", "fortran", "read-only", "unaligned", "other dtype"])
def test_inputs_of_any_layout(kind):
    group, fused, result = relu((30, 40), "float32", (40,))
    fused.compile()
    x, b = np.random.default_rng(0).standard_normal((2, 30, 40)).astype(np.float32)
    b = b[0].copy()
    laid = {
        "strided": lambda: np.repeat(x, 2, axis=1)[:, ::2],
        "fortran": lambda: np.asfortranarray(x),
        "read-only": lambda: np.frombuffer(x.tobytes(), np.float32).reshape(30, 40),
        "unaligned": lambda: np.frombuffer(
            bytearray(b"x" + x.tobytes()), np.float32, offset=1
        ).reshape(30, 40),
        "other dtype": lambda: x.astype(np.float64),
    }[kind]()
    expected = group.by_numpy([x, b])[result.number]
    assert same_bits(fused(laid, b)[0], expected)
    out = np.asfortranarray(np.empty_like(x))
    assert same_bits(fused(laid, b, out=[out])[0], expected)
    assert (fused.bind(laid, b, out=[np.empty_like(x)]) is None) == (kind != "read-only")


@needs_numba
@pytest.mark.parametrize("number", [1e300, np.inf, np.nan])
def test_a_number_that_is_not_finite_where_it_meets_the_array(number):
    x = np.linspace(-1, 1, 11, dtype=np.float32)
    group = Group([x, 0.5])
    result = group.add(np.multiply, Place(0), Place(1))
    fused = fuse(group.steps, group.inputs, [result])
    fused.compile()
    assert_same(group, fused, [result], [x, number])


@needs_numba
def test_a_loop_that_gives_other_bits_is_not_used(monkeypatch):
    form = "({0} if {0} >= {1} else {1})"
    monkeypatch.setitem(numba_codegen._CHOICES, np.maximum, form)
    x, y = pairs("float32")
    group = Group([x, y])
    result = group.add(np.maximum, Place(0), Place(1))
    fused = fuse(group.steps, group.inputs, [result])
    fused.compile()
    assert not fused.ready
    assert_same(group, fused, [result], [x, y])


def test_what_is_not_fused():
    x = np.ones((2, 3, 4, 5, 6))
    for function in (np.exp, np.tanh, np.log, np.floor):
        group = Group([x])
        result = group.add(function, Place(0))
        assert fuse(group.steps, group.inputs, [result]) is None
    mixed = Group([x, np.ones((2, 1, 4, 1, 6))])
    result = mixed.add(np.add, Place(0), Place(1))
    assert fuse(mixed.steps, mixed.inputs, [result]) is None  # five axes
    half = Group([np.ones(3, np.float16)])
    result = half.add(np.add, Place(0), 1.0)
    assert fuse(half.steps, half.inputs, [result]) is None
    two = Group([np.ones((2, 3)), np.ones(3)])
    wide, row = two.add(np.add, Place(0), 1.0), two.add(np.add, Place(1), 1.0)
    assert fuse(two.steps, two.inputs, [wide, row]) is None  # results of two shapes
    assert fuse(two.steps, two.inputs, [Place(0)]) is None
    empty = Group([np.ones((0, 3))])
    result = empty.add(np.add, Place(0), 1.0)
    assert fuse(empty.steps, empty.inputs, [result]) is None


@needs_numba
def test_the_executor_decides_as_for_updates(monkeypatch):
    fused = relu((30, 40), "float64", (40,))[1]
    x, b = np.ones((30, 40)), np.ones(40)
    with use_executor("auto"):
        fused(x, b)
        assert not fused.ready
    with use_executor("numba"):
        fused(x, b)
        assert fused.ready
    again = relu((30, 40), "float64", (40,))[1]
    monkeypatch.setattr(executors, "LOOK_UP", 3 * x.size)
    with use_executor("auto"):
        again(x, b)
        assert not again.ready
        again(x, b)
        assert again.ready  # it is compiled already
    with use_executor("numpy"):
        assert again(x, b)[0].tolist() == np.full((30, 40), 2.0).tolist()
