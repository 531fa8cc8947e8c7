"""Memory of a step over its events, as a figure and as its static image."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go

from optlab.viz.backends.matplotlib.draw import draw_png
from optlab.viz.backends.panels import list_panel, peak_marks
from optlab.viz.backends.plotly.draw import draw
from optlab.viz.backends.scene import Area, Axis, Mark, Panel, Pen, Points, Rule, Scene, Text
from optlab.viz.memory_timeline.view import WIDTH, MemoryView, memory_view
from optlab.viz.style import layout, theme


@layout.documented
def memory(trace: Any, *, width: int = WIDTH, height: int = layout.HEIGHT) -> go.Figure:
    """Draw the memory of a step: bytes by role over the events, and the composition of the peak.

    Parameters
    ----------
    trace : MemoryTrace, Trace or Comparison
        The result of `optlab.memory.report` or `optlab.memory.ledger`; or a recorded run with the
        probe `Memory`, whose peak of each step is drawn.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> w = ol.to_tensor(np.ones((256, 1024)), requires_grad=True)
    >>> figure = memory(ol.memory.report(lambda: np.sum(np.tanh(w)).backward()))
    >>> figure.layout.title.text
    '<b>Memory of a step: at most 8 MiB</b>'
    """
    return draw(_scene(memory_view(trace, width, height)))


@layout.documented
def memory_png(
    trace: Any, *, width: int = WIDTH, height: int = layout.HEIGHT, scale: float = 1.0
) -> bytes:
    r"""Draw the memory of a step as a PNG image.

    Parameters
    ----------
    trace : MemoryTrace
        The result of `optlab.memory.report` or `optlab.memory.ledger`.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> w = ol.to_tensor(np.ones(1000), requires_grad=True)
    >>> memory_png(ol.memory.report(lambda: np.sum(np.tanh(w)).backward()))[:4]
    b'\x89PNG'
    """
    return draw_png(_scene(memory_view(trace, width, height, "memory_png")), scale)


def _scene(view: MemoryView) -> Scene:
    across = np.repeat(view.edges, 2)[1:-1]
    marks: list[Mark] = [
        Area(
            across, np.repeat(band.low, 2), np.repeat(band.high, 2), band.area, band.role,
            Pen(theme.PAPER, 0.8),
        )
        for band in view.bands
    ]  # fmt: skip
    marks.append(Points(view.edges[:-1] + 0.5, view.total, None, "%{text}", tips=view.tips))
    turn = Pen(theme.INK, 1, (4, 3))
    marks += [Rule("x", first, turn) for first, _, _ in view.phases if first > 0]
    marks += [
        Text(x, view.top, phase, theme.QUIET, across=side, up="top")  # type: ignore[arg-type]
        for x, side, phase in view.phase_labels
    ]
    marks += [
        Text(*band.label, band.name, theme.INK, ground=0.85) for band in view.bands if band.label
    ]
    right = view.peak_side == "left"
    marks += peak_marks(
        view.peak, view.peak_text, (-9 if right else 9, 9), "right" if right else "left", bold=True
    )
    shares = [
        (share.text, share.said, share.part, share.area or theme.Area(theme.FRAME, ""))
        for share in view.shares
    ]
    bytes_alive = Panel(
        Axis(0.0, view.edges[-1], name=view.along, count=8, whole=True),
        Axis(0.0, view.top, name=view.unit, grid=True),
        marks, "Bytes alive", "by role, linear scale from zero",
    )  # fmt: skip
    peak = list_panel(
        shares, view.share_rows, view.bar_length, "At the peak", "whose arrays are alive"
    )
    legend = {band.role: (band.name, band.area) for band in view.bands}
    return Scene(view.page, view.title, view.headline, [bytes_alive, peak], legend, hover="x")
