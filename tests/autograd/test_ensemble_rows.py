"""Every function of the gradient checks, on an ensemble and member by member."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import optlab as ol
from optlab.backend.ensemble import EnsembleArray, EnsembleError
from tests.autograd.rows import ROWS, Case


def _param(function: Any, case: Case) -> Any:
    asks = pytest.mark.xfail(raises=EnsembleError, strict=False, reason="prod looks for zeros")
    return pytest.param(case, id=case.label, marks=[asks] if function is np.prod else [])


CASES = [_param(function, case) for function, row in ROWS.items() for case in row]

#: Functions that give each member a length of its own, or ask for values: refused by name.
REFUSED = frozenset(
    "extract piecewise trim_zeros union1d unique unique_all unique_counts unique_inverse "
    "unique_values".split()
)


def members_near(x: np.ndarray, count: int) -> np.ndarray:
    """Give copies of `x`, each moved a little, in another way."""
    noise = np.random.default_rng((count, *x.shape)).uniform(-1e-3, 1e-3, (count, *x.shape))
    return np.asarray(x + noise)


def sizes_that_coincide(args: tuple[np.ndarray, ...]) -> int:
    """Give a number of members that some axis is as long as."""
    lengths = [length for x in args for length in x.shape if length > 1]
    return lengths[-1] if lengths else 2


def weight(shape: tuple[int, ...]) -> np.ndarray:
    return np.asarray(np.cos(np.arange(np.prod(shape, dtype=int))).reshape(shape))


def value_and_gradients(case: Case, args: Any) -> tuple[Any, Any]:
    y, pullback = ol.vjp(case.f, *args)
    return y, pullback(weight(y.shape))


@pytest.mark.parametrize("case", CASES)
def test_an_ensemble_equals_separate_runs(case: Case) -> None:
    count = sizes_that_coincide(case.args)
    stacked = [members_near(x, count) for x in case.args]
    try:
        y, gradients = value_and_gradients(case, [EnsembleArray(x) for x in stacked])
    except EnsembleError:
        if case.label.split()[0] in REFUSED:
            return
        raise
    for k in range(count):
        wanted, wanted_gradients = value_and_gradients(case, [x[k] for x in stacked])
        pairs = [(y, wanted), *zip(gradients, wanted_gradients, strict=True)]
        for got, alone in pairs:
            assert got.shape == alone.shape
            assert got.dtype == alone.dtype
            got_k = got.members[k] if isinstance(got, EnsembleArray) else got
            np.testing.assert_allclose(got_k, alone, rtol=1e-11, atol=1e-13)
