"""optlab.numpy.random: NumPy's names and signatures, drawn from keys, with pathwise gradients."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import optlab as ol
from optlab.autograd.operation import TABLE
from optlab.autograd.rules.random import dropout
from optlab.autograd.tape.backward import toposort
from optlab.backend.random import Key
from optlab.numpy import random
from optlab.plan.capture import CaptureError, capture

#: Distributions with pathwise derivatives, and parameters to check them at.
MOVING: dict[str, list[Any]] = {
    "uniform": [[0.3, -1.0], [2.0, 3.0]], "normal": [[0.5, -1.0], [2.0, 0.3]],
    "laplace": [[0.5, -1.0], [2.0, 0.3]], "logistic": [[0.5, -1.0], [2.0, 0.3]],
    "gumbel": [[0.5, -1.0], [2.0, 0.3]], "lognormal": [[0.5, -1.0], [0.4, 0.3]],
    "exponential": [[2.0, 0.3]], "rayleigh": [[2.0, 0.3]], "weibull": [[2.0, 0.7]],
    "pareto": [[2.0, 3.0]], "power": [[2.0, 0.7]],
    "triangular": [[-1.0, 0.0], [0.2, 1.0], [1.0, 3.0]],
}  # fmt: skip
#: The gamma family, whose derivatives are implicit (see test_random_gamma.py).
BY_RANK: dict[str, list[Any]] = {
    "standard_gamma": [[2.0, 0.4]], "gamma": [[2.0, 0.4], [1.0, 3.0]], "chisquare": [[3.0, 0.4]],
    "f": [[3.0, 5.0], [6.0, 4.0]], "standard_t": [[3.0, 5.0]], "beta": [[2.0, 0.4], [0.5, 3.0]],
}  # fmt: skip
#: Distributions without a derivative, with the parameter to refuse.
STILL: dict[str, list[Any]] = {
    "wald": [1.0, 2.0], "noncentral_chisquare": [3.0, 1.0], "noncentral_f": [3.0, 5.0, 1.0],
    "binomial": [10, 0.3], "negative_binomial": [4, 0.3], "geometric": [0.3],
    "hypergeometric": [5, 6, 4], "poisson": [3.0], "zipf": [3.0], "logseries": [0.4],
    "multinomial": [5, [0.2, 0.8]], "randint": [1, 9], "integers": [1, 9],
    "multivariate_hypergeometric": [[3, 4], 2],
}  # fmt: skip
EVERY = MOVING | BY_RANK | STILL | {"vonmises": [[0.5, -1.0], [2.0, 3.0]]}
PLAIN = {
    "random": (), "random_sample": (), "ranf": (), "sample": (), "standard_normal": (),
    "standard_exponential": (), "standard_cauchy": (),
    "dirichlet": ([1.0, 2.0],), "multivariate_normal": ([1.0, 2.0], [[2.0, 0.5], [0.5, 1.0]]),
    "choice": (10,),
}  # fmt: skip


def tensors(parameters: list[Any], requires_grad: bool = True, dtype: str = "float64") -> Any:
    return [ol.to_tensor(np.array(x, dtype), requires_grad=requires_grad) for x in parameters]


# Names and signatures.


def test_every_public_name_of_numpy_is_there_or_refused_in_words() -> None:
    for name in vars(np.random):
        if name.startswith("_") or inspect.ismodule(getattr(np.random, name)) or name == "test":
            continue
        ours = getattr(random, name)
        theirs = getattr(np.random, name)
        if isinstance(theirs, type) or name == "default_rng":
            assert ours is theirs
        elif name not in random.__all__:
            with pytest.raises(TypeError, match=name):
                ours()


@pytest.mark.parametrize(
    "name", sorted({*EVERY, *PLAIN, "permutation"} - {"random_sample", "ranf", "sample", "choice"})
)
def test_signatures_are_those_of_numpy(name: str) -> None:
    """NumPy documents its signatures in the first line of a docstring."""
    documented = getattr(np.random, name, None) or getattr(np.random.Generator, name)
    line = documented.__doc__.strip().partition(")\n")[0].partition("(")[2].removesuffix(")")
    line = " ".join(line.split()).replace("np.int64", "int64")
    ours = str(inspect.signature(getattr(random, name), eval_str=False))
    parameters = [
        p.name if p.default is p.empty else f"{p.name}={getattr(p.default, '__name__', p.default)}"
        for p in inspect.signature(getattr(random, name)).parameters.values()
    ]
    wanted = [part.replace("'", "").replace('"', "") for part in line.split(", ")]
    assert [p.replace("1e-08", "1e-8") for p in parameters[: len(wanted)]] == wanted, ours


@pytest.mark.parametrize("way", ["import optlab.numpy.random as r", "import optlab.numpy as n"])
def test_it_can_be_imported_both_ways_and_numpys_stays_unloaded(way: str) -> None:
    code = f"import sys; {way}; assert 'numpy.random' not in sys.modules; print(r.rand(2).shape)"
    if way.endswith("n"):
        code = code.replace("r.rand", "n.random.rand")
    assert fresh_process(code) == "(2,)"


def fresh_process(code: str) -> str:
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, text=True, capture_output=True, check=True
    )
    return done.stdout.strip()


# Values.


@pytest.mark.parametrize("name", sorted({**EVERY, **PLAIN}))
def test_a_seed_fixes_arrays_and_they_look_like_numpys(name: str) -> None:
    f, parameters = getattr(random, name), {**EVERY, **PLAIN}[name]
    ol.seed(3)
    first, second = f(*parameters, size=(4, 2)), f(*parameters, size=(4, 2))
    ol.seed(3)
    np.testing.assert_array_equal(f(*parameters, size=(4, 2)), first)
    assert not np.array_equal(first, second)
    theirs = getattr(np.random, name, None) or getattr(np.random.default_rng(0), name)
    wanted = theirs(*parameters, size=(4, 2))
    assert (type(first), first.shape, first.dtype) == (type(wanted), wanted.shape, wanted.dtype)
    alone = f(*[np.ravel(x)[0] if name in MOVING else x for x in parameters])
    wanted = theirs(*[np.ravel(x)[0] if name in MOVING else x for x in parameters])
    assert type(alone) is type(wanted)
    assert np.shape(alone) == np.shape(wanted)


@pytest.mark.parametrize("name", sorted(MOVING | BY_RANK | {"vonmises": None}))
def test_a_tensor_among_the_parameters_makes_a_tensor(name: str) -> None:
    f, parameters = getattr(random, name), EVERY[name]
    ol.seed(3)
    arrays = f(*map(np.array, parameters), size=(50, 2))
    for requires_grad in (False, True):
        ol.seed(3)
        given = tensors(parameters, requires_grad)
        if name == "vonmises":
            given[1] = given[1].detach()
        got = f(*given, size=(50, 2))
        assert isinstance(got, ol.Tensor)
        assert got.requires_grad is requires_grad
        assert got.dtype == np.float64
        if name in ("f", "standard_t", "beta") and not requires_grad:
            arrays = got.numpy()  # NumPy draws these in one call
        np.testing.assert_allclose(got.numpy(), arrays, rtol=1e-13)
    ol.seed(3)
    single = f(*tensors(parameters, False, "float32"), size=(50, 2))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single.numpy(), got.numpy(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("position", [0, 1])
def test_numbers_lists_and_arrays_beside_a_tensor(position: int) -> None:
    for other in (0.5, [0.5, 0.5], np.array([0.5, 0.5], "float32"), np.float32(0.5)):
        parameters: list[Any] = [other, other]
        parameters[position] = ol.to_tensor([1.0, 2.0], requires_grad=True)
        got = random.normal(*parameters, size=(3, 2))
        assert (got.shape, got.requires_grad) == ((3, 2), True)
        assert got.dtype == ("float64" if isinstance(other, list) else "float32")
    a, b = tensors([0.5, 2.0])
    random.normal([a, b], 0.0).backward(np.array([2.0, 3.0]))
    assert (a.grad.item(), b.grad.item()) == (2.0, 3.0)


def test_shapes() -> None:
    loc, scale = tensors([[[1.0], [2.0]], [1.0, 2.0, 3.0]])
    assert random.normal(loc, scale).shape == (2, 3)
    assert random.normal(loc, scale, size=(4, 2, 3)).shape == (4, 2, 3)
    assert random.normal(loc[0, 0]).shape == ()
    assert random.normal(loc[0, 0], size=5).shape == (5,)
    assert random.exponential(scale, size=[2, 3]).shape == (2, 3)
    for size in (3, (2, 2), (2, 1)):
        with pytest.raises(ValueError, match=r"random\.normal.*\(2, 1\), \(3,\).*size"):
            random.normal(loc, scale, size=size)
    with pytest.raises(ValueError, match="do not fit together"):
        random.normal(scale, np.ones(2))


@pytest.mark.parametrize(
    ("name", "wrong", "named"),
    [("normal", [0.0, -1.0], "scale"), ("exponential", [-1.0], "scale"), ("pareto", [0.0], "a"),
     ("uniform", [2.0, 1.0], "high - low"), ("triangular", [0.0, 2.0, 1.0], "right - mode"),
     ("standard_gamma", [-1.0], "shape"), ("beta", [1.0, 0.0], "b"), ("f", [1.0, -1.0], "dfden")],
)  # fmt: skip
def test_parameters_out_of_range_are_refused_as_for_arrays(
    name: str, wrong: list[Any], named: str
) -> None:
    with pytest.raises(ValueError, match=f"random.{name} takes a {named}"):
        getattr(random, name)(*tensors(wrong))
    with pytest.raises(ValueError, match=r"<|>"):
        getattr(random, name)(*wrong)


# Derivatives.


@pytest.mark.parametrize("name", MOVING)
def test_draws_follow_their_parameters_to_second_order(name: str) -> None:
    def f(*parameters: Any) -> Any:
        with ol.random_scope("check", seed=3):
            return getattr(random, name)(*parameters, size=(5, 2))

    points = [np.array(x) for x in MOVING[name]]
    ol.check_grad(f, *points)
    for i in range(len(points)):  # each alone, beside arrays
        ol.check_grad(lambda x, i=i: f(*points[:i], x, *points[i + 1 :]), points[i])


def test_the_angle_of_vonmises_follows_its_centre() -> None:
    def f(mu: Any) -> Any:
        with ol.random_scope("check", seed=3):
            return random.vonmises(mu, [2.0, 3.0], size=(20, 2))

    assert np.abs(f(np.array(3.0))).max() <= np.pi
    ol.check_grad(f, np.array([3.0, -3.0]))


def test_the_scale_of_gamma_is_an_ordinary_factor() -> None:
    shape = np.array([2.0, 0.4])

    def f(scale: Any) -> Any:
        with ol.random_scope("check", seed=3):
            return random.gamma(shape, scale, size=(5, 2))

    ol.check_grad(f, np.array([1.0, 3.0]))
    scale = ol.to_tensor([1.0, 3.0], dtype="float64", requires_grad=True)
    y = f(scale)
    wanted = y.numpy().sum(0) / [1.0, 3.0]
    shape[:] = 99.0  # the caller may overwrite the array
    y.backward()
    np.testing.assert_allclose(scale.grad.numpy(), wanted)


@pytest.mark.skipif(np.linalg.cholesky not in TABLE, reason="cholesky has no rule")
def test_multivariate_normal_follows_mean_and_covariance() -> None:
    def f(mean: Any, root: Any) -> Any:
        with ol.random_scope("check", seed=3):
            return random.multivariate_normal(mean, root @ root.T + np.eye(2), size=4)

    mean, root = np.array([1.0, 2.0]), ol.to_tensor(np.array([[1.0, 0.2], [-0.3, 0.8]]))
    ol.check_grad(lambda mean: f(mean, root), mean)
    # A Tensor also for finite differences: arrays are factored by another method.
    ol.check_grad(lambda mean, change: f(mean, root + change), mean, np.zeros((2, 2)))


def test_multivariate_normal_of_a_moving_mean() -> None:
    mean, cov = ol.to_tensor([1.0, 2.0], requires_grad=True), np.array([[2.0, 0.5], [0.5, 1.0]])
    ol.seed(3)
    y = random.multivariate_normal(mean, cov, size=5)
    ol.seed(3)
    arrays = random.multivariate_normal(mean.numpy(), cov, size=5)
    np.testing.assert_allclose(y.numpy(), arrays, rtol=1e-5)
    y.backward()
    assert mean.grad.tolist() == [5.0, 5.0]
    drawn = random.multivariate_normal(np.zeros(2), ol.to_tensor(cov), size=20_000)
    assert isinstance(drawn, ol.Tensor)
    np.testing.assert_allclose(np.cov(drawn.numpy().T), cov, atol=0.1)
    with pytest.raises(ValueError, match=r"shape \[d, d\]"):
        random.multivariate_normal(mean, np.eye(3))


@pytest.mark.parametrize("name", STILL)
def test_what_does_not_move_refuses_a_gradient_by_name(name: str) -> None:
    f, parameters = getattr(random, name), STILL[name]
    for i, given in enumerate(parameters):
        moving = list(parameters)
        moving[i] = ol.to_tensor(np.array(given, "float64"), requires_grad=True)
        with pytest.raises(TypeError, match=r"random\.\w+ has no derivative.*'\w+'.*detach\(\)"):
            f(*moving)
    ol.seed(3)
    arrays = f(*parameters, size=3)
    ol.seed(3)
    got = f(*[ol.to_tensor(np.array(x)) for x in parameters], size=3)
    assert isinstance(got, ol.Tensor)
    assert got.dtype == arrays.dtype
    np.testing.assert_array_equal(got.numpy(), arrays)


def test_without_recording_nothing_is_refused() -> None:
    lam = ol.to_tensor([3.0, 4.0], requires_grad=True)
    with ol.no_grad():
        assert random.poisson(lam).shape == (2,)
    with pytest.raises(TypeError, match="score function"):
        random.poisson(lam)


# Saved keys in place of numbers.


def kept_bytes(t: Any) -> int:
    """Count the bytes of arrays on the tape below `t`, in saved values and static arguments."""
    arrays = {}
    for node in toposort(t.node):
        for x in (*(getattr(node, "saved", ()) or ()), *getattr(node, "static", {}).values()):
            for part in x if isinstance(x, tuple) else (x,):
                data = getattr(part, "data", part)
                if isinstance(data, np.ndarray):
                    arrays[id(data)] = data.nbytes
    return sum(arrays.values())


@pytest.mark.parametrize(
    "name", ["uniform", "normal", "laplace", "logistic", "gumbel", "exponential", "rayleigh"]
)
def test_the_tape_keeps_the_key_and_not_the_noise(name: str) -> None:
    parameters = tensors([x[0] for x in MOVING[name]])
    y = getattr(random, name)(*parameters, size=10_000)
    assert kept_bytes(y) < 100
    assert any("key" in getattr(node, "static", {}) for node in toposort(y.node))
    y.backward(create_graph=True)
    again = [p.grad.numpy() for p in parameters]
    for p in parameters:
        if p.grad.node is not None:
            assert kept_bytes(p.grad) < 100
    y.backward()  # the saved values are the key: a second draw gives the same numbers
    for p, first in zip(parameters, again, strict=True):
        np.testing.assert_allclose(p.grad.numpy(), 2 * first)


# Choices and permutations.


def test_choosing_among_elements_keeps_their_gradient() -> None:
    x = ol.to_tensor(np.arange(12.0).reshape(4, 3), requires_grad=True)
    for axis in (0, 1, -1):
        ol.seed(3)
        arrays = random.choice(x.numpy(), size=5, axis=axis)
        ol.seed(3)
        got = random.choice(x, size=5, axis=axis)
        np.testing.assert_array_equal(got.numpy(), arrays)
        ol.seed(3)
        shuffled = random.permutation(x.numpy(), axis=axis)
        ol.seed(3)
        np.testing.assert_array_equal(random.permutation(x, axis=axis).numpy(), shuffled)
    (random.permutation(x) * 2).backward()
    assert x.grad.tolist() == [[2.0] * 3] * 4
    assert random.choice(x).shape == (3,)
    assert random.choice(ol.to_tensor(5)) in range(5)
    assert random.choice([x[0, 0], x[0, 1]]).requires_grad
    with pytest.raises(TypeError, match="'p'"):
        random.choice(3, p=ol.to_tensor([0.5, 0.5, 0.0], requires_grad=True))
    ol.seed(3)
    drawn = random.choice(3, size=100, p=ol.to_tensor([0.5, 0.5, 0.0], dtype="float64"))
    assert set(drawn.tolist()) == {0, 1}


def test_shuffling_works_in_place_on_arrays_and_lists_alone() -> None:
    for x in (np.arange(20), list(range(20))):
        ol.seed(3)
        random.shuffle(x)
        assert list(x) != list(range(20))
        assert sorted(x) == list(range(20))
    columns = np.arange(20).reshape(2, 10)
    random.shuffle(columns, axis=1)
    np.testing.assert_array_equal(columns[1] - columns[0], 10)
    with pytest.raises(TypeError, match="permutation"):
        random.shuffle(ol.ones([3]))
    assert sorted(random.permutation(5).tolist()) == [0, 1, 2, 3, 4]
    assert isinstance(random.rand(), float)
    assert random.randn(2, 3).shape == random.rand(2, 3).shape == (2, 3)


def test_seed_without_a_number_starts_anywhere() -> None:
    random.seed(3)
    first = random.rand()
    random.seed(3)
    assert random.rand() == first
    random.seed()
    assert random.rand() != first
    with pytest.raises(AttributeError, match="no 'nonsense'"):
        random.nonsense  # noqa: B018


# One seed, one program, bitwise equal.

DRAWS = (
    "import optlab as ol; r = ol.numpy.random; ol.seed(11); t = ol.to_tensor(2.0)\n"
    "drawn = [r.randn(), r.gamma(0.7), r.poisson(40.0), r.normal(t).item(), r.beta(t, t).item(),\n"
    "         ol.rand([1]).item(), ol.nn.functional.dropout(ol.rand([4]), 0.5).sum().item()]\n"
    "with ol.random_scope('layer', 3): drawn.append(r.rand())\n"
    "text = ' '.join(float(x).hex() for x in drawn)\n"
)


def test_another_process_draws_the_same() -> None:
    here: dict[str, Any] = {}
    exec(DRAWS, here)
    assert fresh_process(DRAWS + "print(text)") == here["text"]


def test_a_plan_refuses_fresh_noise_and_repeats_noise_from_a_fixed_key() -> None:
    x, key = np.ones(50), Key(3)
    with pytest.raises(CaptureError):
        capture(lambda x: x * random.rand(50), x)
    plan = capture(lambda x: dropout(x, 0.5, key) * 2, x)
    np.testing.assert_array_equal(plan(x), dropout(x, 0.5, key) * 2)
