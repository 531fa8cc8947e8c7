"""Errors for attributes that a package does not have."""

from __future__ import annotations

from typing import Any

import pytest

import optlab as ol


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
