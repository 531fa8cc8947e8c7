"""Wrong arguments of every public callable: a ValueError or a TypeError with a sentence.

A sample of random calls; ``python -m tests.wrong_calls 100000`` makes more.
"""

from __future__ import annotations

import contextlib

from tests.wrong_calls import EXPECTED, VALUES, callables, calls, quiet_place, unexpected

COUNT = 1500


def test_a_sample_of_wrong_calls_raises_what_users_can_read() -> None:
    raised = 0
    with quiet_place():
        for call in calls(COUNT, seed=14):
            error = unexpected(call)
            assert error is None, f"{call!r} raised {type(error).__name__}: {error}"
            with contextlib.suppress(*EXPECTED, IndexError):
                call()
                continue
            raised += 1
    assert raised > COUNT / 2  # else these are no wrong calls


def test_every_public_callable_is_called() -> None:
    called = {call.name for call in calls(COUNT, seed=14)}
    assert called == set(callables())
    for package in ("ol.nn.functional.conv2d", "ol.nn.Linear", "ol.optimizer.Adam", "ol.io.save"):
        assert package in called


def drawn(seed: int) -> list[tuple[str, list[int], list[str]]]:
    """Return which values the calls of a seed have, by their places in the list."""
    return [
        (
            call.name,
            [VALUES.index(make) if make in VALUES else -1 for make in call.by_position],
            list(call.by_name),
        )
        for call in calls(400, seed)
    ]


def test_the_same_seed_makes_the_same_calls() -> None:
    assert drawn(3) == drawn(3) != drawn(4)
