"""Displays of a checkpointing schedule: a table, bars over time, a picture of characters."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from optlab.autograd.checkpoint.schedules.actions import in_words
from optlab.autograd.checkpoint.schedules.protocol import ScheduleLike

HEADS = ("action", "does", "inputs stored", "layers recorded")
_MOST_ROWS = 60
#: The characters of a picture; later entries are drawn over earlier ones.
_MARKS = {"recorded": "=", "stored": ".", "advance": ">", "record": "#", "back": "<"}

#: The state of the layers of an action once it is done.
_IMPLIES = {"snapshot": "stored", "restore": "stored", "record": "recorded"}


class Span(NamedTuple):
    """Bar of a drawing: an action on a layer, or something kept for it, over a span of time.

    Attributes
    ----------
    layer : int
    what : str
        ``"advance"``, ``"record"`` or ``"back"`` while it runs, ``"stored"`` while its input is
        stored, ``"recorded"`` from the end of its recorded run to the end of its backward pass.
    start, stop : int
        Times, counted in runs of one layer, forward or backward.
    """

    layer: int
    what: str
    start: int
    stop: int


def headline(schedule: ScheduleLike) -> str:
    """Return a summary of a schedule on one line."""
    return (
        f"{schedule.name}: {_count(schedule.layers, 'layer')}, "
        f"{_count(schedule.recomputed_layers, 'layer run')} recomputed, "
        f"at most {_count(schedule.most_stored, 'input')} stored"
    )


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}" + ("" if number == 1 else "s")


def rows(schedule: ScheduleLike) -> list[tuple[str, str, str, str]]:
    """Return the rows of the table of a schedule, without the header."""
    return [
        (
            str(state.number),
            f"{state.action.verb} {in_words(state.action.layers)}",
            in_words(state.stored),
            in_words(state.recorded),
        )
        for state in schedule.states()
    ]


def _parts(schedule: ScheduleLike) -> list[tuple[str, list[tuple[str, str, str, str]]]]:
    """Return the rows of forward and of backward; of a long schedule only the first and last."""
    every, turn = rows(schedule), len(schedule.forward)
    parts = []
    for name, part in (("forward", every[:turn]), ("backward", every[turn:])):
        most = _MOST_ROWS // 2
        if len(part) > most:
            left_out = ("...", f"{len(part) - most:,} more", "...", "...")
            part = [*part[: most // 2], left_out, *part[-(most - most // 2) :]]
        parts.append((name, part))
    return parts


def table(schedule: ScheduleLike) -> str:
    """Format a schedule as a text table."""
    parts = _parts(schedule)
    lines = [HEADS, *(row for _, part in parts for row in part)]
    widths = [max(len(line[i]) for line in lines) for i in range(4)]

    def aligned(line: Sequence[str]) -> str:
        cells = [line[0].rjust(widths[0])]
        cells += [cell.ljust(width) for cell, width in zip(line[1:], widths[1:], strict=True)]
        return " | ".join(cells).rstrip()

    text = [headline(schedule), "", aligned(HEADS)]
    for name, part in parts:
        text.append(f"{name} ".ljust(sum(widths) + 9, "-"))
        text += map(aligned, part)
    return "\n".join(text)


def page(schedule: ScheduleLike) -> str:
    """Format a schedule as HTML."""
    cell = "<td style='text-align: left'>{}</td>"
    body = ["<tr>", *(f"<th style='text-align: left'>{head}</th>" for head in HEADS), "</tr>"]
    for name, part in _parts(schedule):
        body.append(f"<tr><th colspan='4' style='text-align: left'>{name}</th></tr>")
        for row in part:
            body.append(f"<tr>{''.join(cell.format(escape(one)) for one in row)}</tr>")
    return f"<p>{escape(headline(schedule))}</p><table>{''.join(body)}</table>"


def timeline(schedule: ScheduleLike) -> list[tuple[int, int, str]]:
    """Return rows of (number of the action, layer, what); see `Schedule.timeline`."""
    found = []
    for number, action, stored, recorded in schedule.states():
        found += [(number, layer, action.verb) for layer in action.layers]
        for what, kept in (("stored", stored), ("recorded", recorded)):
            implied = action.layers if what == _IMPLIES.get(action.verb) else ()
            found += [(number, layer, what) for layer in kept if layer not in implied]
    return found


def spans(schedule: ScheduleLike) -> list[Span]:
    """Return the bars of a drawing."""
    running, kept = [], []
    since: dict[tuple[str, int], int] = {}
    time = 0
    for action in schedule.actions:
        match action.verb:
            case "snapshot":
                since["stored", action.layers[0]] = time
            case "free":
                layer = action.layers[0]
                kept.append(Span(layer, "stored", since.pop(("stored", layer)), time))
            case "advance" | "record":
                for layer in action.layers:
                    running.append(Span(layer, action.verb, time, time + 1))
                    time += 1
                    if action.verb == "record":
                        since["recorded", layer] = time
            case "back":
                for layer in reversed(action.layers):
                    running.append(Span(layer, "back", time, time + 1))
                    start = since.pop(("recorded", layer))
                    time += 1
                    kept.append(Span(layer, "recorded", start, time))
    return [*running, *kept]


def picture(schedule: ScheduleLike) -> str:
    """Draw a schedule with characters."""
    every = spans(schedule)
    cells = [[" "] * max(span.stop for span in every) for _ in range(schedule.layers)]
    for what, mark in _MARKS.items():
        for span in every:
            if span.what == what:
                cells[span.layer][span.start : span.stop] = mark * (span.stop - span.start)
    width = len(str(schedule.layers - 1))
    lines = [
        f"layer {layer:>{width}} |{''.join(line)}".rstrip() for layer, line in enumerate(cells)
    ]
    legend = "> runs  # runs, recorded  = is recorded  < backpropagated  . its input is stored"
    return "\n".join([*lines, legend])
