"""View model of memory studies: timelines, bars, and memory against time."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from optlab.backend.memory.sizes import in_words
from optlab.viz.memory_study.tradeoff import (
    Curve,
    Point,
    box_of,
    curves_of,
    front_of,
    points_of,
    time_of,
)
from optlab.viz.memory_timeline.view import MIB, NAMES, first_to_fit
from optlab.viz.style import layout, theme
from optlab.viz.style.geometry import Box, Floats
from optlab.viz.style.layout import Page, Panel
from optlab.viz.style.results import refuse_runs
from optlab.viz.style.text import format_bytes
from optlab.viz.style.theme import Style

#: Columns of a timeline: several events are drawn as one, at the highest of them.
COLUMNS = 240
#: Most timelines side by side, if their names fit, and the least width of each.
ACROSS, LEAST_ACROSS = 5, 128.0
TIMELINE, GAP_DOWN, ROW, LEAST_BELOW = 130.0, 62.0, 30.0, 230.0
"""Pixels: height of a timeline, gap between rows of panels, a row of bars, the part below."""
BETWEEN, UNDER_BARS = 16.0, 40.0
"""Pixels between columns of bars, and between them and a plot below them."""
PLOT = "Memory against time"
PLOT_NOTES = ("above start; time beyond plain, both linear", "time beyond plain", "")
"""The heading of the plot, and its notes: the first that fits is used."""
BESIDE = {"right": ((7, 9), "left"), "left": ((-7, 9), "right"), "above": ((0, 15), "center")}
"""Position of the label of a peak: its offset in pixels, and its anchor."""
WHOLE = 0
"""The first panel of the page is the whole drawing area, for the margins; it is empty."""


@dataclass(frozen=True)
class Timeline:
    """The memory of one run above its start, in MiB over events.

    `bands` are (role, low, high); `said` is the label of the peak, on `side` of it or above.
    """

    name: str
    said: str
    side: str
    edges: Floats
    bands: tuple[tuple[str, Floats, Floats], ...]
    peak: tuple[float, float]
    tips: tuple[str, ...]


@dataclass(frozen=True)
class Bars:
    """One column of bars: a value and a text for each run, and its range if it has one."""

    title: str
    note: str
    values: tuple[float, ...]
    texts: tuple[str, ...]
    spans: tuple[tuple[float, float] | None, ...] = ()

    @property
    def most(self) -> float:
        """The end of the scale."""
        return max(*self.values, *(high for _, high in filter(None, self.spans)), 0.0) or 1.0


@dataclass(frozen=True)
class RecomputeView:
    """The content of the figure; bytes in MiB, time in percent beyond the plain run."""

    page: Page
    title: str
    headline: str
    roles: tuple[str, ...]
    timelines: tuple[Timeline, ...]
    ticks: tuple[int, ...]
    events: float
    top: float
    plain_peak: float
    runs: tuple[tuple[str, Style], ...]
    remarks: tuple[str, ...]
    bars: tuple[Bars, ...]
    plot_note: str
    points: tuple[Point, ...]
    front: tuple[Floats, Floats]
    curves: tuple[Curve, ...]
    box: Box

    @property
    def tick_texts(self) -> tuple[str, ...]:
        """Numbers of events under the first timeline of a row; the first one names the axis."""
        return (f"event {self.ticks[0]}", *map(str, self.ticks[1:]))

    @property
    def first_of_bars(self) -> int:
        """Index of the first panel of bars."""
        return 1 + len(self.timelines)

    @property
    def plot(self) -> int:
        """Index of the panel of memory against time."""
        return self.first_of_bars + len(self.bars)


def recompute_view(
    study: Any, width: int, height: int | None, of: str = "recompute"
) -> RecomputeView:
    """Build the view of a memory study; `of` is the name of the function that was called."""
    refuse_runs(
        study, f"viz.{of}",
        "it compares ways to run one step. Give ol.lab.memory_study(step).",
    )  # fmt: skip
    if not hasattr(study, "front") or not hasattr(study, "rows"):
        raise TypeError(
            f"viz.{of} takes what ol.lab.memory_study(step) returned; got {type(study).__name__}. "
            "(One schedule is drawn by viz.recompute_schedule, one trace by viz.memory.)"
        )
    styles = styles_of_runs(study)
    traced = [row for row in study.rows if row.timeline is not None]
    roles = _roles(traced)
    bars = _bars(study)
    page = _page(study, [row.name for row in traced], bars, roles, width, height)
    events = max((len(row.timeline) - 1 for row in traced), default=1)
    per_column = max(1, math.ceil(events / COLUMNS))
    timelines = tuple(
        _timeline(row, roles, per_column, (events, page.panels[at].width))
        for at, row in enumerate(traced, 1)
    )
    # Above the highest peak there is space for its label.
    tall = page.panels[1].height
    top = max((line.peak[1] for line in timelines), default=1.0) * tall / (tall - 24)
    plot = page.panels[-1]
    box = box_of(study)
    curves = curves_of(study, box, plot)
    return RecomputeView(
        page=page,
        title=title_of(study),
        headline=study.headline(),
        roles=roles,
        timelines=timelines,
        ticks=_ticks(events),
        events=float(events),
        top=top,
        plain_peak=timelines[0].peak[1] if timelines else 0.0,
        runs=tuple(styles.items()),
        remarks=tuple(_remark(row, _room_of(page, len(bars))) for row in study.rows),
        bars=bars,
        plot_note=next(note for note in PLOT_NOTES if _heading_width(PLOT, note) <= plot.width),
        points=points_of(study, styles, box, plot, curves),
        front=front_of(study),
        curves=curves,
        box=box,
    )


def styles_of_runs(study: Any) -> dict[str, Style]:
    """Return the style of every run."""
    return theme.assign_styles({row.name: "" for row in study.rows})


def title_of(study: Any) -> str:
    """Return the title of the figure."""
    return f"{PLOT}: a{about_of(study)[1:]}"


def about_of(study: Any) -> str:
    """Return what was measured: "A step of 9 layers, run in 2 ways"."""
    layers = sum(len(chain.saved) for chain in study.chains)
    of = f" of {layers} layers" if layers else ""
    return f"A step{of}, run in {len(study.rows)} ways"


def above_start(trace: Any) -> Floats:
    """Return the bytes of each role over the events, in MiB above those at the start."""
    found: Floats = np.maximum(trace.during[1:] - trace.bytes[0], 0) / MIB
    return found


def _roles(traced: list[Any]) -> tuple[str, ...]:
    """Return the roles that are large enough to be visible."""
    heights = [dict(zip(row.timeline.roles, above_start(row.timeline).max(axis=0), strict=True))
               for row in traced]  # fmt: skip
    most = {role: max((one[role] for one in heights), default=0.0) for role in theme.MEMORY}
    return tuple(role for role in theme.MEMORY if most[role] > 2e-3 * max(most.values()))


def _page(
    study: Any,
    timelines: list[str],
    bars: tuple[Bars, ...],
    roles: tuple[str, ...],
    width: int,
    height: int | None,
) -> Page:
    """Lay out the rows of timelines, and below them the bars and the plot."""
    names = [NAMES[role] for role in roles]
    frame = layout.page(
        width, 480, names=names, headed=True, note=note_of(study), shares=[1], rooms=[0],
        sample=layout.SQUARE_SAMPLE,
    )  # fmt: skip
    usable, gap = width - layout.LEFT - layout.RIGHT, 16.0
    need = max(LEAST_ACROSS, *(_heading_width(name, "") for name in timelines), 0.0)
    fitting = max(1, min(ACROSS, int((usable + gap) // (need + gap))))
    lines = math.ceil(len(timelines) / fitting)
    across = math.ceil(len(timelines) / lines) if lines else 0
    beside = _fits_beside(study, bars, usable)
    tall_bars = ROW * len(study.rows) + 8
    below = max(LEAST_BELOW, tall_bars) if beside else tall_bars + UNDER_BARS + LEAST_BELOW
    least = lines * (TIMELINE + GAP_DOWN) + below
    bottom = layout.AXIS_ROOM + layout.NOTE_LINE * len(frame.note) + 8
    total = max(math.ceil(frame.top + least + bottom), height or 0)
    spare = total - frame.top - bottom - least
    tall = TIMELINE + spare * 0.4 / lines if lines else 0.0
    panels = [Panel(layout.LEFT, frame.top, usable, total - frame.top - bottom)]
    for i in range(len(timelines)):
        row, column = divmod(i, across)
        each = (usable - gap * (across - 1)) / across
        left, top = layout.LEFT + column * (each + gap), frame.top + row * (tall + GAP_DOWN)
        panels.append(Panel(left, top, each, tall))
    start = frame.top + lines * (tall + GAP_DOWN)
    panels += _place_bars_and_plot(study, bars, usable, start, total - bottom - start)
    return replace(frame, height=total, panels=tuple(panels))


def _heading_width(title: str, note: str) -> float:
    """Return the width of a heading in pixels: a bold title and a small note."""
    title_width = 1.04 * layout.text_width(title, theme.FONT_HEADING)
    return title_width + (8 + 0.92 * layout.text_width(note, theme.FONT_SMALL) if note else 0.0)


def _names_width(study: Any) -> float:
    """Return the width in pixels of the names of the runs, with their markers."""
    return max(layout.text_width(row.name, theme.FONT_TEXT) for row in study.rows) + 30


def _column_widths(bars: tuple[Bars, ...]) -> list[float]:
    """Return the width in pixels that each column of bars needs."""
    return [
        max(
            _heading_width(one.title, one.note),
            *(layout.text_width(t, theme.FONT_TEXT) for t in one.texts),
        )
        for one in bars
    ]


def _fits_beside(study: Any, bars: tuple[Bars, ...], usable: float) -> bool:
    """Return whether the plot fits beside the bars instead of below them."""
    need = _names_width(study) + sum(_column_widths(bars)) + BETWEEN * (len(bars) - 1)
    return need + layout.AXIS_GAP + _heading_width(PLOT, PLOT_NOTES[1]) <= usable


def _place_bars_and_plot(
    study: Any, bars: tuple[Bars, ...], usable: float, top: float, height: float
) -> list[Panel]:
    """Place the columns of bars right of the names, and the plot beside or below them."""
    beside = _fits_beside(study, bars, usable)
    named, needs = _names_width(study), _column_widths(bars)
    gaps = BETWEEN * (len(bars) - 1)
    plot = usable
    if beside:
        least = named + sum(needs) + gaps + layout.AXIS_GAP
        plot = min(max(0.38 * usable, _heading_width(PLOT, PLOT_NOTES[1])), usable - least)
    room = usable - named - gaps - (plot + layout.AXIS_GAP if beside else 0.0)
    spare = (room - sum(needs)) / len(bars)
    tall, left, panels = ROW * len(study.rows), layout.LEFT + named, []
    for need in needs:
        panels.append(Panel(left, top, need + spare, tall))
        left += need + spare + BETWEEN
    down = 0.0 if beside else tall + 8 + UNDER_BARS
    return [*panels, Panel(layout.LEFT + usable - plot, top + down, plot, height - down)]


def _ticks(events: int) -> tuple[int, ...]:
    """Return round numbers of events, few enough for a narrow timeline.

    None is at the right end, where it would touch the zero of the next timeline.

    Examples
    --------
    >>> _ticks(357), _ticks(48), _ticks(600)
    ((0, 100, 200, 300), (0, 20, 40), (0, 200, 400))
    """
    step = next(
        step
        for power in range(12)
        for step in (10**power, 2 * 10**power, 5 * 10**power)
        if events / step <= 3.6
    )
    return tuple(range(0, math.ceil(0.94 * events), step))


def note_of(study: Any) -> str:
    """Return the note: what was measured and how, and the meaning of the bounds."""
    said = [study.proof()]
    said.append(
        "Peak: traced bytes above the start of the step, where gradients are there already. "
        + study.timing()
    )
    if any(row.timeline is not None for row in study.rows):
        said.append(
            "Timelines: arrays alone, without what Python itself needs, that were not there at the "
            "start, by role, over the operations as they run, all on the same axes; the triangle "
            "is the peak of a run, the dotted line that of the plain one."
        )
    if study.bounds():
        said.append(
            "Theory: what a schedule has to keep of this chain, from the bytes that each layer "
            f"saves, and the {format_bytes(study.besides)} that the plain run needs besides; "
            f"the plain time, and {1e3 * study.layer_seconds:.3g} ms, a layer's time forward, for "
            "each layer that runs again (in practice less memory is warmer memory, and quicker)."
        )
        if not study.equal_layers:
            said.append(
                "Revolve counts layers. These differ in what they keep or compute, so its line is "
                "no bound: cuts that know of it may do better."
            )
    return " ".join(said)


def _timeline(
    row: Any, roles: tuple[str, ...], per_column: int, across: tuple[int, float]
) -> Timeline:
    """Build the timeline of a run; `across` is the width of a panel in events and in pixels."""
    trace = row.timeline
    during = above_start(trace)
    totals = during.sum(axis=1)
    starts = list(range(0, len(totals), per_column))
    chosen = [start + int(totals[start : start + per_column].argmax()) for start in starts]
    heights = during[chosen]
    edges = np.array([*starts, len(totals)], dtype=np.float64)
    bands, low = [], np.zeros(len(chosen))
    for role in roles:
        high = low + heights[:, trace.roles.index(role)]
        bands.append((role, low, high))
        low = high
    at = int(low.argmax())
    tips = tuple(
        f"<b>{row.name}</b>, event {i + 1}: {trace.operation[i + 1]}"
        f"{f' ({trace.phase[i + 1]})' if trace.phase[i + 1] else ''}<br>"
        f"{format_bytes(int(totals[i] * MIB))}"
        for i in chosen
    )
    # The peak in the bars includes Python's own objects; if nearly equal, one number is enough.
    arrays = float(low[at]) * MIB
    same = row.peak is not None and abs(row.peak - arrays) <= 0.02 * row.peak
    said = format_bytes(row.peak) if same else f"arrays {format_bytes(arrays)}"
    x, (events, width) = chosen[at] + 0.5, across
    before, need = x / events * width, layout.text_width(said, theme.FONT_TEXT) + 9
    fits = {"right": width - before >= need, "left": before >= need}
    first, second = ("left", "right") if x > 0.6 * events else ("right", "left")
    side = first if fits[first] else second if fits[second] else "above"
    return Timeline(row.name, said, side, edges, tuple(bands), (x, float(low[at])), tips)


def _room_of(page: Page, count: int) -> float:
    """Return the width in pixels of all columns of bars, the space of a remark."""
    first, last = page.panels[-1 - count], page.panels[-2]
    return last.left + last.width - first.left


def _remark(row: Any, room: float) -> str:
    if row.smallest is not None:
        return f"cannot be met; the smallest is {in_words(row.smallest)}"
    if row.raised:
        kind = row.raised.split(":")[0]
        return first_to_fit([f"raised {row.raised}", f"raised {kind}"], room)
    return "" if row.equal else "DIFFERS"


def _bars(study: Any) -> tuple[Bars, ...]:
    rows = study.rows
    peaks = [0 if row.peak is None else row.peak for row in rows]
    times = [0.0 if row.seconds is None else row.seconds for row in rows]
    again = [row.recomputed_operations for row in rows]
    return (
        Bars("Peak", "above start", tuple(p / MIB for p in peaks),
             tuple(format_bytes(p) if p else "" for p in peaks)),
        Bars("Time", "" if study.plain.span else "once", tuple(times),
             tuple(time_of(study, row) for row in rows), tuple(row.span for row in rows)),
        Bars("Run again", "operations", tuple(float(n) for n in again),
             tuple("" if row.seconds is None else f"{n:,}" + (f", {row.share:.0%}" if n else "")
                   for n, row in zip(again, rows, strict=True))),
    )  # fmt: skip
