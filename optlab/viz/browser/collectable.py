"""Widgets that have a model in the browser only while a page needs one."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any

import anywidget
from ipywidgets import Layout, widget_serialization
from ipywidgets.widgets.trait_types import InstanceDict


class CollectableWidget(anywidget.AnyWidget):
    """A widget that is connected to the browser when its model id is first read, and not before.

    ipywidgets connects a widget when it is made, and keeps it with all its data until it is closed.
    This one is an object like any other, collected when the program has dropped it, until a page
    shows it or a box of ipywidgets takes it in. Closing it is no end: the next page connects it
    again, under the same id.
    """

    # Of its own width a page has none: in a row of widgets it would shrink to nothing.
    layout = InstanceDict(Layout, kw={"width": "100%"}).tag(sync=True, **widget_serialization)

    _needed = False

    def open(self) -> None:
        """Connect the widget, if a page needs it."""
        if self._needed and self.comm is None:
            self.layout.open()  # it may have been closed with its widget
            super().open()

    @property
    def model_id(self) -> str:
        """The id by which a page refers to the widget; reading it connects the widget."""
        if self.comm is None:
            self._needed = True
            self.open()
        found: str = self.comm.comm_id
        return found

    def close(self) -> None:
        """Disconnect the widget; the kernel then keeps nothing of it."""
        self._needed = False
        if "layout" in self._trait_values:  # reading it would make one
            self.layout.close()
        super().close()
        # ipywidgets hides how it is shown; ours can be shown again.
        self.__dict__.pop("_repr_mimebundle_", None)

    def __del__(self) -> None:
        with suppress(Exception):  # the interpreter may be ending, its modules are gone
            self.close()


def page_may_connect() -> bool:
    """Return whether the running cell was run from a page that can connect to the kernel.

    A program that executes notebooks (``nbconvert --execute``) shows no page: a model would only be
    stored in the notebook, whose HTML page then asks another host for ipywidgets. Voila has a page,
    though it cannot answer ``input()`` either.
    """
    from ipykernel.kernelbase import Kernel

    if not Kernel.initialized() or os.environ.get("SERVER_SOFTWARE", "").startswith("voila"):
        return True
    return _can_answer()


def page_follows() -> bool:
    """Return whether a page shows at once what the running cell displays, and follows its updates.

    A program that executes notebooks does not, and in an output of ipywidgets (``interact``, ``with
    Output():``) nothing is updated.
    """
    from ipykernel.kernelbase import Kernel
    from ipywidgets import Output
    from ipywidgets.widgets.widget import _instances

    if not Kernel.initialized() or os.environ.get("SERVER_SOFTWARE", "").startswith("voila"):
        return False
    taken = any(isinstance(one, Output) and one.msg_id for one in list(_instances.values()))
    return _can_answer() and not taken


def _can_answer() -> bool:
    """Return whether who asked to run the cell can answer ``input()``, as a page with a reader."""
    from ipykernel.kernelbase import Kernel

    asked: dict[str, Any] = Kernel.instance().get_parent("shell").get("content", {})
    return asked.get("allow_stdin", True) is not False
