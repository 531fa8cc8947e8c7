"""Functions as people write them: f(x, y), f(p) of a vector, f(x), and formulas as text."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import optlab as ol
from optlab.lab.problems.formula import FUNCTIONS, Formula, looks_like_formula

SGD, Adam = ol.optimizer.SGD, ol.optimizer.Adam

#: The same bowl, or valley, in every way that it can be written.
BOWL = {
    "f(x, y)": lambda x, y: (x - 1) ** 2 + (y - 1) ** 2,
    "p[0]": lambda p: (p[0] - 1) ** 2 + (p[1] - 1) ** 2,
    "unpacked": lambda p: sum((part - 1) ** 2 for part in p),
    "sum": lambda p: np.sum((p - 1) ** 2),
    "method": lambda p: ((p - 1) ** 2).sum(),
    "product": lambda p: (p - 1) @ (p - 1),
    "text": "(x - 1)**2 + (y - 1)**2",
    "text of p": "(p[0] - 1)**2 + (p[1] - 1)**2",
    "text of a vector": "np.sum((p - 1)**2)",
}
ways = pytest.mark.parametrize("f", BOWL.values(), ids=list(BOWL))


class TestEveryWay:
    @ways
    def test_is_the_same_surface(self, f):
        surface = ol.problems.find(f)
        assert surface.dimension == 2
        value, gradient = surface.value_and_gradient((3.0, 0.5))
        assert value == 4.25
        assert gradient.tolist() == [4.0, -1.0]

    @ways
    def test_is_the_same_race(self, f):
        race = ol.compare(f, {"a": Adam(0.1)}, start=(3.0, 0.5), steps=30)
        first = ol.compare(BOWL["f(x, y)"], {"a": Adam(0.1)}, start=(3.0, 0.5), steps=30)
        if f is BOWL["product"]:  # some BLAS add products without rounding them first
            np.testing.assert_allclose(race["a"].loss, first["a"].loss, rtol=1e-12)
        else:
            assert race["a"].loss.tolist() == first["a"].loss.tolist()

    @ways
    def test_is_swept(self, f):
        sweep = ol.sweep(f, SGD, {"learning_rate": [0.1, 0.2]}, start=(3.0, 0.5), steps=10)
        first = ol.sweep(BOWL["f(x, y)"], SGD, {"learning_rate": [0.1, 0.2]}, start=(3.0, 0.5),
                         steps=10)  # fmt: skip
        assert sweep.final_loss.tolist() == first.final_loss.tolist()

    @ways
    def test_has_basins(self, f):
        found = ol.basins(f, SGD(0.2), grid=4, steps=60)
        assert found.minima.round(6).tolist() == [[1.0, 1.0]]
        assert (found.basin == 0).all()

    @ways
    def test_is_explored(self, f):
        explorer = ol.explore(f, ["SGD"], start=(3.0, 0.5), steps=10)
        runs = explorer.model.runs["SGD"]
        first = ol.explore(BOWL["f(x, y)"], ["SGD"], start=(3.0, 0.5), steps=10).model.runs["SGD"]
        assert runs.loss.tolist() == first.loss.tolist()

    @ways
    def test_gets_noise(self, f):
        assert ol.problems.noisy(f, 0.5).dimension == 2


class TestVector:
    def test_many_points_are_vectors_of_their_own(self):
        # A norm of all points together would have the right shape, and be wrong.
        surface = ol.problems.Surface(lambda p: (p / np.linalg.norm(p))[0] + p[1])
        x, y = np.meshgrid(np.linspace(1, 3, 4), np.linspace(-2, 2, 5))
        found = surface.values(x, y)
        assert found.shape == (5, 4)
        np.testing.assert_allclose(found, x / np.hypot(x, y) + y, rtol=1e-15)

    def test_a_promise_to_repeat_mixes_no_points(self):
        surface = ol.problems.Surface(
            lambda p: (p / np.sqrt(np.sum(p * p)))[0] + p[1], repeatable=True, start=(1.0, 1.0)
        )
        basins = ol.basins(surface, SGD(0.01), grid=3, steps=2)
        for i, start in enumerate([(-3.0, -3.0), (0.0, -3.0), (3.0, -3.0)]):
            race = ol.compare(surface, {"d": SGD(0.01)}, start=start, steps=2)
            np.testing.assert_array_equal(
                basins.final_point[0, i], race["d"].parameters["point"][-1]
            )

    def test_a_point_of_nothing_is_not_a_surface(self):
        with pytest.raises(TypeError, match=r"f\(p\) must give one number a point"):
            ol.compare(lambda p: [p[0], p[1]], {"d": SGD(0.1)}, steps=2)

    @pytest.mark.parametrize(
        "f", [lambda p: p[2] ** 2 + p[0], lambda p: np.linalg.norm(p - np.ones(3))]
    )
    def test_of_three_numbers_is_refused_with_a_way_out(self, f):
        with pytest.raises(TypeError, match=r"a vector of 3 numbers.*np\.stack\(\[x, y, 0\]\)"):
            ol.compare(f, {"d": SGD(0.1)})

    def test_math_is_told_of_numpy(self):
        with pytest.raises(TypeError, match=r"f\(p\).*write np\.exp in place of math\.exp"):
            ol.compare(lambda p: math.sin(p[0]) + p[1], {"d": SGD(0.1)})

    def test_a_start_of_one_number_is_told_of_the_ways(self):
        with pytest.raises(ValueError, match=r"two numbers.*f\(p\) of a vector"):
            ol.compare(lambda p: np.sum(p**2), {"d": SGD(0.1)}, start=3.0)

    def test_the_domain_says_how_many_numbers_there_are(self):
        one = ol.problems.Surface(lambda p: np.sum(p**2), domain=[(-1, 1)])
        assert one.dimension == 1
        assert float(one.value_and_gradient((3.0,))[0]) == 9.0
        element = ol.problems.Surface(lambda p: p[0] ** 2, domain=[(-1, 1)])
        assert element.dimension == 1
        assert element.value_and_gradient((3.0,))[1].tolist() == [6.0]


class TestOneNumber:
    @pytest.mark.parametrize(
        "f",
        [lambda x: (x - 1) ** 2, lambda x: np.cosh(x - 1), lambda x: x**2 if x > 0 else -x,
         np.cosh, "(x - 1)**2", "p[0]**2"],
    )  # fmt: skip
    def test_a_number_for_each_element_or_a_branch(self, f):
        assert ol.problems.find(f).dimension == 1

    def test_a_branch_is_followed(self):
        race = ol.compare(lambda x: x**2 if x > 0 else -x, {"d": SGD(0.25)}, start=-1.0, steps=2)
        assert race["d"].loss.tolist() == [1.0, 0.75]

    def test_a_function_that_fails_raises_its_own_error(self):
        def broken(x):
            raise ZeroDivisionError("my own mistake")

        with pytest.raises(ZeroDivisionError, match="my own mistake"):
            ol.compare(broken, {"d": SGD(0.1)})


class TestStart:
    def test_a_usual_start_that_is_not_defined_moves(self):
        explorer = ol.explore("x - log(x) + y**2", ["SGD"], steps=5)
        assert explorer.now.start == [0.15, 2.0]
        assert ol.explore("x**2 + y**2", ["SGD"], steps=5).now.start == [-2.0, 2.0]

    def test_one_that_was_given_does_not(self):
        with pytest.raises(ValueError, match="the loss at the start"):
            ol.explore("x - log(x) + y**2", ["SGD"], start=(-1.0, 1.0))

    def test_defined_nowhere(self):
        with pytest.raises(ValueError, match="no value and slope anywhere"):
            ol.problems.Surface("log(-1 - x**2) + y").nearest_defined()


REFUSED = [
    ("x^2 + y", r"\^ is no power in Python: write x\*\*2"),
    ("2x + y", r"write a product with a sign, 2\*x"),
    ("2(x + 1)", r"write a product with a sign: 2\*\(x \+ 1\)"),
    ("(x + 1)(y + 1)", "write a product with a sign"),
    ("x**2 +", "it ends too early"),
    ("sin x + 1", "Python cannot read it at 'x"),
    ("sinn(x)", r"there is no function sinn; did you mean sin\?$"),
    ("x2 + y", r"write x\*\*2 for a power, y for a variable"),
    ("xy + 1", r"write a product with a sign, x\*y"),
    ("x*(y", "1 opening and 0 closing parentheses"),
    ("|x| + y", r"write abs\(x\) in place of \|x\|"),
    ("x² + y", r"write x\*\*2 in place of ²"),
    ("x·y", r"write \* in place of ·"),
    ("f(x, y) = x**2", "write what stands after the equals sign"),
    ("z**2 + x", r"at 'z': the variables are x and y \(or p\[0\] and p\[1\]\)"),
    ("p[2]**2", r"a surface has two numbers, p\[0\] and p\[1\]"),
    ("(p - 1)**2", r"it gives two numbers; add them up with sum"),
    ("sum(p**2) + x", "use either x and y, or p"),
    ("2*3 + 1", "there is no x or y in it"),
    ("x + 9**9**9**9", "its value is not a finite number"),
    ("x + 1/0", "its value is not a finite number"),
    ("x*(-8)**0.5", "its value is not a finite number"),
    ("x*1e999", "too large a number"),
    ("x**2 if x > 0 else y", r"write where\(x > 0, a, b\) in place of"),
    ("(x > 0)*x", r"a comparison stands inside where\(x > 0, a, b\)"),
    ("where(x, 1, y)", "where takes a comparison first"),
    ("exp + x", r"exp is a function: write exp\(x\)"),
    ("maximum(x)", "maximum takes 2 arguments"),
    ("sum(x)", "takes an expression of the vector p"),
    ("sin(x, out=y)", "cannot be used"),
    ("x // 2", "it is not among what a formula may have"),
    ("x[0]*y", "it is not among what a formula may have"),
    ("x*True", "it is not among what a formula may have"),
    ("(" * 900 + "x" + ")" * 900, "cannot be used"),
    ("-" * 1500 + "(x)", "cannot be used"),
    ("x + " * 600 + "x", "characters, more than"),
    # Nothing of a text is run.
    ("__import__('os').system('true')", "cannot be used"),
    ("(x).__class__", "it is not among"),
    ("open('secret') + x", "there is no function open"),
    ("np.load('file') + x", "there is no function load"),
    ("(lambda: x)()", "the equals sign|cannot be used"),
    ("[x for x in (1, 2)]", "cannot be used"),
]  # fmt: skip


class TestText:
    @pytest.mark.parametrize(("text", "said"), REFUSED, ids=[text[:20] for text, _ in REFUSED])
    def test_refused_with_what_to_write(self, text, said):
        with pytest.raises(ValueError, match=said):
            ol.compare(text, {"d": SGD(0.1)})

    @pytest.mark.parametrize("name", sorted(FUNCTIONS))
    def test_every_function_is_differentiated(self, name):
        of_two = name in ("hypot", "arctan2", "atan2", "max", "maximum", "min", "minimum")
        text = f"{name}(x, y)" if of_two else f"{name}(x) + y"
        text = "where(x < 0.4, x**2, 3*y)" if name == "where" else text
        surface = ol.problems.find(text)
        point, s = (0.3, 0.6), 1e-6
        value, gradient = surface.value_and_gradient(point)
        assert math.isfinite(value)
        differences = [
            (surface(0.3 + s, 0.6) - surface(0.3 - s, 0.6)) / (2 * s),
            (surface(0.3, 0.6 + s) - surface(0.3, 0.6 - s)) / (2 * s),
        ]
        np.testing.assert_allclose(gradient, differences, rtol=1e-6, atol=1e-8)
        assert surface.plan is not None

    def test_the_number_of_variables(self):
        for text, dimension in [("x**2", 1), ("y**2", 2), ("x - y", 2), ("p[0]**2", 1),
                                ("p[1]**2", 2), ("mean(p**2)", 2), ("prod(p - 1)", 2)]:  # fmt: skip
            assert ol.problems.find(text).dimension == dimension

    def test_whole_powers_stay_whole(self):
        assert Formula("x**-2 + (-x)**3")(2.0) == 2.0**-2 + (-2.0) ** 3

    def test_it_goes_to_worker_processes(self):
        surface = ol.problems.Surface("cosh(x) + y**2")
        again = pickle.loads(pickle.dumps(surface.function))
        assert again(0.5, 2.0) == surface(0.5, 2.0)
        assert repr(again) == "Formula('cosh(x) + y**2')"

    def test_names_are_no_formulas(self):
        for name in [*ol.problems.names(), "six-hump camel", "digits", "narrow valley", "xyz"]:
            assert not looks_like_formula(name)

    def test_the_explorer_keeps_it_in_its_state(self):
        explorer = ol.explore("x**2 + 3*y**2", ["SGD"])
        assert explorer.now.problem == "x**2 + 3*y**2"
        again = ol.explore().change(state=explorer.to_json())
        assert again.model.title == "x**2 + 3*y**2"
        assert explorer.change(problem="cosh(x) + y**2").model.title == "cosh(x) + y**2"


_numbers = st.sampled_from(["x", "y", "2", "0.5", "3", "pi", "1e-3", "x", "y"])
_formulas = st.recursive(
    _numbers,
    lambda inner: st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from(["+", "-", "*", "/"]), inner),
        st.builds("({})**{}".format, inner, st.sampled_from(["2", "3", "-1", "0.5"])),
        st.builds("{}({})".format, st.sampled_from(["exp", "sin", "np.tanh", "abs"]), inner),
        st.builds("-{}".format, inner),
    ),
    max_leaves=12,
)


@given(_formulas)
@settings(max_examples=200, deadline=None)
def test_a_formula_has_the_bits_of_the_same_python(text):
    point = np.float64(0.7), np.float64(-1.3)
    try:
        f = Formula(f"{text} + 0*x + 0*y")
    except ValueError as error:
        assert "not a finite number" in str(error)  # noqa: PT017 - the only reason there can be
        return
    # The reference is Python itself, on a text that this test has made.
    # Its own `abs`, as NumPy's makes integers of its own, which have no negative powers.
    names = {**FUNCTIONS, "abs": abs, "np": np, "pi": math.pi, "x": point[0], "y": point[1]}
    with np.errstate(all="ignore"):
        expected = eval(f"{text} + 0*x + 0*y", {"__builtins__": {}}, names)
        np.testing.assert_array_equal(f(*point), expected)


# Vectors of any length ----------------------------------------------------------------------------


def rosenbrock_of(w):
    """The chained Rosenbrock function (Rosenbrock 1960) of a vector."""
    return np.sum(100 * (w[1:] - w[:-1] ** 2) ** 2 + (1 - w[:-1]) ** 2)


def gradient_by_hand(w):
    found = np.zeros_like(w)
    found[:-1] = -400 * w[:-1] * (w[1:] - w[:-1] ** 2) - 2 * (1 - w[:-1])
    found[1:] += 200 * (w[1:] - w[:-1] ** 2)
    return found


@pytest.mark.parametrize("length", [3, 7, 200])
def test_compare_takes_functions_of_vectors_of_any_length(length):
    start = np.linspace(-1, 1, length)
    rules = {"SGD": ol.optimizer.SGD(1e-4), "Adam": ol.optimizer.Adam(0.01)}
    race = ol.compare(rosenbrock_of, rules, start=start, steps=30)
    w, losses = start.copy(), []
    for _ in range(30):
        losses.append(rosenbrock_of(w))
        w -= 1e-4 * gradient_by_hand(w)
    np.testing.assert_allclose(race["SGD"].loss, losses, rtol=1e-12)
    np.testing.assert_allclose(race["SGD"].parameters["point"][-1], w, rtol=1e-12)
    assert race.final_loss["SGD"] == pytest.approx(rosenbrock_of(w), rel=1e-12)
    assert race.final_loss["Adam"] < race["Adam"].loss[0]
    assert repr(race).startswith("<Comparison on rosenbrock_of from (-1,")
    assert len(repr(race)) < 200
    assert "loss" in race.figure().to_json()


def test_rules_with_curvature_take_vectors_too():
    rules = {
        "Newton": ol.lab.Newton(),
        "LBFGS": ol.optimizer.LBFGS(1.0, line_search_fn="strong_wolfe"),
    }
    race = ol.compare(rosenbrock_of, rules, start=np.full(3, -0.5), steps=200)
    assert max(race.final_loss.values()) < 1e-8


def test_a_vector_of_one_number_is_one():
    race = ol.compare(lambda w: w[0] ** 2, {"SGD": ol.optimizer.SGD(0.25)}, start=[2.0], steps=2)
    assert race["SGD"].parameters["point"].ravel().tolist() == [2.0, 1.0, 0.5]


def test_a_surface_has_the_length_of_its_start():
    problem = ol.problems.Surface(rosenbrock_of, start=np.zeros(5))
    assert problem.dimension == 5
    assert problem.domain == ()
    found = ol.lab.best_rate(problem, ol.optimizer.SGD, rates=[1e-4, 1e-3], steps=20)
    assert found.rate == 1e-3
    noisy = ol.problems.noisy(problem, 0.1)
    assert ol.compare(noisy, {"SGD": ol.optimizer.SGD(1e-3)}, steps=3)["SGD"].loss.shape == (3,)
    swept = ol.sweep(problem, ol.optimizer.SGD, {"learning_rate": [1e-4, 1e-3]}, steps=20)
    np.testing.assert_allclose(swept.final_loss, found.loss[:, 0], rtol=1e-12)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: ol.compare(lambda w: w[4] ** 2, {"SGD": ol.optimizer.SGD(0.1)}),
         "start=np.zeros(5)"),
        (lambda: ol.compare(lambda w: w**2, {"SGD": ol.optimizer.SGD(0.1)}, start=np.ones(100)),
         "at (1, 1, 1, ..., 100 numbers) it gives an array of shape (100,)"),
        (lambda: ol.compare(lambda x, y: x * y, {"SGD": ol.optimizer.SGD(0.1)}, start=np.ones(3)),
         "two numbers (x, y)"),
        (lambda: ol.explore(ol.problems.Surface(rosenbrock_of, start=np.zeros(5))),
         "no map shows them"),
        (lambda: ol.basins(ol.problems.Surface(rosenbrock_of, start=np.zeros(5)),
                           ol.optimizer.SGD(0.1)), "takes 5 numbers"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_said_of_vectors(call, message):
    with pytest.raises((TypeError, ValueError)) as caught:
        call()
    assert message in str(caught.value)
