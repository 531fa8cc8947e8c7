"""HTML of optimizers for notebooks: formula, settings, groups and the bytes of their slots."""

from __future__ import annotations

from html import escape
from typing import Any

from optlab.backend.memory.sizes import in_words
from optlab.nn.base.html import FONT, NUMBER, QUIET, RULE
from optlab.optimizer.params.groups import Group
from optlab.optimizer.rule.hyperparameters import COMMON
from optlab.optimizer.step.execution import UNKNOWN

_LEFT = "text-align: left; white-space: nowrap;"
_HEADS = ("group", "tensors", "elements", "rate", "decay", "clip", "steps", "slots")
_STYLES = (_LEFT, NUMBER, NUMBER, NUMBER, _LEFT, _LEFT, NUMBER, _LEFT)


def optimizer_page(optimizer: Any) -> str:
    """Return an optimizer as HTML."""
    pairs = [
        (name, value) for name, value in optimizer._settings_with_schedule() if value is not None
    ]
    pairs += [
        (name, optimizer._common[name])
        for name in ("multi_precision", "not_finite")
        if optimizer._common.get(name, COMMON[name]) != COMMON[name]
    ]
    if optimizer.is_template:
        body = f'<div style="{QUIET}">A template: it has no parameters yet.</div>'
    else:
        rows = [_cells(optimizer, i, group) for i, group in enumerate(optimizer.groups)]
        body = (
            '<table style="border-collapse: collapse; margin: 4px 0; font-size: 13px;">'
            f"<thead>{_row(_HEADS, 'th', f'border-bottom: {RULE};')}</thead>"
            f"<tbody>{''.join(_row(cells, 'td', '') for cells in rows)}</tbody></table>"
            f'<div style="{QUIET}">{escape(_memory_sentence(optimizer))}</div>'
            f'<div style="{QUIET}">{escape(_execution_sentences(optimizer))}</div>'
        )
    return _page(optimizer, pairs, body)


def average_page(average: Any) -> str:
    """Return an average of weights as HTML."""
    pairs = [(name, value) for name, value in average.own_settings.items() if value is not None]
    n, size = len(average.parameters), sum(p.size for p in average.parameters)
    stored = sum(
        value.nbytes
        for memory in average.memories
        for value in memory.values()
        if hasattr(value, "nbytes")
    )
    body = "It averages no parameters yet."
    if n:
        body = (
            f"It averages {n:,} parameter{'s' * (n != 1)} of {size:,} element{'s' * (size != 1)}, "
            f"and keeps {in_words(stored)}."
        )
    return _page(average, pairs, f'<div style="{QUIET}">{escape(body)}</div>')


def _page(subject: Any, settings: list[tuple[str, Any]], body: str) -> str:
    """Return the page of an optimizer or average: class, name, settings, formula and body."""
    name = f' <span style="{QUIET}">{escape(subject.name)}</span>' if subject.name else ""
    listed = ", ".join(f"{name} = {value!r}" for name, value in settings)
    formula = subject.formula
    rendered = (
        f'<div style="padding: 6px 0;">{escape(formula._repr_latex_())}</div>' if formula else ""
    )
    return (
        f'<div class="optlab-optimizer" style="{FONT} max-width: 1200px; overflow-x: auto;">'
        f"<b>{escape(type(subject).__name__)}</b>{name}"
        f'<div style="{QUIET}">{escape(listed)}</div>{rendered}{body}</div>'
    )


def _cells(optimizer: Any, number: int, group: Group) -> list[str]:
    """Return the table cells of one group."""
    own = [
        f"{name} = {value!r}"
        for name, value in vars(group.h).items()
        if name != "learning_rate" and value != optimizer.settings[name]
    ]
    label = f"{number}" + (f" ({', '.join(own)})" if own else "")
    counts = sorted({t for flat in group.arenas for t in flat.t})
    steps = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    slots = {name: 0 for flat in group.arenas for name in flat.slots}
    for flat in group.arenas:
        for name, array in flat.slots.items():
            slots[name] += array.nbytes
        if flat.master is not None:
            slots["float32 copy"] = slots.get("float32 copy", 0) + flat.master.nbytes
    slots |= _wrapper_bytes(optimizer, group)
    rate = optimizer.get_lr() * group.multiplier
    # A rate of zero, at which many schedules begin, does not show the multiplier of a group.
    share = (
        f" ({group.multiplier:g} of it)"
        if isinstance(rate, float) and rate == 0 and group.multiplier != 1
        else ""
    )
    return [
        label,
        f"{len(group.parameters):,}",
        f"{sum(p.size for p in group.parameters):,}",
        _rate_text(rate) + share,
        _decay_text(group),
        "none" if group.grad_clip is None else repr(group.grad_clip),
        steps,
        ", ".join(f"{name} {in_words(size)}" for name, size in slots.items()) or "none",
    ]


def _wrapper_bytes(optimizer: Any, group: Group) -> dict[str, int]:
    """Return the bytes of what wrappers store for a group: slow weights, averages."""
    found: dict[str, int] = {}
    for wrapper in optimizer.layers():
        for (flat, _), memory in zip(wrapper.places, wrapper._memories(), strict=True):
            if any(flat is one for one in group.arenas):
                for name, value in memory.items():
                    if hasattr(value, "nbytes"):
                        found[name] = found.get(name, 0) + value.nbytes
    return found


def _rate_text(rate: Any) -> str:
    return f"{rate:.4g}" if isinstance(rate, float) else repr(rate)  # one a member of an ensemble


def _decay_text(group: Group) -> str:
    own = getattr(group.h, "weight_decay", None) if "weight_decay" in vars(group.h) else None
    if own is not None:
        return f"{own!r}, in the rule"
    return "none" if group.regularizer is None else repr(group.regularizer)


def _memory_sentence(optimizer: Any) -> str:
    flats = [flat for group in optimizer.groups for flat in group.arenas]
    kept = sum(array.nbytes for flat in flats for array in flat.slots.values())
    kept += sum(flat.master.nbytes for flat in flats if flat.master is not None)
    kept += getattr(optimizer, "own_bytes", 0)  # slow or averaged weights, a history
    weights = sum(params.flat.nbytes for params in flats)
    return f"The optimizer keeps {in_words(kept)} for {in_words(weights)} of parameters."


def _execution_sentences(optimizer: Any) -> str:
    """Return how the rule runs, once if that is the same everywhere, and the skipped steps."""
    ways = optimizer.execution
    if set(ways.values()) == {UNKNOWN}:
        how = f"How the rule runs is {UNKNOWN}."
    elif len(set(ways.values())) == 1:
        how = f"The rule runs {next(iter(ways.values()))}."
    else:
        how = f"The rule runs {'; '.join(f'({place}) {way}' for place, way in ways.items())}."
    n = optimizer.skipped
    many = "1 step was" if n == 1 else f"{n} steps were"
    return f"{how} {many} skipped, as gradients were not finite." if n else how


def _row(cells: Any, tag: str, border: str) -> str:
    return '<tr style="background: none;">' + "".join(
        f'<{tag} style="{style} padding: 2px 10px; {border}">{escape(cell)}</{tag}>'
        for cell, style in zip(cells, _STYLES, strict=True)
    ) + "</tr>"  # fmt: skip
