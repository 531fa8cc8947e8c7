"""The formulas of a step of every optimizer of the library, of wrappers, and of a user's own.

All are put together from the same few lines: minus the gradient, clipped and decayed; a memory of
it; a scale that divides it; the update; the new position. What is shown is the direction in which
the optimizer goes, so all numbers of gradients and memories have the sign of a step.
"""

from __future__ import annotations

from collections.abc import Sequence

from optlab.lab import ConjugateGradient, Newton, SteepestDescent
from optlab.optimizer import (
    ASGD,
    LBFGS,
    SGD,
    Adadelta,
    Adagrad,
    Adam,
    Adamax,
    AdamW,
    DecayedAdagrad,
    Dpsgd,
    Ftrl,
    Lamb,
    LarsMomentum,
    Lion,
    Momentum,
    Muon,
    NAdam,
    Optimizer,
    RAdam,
    RMSProp,
    Rprop,
)
from optlab.optimizer.wrappers import layers_of
from optlab.viz.explorer.presets import AdamWithoutCorrection
from optlab.viz.explorer.step_adam import ADAM, ADAMAX, ADAMW, LAMB, NADAM, RADAM, UNCORRECTED
from optlab.viz.explorer.step_formulas import Row, Rule, parsed
from optlab.viz.explorer.step_lines import (
    ALIKE,
    DECAYS,
    GRADIENT,
    MOVED,
    NEGLIGIBLE,
    OWN,
    PLAIN_QUOTIENT,
    SQUARES,
    STARTED_AT_ZERO,
    TYPICAL,
    UPDATE,
    decay_line,
    memory_line,
    rule_from,
    scale_lines,
    update_line,
)
from optlab.viz.explorer.step_surroundings import WRAPPER_TERMS, lines_after, with_lines_before

# Gradient and momentum ---------------------------------------------------------------------------

_SGD = rule_from(
    (GRADIENT, update_line("{h.learning_rate} · {d.down}", "rate · −g"), MOVED),
    {},
    "-(h.learning_rate * g)",
)

_RESCALED = Row(
    "rescaled", "{h.rescale_grad} · {d.given} = **{d.down}**", "−g", "the gradient times a number",
    "gradient", ALIKE, where=parsed("not (1 - h.rescale_grad) * (1 - h.rescale_grad) < 1e-30"),
    arrow=True,
)  # fmt: skip

_MOMENTUM = rule_from(
    (
        GRADIENT,
        _RESCALED,
        memory_line("{h.momentum} of its memory, and all of −g", "−v"),
        memory_line(
            "looks ahead: {h.momentum} of the new momentum, and −g once more",
            "−(g + μv)", label="look ahead", where="h.use_nesterov",
            kept="d.ahead_kept", result="d.ahead",
        ),
        update_line("{h.learning_rate} · {d.memory}", "rate · momentum", "not h.use_nesterov"),
        update_line("{h.learning_rate} · {d.ahead}", "rate · look ahead", "h.use_nesterov"),
        MOVED,
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

_ASGD = rule_from(
    (
        GRADIENT,
        memory_line(
            "mean of the last gradients of {d.seen} batches: this one’s replaces its old one",
            "−d", label="mean", where="h.batch_num > 1",
        ),
        update_line("{h.learning_rate} · {d.down}", "rate · −g: there is one batch",
                "not h.batch_num > 1 and not d.decays"),
        update_line("{h.learning_rate} · {d.memory}", "rate · mean",
                "h.batch_num > 1 and not d.decays"),
        Row("weight decay", "{h.learning_rate} · {d.pull} = **{d.decay}**", "",
            "rate · decay · −x, a pull towards 0", "decay", UPDATE, where=parsed("d.decays")),
        Row("step", "{h.learning_rate} · {d.memory} = **{d.step}**", "", "rate · mean", "step",
            UPDATE, where=parsed("d.decays")),
        update_line("{d.step} {+d.decay}", "step + weight decay", "d.decays",
                (("d.step", "step"), ("d.decay", "decay"))),
        MOVED,
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

_LARS = rule_from(
    (
        GRADIENT,
        _RESCALED,
        Row("with decay", "{d.down} {+d.pull} = **{d.pulled}**", "−(g + λx)",
            "{h.lars_weight_decay} of −x is added", "gradient", ALIKE,
            (("d.down", "gradient"), ("d.pull", "decay")), parsed("h.lars_weight_decay")),
        Row("share", "{h.lars_coeff} · {d.size} ÷ {d.slope} = **{d.share}**", "",
            "size of the point ÷ size of the gradient, decay included", "scale", "",
            where=parsed("h.lars_weight_decay > 0 and d.both")),
        update_line("{d.step_kept} {+d.step_fresh}",
                "{h.momentum} of the last step, and {h.learning_rate} · share · −(g + λx)", "1",
                (("d.step_kept", "kept step"), ("d.step_fresh", "gradient"))),
        MOVED,
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
_LION = rule_from(
    (
        GRADIENT,
        memory_line("{h.beta1} of memory, {d.share1} of −g", "−c", label="direction"),
        Row("step", "{h.learning_rate} · sign({d.memory}) = **{d.step}**", "", "rate · sign",
            "step", UPDATE, where=parsed(_LION_WHERE)),
        decay_line("h.weight_decay", _LION_WHERE),
        update_line("{h.learning_rate} · sign({d.memory})",
                "only the sign counts: each axis moves by the rate", f"not {_LION_WHERE}"),
        update_line("{d.step} {+d.decay}", "step + weight decay", _LION_WHERE,
                (("d.step", "step"), ("d.decay", "decay"))),
        MOVED,
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
    tips=(("1", ("The memory itself keeps {h.beta2} of what it was; of this gradient it takes "
           "{%d.share2} %.")),),
)  # fmt: skip


# Divided by a size -------------------------------------------------------------------------------

_ADAGRAD = rule_from(
    (
        GRADIENT,
        *scale_lines("√({d.squares} + {d.square})", "√s",
                "root of the sum of all g² so far: it never shrinks"),
        update_line(PLAIN_QUOTIENT, "rate · −g ÷ scale"),
        MOVED,
    ),
    {
        "squares": "old.moment",
        "square": "g * g",
        "scale": "sqrt(new.moment) + h.epsilon",
    },
    "-(h.learning_rate * g / d.scale)",
)  # fmt: skip

_DECAYED_ADAGRAD = rule_from(
    (
        GRADIENT,
        *scale_lines(SQUARES, "√s", STARTED_AT_ZERO, where="h.decay**t > 0.05"),
        *scale_lines(SQUARES, "√s", TYPICAL, where="not h.decay**t > 0.05"),
        update_line(PLAIN_QUOTIENT, "rate · −g ÷ scale"),
        MOVED,
    ),
    {
        "squares": "h.decay * old.moment",
        "square": "(1 - h.decay) * g * g",
        "scale": "sqrt(new.moment) + h.epsilon",
    },
    "-(h.learning_rate * g / d.scale)",
)

_EPSILON_INSIDE = f"(h.epsilon > {NEGLIGIBLE} * d.scale * d.scale)"


def _inside(note: str, where: str) -> tuple[Row, ...]:
    """Return the line of a divisor with epsilon under the root."""
    return (
        Row("scale", f"{SQUARES} = **{{d.scale}}**", "√s", note, "scale", ALIKE,
            where=parsed(f"({where}) and not {_EPSILON_INSIDE}")),
        Row("scale", "√({d.squares} + {d.square} + {h.epsilon}) = **{d.scale}**", "√(s + ε)", note,
            "scale", ALIKE, where=parsed(f"({where}) and {_EPSILON_INSIDE}")),
    )  # fmt: skip


_RMSPROP = rule_from(
    (
        GRADIENT,
        *_inside(STARTED_AT_ZERO, "not h.centered and h.rho**t > 0.05"),
        *_inside(TYPICAL, "not h.centered and not h.rho**t > 0.05"),
        Row("mean", "{d.mean_kept} {+d.mean_fresh} = **{d.mean}**", "−m",
            "mean of −g, which the scale leaves out", "mean", ALIKE,
            (("d.mean_kept", "kept mean"), ("d.mean_fresh", "gradient")), parsed("h.centered")),
        Row("scale", "√({d.spread} + {h.epsilon}) = **{d.scale}**", "√(s − m² + ε)",
            "how far g spreads around its mean", "scale", ALIKE, where=parsed("h.centered")),
        update_line(PLAIN_QUOTIENT, "rate · −g ÷ scale", "not h.momentum"),
        update_line("{d.step_kept} {+d.step_fresh}",
                "{h.momentum} of the last step, and {h.learning_rate} · −g ÷ scale", "h.momentum",
                (("d.step_kept", "kept step"), ("d.step_fresh", "gradient"))),
        MOVED,
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

_ADADELTA = rule_from(
    (
        GRADIENT,
        Row("scale", "√({d.squares} + {d.square} + {h.epsilon}) = **{d.scale}**", "√(a + ε)",
            TYPICAL, "scale", ALIKE),
        Row("past steps", "√({old.avg_squared_update} + {h.epsilon}) = **{d.typical}**",
            "√(u + ε)", "typical size of its own steps so far", "step", OWN),
        update_line("{h.learning_rate} · {d.typical} · {d.down} ÷ {d.scale}",
                "rate · past steps · −g ÷ scale"),
        MOVED,
    ),
    {
        "squares": "h.rho * old.avg_squared_grad",
        "square": "(1 - h.rho) * g * g",
        "scale": "sqrt(new.avg_squared_grad + h.epsilon)",
        "typical": "sqrt(old.avg_squared_update + h.epsilon)",
    },
    "-(h.learning_rate * d.typical * g / d.scale)",
)  # fmt: skip

_RPROP = rule_from(
    (
        GRADIENT,
        Row("own rate", "{d.factor} · {d.old_rate} = **{new.rates}**", "r",
            "× {h.etas.1} where g keeps its sign, × {h.etas.0} where it flips", "scale", UPDATE,
            where=parsed("not d.limited")),
        Row("own rate", "{d.factor} · {d.old_rate}, within limits = **{new.rates}**", "r",
            "× {h.etas.1} where g keeps its sign, × {h.etas.0} where it flips; from "
            "{h.learning_rate_range.0} to {h.learning_rate_range.1}", "scale", UPDATE,
            where=parsed("d.limited")),
        update_line("{d.sign} · {new.rates}", "sign of −g · own rate; 0 just after a flip"),
        MOVED,
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


# Others ------------------------------------------------------------------------------------------

_FTRL = rule_from(
    (
        GRADIENT,
        Row("sum", "{d.kept} {+d.fresh} {+d.anchor} = **{d.memory}**", "−z",
            "all −g so far, and what ties it to its points", "memory", ALIKE,
            (("d.kept", "kept"), ("d.fresh", "gradient"), ("d.anchor", "decay")), arrow=True),
        Row("strength", "{d.after} ÷ {h.learning_rate} + {d.ridge} = **{d.strength}**",
            "n^[q] ÷ η + 2λ₂", "how firmly the gradients so far hold the point", "scale", OWN,
            where=parsed("h.l2 > 0")),
        Row("strength", "{d.after} ÷ {h.learning_rate} = **{d.strength}**", "n^[q] ÷ η",
            "how firmly the gradients so far hold the point", "scale", OWN,
            where=parsed("not h.l2 > 0")),
        Row("target", "{d.sum} ÷ {d.strength} = **{p.new}**", "x*",
            "sum ÷ strength: the point itself, not a step from the last one", "target", "",
            where=parsed("not h.l1 > 0")),
        Row("target", "{d.sum} ÷ {d.strength} = **{p.new}**", "x*",
            "sum, {h.l1} nearer to 0, ÷ strength", "target", "", where=parsed("h.l1 > 0")),
        update_line("{p.new} {+d.away}", "target − x", "1", (("p.new", ""), ("d.away", ""))),
        MOVED,
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

_DPSGD = rule_from(
    (
        GRADIENT,
        Row("clipped", "{d.factor} · {d.down} = **{d.cut}**", "−g", "no longer than {h.clip}",
            "gradient", ALIKE, where=parsed("not 1 - d.factor < 1e-12"), arrow=True),
        Row("with noise", "{d.cut} {+d.noise} = **{d.noisy}**", "−(g + z)",
            "random noise, for privacy", "memory", ALIKE,
            (("d.cut", "gradient"), ("d.noise", "noise")), parsed("d.counts"), arrow=True),
        update_line("{h.learning_rate} · {d.noisy}", "rate · −(g + z)", "d.counts"),
        update_line("{h.learning_rate} · {d.cut}", "rate · −g", "not d.counts"),
        MOVED,
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

_MUON = rule_from(
    (
        GRADIENT,
        memory_line("{h.momentum} of its memory, and all of −g", "−v"),
        memory_line("looks ahead: {h.momentum} of the new momentum, and −g once more", "−(g + μv)",
                label="look ahead", where="h.use_nesterov", kept="d.ahead_kept",
                result="d.ahead"),
        Row("length", "**{d.length}**", "‖·‖", "a point is a matrix of one column: it is divided "
            "by its length", "scale", ALIKE),
        Row("step", "{h.learning_rate} · {d.rows} · {d.way} ÷ {d.length} = **{d.step}**", "",
            "rate · √rows · direction", "step", UPDATE, where=parsed(DECAYS)),
        decay_line("h.weight_decay", DECAYS),
        update_line("{h.learning_rate} · {d.rows} · {d.way} ÷ {d.length}",
                "rate · √rows · momentum ÷ its length", f"not {DECAYS}"),
        update_line("{d.step} {+d.decay}", "step + weight decay", DECAYS,
                (("d.step", "step"), ("d.decay", "decay"))),
        MOVED,
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
    return rule_from(
        (
            GRADIENT,
            Row("direction", "**{d.unit}**", "d", note, "step", OWN, where=parsed(moves)),
            update_line("{d.length} · {d.unit}", "length, from the line search · direction", moves),
            Row("update", "**{update}**", "Δ", "the line search evaluates here; the point waits",
                "update", UPDATE, where=parsed(f"not {moves}")),
            MOVED,
        ),
        {"length": "norm(update)", "unit": "update / d.length"},
    )  # fmt: skip


_STEEPEST = rule_from(
    (
        GRADIENT,
        update_line("{d.length} · {d.down}", "length, from the line search · −g",
                    "norm(update) > 0"),
        Row("update", "**{update}**", "Δ", "the line search evaluates here; the point waits",
            "update", UPDATE, where=parsed("not norm(update) > 0")),
        MOVED,
    ),
    {"length": "norm(update) / norm(g)"},
)  # fmt: skip

RULES: dict[type[Optimizer], Rule] = {
    SGD: _SGD,
    Momentum: _MOMENTUM,
    Adagrad: _ADAGRAD,
    DecayedAdagrad: _DECAYED_ADAGRAD,
    Adadelta: _ADADELTA,
    Adam: ADAM,
    AdamWithoutCorrection: UNCORRECTED,
    AdamW: ADAMW,
    Adamax: ADAMAX,
    NAdam: NADAM,
    RAdam: RADAM,
    RMSProp: _RMSPROP,
    Rprop: _RPROP,
    Ftrl: _FTRL,
    Lamb: LAMB,
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
    rule = with_lines_before(template, _own_rule(template, slots, own))
    for layer in layers:
        more = lines_after(layer)
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
        GRADIENT,
        *(Row(name, f"{{old.{name}}} → **{{new.{name}}}**") for name in slots),
        *(
            Row(name, f"**{{term.{name}}}**")
            for name in terms
            if name not in ("update", "used_gradient")
        ),
        Row("update", "**{update}**", "Δ", "what the rule adds to the point", "update", UPDATE,
            arrow=True),
        MOVED,
    )  # fmt: skip
    return rule_from(rows, {})
