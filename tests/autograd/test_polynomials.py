"""Polynomials: refusals, and lengths that depend on values."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import optlab as ol
from optlab.backend.ensemble import EnsembleArray, EnsembleError

P = ol.to_tensor([1.0, 2.0, 3.0], "float64", requires_grad=True)

REFUSED: dict[str, tuple[Any, type[Exception], str]] = {
    "a derivative of order -1": (lambda: np.polyder(P, -1), ValueError, "order 0 or more; got -1"),
    "an integral of order -1": (lambda: np.polyint(P, -1), ValueError, "order 0 or more; got -1"),
    "too few constants": (lambda: np.polyint(P, 3, [1.0, 2.0]), ValueError, "each of 3 integrals"),
    "zeros in no row": (lambda: np.poly(np.outer(P, P)[:2]), ValueError, r"got shape \(2, 3\)"),
    "a power of -1": (lambda: np.polyfit(P, P, -1), ValueError, "got deg=-1"),
    "x of another length": (lambda: np.polyfit([1, 2], P, 1), TypeError, r"x as a .* \(2,\)"),
    "w of another length": (lambda: np.polyfit(P, P, 1, w=[1]), TypeError, r"w as a .* \(1,\)"),
    "too few points": (lambda: np.polyfit(P, P, 2, cov=True), ValueError, "more than 3 points"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_makes_no_sense_is_refused(name: str) -> None:
    call, error, message = REFUSED[name]
    with pytest.raises(error, match=message):
        call()


def test_a_rest_that_is_only_rounding_is_cut_off() -> None:
    quotient, rest = np.polydiv(np.polymul(P, [1.0, -1.0]), [1.0, -1.0])
    np.testing.assert_allclose(quotient.detach(), [1.0, 2.0, 3.0])
    assert rest.shape == (1,)


def test_a_fit_without_enough_points_warns() -> None:
    with pytest.warns(np.exceptions.RankWarning, match="poorly conditioned"):
        np.polyfit([1.0, 1.0, 1.0], P, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        np.polyfit([1.0, 2.0, 3.0], P, 1)


def test_the_members_of_an_ensemble_have_one_length() -> None:
    ragged = EnsembleArray(np.array([[0.0, 1.0], [1.0, 1.0]]))
    with pytest.raises(EnsembleError, match=r"polymul .* different numbers"):
        np.polymul(ol.Tensor(ragged), np.array([1.0, 2.0]))
