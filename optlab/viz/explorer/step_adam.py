"""The formulas of a step of Adam and its relatives."""

from __future__ import annotations

from optlab.viz.explorer.step_formulas import Row, Rule, parsed
from optlab.viz.explorer.step_lines import (
    ALIKE,
    DECAYS,
    GRADIENT,
    MOVED,
    OWN,
    QUOTIENT,
    SQUARES,
    TYPICAL,
    UPDATE,
    decay_line,
    memory_line,
    rule_from,
    scale_lines,
    update_line,
)

_ADAM_PARTS = {
    "weight1": "1 - h.beta1**t",
    "weight2": "1 - h.beta2**t",
    "share1": "1 - h.beta1",
    "kept": "-(h.beta1 * old.moment1) / d.weight1",
    "fresh": "-((1 - h.beta1) * g) / d.weight1",
    "memory": "-new.moment1 / d.weight1",
    "squares": "h.beta2 * old.moment2 / d.weight2",
    "square": "(1 - h.beta2) * g * g / d.weight2",
    "scale": "sqrt(new.moment2 / d.weight2) + h.epsilon",
}
_WEIGHTS = [  # each in one piece
    text.replace(" ", "\N{NO-BREAK SPACE}")
    for text in ("÷ (1 − {h.beta1}^[{t}])", "÷ √(1 − {h.beta2}^[{t}])")
]
_EARLY = "h.beta1**t > 5e-4"
_ADAM_MEMORY = (
    memory_line(
        "{h.beta1} of memory, {d.share1} of −g, " + _WEIGHTS[0],
        "−m̂",
        where=_EARLY,
    ),
    memory_line("{h.beta1} of memory, {d.share1} of −g", "−m̂", where=f"not {_EARLY}"),
)
_ADAM_SCALE = (
    *scale_lines(SQUARES, "√v̂", "typical size of g, " + _WEIGHTS[1],
            where="h.beta2**t > 5e-4"),
    *scale_lines(SQUARES, "√v̂", TYPICAL, where="not h.beta2**t > 5e-4"),
)  # fmt: skip
_CORRECTION = (
    "d.ratio > 1.05 or d.ratio < 0.95",
    (
        "Bias correction: the memories started at 0 and hold {%d.weight1} % and "
        "{%d.weight2} % of their "
        "weight by now. Without it this step would be {~d.ratio} times as long."
    ),
)
_RATIO = "norm(new.moment1 / (sqrt({size}) + h.epsilon)) / norm(d.memory / d.scale)"

ADAM = rule_from(
    (
        GRADIENT,
        *_ADAM_MEMORY,
        *(
            row
            for plain in _ADAM_SCALE
            for row in (
                Row(plain.label, plain.template, plain.symbol, plain.note, "scale", ALIKE,
                    where=["if", "h.amsgrad", 0, plain.where]),
            )
        ),
        *scale_lines("√max({d.largest}, {d.newest})", "√max v̂",
                "largest typical size of g so far: it never shrinks", where="h.amsgrad"),
        update_line(QUOTIENT, "rate · momentum ÷ scale"),
        MOVED,
    ),
    {
        **_ADAM_PARTS,
        "size": "new.moment2_max if h.amsgrad else new.moment2",
        "largest": "old.moment2_max / d.weight2",
        "newest": "new.moment2 / d.weight2",
        "scale": "sqrt(d.size / d.weight2) + h.epsilon",
        "ratio": _RATIO.format(size="d.size"),
    },
    "h.learning_rate * d.memory / d.scale",
    tips=(_CORRECTION,),
)  # fmt: skip

UNCORRECTED = rule_from(
    (
        GRADIENT,
        memory_line("{h.beta1} of memory, {d.share1} of −g, not corrected", "−m"),
        *scale_lines(SQUARES, "√v", "size of g; it started at 0 and is not corrected"),
        update_line(QUOTIENT, "rate · momentum ÷ scale"),
        MOVED,
    ),
    {
        "share1": "1 - h.beta1",
        "weight1": "1 - h.beta1**t",
        "weight2": "1 - h.beta2**t",
        "kept": "-(h.beta1 * old.moment1)",
        "fresh": "-((1 - h.beta1) * g)",
        "memory": "-new.moment1",
        "squares": "h.beta2 * old.moment2",
        "square": "(1 - h.beta2) * g * g",
        "scale": "sqrt(new.moment2) + h.epsilon",
        "ratio": "norm(d.memory / d.scale) / norm(d.memory / d.weight1 / "
        "(sqrt(new.moment2 / d.weight2) + h.epsilon))",
    },
    "h.learning_rate * d.memory / d.scale",
    tips=(
        (
            "d.ratio > 1.05 or d.ratio < 0.95",
            (
                "The memories started at 0 and hold {%d.weight1} % and {%d.weight2} % of their "
                "weight by now. Uncorrected, they make this step {~d.ratio} times as long as "
                "corrected."
            ),
        ),
    ),
)


def _unless_decaying(row: Row) -> Row:
    """Return an update line of Adam for AdamW without decay."""
    where = ["if", parsed(DECAYS), 0, row.where]
    return Row(row.label, row.template, row.symbol, row.note, row.role, row.bars, row.parts,
               where, row.arrow)  # fmt: skip


ADAMW = Rule(
    (
        *ADAM.rows[:-2],
        Row("Adam’s step", f"{QUOTIENT} = **{{d.step}}**", "", "rate · momentum ÷ scale", "step",
            UPDATE, where=parsed(DECAYS)),
        decay_line("h.weight_decay", DECAYS),
        _unless_decaying(ADAM.rows[-2]),
        update_line("{d.step} {+d.decay}", "step + weight decay", DECAYS,
                (("d.step", "step"), ("d.decay", "decay"))),
        MOVED,
    ),
    {
        **ADAM.derived,
        "step": parsed("h.learning_rate * d.memory / d.scale"),
        "back": parsed("-p"),
        "decay": parsed("-(h.learning_rate * h.weight_decay * p)"),
    },
    {"update": parsed("d.step + d.decay")},
    ADAM.tips,
)  # fmt: skip

ADAMAX = rule_from(
    (
        GRADIENT,
        *_ADAM_MEMORY,
        *scale_lines("max({d.newest}, {d.faded})", "u",
                "largest size of g so far; an old one fades × {h.beta2} a step", epsilon=False),
        update_line(QUOTIENT, "rate · momentum ÷ scale"),
        MOVED,
    ),
    {
        **{name: text.replace("moment1", "moment") for name, text in _ADAM_PARTS.items()
           if name in ("weight1", "share1", "kept", "fresh", "memory")},
        "newest": "abs(g)",
        "faded": "h.beta2 * old.inf_norm + h.epsilon",
        "scale": "new.inf_norm",
        "ratio": "d.weight1",
    },
    "h.learning_rate * d.memory / d.scale",
    tips=((
        _EARLY + " and d.ratio < 0.95",
        ("Bias correction: the memory of −g started at 0. After {t} steps it holds "
        "{%d.weight1} % of "
        "its full weight, and is divided by that. The scale needs none: it is a maximum."),
    ),),
)  # fmt: skip

_NADAM_MOMENTUM = "h.beta1 * (1 - 0.5 * 0.96**(k * h.momentum_decay))"
NADAM = rule_from(
    (
        GRADIENT,
        memory_line("a step ahead: {%d.old_share} % memory, {%d.new_share} % −g, corrected for its "
                "start at 0", "−m̂", label="momentum"),
        *_ADAM_SCALE,
        update_line(QUOTIENT, "rate · momentum ÷ scale"),
        MOVED,
    ),
    {
        **_ADAM_PARTS,
        "here": _NADAM_MOMENTUM.replace("k *", "t *"),
        "next": _NADAM_MOMENTUM.replace("k *", "(t + 1) *"),
        "along_moment": f"d.next / (1 - product(k, t + 1, {_NADAM_MOMENTUM}))",
        "along_gradient": f"(1 - d.here) / (1 - product(k, t, {_NADAM_MOMENTUM}))",
        "kept": "-(d.along_moment * h.beta1 * old.moment1)",
        "fresh": "-((d.along_moment * (1 - h.beta1) + d.along_gradient) * g)",
        "memory": "-(d.along_moment * new.moment1 + d.along_gradient * g)",
        "old_share": "d.along_moment * h.beta1 * (1 - h.beta1**(t - 1))",
        "new_share": "d.along_moment * (1 - h.beta1) + d.along_gradient",
    },
    "h.learning_rate * d.memory / d.scale",
)  # fmt: skip

RADAM = rule_from(
    (
        GRADIENT,
        *_ADAM_MEMORY,
        Row("scale", "{d.root} ÷ {d.trust} = **{d.scale}**", "√v̂ ÷ r",
            "typical size of g so far, ÷ {d.trust}: how far it can be trusted yet", "scale",
            ALIKE, where=parsed("d.length > 5")),
        update_line(QUOTIENT, "rate · momentum ÷ scale", "d.length > 5"),
        update_line("{h.learning_rate} · {d.memory}", "rate · momentum, not divided yet",
                "not d.length > 5"),
        MOVED,
    ),
    {
        **_ADAM_PARTS,
        "longest": "2 / (1 - h.beta2) - 1",
        "length": "d.longest - 2 * t * h.beta2**t / d.weight2",
        "trust": "sqrt((d.length - 4) * (d.length - 2) * d.longest / "
        "((d.longest - 4) * (d.longest - 2) * d.length))",
        "root": "(sqrt(new.moment2) + h.epsilon) / sqrt(d.weight2)",
        "scale": "d.root / d.trust",
    },
    "h.learning_rate * (d.memory / d.scale if d.length > 5 else d.memory)",
    tips=(
        ("not d.length > 5", ("After {t} steps there are too few gradients for a typical size: the "
         "step is momentum’s, and its length grows with the gradient.")),
        (_EARLY, ("Bias correction: the memory of −g started at 0 and holds {%d.weight1} % of its "
         "full weight; it is divided by that.")),
    ),
)  # fmt: skip

LAMB = rule_from(
    (
        GRADIENT,
        *_ADAM_MEMORY,
        *_ADAM_SCALE,
        Row("direction", "{d.memory} ÷ {d.scale} {+d.pull} = **{d.direction}**", "d",
            "momentum ÷ scale, and {h.lamb_weight_decay} of −x", "step", OWN,
            where=parsed("h.lamb_weight_decay > 0")),
        Row("direction", "{d.memory} ÷ {d.scale} = **{d.direction}**", "d", "momentum ÷ scale",
            "step", OWN, where=parsed("not h.lamb_weight_decay > 0")),
        Row("ratio", "{d.size} ÷ {d.length} = **{d.ratio}**", "‖x‖ ÷ ‖d‖",
            "size of the point ÷ size of the direction", "scale", "", where=parsed("d.adapts")),
        update_line("{h.learning_rate} · {d.ratio} · {d.direction}", "rate · ratio · direction",
                "d.adapts"),
        update_line("{h.learning_rate} · {d.direction}", "rate · direction", "not d.adapts"),
        MOVED,
    ),
    {
        **_ADAM_PARTS,
        "pull": "-(h.lamb_weight_decay * p)",
        "direction": "d.memory / d.scale + d.pull",
        "size": "norm(p)",
        "length": "norm(d.direction)",
        "adapts": "(h.lamb_weight_decay > 0 or h.always_adapt) and "
        "(d.size > 0 and d.length > 0)",
        "ratio": "d.size / d.length if d.adapts else 1",
    },
    "h.learning_rate * d.ratio * d.direction",
)  # fmt: skip
