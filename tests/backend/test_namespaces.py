"""Faces of packages: what public classes name as their module, and errors for unknown names."""

from __future__ import annotations

import importlib
import inspect
import operator
import sys
from typing import Any

import pytest
from IPython.core import oinspect

import optlab as ol
from tests.public_api import MODULES, PATHS


@pytest.mark.parametrize(
    ("package", "name", "meant"),
    [
        (ol.optimizer, "Adm", "Adam"),
        (ol.optimizer, "rmsprob", "RMSProp"),
        (ol.nn, "Liner", "Linear"),
        (ol.problems, "rosenbrok", "rosenbrock"),
    ],
)
def test_a_close_name_is_suggested(package: Any, name: str, meant: str) -> None:
    with pytest.raises(AttributeError, match=f"Did you mean '{meant}'"):
        getattr(package, name)


def test_else_all_names_are_listed() -> None:
    with pytest.raises(AttributeError, match=r"has no 'Shampoo'; it has .*Adam"):
        _ = ol.optimizer.Shampoo


def test_completion_shows_what_is_for_users() -> None:
    assert "Adam" in dir(ol.optimizer)
    assert "params" not in dir(ol.optimizer)


#: Modules that users import from.
RECORDED = {*MODULES, *PATHS}
PUBLIC = [
    (place, name)
    for place in ("autograd", "io", "lab", "nn", "nn.initializer", "optimizer", "optimizer.lr")
    for name, thing in vars(operator.attrgetter(place)(ol)).items()
    if isinstance(thing, type) and not name.startswith("_")
]


@pytest.mark.parametrize(("place", "name"), PUBLIC)
def test_a_public_class_names_its_package_and_shows_its_source(place: str, name: str) -> None:
    cls = getattr(operator.attrgetter(place)(ol), name)
    assert getattr(importlib.import_module(cls.__module__), name) is cls
    assert cls.__module__ in {f"optlab.{place}", *RECORDED}
    assert f"class {cls.__name__}" in str(oinspect.getsource(cls))  # ``cls??`` in a notebook
    if sys.version_info < (3, 13):  # later ones look nowhere but in the file of `__module__`
        assert f"class {cls.__name__}" in inspect.getsource(cls)


def test_a_subclass_has_a_source_of_its_own() -> None:
    class Narrow(ol.nn.Linear):
        """One feature in, one out."""

    assert "One feature in" in inspect.getsource(Narrow)
    assert not hasattr(Narrow, "__wrapped__")
    assert not hasattr(Narrow(1, 1), "__wrapped__")
