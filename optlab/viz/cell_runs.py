"""Runs of a notebook's cells: what a cell shows goes when the same cell runs again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakMethod

_made: dict[str, tuple[Any, list[WeakMethod[Callable[[], None]]]]] = {}


def close_earlier(release: Callable[[], None]) -> None:
    """Close the widgets that an earlier run of the same cell made.

    Neither the kernel nor the page ever forgets an open widget: twenty runs of a cell would keep
    twenty widgets.

    Parameters
    ----------
    release : bound method
        Of the widget that was made now: it closes the widget when its cell runs again. The widget
        is not kept alive for that.
    """
    from ipykernel.kernelbase import Kernel

    if not Kernel.initialized():
        return
    header = Kernel.instance().get_parent("shell")
    cell = header.get("metadata", {}).get("cellId")
    message = header.get("header", {}).get("msg_id")
    if cell is None or message is None:
        return
    before, earlier = _made.get(cell, (message, []))
    if before != message:
        for reference in earlier:
            close = reference()
            if close is not None:
                close()
        earlier = []
    _made[cell] = message, [*earlier, WeakMethod(release)]
