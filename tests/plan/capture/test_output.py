"""What a step prints, logs or counts cannot be repeated by a plan: it is refused."""

from __future__ import annotations

import io
import linecache
import logging
import sys
import warnings
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import optlab as ol
from tests.plan.capture.twins import given

Effect = Callable[[], Any]


def counted_in(box: Any) -> tuple[Effect, Callable[[], Any]]:
    def count() -> None:
        box["a"] = box.get("a", 0) + 1

    return count, lambda: dict(box)


def written() -> tuple[Effect, Callable[[], Any]]:
    stream = io.StringIO()
    return lambda: stream.write("a"), stream.getvalue


def printed() -> tuple[Effect, Callable[[], Any]]:
    stream = io.StringIO()
    return lambda: print("a", file=stream), stream.getvalue


def logged() -> tuple[Effect, Callable[[], Any]]:
    stream = io.StringIO()
    logger = logging.Logger("a test of capture")
    logger.addHandler(logging.StreamHandler(stream))
    return lambda: logger.warning("a"), stream.getvalue


EFFECTS: dict[str, Callable[[], tuple[Effect, Callable[[], Any]]]] = {
    "Counter": lambda: counted_in(Counter()),
    "defaultdict": lambda: counted_in(defaultdict(int)),
    "OrderedDict": lambda: counted_in(OrderedDict()),
    "a stream": written,
    "print": printed,
    "logging": logged,
}


@pytest.mark.parametrize("name", EFFECTS)
def test_what_a_step_shows_or_counts(name: str) -> None:
    effect, _ = EFFECTS[name]()

    def f(x: Any) -> Any:
        effect()
        return x * 2

    with pytest.raises(ol.CaptureError, match=r"test_output\.py"):
        ol.capture(f)(ol.ones([2]))
    effect, seen = EFFECTS[name]()
    for call in (ol.capture(f, strict=False), ol.jit.to_static(f)):
        for _ in range(3):
            call(ol.ones([2]))
    again, wanted = EFFECTS[name]()
    for _ in range(6):
        again()
    assert seen() == wanted()


def test_the_line_of_a_warning_is_looked_up_in_its_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """That is no look at files which the function takes."""
    shown: list[str] = []

    def show(message: Any, category: Any, file: str, number: int, *more: Any) -> None:
        linecache.clearcache()
        shown.append(warnings.formatwarning(message, category, file, number))

    def f(x: Any) -> Any:
        warnings.warn("a warning", stacklevel=1)
        return 2 * x

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        monkeypatch.setattr(warnings, "showwarning", show)
        captured = ol.capture(f)
        np.testing.assert_array_equal(captured(given(3)), 2 * given(3))
    assert 'warnings.warn("a warning"' in shown[0]
    assert captured.plan is not None


def test_warnings_of_a_step_are_no_effects() -> None:
    w = ol.Parameter([1.0])
    optimizer = ol.optimizer.SGD(0.1, parameters=[w])

    @ol.capture
    def f() -> None:
        optimizer.step()  # there is no gradient: it warns

    with pytest.warns(UserWarning, match="gradient"):
        f()


def test_writes_to_a_tensor_from_outside() -> None:
    last = ol.zeros([3])

    @ol.capture
    def f(x: Any) -> Any:
        last[0] = x[1]
        return x * 2

    for i in range(4):
        f(ol.to_tensor(np.array([0.0, i, 0.0], "float32")))
        assert last.tolist() == [i, 0.0, 0.0]


def test_a_captured_method_tells_of_its_plan() -> None:
    class Model:
        @ol.capture
        def double(self, x: Any) -> Any:
            return x * 2

    model = Model()
    assert model.double.execution == "not called yet"
    model.double(ol.ones([2]))
    assert model.double.plan is not None


def test_an_import_may_write_the_bytecode_of_its_module(tmp_path: Any, monkeypatch: Any) -> None:
    (tmp_path / "imported_in_a_captured_call.py").write_text("FACTOR = 3.0\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", None)

    def triple(x: Any) -> Any:
        import imported_in_a_captured_call

        return x * imported_in_a_captured_call.FACTOR

    captured = ol.capture(triple)
    x = ol.ones([3])
    assert [captured(x).tolist() for _ in range(3)] == [[3.0] * 3] * 3
    assert list(tmp_path.glob("__pycache__/*.pyc"))
    assert captured.plan is not None
