"""The method by which a rule runs, and the reason, as `Optimizer.execution` reports them."""

from __future__ import annotations

import re

import numpy as np
import pytest

import optlab as ol
from optlab.optimizer.rule.norms import norm
from tests.optimizer.helpers import EACH

LARGE = 10_000
FAST = "captured, in place and block by block"


class Plain(ol.optimizer.Optimizer):
    hyperparameters = {"learning_rate": 0.1, "extra": None}
    gain = 1.0

    def update(self, p, g, s, h, c):
        return p - h.learning_rate * g, {}


class Copies(Plain):
    def update(self, p, g, s, h, c):
        new = p.copy()
        new[g > 0] -= h.learning_rate
        return new, {}


class Fails(Plain):
    def update(self, p, g, s, h, c):
        if type(p) is not np.ndarray:
            raise ZeroDivisionError("not for me")
        return p - g, {}


class Reads(Plain):
    def update(self, p, g, s, h, c):
        return p - VARIABLE[0] * g, {}


VARIABLE = [1.0]


def after_steps(make, size=LARGE, dtype="float32", steps=3, **options):
    w = ol.Parameter(np.zeros(size, dtype))
    optimizer = make(parameters=[w], **options)
    for _ in range(steps):
        VARIABLE[0] += 1.0
        w.grad = np.ones(size, dtype)
        optimizer.step()
    return optimizer


@pytest.mark.parametrize("name", EACH)
def test_no_rule_of_the_package_fails_to_be_captured(name):
    """`refused` would hold the errors of captures that fail by a defect."""
    optimizer = after_steps(EACH[name])
    assert optimizer.refused == {}
    [way] = optimizer.execution.values()
    if optimizer.draws or optimizer.kind == "matrix":
        assert way.startswith("as it is written: ")
    else:
        assert way == FAST


@pytest.mark.parametrize(
    ("make", "options", "words"),
    [
        (Copies, {}, r"as it is written: the method or attribute .copy .*test_execution.py, line"),
        (Fails, {}, "as it is written: when captured, ZeroDivisionError: not for me"),
        (Reads, {}, "at times as it is written: it does something else than when"),
        (
            lambda **k: Plain(extra=[1], **k),
            {},
            "as it is written: it has a setting that cannot be a key",
        ),
        (Plain, {"size": 5}, "as it is written: fewer than 8,192 elements"),
        (Plain, {"steps": 0}, "not known before a step"),
        (Plain, {"dtype": "float16"}, "as it is written: float16 .* multi_precision=True"),
        (Plain, {"dtype": "float16", "multi_precision": True}, FAST),
        (Plain, {}, FAST),
        (lambda **k: ol.optimizer.LookAhead(Plain(**k)), {}, FAST),
        (ol.optimizer.LBFGS, {"steps": 0}, "as it is written: it has a step of its own"),
    ],
)
def test_why_a_rule_runs_as_it_does(make, options, words):
    optimizer = after_steps(make, **options)
    [(place, way)] = optimizer.execution.items()
    assert place.startswith("group 0, float")
    assert re.search(words, way), way
    assert way.split(":")[0] in optimizer._repr_html_()


def test_copies_and_templates_begin_anew():
    optimizer = after_steps(Copies)
    assert optimizer.refused
    fresh = optimizer.bind([ol.Parameter(np.zeros(LARGE, "float32"))])
    assert list(fresh.execution.values()) == ["not known before a step"]
    assert Plain().execution == {}
    Plain()._repr_html_()


def test_a_constant_of_the_notebook_that_changes_is_seen_wherever_it_matters():
    """The first elements are not affected, and a norm needs two passes."""
    limits = {"limit": 1.0}

    class Clipped(ol.optimizer.Optimizer):
        hyperparameters = {"learning_rate": 0.1}

        def update(self, p, g, s, h, c):
            return p - h.learning_rate * np.where(np.abs(g) > limits["limit"], 0.0, g), {}

    class ClippedByNorm(Clipped):
        kind = "tensor"

        def update(self, p, g, s, h, c):
            p, _ = super().update(p, g, s, h, c)
            return p / np.maximum(1.0, norm(p)), {}

    g = np.linspace(-3, 3, 20000).astype(np.float32)
    g[:2] = 0.1
    for rule in (Clipped, ClippedByNorm):
        limits["limit"] = 1.0
        fast, watched = (ol.Parameter(np.zeros(20000, np.float32)) for _ in range(2))
        for w in (fast, watched):
            w.grad = g
        one, other = rule(parameters=[fast]), rule(parameters=[watched])
        for limit in (1.0, 1.0, 10.0):
            limits["limit"] = limit
            one.step()
            with ol.record(other, probes="light"):
                other.step()
        assert "captured" in str(one.execution)
        assert fast.numpy().tobytes() == watched.numpy().tobytes()
