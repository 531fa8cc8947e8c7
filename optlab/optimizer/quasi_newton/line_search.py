"""Line search for a point that satisfies the strong Wolfe conditions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

#: The sufficient share c1 of the decrease that the slope predicts.
DECREASE = 1e-4
#: The share c2 of the slope that may remain, as quasi-Newton methods have it.
CURVATURE = 0.9
#: The most points tried after the first.
MOST_TRIALS = 25
#: The search ends in a bracket in which no parameter moves by more.
SHORTEST = 1e-9


class Trial(NamedTuple):
    """A point on the line: its distance, loss and slope, and the evaluation there."""

    alpha: float
    loss: float
    slope: float
    evaluation: Any


def strong_wolfe(
    evaluate: Callable[[float], Trial],
    start: Trial,
    alpha: float,
    reach: float,
    curvature: float = CURVATURE,
) -> tuple[Trial, int]:
    r"""Find a point on a line with sufficient decrease and small slope.

    .. math::
        f(\alpha) \le f(0) + c_1 \alpha f'(0), \qquad |f'(\alpha)| \le c_2 |f'(0)|

    Parameters
    ----------
    evaluate : callable
        Returns the `Trial` at a distance.
    start : Trial
        At distance 0, with a negative slope.
    alpha : float
        The distance to try first.
    reach : float
        The largest move of an element for alpha = 1.
    curvature : float
        The share c2 of the slope that may remain.

    Returns
    -------
    Trial, int
        The point, and the number of evaluations. If none was found, the lowest of the bracket.

    Notes
    -----
    Source: Nocedal and Wright 2006, "Numerical optimization", algorithms 3.5 and 3.6, with cubic
    interpolation (3.59) and the safeguards of Mark Schmidt's minFunc.
    """
    before, trial = start, evaluate(alpha)
    tried = 0
    while tried < MOST_TRIALS:
        if _too_high(trial, start) or (tried > 1 and trial.loss >= before.loss):
            break
        if _flat_enough(trial, start, curvature):
            return trial, tried + 1
        if trial.slope >= 0:
            break
        nearest = trial.alpha + 0.01 * (trial.alpha - before.alpha)
        alpha = _lowest_of_cubic(before, trial, (nearest, 10 * trial.alpha))
        before, trial = trial, evaluate(alpha)
        tried += 1
    else:
        before = start
    return _zoom(evaluate, start, [before, trial], tried, reach, curvature)


def _zoom(
    evaluate: Callable[[float], Trial],
    start: Trial,
    ends: list[Trial],
    tried: int,
    reach: float,
    curvature: float,
) -> tuple[Trial, int]:
    """Narrow a bracket that contains a suitable point."""
    low = _lower(ends)
    hesitated = False
    while tried < MOST_TRIALS:
        near, far = sorted(end.alpha for end in ends)
        if (far - near) * reach < SHORTEST:
            break
        alpha = _lowest_of_cubic(ends[0], ends[1])
        margin = 0.1 * (far - near)
        if min(far - alpha, alpha - near) >= margin:
            hesitated = False
        elif hesitated or alpha >= far or alpha <= near:
            alpha = far - margin if abs(alpha - far) < abs(alpha - near) else near + margin
            hesitated = False
        else:
            hesitated = True  # close to an end once; the next time it is moved away
        trial = evaluate(alpha)
        tried += 1
        if _too_high(trial, start) or trial.loss >= ends[low].loss:
            ends[1 - low] = trial
            low = _lower(ends)
            continue
        if _flat_enough(trial, start, curvature):
            return trial, tried + 1
        if trial.slope * (ends[1 - low].alpha - ends[low].alpha) >= 0:
            ends[1 - low] = ends[low]
        ends[low] = trial
    return ends[low], tried + 1


def _too_high(trial: Trial, start: Trial) -> bool:
    """Return whether the decrease is insufficient, as it is for NaN."""
    return not trial.loss <= start.loss + DECREASE * trial.alpha * start.slope


def _flat_enough(trial: Trial, start: Trial, curvature: float) -> bool:
    return abs(trial.slope) <= -curvature * start.slope


def _lower(ends: list[Trial]) -> int:
    return 1 if ends[1].loss < ends[0].loss else 0


def _lowest_of_cubic(one: Trial, other: Trial, bounds: tuple[float, float] | None = None) -> float:
    """Return the minimum of the cubic through two points and their slopes, within bounds."""
    left, right = (one, other) if one.alpha <= other.alpha else (other, one)
    lowest, highest = bounds or (left.alpha, right.alpha)
    width = right.alpha - left.alpha
    if width > 0:
        mean = left.slope + right.slope - 3 * (right.loss - left.loss) / width
        inside = mean * mean - left.slope * right.slope
        root = math.sqrt(inside) if inside >= 0 else math.nan
        divisor = right.slope - left.slope + 2 * root
        if divisor and math.isfinite(divisor):
            place = right.alpha - width * ((right.slope + root - mean) / divisor)
            return min(max(place, lowest), highest)
    return (lowest + highest) / 2
