"""The figures, their static images, and the content that a notebook stores."""

import base64
import json
import subprocess
import sys
from io import BytesIO
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from optlab import viz
from optlab.viz.renderers import comparison as renderer
from optlab.viz.style.text import format_rate, race_headline, summary

RACES = (
    "rosenbrock_race",
    "diverging_race",
    "four_minima_race",
    "quadratic_race",
    "digits_race",
    "broken_network_race",
)


@pytest.fixture(params=RACES)
def any_race(request):
    return request.getfixturevalue(request.param)


def texts(figure):
    """Return all texts of a figure."""
    data = [str(text) for trace in figure.data for text in (getattr(trace, "text", None) or ())]
    return [note.text for note in figure.layout.annotations] + data


# Figures.


def test_a_figure_has_the_size_asked_for(any_race):
    figure = viz.race(any_race)
    assert (figure.layout.width, figure.layout.height) == (1000, 480)
    narrow = viz.race(any_race, width=900)
    assert narrow.layout.width == 900


def test_a_figure_too_small_to_read_is_refused(rosenbrock_race):
    with pytest.raises(ValueError, match="too small to read"):
        viz.race(rosenbrock_race, width=200)


def test_each_optimizer_has_one_legend_entry_that_switches_path_and_curve(rosenbrock_race):
    figure = viz.race(rosenbrock_race)
    shown = [trace for trace in figure.data if trace.showlegend is not False and trace.name]
    assert [trace.name for trace in shown] == ["SGD", "Momentum", "RMSProp", "Adam"]
    for name in rosenbrock_race.traces:
        group = [trace for trace in figure.data if trace.legendgroup == name]
        assert {trace.xaxis for trace in group} >= {"x", "x2"}


def test_nothing_can_be_sent_to_a_cloud(any_race):
    figure = viz.race(any_race)
    assert "sendChartToCloud" in figure.layout.modebar.remove
    config = renderer.mimebundle(any_race)["application/vnd.plotly.v1+json"]["config"]
    assert "sendChartToCloud" in config["modeBarButtonsToRemove"]
    assert config["showSendToCloud"] is False


def test_scales_are_equal_on_the_map_and_the_loss_is_logarithmic(rosenbrock_race):
    layout = viz.race(rosenbrock_race).layout
    assert layout.yaxis.scaleanchor == "x"
    assert layout.yaxis.scaleratio == 1
    assert layout.yaxis2.type == "log"


def test_the_pointer_reads_step_place_and_loss(rosenbrock_race):
    figure = viz.race(rosenbrock_race)
    hovers = [trace.hovertemplate or "" for trace in figure.data if trace.legendgroup == "Adam"]
    path = next(hover for hover in hovers if "y %{y" in hover)
    assert "after %{customdata[0]:d} steps" in path
    assert "loss %{customdata[1]" in path


def test_the_conditions_stand_under_the_figure(rosenbrock_race):
    written = " ".join(texts(viz.race(rosenbrock_race)))
    assert "Same start (−0.35, 1.75), same 500 steps, same seed (0)." in written
    assert "SGD 0.002, Momentum 0.0005, RMSProp 0.01, Adam 0.2." in written


def test_start_minimum_ends_and_divergence_are_written_on_the_figure(diverging_race):
    written = texts(viz.race(diverging_race))
    assert "start" in written
    assert "minimum (1, 1)" in written
    assert "Adam" in written
    assert "SGD leaves at step 1,<br>diverged at step 5" in written
    assert "SGD diverged at step 5" in written


def test_a_network_shows_its_held_out_accuracies_from_zero(digits_race):
    figure = viz.race(digits_race)
    written = [text.strip() for text in texts(figure)]
    for value in ("88.9 %", "96.1 %", "97.5 %", "97.8 %"):
        assert value in written
    assert figure.layout.xaxis2.range[0] == 0


def test_a_network_without_accuracies_shows_its_losses_alone(digits_race):
    race = SimpleNamespace(**{**vars(digits_race), "accuracy": {}})
    assert {trace.xaxis for trace in viz.race(race).data} <= {None, "x"}
    assert viz.race_png(race)[:4] == b"\x89PNG"


def test_a_map_of_a_problem_and_a_map_of_a_race(rosenbrock_race):
    alone = viz.surface_map(rosenbrock_race.problem)
    with_paths = viz.surface_map(rosenbrock_race)
    assert not any(trace.legendgroup for trace in alone.data)
    assert {trace.legendgroup for trace in with_paths.data} > set(rosenbrock_race.traces)


def test_many_traces_get_a_second_row_in_the_legend_and_room_for_it(rosenbrock_race):
    trace = rosenbrock_race.traces["Adam"]
    names = [f"Adam number {n}" for n in range(12)]
    race = SimpleNamespace(
        **{
            **vars(rosenbrock_race),
            "traces": {name: SimpleNamespace(**{**vars(trace), "name": name}) for name in names},
            "final_loss": dict.fromkeys(names, 0.03),
        }
    )
    assert viz.race(race).layout.margin.t > viz.race(rosenbrock_race).layout.margin.t
    assert viz.race_png(race)[:4] == b"\x89PNG"


# Static images.


@pytest.mark.parametrize(("scale", "size"), [(1.0, (1000, 480)), (2.0, (2000, 960))])
def test_a_picture_has_the_size_asked_for_and_something_on_it(rosenbrock_race, scale, size):
    image = Image.open(BytesIO(viz.race_png(rosenbrock_race, scale=scale)))
    assert image.size == size
    assert len(np.unique(np.asarray(image.convert("L")))) > 20


def test_every_race_has_a_picture(any_race):
    image = Image.open(BytesIO(viz.race_png(any_race, width=900)))
    assert image.size == (900, 480)


def test_a_picture_comes_out_the_same_twice_and_touches_no_settings(rosenbrock_race):
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    first, second = viz.race_png(rosenbrock_race), viz.race_png(rosenbrock_race)
    assert first == second
    assert dict(mpl.rcParams) == before


def test_pictures_open_no_windows():
    code = "import sys, optlab.viz.comparison.image; print('matplotlib.pyplot' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


# Content of a notebook.


def test_the_bundle_has_figure_picture_and_words_and_is_small(any_race):
    bundle = renderer.mimebundle(any_race)
    assert sorted(bundle) == ["application/vnd.plotly.v1+json", "image/png", "text/plain"]
    assert len(json.dumps(bundle)) < 300_000
    assert base64.b64decode(bundle["image/png"])[:4] == b"\x89PNG"


def test_the_stored_figure_is_the_figure(rosenbrock_race):
    stored = renderer.mimebundle(rosenbrock_race)["application/vnd.plotly.v1+json"]
    size = {side: stored["layout"][side] for side in ("width", "height")}
    drawn = json.loads(renderer.figure(rosenbrock_race, **size).to_json())
    assert stored["data"] == drawn["data"]
    assert stored["layout"] == drawn["layout"]


def test_the_summary_says_who_won_by_how_much_and_who_diverged(diverging_race):
    said = renderer.mimebundle(diverging_race)["text/plain"]
    assert said.startswith("Rosenbrock valley. After 500 steps Momentum is lowest, at loss 0.0221.")
    assert "Adam is next, at loss 0.032, 1.45 times the winner's." in said
    assert "SGD diverged at step 5: the loss is not finite." in said


def test_the_summary_of_a_network_goes_by_held_out_accuracy(digits_race):
    said = summary(digits_race)
    assert "Adam has the best held-out accuracy, 97.8 %." in said
    assert "RMSProp is next, at 97.5 % (0.3 percentage points lower)." in said


def test_a_tie_is_called_a_tie(digits_race):
    accuracy = dict.fromkeys(digits_race.traces, 0.9)
    race = SimpleNamespace(**{**vars(digits_race), "accuracy": accuracy})
    assert "SGD, Momentum, RMSProp and Adam have the best" in race_headline(race)


def test_nobody_wins_where_nobody_finished(diverging_race):
    traces = {"SGD": diverging_race.traces["SGD"]}
    race = SimpleNamespace(**{**vars(diverging_race), "traces": traces})
    assert race_headline(race) == "No run finished."


def test_a_falling_rate_is_told_from_both_ends(rosenbrock_race):
    trace = SimpleNamespace(**vars(rosenbrock_race.traces["SGD"]))
    trace.learning_rate = np.geomspace(0.1, 0.001, 500)
    assert format_rate(trace) == "0.1 → 0.001"


# The package.


def test_importing_the_package_loads_no_drawing_library():
    code = "import sys, optlab.viz; print({'plotly', 'matplotlib'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_all_that_the_package_names_is_there():
    for name in viz.__all__:
        assert callable(getattr(viz, name))
    with pytest.raises(AttributeError, match=r"it has .*averages, .*loss_curves"):
        _ = viz.pie_chart
