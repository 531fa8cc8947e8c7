"""The formulas of a step of every optimizer of the library, of wrappers, and of a user's own.

All are put together from the same few lines: minus the gradient, clipped and decayed; a memory of
it; a scale that divides it; the update; the new position. What is shown is the direction in which
the optimizer goes, so all numbers of gradients and memories have the sign of a step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from optlab.lab import ConjugateGradient, Newton, SteepestDescent
from optlab.nn.clip import ClipGradByGlobalNorm, ClipGradByNorm, ClipGradByValue
from optlab.optimizer import (
    ASGD,
    LBFGS,
    SGD,
    Adadelta,
    Adagrad,
    Adam,
    Adamax,
    AdamW,
    Averaged,
    DecayedAdagrad,
    Dpsgd,
    ExponentialMovingAverage,
    Ftrl,
    Lamb,
    LarsMomentum,
    Lion,
    LookAhead,
    Momentum,
    Muon,
    NAdam,
    Optimizer,
    RAdam,
    RMSProp,
    Rprop,
)
from optlab.optimizer.regularizer import L1Decay, L2Decay
from optlab.optimizer.wrappers import layers_of
from optlab.viz.explorer.presets import AdamWithoutCorrection
from optlab.viz.explorer.step_formulas import Expression, Row, Rule, parsed

_ALIKE, _UPDATE, _OWN = "alike", "update", "own"
_NEGLIGIBLE = "5e-5"  # of a number with four digits


def _rule(
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

_GRADIENT = Row(
    "−gradient", "**{d.raw}**", "−g", "straight downhill", "gradient", _ALIKE, arrow=True
)
_MOVED = Row(
    "new {axis}", "{axis}: {p} → **{p.new}**", role="position",
    parts=(("p", ""), ("update", "")),
)  # fmt: skip


def _on(text: str) -> Expression:
    return parsed(text)


def _update(
    template: str, note: str, where: str = "1", parts: tuple[tuple[str, str], ...] = ()
) -> Row:
    return Row(
        "update", f"{template} = **{{update}}**", "Δ", note, "update", _UPDATE, parts,
        _on(where), arrow=True,
    )  # fmt: skip


def _memory(
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
        label, f"{{{kept}}} {{+d.fresh}} = **{{{result}}}**", symbol, note, "memory", _ALIKE,
        ((kept, "kept"), ("d.fresh", "gradient")), _on(where), arrow=True,
    )  # fmt: skip


def _scale(
    inside: str, symbol: str, note: str, *, epsilon: bool = True, where: str = "1"
) -> tuple[Row, ...]:
    """Return the line of a divisor; epsilon appears in it where it is not negligible."""

    def row(more: str, symbol: str, on: str) -> Row:
        template = f"{inside}{more} = **{{d.scale}}**"
        return Row("scale", template, symbol, note, "scale", _ALIKE, where=_on(on))

    if not epsilon:
        return (row("", symbol, where),)
    counts = f"(h.epsilon > {_NEGLIGIBLE} * d.scale)"
    return (
        row("", symbol, f"({where}) and not {counts}"),
        row(" + {h.epsilon}", f"{symbol} + ε", f"({where}) and {counts}"),
    )


def _decay(setting: str, where: str) -> Row:
    return Row(
        "weight decay",
        f"{{h.learning_rate}} · {{{setting}}} · {{d.back}} = **{{d.decay}}**",
        "", "rate · decay · −x, a pull towards 0", "decay", _UPDATE, where=_on(where),
    )  # fmt: skip


_SQUARES = "√({d.squares} + {d.square})"
_QUOTIENT = "{h.learning_rate} · {d.memory} ÷ {d.scale}"
_PLAIN_QUOTIENT = "{h.learning_rate} · {d.down} ÷ {d.scale}"
_STARTED_AT_ZERO = "typical size of g; it started at 0 and is still too small"
_TYPICAL = "typical size of g so far"


# Gradient and momentum ---------------------------------------------------------------------------

_SGD = _rule(
    (_GRADIENT, _update("{h.learning_rate} · {d.down}", "rate · −g"), _MOVED),
    {},
    "-(h.learning_rate * g)",
)

_RESCALED = Row(
    "rescaled", "{h.rescale_grad} · {d.given} = **{d.down}**", "−g", "the gradient times a number",
    "gradient", _ALIKE, where=_on("not (1 - h.rescale_grad) * (1 - h.rescale_grad) < 1e-30"),
    arrow=True,
)  # fmt: skip

_MOMENTUM = _rule(
    (
        _GRADIENT,
        _RESCALED,
        _memory("{h.momentum} of its memory, and all of −g", "−v"),
        _memory(
            "looks ahead: {h.momentum} of the new momentum, and −g once more",
            "−(g + μv)", label="look ahead", where="h.use_nesterov",
            kept="d.ahead_kept", result="d.ahead",
        ),
        _update("{h.learning_rate} · {d.memory}", "rate · momentum", "not h.use_nesterov"),
        _update("{h.learning_rate} · {d.ahead}", "rate · look ahead", "h.use_nesterov"),
        _MOVED,
    ),
    {
        "given": "-g",
        "down": "-(h.rescale_grad * g)",
        "kept": "-(h.momentum * old.velocity)",
        "fresh": "d.down",
        "memory": "-new.velocity",
        "ahead_kept": "h.momentum * d.memory",
        "ahead": "d.down + d.ahead_kept",
    },
    "h.learning_rate * (d.ahead if h.use_nesterov else d.memory)",
)  # fmt: skip

_ASGD = _rule(
    (
        _GRADIENT,
        _memory(
            "mean of the last gradients of {d.seen} batches: this one’s replaces its old one",
            "−d", label="mean", where="h.batch_num > 1",
        ),
        _update("{h.learning_rate} · {d.down}", "rate · −g: there is one batch",
                "not h.batch_num > 1 and not d.decays"),
        _update("{h.learning_rate} · {d.memory}", "rate · mean",
                "h.batch_num > 1 and not d.decays"),
        Row("weight decay", "{h.learning_rate} · {d.pull} = **{d.decay}**", "",
            "rate · decay · −x, a pull towards 0", "decay", _UPDATE, where=_on("d.decays")),
        Row("step", "{h.learning_rate} · {d.memory} = **{d.step}**", "", "rate · mean", "step",
            _UPDATE, where=_on("d.decays")),
        _update("{d.step} {+d.decay}", "step + weight decay", "d.decays",
                (("d.step", "step"), ("d.decay", "decay"))),
        _MOVED,
    ),
    {
        "seen": "min(t, h.batch_num)",
        "kept": "-(new.d - g) / d.seen",
        "fresh": "-g / d.seen",
        "memory": "-new.d / d.seen",
        "decays": "0",
        "pull": "0",
        "decay": "h.learning_rate * d.pull",
        "step": "h.learning_rate * d.memory",
    },
    "d.step + d.decay",
)  # fmt: skip

_LARS = _rule(
    (
        _GRADIENT,
        _RESCALED,
        Row("with decay", "{d.down} {+d.pull} = **{d.pulled}**", "−(g + λx)",
            "{h.lars_weight_decay} of −x is added", "gradient", _ALIKE,
            (("d.down", "gradient"), ("d.pull", "decay")), _on("h.lars_weight_decay")),
        Row("share", "{h.lars_coeff} · {d.size} ÷ {d.slope} = **{d.share}**", "",
            "size of the point ÷ size of the gradient, decay included", "scale", "",
            where=_on("h.lars_weight_decay > 0 and d.both")),
        _update("{d.step_kept} {+d.step_fresh}",
                "{h.momentum} of the last step, and {h.learning_rate} · share · −(g + λx)", "1",
                (("d.step_kept", "kept step"), ("d.step_fresh", "gradient"))),
        _MOVED,
    ),
    {
        "given": "-g",
        "down": "-(h.rescale_grad * g)",
        "pull": "-(h.lars_weight_decay * p)",
        "pulled": "d.down + d.pull",
        "size": "norm(p)",
        "both": "norm(p) > 0 and norm(g) > 0",
        "slope": "norm(d.down) + h.lars_weight_decay * norm(p) + h.epsilon",
        "share": "h.lars_coeff * d.size / d.slope if h.lars_weight_decay > 0 and d.both else 1",
        "step_kept": "-(h.momentum * old.velocity)",
        "step_fresh": "h.learning_rate * d.share * d.pulled",
    },
    "-new.velocity",
)  # fmt: skip

_LION_WHERE = "h.weight_decay > 0"
_LION = _rule(
    (
        _GRADIENT,
        _memory("{h.beta1} of memory, {d.share1} of −g", "−c", label="direction"),
        Row("step", "{h.learning_rate} · sign({d.memory}) = **{d.step}**", "", "rate · sign",
            "step", _UPDATE, where=_on(_LION_WHERE)),
        _decay("h.weight_decay", _LION_WHERE),
        _update("{h.learning_rate} · sign({d.memory})",
                "only the sign counts: each axis moves by the rate", f"not {_LION_WHERE}"),
        _update("{d.step} {+d.decay}", "step + weight decay", _LION_WHERE,
                (("d.step", "step"), ("d.decay", "decay"))),
        _MOVED,
    ),
    {
        "share1": "1 - h.beta1",
        "share2": "1 - h.beta2",
        "kept": "-(h.beta1 * old.moment)",
        "fresh": "-((1 - h.beta1) * g)",
        "memory": "d.kept + d.fresh",
        "step": "h.learning_rate * sign(d.memory)",
        "back": "-p",
        "decay": "-(h.learning_rate * h.weight_decay * p)",
    },
    "d.step + d.decay",
    tips=(("1", "The memory itself keeps {h.beta2} of what it was; of this gradient it takes "
           "{%d.share2} %."),),
)  # fmt: skip


# Divided by a size -------------------------------------------------------------------------------

_ADAGRAD = _rule(
    (
        _GRADIENT,
        *_scale("√({d.squares} + {d.square})", "√s",
                "root of the sum of all g² so far: it never shrinks"),
        _update(_PLAIN_QUOTIENT, "rate · −g ÷ scale"),
        _MOVED,
    ),
    {
        "squares": "old.moment",
        "square": "g * g",
        "scale": "sqrt(new.moment) + h.epsilon",
    },
    "-(h.learning_rate * g / d.scale)",
)  # fmt: skip

_DECAYED_ADAGRAD = _rule(
    (
        _GRADIENT,
        *_scale(_SQUARES, "√s", _STARTED_AT_ZERO, where="h.decay**t > 0.05"),
        *_scale(_SQUARES, "√s", _TYPICAL, where="not h.decay**t > 0.05"),
        _update(_PLAIN_QUOTIENT, "rate · −g ÷ scale"),
        _MOVED,
    ),
    {
        "squares": "h.decay * old.moment",
        "square": "(1 - h.decay) * g * g",
        "scale": "sqrt(new.moment) + h.epsilon",
    },
    "-(h.learning_rate * g / d.scale)",
)

_EPSILON_INSIDE = f"(h.epsilon > {_NEGLIGIBLE} * d.scale * d.scale)"


def _inside(note: str, where: str) -> tuple[Row, ...]:
    """Return the line of a divisor with epsilon under the root."""
    return (
        Row("scale", f"{_SQUARES} = **{{d.scale}}**", "√s", note, "scale", _ALIKE,
            where=_on(f"({where}) and not {_EPSILON_INSIDE}")),
        Row("scale", "√({d.squares} + {d.square} + {h.epsilon}) = **{d.scale}**", "√(s + ε)", note,
            "scale", _ALIKE, where=_on(f"({where}) and {_EPSILON_INSIDE}")),
    )  # fmt: skip


_RMSPROP = _rule(
    (
        _GRADIENT,
        *_inside(_STARTED_AT_ZERO, "not h.centered and h.rho**t > 0.05"),
        *_inside(_TYPICAL, "not h.centered and not h.rho**t > 0.05"),
        Row("mean", "{d.mean_kept} {+d.mean_fresh} = **{d.mean}**", "−m",
            "mean of −g, which the scale leaves out", "mean", _ALIKE,
            (("d.mean_kept", "kept mean"), ("d.mean_fresh", "gradient")), _on("h.centered")),
        Row("scale", "√({d.spread} + {h.epsilon}) = **{d.scale}**", "√(s − m² + ε)",
            "how far g spreads around its mean", "scale", _ALIKE, where=_on("h.centered")),
        _update(_PLAIN_QUOTIENT, "rate · −g ÷ scale", "not h.momentum"),
        _update("{d.step_kept} {+d.step_fresh}",
                "{h.momentum} of the last step, and {h.learning_rate} · −g ÷ scale", "h.momentum",
                (("d.step_kept", "kept step"), ("d.step_fresh", "gradient"))),
        _MOVED,
    ),
    {
        "squares": "h.rho * old.mean_square",
        "square": "(1 - h.rho) * g * g",
        "mean_kept": "-(h.rho * old.mean_grad)",
        "mean_fresh": "-((1 - h.rho) * g)",
        "mean": "-new.mean_grad",
        "spread": "max(new.mean_square - new.mean_grad * new.mean_grad, 0)",
        "scale": "sqrt((d.spread if h.centered else new.mean_square) + h.epsilon)",
        "step_kept": "-(h.momentum * old.momentum)",
        "step_fresh": "-(h.learning_rate * g / d.scale)",
    },
    "-new.momentum",
)  # fmt: skip

_ADADELTA = _rule(
    (
        _GRADIENT,
        Row("scale", "√({d.squares} + {d.square} + {h.epsilon}) = **{d.scale}**", "√(a + ε)",
            _TYPICAL, "scale", _ALIKE),
        Row("past steps", "√({old.avg_squared_update} + {h.epsilon}) = **{d.typical}**",
            "√(u + ε)", "typical size of its own steps so far", "step", _OWN),
        _update("{h.learning_rate} · {d.typical} · {d.down} ÷ {d.scale}",
                "rate · past steps · −g ÷ scale"),
        _MOVED,
    ),
    {
        "squares": "h.rho * old.avg_squared_grad",
        "square": "(1 - h.rho) * g * g",
        "scale": "sqrt(new.avg_squared_grad + h.epsilon)",
        "typical": "sqrt(old.avg_squared_update + h.epsilon)",
    },
    "-(h.learning_rate * d.typical * g / d.scale)",
)  # fmt: skip

_RPROP = _rule(
    (
        _GRADIENT,
        Row("own rate", "{d.factor} · {d.old_rate} = **{new.rates}**", "r",
            "× {h.etas.1} where g keeps its sign, × {h.etas.0} where it flips", "scale", _UPDATE,
            where=_on("not d.limited")),
        Row("own rate", "{d.factor} · {d.old_rate}, within limits = **{new.rates}**", "r",
            "× {h.etas.1} where g keeps its sign, × {h.etas.0} where it flips; from "
            "{h.learning_rate_range.0} to {h.learning_rate_range.1}", "scale", _UPDATE,
            where=_on("d.limited")),
        _update("{d.sign} · {new.rates}", "sign of −g · own rate; 0 just after a flip"),
        _MOVED,
    ),
    {
        "agree": "sign(g) * sign(old.previous)",
        "factor": "h.etas[1] if d.agree > 0 else (h.etas[0] if d.agree < 0 else 1)",
        "old_rate": "old.rates if t > 1 else h.learning_rate",
        "free": "d.factor * d.old_rate",
        "limited": "norm(d.free > h.learning_rate_range[1]) + "
        "norm(h.learning_rate_range[0] > d.free)",
        "sign": "0 if d.agree < 0 else -sign(g)",
    },
    "d.sign * new.rates",
)  # fmt: skip


# Adam and its relatives --------------------------------------------------------------------------

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
_EARLY = "h.beta1**t > 5e-4"
_ADAM_MEMORY = (
    _memory(
        "{h.beta1} of memory, {d.share1} of −g, both ÷ (1 − {h.beta1}^[{t}])", "−m̂", where=_EARLY
    ),
    _memory("{h.beta1} of memory, {d.share1} of −g", "−m̂", where=f"not {_EARLY}"),
)
_ADAM_SCALE = (
    *_scale(_SQUARES, "√v̂", "typical size of g so far, ÷ √(1 − {h.beta2}^[{t}])",
            where="h.beta2**t > 5e-4"),
    *_scale(_SQUARES, "√v̂", _TYPICAL, where="not h.beta2**t > 5e-4"),
)  # fmt: skip
_CORRECTION = (
    "d.ratio > 1.05 or d.ratio < 0.95",
    "Bias correction: the memories started at 0 and hold {%d.weight1} % and {%d.weight2} % of their "
    "weight by now. Without it this step would be {~d.ratio} times as long.",
)
_RATIO = "norm(new.moment1 / (sqrt({size}) + h.epsilon)) / norm(d.memory / d.scale)"

_ADAM = _rule(
    (
        _GRADIENT,
        *_ADAM_MEMORY,
        *(
            row
            for plain in _ADAM_SCALE
            for row in (
                Row(plain.label, plain.template, plain.symbol, plain.note, "scale", _ALIKE,
                    where=["if", "h.amsgrad", 0, plain.where]),
            )
        ),
        *_scale("√max({d.largest}, {d.newest})", "√max v̂",
                "largest typical size of g so far: it never shrinks", where="h.amsgrad"),
        _update(_QUOTIENT, "rate · momentum ÷ scale"),
        _MOVED,
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

_UNCORRECTED = _rule(
    (
        _GRADIENT,
        _memory("{h.beta1} of memory, {d.share1} of −g, not corrected", "−m"),
        *_scale(_SQUARES, "√v", "size of g; it started at 0 and is not corrected"),
        _update(_QUOTIENT, "rate · momentum ÷ scale"),
        _MOVED,
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
            "The memories started at 0 and hold {%d.weight1} % and {%d.weight2} % of their weight "
            "by now. Uncorrected, this step is {~d.ratio} times as long as Adam’s.",
        ),
    ),
)

_DECAYS = "h.weight_decay > 0"


def _unless_decaying(row: Row) -> Row:
    """Return an update line of Adam for AdamW without decay."""
    where = ["if", parsed(_DECAYS), 0, row.where]
    return Row(row.label, row.template, row.symbol, row.note, row.role, row.bars, row.parts,
               where, row.arrow)  # fmt: skip


_ADAMW = Rule(
    (
        *_ADAM.rows[:-2],
        Row("Adam’s step", f"{_QUOTIENT} = **{{d.step}}**", "", "rate · momentum ÷ scale", "step",
            _UPDATE, where=_on(_DECAYS)),
        _decay("h.weight_decay", _DECAYS),
        _unless_decaying(_ADAM.rows[-2]),
        _update("{d.step} {+d.decay}", "step + weight decay", _DECAYS,
                (("d.step", "step"), ("d.decay", "decay"))),
        _MOVED,
    ),
    {
        **_ADAM.derived,
        "step": parsed("h.learning_rate * d.memory / d.scale"),
        "back": parsed("-p"),
        "decay": parsed("-(h.learning_rate * h.weight_decay * p)"),
    },
    {"update": parsed("d.step + d.decay")},
    _ADAM.tips,
)  # fmt: skip

_ADAMAX = _rule(
    (
        _GRADIENT,
        *_ADAM_MEMORY,
        *_scale("max({d.newest}, {d.faded})", "u",
                "largest size of g so far; an old one fades × {h.beta2} a step", epsilon=False),
        _update(_QUOTIENT, "rate · momentum ÷ scale"),
        _MOVED,
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
        "Bias correction: the memory of −g started at 0. After {t} steps it holds {%d.weight1} % of "
        "its full weight, and is divided by that. The scale needs none: it is a maximum.",
    ),),
)  # fmt: skip

_NADAM_MOMENTUM = "h.beta1 * (1 - 0.5 * 0.96**(k * h.momentum_decay))"
_NADAM = _rule(
    (
        _GRADIENT,
        _memory("a step ahead: {%d.old_share} % memory, {%d.new_share} % −g, corrected for its "
                "start at 0", "−m̂", label="momentum"),
        *_ADAM_SCALE,
        _update(_QUOTIENT, "rate · momentum ÷ scale"),
        _MOVED,
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

_RADAM = _rule(
    (
        _GRADIENT,
        *_ADAM_MEMORY,
        Row("scale", "{d.root} ÷ {d.trust} = **{d.scale}**", "√v̂ ÷ r",
            "typical size of g so far, ÷ {d.trust}: how far it can be trusted yet", "scale",
            _ALIKE, where=_on("d.length > 5")),
        _update(_QUOTIENT, "rate · momentum ÷ scale", "d.length > 5"),
        _update("{h.learning_rate} · {d.memory}", "rate · momentum, not divided yet",
                "not d.length > 5"),
        _MOVED,
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
        ("not d.length > 5", "After {t} steps there are too few gradients for a typical size: the "
         "step is momentum’s, and its length grows with the gradient."),
        (_EARLY, "Bias correction: the memory of −g started at 0 and holds {%d.weight1} % of its "
         "full weight; it is divided by that."),
    ),
)  # fmt: skip

_LAMB = _rule(
    (
        _GRADIENT,
        *_ADAM_MEMORY,
        *_ADAM_SCALE,
        Row("direction", "{d.memory} ÷ {d.scale} {+d.pull} = **{d.direction}**", "d",
            "momentum ÷ scale, and {h.lamb_weight_decay} of −x", "step", _OWN,
            where=_on("h.lamb_weight_decay > 0")),
        Row("direction", "{d.memory} ÷ {d.scale} = **{d.direction}**", "d", "momentum ÷ scale",
            "step", _OWN, where=_on("not h.lamb_weight_decay > 0")),
        Row("ratio", "{d.size} ÷ {d.length} = **{d.ratio}**", "‖x‖ ÷ ‖d‖",
            "size of the point ÷ size of the direction", "scale", "", where=_on("d.adapts")),
        _update("{h.learning_rate} · {d.ratio} · {d.direction}", "rate · ratio · direction",
                "d.adapts"),
        _update("{h.learning_rate} · {d.direction}", "rate · direction", "not d.adapts"),
        _MOVED,
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


# Others ------------------------------------------------------------------------------------------

_FTRL = _rule(
    (
        _GRADIENT,
        Row("sum", "{d.kept} {+d.fresh} {+d.anchor} = **{d.memory}**", "−z",
            "all −g so far, and what ties it to its points", "memory", _ALIKE,
            (("d.kept", "kept"), ("d.fresh", "gradient"), ("d.anchor", "decay")), arrow=True),
        Row("strength", "{d.after} ÷ {h.learning_rate} + {d.ridge} = **{d.strength}**",
            "n^[q] ÷ η + 2λ₂", "how firmly the gradients so far hold the point", "scale", _OWN,
            where=_on("h.l2 > 0")),
        Row("strength", "{d.after} ÷ {h.learning_rate} = **{d.strength}**", "n^[q] ÷ η",
            "how firmly the gradients so far hold the point", "scale", _OWN,
            where=_on("not h.l2 > 0")),
        Row("target", "{d.sum} ÷ {d.strength} = **{p.new}**", "x*",
            "sum ÷ strength: the point itself, not a step from the last one", "target", "",
            where=_on("not h.l1 > 0")),
        Row("target", "{d.sum} ÷ {d.strength} = **{p.new}**", "x*",
            "sum, {h.l1} nearer to 0, ÷ strength", "target", "", where=_on("h.l1 > 0")),
        _update("{p.new} {+d.away}", "target − x", "1", (("p.new", ""), ("d.away", ""))),
        _MOVED,
    ),
    {
        "after": "new.squared ** -h.lr_power",
        "before": "old.squared ** -h.lr_power",
        "kept": "-old.linear",
        "fresh": "-g",
        "anchor": "(d.after - d.before) / h.learning_rate * p",
        "memory": "-new.linear",
        "ridge": "2 * h.l2",
        "strength": "d.after / h.learning_rate + 2 * h.l2",
        "sum": "d.memory - max(min(d.memory, h.l1), -h.l1)",
        "target": "d.sum / d.strength",
        "away": "-p",
    },
    "p.new - p",
)  # fmt: skip

_DPSGD = _rule(
    (
        _GRADIENT,
        Row("clipped", "{d.factor} · {d.down} = **{d.cut}**", "−g", "no longer than {h.clip}",
            "gradient", _ALIKE, where=_on("not 1 - d.factor < 1e-12"), arrow=True),
        Row("with noise", "{d.cut} {+d.noise} = **{d.noisy}**", "−(g + z)",
            "random noise, for privacy", "memory", _ALIKE,
            (("d.cut", "gradient"), ("d.noise", "noise")), _on("d.counts"), arrow=True),
        _update("{h.learning_rate} · {d.noisy}", "rate · −(g + z)", "d.counts"),
        _update("{h.learning_rate} · {d.cut}", "rate · −g", "not d.counts"),
        _MOVED,
    ),
    {
        "factor": "1 / max(norm(g) / h.clip, 1)",
        "cut": "d.down * d.factor",
        "noise": "-term.noise",
        "noisy": "d.cut + d.noise",
        "counts": "h.sigma > 0 and norm(d.noise) > 5e-5 * norm(d.cut)",
    },
    "h.learning_rate * (d.noisy if h.sigma > 0 else d.cut)",
)  # fmt: skip

_MUON = _rule(
    (
        _GRADIENT,
        _memory("{h.momentum} of its memory, and all of −g", "−v"),
        _memory("looks ahead: {h.momentum} of the new momentum, and −g once more", "−(g + μv)",
                label="look ahead", where="h.use_nesterov", kept="d.ahead_kept",
                result="d.ahead"),
        Row("length", "**{d.length}**", "‖·‖", "a point is a matrix of one column: it is divided "
            "by its length", "scale", _ALIKE),
        Row("step", "{h.learning_rate} · {d.rows} · {d.way} ÷ {d.length} = **{d.step}**", "",
            "rate · √rows · direction", "step", _UPDATE, where=_on(_DECAYS)),
        _decay("h.weight_decay", _DECAYS),
        _update("{h.learning_rate} · {d.rows} · {d.way} ÷ {d.length}",
                "rate · √rows · momentum ÷ its length", f"not {_DECAYS}"),
        _update("{d.step} {+d.decay}", "step + weight decay", _DECAYS,
                (("d.step", "step"), ("d.decay", "decay"))),
        _MOVED,
    ),
    {
        "kept": "-(h.momentum * old.velocity)",
        "fresh": "-g",
        "memory": "-new.velocity",
        "ahead_kept": "h.momentum * d.memory",
        "ahead": "d.down + d.ahead_kept",
        "way": "d.ahead if h.use_nesterov else d.memory",
        "rows": "norm(1)",
        "length": "norm(d.way) + h.epsilon + (0 if norm(d.way) > 0 else 1)",
        "step": "h.learning_rate * d.rows * d.way / d.length",
        "back": "-p",
        "decay": "-(h.learning_rate * h.weight_decay * p)",
    },
    "d.step + d.decay",
)  # fmt: skip


def _searched(note: str) -> Rule:
    """Return the lines of a method whose direction and length no slot shows."""
    moves = "norm(update) > 0"
    return _rule(
        (
            _GRADIENT,
            Row("direction", "**{d.unit}**", "d", note, "step", _OWN, where=_on(moves)),
            _update("{d.length} · {d.unit}", "length, from the line search · direction", moves),
            Row("update", "**{update}**", "Δ", "the line search evaluates here; the point waits",
                "update", _UPDATE, where=_on(f"not {moves}")),
            _MOVED,
        ),
        {"length": "norm(update)", "unit": "update / d.length"},
    )  # fmt: skip


_STEEPEST = _rule(
    (
        _GRADIENT,
        _update("{d.length} · {d.down}", "length, from the line search · −g", "norm(update) > 0"),
        Row("update", "**{update}**", "Δ", "the line search evaluates here; the point waits",
            "update", _UPDATE, where=_on("not norm(update) > 0")),
        _MOVED,
    ),
    {"length": "norm(update) / norm(g)"},
)  # fmt: skip

RULES: dict[type[Optimizer], Rule] = {
    SGD: _SGD,
    Momentum: _MOMENTUM,
    Adagrad: _ADAGRAD,
    DecayedAdagrad: _DECAYED_ADAGRAD,
    Adadelta: _ADADELTA,
    Adam: _ADAM,
    AdamWithoutCorrection: _UNCORRECTED,
    AdamW: _ADAMW,
    Adamax: _ADAMAX,
    NAdam: _NADAM,
    RAdam: _RADAM,
    RMSProp: _RMSPROP,
    Rprop: _RPROP,
    Ftrl: _FTRL,
    Lamb: _LAMB,
    LarsMomentum: _LARS,
    ASGD: _ASGD,
    Lion: _LION,
    Dpsgd: _DPSGD,
    Muon: _MUON,
    LBFGS: _searched("built from the last steps and how the gradient changed over them"),
    SteepestDescent: _STEEPEST,
    ConjugateGradient: _searched("−g, bent towards the last direction where that leads down"),
    Newton: _searched("−g, with every direction of curvature divided by its curvature"),
}
"""The lines of every class of the library."""


# What wrappers do afterwards ---------------------------------------------------------------------

WRAPPER_TERMS = ("slow", "fast", "lead", "synchronised", "average", "lag")
"""Terms that wrappers add to a recording; they have lines of their own."""

_LOOK_AHEAD = _rule(
    (
        Row("jump back", "{d.stay} · {d.behind} = **{d.jump}**", "φ − θ",
            "every {h.k} steps it goes {%d.stay} % of the way back to the slow weights φ",
            "wrapper", _UPDATE, where=_on("term.synchronised"), arrow=True),
        Row("LookAhead", "{axis} = φ: {p.new} → **{d.synchronised}**", role="position",
            parts=(("p.new", ""), ("d.jump", "")), where=_on("term.synchronised")),
        Row("slow weights", "φ = **{term.slow}**", "φ",
            "they wait: every {h.k} steps the point goes back towards them", "wrapper",
            where=_on("not term.synchronised")),
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
_EMA = _rule(
    (
        Row("average", "{p.new} {+d.lag} = **{term.average}**", "x̄",
            "of all points so far; each step back counts × {h.decay}", "wrapper",
            parts=(("p.new", ""), ("d.lag", ""))),
    ),
    {"lag": "-term.lag"},
    computed=_AVERAGES,
)  # fmt: skip
_MEAN = _rule(
    (
        Row("average", "{p.new} {+d.lag} = **{term.average}**", "x̄",
            "mean of the points of its window", "wrapper",
            parts=(("p.new", ""), ("d.lag", ""))),
    ),
    {"lag": "-term.lag"},
    computed=_AVERAGES,
)  # fmt: skip


# What comes before the rule ----------------------------------------------------------------------


def _clip(clip: Any) -> tuple[list[Row], str]:
    """Return the lines of a gradient clip, and minus the clipped gradient as an expression."""
    if clip is None:
        return [], "d.raw"
    row = Row("clipped", "**{d.clipped}**", "−g", "", "gradient", _ALIKE, arrow=True,
              where=_on("norm(d.clipped - d.raw) > 0"))  # fmt: skip
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


def _before(template: Optimizer, rule: Rule) -> Rule:
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
        rows = [Row("changed", "**{d.clipped}**", "−g", note, "gradient", _ALIKE, arrow=True)]
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
                "gradient", _ALIKE, (("d.clipped", "gradient"), ("d.penalty", "decay")),
                arrow=True)
        )  # fmt: skip
    return Rule((rule.rows[0], *rows, *rule.rows[1:]), derived, computed, rule.tips)


# Finding a rule ----------------------------------------------------------------------------------

ROLES: dict[str, str] = {
    **dict.fromkeys(
        ["raw", "g", "d.raw", "d.down", "d.given", "d.fresh", "d.clipped", "d.cut", "d.mean_fresh",
         "d.step_fresh", "d.pulled", "d.with_penalty"], "gradient",
    ),
    **dict.fromkeys(
        ["d.kept", "d.memory", "d.ahead", "d.ahead_kept", "d.way", "d.noisy", "d.sum"], "memory"
    ),
    **dict.fromkeys(
        ["d.squares", "d.square", "d.scale", "d.largest", "d.newest", "d.faded", "d.root",
         "d.spread", "d.strength", "d.share", "d.ratio", "d.length", "new.rates", "d.after"],
        "scale",
    ),
    **dict.fromkeys(["d.decay", "d.pull", "d.penalty", "d.anchor"], "decay"),
    **dict.fromkeys(["update", "d.step", "d.step_kept"], "update"),
    **dict.fromkeys(["d.jump", "d.behind", "term.slow", "term.average", "d.lag"], "wrapper"),
}  # fmt: skip
"""What the numbers of a line are: they have the color of that."""


def rule_of(template: Optimizer, slots: Sequence[str], terms: Sequence[str]) -> Rule:
    """Return the lines of a step of a template.

    A class outside the table, such as a user's class or a subclass that changes the rule, has a
    line for every slot and term; so has an optimizer with settings that are functions.
    """
    template, layers = layers_of(template)
    own = [name for name in terms if name not in WRAPPER_TERMS]
    rule = _before(template, _own_rule(template, slots, own))
    for layer in layers:
        more = _LOOK_AHEAD if isinstance(layer, LookAhead) else _MEAN
        if isinstance(layer, Averaged) and isinstance(layer.average, ExponentialMovingAverage):
            more = _EMA
        rule = Rule(
            (*rule.rows, *more.rows),
            {**more.derived, **rule.derived},
            {**rule.computed, **more.computed},
            rule.tips,
        )
    return rule


def _own_rule(template: Optimizer, slots: Sequence[str], terms: Sequence[str]) -> Rule:
    """Return the lines of an optimizer without its wrappers."""
    cls = type(template)
    plain = not any(callable(value) for value in template.settings.values())
    for known, rule in RULES.items():
        same = issubclass(cls, known) and all(
            getattr(cls, name, None) is getattr(known, name, None)
            for name in ("update", "scalars", "step", "_choose_direction", "_direction_from")
        )
        if plain and same:
            return rule
    rows = (
        _GRADIENT,
        *(Row(name, f"{{old.{name}}} → **{{new.{name}}}**") for name in slots),
        *(
            Row(name, f"**{{term.{name}}}**")
            for name in terms
            if name not in ("update", "used_gradient")
        ),
        Row("update", "**{update}**", "Δ", "what the rule adds to the point", "update", _UPDATE,
            arrow=True),
        _MOVED,
    )  # fmt: skip
    return _rule(rows, {})
