"""The path of the weights of a real model in the plane in which it spreads most."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import plotly.graph_objects as go

from optlab.viz.backends.matplotlib.draw import draw_png
from optlab.viz.backends.plotly.draw import draw
from optlab.viz.backends.scene import (
    Axis,
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
from optlab.viz.landscapes.principal import principal_paths, weights_of_run
from optlab.viz.landscapes.space import Path, space_figure, space_png
from optlab.viz.style import layout, theme
from optlab.viz.style.geometry import Floats
from optlab.viz.style.labels import escaped
from optlab.viz.style.results import traces_of

WIDTH, HEIGHT = 900, 460


@layout.documented
def trajectory(
    traces: Any, *, kind: Literal["plane", "space"] = "plane", width: int = WIDTH,
    height: int = HEIGHT,
) -> go.Figure:  # fmt: skip
    """Draw the paths of weights in their first two principal components, and their losses.

    Runs with snapshots, or with all values, share one plane. A run that was recorded by the probe
    `PCA` alone is drawn in its own.

    Parameters
    ----------
    traces : Trace, list or dict of Trace, or Comparison
        Recorded with `Snapshots`, with all values (``probes="toy"``), or one with `PCA`.
    kind : {"plane", "space"}
        Two principal components beside the losses, or three, for which the weights are needed.

    Raises
    ------
    TypeError, ValueError
        If something is no trace, or the weights were not recorded; the message says what to record.

    Examples
    --------
    >>> import optlab as ol
    >>> probes = [ol.probes.Snapshots(every=5)]
    >>> training = ol.lab.recipe("moons").run(steps=50, probes=probes)
    >>> trajectory(training.trace).layout.title.text
    '<b>The path of the weights</b>'
    """
    if _checked_kind(kind) == "space":
        return space_figure(*_in_space(traces), width, height)
    return draw(_scene(traces, width, height))


@layout.documented
def trajectory_png(
    traces: Any, *, kind: Literal["plane", "space"] = "plane", width: int = WIDTH,
    height: int = HEIGHT, scale: float = 1.0,
) -> bytes:  # fmt: skip
    r"""Draw the paths of weights in their first two principal components as a PNG image.

    Parameters
    ----------
    traces, kind
        As for `trajectory`.

    Examples
    --------
    >>> import optlab as ol
    >>> training = ol.lab.recipe("moons").run(steps=20, probes=[ol.probes.PCA(2)])
    >>> trajectory_png(training.trace)[:4]
    b'\x89PNG'
    """
    if _checked_kind(kind) == "space":
        return space_png(*_in_space(traces), width, height, scale)
    return draw_png(_scene(traces, width, height), scale)


def _checked_kind(kind: Any) -> str:
    if kind not in ("plane", "space"):
        raise ValueError(f'kind is "plane" or "space"; got {kind!r}.')
    return str(kind)


def _in_space(traces: Any) -> tuple[dict[str, Path], str, str]:
    """Return the paths in three principal components, a title, and what is said below it."""
    named = traces_of(traces, "trajectory")
    lacking = [name for name, trace in named.items() if weights_of_run(trace) is None]
    if lacking:
        raise ValueError(
            f"the trace {lacking[0]!r} has no weights, which three components are made of. Record "
            "them with ol.record(optimizer, probes=[ol.probes.Snapshots(every=10)])."
        )
    paths, shares = principal_paths(named, 3)
    styles = theme.assign_styles(
        {name: str(trace.settings.get("class", name)) for name, trace in named.items()}
    )
    found = {name: Path(at, steps, styles[name].color) for name, (steps, at, _) in paths.items()}
    title = "The paths of the weights" if len(named) > 1 else "The path of the weights"
    said = ", ".join(f"{share:.1%}" for share in shares)
    return found, title, f"First three principal components, which hold {said} of the variance."


def _scene(traces: Any, width: int, height: int) -> Scene:
    named = traces_of(traces, "trajectory")
    paths, shares = principal_paths(named)
    styles = theme.assign_styles(
        {name: str(trace.settings.get("class", name)) for name, trace in named.items()}
    )
    several = len(named) > 1
    hidden = [
        f"{name}: at most {away.max():.3g} away from the plane"
        for name, (_, _, away) in paths.items()
        if len(away)
    ]
    page = layout.page(
        width, height, names=list(styles) if several else [], note="; ".join(hidden),
        shares=[1, 0.8], rooms=[62, 6], headed=True,
    )  # fmt: skip
    marks: list[Mark] = []
    curves: list[Mark] = []
    values = []
    for name, (steps, at, _) in paths.items():
        style = styles[name]
        hover = f"<b>{escaped(name)}</b> after %{{customdata[0]:d}} steps<br>%{{x:.4g}}, %{{y:.4g}}"
        marks += [
            Line(at[:, 0], at[:, 1], pen_of(style), group=name),
            Points(at[:, 0], at[:, 1], Marker(style.marker, 5, style.color), hover, group=name,
                   data=(steps,)),
            Points(at[-1:, 0], at[-1:, 1], end_marker(style), group=name, clip=False),
            Text(float(at[0, 0]), float(at[0, 1]), f"step {steps[0]:.0f}", theme.QUIET,
                 theme.FONT_SMALL, up="bottom", shift=(0, 5), group=name),
        ]  # fmt: skip
        loss = np.asarray(named[name].loss, np.float64)
        if np.isfinite(loss).any():
            values.append(loss[np.isfinite(loss)])
            curves.append(
                Line(np.asarray(named[name].step, np.float64) - 1, loss, Pen(style.color, 1.0),
                     f"<b>{escaped(name)}</b> after %{{x:d}} steps<br>loss %{{y:.4g}}", group=name)
            )  # fmt: skip
    every = np.concatenate([at for _, at, _ in paths.values()])
    low, high = _around(every, page.panels[0])
    last = max([1.0, *(float(trace.step[-1]) for trace in named.values() if len(trace.step))])
    said = " and ".join(f"{share:.1%}" for share in shares)
    return Scene(
        page, "The paths of the weights" if several else "The path of the weights",
        f"First two principal components, which hold {said} of the variance.",
        [
            Panel(
                Axis(float(low[0]), float(high[0])),
                Axis(float(low[1]), float(high[1])), marks, "Path",
                "1st across, 2nd up; one scale", frame="box", equal=True,
            ),
            Panel(Axis(0.0, last, name="step", whole=True), *_losses(values, curves)),
        ],
        entries(styles) if several else {},
    )  # fmt: skip


def _around(points: Floats, place: layout.Panel) -> tuple[Floats, Floats]:
    """Return the corners of a view of points that fills a panel with one scale."""
    low, high = points.min(axis=0), points.max(axis=0)
    size = np.array([place.width, place.height])
    pixel = 1.2 * max(float(((high - low) / size).max()), 1e-12)
    return (low + high - pixel * size) / 2, (low + high + pixel * size) / 2


def _losses(values: list[Floats], curves: list[Mark]) -> tuple[Axis, list[Mark], str, str]:
    if not values:
        return Axis(0.0, 1.0, grid=True), curves, "Loss", "not recorded"
    known = np.concatenate(values)
    low, high = float(known.min()), float(known.max())
    if low > 0 and high > 5 * low:
        axis = Axis(float(np.log10(low)) - 0.05, float(np.log10(high)) + 0.05, "log", grid=True)
        return axis, curves, "Loss", "log scale"
    room = 0.05 * (high - low) or 1.0
    return Axis(min(0.0, low - room), high + room, grid=True, zero=True), curves, "Loss", ""
