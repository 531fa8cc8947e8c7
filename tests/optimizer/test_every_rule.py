"""Properties of every rule: on a device, in a race, after a resume, with row-sparse gradients."""

from __future__ import annotations

from html import escape

import numpy as np
import pytest

import optlab as ol
from optlab.optimizer.wrappers import Wrapper
from tests import guarded
from tests.optimizer.helpers import EACH, give, random

O = ol.optimizer  # noqa: E741

WITH_NOISE = {**EACH, "noise": lambda **common: O.Dpsgd(0.1, sigma=0.5, **common)}


@pytest.mark.parametrize("name", list(WITH_NOISE))
def test_on_a_device_every_rule_stays_there_and_gives_the_same(name):
    """A guarded array raises if it is converted to NumPy, or combined with a NumPy array."""
    ol.seed(0)
    here = ol.Parameter(random(3, 2), name="p")
    optimizer = WITH_NOISE[name](parameters=[here])
    ol.seed(0)
    there = ol.Parameter(guarded.guarded(random(3, 2)), name="p")
    other = WITH_NOISE[name](parameters=[there])
    for t in range(4):
        g = random(3, 2, seed=t + 1)
        give(here, g)
        (there * ol.to_tensor(guarded.guarded(g))).sum().backward()
        for one in (optimizer, other):
            one.step()
            one.clear_grad()
    np.testing.assert_allclose(guarded.values(there), here.numpy(), rtol=1e-14)


@pytest.mark.parametrize("name", list(WITH_NOISE))
def test_every_rule_races_and_is_recorded(name):
    template = WITH_NOISE[name]()
    race = ol.compare("quadratic", {"run": template}, steps=15)
    trace = race["run"]
    assert template.is_template
    assert race.evaluations["run"].tolist() == list(range(1, 16))
    assert len(trace) == 15
    assert set(trace.slots) == set(
        template.slots_for(template.bind([ol.Parameter([1.0])]).groups[0].h)
    )
    before, after = trace.parameters["point"][:-1], trace.parameters["point"][1:]
    np.testing.assert_allclose(trace.terms["update"]["point"], after - before, atol=1e-12)


@pytest.mark.parametrize("name", list(WITH_NOISE))
@pytest.mark.parametrize("cut", [1, 4])
def test_a_resumed_run_goes_on_to_the_bit(name, cut, tmp_path):
    def run(optimizer, ps, steps):
        for t in steps:
            for i, p in enumerate(ps):
                give(p, random(*p.shape, seed=10 * t + i))
            optimizer.step()
            optimizer.clear_grad()

    def made(order=1):
        ps = [ol.Parameter(random(3, 2, seed=8), name="a"), ol.Parameter(random(4), name="b")]
        return WITH_NOISE[name](parameters=ps[::order]), ps

    ol.seed(1)
    optimizer, ps = made()
    run(optimizer, ps, range(cut))
    ol.save([optimizer.state_dict(), *ps], str(tmp_path / "state"))
    run(optimizer, ps, range(cut, 8))
    ol.seed(2)
    resumed, others = made(order=-1)
    state, *values = ol.load(str(tmp_path / "state"))
    for p, value in zip(others, values, strict=True):
        p.set_value(value)
    resumed.set_state_dict(state)
    run(resumed, others, range(cut, 8))
    for p, q in zip(ps, others, strict=True):
        np.testing.assert_array_equal(p.numpy(), q.numpy())


# Row-sparse gradients -----------------------------------------------------------------------------


def looked_up(optimizer, table, sparse, steps=5):
    rng = np.random.default_rng(3)
    for _ in range(steps):
        rows, factors = rng.integers(0, 5, 4), rng.standard_normal((4, 3))
        found = ol.nn.functional.embedding(ol.to_tensor(rows), table, sparse=sparse)
        (found * factors).sum().backward()
        optimizer.step()
        optimizer.clear_grad(set_to_zero=False)
    return table.numpy()


@pytest.mark.parametrize("name", list(EACH))
def test_a_row_sparse_gradient_gives_what_the_whole_one_gives(name):
    p, q = ol.Parameter(random(6, 3)), ol.Parameter(random(6, 3))
    one = looked_up(EACH[name](parameters=[p]), p, sparse=True)
    other = looked_up(EACH[name](parameters=[q]), q, sparse=False)
    np.testing.assert_allclose(one, other, rtol=1e-13, atol=1e-15)


def test_lazy_adamw_leaves_rows_without_a_gradient_as_they_are():
    p = ol.Parameter(random(6, 3), name="p")
    optimizer = O.AdamW(0.1, weight_decay=0.5, lazy_mode=True, parameters=[p])
    moved_to = looked_up(optimizer, p, sparse=True)
    np.testing.assert_array_equal(moved_to[5], random(6, 3)[5])  # never looked up: no decay either
    assert not np.any(moved_to[:5] == random(6, 3)[:5])
    moments = optimizer.state_dict()["p.moment1"].numpy()
    assert np.all(moments[5] == 0)
    assert np.all(moments[:5] != 0)


ALL = [
    getattr(room, name)
    for room in (O, ol.fluid.optimizer)
    for name in room.__all__
    if isinstance(getattr(room, name), type)
    and issubclass(getattr(room, name), O.Optimizer)
    and not issubclass(getattr(room, name), Wrapper)
    and name != "Optimizer"
]


@pytest.mark.parametrize("cls", ALL, ids=lambda cls: cls.__name__)
def test_every_class_has_a_formula_and_shows_it(cls):
    assert r"\leftarrow" in cls.formula
    assert cls.formula.count("{") == cls.formula.count("}")
    needed = {"momentum": 0.5} if issubclass(cls, (O.LarsMomentum, O.Momentum)) else {}
    if issubclass(cls, O.DGCMomentum):
        needed = {"momentum": 0.5, "rampup_begin_step": 0}
    page = cls(0.1, **needed)._repr_html_()
    assert cls.__name__ in page
    assert escape(cls.formula) in page  # a browser reads it as it was written
