"""Curvature at a point, and gradient descent and momentum in closed form."""

from __future__ import annotations

import math

import numpy as np
import pytest

import optlab as ol

SGD, Momentum = ol.optimizer.SGD, ol.optimizer.Momentum


def bowl_of(a, b, c):
    """A bowl whose curvatures are known: the eigenvalues of [[2a, b], [b, 2c]]."""
    return lambda x, y: a * (x - 1) ** 2 + b * (x - 1) * (y + 2) + c * (y + 2) ** 2 + 5


class TestCurvature:
    @pytest.mark.parametrize(("a", "b", "c"), [(1.0, 0.0, 9.0), (3.0, 2.0, 1.0), (1.0, 0.0, 1.0)])
    def test_of_a_bowl(self, a, b, c):
        at = ol.lab.curvature(bowl_of(a, b, c), (3.0, 1.0))
        matrix = np.array([[2 * a, b], [b, 2 * c]])
        np.testing.assert_allclose(at.hessian, matrix, rtol=1e-12)
        np.testing.assert_allclose(at.curvatures, np.linalg.eigvalsh(matrix), rtol=1e-12)
        np.testing.assert_allclose(matrix @ at.axes, at.axes * at.curvatures, atol=1e-12)
        assert at.kind == "bowl"
        assert at.condition == pytest.approx(at.curvatures[1] / at.curvatures[0])
        assert at.stability_limit == pytest.approx(2 / at.curvatures[1])

    def test_the_ellipse_is_a_contour_line(self):
        f = bowl_of(3.0, 2.0, 1.0)
        line = ol.lab.curvature(f, (1.0, -2.0)).ellipse(level=0.5)
        np.testing.assert_allclose(f(*line.T), 5.5, rtol=1e-12)
        np.testing.assert_allclose(line[0], line[-1], atol=1e-12)

    @pytest.mark.parametrize(
        ("f", "kind"),
        [("x**2 - y**2", "saddle"), ("-x**2 - y**2", "dome"), ("x**2 + 0*y", "flat"),
         ("-x**2 + 0*y", "flat"), ("x**2 + y**2", "bowl"), ("cosh(x)", "bowl")],
    )  # fmt: skip
    def test_kinds(self, f, kind):
        at = ol.lab.curvature(f)
        assert at.kind == kind
        assert math.isnan(at.condition) == (kind != "bowl")
        if kind != "bowl":
            with pytest.raises(ValueError, match="are no ellipse"):
                at.ellipse()

    def test_of_a_function_of_a_vector_and_of_a_name(self):
        at = ol.lab.curvature(lambda p: p @ np.array([[2.0, 1.0], [1.0, 3.0]]) @ p)
        assert at.hessian.tolist() == [[4.0, 2.0], [2.0, 6.0]]
        assert ol.lab.curvature("rosenbrock", (1.0, 1.0)).condition == pytest.approx(
            2508.0, rel=1e-3
        )

    def test_networks_have_too_many(self):
        with pytest.raises(TypeError, match="curvature is of surfaces"):
            ol.lab.curvature("digits_mlp")


QUADRATICS = {
    "valley": "valley",
    "turned": bowl_of(3.0, 2.0, 1.0),
    "booth": "booth",
    "one number": "parabola",
    "saddle": "x**2 - 0.1*y**2",
    "vector": lambda p: np.sum(np.array([1.0, 7.0]) * (p - 1) ** 2),
}


class TestClosedForm:
    @pytest.mark.parametrize("problem", QUADRATICS.values(), ids=list(QUADRATICS))
    @pytest.mark.parametrize(
        "optimizer",
        [SGD(0.02), SGD(0.05), Momentum(0.02, 0.9), Momentum(0.01, 0.5), Momentum(0.02, 0.0),
         Momentum(0.02, 0.9, use_nesterov=True), Momentum(0.01, 0.3, use_nesterov=True)],
        ids=str,
    )  # fmt: skip
    def test_predicts_what_is_computed(self, problem, optimizer):
        predicted = ol.lab.closed_form(problem, optimizer, steps=60)
        computed = predicted.computed()
        scale = np.maximum(np.abs(computed).max(), 1.0)
        np.testing.assert_allclose(predicted.path, computed, atol=1e-9 * scale)
        assert predicted.difference <= 1e-9 * scale
        surface = ol.problems.find(problem)
        np.testing.assert_allclose(
            predicted.loss, surface.values(*predicted.path.T), rtol=1e-8, atol=1e-9 * scale**2
        )

    def test_a_double_root(self):
        # Critical damping: sqrt(mu) = 1 - sqrt(rate * curvature).
        mu = (1 - math.sqrt(0.05 * 4)) ** 2
        predicted = ol.lab.closed_form("parabola", Momentum(0.05, mu), steps=60)
        assert predicted.factors[0, 0] == pytest.approx(predicted.factors[0, 1], abs=1e-6)
        assert predicted.difference < 1e-9

    @pytest.mark.parametrize("nesterov", [False, True])
    @pytest.mark.parametrize("mu", [0.0, 0.5, 0.9])
    def test_the_limit_is_the_limit(self, mu, nesterov):
        def make(rate):
            return Momentum(rate, mu, use_nesterov=nesterov)

        limit = ol.lab.closed_form("valley", make(0.01)).stability_limit
        for factor, grows in ((0.98, False), (1.02, True)):
            race = ol.compare("valley", {"d": make(limit * factor)}, steps=3000)
            end = race.final_loss["d"]
            assert (not math.isfinite(end) or end > 1e3) == grows
            kinds = ol.lab.closed_form("valley", make(limit * factor)).kinds
            assert ("diverges" in kinds) == grows

    def test_kinds(self):
        assert ol.lab.closed_form("parabola", SGD(0.1)).kinds == ["shrinks"]
        assert ol.lab.closed_form("parabola", SGD(0.4)).kinds == ["changes sides"]
        assert ol.lab.closed_form("parabola", SGD(0.5)).kinds == ["stays"]
        assert ol.lab.closed_form("parabola", SGD(0.6)).kinds == ["diverges"]
        assert ol.lab.closed_form("parabola", Momentum(0.1, 0.9)).kinds == ["swings"]

    @pytest.mark.parametrize("problem", ["rosenbrock", "x**4 + y**2", "x**2 + 0*y", "x + y"])
    def test_other_surfaces_are_refused(self, problem):
        with pytest.raises(ValueError, match="no quadratic with one stationary point"):
            ol.lab.closed_form(problem, SGD(0.1))

    @pytest.mark.parametrize(
        "optimizer", [ol.optimizer.Adam(0.1), SGD, SGD(0.1, weight_decay=0.1), 0.1,
                      SGD(ol.optimizer.lr.StepDecay(0.1, 10))]
    )  # fmt: skip
    def test_other_optimizers_are_refused(self, optimizer):
        with pytest.raises(TypeError, match="closed_form takes"):
            ol.lab.closed_form("valley", optimizer)


class TestFigure:
    @pytest.mark.parametrize(
        ("problem", "optimizer"),
        [("valley", SGD(0.05)), ("valley", Momentum(0.02, 0.9)), ("parabola", SGD(0.6)),
         ("x**2 - 0.1*y**2", SGD(0.1)), ("booth", SGD(0.25))],
    )  # fmt: skip
    def test_lines_are_the_formula_and_dots_the_optimizer(self, problem, optimizer):
        predicted = ol.lab.closed_form(problem, optimizer, steps=30)
        figure = ol.viz.modes(predicted)
        lines = [trace for trace in figure.data if trace.mode == "lines"]
        dots = [trace for trace in figure.data if trace.mode == "markers"]
        assert len(lines) == len(dots) == len(predicted.curvatures)
        path = predicted.computed()
        computed = np.abs((path - predicted.minimum) @ predicted.axes)
        for i, (line, dot) in enumerate(zip(lines, dots, strict=True)):
            expected = np.maximum(np.abs(predicted.modes[:, i]), 1e-14)
            np.testing.assert_allclose(10.0 ** np.asarray(line.y, float), expected, rtol=1e-5)
            assert predicted.kinds[i] in line.hovertemplate
            steps = np.asarray(dot.x, int)
            shown = np.maximum(computed[steps, i], 1e-14)
            np.testing.assert_allclose(10.0 ** np.asarray(dot.y, float), shown, rtol=1e-5)
        assert "it diverges" in figure.layout.annotations[0].text
        assert ol.viz.modes_png(predicted)[:4] == b"\x89PNG"

    def test_a_notebook_displays_it(self, monkeypatch):
        from optlab.backend import display
        from optlab.viz import renderers

        monkeypatch.setattr(display, "_renderers", {"closed_form": renderers.closed_form})
        bundle = ol.lab.closed_form("valley", SGD(0.05))._repr_mimebundle_()
        assert {"image/png", "application/vnd.plotly.v1+json"} <= set(bundle)
        assert "diverges above 0.05556" in bundle["text/plain"]
