"""The loss over a plane of weights: a map with the paths of runs, or a surface."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import plotly.graph_objects as go

from optlab.viz.backends.matplotlib.draw import draw_png
from optlab.viz.backends.plotly.draw import draw
from optlab.viz.backends.scene import (
    Axis,
    Contour,
    Line,
    Mark,
    Marker,
    Panel,
    Pen,
    Points,
    Scene,
    Text,
    end_marker,
    entries,
    pen_of,
)
from optlab.viz.landscapes.surface import surface_figure, surface_png
from optlab.viz.style import layout, theme
from optlab.viz.style.contours import label_contours, log_levels
from optlab.viz.style.geometry import Box, Floats, LabelPlacer
from optlab.viz.style.labels import escaped
from optlab.viz.style.results import refuse_runs
from optlab.viz.style.text import format_number
from optlab.viz.style.theme import Style

WIDTH, HEIGHT = 900, 500
#: What to give instead of runs alone.
_NEEDS = (
    "the losses around its weights have to be evaluated. Give "
    "ol.lab.landscape(model, loss, runs=trace), of runs with the probe ol.probes.Snapshots."
)
_PLANES = {
    "random": "two random directions, filters as long as those of the weights",
    "pca": "the two directions in which the runs spread most",
    "directions": "two given directions",
    "weights": "three sets of weights",
}


@layout.documented
def landscape(
    result: Any, *, kind: Literal["map", "surface"] = "map", width: int = WIDTH,
    height: int = HEIGHT,
) -> go.Figure:  # fmt: skip
    """Draw the loss over a plane of weights, with the paths of its runs.

    Beside the map stand the losses along the runs, at their own weights and at the nearest points
    of the plane: where the two differ, the map hides something. Without runs, there are the losses
    along both directions.

    Parameters
    ----------
    result : Landscape
        The result of `optlab.lab.landscape`.
    kind : {"map", "surface"}
        Contours from above, or a surface in three dimensions.

    Raises
    ------
    ValueError, TypeError
        If the kind is neither, or runs were given.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> model, x = ol.models.MLP([2, 8, 1], "tanh"), ol.randn([32, 2])
    >>> found = ol.lab.landscape(model, lambda: np.mean(model(x) ** 2), size=9)
    >>> landscape(found).layout.title.text
    '<b>Loss around the weights of MLP</b>'
    """
    refuse_runs(result, "landscape", _NEEDS, has="paths")
    if _checked_kind(kind) == "surface":
        return surface_figure(result, _title(result), _said(result), width, height)
    return draw(_scene(result, width, height))


@layout.documented
def landscape_png(
    result: Any, *, kind: Literal["map", "surface"] = "map", width: int = WIDTH,
    height: int = HEIGHT, scale: float = 1.0,
) -> bytes:  # fmt: skip
    r"""Draw the loss over a plane of weights as a PNG image.

    Parameters
    ----------
    result : Landscape
        The result of `optlab.lab.landscape`.
    kind : {"map", "surface"}
        Contours from above, or a surface in three dimensions.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> model, x = ol.models.MLP([2, 8, 1], "tanh"), ol.randn([32, 2])
    >>> landscape_png(ol.lab.landscape(model, lambda: np.mean(model(x) ** 2), size=9))[:4]
    b'\x89PNG'
    """
    refuse_runs(result, "landscape_png", _NEEDS, has="paths")
    if _checked_kind(kind) == "surface":
        return surface_png(result, _title(result), _said(result), width, height, scale)
    return draw_png(_scene(result, width, height), scale)


def _checked_kind(kind: Any) -> str:
    if kind not in ("map", "surface"):
        raise ValueError(f'kind is "map" or "surface"; got {kind!r}.')
    return str(kind)


def _title(result: Any) -> str:
    return f"Loss around the weights of {result.model_name}"


def _said(result: Any) -> str:
    """Return how the plane lies, and what it explains of the runs."""
    said = f"Plane: {_PLANES[result.plane]}."
    if result.explained is not None:
        shares = " + ".join(f"{share:.1%}" for share in result.explained)
        said += f" They hold {shares} of the variance."
    return said


def heights(loss: Floats) -> tuple[Floats, Floats, bool]:
    """Return the heights of a map, its levels, and whether both are logarithms of the loss."""
    known = loss[np.isfinite(loss)]
    if known.size and known.min() > 0 and known.max() > 5 * known.min():
        height, levels, _ = log_levels(loss, 0.0)
        return height, levels, True
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
    if high <= low:
        high = low + 1.0
    raw = (high - low) / 14
    power = 10.0 ** np.floor(np.log10(raw))
    step = next(power * digit for digit in (1, 2, 5, 10) if power * digit >= raw)
    levels = np.arange(np.ceil(low / step), np.floor(high / step) + 1) * step
    if len(levels) < 2:
        levels = np.array([low, high])
    return np.where(np.isfinite(loss), loss, np.nan), levels, False


def _scene(result: Any, width: int, height: int) -> Scene:
    styles = theme.assign_styles({name: name for name in result.paths})
    hidden = [
        f"{name}: {path.explained:.0%} of its movement lies in the plane, at most "
        f"{format_number(float(path.residual.max()))} away from it"
        for name, path in result.paths.items()
    ]
    note = ". ".join(hidden) + "." if hidden else ""
    missing = int(np.sum(~np.isfinite(result.loss)))
    if missing:
        note += f" {missing} of {result.loss.size} points are not finite or not evaluated."
    page = layout.page(
        width,
        height,
        names=list(styles),
        note=note.strip(),
        shares=[1, 0.72],
        rooms=[64, 8],
        headed=True,
    )
    panels = [_map_panel(result, page.panels[0], styles)]
    panels.append(_along_paths(result, styles) if result.paths else _along_axes(result))
    return Scene(page, _title(result), _said(result), panels, entries(styles))


def _map_panel(result: Any, place: layout.Panel, styles: dict[str, Style]) -> Panel:
    a, b, (height, levels, logarithmic) = result.a, result.b, heights(result.loss)
    colors = theme.surface_colors(max(1, len(levels) - 1))
    marks: list[Mark] = [
        Contour(a, b, height, levels, colors, Pen(theme.CONTOUR, 0.8)),
    ]
    scale = np.array([place.width / np.ptp(a), place.height / np.ptp(b)])
    lines = [
        (np.stack([path.a, path.b], axis=1) - [a[0], b[0]]) * scale
        for path in result.paths.values()
    ]
    placer = LabelPlacer(Box(2, place.width - 2, 2, place.height - 2), lines)
    for label in (
        label_contours(
            a,
            b,
            height,
            levels,
            place.width,
            place.height,
            lines,
            placer,
        )
        if logarithmic and np.isfinite(height).all()
        else ()
    ):
        marks.append(Text(label.x, label.y, label.text, theme.QUIET, theme.FONT_SMALL,
                          angle=label.angle))  # fmt: skip
    for k, (x, y) in enumerate(result.points.tolist()):
        marks.append(
            Points([x], [y], Marker("diamond", 9, theme.INK, theme.PAPER, 1.2),
                   f"set of weights {k}", text=f"w{k}", side="top right", ink=theme.INK)
        )  # fmt: skip
    if not result.paths and not len(result.points):
        marks.append(
            Points([0.0], [0.0], Marker("circle", 8, theme.INK, theme.PAPER, 1.2), "the weights")
        )
    for name, path in result.paths.items():
        style = styles[name]
        hover = (
            f"<b>{escaped(name)}</b>, step %{{customdata[0]:d}}<br>loss %{{customdata[1]:.4g}}, in "
            "the plane %{customdata[2]:.4g}<br>%{customdata[3]:.3g} away from the plane"
        )
        marks += [
            Line(path.a, path.b, pen_of(style), group=name),
            Points(path.a, path.b, Marker(style.marker, 5, style.color), hover, group=name,
                   data=(path.steps.astype(float), path.loss, path.plane_loss, path.residual)),
            Points(path.a[-1:], path.b[-1:], end_marker(style), group=name, clip=False),
        ]  # fmt: skip
    unit = {"random": ", relative to each filter", "pca": ", in the space of weights"}
    return Panel(
        Axis(float(a[0]), float(a[-1]), name="a"),
        Axis(float(b[0]), float(b[-1]), name="b"),
        marks,
        "Loss" + (", log scale" if logarithmic else ""),
        f"a and b{unit.get(result.plane, '')}", frame="box", equal=result.plane == "pca",
    )  # fmt: skip


def _along_paths(result: Any, styles: dict[str, Style]) -> Panel:
    marks: list[Mark] = []
    values = []
    for name, path in result.paths.items():
        style, steps = styles[name], path.steps.astype(float)
        values += [path.loss, path.plane_loss]
        said = f"<b>{escaped(name)}</b> after %{{x:d}} steps<br>"
        marks += [
            Line(steps, path.plane_loss, Pen(style.color, 1.2, (2, 3)),
                 said + "in the plane %{y:.4g}", group=name),
            Line(steps, path.loss, pen_of(style), said + "loss %{y:.4g}", group=name),
            Points(steps[-1:], path.loss[-1:], end_marker(style), group=name, clip=False),
        ]  # fmt: skip
    last = max(float(path.steps[-1]) for path in result.paths.values())
    axis, said = _value_axis(values)
    return Panel(Axis(0.0, last, name="step", whole=True), axis, marks, "Loss along the runs",
                 "dotted: in the plane" + said)  # fmt: skip


def _along_axes(result: Any) -> Panel:
    row = int(np.argmin(np.abs(result.b)))
    column = int(np.argmin(np.abs(result.a)))
    first, second = theme.area_colors()[:2]
    across, up = result.loss[row], result.loss[:, column]
    marks: list[Mark] = [
        Line(result.a, across, Pen(first), "a %{x:.3g}<br>loss %{y:.4g}"),
        Line(result.b, up, Pen(second, dash=(6, 4)), "b %{x:.3g}<br>loss %{y:.4g}"),
    ]
    axis, said = _value_axis([across, up])
    low = min(float(result.a[0]), float(result.b[0]))
    high = max(float(result.a[-1]), float(result.b[-1]))
    return Panel(Axis(low, high), axis, marks, "Loss along the axes",
                 "line: along a, dashed: along b" + said)  # fmt: skip


def _value_axis(values: list[Floats]) -> tuple[Axis, str]:
    """Return an axis of losses, and what is said of its scale."""
    known = np.concatenate([v[np.isfinite(v)] for v in values])
    low, high = (float(known.min()), float(known.max())) if known.size else (0.0, 1.0)
    if low > 0 and high > 10 * low:
        ends = np.log10([low, high])
        room = 0.05 * float(ends[1] - ends[0])
        return Axis(float(ends[0]) - room, float(ends[1]) + room, "log", grid=True), "; log scale"
    room = 0.05 * (high - low) or 1.0
    return Axis(min(0.0, low - room) if low >= 0 else low - room, high + room, grid=True,
                zero=True), ""  # fmt: skip
