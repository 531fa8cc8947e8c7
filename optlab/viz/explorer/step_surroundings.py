"""What stands before and after the formulas of a rule: clips and decay, and wrappers."""

from __future__ import annotations

from typing import Any

from optlab.nn.clip import ClipGradByGlobalNorm, ClipGradByNorm, ClipGradByValue
from optlab.optimizer import Averaged, ExponentialMovingAverage, LookAhead, Optimizer
from optlab.optimizer.regularizer import L1Decay, L2Decay
from optlab.viz.explorer.step_formulas import Expression, Row, Rule, parsed
from optlab.viz.explorer.step_lines import ALIKE, UPDATE, rule_from

WRAPPER_TERMS = ("slow", "fast", "lead", "synchronised", "average", "lag")
"""Terms that wrappers add to a recording; they have lines of their own."""

_LOOK_AHEAD = rule_from(
    (
        Row("jump back", "{d.stay} · {d.behind} = **{d.jump}**", "φ − θ",
            "every {h.k} steps it goes {%d.stay} % of the way back to the slow weights φ",
            "wrapper", UPDATE, where=parsed("term.synchronised"), arrow=True),
        Row("LookAhead", "φ: {p.new} → **{d.synchronised}**", role="position",
            parts=(("p.new", ""), ("d.jump", "")), where=parsed("term.synchronised")),
        Row("slow weights", "φ = **{term.slow}**", "φ",
            "they wait: every {h.k} steps the point goes back towards them", "wrapper",
            where=parsed("not term.synchronised")),
    ),
    {
        "stay": "1 - h.alpha",
        "behind": "-term.lead",
        "jump": "d.stay * d.behind",
        "synchronised": "term.slow if term.synchronised else term.fast",
    },
    computed={
        "term.slow": "new.slow",
        "term.fast": "p.new",
        "term.lead": "p.new - old.slow",
        "term.synchronised": "0 if t % h.k else 1",
    },
)  # fmt: skip
_AVERAGES = {"term.average": "new.average", "term.lag": "p.new - new.average"}
_EMA = rule_from(
    (
        Row("average", "{p.new} {+d.lag} = **{term.average}**", "x̄",
            "of all points so far; each step back counts × {h.decay}", "wrapper",
            parts=(("p.new", ""), ("d.lag", ""))),
    ),
    {"lag": "-term.lag"},
    computed=_AVERAGES,
)  # fmt: skip
_MEAN = rule_from(
    (
        Row("average", "{p.new} {+d.lag} = **{term.average}**", "x̄",
            "mean of the points of its window", "wrapper",
            parts=(("p.new", ""), ("d.lag", ""))),
    ),
    {"lag": "-term.lag"},
    computed=_AVERAGES,
)  # fmt: skip


def lines_after(layer: Any) -> Rule:
    """Return the lines of a wrapper, which stand after those of the rule."""
    if isinstance(layer, LookAhead):
        return _LOOK_AHEAD
    averaged = isinstance(layer, Averaged) and isinstance(layer.average, ExponentialMovingAverage)
    return _EMA if averaged else _MEAN


# What comes before the rule ----------------------------------------------------------------------


def _clip(clip: Any) -> tuple[list[Row], str]:
    """Return the lines of a gradient clip, and minus the clipped gradient as an expression."""
    if clip is None:
        return [], "d.raw"
    row = Row("clipped", "**{d.clipped}**", "−g", "", "gradient", ALIKE, arrow=True,
              where=parsed("norm(d.clipped - d.raw) > 0"))  # fmt: skip
    if isinstance(clip, ClipGradByValue):
        note = f"each part from {-clip.max:g} to {-clip.min:g}".replace("-", "−")
        return [_with_note(row, note)], f"max(min(d.raw, {-clip.min!r}), {-clip.max!r})"
    if isinstance(clip, (ClipGradByNorm, ClipGradByGlobalNorm)):
        c = clip.clip_norm
        scaled = Row(
            row.label, "{d.clip_factor} · {d.raw} = **{d.clipped}**", row.symbol,
            f"shortened to the length {c:g}", row.role, row.bars, where=row.where, arrow=True,
        )  # fmt: skip
        return [scaled], f"d.raw * ({c!r} / max(norm(raw), {c!r}))"
    return [_with_note(row, "by a clip of your own")], ""


def _with_note(row: Row, note: str) -> Row:
    return Row(row.label, row.template, row.symbol, note, row.role, row.bars, row.parts,
               row.where, row.arrow)  # fmt: skip


def with_lines_before(template: Optimizer, rule: Rule) -> Rule:
    """Put the lines of clip and decay before those of a rule."""
    decay, clip = template.decay_and_clip
    if decay is None and clip is None:
        return rule
    rows, clipped = _clip(clip)
    derived: dict[str, Expression] = dict(rule.derived)
    computed = dict(rule.computed)
    pulls = {L2Decay: "p", L1Decay: "sign(p)"}.get(type(decay), "")
    own = clip is not None and not clipped
    if own or (decay is not None and not pulls):  # known where it was recorded
        derived["clipped"] = parsed("-g")
        note = "by a clip or a penalty of your own"
        rows = [Row("changed", "**{d.clipped}**", "−g", note, "gradient", ALIKE, arrow=True)]
        return Rule((rule.rows[0], *rows, *rule.rows[1:]), derived, computed, rule.tips)
    derived["clipped"] = parsed(clipped)
    if isinstance(clip, (ClipGradByNorm, ClipGradByGlobalNorm)):
        derived["clip_factor"] = parsed(f"{clip.clip_norm!r} / max(norm(raw), {clip.clip_norm!r})")
    computed["g"] = parsed("-d.clipped")
    if decay is not None and type(template).separate_decay:
        derived["decays"], derived["pull"] = 1, parsed(f"-({decay.coeff!r} * {pulls})")
    elif decay is not None:
        derived["penalty"] = parsed(f"-({decay.coeff!r} * {pulls})")
        derived["with_penalty"] = parsed("d.clipped + d.penalty")
        computed["g"] = parsed("-(d.clipped + d.penalty)")
        note = f"{decay.coeff:g} of {'−x' if pulls == 'p' else 'the sign of −x'} is added"
        rows.append(
            Row("with decay", "{d.clipped} {+d.penalty} = **{d.with_penalty}**", "−g", note,
                "gradient", ALIKE, (("d.clipped", "gradient"), ("d.penalty", "decay")),
                arrow=True)
        )  # fmt: skip
    return Rule((rule.rows[0], *rows, *rule.rows[1:]), derived, computed, rule.tips)
