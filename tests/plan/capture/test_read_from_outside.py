"""What a captured function reads from outside, and is changed between two calls."""

from __future__ import annotations

import argparse
import array
import builtins
import configparser
import math
import os
import sys
import threading
import types
from collections import ChainMap, UserDict
from contextvars import ContextVar
from typing import Any

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import optlab as ol

X = np.array([1.0, 2.0, 3.0], "float32")
BIG = (300, 300)  # of doubles: above what is watched as a whole in any case


def namespace() -> tuple[Any, Any]:
    settings = argparse.Namespace(scale=1.0)
    return lambda x: x * settings.scale, lambda: setattr(settings, "scale", 3.0)


def user_dict() -> tuple[Any, Any]:
    settings = UserDict(scale=1.0)
    return lambda x: x * settings["scale"], lambda: settings.update(scale=3.0)


def chain_map() -> tuple[Any, Any]:
    below = {"scale": 1.0}
    settings = ChainMap({}, below)
    return lambda x: x * settings["scale"], lambda: below.update(scale=3.0)


def mapping_proxy() -> tuple[Any, Any]:
    below = {"scale": 1.0}
    settings = types.MappingProxyType(below)
    return lambda x: x * settings["scale"], lambda: below.update(scale=3.0)


def python_array() -> tuple[Any, Any]:
    numbers = array.array("d", [1.0])
    return lambda x: x * numbers[0], lambda: numbers.__setitem__(0, 3.0)


def memory() -> tuple[Any, Any]:
    numbers = bytearray(X.tobytes())
    return (
        lambda x: x * np.frombuffer(numbers, "float32"),
        lambda: numbers.__setitem__(slice(0, 4), bytes(4)),
    )


def context_variable() -> tuple[Any, Any]:
    scale: ContextVar[float] = ContextVar("scale")
    scale.set(1.0)
    return lambda x: x * scale.get(), lambda: scale.set(3.0)


def thread_local() -> tuple[Any, Any]:
    settings = threading.local()
    settings.scale = 1.0
    return lambda x: x * settings.scale, lambda: setattr(settings, "scale", 3.0)


def array_of_objects() -> tuple[Any, Any]:
    numbers = np.array([2.0, 3.0], dtype=object)
    return lambda x: x * numbers[0], lambda: numbers.__setitem__(0, 7.0)


def class_attribute_of_a_subclass() -> tuple[Any, Any]:
    class Base:
        scale = 2.0

    class Derived(Base):
        pass

    settings = Derived()
    return lambda x: x * settings.scale, lambda: setattr(Derived, "scale", 5.0)


def behind_a_long_list() -> tuple[Any, Any]:
    samples = [(np.zeros(2), i) for i in range(2500)]
    settings = {"inner": {"scale": 2.0}}
    return (
        lambda x: x * settings["inner"]["scale"] + len(samples),
        lambda: settings["inner"].update(scale=7.0),
    )


def any_of_a_large_array() -> tuple[Any, Any]:
    large = np.ones(BIG)
    return lambda x: x * 2 if large.any() else x * 3, lambda: large.fill(0)


def sum_of_a_large_array() -> tuple[Any, Any]:
    large = np.ones(BIG)
    return lambda x: x * 2 if large.sum() > 0 else x * 3, lambda: large.fill(0)


def unique_elements_of_a_large_array() -> tuple[Any, Any]:
    large = np.arange(90_000.0).reshape(BIG)
    return (
        lambda x: x * large[0, 1:4] if len(np.unique(large[:, 0])) > 1 else x,
        lambda: large[:, 0].fill(1),
    )


def index_in_a_large_array() -> tuple[Any, Any]:
    large = np.arange(90_000)
    large[3] = 2
    return lambda x: x * x[int(large[3])], lambda: large.__setitem__(3, 0)


def environment() -> tuple[Any, Any]:
    os.environ["OPTLAB_TEST_SCALE"] = "2"
    return (
        lambda x: x * float(os.environ["OPTLAB_TEST_SCALE"]),
        lambda: os.environ.__setitem__("OPTLAB_TEST_SCALE", "3"),
    )


def environment_by_getenv() -> tuple[Any, Any]:
    os.environ.pop("OPTLAB_TEST_SCALE", None)
    return (
        lambda x: x * float(os.getenv("OPTLAB_TEST_SCALE", "2")),
        lambda: os.environ.__setitem__("OPTLAB_TEST_SCALE", "3"),
    )


def name_of_a_library() -> tuple[Any, Any]:
    return lambda x: x * len(sys.argv), lambda: sys.argv.append("one more")


def function_of_a_library() -> tuple[Any, Any]:
    module = types.ModuleType("math")
    module.floor = math.floor  # type: ignore[attr-defined]
    return lambda x: x * module.floor(2.7), lambda: setattr(module, "floor", math.ceil)


def built_in_name() -> tuple[Any, Any]:
    builtins.SCALE = 2.0  # type: ignore[attr-defined]
    return (
        lambda x: x * SCALE,  # type: ignore[name-defined]  # noqa: F821
        lambda: setattr(builtins, "SCALE", 3.0),
    )


def global_name_that_hides_a_built_in_one() -> tuple[Any, Any]:
    names: dict[str, Any] = {}
    exec("def f(x): return x * max(1.0, 2.0)", names)
    return names["f"], lambda: names.update(max=min)


def sparse_matrix() -> tuple[Any, Any]:
    matrix = scipy.sparse.csr_matrix(np.eye(3, dtype="float32"))
    return lambda x: x @ matrix.toarray(), lambda: matrix.data.__setitem__(0, 5)


def polynomial() -> tuple[Any, Any]:
    p = np.poly1d([1.0, 2.0])
    return lambda x: x * p(2.0), lambda: p.coeffs.__setitem__(0, 5.0)


def parser_of_settings() -> tuple[Any, Any]:
    settings = configparser.ConfigParser()
    settings["training"] = {"scale": "2"}
    return (
        lambda x: x * float(settings["training"]["scale"]),
        lambda: settings.set("training", "scale", "3"),
    )


def column_of_a_table() -> tuple[Any, Any]:
    table = pd.DataFrame({"scale": [1.0, 2.0, 3.0]})
    return (
        lambda x: x * table["scale"].to_numpy(),
        lambda: table.__setitem__("scale", [4.0, 5.0, 6.0]),
    )


def cell_of_a_table() -> tuple[Any, Any]:
    settings = pd.Series({"scale": 2.0})
    return lambda x: x * settings["scale"], lambda: settings.__setitem__("scale", 3.0)


CASES = [
    environment, environment_by_getenv, name_of_a_library, function_of_a_library, built_in_name,
    global_name_that_hides_a_built_in_one, sparse_matrix, polynomial, parser_of_settings,
    column_of_a_table, cell_of_a_table,
    namespace, user_dict, chain_map, mapping_proxy, python_array, memory, context_variable,
    thread_local, array_of_objects, class_attribute_of_a_subclass, behind_a_long_list,
    any_of_a_large_array, sum_of_a_large_array, unique_elements_of_a_large_array,
    index_in_a_large_array,
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_a_change_is_seen(case: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPTLAB_TEST_SCALE", "1")  # so that it is put back
    monkeypatch.setattr(sys, "argv", [*sys.argv])
    monkeypatch.setattr(builtins, "SCALE", 1.0, raising=False)
    f, change = case()
    captured = ol.capture(f)
    for _ in range(3):
        np.testing.assert_array_equal(captured(X), f(X))
    assert captured.plan is not None
    change()
    for _ in range(2):
        np.testing.assert_array_equal(captured(X), f(X))


def test_what_a_sparse_matrix_notes_for_itself_is_neither_an_effect_nor_lost() -> None:
    """It sorts its indices, and adds what stands twice, when that is first needed."""

    def matrix() -> Any:
        places = ([0, 0, 2, 1, 0], [2, 0, 2, 1, 0])
        return scipy.sparse.coo_matrix((np.arange(1.0, 6.0), places), shape=(3, 3)).tocsr()

    one, twin = matrix(), matrix()
    f = lambda m, x: x * m[0].toarray()[0] + (m @ m).toarray()[2]  # noqa: E731
    captured = ol.capture(lambda x: f(one, x))
    for _ in range(2):
        np.testing.assert_array_equal(captured(X), f(twin, X))
    assert len(captured.plans) == 1
    np.testing.assert_array_equal(one.toarray(), twin.toarray())
    assert one.has_canonical_format == twin.has_canonical_format


def test_looking_up_the_environment_is_paid_by_those_that_read_it() -> None:
    """A guard of the environment compares all of it in every call."""
    captured = ol.capture(lambda x: x * math.pi)
    captured(X)
    os.environ["OPTLAB_TEST_OTHER"] = "1"
    try:
        captured(X)
    finally:
        del os.environ["OPTLAB_TEST_OTHER"]
    assert len(captured.plans) == 1


def test_an_import_inside_is_no_look_at_files() -> None:
    def f(x: Any) -> Any:
        import this_package_is_not_there_either  # noqa: F401

        return x

    def g(x: Any) -> Any:
        try:
            return f(x)
        except ImportError:
            return 2 * x

    np.testing.assert_array_equal(ol.capture(g)(X), 2 * X)


def test_an_object_that_has_every_attribute_or_none() -> None:
    class Settings:
        def __getattr__(self, name: str) -> float:
            return {"scale": 2.0}[name]

    settings = Settings()
    captured = ol.capture(lambda x: x * settings.scale)
    for _ in range(2):
        np.testing.assert_array_equal(captured(X), 2 * X)


def test_too_many_objects_are_refused() -> None:
    lists = [[i] for i in range(30_000)]

    def f(x: Any) -> Any:
        return x * len(lists)

    with pytest.raises(ol.CaptureError, match="more than 20,000 objects from outside"):
        ol.capture(f)(X)
    np.testing.assert_array_equal(ol.capture(f, strict=False)(X), 30_000 * X)
