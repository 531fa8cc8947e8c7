"""detect_anomaly: the first operation or derivative that produces NaN or infinity."""

from __future__ import annotations

import re
import sys
import threading
import types
from typing import Any

import numpy as np
import pytest

import optlab as ol

AnomalyError = ol.autograd.AnomalyError


def leaf(*values: float) -> ol.Tensor:
    return ol.to_tensor(values, dtype="float64", requires_grad=True)


def test_forward_names_operation_element_and_line() -> None:
    x = leaf(4.0, 0.0, 0.0)
    with (
        np.errstate(all="ignore"),
        pytest.raises(AnomalyError) as caught,
        ol.autograd.detect_anomaly(),
    ):
        np.log(x)
    message = str(caught.value)
    assert message.startswith("'log' gave -inf at element [1] of shape (3,), from x = 0.0 (2 of 3")
    assert re.search(r"test_detect_anomaly\.py, line \d+: np\.log\(x\)", message)


def test_backward_names_the_operation_and_the_line_of_its_forward() -> None:
    x = leaf(4.0, 0.0)
    with np.errstate(all="ignore"), ol.autograd.detect_anomaly():
        y = np.sum(x**0.3)
        with pytest.raises(AnomalyError) as caught:
            y.backward()
    message = str(caught.value)
    assert "derivative of 'number_power' for x is inf at element [1]" in message
    assert "line" in message
    assert "y = np.sum(x**0.3)" in message


def test_what_was_infinite_before_is_not_blamed() -> None:
    x = leaf(1.0, 2.0)
    mask = np.array([0.0, -np.inf])
    with ol.autograd.detect_anomaly():
        np.sum(np.exp(x + mask)).backward()
    assert x.grad.tolist() == [np.e, 0.0]


def test_single_numbers_reductions_and_several_outputs() -> None:
    huge = leaf(1e308, 1e308)
    with np.errstate(all="ignore"):
        with pytest.raises(AnomalyError, match=r"'sum' gave inf of shape \(\)"):
            _sum(huge)
        with (
            pytest.raises(AnomalyError, match="'divide' gave inf of shape"),
            ol.autograd.detect_anomaly(),
        ):
            ol.to_tensor(1.0, requires_grad=True) / 0.0


def _sum(x: Any) -> None:
    with ol.autograd.detect_anomaly():
        np.sum(x)


def test_outside_the_block_and_in_other_threads_nothing_is_checked() -> None:
    x = leaf(0.0)
    found: list[Any] = []

    def work() -> None:
        with np.errstate(all="ignore"):
            found.append(np.log(x))

    with ol.autograd.detect_anomaly():
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert found[0].tolist() == [-np.inf]
    with np.errstate(all="ignore"):
        assert np.log(x).tolist() == [-np.inf]


def test_it_changes_no_bit_of_a_healthy_run() -> None:
    def run() -> Any:
        x = leaf(0.3, -1.2)
        np.sum(np.tanh(x) * np.exp(x)).backward()
        return x.grad.numpy()

    plain = run()
    with ol.autograd.detect_anomaly():
        np.testing.assert_array_equal(run(), plain)


SEVERAL = {
    "split": lambda x: np.split(x, 2)[0] * 2.0, "rows": lambda x: next(iter(x)) ** 2,
    "modf": lambda x: np.modf(x)[0], "eigh": lambda x: np.linalg.eigh(x)[0],
    "svd": lambda x: np.linalg.svd(x)[1],
}  # fmt: skip


@pytest.mark.parametrize("name", SEVERAL)
def test_operations_with_several_outputs_are_checked_too(name: str) -> None:
    x = ol.to_tensor(np.array([[2.0, 0.5], [0.5, 1.25]]), requires_grad=True)
    with ol.autograd.detect_anomaly():
        np.sum(SEVERAL[name](x)).backward()
    assert np.isfinite(x.grad.numpy()).all()


def test_functions_and_item_assignment_are_checked_too() -> None:
    class Bad(ol.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return np.log(x)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * np.inf

    with np.errstate(all="ignore"), ol.autograd.detect_anomaly():
        with pytest.raises(AnomalyError, match="'Bad' gave -inf"):
            Bad.apply(leaf(0.0))
        y = Bad.apply(leaf(1.0))
        with pytest.raises(AnomalyError, match="derivative of 'Bad' for argument 0 is inf"):
            y.backward()


def test_an_assigned_nan_is_no_new_anomaly_but_an_overflow_is() -> None:
    y = leaf(1.0, 2.0) * 1.0
    with ol.autograd.detect_anomaly():
        y[0] = np.nan  # it was NaN before
    narrow = ol.to_tensor([1.0], dtype="float32", requires_grad=True) * 1.0
    with (
        np.errstate(over="ignore"),
        ol.autograd.detect_anomaly(),
        pytest.raises(AnomalyError, match="'assign' gave inf"),
    ):
        narrow[0] = 1e300


def test_a_step_of_a_derivative_rule_is_not_named_but_the_derivative_with_its_inputs() -> None:
    def first(p: Any) -> Any:
        return np.sum(np.arcsin(1 - p) * (p + 1))

    with (
        np.errstate(all="ignore"),
        pytest.raises(AnomalyError) as caught,
        ol.autograd.detect_anomaly(),
    ):
        ol.grad(lambda p: np.sum(ol.grad(first)(p)))(leaf(1.0, 0.0))
    message = str(caught.value)
    assert message.startswith("the derivative of 'arcsin' for x is ")
    assert "at element [1]" in message
    assert "x = 1.0" in message
    assert "return np.sum(np.arcsin(1 - p) * (p + 1))" in message


def test_the_backward_of_a_function_of_the_user_is_looked_into() -> None:
    class Mine(ol.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * 1.0

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * np.log(ctx.saved_tensors[0])

    with (
        np.errstate(all="ignore"),
        pytest.raises(AnomalyError, match="'log' gave -inf"),
        ol.autograd.detect_anomaly(),
    ):
        np.sum(Mine.apply(leaf(1.0, 0.0))).backward(create_graph=True)


class _Shell:
    """The part of IPython that names the cells of a notebook."""

    class compile:
        @staticmethod
        def format_code_name(name: str) -> Any:
            return ("Cell", "In[7]") if name == "/tmp/ipykernel_12/345.py" else None


def test_a_cell_of_a_notebook_is_named_by_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    ipython = types.ModuleType("IPython")
    ipython.get_ipython = lambda: _Shell  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    code = "with np.errstate(all='ignore'), ol.autograd.detect_anomaly():\n    np.log(x)"
    for file, said in (
        ("/tmp/ipykernel_12/345.py", "cell In[7], line 2"),
        ("a.py", "a.py, line 2"),
    ):
        with pytest.raises(AnomalyError, match=re.escape(f"called in {said}")):
            exec(compile(code, file, "exec"), {"np": np, "ol": ol, "x": leaf(0.0)})


def test_a_cell_of_ipython_itself() -> None:
    shell = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell.instance()
    shell.push({"np": np, "ol": ol, "x": leaf(0.0), "AnomalyError": AnomalyError})
    shell.run_cell(
        "try:\n    with np.errstate(all='ignore'), ol.autograd.detect_anomaly():\n"
        "        np.log(x)\nexcept AnomalyError as error:\n    said = str(error)",
        store_history=True,
    )
    assert re.search(r"called in cell In\[\d+\], line 3: np\.log\(x\)", shell.user_ns["said"])
    type(shell).clear_instance()


EXAMPLES = np.array([[2.0, 3.0], [1.0, 5.0], [4.0, 9.0]])


def _logs(v: Any) -> Any:
    return np.sum(np.log(v - 1))


def _roots(v: Any) -> Any:
    return np.sum(np.sqrt(v - 1))


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (lambda x: ol.vmap(ol.grad(_logs))(x), "'log' gave -inf at element [0] of shape (2,), in"),
        (lambda x: ol.vmap(ol.grad(_roots))(x), "the derivative of 'sqrt' for x is inf at element"),
        (lambda x: np.sum(ol.vmap(_roots)(x)).backward(), "the derivative of 'sqrt' for x is inf"),
        (
            lambda x: ol.vmap(ol.grad(lambda v: ol.recompute(_logs, v)))(x),
            "'log' gave -inf at element [0] of shape (2,), in",
        ),
    ],
)
def test_inside_vmap_it_names_the_example(run: Any, said: str) -> None:
    x = ol.to_tensor(EXAMPLES, requires_grad=True)
    with (
        np.errstate(all="ignore"),
        pytest.raises(AnomalyError) as caught,
        ol.autograd.detect_anomaly(),
    ):
        run(x)
    assert str(caught.value).startswith(said)
    assert "of shape (2,), in example 1, from" in str(caught.value)


def test_inside_vmap_of_vmap_the_outer_example_comes_first() -> None:
    each = ol.vmap(ol.vmap(ol.grad(np.sqrt)))
    with np.errstate(all="ignore"), ol.autograd.detect_anomaly():
        assert each(EXAMPLES).shape == (3, 2)
        with pytest.raises(AnomalyError, match=r"of shape \(\), in example \(1, 0\), from"):
            each(EXAMPLES - 1)


def test_what_was_infinite_in_one_example_is_not_blamed_but_that_of_another_is() -> None:
    plain = ol.vmap(ol.grad(lambda v: np.sum(np.exp(-v))))
    with np.errstate(all="ignore"), ol.autograd.detect_anomaly():
        before = np.array([[np.inf, 0.0], [1.0, 2.0]])
        np.testing.assert_array_equal(plain(before), -np.exp(-before))
        with pytest.raises(AnomalyError, match=r"'exp' gave inf .*in example 1"):
            plain(np.array([[-np.inf, 0.0], [-1000.0, 2.0]]))


def test_the_members_of_an_ensemble_are_told_apart() -> None:
    x = ol.to_tensor(ol.ensemble(EXAMPLES), requires_grad=True)
    with (
        np.errstate(all="ignore"),
        pytest.raises(AnomalyError, match="in example 1"),
        ol.autograd.detect_anomaly(),
    ):
        _logs(x)
