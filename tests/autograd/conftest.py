"""Fixtures shared by the tests of the engine."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

#: The tests import the rows; collected for doctests as well, they would be registered twice.
collect_ignore = ["rows"]


@pytest.fixture
def no_collector() -> Iterator[None]:
    """Switch the garbage collector off, so that only reference counts free memory."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
