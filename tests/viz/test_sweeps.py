"""Figures of sweeps and basins say what the numbers say."""

from __future__ import annotations

from io import BytesIO

import numpy as np
import pytest

import optlab as ol
from optlab.backend import display
from optlab.viz import renderers
from optlab.viz.backends.scene import decades
from optlab.viz.sweeps.attraction_view import attraction_view
from optlab.viz.sweeps.settings_view import _bulk, settings_view

O = ol.optimizer  # noqa: E741


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The registry as it is where this version is installed."""
    known = {"sweep": renderers.sweep, "basins": renderers.basins}
    monkeypatch.setattr(display, "_renderers", {**display._renderers, **known})


@pytest.fixture(scope="module")
def grid() -> ol.lab.Sweep:
    settings = {"learning_rate": [0.01, 0.1, 0.5, 3.0], "momentum": [0.0, 0.5, 0.9]}
    return ol.sweep("booth", O.Momentum, settings, steps=200)


def texts(figure) -> str:
    shown = [figure.layout.title.text, *(note.text for note in figure.layout.annotations)]
    return "\n".join(str(text) for text in shown)


def test_a_map_has_every_cell_and_marks_the_best(grid) -> None:
    figure = grid.heatmap()
    view = settings_view(grid, None, None, 760, 460)
    assert (view.x.name, view.y.name) == ("learning_rate", "momentum")
    with np.errstate(all="ignore"):
        expected = np.log10(grid.final_loss.T + 1e-12)
    np.testing.assert_allclose(view.height[~view.diverged], expected[~view.diverged])
    np.testing.assert_array_equal(view.diverged, np.isinf(grid.final_loss.T))
    row, column = view.best
    assert grid.best() == {
        "learning_rate": [0.01, 0.1, 0.5, 3.0][column], "momentum": [0.0, 0.5, 0.9][row]
    }  # fmt: skip
    star = [
        trace for trace in figure.data if trace.type == "scatter" and trace.marker.symbol == "star"
    ]
    assert (star[0].x[0], star[0].y[0]) == (column, row)
    assert f"{int(view.diverged.sum())} of 12 diverged" in texts(figure)


def test_the_end_of_a_ladder_is_marked_and_said() -> None:
    sweep = ol.sweep("parabola", O.SGD, {"learning_rate": [0.01, 0.05, 0.25]}, steps=9)
    figure = sweep.heatmap()
    assert "0.25 (the highest)" in texts(figure)
    assert "orange edge" in texts(figure)
    edge = [shape for shape in figure.layout.shapes if shape.line.color == "#b84a00"]
    assert len(edge) == 1
    assert edge[0].x0 == pytest.approx(np.log10(0.25))
    inside = ol.sweep("parabola", O.SGD, {"learning_rate": [0.01, 0.25, 0.45]}, steps=9).heatmap()
    assert not inside.layout.shapes
    assert "orange" not in texts(inside)


def test_of_more_than_two_settings_the_figure_says_which_are_drawn() -> None:
    settings = {
        "learning_rate": [0.01, 0.1, 0.2], "beta1": [0.0, 0.9], "beta2": [0.9, 0.99, 0.999, 0.9999]
    }  # fmt: skip
    sweep = ol.sweep("booth", O.Adam, settings, steps=20)
    beta1 = sweep.best()["beta1"]
    assert f"at the best beta1 {beta1:g}" in texts(sweep.heatmap())
    view = settings_view(sweep, "beta1", None, 760, 460)
    assert (view.x.name, view.y.name) == ("beta1", "beta2")
    with pytest.raises(ValueError, match="no setting with several values"):
        sweep.heatmap(x="epsilon")


def test_all_runs_diverged_is_drawn_too() -> None:
    sweep = ol.sweep("rosenbrock", O.SGD, {"learning_rate": [5.0, 9.0]}, steps=50)
    assert "Every one of the 2 runs diverged" in texts(sweep.heatmap())
    assert ol.viz.heatmap_png(sweep)[:4] == b"\x89PNG"


def test_colors_span_the_losses_below_the_start_and_the_note_counts_the_others() -> None:
    settings = {"learning_rate": [0.001, 0.01, 0.05, 0.2, 3.0], "momentum": [0.0, 0.5, 0.9]}
    sweep = ol.sweep("booth", O.Momentum, settings, steps=40)
    view = settings_view(sweep, None, None, 760, 460)
    assert sweep.start_loss == pytest.approx(float(ol.problems.booth(-4.0, -2.0)))
    above = int(np.sum(np.isfinite(sweep.final_loss) & (sweep.final_loss > sweep.start_loss)))
    assert above > 2
    assert view.high == pytest.approx(np.log10(sweep.start_loss))
    assert f"{above} above" in texts(sweep.heatmap())
    curve = settings_view(
        ol.sweep("booth", O.SGD, {"learning_rate": np.linspace(0.01, 0.13, 13)}, steps=40),
        None, None, 760, 460,
    )  # fmt: skip
    assert curve.high == pytest.approx(np.log10(sweep.start_loss))
    assert "out of the frame" in " ".join(curve.page.note)


def test_one_slow_setting_does_not_take_all_colors() -> None:
    rates = [1e-5, 1e-4, 5e-4, 1e-3, 2e-3, 2.5e-3, 3e-3]
    settings = {"learning_rate": rates, "weight_decay": [0.0, 1e-3]}
    view = settings_view(ol.sweep("rosenbrock", O.SGD, settings, steps=60), None, None, 760, 460)
    assert view.high < 1.0 < np.nanmax(view.height)


def test_colors_keep_the_lowest_losses_apart_unless_they_are_one_or_two() -> None:
    most = np.linspace(0.0, 0.5, 91)
    assert _bulk(np.append(most, np.full(9, -6.0)), 9.0) == (-6.0, 0.5)
    assert _bulk(np.append(most, [-6.0, -5.0]), 9.0) == (0.0, 0.5)
    assert _bulk(np.append(most, np.full(9, 6.0)), 9.0) == (0.0, 0.5)
    assert _bulk(np.append(most, np.full(60, 6.0)), 9.0) == (0.0, 6.0)


@pytest.mark.parametrize(
    ("low", "high"), [(-12, 140), (-12, 3), (-1, 1.4), (0.3, 2.25), (0.2, 0.45), (2.0, 2.01)]
)
def test_a_scale_has_four_numbers_or_more(low: float, high: float) -> None:
    places, labels = decades(low, high)
    assert 4 <= len(places) == len(labels) <= 8
    assert all(low <= place <= high for place in places)
    np.testing.assert_allclose([np.log10(float(label)) for label in labels], places, atol=1e-3)


def test_a_sweep_of_a_network_has_the_same_figure(tmp_path) -> None:
    pytest.importorskip("sklearn", reason="the digits are in scikit-learn")
    problem = ol.problems.digits_mlp(hidden=8)
    settings = {"learning_rate": [0.001, 0.01, 0.1], "beta1": [0.5, 0.9]}
    sweep = ol.sweep(problem, O.Adam, settings, steps=30)
    assert "Best of 6" in texts(sweep.heatmap())
    assert sweep.ends.get("learning_rate") in (None, "lowest", "highest")
    assert sweep.start_loss == sweep.loss[0, 0, 0]
    assert sweep.save(tmp_path / "sweep.png").stat().st_size > 5000
    view = settings_view(sweep, None, None, 760, 460)
    np.testing.assert_allclose(10**view.height, sweep.final_loss.T, rtol=1e-6)
    assert view.best == tuple(
        np.unravel_index(int(np.argmin(sweep.final_loss.T)), view.height.shape)
    )


def test_a_bound_of_a_setting_is_no_end_of_what_was_tried() -> None:
    settings = {"learning_rate": [0.001, 0.01, 0.05], "momentum": [0.0, 0.5, 0.9]}
    sweep = ol.sweep("booth", O.Momentum, settings, steps=40)
    assert sweep.best() == {"learning_rate": 0.05, "momentum": 0.0}
    assert sweep.ends == {"learning_rate": "highest"}


def test_without_minima_the_figure_says_so() -> None:
    found = ol.basins(lambda x, y: x + 0.5 * y, O.SGD(0.01), grid=6, steps=5)
    assert not len(found.minima)
    assert "no minimum is known, and none was found" in repr(found)
    said = texts(found.figure())
    assert "No minimum is known, and none was found where runs end, 100 % have not arrived" in said
    assert "star is a minimum" not in said


def test_the_list_of_minima_is_beside_the_map() -> None:
    found = ol.basins("himmelblau", O.SGD(0.01), grid=10, steps=50)
    view = attraction_view(found, 860, 500)
    panel, other = view.page.panels
    assert panel.width == pytest.approx(panel.height)  # the domain is a square
    assert other.left - panel.left - panel.width == 40


@pytest.mark.parametrize("problem", ["himmelblau", "double_well", "rastrigin"])
def test_basins_have_a_color_for_each_minimum(problem: str) -> None:
    found = ol.basins(problem, O.SGD(0.001), grid=12, steps=150)
    figure = found.figure()
    assert "ends on" in texts(figure)
    view = attraction_view(found, 860, 500)
    for number in np.unique(found.basin):
        codes = np.unique(view.codes[found.basin == number])
        hues = {code // 6 for code in codes.tolist()}
        assert len(hues) == 1  # one hue, some shades
    assert sum(row.part for row in view.rows) == pytest.approx(1.0)


def test_a_dark_page_has_no_lines_across_the_maps(grid) -> None:
    from PIL import Image

    def cells(png: bytes) -> np.ndarray:
        """Return the colors down the middle of the cells at the left of the map."""
        picture = np.asarray(Image.open(BytesIO(png)).convert("RGB"))
        column = picture[100:390, 60]
        changes = np.any(column[1:] != column[:-1], axis=1)
        return np.flatnonzero(changes)

    light = cells(ol.viz.heatmap_png(grid))
    with ol.viz.use_style("dark"):
        dark = ol.viz.heatmap_png(grid)
    np.testing.assert_array_equal(cells(dark), light)
    assert Image.open(BytesIO(dark)).convert("RGB").getpixel((2, 2)) == (22, 26, 32)


def test_pictures_and_files(grid, tmp_path) -> None:
    from PIL import Image

    found = ol.basins("booth", O.SGD(0.01), grid=8, steps=30)
    for result, png in ((grid, ol.viz.heatmap_png(grid)), (found, ol.viz.basins_png(found))):
        picture = np.asarray(Image.open(BytesIO(png)).convert("RGB"))
        assert len(np.unique(picture.reshape(-1, 3), axis=0)) > 10
        assert (result.save(tmp_path / "picture.png")).stat().st_size > 5000
        bundle = result._repr_mimebundle_()
        assert {"image/png", "text/plain", "application/vnd.plotly.v1+json"} <= bundle.keys()
