"""The lines of a step: their numbers lead to the step that the engine takes, in every rule."""

import math
import re

import numpy as np
import pytest

import optlab as ol
from optlab.optimizer import Optimizer
from optlab.optimizer.regularizer import L1Decay
from optlab.viz.explorer.state import optimizer_classes, usual_template
from optlab.viz.explorer.step_formulas import evaluate, readers, shown_rows, written_sum
from optlab.viz.explorer.step_rules import RULES

O = ol.optimizer  # noqa: E741
STEPS = 40
SHOWN = (1, 2, 3, 5, 6, 12, 25, 40)

GIVEN = {
    "Nesterov": O.Momentum(0.001, use_nesterov=True, rescale_grad=0.5),
    "RMSProp with momentum": O.RMSProp(0.01, momentum=0.5),
    "RMSProp centered": O.RMSProp(0.01, centered=True, momentum=0.5),
    "RMSProp centered, no momentum": O.RMSProp(0.01, centered=True),
    "RMSProp, large epsilon": O.RMSProp(0.01, epsilon=0.5),
    "AMSGrad": O.Adam(0.05, amsgrad=True, beta2=0.5),
    "Adam, large epsilon": O.Adam(0.05, epsilon=0.1),
    "AdamW without decay": O.AdamW(0.05, weight_decay=0.0),
    "AdamW": O.AdamW(0.05, weight_decay=0.3),
    "AMSGrad with decay": O.AdamW(0.05, amsgrad=True, beta2=0.5),
    "RAdam, soon rectified": O.RAdam(0.05, beta2=0.9),
    "Lion with decay": O.Lion(0.01, weight_decay=0.2),
    "ASGD of batches": O.ASGD(0.001, batch_num=4),
    "ASGD with decay": O.ASGD(0.001, batch_num=3, weight_decay=0.4),
    "Ftrl with penalties": O.Ftrl(0.1, l1=0.5, l2=0.3, lr_power=-0.6),
    "Lamb without decay": O.Lamb(0.01, lamb_weight_decay=0.0),
    "Lamb, always": O.Lamb(0.01, lamb_weight_decay=0.0, always_adapt=True),
    "LARS without decay": O.LarsMomentum(0.001, 0.9, lars_weight_decay=0.0),
    "LARS rescaled": O.LarsMomentum(0.1, 0.9, lars_weight_decay=0.1, rescale_grad=2.0),
    "Rprop within limits": O.Rprop(0.01, learning_rate_range=(0.005, 0.02)),
    "Dpsgd with noise": O.Dpsgd(0.01, clip=1.0, sigma=0.5),
    "Dpsgd without noise": O.Dpsgd(0.01, clip=1.0, sigma=0.0),
    "Muon": O.Muon(0.01, weight_decay=0.1),
    "Muon, heavy ball": O.Muon(0.01, use_nesterov=False),
    "clip by norm": O.SGD(0.01, grad_clip=ol.nn.ClipGradByNorm(1.0)),
    "clip by global norm": O.Adam(0.05, grad_clip=ol.nn.ClipGradByGlobalNorm(2.0)),
    "clip by value": O.Momentum(0.001, grad_clip=ol.nn.ClipGradByValue(1.0, -3.0)),
    "L2": O.SGD(0.01, weight_decay=0.5),
    "L1": O.Adam(0.05, weight_decay=L1Decay(0.5)),
    "clip and L2": O.RMSProp(0.01, weight_decay=0.5, grad_clip=ol.nn.ClipGradByNorm(0.5)),
    "LookAhead": O.LookAhead(O.Momentum(0.001), alpha=0.3, k=3),
    "EMA": O.ExponentialMovingAverage.around(O.Adam(0.05), decay=0.8),
    "ModelAverage": O.ModelAverage.around(O.SGD(1e-3), 0.4, min_average_window=3),
}
PLAIN = {
    name: usual_template(cls, {"learning_rate": 0.003}) for name, cls in optimizer_classes().items()
}
ALL = PLAIN | GIVEN


def test_every_class_of_the_library_has_lines_of_its_own():
    assert set(RULES) == set(optimizer_classes().values())


@pytest.fixture(scope="module")
def models():
    """Return the model of a template by name, each built once."""
    built = {}

    def find(name):
        if name not in built:
            built[name] = ol.explore("beale", {name: ALL[name]}, steps=STEPS).model
        return built[name]

    return find


def numbers_of(model, name, step):
    rate = model.runs[name].rates.index(
        getattr(ALL[name], "inner_optimizer", ALL[name]).settings["learning_rate"]
        if name not in ("EMA", "ModelAverage")
        else model.runs[name].rates[model.rate_index(name)]
    )
    return rate, [model.numbers(name, rate, step, c) for c in (0, 1)]


@pytest.mark.parametrize("name", ALL)
def test_the_lines_lead_to_the_engine_s_step(models, name):
    """The expressions, of recorded slots before the step and the gradient, give its update."""
    model = models(name)
    rule = model.rule(name)
    for step in SHOWN:
        rate, values = numbers_of(model, name, step)
        runs = model.runs[name]
        if runs.stopped[rate] >= 0 and step > runs.stopped[rate]:
            continue
        engine = [v["update"] for v in values]
        assert np.isfinite(engine).all()
        if "update" in rule.computed:
            unrecorded = [{k: x for k, x in v.items() if k != "update"} for v in values]
            own = [read("update") for read in readers(rule, unrecorded)]
            size = max(map(abs, engine)) + 1e-12 * max(abs(v["p"]) for v in values)
            np.testing.assert_allclose(own, engine, rtol=1e-9, atol=1e-9 * size)
        if "g" in rule.computed:
            unrecorded = [{k: x for k, x in v.items() if k != "g"} for v in values]
            own = [read("g") for read in readers(rule, unrecorded)]
            used = runs.terms.get("used_gradient")
            if used is not None:
                np.testing.assert_allclose(own, used[rate, step - 1], rtol=1e-12, atol=1e-12)
        each = readers(rule, values)
        for read in each:
            for row in shown_rows(rule, each[0], each):
                if not row.parts:
                    continue
                parts = [read(part) for part, _ in row.parts]
                scale = max(map(abs, parts))
                assert sum(parts) == pytest.approx(read(row.result), rel=1e-9, abs=1e-9 * scale), (
                    row.label,
                    step,
                )


def value_of(text):
    """Compute a written side of an equation as a pupil would: what it says, digit by digit."""
    text = text.replace("−", "-").replace("·", "*").replace("÷", "/").replace("^", "**")
    text = re.sub(r"√\(", "sqrt(", text)
    text = re.sub(r"√max", "sqrt_max", text)
    text = text.replace(", within limits", "")
    names = {
        "sqrt": math.sqrt,
        "sqrt_max": lambda a, b: math.sqrt(max(a, b)),
        "max": max,
        "sign": lambda x: (x > 0) - (x < 0),
    }
    return eval(text, {"__builtins__": {}}, names)


@pytest.mark.parametrize("name", ALL)
def test_what_is_written_adds_up(models, name):
    model = models(name)
    for step in SHOWN:
        rate, _ = numbers_of(model, name, step)
        runs = model.runs[name]
        if runs.stopped[rate] >= 0 and step > runs.stopped[rate]:
            continue
        rule, (_, values) = model.rule(name), numbers_of(model, name, step)
        each = readers(rule, values)
        rows = shown_rows(rule, each[0], each)
        for c in (0, 1):
            written = model.what_happened(name, step, c, rate)
            assert len(written) == len(rows)
            for row, (label, text, _) in zip(rows, written, strict=True):
                assert "not a number" not in text, (label, text)
                if "=" not in text or row.role == "position" or "φ" in text:
                    continue
                left, right = text.split(" = ")
                if "limits" in left:
                    continue
                found, said = value_of(left), value_of(right)
                if row.parts:  # to the last digit
                    assert found == pytest.approx(said, rel=1e-12, abs=1e-15), (label, text)
                else:
                    assert found == pytest.approx(said, rel=2e-3, abs=1e-12), (label, text)


@pytest.mark.parametrize("name", ALL)
def test_numbers_have_the_sign_of_the_step(models, name):
    """A bar of the gradient points downhill, that of the update along the update."""
    model = models(name)
    rule = model.rule(name)
    assert rule.rows[0].label == "−gradient"
    _, values = numbers_of(model, name, 3)
    each = readers(rule, values)
    for c in (0, 1):
        assert each[c](rule.rows[0].result) == -values[c]["raw"]
        [update] = [row for row in shown_rows(rule, each[0], each) if row.role == "update"]
        assert each[c](update.result) == values[c]["update"]


@pytest.mark.parametrize("name", ALL)
def test_notes_are_whole_sentences(models, name):
    for step in SHOWN:
        notes, tips = models(name).step_notes(name, step)
        for text in (*notes, *tips):
            assert "{" not in text
            assert "not a number" not in text


MEMORYLESS = ("SGD", "Adagrad", "DecayedAdagrad", "Rprop", "Dpsgd", "SteepestDescent", "ASGD")


@pytest.mark.parametrize("name", MEMORYLESS)
def test_rules_without_a_memory_do_not_speak_of_one(models, name):
    notes, tips = models(name).step_notes(name, 5)
    labels = [label for label, _, _ in models(name).what_happened(name, 5)]
    assert "momentum" not in labels
    assert not any(word in text for text in (*notes, *tips) for word in ("memory", "momentum"))


def test_bias_correction_is_explained_while_it_acts():
    model = ol.explore("beale", {"Adam": O.Adam(0.01)}, steps=400).model
    notes, tips = model.step_notes("Adam", 5)
    plain = [note.replace("\N{NO-BREAK SPACE}", " ") for note in notes]
    assert "0.9 of memory, 0.1 of −g, ÷ (1 − 0.9^5)" in plain
    [tip] = tips
    assert "41 %" in tip
    assert "0.5 %" in tip
    rate = model.rate_index("Adam")
    m, v = (model.runs["Adam"].slots[k][rate, 4] for k in ("moment1", "moment2"))
    corrected = (m / (1 - 0.9**5)) / (np.sqrt(v / (1 - 0.999**5)) + 1e-8)
    ratio = np.linalg.norm(m / (np.sqrt(v) + 1e-8)) / np.linalg.norm(corrected)
    assert float(re.search(r"would be ([\d.]+) times", tip)[1]) == pytest.approx(ratio, rel=0.05)
    late, _ = model.step_notes("Adam", 400)
    assert "0.9 of memory, 0.1 of −g" in late


class Own(Optimizer):
    hyperparameters = {"learning_rate": 0.1}
    slots = {"sign": 0.0}

    def update(self, p, g, s, h, c):
        sign = np.sign(g)
        return p - h.learning_rate * sign, {"sign": sign}, {"size": abs(g)}


class Changed(O.Adam):
    def update(self, p, g, s, h, c):
        return super().update(p, 2 * g, s, h, c)


@pytest.mark.parametrize("template", [Own(0.05), Changed(0.05)])
def test_a_rule_that_is_not_known_is_shown_as_it_was_recorded(template):
    model = ol.explore("beale", {"e": template}, steps=10).model
    rows = model.what_happened("e", 4)
    labels = [label for label, _, _ in rows]
    assert labels[0] == "−gradient"
    assert set(model.runs["e"].slots) <= set(labels)
    assert "momentum" not in labels
    assert "not a number" not in " ".join(text for _, text, _ in rows)


def test_settings_on_a_slider_change_the_lines():
    """The same lines serve every value of a setting: what appears is decided in each step."""
    with_momentum = ol.explore("beale", {"e": O.RMSProp(0.01, momentum=0.9)}, steps=5).model
    without = ol.explore("beale", {"e": O.RMSProp(0.01)}, steps=5).model
    assert with_momentum.rule("e") is without.rule("e")
    assert with_momentum.step_notes("e", 3) != without.step_notes("e", 3)


@pytest.mark.parametrize(
    ("parts", "total"),
    [([-151.7123, 33.1416], -118.5707), ([1.4996, 1.4996], 2.9992), ([1e-9, 2e-9], 3e-9),
     ([3.00004, -3.0], 0.00004), ([0.0, 0.0], 0.0), ([123456.0, 7.0], 123463.0)],
)  # fmt: skip
def test_written_sums_add_up(parts, total):
    texts, end = written_sum(parts, total)
    each = [float(text.replace("−", "-")) for text in texts]
    largest = max(map(abs, parts))
    assert sum(each) == pytest.approx(float(end.replace("−", "-")), abs=1e-12 * largest)
    assert each == pytest.approx(parts, abs=1e-3 * largest)


def test_operators_of_expressions():
    assert evaluate(["norm", "x"], lambda _: 0.0, [lambda _: 3.0, lambda _: 4.0]) == 5
    assert evaluate(["product", "k", 4, "k"], {}.get) == 24
    assert evaluate(["if", [">", 2, 1], "x", "y"], {"x": 1.0}.__getitem__) == 1
