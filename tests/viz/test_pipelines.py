"""The picture of a pipelined step: passes by worker, bubble, and what sections hold."""

import pytest

import optlab as ol
from optlab.optimizer.wrappers.pipeline import simulate
from optlab.viz.pipelines import pipeline
from optlab.viz.style import theme
from tests.parallel import pipelines


def bars(figure):
    return [one for one in figure.data if one.type == "bar" and one.visible]


def test_every_pass_is_a_bar_at_its_time_and_worker():
    trace = simulate(2, 4, workers=[1, 2])
    found = {
        (one.name, y, int(data[0])): (base, base + x)
        for one in bars(ol.viz.pipeline(trace))
        for y, data, base, x in zip(one.y, one.customdata, one.base, one.x, strict=True)
    }
    rows = {place: i for i, place in enumerate(trace.places)}
    assert found == {
        (one.phase, rows[one.section, one.worker], one.micro_batch): (one.start, one.end)
        for one in trace.spans
    }


def test_the_slider_has_both_schedules_and_shows_one_chart_at_a_time():
    figure = ol.viz.pipeline(simulate(4, 8))
    (slider,) = figure.layout.sliders
    labels = [step.label for step in slider.steps]
    assert labels[0] == "as simulated"
    assert {"1F1B 8", "GPipe 8", "GPipe 16"} <= set(labels)
    shown = [tuple(step.args[0]["visible"]) for step in slider.steps]
    assert [sum(one) for one in shown] == [2 + 4] * len(labels)
    assert all(sum(column) == 1 for column in zip(*shown, strict=True))
    (gpipe,) = [step for step in slider.steps if step.label == "GPipe 16"]
    assert "16% idle" in gpipe.args[1]["title"]["text"]


def test_a_measured_step_says_what_was_measured_and_predicted():
    model = pipelines.network()
    optimizer = pipelines.pipeline(model, 2, 4)
    with pytest.raises(TypeError, match="that has taken a step"):
        ol.viz.pipeline(optimizer)
    optimizer.step(model, ol.nn.CrossEntropyLoss(), *pipelines.data())
    figure = ol.viz.pipeline(optimizer)
    assert "measured; (p - 1)/(m + p - 1) = 20%" in figure.layout.title.text
    held = [one for one in figure.data if one.type == "scatter" and one.visible]
    assert [max(one.y) * 1024 for one in held] == optimizer.trace.most_bytes
    assert figure.layout.modebar.remove


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_static_picture_has_the_colors_of_the_page(scheme):
    theme.choose(scheme)
    try:
        content = ol.viz.pipeline_png(simulate(2, 4))
    finally:
        theme.choose(None)
    assert content.startswith(b"\x89PNG")
    import io

    import matplotlib.image

    pixels = matplotlib.image.imread(io.BytesIO(content))
    assert (pixels[..., :3].mean() > 0.5) == (scheme == "light")


def test_what_record_gave_shows_the_last_step_of_its_optimizer():
    net = ol.nn.Sequential(ol.nn.Linear(4, 3), ol.nn.Linear(3, 2))
    sgd = ol.optimizer.SGD(0.1, parameters=net.parameters())
    optimizer = ol.optimizer.PipelineOptimizer(sgd, [net[0]], num_microbatches=2)
    with ol.record(optimizer) as trace:
        optimizer.step(net, ol.nn.functional.mse_loss, ol.ones([4, 4]), ol.zeros([4, 2]))
    assert pipeline(trace).to_json() == pipeline(optimizer).to_json()
    with ol.record(sgd) as other:
        pass
    with pytest.raises(TypeError, match="pipeline draws the trace of a PipelineOptimizer"):
        pipeline(other)
