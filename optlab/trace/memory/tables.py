"""A memory trace as a table, in text and in HTML."""

from __future__ import annotations

from html import escape
from typing import Any

from optlab.backend.memory.ledger import ROLES
from optlab.backend.memory.sizes import in_words
from optlab.nn.base.html import FONT, NUMBER, QUIET, RULE
from optlab.trace.memory.holding import Holding, TracedMemory

#: How many operations of the peak are listed.
MOST = 10

#: Fewer bytes of arrays outside of Tensors are not reported.
LITTLE = 1 << 16

LABELS = {
    "parameter": "parameters",
    "gradient": "gradients",
    "slot": "slots of the optimizer",
    "data": "data and buffers",
    "saved": "saved for backward",
    "recomputed": "recomputed",
    "temporary": "temporary",
}
"""The labels of the roles in tables and figures."""


def event_label(trace: TracedMemory, event: int) -> str:
    """Return what ran at an event: "gelu (forward) in 1: GELU".

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> event_label(ol.memory.report(lambda: np.exp(ol.ones([3]))), 1)
    'exp (forward)'
    """
    name, phase = trace.operation[event], trace.phase[event]
    said = f"{name} ({phase})" if phase else name
    layer = trace.layer[event]
    return f"{said} in {layer}" if layer else said


def one_line(trace: TracedMemory) -> str:
    """Return the trace in one line."""
    n, start = len(trace), int(trace.total[0]) if len(trace) else 0
    if not n:
        return "<MemoryTrace, empty>"
    i = trace.peak_event
    name, phase = trace.operation[i], trace.phase[i]
    return (
        f"<MemoryTrace of {n} events: peak {in_words(trace.peak)} in "
        f"{f'{phase} of ' if phase else ''}{name}, {in_words(start)} at the start>"
    )


def headline(trace: TracedMemory) -> str:
    """Return the peak, and what ran at it."""
    above = trace.peak - int(trace.total[0])
    return (
        f"Memory of a step: peak {in_words(trace.peak)}, {in_words(above)} above the "
        f"start, in {event_label(trace, trace.peak_event)}"
    )


def role_rows(trace: TracedMemory) -> list[tuple[str, ...]]:
    """Return the rows of the first table: each role at the start, at the peak and at the end."""
    columns = (trace.bytes[0], trace.during[trace.peak_event], trace.bytes[-1])
    rows: list[tuple[str, ...]] = [
        (LABELS[role], *(in_words(int(column[i])) if column[i] else "" for column in columns))
        for i, role in enumerate(ROLES)
        if any(column[i] for column in columns)
    ]
    rows.append(("total", *(in_words(int(column.sum())) for column in columns)))
    return rows


ROLE_HEADS = ("", "start", "peak", "end")
HOLDING_HEADS = ("made by", "kept as", "layer", "arrays", "largest", "bytes", "share")


def holding_rows(trace: TracedMemory) -> list[tuple[str, ...]]:
    """Return the rows of the second table: what makes up the peak, largest first."""
    held = trace.by_operation()
    rows = [holding_row(one) for one in held[:MOST]]
    rest = held[MOST:]
    if rest:
        size, share = sum(one.nbytes for one in rest), sum(one.share for one in rest)
        arrays = sum(one.arrays for one in rest)
        others = f"{len(rest)} other{'s' * (len(rest) > 1)}"
        rows.append((others, "", "", str(arrays), "", in_words(size), f"{share:.0%}"))
    return rows


def maker_label(held: Holding) -> str:
    """Return what created an array: "gelu (forward)"."""
    name = held.name
    return f"{name} ({held.phase})" if held.phase else name


def holding_row(held: Holding) -> tuple[str, ...]:
    """Return a row of the second table."""
    layers = held.layers[0] if len(held.layers) == 1 else ""
    if len(held.layers) > 1:
        layers = f"{len(held.layers)} layers"
    largest = f"{held.shape} {held.dtype}" if held.arrays else "while it runs"
    role = held.role if held.role in LABELS else "temporary"
    return (
        maker_label(held), role, layers, str(held.arrays or ""), largest,
        in_words(held.nbytes), f"{held.share:.0%}",
    )  # fmt: skip


def recomputed_note(trace: TracedMemory) -> str:
    """Return how much was recomputed; empty if nothing was."""
    count = trace.recomputed_operations
    if not count:
        return ""
    return (
        f"{count} operation{'s' * (count > 1)} ran again in backward, and gave "
        f"{in_words(trace.recomputed_bytes)}."
    )


def checked_note(trace: TracedMemory) -> str:
    """Return the deviation from the allocators' measurement; empty if there is none."""
    measured = trace.measured
    if measured is None or outside_note(trace):
        return ""
    off = abs(trace.made - measured)
    most = int(off.max(initial=0))
    share = float((off / measured.clip(min=1)).max(initial=0)) if most else 0.0
    return (
        "Checked against the allocators at every event: off by at most "
        f"{in_words(most)} ({share:.1%})."
    )


def outside_note(trace: TracedMemory) -> str:
    """Return how much the allocators counted that no operation created; empty if little.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> kept = []
    >>> print(outside_note(ol.memory.report(lambda: kept.append(np.ones(2**20)), verify=True)))
    8 MiB (at end) are of arrays that optlab did not make: NumPy's, outside of Tensors. They are
    in no other number here. 8 MiB of them are alive at the end.
    """
    measured = trace.measured
    if measured is None or not len(trace):
        return ""
    more = measured - trace.made
    at = int(more.argmax())
    if more[at] <= max(LITTLE, 0.02 * measured.max()):
        return ""
    said = (
        f"{in_words(int(more[at]))} (at {event_label(trace, at)}) are of arrays that optlab "
        "did not make: NumPy's, outside of Tensors. They are in no other number here."
    )
    left = int(more[-1])
    return said + f" {in_words(left)} of them are alive at the end." * (left > LITTLE)


def notes(trace: TracedMemory) -> list[str]:
    """Return the notes under the tables."""
    return [
        said for said in (recomputed_note(trace), outside_note(trace), checked_note(trace)) if said
    ]


def as_text(trace: TracedMemory) -> str:
    """Return the whole report as text."""
    if not len(trace):
        return one_line(trace)
    parts = [
        headline(trace), "", *lines_of([ROLE_HEADS, *role_rows(trace)], "lrrr", total=True),
        "", "At the peak", *lines_of([HOLDING_HEADS, *holding_rows(trace)], "lllrlrr"),
    ]  # fmt: skip
    for said in notes(trace):
        parts += ["", said]
    return "\n".join(parts)


def lines_of(rows: list[Any], align: str, total: bool = False) -> list[str]:
    r"""Return rows as lines of text, the heads first, with a line above the last if it is a total.

    `align` has the side of each column, "l" or "r".

    Examples
    --------
    >>> print("\n".join(lines_of([("run", "bytes"), ("plain", "12")], "lr")))
    run   | bytes
    ------+------
    plain |    12
    """
    widths = [max(len(row[i]) for row in rows) for i in range(len(align))]
    lines = []
    for row in rows:
        cells = [
            cell.ljust(width) if side == "l" else cell.rjust(width)
            for cell, width, side in zip(row, widths, align, strict=True)
        ]
        lines.append(" | ".join(cells).rstrip())
    rule = "-+-".join("-" * width for width in widths)
    lines.insert(1, rule)
    if total:
        lines.insert(len(lines) - 1, rule)
    return lines


def as_html(trace: TracedMemory) -> str:
    """Return the whole report as HTML."""
    if not len(trace):
        return escape(one_line(trace))
    under = "".join(f'<div style="{QUIET}">{escape(said)}</div>' for said in notes(trace))
    return (
        f'<div class="optlab-memory" style="{FONT} max-width: 900px;">'
        f"<div><b>{escape(headline(trace))}</b></div>"
        + html_table([ROLE_HEADS, *role_rows(trace)], "lrrr", total=True)
        + '<div style="margin-top: 8px;">At the peak</div>'
        + html_table([HOLDING_HEADS, *holding_rows(trace)], "lllrlrr")
        + f"{under}</div>"
    )


def html_table(rows: list[Any], align: str, total: bool = False) -> str:
    """Return rows as an HTML table; arguments as for `lines_of`."""
    lines = []
    for at, row in enumerate(rows):
        tag = "th" if at == 0 else "td"
        line = f"border-top: {RULE};" if at == 1 or (total and at == len(rows) - 1) else ""
        cells = "".join(
            f'<{tag} style="padding: 1px 10px 1px 0; {NUMBER if side == "r" else ""}'
            f'{"" if side == "r" else "text-align: left;"} {line}">{escape(cell)}</{tag}>'
            for cell, side in zip(row, align, strict=True)
        )
        lines.append(f"<tr>{cells}</tr>")
    return f'<table style="border-collapse: collapse; margin: 4px 0;">{"".join(lines)}</table>'
