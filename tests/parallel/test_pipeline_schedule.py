"""Schedules of pipelines on a simulated clock: the bubble, what is held, and that no one waits."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optlab.optimizer.wrappers.pipeline import bubble, simulate
from optlab.optimizer.wrappers.pipeline.schedule import passes


@pytest.mark.parametrize("schedule", ["1F1B", "GPipe"])
@pytest.mark.parametrize("micro_batches", [4, 8, 16])
@pytest.mark.parametrize("sections", [1, 2, 4])
def test_the_bubble_of_equal_sections(sections, micro_batches, schedule):
    trace = simulate(sections, micro_batches, schedule)
    p, m = sections, micro_batches
    assert trace.bubble == pytest.approx((p - 1) / (m + p - 1), abs=1e-12)
    assert trace.predicted_bubble == bubble(p, m) == (p - 1) / (m + p - 1)
    assert trace.duration == pytest.approx(3 * (m + p - 1))
    wanted = [p - s for s in range(p)] if schedule == "1F1B" else [m] * p
    assert trace.most_held == wanted


sizes = {
    "micro_batches": st.integers(1, 12),
    "schedule": st.sampled_from(["1F1B", "GPipe"]),
    "queue_size": st.integers(1, 4),
}


@settings(max_examples=200, deadline=None)
@given(workers=st.lists(st.integers(1, 3), min_size=1, max_size=4), **sizes)
def test_every_worker_ends_and_takes_its_passes_in_order(
    workers, micro_batches, schedule, queue_size
):
    sections = len(workers)
    trace = simulate(sections, micro_batches, schedule, workers=workers, queue_size=queue_size)
    taken = {(one.section, one.phase, one.micro_batch): one for one in trace.spans}
    assert len(taken) == len(trace.spans) == 2 * sections * micro_batches
    for (s, phase, i), one in taken.items():
        if phase == "forward" and s > 0:
            assert one.start >= taken[s - 1, phase, i].end
        if phase == "backward":
            later = taken[s + 1, phase, i] if s + 1 < sections else taken[s, "forward", i]
            assert one.start >= later.end
    for s, count in enumerate(workers):
        for w in range(count):
            own = sorted(
                (one for one in trace.spans if (one.section, one.worker) == (s, w)),
                key=lambda one: one.start,
            )
            order = passes(schedule, sections, s, micro_batches, count, w)
            assert [(one.phase, one.micro_batch) for one in own] == order
            assert all(a.end <= b.start for a, b in itertools.pairwise(own))


def test_slow_sections_are_waited_for_and_full_queues_hold_the_others():
    trace = simulate(2, 8, "GPipe", forward=[1, 5], backward=[1, 1], queue_size=1)
    firsts = [one for one in trace.spans if one.section == 0 and one.phase == "forward"]
    seconds = {
        one.micro_batch: one for one in trace.spans if one.section == 1 and one.phase == "forward"
    }
    for one in firsts[2:]:
        assert one.start >= seconds[one.micro_batch - 2].start  # one place, one in hand
    assert trace.bubble > bubble(2, 8)


@pytest.mark.parametrize(
    "given",
    [
        {"sections": 0},
        {"micro_batches": 0},
        {"schedule": "both"},
        {"forward": -1.0},
        {"forward": [1.0]},
        {"workers": [1]},
        {"queue_size": 0},
    ],
)
def test_wrong_arguments(given):
    with pytest.raises(ValueError, match=r"at least|'1F1B' or 'GPipe'"):
        simulate(**{"sections": 2, "micro_batches": 4, **given})
