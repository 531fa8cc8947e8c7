"""What the tests of the engine share."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

#: The rows are imported by the tests; collected for doctests as well they would be put in twice.
collect_ignore = ["rows"]


@pytest.fixture
def no_collector() -> Iterator[None]:
    """Switch the cycle collector off, so that only the last reference frees memory."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
