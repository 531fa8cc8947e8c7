"""Memory studies: all methods bitwise equal, no side effects, and reports of failures."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import optlab as ol
from optlab.autograd.schedules import revolve
from optlab.backend import random
from optlab.nn.layers.containers import chain_runner


class Block(ol.nn.Layer):
    """A residual block with dropout, and a Sequential inside."""

    def __init__(self, width: int = 16) -> None:
        super().__init__()
        self.inside = ol.nn.Sequential(
            ol.nn.LayerNorm(width), ol.nn.Linear(width, 4 * width), ol.nn.GELU(),
            ol.nn.Dropout(0.2), ol.nn.Linear(4 * width, width),
        )  # fmt: skip

    def forward(self, x: ol.Tensor) -> ol.Tensor:
        return x + self.inside(x)


def network(depth: int = 6, width: int = 16, batch: int = 64) -> tuple[list[Block], ol.Tensor]:
    ol.seed(0)
    return [Block(width) for _ in range(depth)], ol.randn([batch, width])


def stepping(blocks, x):
    def step(run):
        loss = run(blocks, x).mean()
        loss.backward()
        return loss

    return step


def test_every_way_gives_the_same_and_needs_what_was_predicted() -> None:
    blocks, x = network(6, 64, 256)
    study = ol.lab.memory_study(
        stepping(blocks, x),
        ["plain", 3, "sqrt", "revolve", ("revolve", 2), revolve(6, 1)],
        ["4 MiB"],
        repeats=1,
    )
    assert study.equal
    assert [row.equal for row in study] == [True] * 7
    assert study.leaves == 6 * 6
    for row in study.rows[1:-1]:
        assert row.recomputed_operations == row.predicted_operations > 0
        assert row.recomputed_layers == row.prediction.schedule.recomputed_layers
        # The saved bytes are as predicted; temporaries and Python objects come on top.
        assert row.predicted_peak < row.peak < row.predicted_peak + 1_200_000
    assert study["budget 4 MiB"].recomputed_operations > 0
    assert study["sqrt"].peak < 0.7 * study.plain.peak
    assert len(study["sqrt"].timeline) > len(study.plain.timeline) > 10
    assert all(row.seconds > 0 for row in study)


def test_a_model_with_a_sequential_inside_needs_no_run() -> None:
    ol.seed(0)
    model = ol.nn.Sequential(*(Block() for _ in range(5)))
    x = ol.randn([32, 16])

    def step():
        model(x).mean().backward()

    study = ol.lab.memory_study(step, [5, "revolve"], repeats=1, timelines=False)
    assert study.equal
    assert study["5 segments"].recomputed_layers == 5  # of the outer chain, not of those in blocks
    assert study["5 segments"].recomputed_operations == study["5 segments"].predicted_operations
    assert study.plain.timeline is None
    assert model.forward.__self__ is model  # and it runs as before
    assert chain_runner.value is None


def test_nothing_remains() -> None:
    ol.seed(0)
    model = ol.nn.Sequential(
        ol.nn.Linear(8, 8), ol.nn.BatchNorm1D(8), ol.nn.Tanh(), ol.nn.Linear(8, 4)
    )
    optimizer = ol.optimizer.Adam(0.1, parameters=model.parameters())
    x = ol.randn([16, 8])
    loss = (model(x) ** 2).mean()
    loss.backward()
    optimizer.step()

    def step():
        loss = (model(x) ** 2).mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        np.random.random(3)  # noqa: NPY002
        return loss

    def all_of_it():
        return (
            [p.numpy() for p in model.parameters()],
            [b.numpy() for b in model.buffers()],
            [p.grad.numpy() for p in model.parameters()],
            {k: v.numpy() if isinstance(v, ol.Tensor) else v
             for k, v in optimizer.state_dict().items()},
            random.bookmark(),
            np.random.get_state()[1:],  # noqa: NPY002
        )  # fmt: skip

    before = all_of_it()
    study = ol.lab.memory_study(step, [2, "sqrt"], optimizer=optimizer, repeats=2)
    assert study.equal
    assert study.leaves == 6
    np.testing.assert_equal(all_of_it(), before)


def test_an_update_needs_its_optimizer_and_says_so_before_anything_changed() -> None:
    ol.seed(0)
    model = ol.nn.Sequential(ol.nn.Linear(4, 4), ol.nn.Tanh())
    optimizer = ol.optimizer.SGD(0.1, parameters=model.parameters())
    weights = model[0].weight.numpy()

    def step():
        model(ol.ones([2, 4])).mean().backward()
        optimizer.step()

    with pytest.raises(RuntimeError, match=r"update with SGD.*optimizer=optimizer"):
        ol.lab.memory_study(step, [2])
    assert np.array_equal(model[0].weight.numpy(), weights)
    assert model[0].weight.grad is None
    optimizer.clear_grad()
    step()  # it works as before


def test_a_difference_is_found_and_named() -> None:
    blocks, x = network(4)

    def other():
        y = x
        for block in blocks:
            y = block(y)
        (1.5 * y.mean()).backward()
        return y.mean()

    study = ol.lab.memory_study(stepping(blocks, x), [], own={"mine": other}, repeats=1)
    assert not study.equal
    assert (
        "gradient of 3.inside.4.weight differs in 1,024 of 1,024 numbers"
        in study["mine"].difference
    )
    assert "DIFFER" in str(study)
    assert "Mine: the gradient of" in str(study)


def test_one_s_own_way_is_compared() -> None:
    blocks, x = network(4)

    def mine():
        y = x
        for block in blocks:
            y = ol.recompute(block, y)
        loss = y.mean()
        loss.backward()
        return loss

    study = ol.lab.memory_study(stepping(blocks, x), [], own={"each": mine}, repeats=1)
    assert study["each"].equal
    assert study["each"].recomputed_operations > 0
    assert study["each"].peak < study.plain.peak


def test_a_budget_that_cannot_be_met_is_a_row_that_says_the_smallest() -> None:
    blocks, x = network()
    study = ol.lab.memory_study(stepping(blocks, x), ["plain"], [5000], repeats=1)
    row = study[1]
    assert row.equal is None
    assert row.seconds is None
    assert row.smallest > 5000
    assert "cannot be met" in str(study)
    assert study.equal
    assert ol.lab.memory_study(
        stepping(blocks, x), [], [row.smallest], repeats=1, timelines=False
    )[1].equal  # fmt: skip


def test_a_step_that_changes_by_itself_is_refused() -> None:
    blocks, _ = network(2)
    count = iter(range(1, 100))

    def step(run):
        x = np.linspace(0, 1, 16, dtype=np.float32).reshape(1, 16) ** next(count)
        run(blocks, ol.to_tensor(x)).sum().backward()

    with pytest.raises(ValueError, match="not the same each time"):
        ol.lab.memory_study(step, [2])


def test_tensors_that_a_step_makes_are_compared_too() -> None:
    def step():
        x = ol.to_tensor(np.linspace(0, 1, 50), requires_grad=True)
        np.sum(np.tanh(np.sin(x))).backward()

    study = ol.lab.memory_study(step, [], ["1 MiB"], repeats=1)
    assert study.equal
    assert study.leaves == 1


@pytest.mark.parametrize(
    ("step", "options", "error", "said"),
    [
        (3, {}, TypeError, "makes one step"),
        (lambda run, x: None, {}, TypeError, "make a function around"),
        (lambda run: None, {}, ValueError, "did not run its layers by run"),
        (lambda: None, {}, ValueError, "no nn.Sequential was called"),
        (lambda: None, {"schedules": ["plain"]}, ValueError, "makes no gradients"),
        (lambda: None, {"schedules": "sqrt"}, TypeError, r"\['sqrt'\]"),
        (lambda: None, {"schedules": ["squirt"]}, TypeError, "'squirt'"),
        (lambda: None, {"schedules": [0]}, ValueError, "one at least"),
        (lambda: None, {"budgets": ["much"]}, ValueError, "much"),
        (lambda: None, {"repeats": 0}, ValueError, "repeats"),
        (lambda: None, {"own": {"a": lambda run: None}}, TypeError, "takes no run"),
        (lambda: None, {"optimizer": ol.optimizer.SGD(0.1)}, TypeError, "made with parameters"),
        (lambda: None, {"schedules": [], "own": {"plain": print}}, ValueError, "two ways"),
    ],
)  # fmt: skip
def test_bad_input(step, options, error, said) -> None:
    with pytest.raises(error, match=said):
        ol.lab.memory_study(step, **options)


def test_too_many_segments() -> None:
    blocks, x = network(3)
    with pytest.raises(ValueError, match=r"9 segments .* layers \(3\)"):
        ol.lab.memory_study(stepping(blocks, x), [9])
    assert blocks[0].inside[1].weight.grad is None


def test_a_way_that_raises_is_a_row_that_says_so_and_everything_is_put_back() -> None:
    ol.seed(0)
    count = iter(range(1000))

    class Odd(ol.nn.Layer):
        def forward(self, x):
            return x * (1 + ol.autograd.is_recomputing()) + 0 * next(count)

    w = ol.to_tensor(np.ones(3), requires_grad=True)
    place = random.bookmark()

    def wrong():
        np.ones(3) @ np.ones(4)

    study = ol.lab.memory_study(
        lambda run: run([Odd(), Odd()], w).sum().backward(),
        [2], ["1 MiB"], own={"wrong": wrong, "right": lambda: (w * 1).sum().backward()}, repeats=2,
    )  # fmt: skip
    assert study["2 segments"].raised.startswith("RecomputationError: ")
    assert study["wrong"].raised.startswith("ValueError: matmul")
    for name in ("2 segments", "wrong"):
        row = study[name]
        assert row.peak is row.seconds is row.timeline is row.equal is None
        assert f"raised: {row.raised}"[:60] in str(study)
        assert f"{row.name[1:]} raised {row.raised}"[:60] in study.proof()
        assert "raised" in repr(row)
    for name in ("plain", "budget 1 MiB", "right"):
        assert study[name].equal
        assert len(study[name].times) == 2
    assert "2 raised an error" in repr(study)
    assert len(study.front()) >= 1
    assert w.grad is None
    assert random.bookmark() == place
    pytest.importorskip("pandas")
    assert list(study.table()["raised"]) == ["", study[1].raised, "", study["wrong"].raised, ""]


def test_a_way_that_raises_only_later_is_such_a_row_too() -> None:
    w = ol.to_tensor(np.ones(3), requires_grad=True)
    calls = []

    def tired():
        calls.append(1)
        if len(calls) > 4:
            raise RuntimeError("tired\nof it")
        (w * 1).sum().backward()

    study = ol.lab.memory_study(lambda: (w * 1).sum().backward(), [], own={"t": tired}, repeats=3)
    assert study["t"].raised == "RuntimeError: tired"
    assert study["t"].peak is study["t"].seconds is None
    assert len(study.plain.times) == 3


def test_an_error_of_the_plain_run_is_raised() -> None:
    w = ol.to_tensor(np.ones(3), requires_grad=True)
    calls = []

    def step():
        calls.append(1)
        if len(calls) > 5:
            raise RuntimeError("tired")
        (w * 1).sum().backward()

    with pytest.raises(RuntimeError, match="tired") as raised:
        ol.lab.memory_study(step, [], repeats=3)
    assert "plain run" in raised.value.__notes__[-1]
    assert w.grad is None


def timed(*times: list[float]):
    """Return a study whose runs took these times."""
    blocks, x = network(4)
    study = ol.lab.memory_study(
        stepping(blocks, x), [2, "revolve"][: len(times) - 1], repeats=1, timelines=False
    )
    for row, several in zip(study, times, strict=True):
        row.times = several
    return study


def test_times_have_a_range_and_what_cannot_be_told_is_not_claimed() -> None:
    study = timed([0.010, 0.012, 0.011], [0.0115, 0.013, 0.012], [0.020, 0.021, 0.030])
    assert study.apart(study["revolve"])
    assert not study.apart(study["2 segments"])
    plain, near, far = study.texts()
    assert plain[3:6] == ("11.0 ms", "10.0–12.0 ms", "1.00")
    assert near[3:6] == ("12.0 ms", "11.5–13.0 ms", "≈ 1.09")
    assert far[3:6] == ("21.0 ms", "20.0–30.0 ms", "1.91")
    assert "≈: its range overlaps that of plain" in str(study)
    study["revolve"].peak, study["2 segments"].peak = 5, 10
    assert study.headline().endswith(", at 1.91 x the time.")
    study["2 segments"].peak = 1
    assert "x the time" not in study.headline()
    assert study.headline().startswith("2 segments needs least memory")


def test_two_times_are_too_few() -> None:
    study = timed([0.012, 0.011], [0.004, 0.005])
    assert study.texts()[1][5] == "≈ 0.39"
    assert "x the time" not in study.headline()
    assert "So few cannot tell" in str(study)


def test_of_times_taken_once_nothing_is_claimed() -> None:
    study = timed([0.012], [0.001])
    assert study.texts()[1][3:6] == ("1.0 ms", "once", "")
    assert "x the time" not in study.headline()
    assert "each way once" in str(study)
    assert "each way once" in study._repr_html_()


def test_bounds_and_front_and_table() -> None:
    blocks, x = network(6)
    study = ol.lab.memory_study(stepping(blocks, x), [3, "revolve"], repeats=1, timelines=False)
    bounds = study.bounds()
    by_name = {(bound.schedule, bound.parameter): bound for bound in bounds}
    three = by_name["segments", 3]
    assert three.recomputed_layers == 6
    assert three.nbytes == study["3 segments"].predicted_peak + study.besides
    assert by_name["revolve", 6].recomputed_layers == 5
    assert study.front()[-1].seconds == min(row.seconds for row in study)
    pytest.importorskip("pandas")
    table = study.table()
    assert table.loc["3 segments", "recomputed layers"] == 6
    assert list(table["gradients equal"]) == [True] * 3


def test_a_step_that_forgets_backward_is_refused():
    blocks, x = network(3)
    net = ol.nn.Sequential(*blocks)
    with pytest.raises(ValueError, match="makes no gradients"):
        ol.lab.memory_study(lambda: np.mean(net(x) ** 2), [2], repeats=1)


def test_a_recompute_optimizer_that_is_about_changes_no_study():
    blocks, x = network(4)
    step = stepping(blocks, x)
    before = ol.lab.memory_study(step, [2], repeats=1, timelines=False)
    parameters = [p for block in blocks for p in block.parameters()]
    adam = ol.optimizer.Adam(0.1, parameters=parameters)
    optimizer = ol.optimizer.RecomputeOptimizer(adam)
    optimizer.set_checkpoints(blocks[1:2])
    after = ol.lab.memory_study(step, [2], repeats=1, timelines=False)
    assert [r.recomputed_operations for r in after] == [r.recomputed_operations for r in before]


def test_a_step_that_recomputes_a_sequential_by_itself_can_be_studied():
    blocks, x = network(3)
    net = ol.nn.Sequential(*blocks)

    def step():
        (ol.recompute(net, x) ** 2).mean().backward()
        (net(x) ** 2).mean().backward()

    assert ol.lab.memory_study(step, [2], repeats=1).equal


def test_a_budget_that_is_too_small_is_said_by_its_row_alone() -> None:
    step = stepping(*network())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        study = ol.lab.memory_study(step, ["plain"], budgets=[1000], repeats=1)
    assert study.rows[-1].smallest
