"""Layers and summaries as HTML for notebooks, in the colors of the page.

Styles are inline, since untrusted notebooks lose style sheets; muted ones are derived from the text
color, so that they suit light and dark pages.
"""

from __future__ import annotations

from html import escape
from typing import Any

from optlab.backend.memory.sizes import in_words
from optlab.nn.base.children import named_values, qualified_name
from optlab.nn.base.parameter import Parameter

#: Columns of a summary.
HEADS = ("layer", "output", "parameters", "saved for backward")

FONT = (
    "font: 13px/1.5 Inter, 'Helvetica Neue', Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif;"
)
RULE = "1px solid rgba(127, 127, 127, 0.35)"
QUIET = "opacity: 0.7;"
NUMBER = "text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap;"
_CHIP = (
    f"display: inline-block; margin: 1px 0 1px 6px; padding: 0 6px; border: {RULE}; "
    "border-radius: 9px; font-size: 12px; white-space: nowrap;"
)
_OPEN_UP_TO = 40


def layer_page(layer: Any) -> str:
    """Return a layer as HTML: its structure, with the parameters and buffers of each layer."""
    parameters = list(layer.named_parameters())
    count = sum(parameter.size for _, parameter in parameters)
    size = sum(parameter.nbytes for _, parameter in parameters)
    facts = f"{count:,} parameters, {in_words(size)}" if count else "no parameters"
    facts += ", in training" if layer.training else ", in evaluation"
    spread = len(layer.sublayers()) <= _OPEN_UP_TO
    return (
        f'<div class="optlab-layer" style="{FONT} max-width: 900px;">'
        f'<div style="{QUIET}">{escape(facts)}</div>'
        f"{_tree(layer, '', '', spread, set(), [])}</div>"
    )


def _tree(layer: Any, name: str, where: str, spread: bool, seen: set[int], path: list[int]) -> str:
    """Return a layer and its sublayers as nested lists that fold."""
    named = f'<span style="{QUIET}">{escape(name)}:&nbsp;</span>' if name else ""
    settings = layer.extra_repr()
    options = f'<span style="{QUIET}">({escape(settings)})</span>' if settings else ""
    chips = "".join(_chips(layer, seen))
    head = f"{named}<b>{escape(type(layer).__name__)}</b>{options}{chips}"
    inside = "".join(
        _tree(part, inner, qualified_name(where, inner), spread, seen, [*path, id(layer)])
        for inner, part in layer.named_children()
        if id(part) not in path and part is not layer
    )
    if not inside:
        return f'<div style="padding-left: 16px;">{head}</div>'
    mark = " open" if spread or not path else ""
    return (
        f'<details{mark}><summary style="cursor: pointer;">{head}</summary>'
        f'<div style="margin-left: 5px; padding-left: 10px; border-left: {RULE};">{inside}</div>'
        "</details>"
    )


def _chips(layer: Any, seen: set[int]) -> list[str]:
    """Return the parameters and buffers of a layer itself, with shapes and notes."""
    found = []
    for name, value in named_values(layer):
        if not isinstance(value, Parameter):
            continue
        notes = [] if str(value.dtype) == "float32" else [str(value.dtype)]
        if not value.trainable:
            notes.append("not trained")
        if id(value) in seen:
            notes.append("shared")
        seen.add(id(value))
        found.append((name, value, notes))
    found += [(name, buffer, ["buffer"]) for name, buffer in layer._own_buffers()]
    return [
        f'<span style="{_CHIP}">{escape(name)} {escape(str(list(value.shape)))}'
        + (f' <span style="{QUIET}">{escape(", ".join(notes))}</span>' if notes else "")
        + "</span>"
        for name, value, notes in found
    ]


def summary_page(summary: Any) -> str:
    """Return a summary as an HTML table."""
    lines = [
        _row([_indented(row.label, row.depth), *map(escape, row.cells())], "td", "")
        for row in summary.rows
    ]
    head = _row([escape(text) for text in HEADS], "th", f"border-bottom: {RULE};")
    total = _row(list(map(escape, summary.totals())), "th", f"border-top: {RULE};")
    note = summary.note()
    below = f'<div style="{QUIET} padding: 2px 10px;">{escape(note)}</div>' if note else ""
    return (
        f'<div class="optlab-summary" style="{FONT} overflow-x: auto;">'
        '<table style="border-collapse: collapse; margin: 0; font-size: 13px;">'
        f"<thead>{head}</thead><tbody>{''.join(lines)}</tbody><tfoot>{total}</tfoot></table>"
        f"{below}</div>"
    )


def _indented(label: str, depth: int) -> str:
    return f'<span style="padding-left: {16 * depth}px;">{escape(label)}</span>'


def _row(cells: list[str], tag: str, border: str) -> str:
    left = "text-align: left; white-space: nowrap;"
    styles = [left, left, NUMBER, NUMBER]
    return '<tr style="background: none;">' + "".join(
        f'<{tag} style="{style} padding: 2px 10px; {border}">{cell}</{tag}>'
        for cell, style in zip(cells, styles, strict=True)
    ) + "</tr>"  # fmt: skip
