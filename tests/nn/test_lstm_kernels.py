"""The compiled steps of an LSTM give NumPy's bits, and leave NumPy what they may not do."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import optlab as ol
from optlab.backend.native_calls import gemm
from optlab.nn.functional import lstm_kernels, recurrent
from optlab.plan import use_executor
from optlab.plan.executors import LOOK_UP, has_numba

needs_numba = pytest.mark.skipif(
    not has_numba() or gemm(np.dtype("float32")) is None,
    reason="needs the extra `fast` (numba), and a NumPy with OpenBLAS",
)
WIDTH = 5


@pytest.fixture(autouse=True)
def unknown(monkeypatch):
    """Begin without kernels, and without work that was done before."""
    monkeypatch.setattr(lstm_kernels, "_known", {})
    monkeypatch.setattr(lstm_kernels, "_worked", 0)


@pytest.fixture
def runs(monkeypatch):
    """Return the names of the kernels that ran, and whether all values were finite."""
    found = []

    def watched(name):
        run = getattr(lstm_kernels, name)

        def watch(*args):
            found.append((name, run(*args)))
            return found[-1][1]

        monkeypatch.setattr(recurrent, name, watch)

    for name in ("run_forward", "run_backward"):
        watched(name)
    return found


def run(executor, dtype="float32", shape=(7, 3), spoil=None, scale=1.0, **options):
    """Return the results and all gradients of a network."""
    draw = np.random.default_rng(0)
    with use_executor(executor):
        ol.seed(0)
        layer = ol.nn.LSTM(4, WIDTH, 2, dtype=dtype, **options)
        length, batch = shape
        first = shape if options.get("time_major") else (batch, length)
        x = scale * draw.standard_normal((*first, 4)).astype(dtype)
        if spoil is not None:
            x[0, 0, 0] = spoil
        t = ol.to_tensor(x, requires_grad=True)
        y, states = layer(t)
        y.backward(draw.standard_normal(y.shape).astype(dtype))
        leaves = (t, *layer.parameters())
        return [a.detach().numpy() for a in (y, *states, *(leaf.grad for leaf in leaves))]


@needs_numba
@pytest.mark.parametrize("shape", [(7, 3), (1, 2), (50, 16), (3, 33)])
@pytest.mark.parametrize("direction", ["forward", "bidirect"])
@pytest.mark.parametrize("time_major", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_compiled_steps_have_numpys_bits(runs, dtype, time_major, direction, shape):
    options = {"dtype": dtype, "shape": shape, "direction": direction, "time_major": time_major}
    expected = run("numpy", **options)
    assert not runs
    found = run("numba", **options)
    ways = 2 if direction == "bidirect" else 1
    for name in ("run_forward", "run_backward"):
        # Two layers, and the comparison with NumPy in either direction.
        assert runs.count((name, True)) == 2 * ways + 2
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == b.dtype
        assert a.tobytes() == b.tobytes()


@needs_numba
@pytest.mark.parametrize("spoil", [np.inf, np.nan, 3e38])
def test_values_that_are_not_finite_are_numpys_with_its_warnings(runs, spoil):
    def told(executor):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = run(executor, spoil=spoil, scale=100.0)
        return found, {str(one.message) for one in caught if one.category is RuntimeWarning}

    expected, words = told("numpy")
    found, others = told("numba")
    assert others == words
    assert ("run_forward", False) in runs or spoil == 3e38
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


@needs_numba
def test_a_single_sequence_is_left_to_numpy(runs):
    run("numba", shape=(7, 1))
    assert not runs


@needs_numba
def test_kernels_that_differ_from_numpy_are_not_used(runs, monkeypatch):
    monkeypatch.setattr(recurrent, "_same", lambda a, b: False)
    expected = run("numpy")
    found = run("numba")
    assert {name for name, _ in runs} == {"run_forward", "run_backward"}
    assert len(runs) == 4  # the comparison alone
    for a, b in zip(found, expected, strict=True):
        assert a.tobytes() == b.tobytes()


def test_nothing_is_compiled_before_it_pays_off(runs):
    run("auto")
    assert not runs
    assert 0 < lstm_kernels._worked < LOOK_UP
    assert not lstm_kernels._known


def test_gradients_of_cells_and_of_gates_are_numpys_too():
    """The compiled steps know gradients of the outputs alone."""
    draw = np.random.default_rng(0)
    x = draw.standard_normal((3, 6, 4))

    def found(executor):
        with use_executor(executor):
            ol.seed(0)
            layer = ol.nn.LSTM(4, WIDTH, dtype="float64")
            t = ol.to_tensor(x, requires_grad=True)
            y, (h, c) = layer(t)
            (np.sum(y) + np.sum(h * h) + np.sum(c * c)).backward()
            return [p.grad.numpy() for p in (t, *layer.parameters())]

    for a, b in zip(found("numba" if has_numba() else "auto"), found("numpy"), strict=True):
        assert a.tobytes() == b.tobytes()


@needs_numba
def test_kernels_of_many_widths_are_bounded(monkeypatch):
    monkeypatch.setattr(lstm_kernels, "_MOST_WIDTHS", 2)
    monkeypatch.setattr(lstm_kernels, "is_compiled", lambda steps, worked: False)
    with use_executor("numba"):
        for width in range(2, 9):
            assert lstm_kernels.steps_of(np.dtype("float32"), (3, 2, width), lambda _: True) is None
            assert len(lstm_kernels._known) <= 2
