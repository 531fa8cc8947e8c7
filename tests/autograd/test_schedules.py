"""Schedules that reverse a chain: correct on any chain, of optimal cost, and predicted."""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optlab.autograd.reversal import Schedule
from optlab.autograd.reversal_actions import Advance, Back, Free, Record, Restore, Snapshot
from optlab.autograd.schedule_costs import bounds, reach, recomputations, repetitions
from optlab.autograd.schedules import chosen, in_segments, plain, revolve

FEW = [(n, s) for n in (1, 2, 3, 5, 16, 40, 97) for s in (1, 2, 3, 7, 60)]


class Chain:
    """Layers y = sin(w x) with their derivatives by hand, and the execution of actions on them."""

    def __init__(self, layers: int) -> None:
        self.weights = np.random.default_rng(0).uniform(0.5, 2.0, layers)
        self.inputs = [0.7]  # of each layer, and the output
        for weight in self.weights:
            self.inputs.append(float(np.sin(weight * self.inputs[-1])))

    def slope(self, layer: int, x: float) -> float:
        weight = self.weights[layer]
        return float(weight * np.cos(weight * x))

    def plain_gradient(self) -> float:
        gradient = 1.0
        for layer in reversed(range(len(self.weights))):
            gradient *= self.slope(layer, self.inputs[layer])
        return gradient

    def run(self, actions: Any, memory: dict[str, Any]) -> None:
        """Execute actions; check every value against that of the forward pass."""
        for action in actions:
            match action:
                case Snapshot(layer):
                    memory["stored"][layer] = memory["value"]
                    memory["most stored"] = max(memory["most stored"], len(memory["stored"]))
                case Restore(layer):
                    memory["value"] = memory["stored"][layer]
                case Free(layer):
                    del memory["stored"][layer]
                case Advance(start, stop) | Record(start, stop):
                    for layer in range(start, stop):
                        assert memory["value"] == self.inputs[layer]
                        if isinstance(action, Record):
                            memory["recorded"][layer] = memory["value"]
                        memory["runs"][layer] += 1
                        memory["value"] = float(np.sin(self.weights[layer] * memory["value"]))
                case Back(start, stop):
                    for layer in reversed(range(start, stop)):
                        x = memory["recorded"].pop(layer)
                        memory["gradient"] *= self.slope(layer, x)
                        memory["walked"].append(layer)


def run(schedule: Schedule) -> dict[str, Any]:
    """Execute a schedule on a chain and check the invariants of every schedule."""
    n = schedule.layers
    chain = Chain(n)
    memory: dict[str, Any] = {
        "stored": {}, "recorded": {}, "runs": [0] * n, "value": chain.inputs[0], "gradient": 1.0,
        "walked": [], "most stored": 0,
    }  # fmt: skip
    chain.run(schedule.forward, memory)
    assert memory["value"] == chain.inputs[-1], "forward must end with the output of the chain"
    assert not memory["walked"]
    assert memory["runs"] == [1] * n, "forward runs each layer once"
    chain.run(schedule.backward, memory)
    assert memory["walked"] == list(reversed(range(n)))
    assert memory["gradient"] == chain.plain_gradient()
    assert not memory["stored"]
    assert not memory["recorded"]
    assert tuple(memory["runs"]) == schedule.layer_runs
    assert sum(memory["runs"]) - n == schedule.recomputed_layers
    assert memory["most stored"] == schedule.most_stored
    assert schedule.forward + schedule.backward == schedule.actions
    return memory


# Revolve.


def advanced(schedule: Schedule) -> int:
    """Count the layers that run unrecorded."""
    return sum(len(a.layers) for a in schedule.actions if isinstance(a, Advance))


@pytest.mark.parametrize("snapshots", range(1, 11))
def test_revolve_runs_as_many_layers_as_the_binomial_formula_says(snapshots: int) -> None:
    for n in range(1, 201):
        r = next(r for r in range(n + 1) if math.comb(snapshots + r, snapshots) >= n)
        expected = r * n - (math.comb(snapshots + r, r - 1) if r else 0)
        schedule = revolve(n, snapshots)
        assert advanced(schedule) == expected
        assert schedule.recomputed_layers == expected
        assert recomputations(n, snapshots) == expected
        assert repetitions(n, snapshots) == r
        assert schedule.most_stored <= snapshots


@cache
def fewest(n: int, snapshots: int) -> float:
    """Return the fewest unrecorded runs, by trying every place for the next snapshot.

    The input of these n layers is stored and counts, unless n is 1, where it is the current value.
    """
    if n == 1:
        return 0
    if snapshots == 0:
        return math.inf
    return min(m + fewest(m, snapshots) + fewest(n - m, snapshots - 1) for m in range(1, n))


@cache
def cheapest(n: int, snapshots: int) -> tuple[float, float]:
    """Return the fewest unrecorded runs, and the fewest snapshots among schedules of that cost."""
    if n == 1:
        return 0, 0
    if snapshots == 0:
        return math.inf, math.inf
    ways = []
    for m in range(1, n):
        first, second = cheapest(m, snapshots), cheapest(n - m, snapshots - 1)
        ways.append((m + first[0] + second[0], (n - m > 1) + first[1] + second[1]))
    return min(ways)


def test_no_schedule_of_the_kind_runs_fewer_layers_or_takes_fewer_snapshots() -> None:
    for n in range(1, 61):
        for snapshots in range(1, 9):
            schedule = revolve(n, snapshots)
            taken = sum(isinstance(action, Snapshot) for action in schedule.actions)
            assert (advanced(schedule), taken - (n > 1)) == cheapest(n, snapshots)


def test_no_sequence_of_actions_whatever_runs_fewer_layers() -> None:
    """Compare with an exhaustive search over states (current layer, stored inputs, layers left)."""
    for n in range(1, 7):
        for snapshots in range(1, 4):
            assert _searched(n, snapshots) == recomputations(n, snapshots)


def _searched(n: int, snapshots: int) -> int:
    """Return the least cost of reversing n layers that are recorded one by one (Dijkstra)."""
    best: dict[Any, int] = {}
    open_states = {(0, frozenset(), n): 0}
    while open_states:
        state = min(open_states, key=open_states.__getitem__)
        cost = open_states.pop(state)
        best[state] = cost
        at, stored, left = state
        if left == 0:
            return cost
        nexts = [((layer, stored, left), 0) for layer in stored]
        nexts += [((at, stored - {layer}, left), 0) for layer in stored]
        if at is not None and at < left:
            if len(stored) < snapshots:
                nexts.append(((at, stored | {at}, left), 0))
            if at + 1 < left:
                nexts.append(((at + 1, stored, left), 1))
            else:
                nexts.append(((None, stored, left - 1), 0))
        for found, more in nexts:
            if found not in best:
                open_states[found] = min(cost + more, open_states.get(found, cost + more))
    raise AssertionError("the chain cannot be reversed")


@pytest.mark.parametrize(("n", "snapshots"), FEW)
def test_revolve_reverses_a_chain(n: int, snapshots: int) -> None:
    memory = run(revolve(n, snapshots))
    assert memory["most stored"] <= snapshots


@settings(max_examples=60, deadline=None)
@given(n=st.integers(1, 150), snapshots=st.integers(1, 40))
def test_revolve_reverses_any_chain(n: int, snapshots: int) -> None:
    schedule = revolve(n, snapshots)
    memory = run(schedule)
    assert memory["most stored"] <= snapshots
    assert all(len(action.layers) == 1 for action in schedule.actions if isinstance(action, Record))
    unrecorded = [runs - 1 for runs in schedule.layer_runs]
    assert max(unrecorded) <= repetitions(n, snapshots)
    assert isinstance(schedule.forward[-1], Record), "the last layer is recorded by forward"


def test_revolve_of_a_very_long_chain_needs_no_deep_recursion() -> None:
    assert revolve(5000, 4000).recomputed_layers == recomputations(5000, 4000)
    assert revolve(3000, 1).most_stored == 1


def test_more_snapshots_never_run_more_layers() -> None:
    costs = [recomputations(50, snapshots) for snapshots in range(1, 60)]
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] == 49, "each layer but the last, once"


@given(snapshots=st.integers(1, 12), r=st.integers(0, 6))
def test_reach_is_the_longest_chain_with_so_many_repetitions(snapshots: int, r: int) -> None:
    longest = reach(snapshots, r)
    assert repetitions(longest, snapshots) == r
    assert repetitions(longest + 1, snapshots) == r + 1


# Segments.


@settings(max_examples=60, deadline=None)
@given(data=st.data(), n=st.integers(1, 120))
def test_segments_reverse_a_chain_and_run_each_layer_twice(data: st.DataObject, n: int) -> None:
    k = data.draw(st.integers(1, n))
    schedule = in_segments(n, k)
    run(schedule)
    assert schedule.layer_runs == (2,) * n
    lengths = [len(action.layers) for action in schedule.actions if isinstance(action, Record)]
    assert len(lengths) == k
    assert max(lengths) - min(lengths) <= 1
    assert not any(isinstance(action, Record) for action in schedule.forward)
    assert schedule.most_stored == k


def test_no_number_of_segments_keeps_less_than_sqrt() -> None:
    for n in [*range(1, 41), 99, 100, 101, 110, 111]:
        sizes = {k: in_segments(n, k).peak(saved=1, inputs=1) for k in range(1, n + 1)}
        assert in_segments(n, "sqrt").peak(saved=1, inputs=1) == min(sizes.values())
        chen = min(math.ceil(n / k) + k for k in sizes)
        k = in_segments(n, "sqrt").most_stored
        assert math.ceil(n / k) + k == chen
        assert abs(k - math.sqrt(n)) < 1


def test_plain_records_everything_and_runs_nothing_twice() -> None:
    run(plain(7))
    assert plain(7).layer_runs == (1,) * 7
    assert plain(7).recomputed_layers == plain(7).most_stored == 0


# Predictions.


def schedules() -> st.SearchStrategy[Schedule]:
    """Draw schedules of every kind."""

    def of(n: int) -> st.SearchStrategy[Schedule]:
        return st.one_of(
            st.just(plain(n)),
            st.integers(1, n).map(lambda k: in_segments(n, k)),
            st.integers(1, n).map(lambda s: revolve(n, s)),
        )

    return st.integers(1, 40).flatmap(of)


@settings(max_examples=80, deadline=None)
@given(schedule=schedules(), seed=st.integers(0, 10))
def test_peak_is_the_largest_sum_over_what_is_stored_and_recorded(
    schedule: Schedule, seed: int
) -> None:
    generator = np.random.default_rng(seed)
    saved = generator.integers(0, 100, schedule.layers).tolist()
    inputs = generator.integers(0, 100, schedule.layers).tolist()
    sums = [
        sum(inputs[layer] for layer in state.stored) + sum(saved[layer] for layer in state.recorded)
        for state in schedule.states()
    ]
    assert schedule.peak(saved, inputs) == max(sums)
    assert schedule.peak(np.array(saved), np.array(inputs)) == max(sums)


@settings(max_examples=40, deadline=None)
@given(schedule=schedules())
def test_arrays_that_neighbours_share_count_once(schedule: Schedule) -> None:
    """Each layer saves its input and its output: n + 1 arrays for n neighbors, not 2 n."""
    longest = max(
        sum(1 + (layer + 1 not in state.recorded) for layer in state.recorded)
        for state in schedule.states()
    )
    assert schedule.peak(saved=2, inputs=0, shared=1) == longest
    assert plain(schedule.layers).peak(saved=2, inputs=0, shared=1) == schedule.layers + 1


def test_arrays_that_neighbours_share_count_once_in_whichever_order_they_were_recorded() -> None:
    upper_first = Schedule(
        "the upper one first",
        2,
        (Snapshot(0), Advance(0, 1), Record(1, 2), Restore(0), Free(0), Record(0, 1), Back(0, 2)),
    )
    kept = [moment.kept for moment in upper_first.course(saved=[10, 20], inputs=0, shared=[0, 3])]
    assert kept == [0, 0, 20, 20, 20, 27, 27, 10]


def test_what_a_layer_works_with_counts_while_it_runs() -> None:
    schedule = in_segments(4, 2)
    assert schedule.peak(saved=5, inputs=1) == 11  # the first input, two recorded layers
    assert schedule.peak(saved=5, inputs=1, working=[0, 0, 0, 100]) == 111
    assert schedule.peak(saved=5, inputs=1, working=[100, 0, 0, 0]) == 105  # backward, alone
    assert schedule.peak(saved=5, inputs=1, working=[0, 100, 0, 0]) == 110


def test_the_course_follows_the_actions_layer_by_layer() -> None:
    kept = [
        (moment.number, moment.layer, moment.kept)
        for moment in in_segments(2, 1).course(saved=[5, 6], inputs=[1, 9])
    ]
    assert kept == [
        (0, 0, 1), (1, 0, 1), (1, 1, 1),  # snapshot, advance
        (2, 0, 1), (3, 0, 0), (4, 0, 5), (4, 1, 11),  # restore, free, record
        (5, 1, 11), (5, 0, 5),  # backward: saved values of a layer count during its backward pass
    ]  # fmt: skip


def test_operations_count_each_run_beyond_the_first() -> None:
    assert revolve(3, 1).layer_runs == (3, 2, 1)
    assert revolve(3, 1).operations([10, 100, 1000]) == 120
    assert plain(3).operations(10) == 0


@pytest.mark.parametrize("n", [1, 2, 3, 10, 37])
def test_bounds_are_what_the_schedules_predict(n: int) -> None:
    rows = bounds(n)
    assert len(rows) == 2 * n + 1
    for row in rows:
        schedule = {
            "plain": lambda row: plain(n),
            "segments": lambda row: in_segments(n, row.parameter),
            "revolve": lambda row: revolve(n, row.parameter),
        }[row.schedule](row)
        assert row.memory == schedule.peak(saved=1, inputs=1)
        assert row.recomputed == schedule.recomputed_layers


# Views.


@settings(max_examples=30, deadline=None)
@given(schedule=schedules())
def test_the_views_agree_with_the_states(schedule: Schedule) -> None:
    states = list(schedule.states())
    timeline = schedule.timeline()
    for number, action, stored, recorded in states:
        rows = [(layer, what) for at, layer, what in timeline if at == number]
        assert len(set(rows)) == len(rows)
        assert [layer for layer, what in rows if what == action.verb] == list(action.layers)
        if action.verb in ("snapshot", "restore"):
            assert (action.layers[0], "stored") not in rows, "its own row says that already"
        said = {layer for layer, what in rows if what in ("stored", "snapshot", "restore")}
        assert said == set(stored)
        said = {layer for layer, what in rows if what in ("recorded", "record")}
        assert said == set(recorded)
    assert len(schedule.rows()) == len(states)
    spans = schedule.spans()
    busy = [span for span in spans if span.what in ("advance", "record", "back")]
    times = sorted((span.start, span.stop) for span in busy)
    assert times == [(time, time + 1) for time in range(len(times))]
    assert len(times) == sum(schedule.layer_runs) + schedule.layers
    for layer in range(schedule.layers):
        kinds = [span.what for span in spans if span.layer == layer]
        assert kinds.count("back") == kinds.count("recorded") == kinds.count("record") == 1
    lines = schedule.picture().splitlines()
    assert len(lines) == schedule.layers + 1
    assert sum(line.count("#") for line in lines[:-1]) == schedule.layers
    assert sum(line.count("<") for line in lines[:-1]) == schedule.layers


def test_the_table_shows_forward_and_backward() -> None:
    assert str(in_segments(4, 2)).splitlines() == [
        "2 segments: 4 layers, 4 layer runs recomputed, at most 2 inputs stored",
        "",
        "action | does        | inputs stored | layers recorded",
        "forward ----------------------------------------------",
        "     0 | snapshot 0  | 0             |",
        "     1 | advance 0-1 | 0             |",
        "     2 | snapshot 2  | 0, 2          |",
        "     3 | advance 2-3 | 0, 2          |",
        "backward ---------------------------------------------",
        "     4 | restore 2   | 0, 2          |",
        "     5 | free 2      | 0             |",
        "     6 | record 2-3  | 0             | 2-3",
        "     7 | back 2-3    | 0             |",
        "     8 | restore 0   | 0             |",
        "     9 | free 0      |               |",
        "    10 | record 0-1  |               | 0-1",
        "    11 | back 0-1    |               |",
    ]


def test_a_long_table_is_shortened_and_says_so() -> None:
    schedule = revolve(200, 5)
    text, page = str(schedule), schedule._repr_html_()
    assert len(text.splitlines()) < 70
    assert "more" in text
    for name in ("forward", "backward", "inputs stored"):
        assert name in text
        assert name in page
    assert "<script" not in Schedule("<script>", 1, (Record(0, 1), Back(0, 1)))._repr_html_()


def test_the_name_of_a_schedule_says_how_many() -> None:
    assert repr(in_segments(1, 1)) == (
        "<Schedule 1 segment: 1 layer, 1 layer run recomputed, at most 1 input stored>"
    )


# Arguments of the user.


def test_chosen_reads_what_the_user_gave() -> None:
    assert chosen(16) is chosen(16, 4)
    assert chosen(16, np.int64(4)) == in_segments(16, 4)
    assert chosen(16, "sqrt").actions == in_segments(16, 4).actions
    assert chosen(16, "revolve") == revolve(16, 4)
    assert chosen(16, "revolve", snapshots=2) == revolve(16, 2)
    mine = revolve(16, 3)
    assert chosen(16, mine) is mine


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ((10, 11), ValueError, r"segments=11 of a chain of 10 layers.*1 to 10.*Try 10 .*\"sqrt\""),
        ((10, 0), ValueError, r"segments=0.*at least one segment"),
        ((10, -1), ValueError, r"segments=-1"),
        ((10, 2.0), TypeError, r"segments=2.0 is no whole number.*\"sqrt\" or \"revolve\""),
        ((10, True), TypeError, r"segments=True"),
        ((10, None), TypeError, r"segments=None"),
        ((10, [4]), TypeError, r"segments=\[4\]"),
        ((10, np.array([1, 2])), TypeError, r"whole number"),
        ((10, "Sqrt"), ValueError, r"Did you mean 'sqrt'"),
        ((10, "revolv"), ValueError, r"Did you mean 'revolve'"),
        ((10, "zebra"), ValueError, r"Expected 1 to 10, \"sqrt\" or \"revolve\""),
        ((10, 4, 2), ValueError, r"snapshots=2 belongs to segments=\"revolve\"; got segments=4"),
        ((10, "sqrt", 2), ValueError, r"snapshots=2 belongs"),
        ((10, "revolve", 0), ValueError, r"snapshots=0.*at least 1"),
        ((10, "revolve", "3"), TypeError, r"snapshots='3' is no whole number"),
        ((10, plain(9)), ValueError, r"'plain' is for 9 layers, and the chain has 10"),
        ((0, 1), ValueError, r"chain of 0 layers"),
        ((2.5, 1), TypeError, r"n=2.5"),
    ],
)
def test_wrong_wishes_are_refused(arguments: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        chosen(*arguments)


def test_wrong_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match="saved has 2 numbers, and the chain has 3 layers"):
        plain(3).peak([1, 2], 1)
    with pytest.raises(TypeError, match="inputs takes whole numbers, got '1 MiB'"):
        plain(3).peak(1, "1 MiB")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="per_layer takes whole numbers"):
        plain(3).operations(0.5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="k is a whole number"):
        in_segments(4, "revolve")
    with pytest.raises(ValueError, match="at least 1"):
        repetitions(4, 0)


@pytest.mark.parametrize(
    ("actions", "words"),
    [
        ([], "layers 0 to 1 are not backpropagated yet"),
        ([Record(0, 2)], "layers 0 to 1 are not backpropagated yet"),
        ([Record(0, 2), Back(1, 2)], "layers 0 to 0 are not backpropagated"),
        ([Record(0, 3)], "layers that can run are 0 to 1, stop at most 2"),
        ([Record(1, 1)], "layers that can run are 0 to 1"),
        ([Advance(1, 2)], "the value at hand is layer 0's input; Restore"),
        ([Snapshot(1)], "the value at hand is layer 0's input; Restore and Advance to layer 1"),
        ([Snapshot(0), Snapshot(0)], "stored already"),
        ([Advance(0, 2), Snapshot(2)], "no layer 2 is left"),
        ([Restore(1)], r"that input is not stored \(no input is stored\)"),
        ([Snapshot(0), Free(1)], r"not stored \(the input of layer 0 is stored\)"),
        ([Advance(0, 2), Back(0, 2)], "layer 1 is not recorded"),
        ([Record(0, 2), Back(0, 1)], "backpropagate next is 1, so stop has to be 2"),
        ([Record(0, 2), Back(2, 2)], "backpropagate next is 1"),
        ([Snapshot(0), Record(0, 2), Restore(0), Record(0, 1)], "layer 0 is recorded already"),
        ([Record(0, 2), Back(1, 2), Record(0, 1)], "there is no value at hand"),
        ([Snapshot(0), Record(0, 2), Back(0, 2)], "the input of layer 0 is still stored"),
    ],
)
def test_a_schedule_that_cannot_work_says_where(actions: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Schedule("mine", 2, actions)


def test_what_is_no_action_is_refused() -> None:
    with pytest.raises(TypeError, match="'run' is no action"):
        Schedule("mine", 2, ("run",))  # type: ignore[arg-type]


def test_a_schedule_of_your_own_may_mix_the_two_ways() -> None:
    mine = Schedule(
        "the end stays recorded",
        3,
        (
            Snapshot(0), Advance(0, 1), Record(1, 3),
            Back(2, 3), Back(1, 2), Restore(0), Record(0, 1), Back(0, 1), Free(0),
        ),
    )  # fmt: skip
    run(mine)
    assert mine.layer_runs == (2, 1, 1)
    assert mine.peak(saved=10, inputs=1) == 21
