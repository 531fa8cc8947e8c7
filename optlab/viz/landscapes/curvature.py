"""Eigenvalues of the Hessian along a run, beside the limit of its learning rate."""

from __future__ import annotations

from typing import Any

import numpy as np
import plotly.graph_objects as go

from optlab.viz.backends.matplotlib.draw import draw_png
from optlab.viz.backends.plotly.draw import draw
from optlab.viz.backends.scene import Axis, Line, Mark, Marker, Panel, Pen, Points, Scene, entries
from optlab.viz.style import layout, theme
from optlab.viz.style.geometry import Floats
from optlab.viz.style.labels import escaped
from optlab.viz.style.results import traces_of

WIDTH, HEIGHT = 900, 440


@layout.documented
def curvature(traces: Any, *, width: int = WIDTH, height: int = HEIGHT) -> go.Figure:
    r"""Draw the largest eigenvalues of the Hessian along runs, and the losses.

    A dashed line is the limit above which the run's learning rate diverges on a quadratic: 2 / rate
    for gradient descent, 2 (1 + momentum) / rate with momentum. Of other rules it is not drawn. A
    third panel shows which share of gradient and update lies in the space of the eigenvectors,
    where that was recorded.

    Runs of any size are drawn, those of networks too: the probe needs products with the Hessian
    alone, of ``lambda w: cross_entropy(ol.nn.functional_call(model, w, x), y)``.

    Parameters
    ----------
    traces : Trace, list or dict of Trace, or Comparison
        Recorded with the probe `Curvature`; with ``alignment=True`` for the third panel.

    Raises
    ------
    TypeError, ValueError
        If something is no trace, or has no sharpness; the message says what to record.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> w = ol.Parameter(np.array([1.0, 1.0]), name="w")
    >>> optimizer = ol.optimizer.SGD(0.1, parameters=[w])
    >>> def loss(p):
    ...     return (p["w"] ** 2 * np.array([1.0, 3.0])).sum()
    >>> with ol.record(optimizer, probes=[ol.probes.Curvature(loss, k=2)]) as trace:
    ...     for _ in range(5):
    ...         optimizer.clear_grad()
    ...         loss({"w": w}).backward()
    ...         optimizer.step()
    >>> curvature(trace).layout.title.text
    '<b>Sharpness along the run</b>'

    Of a network:

    >>> model = ol.nn.Sequential(ol.nn.Linear(2, 4), ol.nn.Tanh(), ol.nn.Linear(4, 1))
    >>> x, y = ol.randn([16, 2]), ol.randn([16, 1])
    >>> def loss(w):
    ...     return ((ol.nn.functional_call(model, w, x) - y) ** 2).mean()
    >>> optimizer = ol.optimizer.SGD(0.1, parameters=model.parameters())
    >>> with ol.record(optimizer, probes=[ol.probes.Curvature(loss)], model=model) as trace:
    ...     for _ in range(3):
    ...         optimizer.clear_grad()
    ...         ((model(x) - y) ** 2).mean().backward()
    ...         optimizer.step()
    >>> len(curvature(trace).data) > 0
    True
    """
    return draw(_scene(traces, width, height))


@layout.documented
def curvature_png(
    traces: Any, *, width: int = WIDTH, height: int = HEIGHT, scale: float = 1.0
) -> bytes:
    r"""Draw the largest eigenvalues of the Hessian along runs as a PNG image.

    Parameters
    ----------
    traces : Trace, list or dict of Trace, or Comparison
        Recorded with the probe `Curvature`.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> w = ol.Parameter(np.array([1.0, 1.0]), name="w")
    >>> optimizer = ol.optimizer.SGD(0.1, parameters=[w])
    >>> probe = ol.probes.Curvature(lambda p: (p["w"] ** 2).sum())
    >>> with ol.record(optimizer, probes=[probe]) as trace:
    ...     (w * w).sum().backward()
    ...     optimizer.step()
    >>> curvature_png(trace)[:4]
    b'\x89PNG'
    """
    return draw_png(_scene(traces, width, height), scale)


def stability_limit(trace: Any) -> Floats | None:
    """Return the limit of the sharpness at each step; None for rules that have another one."""
    settings = trace.settings
    plain = not settings.get("weight_decay") and not settings.get("inner_optimizer")
    rates = np.asarray(trace.learning_rate, np.float64)
    name = settings.get("class")
    if not plain or name not in ("SGD", "Momentum") or settings.get("use_nesterov"):
        return None
    with np.errstate(divide="ignore"):
        limit: Floats = 2 * (1 + float(settings.get("momentum", 0.0))) / rates
    return limit


def _scene(traces: Any, width: int, height: int) -> Scene:
    named = traces_of(traces, "curvature")
    lacking = [name for name, trace in named.items() if "sharpness" not in trace.names]
    if lacking:
        raise ValueError(
            f"the trace {lacking[0]!r} has no sharpness. Record it with "
            "ol.record(optimizer, probes=[ol.probes.Curvature(loss, every=10)]); for a network, "
            "loss is lambda w: cross_entropy(ol.nn.functional_call(model, w, x), y)."
        )
    styles = theme.assign_styles(
        {name: str(trace.settings.get("class", name)) for name, trace in named.items()}
    )
    sharp: list[Mark] = []
    losses: list[Mark] = []
    last, top = 1.0, [1e-12]
    values = []
    drawn = False
    for name, trace in named.items():
        style = styles[name]
        steps = np.asarray(trace.steps("sharpness"), np.float64)
        eigenvalues = np.asarray(trace["sharpness"], np.float64)
        last = max(last, float(trace.step[-1]) if len(trace.step) else 1.0)
        finite = eigenvalues[np.isfinite(eigenvalues)]
        top.append(float(finite.max()) if finite.size else 0.0)
        said = f"<b>{escaped(name)}</b> after %{{x:d}} steps<br>"
        for k in range(eigenvalues.shape[1]):
            # Of several runs the first eigenvalue is compared; the others are a ground behind it.
            behind = 0.25 if len(named) > 1 else 0.6
            pen = Pen(style.color, 2.0 if k == 0 else 1.0, opacity=1.0 if k == 0 else behind)
            sharp.append(
                Line(steps, eigenvalues[:, k], pen, said + f"eigenvalue {k + 1}: %{{y:.4g}}",
                     group=name)
            )  # fmt: skip
            if k == 0 or len(named) == 1:
                sharp.append(
                    Points(steps, eigenvalues[:, k], Marker("circle", 4, style.color), group=name)
                )
        limit = stability_limit(trace)
        if limit is not None and len(limit):
            drawn = True
            top.append(float(min(limit.max(), 3 * max(top))))
            sharp.append(
                Line(np.asarray(trace.step, np.float64), limit, Pen(style.color, 1.4, (6, 4)),
                     said + "limit %{y:.4g}", group=name)
            )  # fmt: skip
        loss = np.asarray(trace.loss, np.float64)
        if np.isfinite(loss).any():
            values.append(loss[np.isfinite(loss)])
            losses.append(
                Line(np.asarray(trace.step, np.float64) - 1, loss,
                     Pen(style.color, 1.2, opacity=0.75 if len(named) > 1 else 1.0),
                     said + "loss %{y:.4g}", group=name)
            )  # fmt: skip
    several = len(named) > 1
    aligned = {n: trace for n, trace in named.items() if "alignment of gradient" in trace.names}
    page = layout.page(
        width, height, names=list(styles) if several else [], note="",
        shares=[1, 0.8, 0.8] if aligned else [1, 0.8], rooms=[62, 62, 10] if aligned else [62, 6],
        headed=True,
    )  # fmt: skip
    highest = 1.08 * max(top)
    panels = [
        Panel(
            Axis(0.0, last, name="step", whole=True),
            Axis(min(0.0, _lowest(named)), highest, grid=True, zero=True), sharp, "Sharpness",
            ("largest eigenvalues" if aligned else "largest eigenvalues of the Hessian")
            + ("; dashed: the limit" if drawn else ""),
        )
    ]  # fmt: skip
    axis, scale = _loss_axis(values)
    panels.append(Panel(Axis(0.0, last, name="step", whole=True), axis, losses, "Loss", scale))
    if aligned:
        panels.append(_alignment(aligned, styles, last))
    said = "Dashed: above it, this rate diverges on a quadratic." if drawn else ""
    title = "Sharpness along the runs" if several else "Sharpness along the run"
    return Scene(page, title, said, panels, entries(styles) if several else {})


def _alignment(named: Any, styles: Any, last: float) -> Panel:
    """Return the shares of gradients and updates in the space of the eigenvectors."""
    marks: list[Mark] = []
    most = 1
    for name, trace in named.items():
        color = styles[name].color
        for what, pen in (("gradient", Pen(color, 1.8)), ("update", Pen(color, 1.4, (2, 3)))):
            label = f"alignment of {what}"
            shares = np.asarray(trace[label], np.float64)
            most = max(most, shares.shape[1])
            steps = np.asarray(trace.steps(label), np.float64)
            hover = f"<b>{escaped(name)}</b> after %{{x:d}} steps<br>{what}: %{{y:.1%}}"
            marks.append(Line(steps, shares.sum(axis=1), pen, hover, group=name))
    many = f"{most} eigenvectors" if most > 1 else "one eigenvector"
    ticks = [(k / 4, f"{25 * k} %") for k in range(5)]
    return Panel(
        Axis(0.0, last, name="step", whole=True), Axis(-0.02, 1.04, ticks=ticks, grid=True), marks,
        "Share along", f"{many}; dotted: update",
    )  # fmt: skip


def _lowest(named: Any) -> float:
    found = [np.nanmin(np.asarray(trace["sharpness"], np.float64)) for trace in named.values()]
    return float(min(found)) * 1.08


def _loss_axis(values: list[Floats]) -> tuple[Axis, str]:
    if not values:
        return Axis(0.0, 1.0, grid=True), "not recorded"
    known = np.concatenate(values)
    low, high = float(known.min()), float(known.max())
    if low > 0 and high > 5 * low:
        return Axis(float(np.log10(low)) - 0.05, float(np.log10(high)) + 0.05, "log", grid=True), (
            "log scale"
        )
    room = 0.05 * (high - low) or 1.0
    return Axis(min(0.0, low - room), high + room, grid=True, zero=True), ""
