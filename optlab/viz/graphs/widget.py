"""The graph as a live page: it needs no kernel; the kernel can select a stage."""

from __future__ import annotations

from typing import Any

import traitlets

from optlab.viz.browser.cell_runs import close_earlier
from optlab.viz.browser.live import LiveWidget
from optlab.viz.graphs import export
from optlab.viz.graphs.image import png
from optlab.viz.graphs.view import GraphView


class GraphStepper(LiveWidget):
    """A graph with the steps of its backward pass; created by `optlab.viz.graph`."""

    app = export.APP
    shared_names = ("stage",)

    stage = traitlets.Int(0).tag(sync=True)

    def __init__(self, view: GraphView, stage: int, text: str) -> None:
        self.view = view
        self._text = text
        super().__init__(stage=stage)
        close_earlier(self.close)

    def stored(self) -> dict[str, Any]:
        """Return what the page holds: the graph, and the stage shown."""
        return export.stored(self.view, self.stage)

    def picture(self) -> bytes:
        """Return the picture of the last stage, with all gradients."""
        return png(self.view, self.view.last)

    def text(self) -> str:
        """Return the graph as a table."""
        return self._text
