"""What the laboratory says to somebody who has read the README alone."""

from __future__ import annotations

import pytest

import optlab as ol
from optlab.optimizer import LookAhead


def test_sweep_takes_no_wrappers():
    with pytest.raises(TypeError, match=r"sweep does not take wrappers such as LookAhead.*compare"):
        ol.sweep("rosenbrock", LookAhead, {"learning_rate": [0.1]})


def test_an_optimizer_of_ones_own_goes_into_the_explorer_in_a_dict():
    with pytest.raises(ValueError, match=r"there is no optimizer 'Mine'.*\{'Mine': Mine\(0.01\)\}"):
        ol.explore("rosenbrock", ["Mine", "Adam"])
    with pytest.raises(ValueError, match=r"Did you mean 'Adam'\?$"):
        ol.explore("rosenbrock", ["Adem"])
