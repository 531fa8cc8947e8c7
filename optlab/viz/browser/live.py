"""Widgets whose output is a page that lives without a kernel, and is never blank."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import Any, ClassVar

import traitlets
from IPython.display import display, update_display

from optlab.backend.garbage import collection_paused
from optlab.viz.browser import App, live_html, packed, stored_text, with_picture
from optlab.viz.browser.collectable import (
    CollectableWidget,
    page_follows,
    page_may_connect,
)

_BRIDGE = (Path(__file__).parent / "static" / "bridge.js").read_text(encoding="utf-8")


class LiveWidget(CollectableWidget):
    """A widget whose output is HTML: a picture, and a live page where scripts may run.

    No output holds a widget view, which a saved notebook shows as an error. The model of this
    widget is never shown: it is the bridge between the page and the kernel, while there is one. In
    a box of ipywidgets it is shown, as any widget.

    Subclasses set `app` and define `stored`, `picture` and `text`.
    """

    _esm = _BRIDGE
    app: ClassVar[App]
    shared_names: ClassVar[tuple[str, ...]] = ()

    place = traitlets.Unicode().tag(sync=True)
    shared = traitlets.List(traitlets.Unicode()).tag(sync=True)

    def __init__(self, **values: Any) -> None:
        super().__init__(
            place=f"ol-{uuid.uuid4().hex[:12]}", shared=list(self.shared_names), **values
        )
        self.on_msg(self._on_page)

    @property
    def widget(self) -> LiveWidget:
        """The same page for layouts of ipywidgets, such as ``HBox([explorer.widget, slider])``."""
        return self

    def stored(self) -> dict[str, Any]:
        """Return what the page holds: values by name; bytes may be among them."""
        raise NotImplementedError

    def picture(self) -> bytes:
        """Return the picture for where scripts do not run, as a PNG file."""
        raise NotImplementedError

    def text(self) -> str:
        """Describe the picture in words."""
        raise NotImplementedError

    def _on_page(self, _: Any, content: Any, buffers: Any) -> None:
        """Answer a box that shows the widget."""
        if isinstance(content, dict) and content.get("ask") == "page":
            page = {"app": self.app.packed, "stored": packed(stored_text(self.stored()))}
            self.send({"page": page})

    def _ipython_display_(self) -> None:
        """Display the page, and put its picture into it when that is made.

        A reader sees the page without waiting for the picture, which takes longer than the rest.

        Raises
        ------
        NotImplementedError
            If no page follows what a cell displays: IPython then asks for `_repr_mimebundle_`.
        """
        if not page_follows():
            raise NotImplementedError
        text, shown = self.text(), uuid.uuid4().hex
        page = live_html(self.app, self.place, self.stored(), text, None)
        display({"text/html": page, "text/plain": text}, raw=True, display_id=shown)
        _ = self.model_id  # connects the widget; the page does not wait for it
        with collection_paused():  # a picture is thousands of objects in cycles, for a moment
            page = with_picture(page, text, self.picture())
        update_display({"text/html": page, "text/plain": text}, raw=True, display_id=shown)

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        """Return the page with its picture, and the description as text."""
        text = self.text()
        if page_may_connect():
            _ = self.model_id  # connects the widget
        stored = self.stored()
        with collection_paused():  # a picture is thousands of objects in cycles, for a moment
            page = live_html(self.app, self.place, stored, text, self.picture())
        return {"text/html": page, "text/plain": text}
