"""The graph as a widget: it needs no kernel once it is shown; the kernel may ask for a stage."""

from __future__ import annotations

import anywidget
import traitlets

from optlab.viz import browser
from optlab.viz.cell_runs import close_earlier
from optlab.viz.graphs import export
from optlab.viz.graphs.view import GraphView


class GraphStepper(anywidget.AnyWidget):
    """A graph that is stepped through backwards; `optlab.viz.graph` makes one."""

    _esm = browser.as_module(export.javascript())
    _css = export.style_sheet()

    view = traitlets.Dict().tag(sync=True)
    options = traitlets.Dict().tag(sync=True)
    stage = traitlets.Int(0).tag(sync=True)

    def __init__(self, view: GraphView, stage: int) -> None:
        super().__init__(view=view.to_dict(), options=export.options(view), stage=stage)
        close_earlier(self._release)

    def _release(self) -> None:
        """Close, and free what takes memory: the cell that made this widget runs again."""
        self.view = {}
        self.layout.close()
        self.close()
