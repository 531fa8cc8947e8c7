"""Widgets that are collected when nothing refers to them."""

from __future__ import annotations

from typing import Any
from weakref import WeakMethod

import anywidget
from ipywidgets.widgets import widget as registry


class CollectableWidget(anywidget.AnyWidget):
    """A widget that lives as long as something refers to it, or as it is on a page.

    ipywidgets keeps every open widget until it is closed, with all its data. This one is collected,
    and closed, when the program has dropped it, unless a page needs it: once its model id was read,
    to display it or to put it into a box, it is kept like any other widget.
    """

    def hold_weakly(self) -> None:
        """Drop the references of the registry and of the comm; call it at the end of __init__."""
        if self.comm is None:
            return
        registry._instances.pop(self.comm.comm_id, None)
        handler = WeakMethod(self._handle_msg)

        def handle(message: Any) -> None:
            handle_message = handler()
            if handle_message is not None:
                handle_message(message)

        self.comm.on_msg(handle)

    @property
    def model_id(self) -> str:
        """The id by which a page refers to the widget; reading it keeps the widget open."""
        found: str = self.comm.comm_id
        registry._instances[found] = self
        return found

    def __del__(self) -> None:
        try:
            self.layout.close()
            self.close()
        except Exception:  # noqa: BLE001 - the interpreter is ending, its modules are gone
            pass
