"""Functions of `optlab` with a name of Paddle's give Paddle's numbers, or refuse with a sentence.

The numbers are recorded from Paddle 3.3.1: tests/data/paddle/calls.json.
"""

from __future__ import annotations

import json
import re
import warnings
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

import optlab as ol
from tests.paddle import calls

RECORD = json.loads(
    (Path(__file__).parents[1] / "data" / "paddle" / "calls.json").read_text(encoding="utf-8")
)["calls"]

#: Names that are not here: their error says what to write, or which names there are.
NOT_HERE = set(
    """
    angle atleast_1d atleast_2d atleast_3d block_diag bucketize cdist column_stack conj crop cummax
    cummin cumulative_trapezoid diag_embed diagflat digamma dstack erfinv gcd histogram hsplit
    index_fill index_put is_complex is_empty isreal lcm lgamma logcumsumexp logit mode nanmedian
    row_stack signbit slice softmax stanh strided_slice take tensor_split tensordot trapezoid
    unflatten unique_consecutive vander view vsplit linalg.cholesky_solve linalg.corrcoef linalg.cov
    linalg.lstsq linalg.matrix_exp linalg.matrix_norm linalg.triangular_solve
""".split()
)

#: Calls that are refused, as Paddle's numbers are of no use, with a part of the sentence.
REFUSED = {
    "p.mean(i)": "astype('float32')", "p.mean(b)": "astype('float32')",
    "p.std(i)": "astype('float32')", "p.var(i)": "astype('float32')",
    "p.sum(u)": "dtype='int64'", "p.pow(i, 0.5)": "astype('float32')",
    "p.deg2rad(b)": "truth values", "p.rad2deg(b)": "truth values",
    "p.pow(i, n)": "negative integer powers", "p.neg(b)": "use the `~` operator",
    "p.median(x, axis=1, mode='min')": "np.sort",
    "p.put_along_axis(x, at2, 2.0, axis=1, reduce='mul')": "'add'",
}  # fmt: skip

#: Calls whose numbers are those of Paddle's documents, not of its kernel.
AS_DOCUMENTED = {
    # At plus and minus the threshold, 0.5, the documented formula gives 0.
    "p.nn.functional.hardshrink(x)",
    # Indices are int64 everywhere, as those of argmax.
    "p.nn.functional.max_pool2d(image, 2, return_mask=True)",
}

#: The name is that of a package, which is not called.
PACKAGES = {"trace"}


def name_of(call):
    """Return the function of a call, or the operator's group."""
    found = re.match(r"p\.((?:linalg\.|nn\.functional\.)?\w+)", call)
    return found[1] if found else "operators"


GROUPS = defaultdict(list)
for _call in RECORD:
    GROUPS[name_of(_call)].append(_call)


def run(call):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return eval(call, calls.tensors(ol))


def compare(call, found, recorded, kinds=(ol.Tensor,)):
    if isinstance(recorded, dict):
        assert isinstance(found, kinds), f"{call} is {type(found)}"
        array = found.numpy() if isinstance(found, ol.Tensor) else np.asarray(found)
        assert str(array.dtype) == recorded["dtype"], call
        assert list(array.shape) == recorded["shape"], call
        expected = np.array(recorded["elements"], "float64").reshape(array.shape)
        np.testing.assert_allclose(
            array.astype("float64"), expected, rtol=2e-5, atol=2e-6, err_msg=call
        )
    elif isinstance(recorded, list):
        assert isinstance(found, (list, tuple)), call
        assert len(found) == len(recorded), call
        for one, other in zip(found, recorded, strict=True):
            compare(call, one, other, kinds)
    else:
        assert type(found) is type(recorded), call
        assert found == recorded, call


@pytest.mark.parametrize("name", sorted(set(GROUPS) - NOT_HERE - PACKAGES - {"operators"}))
def test_a_function_gives_the_numbers_of_paddle(name):
    for call in GROUPS[name]:
        if call in REFUSED:
            with pytest.raises((TypeError, ValueError), match=re.escape(REFUSED[call])):
                run(call)
        elif call not in AS_DOCUMENTED:
            compare(call, run(call), RECORD[call])


def test_operators_give_the_numbers_of_paddle():
    """Comparisons give arrays here; the numbers are the same."""
    for call in GROUPS["operators"]:
        compare(call, run(call), RECORD[call], (ol.Tensor, np.ndarray, np.generic))


@pytest.mark.parametrize("name", sorted(NOT_HERE & set(GROUPS)))
def test_a_name_that_is_not_here_says_what_to_write(name):
    with pytest.raises(AttributeError, match=r"write|says|there is|dir\(|has|real numbers|counts"):
        run(GROUPS[name][0])


def test_every_name_that_refuses_is_listed():
    """No name of the table falls out of the comparison unseen."""
    assert set(REFUSED) | AS_DOCUMENTED <= set(RECORD)
    assert len(RECORD) > 900
    assert set(GROUPS) >= NOT_HERE
    here = {name for name in GROUPS if "." not in name and hasattr(ol, name)}
    assert here == set(GROUPS) - NOT_HERE - {"operators"} - {n for n in GROUPS if "." in n}


def test_arrays_give_arrays_and_truth_arrays_tensors():
    a = np.array([[1.0, 4.0]], "float32")
    assert type(ol.sqrt(a)) is np.ndarray
    assert ol.sqrt(np.array([4])).dtype == np.float64  # arrays: NumPy's own
    assert type(ol.concat([a, a])) is np.ndarray
    assert ol.std(a[0]) == np.float32(np.std(a[0], ddof=1))
    t = ol.to_tensor(a)
    assert isinstance(ol.sum(t > 2), ol.Tensor)
    assert isinstance(ol.cast(t > 2, "float32"), ol.Tensor)
    assert isinstance(ol.logical_and(t > 2, t < 5), ol.Tensor)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda x: ol.std(x, ddof=1), "unbiased="),
        (lambda x: ol.std(x, 0, 1), "unbiased is True or False"),
        (lambda x: ol.concat([x, x], dim=0), "Write axis="),
        (lambda x: ol.clip(x, a_min=0), "Write min="),
        (lambda x: ol.argmax(x, keepdims=True), "Write keepdim="),
        (lambda x: ol.equal(x, x, name="e"), "equal(x, y)"),
        (lambda x: ol.transpose(x, [0, 0]), "once"),
        (lambda x: ol.split(x, 4), "equal parts"),
        (lambda x: ol.split(x, [1, 1]), "do not add up"),
        (lambda x: ol.topk(x, 9), "k=9"),
        (lambda x: ol.dot(x, x[0]), "x @ y"),
        (lambda x: ol.set_default_dtype("float64"), "dtype='float64'"),
        (lambda x: ol.scatter(x, [0], x[:1], mode="add"), "no argument 'mode'"),
    ],
)
def test_arguments_of_others_are_refused_with_what_to_write(call, said):
    with pytest.raises((TypeError, ValueError), match=re.escape(said)):
        call(ol.ones([3, 2]))


#: Functions through which a gradient passes.
DIFFERENTIABLE = {
    "concat": lambda x: ol.concat([x, 2 * x], axis=1),
    "std": lambda x: ol.std(x, 1),
    "var": lambda x: ol.var(x),
    "norm": lambda x: ol.norm(x, axis=1),
    "topk": lambda x: ol.topk(x, 2)[0],
    "sort": lambda x: ol.sort(x, descending=True),
    "scatter": lambda x: ol.scatter(x, ol.to_tensor([1]), x[:1] * 3),
    "scatter twice": lambda x: ol.scatter(x, ol.to_tensor([0, 0]), x * 3, overwrite=False),
    "scatter_nd_add": lambda x: ol.scatter_nd_add(x, ol.to_tensor([[0], [0]]), x * x),
    "put_along_axis": lambda x: ol.put_along_axis(x, ol.to_tensor([[1], [0]]), x[:, :1] * 2, 1),
    "split": lambda x: ol.split(x, [1, -1], 1)[1] * 2,
    "unbind": lambda x: ol.unbind(x, 1)[2] ** 2,
    "gather": lambda x: ol.gather(x, ol.to_tensor([1, 1, 0])),
    "gather_nd": lambda x: ol.gather_nd(x, ol.to_tensor([[1, 2], [1, 2]])),
    "where": lambda x: ol.where(x > 0, x * x, x),
    "masked_fill": lambda x: ol.masked_fill(x * x, x > 0, 1.0),
    "matmul": lambda x: ol.matmul(x, x, transpose_y=True),
    "squeeze": lambda x: ol.squeeze(ol.unsqueeze(x * x, [0, 2]), 0),
    "tile": lambda x: ol.tile(x * x, [2, 1]),
    "expand": lambda x: ol.expand(x[:, :1] ** 2, [-1, 4]),
    "logsumexp": lambda x: ol.logsumexp(x, [0, 1]),
    "cumprod": lambda x: ol.cumprod(x, 1),
    "clip": lambda x: ol.clip(x * x, 0.3, 2.0),
    "triu": lambda x: ol.triu(x * x),
    "assign": lambda x: ol.assign(x * x),
    "full_like": lambda x: ol.full_like(x, x[0, 0] ** 2),
    "cast": lambda x: ol.cast(x * x, "float64"),
    "linalg.det": lambda x: ol.linalg.det(ol.matmul(x, x, transpose_y=True)),
}


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_the_gradient_passes_through(name):
    x = np.array([[0.5, -1.25, 2.0], [3.5, 0.75, -0.625]])
    ol.check_grad(lambda x: np.sum(np.sin(DIFFERENTIABLE[name](x))), x)
