"""PipelineOptimizer on threads: the numbers of the loop without sections, to the bit."""

import gc
import weakref

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import optlab as ol
from tests.parallel import pipelines

CRITERION = ol.nn.CrossEntropyLoss()


def assert_same(found, wanted):
    assert found[0] == wanted[0]
    for a, b in zip(found[1], wanted[1], strict=True):
        np.testing.assert_array_equal(a, b)


def by_hand(micro_batches, steps=3, inner=pipelines.adam, extra=None):
    model = pipelines.network(extra)
    optimizer, (x, y) = inner(model), pipelines.data()
    losses = [
        float(pipelines.loop(model, optimizer, CRITERION, x, y, micro_batches))
        for _ in range(steps)
    ]
    return losses, pipelines.values(model)


@pytest.mark.parametrize("schedule", ["1F1B", "GPipe"])
@pytest.mark.parametrize("micro_batches", [4, 8, 16])
@pytest.mark.parametrize("sections", [1, 2, 4])
def test_a_step_is_that_of_the_loop_without_sections_to_the_bit(sections, micro_batches, schedule):
    found = pipelines.trained(sections, micro_batches, schedule=schedule)
    assert_same(found, by_hand(micro_batches))


@settings(max_examples=25, deadline=None)
@given(
    where=st.sets(st.integers(0, 8), max_size=8),
    micro_batches=st.sampled_from([1, 2, 4, 8, 32]),
    schedule=st.sampled_from(["1F1B", "gpipe"]),
    queue_size=st.integers(1, 3),
    workers=st.lists(st.integers(1, 3), min_size=9, max_size=9),
)
def test_cuts_schedules_queues_and_workers_change_no_bit(
    where, micro_batches, schedule, queue_size, workers
):
    model = pipelines.network()
    optimizer = ol.optimizer.PipelineOptimizer(
        pipelines.adam(model),
        [model[i] for i in sorted(where)],
        concurrency_list=workers[: len(where) + 1],
        queue_size=queue_size,
        num_microbatches=micro_batches,
        schedule=schedule,
    )
    x, y = pipelines.data()
    losses = [float(optimizer.step(model, CRITERION, x, y)) for _ in range(2)]
    assert_same((losses, pipelines.values(model)), by_hand(micro_batches, steps=2))


def test_the_loss_is_the_mean_over_the_batch():
    model = pipelines.network()
    x, y = pipelines.data()
    with ol.no_grad():
        whole = float(CRITERION(model(x), y))
    found = pipelines.pipeline(model, 2, 8).step(model, CRITERION, x, y)
    assert found.shape == ()
    assert not found.requires_grad
    assert float(found) == pytest.approx(whole, rel=1e-6)


@pytest.mark.parametrize("extra", [lambda: ol.nn.Dropout(0.3), lambda: ol.nn.BatchNorm1D(12)])
def test_random_layers_and_running_statistics_do_not_depend_on_the_sections(extra):
    wanted = pipelines.trained(1, 4, extra=extra)
    for sections in (2, 4):
        assert_same(pipelines.trained(sections, 4, extra=extra), wanted)


def test_running_statistics_are_those_of_the_loop():
    extra = lambda: ol.nn.BatchNorm1D(12)  # noqa: E731
    assert_same(pipelines.trained(2, 4, extra=extra), by_hand(4, extra=extra))


def test_dropout_differs_by_step_by_micro_batch_and_by_layer():
    seen = []

    class Seen(ol.nn.Dropout):
        def forward(self, x):
            mask = super().forward(ol.ones([64]))
            seen.append(mask.numpy())
            return x

    pipelines.trained(2, 4, steps=2, extra=lambda: Seen(0.5))
    assert len(seen) == len({mask.tobytes() for mask in seen}) == 2 * 4 * 4


def test_global_norm_clips_are_decided_by_all_sections_together():
    def inner(model):
        return pipelines.adam(model, grad_clip=ol.nn.ClipGradByGlobalNorm(0.01))

    found = pipelines.trained(4, 4, inner=inner)
    assert_same(found, by_hand(4, inner=inner))
    assert found[1][0].tolist() != by_hand(4)[1][0].tolist()


def test_one_section_that_is_not_finite_skips_the_step_of_all():
    model = pipelines.network()
    optimizer = pipelines.pipeline(model, 4, inner=lambda m: pipelines.adam(m, not_finite="skip"))
    model[0].bias.register_hook(lambda g: g * np.nan)  # in the first section alone
    before = pipelines.values(model)
    optimizer.step(model, CRITERION, *pipelines.data())
    for a, b in zip(before, pipelines.values(model), strict=True):
        np.testing.assert_array_equal(a, b)
    assert optimizer.inner_optimizer.skipped == 1


def test_recomputation_inside_sections_changes_no_bit():
    class Block(ol.nn.Layer):
        def __init__(self):
            super().__init__()
            self.body = ol.nn.Sequential(ol.nn.Linear(12, 12), ol.nn.Tanh(), ol.nn.Dropout(0.2))

        def forward(self, x):
            return ol.recompute(self.body, x) if self.again else self.body(x)

    def run(again, cuts):
        Block.again = again
        ol.seed(1)
        model = ol.nn.Sequential(*(Block() for _ in range(4)), ol.nn.Linear(12, 3))
        optimizer = ol.optimizer.PipelineOptimizer(
            pipelines.adam(model), [model[i] for i in cuts], num_microbatches=4
        )
        losses = [float(optimizer.step(model, CRITERION, *pipelines.data())) for _ in range(2)]
        return (losses, pipelines.values(model)), optimizer.trace.most_bytes

    wanted, kept = run(False, [])
    found, less = run(True, [1])
    assert_same(found, wanted)
    assert_same(run(True, [])[0], wanted)
    assert max(less) < kept[0]


# What is held ----------------------------------------------------------------------------------


@pytest.mark.parametrize("micro_batches", [4, 8, 16])
def test_1f1b_holds_p_micro_batches_at_most_and_gpipe_all(micro_batches):
    most = {}

    class Counted(ol.nn.Layer):
        """Counts the outputs of a section that the tape keeps."""

        alive, most = 0, 0

        def forward(self, x):
            output = x * x
            Counted.alive += 1
            Counted.most = max(Counted.most, Counted.alive)
            weakref.finalize(output.node, self.drop)
            return output

        @staticmethod
        def drop():
            Counted.alive -= 1

    for schedule in ("1F1B", "GPipe"):
        Counted.alive = Counted.most = 0
        model = pipelines.network()
        model[1] = Counted()  # in the first of 4 sections
        optimizer = pipelines.pipeline(model, 4, micro_batches, schedule=schedule)
        optimizer.step(model, CRITERION, *pipelines.data())
        gc.collect()
        assert Counted.alive == 0
        most[schedule] = Counted.most
        held = optimizer.trace.most_held
        assert held == ([4, 3, 2, 1] if schedule == "1F1B" else [micro_batches] * 4)
    assert most["1F1B"] <= 4 + 1  # the one that is computed, and those that are kept
    assert most["GPipe"] == micro_batches


def test_the_bytes_held_are_those_of_micro_batches_and_not_of_the_batch():
    held = {}
    for micro_batches in (4, 8):
        optimizer = pipelines.pipeline(model := pipelines.network(), 4, micro_batches)
        optimizer.step(model, CRITERION, *pipelines.data())
        trace = optimizer.trace
        held[micro_batches] = [
            nbytes // count for nbytes, count in zip(trace.most_bytes, trace.most_held, strict=True)
        ]
    examples = pipelines.EXAMPLES // 4
    assert held[4][0] == examples * pipelines.WIDTH * 4  # what tanh saves; the input is the batch
    assert held[4][1] == 2 * held[4][0]  # what has arrived, too
    assert held[4][:3] == [2 * one for one in held[8][:3]]


def test_a_layer_that_is_there_twice_runs_twice():
    def model():
        chain = pipelines.network()
        act, dropped = ol.nn.ReLU(), ol.nn.Dropout(0.3)
        first, second = ol.nn.Sequential(chain[0], act, dropped), ol.nn.Sequential(chain[2], act)
        return ol.nn.Sequential(first, second, chain[0], act, dropped, chain[8])

    def trained(cuts):
        ol.seed(7)
        network = model()
        optimizer = ol.optimizer.PipelineOptimizer(
            pipelines.adam(network), cuts, num_microbatches=4
        )
        losses = [float(optimizer.step(network, CRITERION, *pipelines.data())) for _ in range(2)]
        return losses, pipelines.values(network)

    alone = trained([])
    for cuts in (["4"], ["3", "4"]):
        losses, values = trained(cuts)
        assert losses == alone[0]
        for a, b in zip(values, alone[1], strict=True):
            np.testing.assert_array_equal(a, b)
    network = model()
    network.eval()
    x, y = pipelines.data()
    with ol.no_grad():
        expected = CRITERION(network(x), y).item()
    optimizer = ol.optimizer.PipelineOptimizer(pipelines.adam(network))
    assert float(optimizer.step(network, CRITERION, x, y)) == expected
    with pytest.raises(ValueError, match=r"0\.0\.weight is used in section 0 .* and in section 1"):
        trained(["1"])


def test_running_statistics_of_two_sections_are_refused():
    norm = ol.nn.BatchNorm1D(pipelines.WIDTH, weight_attr=False, bias_attr=False)
    model = pipelines.network()
    model[1] = model[5] = norm
    optimizer = pipelines.pipeline(model, 2)
    with pytest.raises(ValueError, match=r"is used in section 0 .* and in section 1"):
        optimizer.step(model, CRITERION, *pipelines.data())


# Closures and cuts ------------------------------------------------------------------------------


def closure_of(model):
    def run(x):
        h = model[0](x)
        h = (yield {"h": np.tanh(h)})["h"]
        both = yield {"a": model[2](h), "b": h}
        return model[8](both["a"] * both["b"])

    return run


@pytest.mark.parametrize("cut_list", [["h"], [["h"], ["a", "b"]], [["a", "b"], ["loss"]]])
def test_a_generator_function_is_cut_at_the_tensors_that_it_names(cut_list):
    def run(cuts):
        model = pipelines.network()
        parameters = [p for i in (0, 2, 8) for p in model[i].parameters()]
        optimizer = ol.optimizer.PipelineOptimizer(
            ol.optimizer.Adam(0.01, parameters=parameters), cuts, num_microbatches=4
        )
        x, y = pipelines.data()
        losses = [float(optimizer.step(closure_of(model), CRITERION, x, y)) for _ in range(2)]
        return (losses, pipelines.values(model)), len(optimizer.trace.sections)

    found, sections = run(cut_list)
    assert sections == len([one for one in cut_list if one != ["loss"]]) + 1
    assert_same(found, run([])[0])

    model = pipelines.network()
    parameters = [p for i in (0, 2, 8) for p in model[i].parameters()]
    optimizer, (x, y) = ol.optimizer.Adam(0.01, parameters=parameters), pipelines.data()

    def plain(x):
        h = np.tanh(model[0](x))
        return model[8](model[2](h) * h)

    losses = [float(pipelines.loop(plain, optimizer, CRITERION, x, y, 4)) for _ in range(2)]
    assert_same(found, (losses, pipelines.values(model)))


def test_a_closure_that_never_names_the_cut_says_so():
    model = pipelines.network()
    optimizer = ol.optimizer.PipelineOptimizer(pipelines.adam(model), ["g"], num_microbatches=2)
    with pytest.raises(RuntimeError, match="without a yield of 'g'"):
        optimizer.step(closure_of(model), CRITERION, *pipelines.data())


def test_the_lists_of_the_documents_end_with_the_loss_and_count_both_ways():
    model = pipelines.network()
    optimizer = ol.fluid.optimizer.PipelineOptimizer(
        pipelines.adam(model),
        cut_list=[[model[3]], [CRITERION]],
        place_list=[ol.fluid.CPUPlace(), ol.fluid.CPUPlace(), ol.fluid.CPUPlace()],
        concurrency_list=[1, 1, 4],
        queue_size=2,
        sync_steps=1,
    )
    optimizer.step(model, CRITERION, *pipelines.data())
    assert optimizer.trace.workers == [4, 1]
    assert optimizer.trace.sections == ["0 Linear to 3 Tanh", "4 Linear to 8 Linear"]


def test_minimize_takes_the_tensors_of_the_documents():
    w = ol.Parameter([1.0])
    hidden = 2 * w
    loss = (hidden * hidden).sum()
    optimizer = ol.fluid.optimizer.PipelineOptimizer(
        ol.fluid.optimizer.SGD(0.5, parameter_list=[w]), cut_list=[[hidden], [loss]]
    )
    optimizer.minimize(loss)
    assert w.numpy().tolist() == [-3.0]
    with pytest.raises(ValueError, match="ends with the loss"):
        optimizer.minimize((w * w).sum())


def test_names_and_layers_of_inner_chains_are_cuts():
    inner = pipelines.network()
    model = ol.nn.Sequential(("body", inner), ("head", ol.nn.Linear(3, 3)))
    for cut_list in (["body.3"], [inner[3]], [["body.3"], ["loss"]]):
        optimizer = ol.optimizer.PipelineOptimizer(
            pipelines.adam(model), cut_list, num_microbatches=2
        )
        optimizer.step(model, CRITERION, *pipelines.data())
        assert optimizer.trace.sections[0] == "body.0 Linear to body.3 Tanh"
    for cut_list in (["body"], [inner]):
        optimizer = ol.optimizer.PipelineOptimizer(pipelines.adam(model), cut_list)
        optimizer.step(model, CRITERION, *pipelines.data())
        assert optimizer.trace.sections[1] == "head Linear"


# Several workers, several steps -----------------------------------------------------------------


def test_gradients_of_sync_steps_are_collected_and_their_mean_is_the_step():
    model = pipelines.network()
    optimizer = pipelines.pipeline(model, 2, 4, sync_steps=2, concurrency_list=[2, 2])
    x, y = pipelines.data()
    before = pipelines.values(model)
    optimizer.step(model, CRITERION, x[:16], y[:16])
    for a, b in zip(before, pipelines.values(model), strict=True):
        np.testing.assert_array_equal(a, b)
    state = optimizer.state_dict()
    optimizer.step(model, CRITERION, x[16:], y[16:])

    other = pipelines.network()
    inner = pipelines.adam(other)
    for i in range(8):
        (CRITERION(other(x[4 * i : 4 * i + 4]), y[4 * i : 4 * i + 4]) / 4 / 2).backward()
    inner.step()
    for a, b in zip(pipelines.values(other), pipelines.values(model), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-7)

    resumed = pipelines.network()
    again = pipelines.pipeline(resumed, 2, 4, sync_steps=2)
    again.set_state_dict(state)
    again.step(resumed, CRITERION, x[16:], y[16:])
    for a, b in zip(pipelines.values(resumed), pipelines.values(model), strict=True):
        np.testing.assert_array_equal(a, b)


def test_training_resumes_to_the_bit_with_dropout():
    x, y = pipelines.data()
    extra = lambda: ol.nn.Dropout(0.3)  # noqa: E731
    model = pipelines.network(extra)
    optimizer = pipelines.pipeline(model, 2)
    optimizer.step(model, CRITERION, x, y)
    kept = model.state_dict(), optimizer.state_dict()
    kept = {k: v.numpy().copy() for k, v in kept[0].items()}, kept[1]
    wanted = float(optimizer.step(model, CRITERION, x, y))
    other = pipelines.network(extra)
    resumed = pipelines.pipeline(other, 4)
    other.set_state_dict(kept[0])
    resumed.set_state_dict(kept[1])
    assert float(resumed.step(other, CRITERION, x, y)) == wanted


def test_several_workers_with_running_statistics_are_refused():
    model = pipelines.network(lambda: ol.nn.BatchNorm1D(12))
    optimizer = pipelines.pipeline(model, 2, concurrency_list=[2, 1])
    with pytest.raises(ValueError, match=r"section 0 .* has buffers"):
        optimizer.step(model, CRITERION, *pipelines.data())


# What is recorded, and what the worker inherits -------------------------------------------------


def test_a_recorded_run_is_the_same_and_knows_the_loss():
    wanted = pipelines.trained(2, 4)
    model = pipelines.network()
    optimizer = pipelines.pipeline(model, 2, 4)
    x, y = pipelines.data()
    with ol.record(optimizer) as trace:
        losses = [float(optimizer.step(model, CRITERION, x, y)) for _ in range(3)]
    assert_same((losses, pipelines.values(model)), wanted)
    assert trace.loss.tolist() == losses


def test_workers_inherit_auto_cast():
    model = pipelines.network()
    seen = []
    model[4].register_forward_post_hook(lambda layer, inputs, output: seen.append(output.dtype))
    optimizer = pipelines.pipeline(model, 2)
    with ol.amp.auto_cast():
        optimizer.step(model, CRITERION, *pipelines.data())
    assert {str(one) for one in seen} == {"float16"}


def test_gradients_are_cleared_and_those_from_before_do_not_count():
    x, y = pipelines.data()
    model = pipelines.network()
    optimizer = pipelines.pipeline(model, 2)
    CRITERION(model(x), y).backward()
    optimizer.step(model, CRITERION, x, y)
    assert all(p.grad is None or not p.grad.numpy().any() for p in model.parameters())
    wanted = pipelines.trained(2, steps=1)
    for a, b in zip(pipelines.values(model), wanted[1], strict=True):
        np.testing.assert_array_equal(a, b)


# Wrong calls ------------------------------------------------------------------------------------


def test_a_parameter_in_two_sections_is_an_error_that_names_it():
    model = pipelines.network()
    model[4].weight = model[0].weight
    optimizer = pipelines.pipeline(model, 2)
    with pytest.raises(ValueError, match=r"0\.weight is used in section 0 .* and in section 1"):
        optimizer.step(model, CRITERION, *pipelines.data())

    def tied(x):
        h = (yield {"h": model[0](x)})["h"]
        return model[8](model[0](h))

    optimizer = ol.optimizer.PipelineOptimizer(pipelines.adam(model), ["h"])
    before = pipelines.values(model)
    with pytest.raises(ValueError, match=r"0\.weight is used in section 0"):
        optimizer.step(tied, CRITERION, *pipelines.data())
    for a, b in zip(before, pipelines.values(model), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"num_microbatches": 5}, ValueError, "32 examples does not divide into 5"),
        ({"num_microbatches": 64}, ValueError, "does not divide into 64"),
        ({"cut_list": ["11"]}, ValueError, "no Layer '11'"),
        ({"cut_list": ["3", "1"]}, ValueError, "in the order of the network"),
        ({"cut_list": [ol.nn.Tanh()]}, ValueError, "is not one of the chain"),
        ({"cut_list": [["0", "1"]]}, ValueError, "after one Layer"),
        ({"cut_list": [ol.ones([2])]}, TypeError, "a Tensor in cut_list"),
        ({"cut_list": "3"}, TypeError, r"cut_list=\['3'\]"),
        ({"cut_list": [3]}, TypeError, "cut_list has Layers"),
        ({"num_microbatches": 0}, ValueError, "num_microbatches"),
        ({"queue_size": 0}, ValueError, "queue_size"),
        ({"sync_steps": 1.5}, ValueError, "sync_steps"),
        ({"schedule": "2F2B"}, ValueError, "'1F1B' or 'GPipe'"),
        ({"start_cpu_core_id": -1}, ValueError, "start_cpu_core_id"),
        ({"timeout": 0}, ValueError, "timeout"),
        ({"cut_list": ["1"], "concurrency_list": [1, 2, 3, 4]}, ValueError, "concurrency_list"),
        ({"cut_list": ["1"], "place_list": ["cpu"] * 5}, ValueError, "place_list"),
        ({"place_list": [0]}, TypeError, "place_list"),
        ({"microbatches": 3}, TypeError, "microbatches"),
    ],
)
def test_wrong_arguments_say_what_to_write(given, error, said):
    model = pipelines.network()

    def step():
        optimizer = ol.optimizer.PipelineOptimizer(pipelines.adam(model), **given)
        optimizer.step(model, CRITERION, *pipelines.data())

    with pytest.raises(error, match=said):
        step()


def test_wrong_batches_networks_and_criterions_say_what_to_write():
    model = pipelines.network()
    optimizer = pipelines.pipeline(model, 2)
    x, y = pipelines.data()
    with pytest.raises(ValueError, match="one number of examples"):
        optimizer.step(model, CRITERION, x, y[:8])
    with pytest.raises(ValueError, match="detach"):
        optimizer.step(model, CRITERION, ol.to_tensor(x.numpy(), requires_grad=True), y)
    with pytest.raises(RuntimeError, match="the loss, one number"):
        optimizer.step(model, lambda output, y: output, x, y)
    with pytest.raises(TypeError, match="criterion"):
        optimizer.step(model, None, x, y)
    with pytest.raises(TypeError, match="Sequential"):
        ol.optimizer.PipelineOptimizer(pipelines.adam(model), ["1"]).step(
            lambda x: model(x), CRITERION, x, y
        )
    with pytest.raises(RuntimeError, match="parameters"):
        ol.optimizer.PipelineOptimizer(ol.optimizer.SGD(0.1)).step(model, CRITERION, x, y)
