"""A trace as a page for notebooks: a small picture of the loss, and what there is."""

from __future__ import annotations

import html
from typing import Any

import numpy as np


def to_html(trace: Any) -> str:
    """Return a page for a notebook: a small picture of the loss, and what there is."""
    rows = []
    if trace.settings:
        settings = ", ".join(f"{k}={v}" for k, v in trace.settings.items() if k != "class")
        rows.append(("optimizer", f"{trace.settings.get('class', '')}({settings})"))
    steps = trace.step
    if len(steps):
        first, last = trace.loss[0], trace.loss[-1]
        rows.append(("steps", f"{len(steps)} recorded, {steps[0]} to {steps[-1]}"))
        rows.append(("loss", f"{first:.4g} to {last:.4g}"))
    for label, cost in trace.costs.items():
        rows.append(
            (label, f"{cost['steps']} steps, {cost['seconds']:.3g} s, {cost['bytes']:,} bytes")
        )
    rows += [(f"step {n}", text) for n, text in trace.marks]
    rows += [("left out", text) for text in trace.left_out]
    if trace.stopped:
        rows.append(("stopped", trace.stopped))
    table = "".join(
        f"<tr><th style='text-align:left'>{html.escape(name)}</th>"
        f"<td style='text-align:left'>{html.escape(str(text))}</td></tr>"
        for name, text in rows
    )
    return (
        f"<div><strong>{html.escape(trace.name)}</strong>{_sparkline(steps, trace.loss)}"
        f"<table>{table}</table></div>"
    )


def _sparkline(steps: np.ndarray, loss: np.ndarray, width: int = 240, height: int = 48) -> str:
    """Return the loss over the steps as a small SVG; logarithmic where it is positive."""
    good = np.isfinite(loss)
    x, y = steps[good].astype(float), loss[good].astype(float)
    if len(x) < 2:
        return ""
    if (y > 0).all():
        y = np.log10(y)
    if len(x) > 2 * width:  # the lowest and the highest of each column of pixels
        parts = np.array_split(np.arange(len(x)), width)
        chosen = np.unique([f(y[p]) + p[0] for p in parts for f in (np.argmin, np.argmax)])
        x, y = x[chosen], y[chosen]
    x = (x - x[0]) / (x[-1] - x[0]) * (width - 4) + 2
    spread = y.max() - y.min()
    y = height - 3 - (y - y.min()) / (spread or 1.0) * (height - 6)
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
    return (
        f"<svg width='{width}' height='{height}' role='img' aria-label='loss over the steps' "
        "style='display:block'>"
        f"<polyline points='{points}' fill='none' stroke='currentColor' stroke-width='1.5'/></svg>"
    )
