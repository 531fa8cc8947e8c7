"""View model of LookAhead and averages: two runs from one trace, and the texts."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from optlab.viz.style import layout, theme
from optlab.viz.style.geometry import Floats
from optlab.viz.style.labels import labeled_trace
from optlab.viz.style.layout import Page
from optlab.viz.style.results import one_trace
from optlab.viz.style.text import format_number, format_rate, wrapper_settings
from optlab.viz.style.theme import Style
from optlab.viz.views.curve_view import CurvesView, axis_note, loss_view
from optlab.viz.views.map_view import MapView, has_map, map_view

_THIN, _BOLD, _DOT = 1.2, 3.0, 7.0  # pixels
_LEAST_GAP = 5  # pixels between two vertical lines: closer ones would merge


@dataclass(frozen=True)
class Kind:
    """One kind of averaged weights: its function, slot, distance, and names in the legend."""

    what: str
    slot: str
    apart: str
    moving: str
    following: str


LOOKAHEAD = Kind("lookahead", "slow", "lead", "fast path", "slow path")
AVERAGE = Kind("averages", "average", "lag", "path", "average")


@dataclass(frozen=True)
class _Run:
    """Weights over the steps, as a `TraceLike`."""

    name: str
    step: NDArray[Any]
    loss: Floats
    parameters: dict[str, Floats]
    settings: dict[str, Any]
    stopped: str | None
    learning_rate: Floats = field(default_factory=lambda: np.empty(0))
    taken: Floats | None = None


@dataclass(frozen=True)
class _Pair:
    """The two runs of one figure, as a `ComparisonLike`."""

    problem: Any
    traces: dict[str, _Run]
    final_loss: dict[str, float]
    steps: int
    seed: int = 0
    accuracy: dict[str, float] = field(default_factory=dict)
    styles: dict[str, Style] = field(default_factory=dict)


@dataclass(frozen=True)
class AverageView:
    """The content of a figure, for both backends."""

    page: Page
    title: str
    headline: str
    pair: _Pair
    surface: MapView | None
    curves: tuple[CurvesView, ...]


def average_view(trace: Any, kind: Kind, note: str, width: int, height: int) -> AverageView:
    """Build the view of a trace; raise if it is not a trace of that kind."""
    trace = labeled_trace(one_trace(trace, kind.what, lambda run: _has(run, kind)))
    _check(trace, kind)
    if not isinstance(note, str):
        raise TypeError(f"note is text; got {type(note).__name__}.")
    problem = trace.problem
    longest = layout.text_width(f"{kind.following} 1.23e-45", theme.FONT_TEXT) + 4
    on_map = problem is not None and has_map(problem) and "point" in trace.parameters

    def laid_out(said: str) -> Page:
        return layout.page(
            width,
            height,
            names=[kind.moving, kind.following],
            note=said,
            shares=[1.35, 1] if on_map else [1, 1],
            rooms=[layout.AXIS_GAP if on_map else longest + layout.AXIS_GAP - 20, longest],
        )

    # The note on vertical lines depends on the width of the panels, but has no effect on it.
    lines = _lines(trace, kind, laid_out("").panels[1].width)
    said = [_settings(trace, kind, lines), note]
    if on_map:
        said.append(axis_note(_pair(trace, kind, stairs=True)))
    page = laid_out(" ".join(filter(None, said)))
    left, right = page.panels
    if not on_map:
        pair, curves, headline = _without_map(trace, kind, page, lines)
        return AverageView(page, _title(trace, kind), headline, pair, None, curves)
    pair = _pair(trace, kind, stairs=False)
    surface = map_view(problem, pair, left.width, left.height)
    surface = replace(
        surface,
        paths=tuple(
            replace(
                path,
                width=_BOLD if path.name == kind.following else _THIN,
                dot=_DOT if path.name == kind.following and kind is LOOKAHEAD else theme.STEP_SIZE,
                end_size=theme.OVER_SIZE if path.name == kind.following else theme.UNDER_SIZE,
            )
            for path in surface.paths
        ),
    )
    losses = loss_view(_pair(trace, kind, stairs=True), right.width, right.height)
    losses = replace(_weighted(losses, kind), lines=lines)
    return AverageView(page, _title(trace, kind), _headline(pair, kind), pair, surface, (losses,))


def _check(trace: Any, kind: Kind) -> None:
    if not len(trace):
        raise ValueError(f"the trace {trace.name!r} has no steps to draw.")
    settings = trace.settings
    wrapped = settings.get("class") == "LookAhead" if kind is LOOKAHEAD else "average" in settings
    if not _has(trace, kind) and not wrapped:
        how = "ol.optimizer.LookAhead(optimizer)"
        if kind is AVERAGE:
            how = "ol.optimizer.ExponentialMovingAverage.around(optimizer)"
        raise ValueError(
            f"the trace {trace.name!r} has no {kind.slot} weights: record a run of {how}."
        )
    apart = kind.apart in trace.terms or f"term {kind.apart}" in trace._groups("norm ")
    if not _has(trace, kind) or not apart:
        raise ValueError(
            f"the trace {trace.name!r} has no {kind.apart!r}, the distance from the {kind.slot} "
            "weights. Record it: ol.record(optimizer, probes=[ol.probes.Values()]), or, of large "
            "parameters, probes=[ol.probes.Norms()]."
        )


def _has(trace: Any, kind: Kind) -> bool:
    return kind.slot in trace.slots or f"slot {kind.slot}" in trace._groups("norm ")


def _pair(trace: Any, kind: Kind, *, stairs: bool) -> _Pair:
    """Return the two paths over a surface, with their losses.

    With `stairs` the slow weights stay constant until the next synchronization.
    """
    surface, step = trace.problem, np.asarray(trace.step)
    points = np.asarray(trace.parameters["point"], dtype=np.float64)
    follow = np.asarray(trace.slots[kind.slot]["point"], dtype=np.float64)
    inner = str(trace.settings.get("inner_optimizer", ""))
    if kind is LOOKAHEAD:
        met = np.isin(step, trace.synchronisations)
        fast = np.asarray(trace.terms["fast"]["point"], dtype=np.float64)
        # At a synchronization the fast weights appear twice: before, and back at the slow ones.
        order = np.repeat(np.arange(len(step)), 1 + met)
        back = np.append(np.diff(order) == 0, False)
        back = np.insert(back[:-1], 0, False)
        moving = np.where(back[:, None], points[1:][order], fast[order])
        taken = step[order]
        if stairs:
            at = np.flatnonzero(met)
            before = np.concatenate([points[:1], follow[at][:-1]])[: len(at)]
            follow_taken = np.repeat(step[at], 2)
            follow = np.stack([before, follow[at]], axis=1).reshape(-1, 2)
            if len(at) == 0 or at[-1] != len(step) - 1:
                last = follow[-1:] if len(follow) else points[:1]
                follow = np.concatenate([follow.reshape(-1, 2), last])
                follow_taken = np.append(follow_taken, step[-1])
        else:
            follow, follow_taken = follow[met], step[met]
    else:
        moving, taken, follow_taken = points[1:], step, step
    start = points[:1]
    runs = {
        kind.moving: (np.concatenate([start, moving]), taken, inner),
        kind.following: (np.concatenate([start, follow]), follow_taken, ""),
    }
    traces, final = {}, {}
    for name, (path, after, cls) in runs.items():
        with np.errstate(all="ignore"):
            losses = np.asarray(surface.values(path[:, 0], path[:, 1]), dtype=np.float64)
        traces[name] = _Run(
            name, after, losses[:-1], {"point": path}, {"class": cls or name}, trace.stopped,
            taken=np.insert(after, 0, 0).astype(np.float64),
        )  # fmt: skip
        final[name] = float(losses[-1])
    return _Pair(surface, traces, final, int(step[-1]), styles=_styles(kind, inner))


def _styles(kind: Kind, inner: str) -> dict[str, Style]:
    """Return the styles: moving weights as the inner optimizer, dashed; averaged weights solid."""
    found = theme.assign_styles({kind.moving: inner, kind.following: ""})
    moving, following = found[kind.moving], found[kind.following]
    return {
        kind.moving: replace(moving, dash=moving.dash or (7, 3)),
        kind.following: replace(following, dash=()),
    }


@dataclass(frozen=True)
class _ProblemWithoutMap:
    """A problem without a map."""

    title: str
    kind: str = "network"
    dimension: int = 0
    minimum_value: float | None = None


def _without_map(
    trace: Any, kind: Kind, page: Page, lines: tuple[float, ...]
) -> tuple[_Pair, tuple[CurvesView, ...], str]:
    """Build the view without a map: the loss, and the distance of the two weights."""
    left, right = page.panels
    step, name = np.asarray(trace.step), kind.moving
    title = str(getattr(trace.problem, "title", trace.name))
    look = {"class": str(trace.settings.get("inner_optimizer", ""))}
    last = int(step[-1])
    run = _Run(name, step, np.asarray(trace.loss), {}, look, trace.stopped)
    pair = _Pair(_ProblemWithoutMap(title), {name: run}, {}, last)
    losses = loss_view(pair, left.width, left.height)

    norms = trace.norms[kind.apart].values()
    apart = np.sqrt(sum(np.square(np.asarray(norm, dtype=np.float64)) for norm in norms))
    # They start at the same point; a synchronization shows two distances: before it, and 0.
    met = np.isin(step, trace.synchronisations)
    order = np.repeat(np.arange(len(step)), 1 + met)
    together = np.insert(np.diff(order) == 0, 0, False)
    taken = np.insert(step[order], 0, 0).astype(np.float64)
    values = np.insert(np.where(together, 0.0, apart[order]), 0, 0.0)
    run = replace(run, loss=values[:-1], taken=taken)
    far = _Pair(_ProblemWithoutMap(title, "distance"), {name: run}, {name: float(values[-1])}, last)
    view = loss_view(far, right.width, right.height)
    distance = format_number(float(apart[-1]))
    if kind is LOOKAHEAD:
        heading, note = "Lead of the fast weights", "distance from the slow ones"
        headline = (
            f"{last} steps, {_synchronisations(trace)}; in the last step the fast weights were "
            f"{distance} ahead of the slow ones"
        )
        headline += ", then 0: they synchronised." if met[-1] else "."
        label = f"{distance} ahead{', then 0' if met[-1] else ''}"
    else:
        heading, note = "Distance from the average", "of the weights"
        headline = f"After {last} steps the weights are {distance} away from their average."
        label = f"{distance} away"
    series = tuple(replace(one, label=heading.lower()) for one in view.series)
    ends = tuple(replace(end, text=label) for end in view.ends)
    view = replace(view, title=heading, note=f"{note}; {view.note}", series=series, ends=ends)
    curves = tuple(replace(one, lines=lines) for one in (losses, view))
    return pair, curves, headline


def _synchronisations(trace: Any) -> str:
    count = len(trace.synchronisations)
    return f"{count} synchronisation{'s' * (count != 1)}"


def _weighted(view: CurvesView, kind: Kind) -> CurvesView:
    """Draw moving weights thin and averaged weights bold."""
    series = tuple(
        replace(one, width=_BOLD if one.name == kind.following else _THIN) for one in view.series
    )
    ends = tuple(
        replace(end, size=theme.OVER_SIZE if end.name == kind.following else theme.UNDER_SIZE)
        for end in view.ends
    )
    return replace(view, series=series, ends=ends)


def _lines(trace: Any, kind: Kind, width: float) -> tuple[float, ...]:
    """Return the synchronizations to mark with vertical lines; none if these are too close."""
    lines = tuple(float(step) for step in trace.synchronisations)
    return lines if kind is LOOKAHEAD and len(lines) * _LEAST_GAP <= width else ()


def _title(trace: Any, kind: Kind) -> str:
    outer = str(trace.settings.get("average", trace.settings.get("class", "")))
    if kind is LOOKAHEAD:
        outer = "LookAhead"
    inner = trace.settings.get("inner_optimizer", "")
    on = f" on {trace.problem.title}" if trace.problem is not None else ""
    return f"{outer} around {inner}{on}"


def _headline(pair: _Pair, kind: Kind) -> str:
    one, other = pair.final_loss.values()
    after = f"After {pair.steps} steps"
    if not (math.isfinite(one) and math.isfinite(other)):
        return f"{after} the loss is no longer finite."
    first, second = format_number(one), format_number(other)
    if kind is AVERAGE:
        return f"{after} the weights are at loss {first}, their average at {second}."
    if one == other:
        return f"{after} fast and slow weights are together, at loss {first}."
    return f"{after} the fast weights are at loss {first}, the slow ones at {second}."


def _settings(trace: Any, kind: Kind, lines: tuple[float, ...]) -> str:
    """Return the settings of the run; only the user knows how they were chosen."""
    shown = [f"learning rate {format_rate(trace)}"]
    wanted = ("alpha", "k") if kind is LOOKAHEAD else (
        "decay", "thres_steps", "average_window_rate", "min_average_window", "max_average_window",
    )  # fmt: skip
    shown += filter(None, [wrapper_settings(trace, wanted)])
    text = f"{', '.join(shown)}, as given."
    if kind is LOOKAHEAD:
        count = _synchronisations(trace)
        text += f" Pale upright lines: the {count}." if lines else f" {count}."
        if len(trace.synchronisations) and not lines:
            text = f"{text[:-1]}, too close together for a line each."
    return text[0].upper() + text[1:]
