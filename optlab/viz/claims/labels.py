"""Labels of a chart beside their points: where they cover least of the curves and of each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from optlab.viz.backends.matplotlib.image import width_of
from optlab.viz.backends.scene import Axis, Line, Text
from optlab.viz.style.geometry import Floats

CHART_HEIGHT, CHART_EDGE = 210, 8
"""Pixels of a chart, and above and below it, at any width: so labels differ with it but little."""
_BESIDE = 14  # pixels between a point and its label, and at the right of a chart
_OVER = 8  # pixels left of a chart, before the numbers of its axis
_GAP = 4  # pixels between heights that are tried, and between labels and curves
_WAYS = 200  # of placing labels that are followed
_WIDEST = 0.42  # share of the chart: a name of several words that is wider takes several lines


def placed(labels: Sequence[Text], curves: Sequence[Line], axis: Axis, width: float) -> list[Text]:
    """Move labels away from their points; that of an upper point is above that of a lower one.

    Parameters
    ----------
    labels : sequence of Text
        Names and values, on their points: at one place x, from 0 to 1.
    curves : sequence of Line
        What they had better not cover.
    axis : Axis
        That of y.
    width : float
        Of the chart, in pixels.
    """
    here, share = width * labels[0].x, np.linspace(0, 1, int(width) // 4)
    at_share = [np.interp(share, curve.x, downward(curve.y, axis)) for curve in curves]
    crossed = np.concatenate(at_share)
    curve = np.stack([np.tile(width * share - here, len(curves)), crossed])
    heights = downward([label.y for label in labels], axis)
    order = np.argsort(heights, kind="stable").tolist()
    rows = [_in_rows(labels[i], width) for i in order]
    # The best ways to place them, from the upper one down: each looks at all above it.
    ways, total = np.empty((1, 0, 4)), np.zeros(1)
    for rank, label in enumerate(rows):
        boxes = _tried(label)
        cost = total[:, None] + _cost(boxes, rank, heights[order], curve, here, width)
        cost += sum((_cost_of_both(ways[:, k], boxes) for k in range(rank)), np.zeros(()))
        best = np.argsort(cost, axis=None, kind="stable")[:_WAYS]
        way, box = np.unravel_index(best, cost.shape)
        ways = np.concatenate([ways[way], boxes[box][:, None]], axis=1)
        total = cost.ravel()[best]
    found = []
    for label, (left, top, _, _), i in zip(rows, ways[0].tolist(), order, strict=True):
        shift = (_BESIDE if left > 0 else -_BESIDE, round(float(heights[i]) - top, 1))
        across: Literal["left", "right"] = "left" if left > 0 else "right"
        found.append(replace(label, across=across, up="top", shift=shift))
    return found


def downward(values: Sequence[float] | Floats, axis: Axis) -> Floats:
    """Return how far below the upper end of the axis values lie, in pixels."""
    with np.errstate(invalid="ignore"):
        up = np.log10(values) if axis.scale == "log" else np.asarray(values)
        found: Floats = CHART_HEIGHT * (axis.high - up) / (axis.high - axis.low)
    return found


def with_room(
    texts: Sequence[str], places: Sequence[float], size: float, width: float
) -> list[int]:
    """Return which texts of a row have room, the first and the last among them.

    Examples
    --------
    >>> with_room(["1", "2", "10", "100"], [0.0, 0.01, 0.5, 1.0], 13, 300)
    [0, 2, 3]
    """

    def apart(i: int, k: int) -> bool:
        wide = (width_of(texts[i], size) + width_of(texts[k], size)) / 2
        return width * (places[k] - places[i]) >= wide + 10

    shown, last = [0], len(texts) - 1
    for i in range(1, last):
        if apart(shown[-1], i) and apart(i, last):
            shown.append(i)
    return [*shown, last]


def _tried(label: Text) -> Floats:
    """Return boxes (left, upper, right, lower end), across from the point, down in the chart."""
    wide, tall = _extent(label)
    tops = np.arange(-CHART_EDGE, CHART_HEIGHT + CHART_EDGE - tall, _GAP)
    return np.array([(a, b, a + wide, b + tall) for a in (_BESIDE, -_BESIDE - wide) for b in tops])


def _cost(
    boxes: Floats, rank: int, heights: Floats, curve: Floats, here: float, width: float
) -> Floats:
    """Return what each box would cost, whatever the other labels do."""
    left, top, right, bottom = boxes.T[:, :, None]
    middle, y, others = (top + bottom) / 2, heights[rank], np.delete(heights, rank)
    wants = int((y >= others).all()) - int((y <= others).all())
    cost = np.abs(middle - y) / 12 + 12 * (wants * (middle - y) < 0)
    cost += 40 * np.maximum(0, np.maximum(-here - left - _OVER, here + right - width - _BESIDE))
    x, at = curve
    across = (left - _GAP < x) & (x < right + _GAP)
    cost += 2 * _count(across & (top - _GAP < at) & (at < bottom + _GAP))
    # Behind the point of another curve it would seem to belong to that one.
    found: Floats = (cost + 25 * _count((others - y) * (middle - others) > 0))[:, 0]
    return found


def _cost_of_both(above: Floats, below: Floats) -> Floats:
    """Return what each box of a lower label costs with each of one above."""
    left, top, right, bottom = above.T[:, :, None]
    a, b, c, d = below.T
    meet = (left < c) & (a < right) & (top < d) & (b < bottom)
    return 400.0 * meet + 200.0 * (b + d <= top + bottom)


def _count(found: Any) -> Any:
    return found.sum(axis=1, keepdims=True)


def _extent(label: Text) -> tuple[float, float]:
    """Return width and height of a label in pixels."""
    rows = label.text.split("\n")
    wide = max(width_of(row, label.size, bold=label.bold) for row in rows)
    return wide, 1.25 * label.size * len(rows)


def _in_rows(label: Text, width: float) -> Text:
    """Break a name of several words that is wide for the chart."""
    name, value = label.text.split("\n")
    lines: list[str] = []
    for word in name.split(" "):
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and width_of(longer, label.size, bold=label.bold) <= _WIDEST * width:
            lines[-1] = longer
        else:
            lines.append(word)
    return replace(label, text="\n".join([*lines, value]))
