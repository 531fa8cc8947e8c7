"""View model of memory figures: areas over events, phases, the peak and its composition."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from optlab.trace.memory.tables import outside_note
from optlab.viz.style import layout, theme
from optlab.viz.style.geometry import Floats
from optlab.viz.style.layout import Page, Panel
from optlab.viz.style.results import are_runs, one_trace
from optlab.viz.style.text import format_bytes
from optlab.viz.style.theme import Area

MIB = 1 << 20
#: If a trace has more events, several are drawn as one, at the highest of them.
MOST_EVENTS = 1500
#: Rows of the peak's composition, if there is space, before one row for the rest.
ROWS = 8
_BOLD = 1.08  # relative width of bold letters
_PROSE = 0.92  # relative width of prose, which `layout.text_width` overestimates
ROW = 30
"""Pixels of a row of the peak's composition: its text, and under it a bar and the bytes."""
WIDTH = 850
"""Default width of a figure: it fits into a notebook beside the file browser."""
_BYTES_WIDTH = 108  # pixels of the bytes beside a bar
_ABOVE = 44.0  # pixels above the peak, for its label and the names of the phases

NAMES = {
    "parameter": "parameters",
    "gradient": "gradients",
    "slot": "optimizer slots",
    "data": "data, buffers",
    "saved": "saved for backward",
    "recomputed": "recomputed",
    "temporary": "temporary",
}
PHASES = {"forward": "forward", "backward": "backward", "recompute": "backward", "step": "step"}


@dataclass(frozen=True)
class Band:
    """The bytes of one role over the events."""

    role: str
    name: str
    area: Area
    low: Floats
    high: Floats
    label: tuple[float, float] | None


@dataclass(frozen=True)
class Share:
    """One row of the peak's composition."""

    text: str
    said: str
    part: float
    area: Area | None


@dataclass(frozen=True)
class MemoryView:
    """The content of a memory figure; heights in its unit of bytes."""

    page: Page
    title: str
    headline: str
    edges: Floats
    bands: tuple[Band, ...]
    unit: str
    phases: tuple[tuple[float, float, str], ...]
    tips: tuple[str, ...]
    peak: tuple[float, float]
    peak_text: str
    peak_side: str
    top: float
    shares: tuple[Share, ...]
    along: str = "event"

    @property
    def phase_labels(self) -> tuple[tuple[float, str, str], ...]:
        """Positions and anchor sides of the names of the phases."""
        found = []
        pixel = self.edges[-1] / self.page.panels[0].width
        for at, (first, last, phase) in enumerate(self.phases):
            need = (layout.text_width(phase, theme.FONT_TEXT) + 4) * pixel
            if last - first >= need:
                found.append(((first + last) / 2, "center", phase))
            elif at == len(self.phases) - 1:  # the last name may extend beyond the panel
                found.append((first + 3 * pixel, "left", phase))
        return tuple(found)

    @property
    def share_rows(self) -> float:
        """Height of the panel of shares in rows."""
        return max(float(len(self.shares)), self.page.panels[1].height / ROW)

    @property
    def bar_length(self) -> float:
        """Length of the longest bar, relative to the panel of shares; its bytes follow."""
        return 1 - _BYTES_WIDTH / self.page.panels[1].width

    @property
    def total(self) -> Floats:
        """Sum of the heights of all bands."""
        return self.bands[-1].high


def memory_view(trace: Any, width: int, height: int, of: str = "memory") -> MemoryView:
    """Build the view of a memory trace; `of` is the name of the function that was called.

    Another trace than that of `optlab.memory` may say what it is: ``title``, ``names`` of its
    roles, the ``label`` of what it holds.
    """
    if are_runs(trace):
        trace = _MemoryOfSteps(one_trace(trace, f"viz.{of}", lambda run: bool(run.memory)))
    if not hasattr(trace, "by_operation") or not hasattr(trace, "during"):
        hint = "(A study of several ways is drawn by viz.recompute.)"
        if callable(trace):
            hint = f"Write ol.viz.{of}(ol.memory.report(step))."
        raise TypeError(
            f"viz.{of} takes what ol.memory.report(step) or ol.memory.ledger() gave, or a trace "
            f"with the probe Memory; got {type(trace).__name__}. {hint}"
        )
    if len(trace) < 2:
        raise ValueError(
            "there is nothing to draw: a memory trace is complete when its block has ended."
        )
    chosen = _chosen_events(trace.during.sum(axis=1))
    unit, size = _unit_of(trace.during[chosen].sum(axis=1).max())
    heights = trace.during[chosen] / size
    peak_at = int(heights.sum(axis=1).argmax())
    roles = [
        role
        for role in theme.MEMORY
        if role in trace.roles and heights[:, trace.roles.index(role)].max() > 0
    ]
    names = getattr(trace, "names", NAMES)
    page = layout.page(
        width,
        height,
        names=[names[role] for role in roles],
        note=_note(trace, len(chosen)),
        shares=[1.75, 1],
        rooms=[40, 0],  # for the name of a short last phase
        sample=layout.SQUARE_SAMPLE,
    )
    panel = page.panels[0]
    top = float(heights.sum(axis=1).max()) * panel.height / (panel.height - _ABOVE)
    edges = np.arange(len(chosen) + 1, dtype=np.float64)
    bands, low = [], np.zeros(len(chosen))
    for role in roles:
        high = low + heights[:, trace.roles.index(role)]
        label = _label_position(names[role], low, high, panel.width, panel.height / top)
        bands.append(Band(role, names[role], theme.MEMORY[role], low, high, label))
        low = high
    share = (peak_at + 0.5) / len(chosen)
    peak_text, peak_side = _peak_label(trace, share * panel.width, panel.width)
    return MemoryView(
        page=page,
        title=f"{getattr(trace, 'title', 'Memory of a step')}: at most {format_bytes(trace.peak)}",
        headline=_headline(trace, width - layout.LEFT - layout.RIGHT),
        edges=edges,
        bands=tuple(bands),
        unit=unit,
        phases=_phases([trace.phase[i] for i in chosen]),
        tips=tuple(_tip(trace, i) for i in chosen),
        peak=(peak_at + 0.5, float(heights[peak_at].sum())),
        peak_text=peak_text,
        peak_side=peak_side,
        top=top,
        shares=_shares(trace, page.panels[1]),
        along=getattr(trace, "along", "event"),
    )


class _MemoryOfSteps:
    """The bytes at the peak of each step of a run, as a memory trace with an event for each."""

    title = "Memory of a run"
    along = "step"
    recomputed_operations = recomputed_bytes = 0

    def __init__(self, trace: Any) -> None:
        memory = trace.memory
        if not memory:
            raise ValueError(
                f"the trace {trace.name!r} has no bytes. Record them: "
                "ol.record(optimizer, probes=[ol.probes.Memory()]). Of one step, "
                "ol.memory.report(step) has every event."
            )
        self.roles = tuple(memory)
        rows = np.stack([np.asarray(memory[role]) for role in self.roles], axis=1)
        self.during = np.concatenate([np.zeros_like(rows[:1]), rows])
        self.total = self.during.sum(axis=1)
        self.peak, self.peak_event = int(self.total.max()), int(self.total.argmax())
        self.operation = ["", *(f"step {number}" for number in trace.step)]
        self.phase = self.layer = [""] * len(self.operation)
        first, last = format_bytes(int(self.total[1])), format_bytes(int(self.total[-1]))
        self.headline = (
            f"Highest in {self.operation[self.peak_event]}; {first} at the peak of the first step, "
            f"{last} at that of the last."
        )
        self.note = (
            f"{len(rows)} recorded steps, equally wide; heights are the most that was alive in "
            "each. Arrays only; a view counts as what it is a view of, once."
        )

    def __len__(self) -> int:
        return len(self.operation)

    def by_operation(self) -> list[Any]:
        """Return what is alive at the peak, by role."""
        found = [
            SimpleNamespace(
                name=role, role=role, label=NAMES[role], nbytes=int(size), arrays=1, layers=(),
                phase="",
            )
            for role, size in zip(self.roles, self.during[self.peak_event], strict=True)
            if size
        ]  # fmt: skip
        return sorted(found, key=lambda one: -one.nbytes)


def _unit_of(most: float) -> tuple[str, int]:
    """Return the unit of an axis that ends at so many bytes, and its bytes.

    Examples
    --------
    >>> _unit_of(800), _unit_of(1751), _unit_of(3 << 20)
    (('B', 1), ('KiB', 1024), ('MiB', 1048576))
    """
    powers = {"B": 1, "KiB": 1 << 10, "MiB": MIB, "GiB": 1 << 30, "TiB": 1 << 40}
    return [(unit, size) for unit, size in powers.items() if most >= size or size == 1][-1]


def _chosen_events(totals: Floats) -> list[int]:
    """Return the events to draw, without event 0, the start."""
    events = np.arange(1, len(totals))
    if len(events) <= MOST_EVENTS:
        return [int(i) for i in events]
    return [int(part[totals[part].argmax()]) for part in np.array_split(events, MOST_EVENTS)]


def _event_name(trace: Any, i: int) -> str:
    """Return the phase and operation of an event: "in backward of gelu"."""
    name, phase = trace.operation[i], trace.phase[i]
    if phase in ("forward", "backward"):
        return f"in {phase} of {name}"
    return f"in {name}" + (", run again" if phase == "recompute" else "")


def _peak_label(trace: Any, x: float, width: float) -> tuple[str, str]:
    """Return the label of the peak, with its event if space allows, and the side of the label."""
    said = f"peak {format_bytes(trace.peak)}"
    side = "right" if x < width / 2 else "left"
    room = (width - x if side == "right" else x) - 14
    full = f"{said}, {_event_name(trace, trace.peak_event)}"
    fits = _BOLD * _PROSE * layout.text_width(full, theme.FONT_TEXT) <= room
    return (full if fits else said), side


def first_to_fit(texts: Iterable[str], width: float, size: float = theme.FONT_TEXT) -> str:
    """Return the first text that fits into `width`; if none does, the last one, truncated.

    Examples
    --------
    >>> first_to_fit(["saved for backward", "saved"], 60), first_to_fit(["saved for backward"], 60)
    ('saved', 'saved fo…')
    """
    text, letter = "", _PROSE * layout.text_width("n", size)
    for text in texts:
        if letter * len(text) <= width:
            return text
    letters = int(width / letter)
    return text[: max(1, letters - 1)].rstrip() + "…"


def _headline(trace: Any, width: float) -> str:
    """Return a sentence on the arrays that make up the peak, as many as fit."""
    if hasattr(trace, "headline"):
        return first_to_fit([trace.headline], width)
    i, start = trace.peak_event, int(trace.total[0])
    layer = f" ({trace.layer[i]})" if trace.layer[i] else ""
    new = [one for one in trace.by_operation() if one.phase]
    said = [f"{made_as(one)} {format_bytes(one.nbytes)}" for one in new[:3]]
    of = f"Of {format_bytes(trace.peak - start)} above the start: " if trace.peak > start else ""
    where = f"Highest {_event_name(trace, i)}"
    tries = [f"{where}{layer}. {of}{', '.join(said[:n])}." for n in range(len(said), 0, -1)]
    return first_to_fit([*tries, f"{where}{layer}.", f"{where}."], width)


def made_as(held: Any) -> str:
    """Return the operation that created arrays, and their role: "gelu (saved)"."""
    if not held.arrays:
        return f"inside {held.name}"
    if getattr(held, "label", ""):
        return str(held.label)
    return (
        held.name
        if held.name.endswith(("parameters", "gradients"))
        else f"{held.name} ({held.role})"
    )


def in_layers(holders: Sequence[Any]) -> list[str]:
    """Return operation, role and layer of each; also the phase where two would be equal."""
    found = []
    for held in holders:
        several = f", {len(held.layers)} layers" if len(held.layers) > 1 else ""
        found.append(made_as(held) + (f", {held.layers[0]}" if len(held.layers) == 1 else several))
    return [
        f"{text}, in {held.phase}" if held.phase and found.count(text) > 1 else text
        for text, held in zip(found, holders, strict=True)
    ]


def _shares(trace: Any, panel: Panel) -> tuple[Share, ...]:
    """Return the rows of the peak's composition."""
    held = trace.by_operation()
    most = max(1, min(ROWS, int(panel.height // ROW) - 1))
    if len(held) == most + 1:
        most += 1
    total = max(1, sum(one.nbytes for one in held))
    rows = []
    for one, full in zip(held[:most], in_layers(held[:most]), strict=True):
        part = one.nbytes / total
        said = f"{format_bytes(one.nbytes)}, {part:.0%}"
        text = first_to_fit([full, made_as(one)], panel.width)
        rows.append(Share(text, said, part, theme.MEMORY[one.role]))
    rest = held[most:]
    if rest:
        size = sum(one.nbytes for one in rest)
        said = f"{format_bytes(size)}, {size / total:.0%}"
        rows.append(Share(f"{len(rest)} other{'s' * (len(rest) > 1)}", said, size / total, None))
    return tuple(rows)


def _note(trace: Any, drawn: int) -> str:
    """Return the note on how to read the figure."""
    count = len(trace) - 1
    said = [
        f"{count} events, equally wide; heights are the most that was alive on the way to each.",
        "Arrays only; a view counts as what it is a view of, once.",
    ]
    own = getattr(trace, "note", None)
    if own is not None:
        said = [own]
    if drawn < len(trace) - 1:
        said.append(f"Drawn together to {drawn}, each time the highest.")
    again = trace.recomputed_operations
    if again:
        said.append(f"{again} operations ran again ({format_bytes(trace.recomputed_bytes)}).")
    said += filter(None, [outside_note(trace) if own is None else ""])
    return " ".join(said)


def _tip(trace: Any, i: int) -> str:
    """Return the hover text of an event."""
    layer = f", {trace.layer[i]}" if trace.layer[i] else ""
    phase = f" ({trace.phase[i]})" if trace.phase[i] else ""
    names = getattr(trace, "names", NAMES)
    parts = [
        f"{names[role]} {format_bytes(int(size))}"
        for role, size in zip(trace.roles, trace.during[i], strict=True)
        if size
    ]
    total = format_bytes(int(trace.during[i].sum()))
    return "<br>".join([f"<b>{i}: {trace.operation[i]}{phase}</b>{layer}", total, *parts])


def _phases(names: list[str]) -> tuple[tuple[float, float, str], ...]:
    """Return the intervals of forward, backward and step; recomputation belongs to backward."""
    found: list[tuple[float, float, str]] = []
    for i, name in enumerate(names):
        phase = PHASES.get(name) or (found[-1][2] if found else None)
        if phase is None:
            continue
        if found and found[-1][2] == phase and found[-1][1] == i:
            found[-1] = (found[-1][0], i + 1.0, phase)
        else:
            found.append((float(i), i + 1.0, phase))
    return tuple(found)


def _label_position(
    text: str, low: Floats, high: Floats, width: float, pixels: float
) -> tuple[float, float] | None:
    """Return the position of a label in a band; None if it does not fit.

    Parameters
    ----------
    text : str
    low, high : array
        The band, one value per event.
    width : float
        Pixels of all events together.
    pixels : float
        Pixels per unit of height.
    """
    need = int(np.ceil((layout.text_width(text, theme.FONT_TEXT) + 8) / (width / len(low))))
    if need > len(low):
        return None
    best, found = 17.0 / pixels, None
    for start in range(len(low) - need + 1):
        floor, ceiling = low[start : start + need].max(), high[start : start + need].min()
        if ceiling - floor > best:
            best = float(ceiling - floor)
            found = (start + need / 2, float(floor + ceiling) / 2)
    return found
