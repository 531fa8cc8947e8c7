"""The lines of which the formulas of steps are put together."""

from __future__ import annotations

from collections.abc import Sequence

from optlab.viz.explorer.step_formulas import Row, Rule, parsed

ALIKE, UPDATE, OWN = "alike", "update", "own"
"""Scales of bars: in units of the gradient, of the map, and one of a line alone."""
NEGLIGIBLE = "5e-5"  # of a number with four digits


def rule_from(
    rows: Sequence[Row],
    derived: dict[str, str],
    update: str = "",
    computed: dict[str, str] | None = None,
    tips: Sequence[tuple[str, str]] = (),
) -> Rule:
    """Build a rule from expressions written as text."""
    more = {**(computed or {}), **({"update": update} if update else {})}
    return Rule(
        tuple(rows),
        {name: parsed(text) for name, text in {**_COMMON, **derived}.items()},
        {name: parsed(text) for name, text in more.items()},
        tuple((parsed(on), tip) for on, tip in tips),
    )


_COMMON = {"raw": "-raw", "down": "-g"}


# The lines ---------------------------------------------------------------------------------------

GRADIENT = Row("−gradient", "**{d.raw}**", "−g", "straight downhill", "gradient", ALIKE, arrow=True)
MOVED = Row(
    "new {axis}", "{p} → **{p.new}**", role="position",
    parts=(("p", ""), ("update", "")),
)  # fmt: skip


def update_line(
    template: str, note: str, where: str = "1", parts: tuple[tuple[str, str], ...] = ()
) -> Row:
    """Return the line of the update; the template is what it is computed from."""
    return Row(
        "update", f"{template} = **{{update}}**", "Δ", note, "update", UPDATE, parts,
        parsed(where), arrow=True,
    )  # fmt: skip


def memory_line(
    note: str,
    symbol: str,
    *,
    label: str = "momentum",
    where: str = "1",
    kept: str = "d.kept",
    result: str = "d.memory",
) -> Row:
    """Return the line of a memory: what it has kept, and what is new."""
    return Row(
        label, f"{{{kept}}} {{+d.fresh}} = **{{{result}}}**", symbol, note, "memory", ALIKE,
        ((kept, "kept"), ("d.fresh", "gradient")), parsed(where), arrow=True,
    )  # fmt: skip


def scale_lines(
    inside: str, symbol: str, note: str, *, epsilon: bool = True, where: str = "1"
) -> tuple[Row, ...]:
    """Return the line of a divisor; epsilon appears in it where it is not negligible."""

    def row(more: str, symbol: str, on: str) -> Row:
        template = f"{inside}{more} = **{{d.scale}}**"
        return Row("scale", template, symbol, note, "scale", ALIKE, where=parsed(on))

    if not epsilon:
        return (row("", symbol, where),)
    counts = f"(h.epsilon > {NEGLIGIBLE} * d.scale)"
    return (
        row("", symbol, f"({where}) and not {counts}"),
        row(" + {h.epsilon}", f"{symbol} + ε", f"({where}) and {counts}"),
    )


def decay_line(setting: str, where: str) -> Row:
    """Return the line of a decay that stands beside the gradient."""
    return Row(
        "weight decay",
        f"{{h.learning_rate}} · {{{setting}}} · {{d.back}} = **{{d.decay}}**",
        "", "rate · decay · −x, a pull towards 0", "decay", UPDATE, where=parsed(where),
    )  # fmt: skip


SQUARES = "√({d.squares} + {d.square})"
QUOTIENT = "{h.learning_rate} · {d.memory} ÷ {d.scale}"
PLAIN_QUOTIENT = "{h.learning_rate} · {d.down} ÷ {d.scale}"
STARTED_AT_ZERO = "typical size of g; it started at 0 and is still too small"
TYPICAL = "typical size of g so far"

DECAYS = "h.weight_decay > 0"
