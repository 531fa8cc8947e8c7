"""The graph as a widget: once shown it needs no kernel; the kernel can select a stage."""

from __future__ import annotations

import anywidget
import traitlets

from optlab.viz import browser
from optlab.viz.browser.cell_runs import close_earlier
from optlab.viz.graphs import export
from optlab.viz.graphs.view import GraphView


class GraphStepper(anywidget.AnyWidget):
    """A graph with the steps of its backward pass; created by `optlab.viz.graph`."""

    _esm = browser.as_module(export.STATIC)
    _css = browser.style_sheet(export.PLACE, export.STATIC)

    view = traitlets.Dict().tag(sync=True)
    options = traitlets.Dict().tag(sync=True)
    stage = traitlets.Int(0).tag(sync=True)

    def __init__(self, view: GraphView, stage: int) -> None:
        super().__init__(view=view.to_dict(), options=export.options(view), stage=stage)
        close_earlier(self._release)

    def _release(self) -> None:
        """Close the widget and free its memory, when its cell runs again."""
        self.view = {}
        self.layout.close()
        self.close()
