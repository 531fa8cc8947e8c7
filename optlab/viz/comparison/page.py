"""Page layouts of the race figures: panels side by side, with space for their labels."""

from __future__ import annotations

from optlab.viz.protocols import ComparisonLike
from optlab.viz.style import layout, theme
from optlab.viz.style.layout import Page
from optlab.viz.style.text import race_conditions
from optlab.viz.views.curve_view import axis_note

_ROW = 18  # pixels between two accuracies


def race_page(comparison: ComparisonLike, width: int, height: int) -> Page:
    """Lay out a race: map and curves, or curves and accuracies."""
    on_map = comparison.problem.kind == "surface"
    ends = _end_room(comparison)
    return layout.page(
        width,
        height,
        names=list(comparison.traces),
        note=_note(comparison),
        shares=[1.5, 1] if on_map else [1.3, 1],
        rooms=[layout.AXIS_GAP, ends] if on_map else [ends + _name_room(comparison), 0],
        least=0 if on_map else _ROW * len(comparison.traces),
    )


def curves_page(comparison: ComparisonLike, width: int, height: int) -> Page:
    """Lay out curves alone."""
    return layout.page(
        width,
        height,
        names=list(comparison.traces),
        note=_note(comparison),
        shares=[1],
        rooms=[_end_room(comparison)],
    )


def _note(comparison: ComparisonLike) -> str:
    """Return the conditions of a race, and the note on what the axis cuts off."""
    return " ".join(filter(None, [race_conditions(comparison), axis_note(comparison)]))


def _end_room(comparison: ComparisonLike) -> float:
    """Return the pixels of the longest name followed by a value."""
    longest = max((len(name) for name in comparison.traces), default=0)
    return layout.text_width("m" * longest + " 1.23e-45", theme.FONT_TEXT) + 4


def _name_room(comparison: ComparisonLike) -> float:
    """Return the pixels of the names beside the accuracies."""
    longest = max((len(name) for name in comparison.traces), default=0)
    return layout.text_width("m" * longest, theme.FONT_TEXT) + 12


def map_page(comparison: ComparisonLike | None, width: int, height: int) -> Page:
    """Lay out a map alone, with or without paths."""
    return layout.page(
        width,
        height,
        names=[] if comparison is None else list(comparison.traces),
        note="" if comparison is None else race_conditions(comparison),
        shares=[1],
        rooms=[0],
    )
