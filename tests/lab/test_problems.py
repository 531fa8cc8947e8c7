"""The surfaces: their documented properties hold."""

from __future__ import annotations

import math

import numpy as np
import pytest

import optlab as ol

SURFACES = {
    "rosenbrock": lambda: ol.problems.rosenbrock,
    "beale": lambda: ol.problems.beale,
    "himmelblau": lambda: ol.problems.himmelblau,
    "quadratic": lambda: ol.problems.quadratic(),
    "quadratic, condition 7, turned": lambda: ol.problems.quadratic(7.0, angle=30.0),
}
surfaces = pytest.mark.parametrize("make", SURFACES.values(), ids=list(SURFACES))

#: From the papers, at points that are easy to compute by hand.
KNOWN = [
    ("rosenbrock", (-1.2, 1.0), 24.2),
    ("rosenbrock", (0.0, 0.0), 1.0),
    ("beale", (0.0, 0.0), 1.5**2 + 2.25**2 + 2.625**2),
    ("beale", (1.0, 1.0), 1.5**2 + 2.25**2 + 2.625**2),
    ("himmelblau", (0.0, 0.0), 170.0),
    ("himmelblau", (1.0, 1.0), 106.0),
    ("quadratic", (3.0, 1.0), 54.5),
]


@pytest.mark.parametrize(("name", "point", "value"), KNOWN)
def test_known_values(name, point, value):
    assert SURFACES[name]()(*point) == pytest.approx(value, rel=1e-14)


@surfaces
def test_minima_are_minima(make):
    surface = make()
    assert surface.minima
    for point in surface.minima:
        value, gradient = surface.value_and_gradient(point)
        assert value == pytest.approx(surface.minimum_value, abs=1e-12)
        np.testing.assert_allclose(gradient, 0.0, atol=1e-8)
        hessian = ol.hessian(lambda p: surface(p[0], p[1]))(np.array(point))
        assert np.all(np.linalg.eigvalsh(hessian) > 0)


@surfaces
def test_nothing_in_the_domain_lies_below_the_minimum(make):
    surface = make()
    (a, b), (c, d) = surface.domain
    x, y = np.meshgrid(np.linspace(a, b, 201), np.linspace(c, d, 201))
    assert surface.values(x, y).min() >= surface.minimum_value


@surfaces
def test_start_and_minima_lie_in_the_domain(make):
    surface = make()
    for point in (surface.start, *surface.minima):
        for coordinate, (low, high) in zip(point, surface.domain, strict=True):
            assert low <= coordinate <= high
    value, gradient = surface.value_and_gradient(surface.start)
    assert value > surface.minimum_value + 1
    assert np.linalg.norm(gradient) > 0.1


@surfaces
def test_value_and_gradient_agree_with_finite_differences(make):
    surface = make()
    x, y = surface.start
    value, gradient = surface.value_and_gradient((x, y))
    assert value == pytest.approx(surface(x, y), rel=1e-14)
    s = 1e-6
    differences = [
        (surface(x + s, y) - surface(x - s, y)) / (2 * s),
        (surface(x, y + s) - surface(x, y - s)) / (2 * s),
    ]
    np.testing.assert_allclose(gradient, differences, rtol=1e-6)


@surfaces
def test_each_says_what_it_is(make):
    surface = make()
    assert surface.dimension == 2
    for text in (surface.name, surface.title, surface.formula, surface.source, surface.shows):
        assert text
    assert surface.title in repr(surface)


@pytest.mark.parametrize("condition", [1, 4.0, 100, 1e4])
@pytest.mark.parametrize("angle", [0, 30.0, 45, -120])
def test_condition_number_is_the_ratio_of_curvatures(condition, angle):
    bowl = ol.problems.quadratic(condition, angle)
    hessian = ol.hessian(lambda p: bowl(p[0], p[1]))(np.array([0.3, -0.7]))
    low, high = np.linalg.eigvalsh(hessian)
    assert low == pytest.approx(1.0, rel=1e-8)
    assert high / low == pytest.approx(condition, rel=1e-8)


@pytest.mark.parametrize("angle", [30.0, 90.0, -45.0])
def test_the_angle_turns_the_bowl(angle):
    straight, turned = ol.problems.quadratic(9.0), ol.problems.quadratic(9.0, angle=angle)
    cosine, sine = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    for u, v in [(1.0, 0.0), (0.0, 1.0), (-4.0, 1.5)]:
        x, y = cosine * u - sine * v, sine * u + cosine * v
        assert turned(x, y) == pytest.approx(straight(u, v), rel=1e-12)
    assert turned(*turned.start) == pytest.approx(straight(*straight.start), rel=1e-12)


@pytest.mark.parametrize("condition", [0.5, 0, -3, math.inf, math.nan])
def test_condition_is_at_least_one(condition):
    with pytest.raises(ValueError, match="a condition number is at least 1"):
        ol.problems.quadratic(condition)


def test_gradient_descent_on_the_bowl_is_stable_below_two_over_the_condition():
    for rate, stable in ((1.9 / 50, True), (2.1 / 50, False)):
        race = ol.compare(ol.problems.quadratic(50.0), {"d": ol.optimizer.SGD(rate)}, steps=200)
        assert bool(race.final_loss["d"] < race["d"].loss[0]) is stable


@pytest.mark.parametrize("name", ["rosenbrock", "beale", "himmelblau", "rastrigin", "ackley"])
@pytest.mark.parametrize("size", [1.0, 1e-200, 1e80, 1e200])
def test_a_run_computes_as_numpy_does_on_its_numbers(name, size):
    surface = getattr(ol.problems, name)
    point = tuple(size * c for c in surface.start)
    with np.errstate(all="ignore"):
        run = surface.run(point)
        value = run.backward(0)
        expected = surface.plan.replay(*map(np.float64, point))
    assert type(value) is np.float64
    np.testing.assert_array_equal([value, *run.point.grad.numpy()], expected)


class TestValues:
    x, y = np.meshgrid(np.linspace(-2, 2, 7), np.linspace(-1, 3, 5))

    def test_of_numpy_functions_come_at_once(self):
        calls = []

        def f(x, y):
            calls.append(np.shape(x))
            return np.exp(x) + y**2

        found = ol.problems.Surface(f).values(self.x, self.y)
        assert np.array_equal(found, np.exp(self.x) + self.y**2)
        assert calls == [(5, 7)]

    def test_broadcast(self):
        found = ol.problems.rosenbrock.values(self.x[:1], self.y[:, :1])
        assert found.shape == (5, 7)
        assert found[4, 6] == pytest.approx(ol.problems.rosenbrock(2.0, 3.0))

    @pytest.mark.parametrize(
        "f",
        [
            lambda x, y: x * x if x > 0 else x * x + y * y,
            lambda x, y: math.exp(x) + y,
            lambda x, y: max(x, y),
            lambda x, y: 3.0,
            lambda x, y: np.linalg.norm([x, y]),
            lambda x, y: np.array([x, y]) @ np.array([x, y]),
            lambda x, y: float(x) + float(y),
        ],
        ids=["branch", "math", "max", "constant", "norm", "product", "float"],
    )
    def test_of_functions_that_take_one_point_at_a_time(self, f):
        found = ol.problems.Surface(f).values(self.x, self.y)
        for i in np.ndindex(self.x.shape):
            assert found[i] == pytest.approx(f(float(self.x[i]), float(self.y[i])), rel=1e-14)

    def test_points_where_the_function_fails_are_nan(self):
        found = ol.problems.Surface(lambda x, y: math.sqrt(x) + y).values(self.x, self.y)
        assert np.array_equal(np.isnan(found), self.x < 0)

    def test_of_functions_written_with_tensors(self):
        surface = ol.problems.Surface(lambda x, y: ol.nn.functional.relu(x) + y)
        assert np.array_equal(surface.values(self.x, self.y), np.maximum(self.x, 0) + self.y)

    def test_the_points_are_never_changed(self):
        def f(x, y):
            x += 1
            return x + y

        x, y = np.array([1.0, 2.0]), np.array([3.0, 4.0])
        ol.problems.Surface(f).values(x, y)
        assert x.tolist() == [1.0, 2.0]


class TestOwnSurface:
    def test_minimum_value_follows_from_a_minimum(self):
        surface = ol.problems.Surface(lambda x, y: (x - 1) ** 2 + y**2 + 5, minima=[(1.0, 0.0)])
        assert surface.minimum_value == 5.0
        race = ol.compare(surface, {"d": ol.optimizer.SGD(0.4)}, steps=50)
        assert race.table().loc["d", "distance to the minimum"] == pytest.approx(0, abs=1e-6)

    def test_the_nearest_of_several_minima_counts(self):
        surface = ol.problems.Surface(
            lambda x, y: (x * x - 1) ** 2 + y**2, minima=[(1.0, 0.0), (-1.0, 0.0)]
        )
        race = ol.compare(surface, {"d": ol.optimizer.SGD(0.01)}, start=(-0.5, 0.1), steps=1)
        point = race["d"].parameters["point"][-1]
        assert race.table().loc["d", "distance to the minimum"] == pytest.approx(
            math.hypot(point[0] + 1, point[1])
        )

    @pytest.mark.parametrize(
        "domain", [((1, 1), (0, 1)), ((0, 1), (2, 1)), ((0, math.nan), (0, 1))]
    )
    def test_a_domain_is_two_intervals(self, domain):
        with pytest.raises(ValueError, match=r"domain must be .*two intervals"):
            ol.problems.Surface(lambda x, y: x, domain=domain)

    def test_names(self):
        def canyon(x, y):
            return x * x + y * y

        assert ol.problems.Surface(canyon).name == ol.problems.Surface(canyon).title == "canyon"
        assert ol.problems.Surface(lambda x, y: x).title == "f(x, y)"
        assert ol.problems.Surface(canyon, name="c", title="A canyon").title == "A canyon"
