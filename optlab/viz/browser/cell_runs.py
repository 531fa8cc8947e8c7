"""Runs of notebook cells: a cell's widgets are closed when the cell runs again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakMethod

_made: dict[str, tuple[Any, list[WeakMethod[Callable[[], None]]]]] = {}


def close_earlier(release: Callable[[], None]) -> None:
    """Close the widgets that an earlier run of the same cell created.

    Kernel and page keep every open widget: twenty runs of a cell would keep twenty widgets.

    Parameters
    ----------
    release : bound method
        Closes the widget just created; called when its cell runs again. Only a weak reference to
        it is stored.
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
