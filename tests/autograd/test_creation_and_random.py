"""Creation of Tensors: from data, filled, and from seeds."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import optlab as ol
from optlab.backend import random

# From data.


@pytest.mark.parametrize(
    ("data", "dtype"),
    [
        (1.0, "float32"), ([1.0, 2.0], "float32"), ([[1.0], [2.0]], "float32"),
        ((1.0, 2), "float32"),
        (1, "int64"), ([1, 2], "int64"), (True, "bool"), ([True, False], "bool"),
        ([1, 2.5], "float32"), ([], "float32"), (np.float64(1.0), "float64"),
        (np.ones(2), "float64"), (np.ones(2, "float16"), "float16"), (np.ones(2, "int32"), "int32"),
        (np.ones((2, 0), "float32"), "float32"), (range(3), "int64"), (np.array(2.0), "float64"),
    ],
)  # fmt: skip
def test_dtypes_of_data(data: Any, dtype: str) -> None:
    t = ol.to_tensor(data)
    assert t.dtype == dtype
    assert t.shape == np.shape(data)
    assert t.tolist() == np.asarray(data).tolist()
    assert not t.requires_grad
    again = ol.to_tensor(t)
    assert (again.dtype, again.tolist()) == (t.dtype, t.tolist())


@pytest.mark.parametrize("dtype", ["float32", "float64", np.float32, np.dtype("float64"), "int64"])
def test_the_dtype_that_is_asked_for(dtype: Any) -> None:
    for data in ([1, 2], [1.0, 2.0], np.ones(2, "float32"), ol.to_tensor([1.0, 2.0])):
        assert ol.to_tensor(data, dtype=dtype).dtype == np.dtype(dtype)
    for make in (ol.zeros, ol.ones):
        assert make([2], dtype=dtype).dtype == np.dtype(dtype)
    assert ol.full([2], 3, dtype).dtype == np.dtype(dtype)
    assert ol.arange(4, dtype=dtype).dtype == np.dtype(dtype)


def test_data_are_copied() -> None:
    array = np.array([1.0, 2.0])
    t = ol.to_tensor(array)
    copy = ol.to_tensor(t)
    array[0] = 99.0
    assert t.tolist() == copy.tolist() == [1.0, 2.0]
    assert not np.shares_memory(t.data, copy.data)


def test_a_tensor_as_data_gives_its_values() -> None:
    x = ol.to_tensor([1.0, 2.0], requires_grad=True)
    assert not ol.to_tensor(x).requires_grad
    fresh = ol.to_tensor(x, requires_grad=True)
    fresh.backward()
    assert x.grad is None


def test_a_result_as_data_does_not_lose_its_tape_silently() -> None:
    x = ol.to_tensor([1.0, 2.0], requires_grad=True)
    with pytest.raises(TypeError, match="detach"):
        ol.to_tensor(x * 2)
    with pytest.raises(TypeError, match="detach"):
        ol.Parameter(x * 2)
    assert ol.to_tensor((x * 2).detach()).tolist() == [2.0, 4.0]


@pytest.mark.parametrize(
    "data", ["text", None, 1 + 2j, [1, "a"], {"a": 1}, object(), np.array(["a"]), [None]]
)
def test_what_is_no_number_is_refused(data: Any) -> None:
    with pytest.raises(TypeError, match=r"to_tensor takes real numbers"):
        ol.to_tensor(data)


def test_rows_of_different_length_are_refused_in_words() -> None:
    with pytest.raises((TypeError, ValueError), match=r"(?i)different length"):
        ol.to_tensor([[1.0, 2.0], [3.0]])


def test_lists_of_tensors() -> None:
    plain = ol.to_tensor([ol.to_tensor(1.0), ol.to_tensor(2.0)])
    assert plain.tolist() == [1.0, 2.0]
    with pytest.raises(TypeError, match=r"optlab\.numpy"):
        ol.to_tensor([ol.to_tensor(1.0, requires_grad=True), 2.0])


def test_how_a_tensor_looks() -> None:
    assert repr(ol.to_tensor([1.0, 2.5])) == "Tensor([1. , 2.5], dtype=float32)"
    t = ol.to_tensor([[1, 2]])
    assert (t.shape, t.ndim, t.size, t.nbytes, len(t)) == ((1, 2), 2, 2, 16, 1)
    assert "requires_grad=True" in repr(ol.to_tensor(1.0, requires_grad=True))
    with pytest.raises(TypeError, match="no axes"):
        iter(ol.to_tensor(1.0))


# Shapes and fill values.

SHAPES = {
    "list": [2, 3], "tuple": (2, 3), "array": np.array([2, 3]), "Tensor": ol.to_tensor([2, 3]),
    "list of Tensors": [ol.to_tensor(2), 3], "NumPy integers": (np.int64(2), np.int32(3)),
}  # fmt: skip
MAKERS = {
    "zeros": ol.zeros, "ones": ol.ones, "full": lambda shape: ol.full(shape, 7.0),
    "rand": ol.rand, "randn": ol.randn, "uniform": ol.uniform,
    "normal": lambda shape: ol.normal(1.0, 2.0, shape),
    "randint": lambda shape: ol.randint(0, 9, shape),
}  # fmt: skip


@pytest.mark.parametrize("kind", SHAPES)
@pytest.mark.parametrize("maker", MAKERS)
def test_shapes_of_every_kind(maker: str, kind: str) -> None:
    make = MAKERS[maker]
    t = make(SHAPES[kind])
    assert isinstance(t, ol.Tensor)
    assert t.shape == (2, 3)
    assert t.dtype == ("int64" if maker == "randint" else "float32")
    assert not t.requires_grad
    assert make(4).shape == make(np.int64(4)).shape == make([4]).shape == (4,)
    assert make([]).shape == make(()).shape == ()
    assert make([0, 2]).shape == (0, 2)


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("shape", [-1, [2, -1]])
def test_negative_lengths_are_refused(maker: str, shape: Any) -> None:
    with pytest.raises(ValueError, match="negative"):
        MAKERS[maker](shape)


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("shape", [[2.7], 2.7, "23", [None]])
def test_lengths_that_are_no_whole_numbers_are_refused(maker: str, shape: Any) -> None:
    with pytest.raises(TypeError):
        MAKERS[maker](shape)


def test_fillings() -> None:
    assert ol.zeros([2]).tolist() == [0.0, 0.0]
    assert ol.ones([2]).tolist() == [1.0, 1.0]
    assert ol.full([2], 7).dtype == np.float32  # as in Paddle
    assert ol.full([2], np.int64(7)).dtype == np.int64
    assert ol.full([2], True).dtype == np.bool_
    assert ol.full([2], 1.5).dtype == np.float32
    assert ol.full([2], np.ones(2)).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("dtype", [None, "float32", "float64"])
def test_full_of_a_tensor_keeps_its_gradient(dtype: Any) -> None:
    x = ol.to_tensor(3.0, requires_grad=True)
    filled = ol.full([2, 2], x, dtype)
    assert filled.dtype == np.dtype(dtype or "float32")
    filled.backward()
    assert x.grad is not None
    assert x.grad.item() == 4.0


@pytest.mark.parametrize(
    ("args", "dtype"),
    [((4,), "int64"), ((1, 4), "int64"), ((0, 10, 3), "int64"), ((4.0,), "float32"),
     ((0, 1, 0.25), "float32"), ((3, 0, -1), "int64"), ((ol.to_tensor(4),), "int64")],
)  # fmt: skip
def test_arange(args: Any, dtype: str) -> None:
    t = ol.arange(*args)
    assert t.dtype == dtype
    assert t.tolist() == np.arange(*[getattr(x, "data", x) for x in args]).tolist()


# From seeds.

DRAWS = {
    "rand": lambda: ol.rand([50]), "randn": lambda: ol.randn([50]),
    "uniform": lambda: ol.uniform([50], min=-3.0, max=5.0),
    "normal": lambda: ol.normal(1.0, 2.0, [50]), "randint": lambda: ol.randint(0, 1000, [50]),
    "float64": lambda: ol.rand([50], dtype="float64"),
}  # fmt: skip


@pytest.mark.parametrize("name", DRAWS)
def test_a_seed_gives_the_same_numbers_to_the_bit(name: str) -> None:
    draw = DRAWS[name]
    ol.seed(7)
    first, second = draw().numpy(), draw().numpy()
    ol.seed(7)
    np.testing.assert_array_equal(draw().numpy(), first)
    np.testing.assert_array_equal(draw().numpy(), second)
    assert not np.array_equal(first, second)
    ol.seed(8)
    assert not np.array_equal(draw().numpy(), first)


@settings(deadline=None, max_examples=50, derandomize=True)
@given(st.integers(), st.integers())
def test_any_whole_number_is_a_seed_of_its_own(one: int, two: int) -> None:
    ol.seed(one)
    first = ol.rand([4]).tolist()
    ol.seed(two)
    assert (ol.rand([4]).tolist() == first) is (one == two)


def test_a_seed_may_be_a_numpy_integer() -> None:
    ol.seed(np.int64(5))
    first = ol.rand([3]).tolist()
    ol.seed(5)
    assert ol.rand([3]).tolist() == first


@pytest.mark.parametrize("n", [1.5, "7", None, np.float64(7.0), [7]])
def test_other_seeds_are_refused(n: Any) -> None:
    with pytest.raises(TypeError, match="seed takes an integer"):
        ol.seed(n)


def test_numpys_own_random_state_is_neither_read_nor_changed() -> None:
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    ol.seed(1)
    first = ol.rand([3]).tolist()
    np.random.seed(99)  # noqa: NPY002
    ol.seed(1)
    assert ol.rand([3]).tolist() == first
    np.random.set_state(("MT19937", before, 624, 0, 0.0))  # noqa: NPY002
    ol.rand([3])
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_scopes_do_not_notice_what_is_drawn_outside_nor_the_outside_them() -> None:
    def run(extra: int) -> tuple[Any, Any, Any]:
        ol.seed(3)
        outside = [ol.rand([3]).tolist()]
        for _ in range(extra):
            ol.rand([2])
        with random.scope("data", 4):
            inside = [ol.rand([3]).tolist() for _ in range(2 + extra)]
        return outside[0], inside[:2], ol.rand([3]).tolist()

    before, inside, after = run(0)
    before_more, inside_more, after_more = run(5)
    assert before == before_more
    assert inside == inside_more
    assert after != after_more  # five more draws outside the scope
    ol.seed(3)
    ol.rand([3])
    assert ol.rand([3]).tolist() == after  # the draws inside the scope did not count


def test_threads_do_not_change_what_a_scope_draws() -> None:
    def draw(i: int) -> list[Any]:
        with random.scope("worker", i):
            return [ol.randn([4]).tolist() for _ in range(20)]

    ol.seed(11)
    wanted = [draw(i) for i in range(8)]
    found: dict[int, list[Any]] = {}
    ol.seed(11)
    threads = [
        threading.Thread(target=lambda i=i: found.__setitem__(i, draw(i)))
        for i in reversed(range(8))
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[i] for i in range(8)] == wanted


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-1.0, 1.0), (1000.0, 1001.0), (5.0, 5.5)])
def test_uniform_draws_stay_below_the_upper_bound(low: float, high: float, dtype: str) -> None:
    """The interval is half open, as documented, also after rounding to the dtype."""
    ol.seed(0)
    drawn = ol.uniform([200_000], dtype, low, high).numpy()
    assert drawn.min() >= low
    assert drawn.max() < high


def test_the_moments_of_draws() -> None:
    ol.seed(0)
    n = 100_000
    uniform = ol.uniform([n], "float64", min=2.0, max=4.0).numpy()
    normal = ol.normal(3.0, 0.5, [n], "float64").numpy()
    standard, whole = ol.randn([n], "float64").numpy(), ol.randint(-2, 3, [n]).numpy()
    assert uniform.mean() == pytest.approx(3.0, abs=0.02)
    assert uniform.std() == pytest.approx(2 / 12**0.5, abs=0.02)
    assert (normal.mean(), normal.std()) == pytest.approx((3.0, 0.5), abs=0.01)
    assert (standard.mean(), standard.std()) == pytest.approx((0.0, 1.0), abs=0.02)
    assert set(whole.tolist()) == {-2, -1, 0, 1, 2}
    assert set(ol.randint(3, shape=[1000]).tolist()) == {0, 1, 2}
    with pytest.raises(ValueError, match="low >= high"):
        ol.randint(3, 3, [2])
