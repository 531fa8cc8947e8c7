"""What a picture of memory shows: areas over events, phases, the peak and what makes it up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from optlab.trace.memory_tables import outside_note
from optlab.viz import layout, theme
from optlab.viz.geometry import Floats
from optlab.viz.layout import Page, Panel
from optlab.viz.theme import Area
from optlab.viz.words import amount

MIB = 1 << 20
#: More events than a screen has pixels are drawn together, each time the highest of them.
MOST_EVENTS = 1500
#: So many rows say what makes up the peak, or as many as there is room for, and one the rest.
ROWS = 8
_BOLD = 1.08  # so much wider are bold letters
_PROSE = 0.92  # words are narrower than a layout reckons
ROW = 30
"""Pixels of a row of what makes up the peak: what it is, and under it a bar and its bytes."""
WIDTH = 850
"""The default width of a figure: it fits into a notebook beside the file browser."""
_SAID = 92  # pixels of the bytes beside a bar
_ABOVE = 44.0  # pixels above the peak: its own label, and over it the names of the phases

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
    """One row of what makes up the peak."""

    text: str
    said: str
    part: float
    area: Area | None


@dataclass(frozen=True)
class MemoryView:
    """All that is drawn; bytes in MiB."""

    page: Page
    title: str
    headline: str
    edges: Floats
    bands: tuple[Band, ...]
    phases: tuple[tuple[float, float, str], ...]
    tips: tuple[str, ...]
    peak: tuple[float, float]
    peak_text: str
    peak_side: str
    top: float
    shares: tuple[Share, ...]

    @property
    def phase_labels(self) -> tuple[tuple[float, str, str], ...]:
        """Where the names of phases stand, and on which side they are anchored."""
        found = []
        pixel = self.edges[-1] / self.page.panels[0].width
        for at, (first, last, phase) in enumerate(self.phases):
            need = (layout.text_width(phase, theme.FONT_TEXT) + 4) * pixel
            if last - first >= need:
                found.append(((first + last) / 2, "center", phase))
            elif at == len(self.phases) - 1:  # right of its line there is room beyond the panel
                found.append((first + 3 * pixel, "left", phase))
        return tuple(found)

    @property
    def share_rows(self) -> float:
        """So many rows the panel of shares is high."""
        return max(float(len(self.shares)), self.page.panels[1].height / ROW)

    @property
    def bar_length(self) -> float:
        """The part of the panel of shares that the longest bar takes; its bytes follow."""
        return 1 - _SAID / self.page.panels[1].width

    @property
    def total(self) -> Floats:
        """The height of all bands together."""
        return self.bands[-1].high


def memory_view(trace: Any, width: int, height: int, of: str = "memory") -> MemoryView:
    """Decide what is drawn of a memory trace; `of` is the function that was called."""
    if not hasattr(trace, "by_operation") or not hasattr(trace, "during"):
        of_step = f"Write ol.viz.{of}(ol.memory.report(step))."
        of_study = "(A study of several ways is drawn by viz.recompute.)"
        raise TypeError(
            f"viz.{of} takes what ol.memory.report(step) or ol.memory.ledger() gave; got "
            f"{type(trace).__name__}. " + (of_step if callable(trace) else of_study)
        )
    if len(trace) < 2:
        raise ValueError(
            "there is nothing to draw: a memory trace is complete when its block is left."
        )
    during = trace.during / MIB
    chosen = _chosen(during.sum(axis=1))
    heights = during[chosen]
    peak_at = int(heights.sum(axis=1).argmax())
    roles = [role for role in theme.MEMORY if heights[:, trace.roles.index(role)].max() > 0]
    page = layout.page(
        width,
        height,
        names=[NAMES[role] for role in roles],
        note=_note(trace, len(chosen)),
        shares=[1.75, 1],
        rooms=[26, 0],
        sample=layout.SQUARE_SAMPLE,
    )
    panel = page.panels[0]
    top = float(heights.sum(axis=1).max()) * panel.height / (panel.height - _ABOVE)
    edges = np.arange(len(chosen) + 1, dtype=np.float64)
    bands, low = [], np.zeros(len(chosen))
    for role in roles:
        high = low + heights[:, trace.roles.index(role)]
        label = _room_for(NAMES[role], low, high, panel.width, panel.height / top)
        bands.append(Band(role, NAMES[role], theme.MEMORY[role], low, high, label))
        low = high
    share = (peak_at + 0.5) / len(chosen)
    peak_text, peak_side = _peak_label(trace, share * panel.width, panel.width)
    return MemoryView(
        page=page,
        title=f"Memory of a step: at most {amount(trace.peak)}",
        headline=_headline(trace, width - layout.LEFT - layout.RIGHT),
        edges=edges,
        bands=tuple(bands),
        phases=_phases([trace.phase[i] for i in chosen]),
        tips=tuple(_tip(trace, i) for i in chosen),
        peak=(peak_at + 0.5, float(heights[peak_at].sum())),
        peak_text=peak_text,
        peak_side=peak_side,
        top=top,
        shares=_shares(trace, page.panels[1]),
    )


def _chosen(totals: Floats) -> list[int]:
    """Give the events that are drawn; the first, the start, has nothing to show."""
    events = np.arange(1, len(totals))
    if len(events) <= MOST_EVENTS:
        return [int(i) for i in events]
    return [int(part[totals[part].argmax()]) for part in np.array_split(events, MOST_EVENTS)]


def _where(trace: Any, i: int) -> str:
    """Say what ran: "in backward of gelu"."""
    name, phase = trace.operation[i], trace.phase[i]
    if phase in ("forward", "backward"):
        return f"in {phase} of {name}"
    return f"in {name}" + (", run again" if phase == "recompute" else "")


def _peak_label(trace: Any, x: float, width: float) -> tuple[str, str]:
    """Say how high the peak is, and where if there is room, and on which side that is written."""
    said = f"peak {amount(trace.peak)}"
    side = "right" if x < width / 2 else "left"
    room = (width - x if side == "right" else x) - 14
    whole = f"{said}, {_where(trace, trace.peak_event)}"
    fits = _BOLD * _PROSE * layout.text_width(whole, theme.FONT_TEXT) <= room
    return (whole if fits else said), side


def first_to_fit(texts: Iterable[str], width: float, size: float = theme.FONT_TEXT) -> str:
    """Give the first of some texts that fits, the last if none does; cut if that does not either.

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
    """Say which arrays make up the peak, as many of them as there is room for."""
    i, start = trace.peak_event, int(trace.total[0])
    layer = f" ({trace.layer[i]})" if trace.layer[i] else ""
    new = [one for one in trace.by_operation() if one.phase]
    said = [f"{made_as(one)} {amount(one.nbytes)}" for one in new[:3]]
    of = f"Of {amount(trace.peak - start)} above the start: " if trace.peak > start else ""
    where = f"Highest {_where(trace, i)}"
    tries = [f"{where}{layer}. {of}{', '.join(said[:n])}." for n in range(len(said), 0, -1)]
    return first_to_fit([*tries, f"{where}{layer}.", f"{where}."], width)


def made_as(held: Any) -> str:
    """Say what made arrays, and as what they are alive: "gelu (saved)"."""
    if not held.arrays:
        return f"inside {held.name}"
    return (
        held.name
        if held.name.endswith(("parameters", "gradients"))
        else f"{held.name} ({held.role})"
    )


def in_layers(holders: Sequence[Any]) -> list[str]:
    """Say of each what made it, and in which layer; in which phase, where two would read alike."""
    found = []
    for held in holders:
        several = f", {len(held.layers)} layers" if len(held.layers) > 1 else ""
        found.append(made_as(held) + (f", {held.layers[0]}" if len(held.layers) == 1 else several))
    return [
        f"{text}, in {held.phase}" if held.phase and found.count(text) > 1 else text
        for text, held in zip(found, holders, strict=True)
    ]


def _shares(trace: Any, panel: Panel) -> tuple[Share, ...]:
    """Give the rows of what makes up the peak."""
    held = trace.by_operation()
    most = max(1, min(ROWS, int(panel.height // ROW) - 1))
    if len(held) == most + 1:
        most += 1
    total = max(1, sum(one.nbytes for one in held))
    rows = []
    for one, whole in zip(held[:most], in_layers(held[:most]), strict=True):
        part = one.nbytes / total
        said = f"{amount(one.nbytes)}, {part:.0%}"
        text = first_to_fit([whole, made_as(one)], panel.width)
        rows.append(Share(text, said, part, theme.MEMORY[one.role]))
    rest = held[most:]
    if rest:
        size = sum(one.nbytes for one in rest)
        said = f"{amount(size)}, {size / total:.0%}"
        rows.append(Share(f"{len(rest)} other{'s' * (len(rest) > 1)}", said, size / total, None))
    return tuple(rows)


def _note(trace: Any, drawn: int) -> str:
    """Say how to read the figure."""
    count = len(trace) - 1
    said = [
        f"{count} events, equally wide; heights are the most that was alive on the way to each.",
        "Arrays only; a view counts as what it is a view of, once.",
    ]
    if drawn < len(trace) - 1:
        said.append(f"Drawn together to {drawn}, each time the highest.")
    again = trace.recomputed_operations
    if again:
        said.append(f"{again} operations ran again ({amount(trace.recomputed_bytes)}).")
    said += filter(None, [outside_note(trace)])
    return " ".join(said)


def _tip(trace: Any, i: int) -> str:
    """Say what is known of one event."""
    layer = f", {trace.layer[i]}" if trace.layer[i] else ""
    phase = f" ({trace.phase[i]})" if trace.phase[i] else ""
    parts = [
        f"{NAMES[role]} {amount(int(size))}"
        for role, size in zip(trace.roles, trace.during[i], strict=True)
        if size
    ]
    total = amount(int(trace.during[i].sum()))
    return "<br>".join([f"<b>{i}: {trace.operation[i]}{phase}</b>{layer}", total, *parts])


def _phases(names: list[str]) -> tuple[tuple[float, float, str], ...]:
    """Give the stretches of forward, backward and step; recomputing belongs to backward."""
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


def _room_for(
    text: str, low: Floats, high: Floats, width: float, pixels: float
) -> tuple[float, float] | None:
    """Find where a label fits into a band; None where it does not.

    Parameters
    ----------
    text : str
    low, high : array
        The band, one value an event.
    width : float
        Pixels of all events together.
    pixels : float
        Pixels of one unit of height.
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
