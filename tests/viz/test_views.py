"""The data of the images, before any drawing: levels, clipping, scales, labels."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest

import optlab as ol
from optlab.viz.style.contours import log_levels
from optlab.viz.style.geometry import Box, clip_line, simplify, spread, thin
from optlab.viz.style.text import format_number
from optlab.viz.views.curve_view import accuracy_view, loss_scale, loss_view
from optlab.viz.views.map_view import map_view

SIZE = (450, 300)


def view_of(race):
    return map_view(race.problem, race, *SIZE)


# The map.


def test_levels_are_evenly_spaced_in_the_logarithm_above_the_minimum():
    x, y = np.meshgrid(np.linspace(-2, 2, 80), np.linspace(-1, 3, 60))
    losses = (1 - x) ** 2 + 100 * (y - x * x) ** 2 - 7
    _, levels, base = log_levels(losses, -7.0)
    assert base == -7
    assert len(levels) >= 12
    np.testing.assert_allclose(np.diff(levels), levels[1] - levels[0])
    assert 0 in np.round(levels, 12)  # a decade is always a level


def test_a_minimum_that_the_surface_undercuts_is_not_believed():
    losses = np.linspace(-5, 5, 100).reshape(10, 10)
    assert log_levels(losses, 0.0)[2] == -5
    assert log_levels(losses, None)[2] == -5


def test_the_map_stays_blank_where_the_formula_does_not_hold():
    losses = np.linspace(1, 5, 100).reshape(10, 10)
    losses[0, 0] = np.nan
    height, *_ = log_levels(losses, 0.0)
    assert np.isnan(height[0, 0])
    assert np.isfinite(height).sum() == 99


def test_scales_are_equal_so_that_angles_are_true(rosenbrock_race):
    box = view_of(rosenbrock_race).box
    assert box.width / box.height == pytest.approx(SIZE[0] / SIZE[1])


def test_start_minimum_and_ends_are_on_the_map_and_labelled(rosenbrock_race):
    view = view_of(rosenbrock_race)
    assert view.start.text == "start"
    assert (view.start.x, view.start.y) == (-0.35, 1.75)
    [minimum] = view.minima
    assert minimum.text == "minimum (1, 1)"
    assert [path.end.text for path in view.paths] == ["SGD", "Momentum", "RMSProp", "Adam"]
    for mark in (view.start, minimum, *(path.end for path in view.paths)):
        assert mark.position is not None
        assert view.box.contains(mark.x, mark.y)


def test_paths_keep_to_what_was_recorded(rosenbrock_race):
    view = view_of(rosenbrock_race)
    for path, trace in zip(view.paths, rosenbrock_race.traces.values(), strict=True):
        points = {tuple(p) for p in trace.parameters["point"]}
        assert all(p in points for p in zip(path.step_x, path.step_y, strict=True))
        at_step = path.step.astype(int)
        before_last = at_step < len(trace.loss)
        np.testing.assert_array_equal(path.step_loss[before_last], trace.loss[at_step[before_last]])
        assert (path.x[-1], path.y[-1]) == tuple(trace.parameters["point"][-1])


def test_a_diverging_path_is_clipped_and_its_steps_are_named(diverging_race):
    view = view_of(diverging_race)
    path = view.paths[0]
    assert path.end is None
    assert path.leaves.text == "SGD leaves at step 1,\ndiverged at step 5"
    drawn = np.isfinite(path.x)
    assert view.box.holds(path.x[drawn], path.y[drawn]).all()
    # The view still magnifies the other three.
    assert view.box.width < 4


def test_a_run_that_ends_far_away_without_diverging_says_where(rosenbrock_race):
    trace = rosenbrock_race.traces["SGD"]
    points = np.array([[-0.35, 1.75], [0.0, 1.0], [50.0, 60.0]])
    away = SimpleNamespace(**{**vars(trace), "parameters": {"point": points}})
    away.step, away.loss = np.array([1, 2]), np.array([5.0, 4.0])
    race = SimpleNamespace(**{**vars(rosenbrock_race), "traces": {"SGD": away}})
    [path] = view_of(race).paths
    assert path.leaves.text == "SGD leaves at step 2,\nends at (50, 60)"


def test_paths_that_become_nan_stop_there(rosenbrock_race):
    trace = rosenbrock_race.traces["SGD"]
    points = np.array([[-0.35, 1.75], [0.0, 1.0], [np.nan, np.nan]])
    broken = SimpleNamespace(**{**vars(trace), "parameters": {"point": points}})
    broken.step, broken.loss = np.array([1, 2]), np.array([5.0, 4.0])
    broken.stopped = "diverged at step 2: the loss is not finite"
    race = SimpleNamespace(**{**vars(rosenbrock_race), "traces": {"SGD": broken}})
    [path] = view_of(race).paths
    assert (path.leaves.x, path.leaves.y) == (0.0, 1.0)
    assert "diverged at step 2" in path.leaves.text


def test_all_minima_are_seen(four_minima_race):
    assert len(view_of(four_minima_race).minima) == 4


def test_contour_numbers_are_decades_and_keep_off_the_paths(rosenbrock_race):
    view = view_of(rosenbrock_race)
    assert {"1", "10", "100"} <= {label.text for label in view.contour_labels}
    pixel = view.box.width / SIZE[0]
    for label in view.contour_labels:
        assert -90 <= label.angle <= 90
        for path in view.paths:
            away = np.hypot(path.x - label.x, path.y - label.y)
            assert np.nanmin(away) > 8 * pixel


def test_a_surface_can_be_drawn_before_anything_ran(rosenbrock_race):
    view = map_view(rosenbrock_race.problem, None, *SIZE)
    assert view.paths == ()
    assert view.box.contains(-2, -1)
    assert view.box.contains(2, 3)


def test_a_network_has_no_map(digits_race):
    with pytest.raises(ValueError, match="too many parameters for a map"):
        map_view(digits_race.problem, digits_race, *SIZE)


def test_a_surface_of_one_coordinate_has_no_map(rosenbrock_race):
    line = dataclasses.replace(rosenbrock_race.problem, dimension=1)
    with pytest.raises(ValueError, match="needs a surface of 2 coordinates"):
        map_view(line, None, *SIZE)


# Clipping and thinning.


def test_clipping_keeps_pieces_and_breaks_between_them():
    x, y = np.array([0.5, 3.0, 0.5]), np.array([0.2, 0.2, 0.8])
    clipped_x, clipped_y = clip_line(x, y, Box(0, 1, 0, 1))
    assert np.isnan(clipped_x).sum() == 1
    inside = np.isfinite(clipped_x)
    assert clipped_x[inside].max() == 1
    np.testing.assert_allclose(clipped_y[inside], [0.2, 0.2, 0.68, 0.8])


def test_clipping_survives_infinite_and_huge_coordinates():
    x = np.array([0.5, 1e200, -1e300, np.inf, np.nan, 0.5, 0.6])
    clipped_x, _ = clip_line(x, np.full(7, 0.5), Box(0, 1, 0, 1))
    finite = clipped_x[np.isfinite(clipped_x)]
    assert ((finite >= 0) & (finite <= 1)).all()
    assert clipped_x[-1] == 0.6


def test_a_line_that_passes_through_is_seen():
    x, _ = clip_line(np.array([-5.0, 5.0]), np.array([0.5, 0.5]), Box(0, 1, 0, 1))
    np.testing.assert_allclose(x, [0, 1])


def test_simplifying_moves_nothing_far_and_keeps_the_end():
    angle = np.linspace(0, 20, 5000)
    x, y = simplify(np.cos(angle), np.sin(angle), 0.01)
    assert len(x) < 2500
    assert (x[-1], y[-1]) == (np.cos(20), np.sin(20))


def test_a_single_spike_survives_thinning():
    values = np.zeros(100_000)
    values[61_803] = 5
    keep = thin(values, 500)
    assert len(keep) <= 500
    assert 61_803 in keep


def test_labels_at_one_height_are_spread_and_stay_in_order():
    placed = spread([50.0, 50.1, 50.2, 90.0], 15, 0, 100)
    assert placed == sorted(placed)
    assert min(np.diff(placed)) >= 15 - 1e-9


# Curves.


def test_the_curve_starts_before_the_first_step_and_ends_after_the_last(rosenbrock_race):
    view = loss_view(rosenbrock_race, 300, 300)
    for series in view.series:
        trace = rosenbrock_race.traces[series.name]
        assert series.x[0] == 0
        assert series.x[-1] == rosenbrock_race.steps
        assert series.y[0] == pytest.approx(trace.loss[0])
        assert series.y[-1] == pytest.approx(rosenbrock_race.final_loss[series.name])


def test_a_negative_minimum_is_subtracted_and_the_title_says_so(quadratic_race):
    view = loss_view(quadratic_race, 300, 300)
    assert view.scale == "log"
    assert view.title == "Loss above the minimum −3"


def test_losses_below_zero_without_a_known_minimum_are_linear():
    assert loss_scale([np.array([2.0, -1.0])], None)[0] == "linear"
    assert loss_scale([np.array([2.0, -1.0])], 0.0)[0] == "linear"  # undercut: not a minimum
    assert loss_scale([np.array([2.0, 1.0])], None)[:2] == ("log", 0.0)


def test_a_linear_axis_shows_zero(quadratic_race):
    problem = dataclasses.replace(quadratic_race.problem, minimum_value=None)
    race = SimpleNamespace(**{**vars(quadratic_race), "problem": problem})
    view = loss_view(race, 300, 300)
    assert view.scale == "linear"
    assert view.box.y_low < 0 < view.box.y_high


def test_a_diverging_loss_does_not_press_the_others_flat(diverging_race):
    view = loss_view(diverging_race, 300, 300)
    assert view.box.y_high < 5  # powers of ten; the loss itself exceeded 1e100
    [(name, _, mark)] = view.stops
    assert name == "SGD"
    assert mark.text == "SGD diverged at step 5"
    assert {end.name for end in view.ends} == {"Momentum", "RMSProp", "Adam"}


def test_reaching_the_minimum_exactly_leaves_through_the_floor(rosenbrock_race):
    trace = rosenbrock_race.traces["Adam"]
    lucky = SimpleNamespace(**vars(trace))
    lucky.loss = np.where(np.arange(500) < 100, trace.loss, 0.0)
    traces = {**rosenbrock_race.traces, "Adam": lucky}
    final = {**rosenbrock_race.final_loss, "Adam": 0.0}
    race = SimpleNamespace(**{**vars(rosenbrock_race), "traces": traces, "final_loss": final})
    view = loss_view(race, 300, 300)
    [(name, _, mark)] = view.stops
    assert name == "Adam"
    assert "from step 100" in mark.text
    assert mark.y == pytest.approx(10**view.box.y_low)


def test_a_network_is_drawn_raw_and_smoothed_and_the_note_says_how(digits_race):
    view = loss_view(digits_race, 300, 300)
    assert [series.faint for series in view.series] == [True] * 4 + [False] * 4
    assert "mean of 11 neighbouring steps" in view.note
    raw, smooth = view.series[0], view.series[4]
    assert raw.name == smooth.name
    assert np.abs(np.diff(np.log(smooth.y))).mean() < np.abs(np.diff(np.log(raw.y))).mean() / 4


def test_accuracy_says_why_there_is_none(broken_network_race):
    rows = accuracy_view(broken_network_race).rows
    assert [(name, value, text) for name, _, value, text in rows] == [
        ("SGD", None, "diverged at step 12"),
        ("Adam", 0.978, "97.8 %"),
    ]


def test_every_run_diverged_and_there_is_still_a_picture(diverging_race):
    traces = {"SGD": diverging_race.traces["SGD"]}
    race = SimpleNamespace(**{**vars(diverging_race), "traces": traces})
    assert loss_view(race, 300, 300).ends == ()
    assert len(view_of(race).paths) == 1


def test_losses_stand_over_the_gradients_that_were_evaluated_for_them():
    """A line search needs several evaluations, so its curve is not drawn over its few updates."""
    templates = {
        "search": ol.optimizer.LBFGS(line_search_fn="strong_wolfe"),
        "SGD": ol.optimizer.SGD(1e-4),
    }
    race = ol.compare("rosenbrock", templates, steps=60)
    curves = {curve.name: curve for curve in loss_view(race, *SIZE).series}
    ends = race.evaluations["search"]
    assert len(ends) < ends[-1]
    assert curves["search"].x[-1] == ends[-1]
    assert curves["SGD"].x[-1] == 60


def test_losses_of_a_start_on_the_minimum_have_a_panel():
    race = ol.compare(lambda x, y: x**2 + 3 * y**2, {"SGD": ol.optimizer.SGD(0.1)}, start=(0, 0))
    view = loss_view(race, *SIZE)
    assert view.box.height == 1
    assert [end.text for end in view.ends] == ["SGD 0"]
    assert race.figure().data


def test_of_a_path_with_noise_the_last_steps_stand_out():
    rates = {name: ol.optimizer.SGD(rate) for name, rate in (("large", 0.1), ("small", 0.01))}
    race = ol.compare("noisy_bowl", rates, steps=200)
    for path in map_view(race.problem, race, *SIZE).paths:
        points = race[path.name].parameters["point"]
        recent = points[-40:]
        assert path.pale is not None
        assert np.nanmin(path.x) >= recent[:, 0].min() - 0.1
        assert np.nanmax(path.x) <= recent[:, 0].max() + 0.1
        assert path.pale[0][0] == points[0, 0]
        assert path.step[path.dotted].min(initial=200) >= 160
    view = loss_view(race, *SIZE)
    assert [curve.faint for curve in view.series] == [True, True, False, False]
    assert "mean of 5 neighbouring steps" in view.note
    for end, curve in zip(view.ends, view.series[2:], strict=True):
        assert end.text == f"{end.name} {format_number(curve.y[-1])}"
    calm = ol.compare("reddi", {"SGD": ol.optimizer.SGD(0.1)}, steps=90)  # a pattern is no noise
    assert [curve.faint for curve in loss_view(calm, *SIZE).series] == [False]
