"""Functions of scipy.special on Tensors: derivatives, dtypes, ensembles, what is dispatched."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import optlab as ol
from optlab import special
from tests.autograd.rows import numbers
from tests.autograd.test_half_precision import both

sp = pytest.importorskip("scipy.special")

ANY, ABOVE_0, BETWEEN = numbers((2, 3)), numbers((2, 3), 0.3, 4.0), numbers((2, 3), 0.1, 0.9)
OTHER = numbers((2, 3), 0.3, 4.0, seed=1)

UNARY: dict[str, np.ndarray] = {
    **dict.fromkeys(
        "erf erfc erfcx ndtr log_ndtr expit log_expit i0 i1 exp2 exp10 expm1".split(), ANY
    ),
    **dict.fromkeys(
        "gammaln loggamma gamma rgamma digamma psi entr log1p cbrt".split(), ABOVE_0
    ),
    **dict.fromkeys("logit erfinv erfcinv ndtri".split(), BETWEEN),
}  # fmt: skip
BINARY = ["xlogy", "xlog1py", "rel_entr", "kl_div", "beta", "betaln"]
#: Of optlab.special, where SciPy's own makes plain arrays.
WHOLE: dict[str, Any] = {
    "logsumexp": lambda m, x: m.logsumexp(x),
    "logsumexp of rows": lambda m, x: m.logsumexp(x, axis=1, keepdims=True),
    "logsumexp over both": lambda m, x: m.logsumexp(x, axis=(0, 1)),
    "logsumexp with factors": lambda m, x: m.logsumexp(x, 1, b=FACTORS.astype(x.dtype)),
    "logsumexp and sign": lambda m, x: m.logsumexp(
        x, axis=0, b=SIGNS.astype(x.dtype), return_sign=True
    )[0],
    "softmax": lambda m, x: m.softmax(x),
    "softmax of rows": lambda m, x: m.softmax(x, axis=1),
    "log_softmax": lambda m, x: m.log_softmax(x, axis=-1),
    "polygamma": lambda m, x: m.polygamma(2, x),
    "polygamma 0": lambda m, x: m.polygamma(0, x),
    "handed on": lambda m, x: m.erf(x),
}
FACTORS = np.array([[2.0, 0.5, 1.5]])
SIGNS = np.array([[1.0, 3.0, -1.0], [-4.0, 1.0, -1.0]])


def calls() -> list[Any]:
    found = [(name, lambda m, x, n=name: getattr(m, n)(x), (x,)) for name, x in UNARY.items()]
    found += [
        (name, lambda m, a, b, n=name: getattr(m, n)(a, b), (ABOVE_0, OTHER)) for name in BINARY
    ]
    found += [(name, call, (ABOVE_0 if "gamma" in name else ANY,)) for name, call in WHOLE.items()]
    return [pytest.param(call, args, id=name) for name, call, args in found]


@pytest.mark.parametrize(("call", "args"), calls())
def test_values_are_scipy_s_and_derivatives_are_right_to_second_order(call: Any, args: Any) -> None:
    wanted = call(sp, *args)
    tensors = [ol.to_tensor(x, requires_grad=True) for x in args]
    got = call(special, *tensors)
    assert isinstance(got, ol.Tensor)
    np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-12, atol=1e-15)
    ol.check_grad(lambda *x: call(special, *x), *args, order=2)


@pytest.mark.parametrize(("call", "args"), calls())
def test_float32_stays_float32(call: Any, args: Any) -> None:
    tensors = [ol.to_tensor(x, dtype="float32", requires_grad=True) for x in args]
    y = call(special, *tensors)
    assert y.dtype == "float32"
    np.testing.assert_allclose(y.numpy(), call(sp, *args), rtol=3e-5, atol=1e-6)
    y.sum().backward()
    assert all(t.grad is not None and t.grad.dtype == "float32" for t in tensors)


@both
@pytest.mark.parametrize(("call", "args"), calls())
def test_16_bits_compute_in_float32(call: Any, args: Any, dtype: str) -> None:
    tensors = [ol.to_tensor(x, dtype=dtype, requires_grad=True) for x in args]
    wide = [t.detach().astype("float32") for t in tensors]
    y = call(special, *tensors)
    assert y.dtype == dtype
    np.testing.assert_array_equal(y.numpy(), call(special, *wide).astype(dtype).numpy())
    y.sum().backward()
    assert all(t.grad is not None and t.grad.dtype == dtype for t in tensors)


@pytest.mark.parametrize(("call", "args"), calls())
def test_vmap_equals_the_loop(call: Any, args: Any) -> None:
    rows = [np.stack([x, x[::-1]]) for x in args]
    got = ol.vmap(lambda *x: call(special, *x))(*rows)
    assert type(got) is np.ndarray
    np.testing.assert_allclose(
        got, [call(sp, *each) for each in zip(*rows, strict=True)], rtol=1e-6
    )
    gradient = ol.grad(lambda *x: np.sum(call(special, *x) ** 2))
    together = ol.vmap(gradient)(*rows)
    each = [gradient(*one) for one in zip(*rows, strict=True)]
    np.testing.assert_allclose(together, each, rtol=1e-6, atol=1e-12)


def test_a_ufunc_of_scipy_gives_tensors_for_tensors() -> None:
    assert isinstance(sp.expit(ol.to_tensor(1.0)), ol.Tensor)
    assert type(ol.vmap(sp.expit)(np.ones(3))) is np.ndarray


def test_an_absent_probability_has_the_gradient_0_not_nan() -> None:
    assert ol.grad(lambda p, q: sp.xlogy(p, q), 1)(0.0, 0.0) == 0.0
    assert ol.grad(lambda x: np.where(x > 0, sp.gammaln(np.where(x > 0, x, 1.0)), 0.0))(0.0) == 0.0


@pytest.mark.parametrize("name", ["logsumexp", "softmax", "log_softmax", "polygamma"])
def test_what_scipy_does_not_dispatch_says_what_to_write(name: str) -> None:
    t = ol.to_tensor([0.5, 1.0], requires_grad=True)
    function = getattr(sp, name)
    with pytest.raises(ol.autograd.tensor.conversions.SilentDetachError) as caught:
        function(1, t) if name == "polygamma" else function(t)
    assert f"optlab.special.{name}(" in str(caught.value)


def test_plain_arrays_and_other_functions_are_scipy_s_own() -> None:
    np.testing.assert_array_equal(special.logsumexp(ANY, 1), sp.logsumexp(ANY, 1))
    np.testing.assert_array_equal(special.polygamma([1, 2], 2.0), sp.polygamma([1, 2], 2.0))
    assert special.jv is sp.jv
    with pytest.raises(TypeError, match="one whole number n"):
        special.polygamma([1, 2], ol.to_tensor([1.0, 2.0]))


def test_the_engine_does_not_import_scipy() -> None:
    program = (
        "import sys, numpy as np, optlab as ol\n"
        "ol.special.softmax(ol.to_tensor([1.0, 2.0], requires_grad=True))\n"
        "np.frompyfunc(abs, 1, 1)(ol.to_tensor([1.0]))\n"
        "assert not any(name.startswith('scipy') for name in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
