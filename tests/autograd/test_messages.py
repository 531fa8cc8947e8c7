"""Error messages: what was given, what was expected, and what to write instead."""

from __future__ import annotations

import traceback

import numpy as np
import pytest

import optlab as ol
from optlab.backend.arrays import check_matmul_shapes


def test_a_ufunc_of_somebody_else_is_not_called_one_of_numpy() -> None:
    twice = np.frompyfunc(lambda a: 2 * a, 1, 1)
    with pytest.raises(TypeError, match=r"not a function of NumPy.*autograd\.rule\(") as caught:
        twice(ol.to_tensor([1.0], requires_grad=True))
    assert "np.<lambda>" not in str(caught.value)


def test_a_ufunc_of_scipy_is_refused_by_its_own_name_and_the_rule_that_is_offered_works() -> None:
    from optlab.autograd import rule
    from optlab.autograd.operation import TABLE

    spence = pytest.importorskip("scipy.special").spence
    with pytest.raises(TypeError, match=r"^spence is not a function of NumPy"):
        ol.grad(spence)(0.5)
    rule(spence, lambda g, x: g * np.log(x) / (1 - x))
    try:
        ol.check_grad(spence, np.array([0.5, 1.7]))
    finally:
        del TABLE[spence]


@pytest.mark.parametrize("place", [ol, ol.optimizer], ids=["ol", "ol.optimizer"])
def test_an_unknown_name_gets_one_suggestion(place: object) -> None:
    name = "tensor" if place is ol else "Adm"
    with pytest.raises(AttributeError) as caught:
        getattr(place, name)
    said = "".join(traceback.format_exception(caught.value)).rstrip()
    assert said.count("Did you mean") == 1
    assert "?." not in said


@pytest.mark.parametrize(
    ("a", "b", "said"),
    [((2, 3), (2, 3), "a @ b.mT would have the shape (2, 2); a.mT @ b would have"),
     ((3, 4), (2, 3), "b @ a would have the shape (2, 4)."),
     ((5, 2), (3,), "shape (3,)."), ((4, 3), (4,), "a.mT @ b would have the shape (3,)."),
     ((7, 2, 3), (7, 2, 3), "a @ b.mT would have the shape (7, 2, 2)"), ((), (2,), "with *")],
)  # fmt: skip
def test_shapes_that_do_not_fit_are_named_with_what_would(
    a: tuple[int, ...], b: tuple[int, ...], said: str
) -> None:
    with pytest.raises(ValueError, match="as many columns in a") as caught:
        check_matmul_shapes("matmul", [np.ones(a), np.ones(b)])
    message = str(caught.value)
    assert f"a of shape {a} and b of shape {b}." in message
    assert said in message
    check_matmul_shapes("add", [np.ones(a), np.ones(b)])
