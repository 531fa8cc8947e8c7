"""View models of surface maps: what a figure shows, as plain data that each backend can draw.

Everything that could be misrepresented is decided here, once: which part of the surface is visible,
where a path leaves it, which range the levels cover. The plotly figure and the static image draw
the same view and so cannot disagree.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from optlab.viz.protocols import ComparisonLike, ProblemLike, SurfaceLike, TraceLike
from optlab.viz.style import theme
from optlab.viz.style.contours import ContourLabel, label_contours, log_levels
from optlab.viz.style.geometry import (
    Box,
    Floats,
    LabelPlacer,
    clip_line,
    simplify,
    view_box,
    with_aspect,
)
from optlab.viz.style.text import (
    format_number,
    format_point,
    optimizer_class,
    start_of,
    why_stopped,
)
from optlab.viz.style.theme import Style

_GRID = 175  # columns of the surface's grid: contours look smooth, and the figure stays small
_HOVER_STEPS = 1000  # steps with hover text, of all paths together
_RECENT = 40  # steps at full strength of a path with noise, which would be a ball of wool
_DOT_SPACING = 7  # pixels: shorter steps get no dot, since dots would hide the dashes


@dataclass(frozen=True)
class Mark:
    """A labeled point; `position` is a side as in plotly's ``textposition``, or None: no label."""

    x: float
    y: float
    text: str
    position: str | None


@dataclass(frozen=True)
class PathView:
    """The path of one optimizer over the map.

    Attributes
    ----------
    name : str
        As in the legend.
    style : Style
        The optimizer's style.
    x, y : arrays
        The line, clipped at the border of the map, with NaN between pieces.
    step, step_x, step_y, step_loss : arrays
        Points visited inside the map, the number of steps taken before each, and the loss there.
    dotted : array of bool
        Which of these points are marked with a dot: those that are far enough apart.
    end : Mark or None
        The end of the run, if it is on the map.
    leaves : Mark or None
        The point where the path leaves the map for good, with its further course as text.
    width, dot, end_size : float
        Sizes in pixels of the line, its dots, and its end marker.
    pale : (x, y) or None
        What comes before the line: of a path with noise all but its last steps.
    """

    name: str
    style: Style
    x: Floats
    y: Floats
    step: Floats
    step_x: Floats
    step_y: Floats
    step_loss: Floats
    dotted: NDArray[np.bool_]
    end: Mark | None
    leaves: Mark | None
    width: float = theme.LINE_WIDTH
    dot: float = theme.STEP_SIZE
    end_size: float = theme.END_SIZE
    pale: tuple[Floats, Floats] | None = None


@dataclass(frozen=True)
class MapView:
    """A surface seen from above, with the paths on it.

    Attributes
    ----------
    box : Box
        The visible part, in the aspect of the panel, so that angles are true.
    x, y : arrays
        The grid's coordinates.
    height : array (len(y), len(x))
        log10 of the loss above `base`.
    levels : array
        Contour levels, evenly spaced in `height`: log-spaced in the loss.
    base : float
        The minimum if it is known, else the lowest loss seen.
    note : str
        The meaning of the contours.
    places : tuple of Mark
        What has a name beside start and minima: a saddle.
    """

    box: Box
    x: Floats
    y: Floats
    height: Floats
    levels: Floats
    base: float
    note: str
    contour_labels: tuple[ContourLabel, ...]
    start: Mark
    minima: tuple[Mark, ...]
    paths: tuple[PathView, ...]
    places: tuple[Mark, ...] = ()


def styles_of(comparison: ComparisonLike) -> dict[str, Style]:
    """Return the style of every trace of a comparison; its own `styles`, if any, come first."""
    own: dict[str, Style] | None = getattr(comparison, "styles", None)
    if own:
        return own
    return theme.assign_styles(
        {name: optimizer_class(trace) for name, trace in comparison.traces.items()}
    )


def is_noisy(problem: ProblemLike) -> bool:
    """Return whether the gradients of a surface are drawn with noise, not with a pattern."""
    return bool(getattr(problem, "noise", 0.0)) and not len(getattr(problem, "pattern", ()))


def has_map(problem: ProblemLike) -> bool:
    """Return whether a problem is a surface over the plane."""
    return problem.kind == "surface" and getattr(problem, "dimension", 2) == 2


def surface_of(problem: ProblemLike) -> SurfaceLike:
    """Return `problem` if it can be drawn as a map; raise otherwise."""
    if problem.kind != "surface":
        raise ValueError(
            f"{problem.title} is a {problem.kind}: it has too many parameters for a map; "
            "draw its loss_curves instead"
        )
    surface: SurfaceLike = problem  # type: ignore[assignment]  # as its kind states
    if surface.dimension != 2:
        raise ValueError(
            f"a map needs a surface of 2 coordinates; {problem.title} has {surface.dimension}"
        )
    return surface


def map_view(
    problem: ProblemLike,
    comparison: ComparisonLike | None,
    width: float,
    height: float,
    places: Sequence[tuple[str, float, float]] = (),
) -> MapView:
    """Build the view of a map.

    Parameters
    ----------
    problem : a surface of two coordinates
        The surface to draw.
    comparison : Comparison or None
        The runs whose paths are drawn on it.
    width, height : float
        Size of the panel in pixels, for the aspect of the view and the placement of labels.
    places : sequence of (name, x, y)
        What else is named.
    """
    surface = surface_of(problem)
    runs: Mapping[str, TraceLike] = {} if comparison is None else comparison.traces
    points = {
        name: np.asarray(trace.parameters["point"], dtype=np.float64).reshape(-1, 2)
        for name, trace in runs.items()
    }
    began = None if comparison is None else start_of(comparison)
    start = tuple(float(v) for v in (surface.start if began is None else began))
    if not all(map(math.isfinite, start)):
        raise ValueError(f"a path cannot be drawn from the start {format_point(start)}")
    (x_low, x_high), (y_low, y_high) = surface.domain
    domain = Box(float(x_low), float(x_high), float(y_low), float(y_high))
    minima = [(float(x), float(y)) for x, y in surface.minima]
    near = view_box([(start[0], start[1]), *minima], points.values(), domain)
    if comparison is None:  # without paths, show the whole domain
        near = domain if domain.contains(*start) else near
    box = with_aspect(near, width / height)

    x = np.linspace(box.x_low, box.x_high, _GRID)
    y = np.linspace(box.y_low, box.y_high, max(2, round(_GRID * height / width)))
    with np.errstate(all="ignore"):  # the map is blank where the function is undefined
        losses = np.asarray(surface.values(*np.meshgrid(x, y)), dtype=np.float64)
    known = surface.minimum_value
    heights, levels, base = log_levels(losses, known)

    def pixels(line_x: Floats, line_y: Floats) -> Floats:
        across = (line_x - box.x_low) / box.width * width
        up = (line_y - box.y_low) / box.height * height
        return np.stack([across, up], axis=1)

    styles = {} if comparison is None else styles_of(comparison)
    pixel = box.width / width
    lines = {
        name: simplify(*clip_line(path[:, 0], path[:, 1], box), 0.4 * pixel)
        for name, path in points.items()
    }
    covered = [pixels(*line) for line in lines.values()]
    placer = LabelPlacer(Box(2, width - 2, 2, height - 2), covered)

    def pixel_of(at: tuple[float, float]) -> tuple[float, float]:
        across, up = pixels(np.array([at[0]]), np.array([at[1]]))[0]
        return float(across), float(up)

    def mark(at: tuple[float, float], text: str, size: float, short: str | None = None) -> Mark:
        position = placer.place(pixel_of(at), text, theme.FONT_TEXT, size / 2 + 2)
        if position is None and short is not None:
            return mark(at, short, size)
        return Mark(at[0], at[1], text, position)

    lowest = [m for m in minima if box.contains(*m)]
    ends = {name: _ending(path, box) for name, path in points.items()}
    placer.mark(pixel_of((start[0], start[1])), theme.START_SIZE / 2)
    for place in lowest:
        placer.mark(pixel_of(place), theme.MINIMUM_SIZE / 2)
    named = [(text, (x, y)) for text, x, y in places if box.contains(x, y)]
    for _, place in named:
        placer.mark(pixel_of(place), theme.START_SIZE / 2)
    for at, _ in ends.values():
        if at is not None:
            placer.mark(pixel_of(at), theme.END_SIZE / 2)
    start_mark = mark((start[0], start[1]), "start", theme.START_SIZE)
    lowest_marks = tuple(mark(p, f"minimum {format_point(p)}", theme.MINIMUM_SIZE) for p in lowest)
    place_marks = tuple(mark(place, text, theme.START_SIZE) for text, place in named)
    paths = []
    for name, (at, inside) in ends.items():
        trace = runs[name]
        label = name if inside else _exit_label(name, trace, points[name], box)
        text = _end_label(label, trace, inside)
        end = None if at is None else mark(at, text, theme.END_SIZE, short=name)
        final = math.nan if comparison is None else comparison.final_loss.get(name, math.nan)
        path = _path_view(
            trace,
            styles[name],
            points[name],
            lines[name],
            box,
            final,
            end,
            inside,
            most=_HOVER_STEPS // len(ends),
            spacing=_DOT_SPACING * pixel,
        )
        if is_noisy(surface) and len(points[name]) > _RECENT + 1:
            path = _with_pale(path, points[name], box, 0.4 * pixel)
        paths.append(path)
    return MapView(
        box=box,
        x=x,
        y=y,
        height=heights,
        levels=levels,
        base=base,
        note=(
            contour_note(base, known)
            if np.isfinite(heights).any()
            else "no contours: the function gives no numbers here"
        ),
        contour_labels=label_contours(x, y, heights, levels, width, height, covered, placer),
        start=start_mark,
        minima=lowest_marks,
        paths=tuple(paths),
        places=place_marks,
    )


def contour_note(base: float, known: float | None) -> str:
    """Return the note on the contours: what the losses are relative to, and their spacing."""
    if known == base:
        above = "" if base == 0 else f" above the minimum {format_number(base)}"
    else:
        above = f" above {format_number(base)}, the lowest seen"
    return f"equal scales; contours: loss{above}, log-spaced"


def _ending(path: Floats, box: Box) -> tuple[tuple[float, float] | None, bool]:
    """Return the position of the end mark of a path, and whether the run ended there."""
    finite = path[np.isfinite(path).all(axis=1)]
    if len(finite) and len(finite) == len(path) and box.contains(*finite[-1]):
        return (float(finite[-1, 0]), float(finite[-1, 1])), True
    line_x, line_y = clip_line(path[:, 0], path[:, 1], box)
    if len(line_x):
        return (float(line_x[-1]), float(line_y[-1])), False
    return None, False


def _exit_label(name: str, trace: TraceLike, path: Floats, box: Box) -> str:
    """Return the label of a path that does not end on the map."""
    inside = np.flatnonzero(box.holds(path[:, 0], path[:, 1]))
    last = int(inside[-1]) if len(inside) else 0
    if last + 1 < len(path) and not np.isfinite(path[last + 1]).all():
        return f"{name} stops here"
    number = int(trace.step[last]) if last < len(trace.step) else last + 1
    if trace.stopped is None:
        return f"{name} leaves at step {number},\nends at {format_point(path[-1])}"
    return f"{name} leaves at step {number}"


def _end_label(label: str, trace: TraceLike, inside: bool) -> str:
    stopped = why_stopped(trace)
    if stopped is None:
        return label
    return f"{label}{' ' if inside else ','}\n{stopped}".replace(" \n", " ")


def _path_view(
    trace: TraceLike,
    style: Style,
    path: Floats,
    line: tuple[Floats, Floats],
    box: Box,
    final_loss: float,
    end: Mark | None,
    inside: bool,
    *,
    most: int,
    spacing: float,
) -> PathView:
    taken, losses = visited(trace, final_loss, len(path))
    shown = np.flatnonzero(box.holds(path[:, 0], path[:, 1]))
    with np.errstate(all="ignore"):
        length = np.hypot(*np.diff(path, axis=0).T) if len(path) > 1 else np.empty(0)
    apart = np.minimum(np.append(length, np.inf), np.append(np.inf, length)) >= spacing
    if len(shown) > most:  # more of them near the start, where steps are long
        at = np.linspace(0, 1, most) ** 2 * (len(shown) - 1)
        shown = shown[np.unique(np.rint(at).astype(int))]
    return PathView(
        name=trace.name,
        style=style,
        x=line[0],
        y=line[1],
        step=taken[shown],
        step_x=path[shown, 0],
        step_y=path[shown, 1],
        step_loss=losses[shown],
        dotted=apart[shown],
        end=end if inside else None,
        leaves=None if inside else end,
    )


def _with_pale(view: PathView, path: Floats, box: Box, tolerance: float) -> PathView:
    """Return a path of which only the last steps have full strength, and dots."""
    cut = len(path) - _RECENT - 1
    pale, (x, y) = (
        simplify(*clip_line(piece[:, 0], piece[:, 1], box), tolerance)
        for piece in (path[: cut + 1], path[cut:])
    )
    dotted = view.dotted & (view.step >= view.step.max(initial=0) - _RECENT)
    return replace(view, x=x, y=y, dotted=dotted, pale=pale)


def visited(trace: TraceLike, final_loss: float, count: int) -> tuple[Floats, Floats]:
    """Return the steps taken and the loss at each of `count` recorded points of a run.

    The loss of step i is the loss *before* it, so the first is at 0 steps, and the point after the
    last step has the final loss. A run with points that are not steps (the jumps back of LookAhead)
    has the number of steps at each point in its attribute `taken`.
    """
    step = np.asarray(trace.step, dtype=np.float64)
    last = step[-1] if len(step) else 0.0
    own = getattr(trace, "taken", None)
    taken = (np.concatenate([step - 1, [last]]) if own is None else own)[:count]
    losses = np.concatenate([np.asarray(trace.loss, dtype=np.float64), [final_loss]])[:count]
    return taken, losses
