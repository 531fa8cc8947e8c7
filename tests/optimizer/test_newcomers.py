"""What somebody meets who has read the README alone, and writes the rest by ear."""

from __future__ import annotations

import numpy as np

import optlab as ol
from optlab.optimizer import Adam


def test_an_optimizer_with_a_rate_for_each_member_shows_itself():
    p = ol.Parameter(ol.ensemble(np.tile([-1.5, 2.0], (100, 1))))
    optimizer = Adam(ol.ensemble(np.geomspace(1e-4, 1, 100)), parameters=[p])
    assert "&lt;100 values from 0.0001 to 1&gt;</td>" in optimizer._repr_html_()


def test_the_rate_of_a_group_is_shown_with_its_share():
    p = ol.Parameter(ol.ensemble(np.ones((2, 3))))
    optimizer = Adam(
        ol.ensemble(np.array([0.1, 0.2])), parameters=[{"params": [p], "learning_rate": 0.5}]
    )
    assert "&lt;2 values from 0.05 to 0.1&gt;</td>" in optimizer._repr_html_()


def test_a_class_may_be_made_where_no_module_has_a_name():
    code = """
class Plain(Optimizer):
    hyperparameters = {"learning_rate": 0.1}
    def update(self, p, g, s, h, c):
        return p - h.learning_rate * g, {}
"""
    place = {"Optimizer": ol.optimizer.Optimizer}
    exec(code, place)
    w = ol.Parameter(np.ones(2))
    optimizer = place["Plain"](parameters=[w])
    for _ in range(2):
        (w * 2.0).sum().backward()
        optimizer.step()
        optimizer.clear_grad()
    np.testing.assert_array_equal(w.numpy(), np.ones(2) - 0.1 * 2 - 0.1 * 2)
