"""The losses on the line and on the curve between two solutions."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go

from optlab.viz.backends.matplotlib.draw import draw_png
from optlab.viz.backends.plotly.draw import draw
from optlab.viz.backends.scene import Axis, Line, Mark, Panel, Pen, Scene, Text
from optlab.viz.style import layout, theme
from optlab.viz.style.results import refuse_runs
from optlab.viz.style.text import format_number

WIDTH, HEIGHT = 640, 380
#: What to give instead of runs alone.
_NEEDS = (
    "the losses between two solutions have to be evaluated. Give "
    "ol.lab.connect(model, loss, a, b), where a and b are the weights of both."
)


@layout.documented
def connection(result: Any, *, width: int = WIDTH, height: int = HEIGHT) -> go.Figure:
    """Draw the loss on the way between two solutions: along the line, and along the curve.

    Parameters
    ----------
    result : Connection
        The result of `optlab.lab.connect`.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> model, x = ol.models.MLP([2, 4, 1], "tanh"), ol.randn([16, 2])
    >>> ends = [{n: p.numpy() + k for n, p in model.named_parameters()} for k in (0, 1)]
    >>> way = ol.lab.connect(model, lambda: np.mean(model(x) ** 2), *ends, curve=False)
    >>> connection(way).layout.title.text
    '<b>From one solution to another</b>'
    """
    refuse_runs(result, "connection", _NEEDS, has="line")
    return draw(_scene(result, width, height))


@layout.documented
def connection_png(
    result: Any, *, width: int = WIDTH, height: int = HEIGHT, scale: float = 1.0
) -> bytes:
    r"""Draw the loss on the way between two solutions as a PNG image.

    Parameters
    ----------
    result : Connection
        The result of `optlab.lab.connect`.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> model, x = ol.models.MLP([2, 4, 1], "tanh"), ol.randn([16, 2])
    >>> ends = [{n: p.numpy() + k for n, p in model.named_parameters()} for k in (0, 1)]
    >>> way = ol.lab.connect(model, lambda: np.mean(model(x) ** 2), *ends, curve=False)
    >>> connection_png(way)[:4]
    b'\x89PNG'
    """
    refuse_runs(result, "connection_png", _NEEDS, has="line")
    return draw_png(_scene(result, width, height), scale)


def _scene(result: Any, width: int, height: int) -> Scene:
    first, second = theme.area_colors()[:2]
    ways = [("the line", result.line, Pen(first, dash=(6, 4)))]
    if result.curve is not None:
        ways.append(("the curve", result.curve, Pen(second)))
    values = np.concatenate([loss[np.isfinite(loss)] for _, loss, _ in ways])
    low, high = min(0.0, float(values.min())), float(values.max())
    room = 0.12 * (high - low) or 1.0
    marks: list[Mark] = []
    for name, loss, pen in ways:
        top = int(np.nanargmax(loss))
        marks += [
            Line(result.t, loss, pen, f"{name} at %{{x:.3g}}<br>loss %{{y:.4g}}"),
            Text(float(result.t[top]), float(loss[top]), name, pen.color, up="bottom", bold=True,
                 across="center" if 0.15 < result.t[top] < 0.85 else
                 "left" if result.t[top] < 0.5 else "right", shift=(0, 5)),
        ]  # fmt: skip
    said = f"The line rises {format_number(result.line_barrier, 3)} above its higher end"
    if result.curve is not None:
        said += f", the curve {format_number(result.curve_barrier, 3)}"
    page = layout.page(width, height, names=[], note="", shares=[1], rooms=[6], headed=True)
    ends = [(0.0, "start"), (0.25, "0.25"), (0.5, "0.5"), (0.75, "0.75"), (1.0, "end")]
    return Scene(page, "From one solution to another", said + ".", [
        Panel(Axis(0.0, 1.0, ticks=ends), Axis(low, high + room, grid=True, zero=True), marks,
              "Loss", "over the share of the way"),
    ])  # fmt: skip
