"""Python's collection of cycles, paused while much is made that stays."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collection_paused() -> Iterator[None]:
    """Make no search for garbage in cycles meanwhile, if searches are on.

    Imports make hundreds of thousands of objects that stay, and Python's collector looks through
    all of them again and again: an eighth of the time until the explorer is shown. What is freed by
    its reference count is freed as ever.

    Examples
    --------
    >>> import gc
    >>> with collection_paused():
    ...     gc.isenabled()
    False
    >>> gc.isenabled()
    True
    """
    if not gc.isenabled():  # by choice, or another pause stands around this one
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
