"""Events: listeners are called in order; without listeners an event costs and changes nothing."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

import optlab as ol
from optlab.autograd.tape.slow_path import slow_path
from optlab.backend import events
from optlab.backend.events import Event

# The event itself.


def test_listeners_are_told_in_the_order_of_their_subscription() -> None:
    event, heard = Event("something happened"), []
    event.subscribe(lambda *what: heard.append(("first", what)))
    event.subscribe(lambda *what: heard.append(("second", what)))
    event.publish(1, "two")
    event.publish()
    assert heard == [("first", (1, "two")), ("second", (1, "two")), ("first", ()), ("second", ())]


def test_one_subscription_is_taken_back_at_a_time() -> None:
    event, heard = Event("something happened"), []
    event.subscribe(heard.append)
    event.subscribe(heard.append)
    event.unsubscribe(heard.append)
    event.publish(1)
    assert heard == [1]
    event.unsubscribe(heard.append)
    event.unsubscribe(heard.append)  # an unknown listener is ignored
    event.publish(2)
    assert heard == [1]
    assert event.listeners == ()


def test_a_subscription_for_a_while_ends_also_after_an_error() -> None:
    event, heard = Event("something happened"), []
    with event.subscribed(heard.append):
        event.publish(1)
    with pytest.raises(KeyError), event.subscribed(heard.append):
        raise KeyError
    event.publish(2)
    assert heard == [1]
    assert event.listeners == ()


def test_listeners_may_come_and_go_while_they_are_told() -> None:
    event, heard = Event("something happened"), []

    def once(what: int) -> None:
        heard.append(("once", what))
        event.unsubscribe(once)
        event.subscribe(lambda what: heard.append(("later", what)))

    event.subscribe(once)
    event.subscribe(lambda what: heard.append(("always", what)))
    event.publish(1)
    assert heard == [("once", 1), ("always", 1)]
    event.publish(2)
    assert heard[2:] == [("always", 2), ("later", 2)]


def test_how_an_event_looks() -> None:
    event = Event("the bell rang")
    assert repr(event) == "<Event 'the bell rang', 0 listening>"


# Events of the engine.


@pytest.fixture
def heard() -> Iterator[dict[str, list[Any]]]:
    """Listen to the events of the tape."""
    found: dict[str, list[Any]] = {"recorded": [], "finished": []}
    with (
        events.operation_recorded.subscribed(lambda node: found["recorded"].append(node)),
        events.backward_finished.subscribed(lambda *what: found["finished"].append(what)),
    ):
        yield found


def names(nodes: list[Any]) -> list[str]:
    return [node.operation.name for node in nodes]


def test_operations_are_published_as_they_are_recorded(heard: dict[str, list[Any]]) -> None:
    x = ol.to_tensor([1.0, 2.0], requires_grad=True)
    y = np.sum(np.exp(x) * 2.0)
    assert names(heard["recorded"]) == ["exp", "multiply", "sum"]
    assert heard["recorded"][-1] is y.node


def test_what_is_not_recorded_is_not_published(heard: dict[str, list[Any]]) -> None:
    x = ol.to_tensor([1.0, 2.0], requires_grad=True)
    with ol.no_grad():
        np.exp(x)
    np.exp(x.detach())
    y = x * 1.0
    heard["recorded"].clear()
    y.backward()
    assert heard["recorded"] == []


def test_backward_publishes_the_value_and_the_leaves(heard: dict[str, list[Any]]) -> None:
    x, w = (ol.to_tensor([1.0, 2.0], requires_grad=True) for _ in range(2))
    unused = ol.to_tensor(1.0, requires_grad=True)
    loss = np.sum(x * w * 3.0)
    loss.backward()
    ((value, leaves),) = heard["finished"]
    assert value == loss.item()
    assert set(leaves) == {x.node, w.node}
    assert unused.node not in leaves


def test_derivatives_of_functions_are_no_backward(heard: dict[str, list[Any]]) -> None:
    ol.grad(lambda x: x * x)(2.0)
    assert heard["finished"] == []


def test_listening_changes_no_bit(heard: dict[str, list[Any]]) -> None:
    def run() -> np.ndarray:
        x = ol.to_tensor(np.linspace(0.1, 1.0, 50), requires_grad=True)
        np.sum(np.tanh(x) / np.sum(np.exp(x)) * x**3).backward()
        assert x.grad is not None
        return x.grad.numpy()

    listened = run()
    assert heard["recorded"]
    for event in (events.operation_recorded, events.backward_finished):
        for listener in event.listeners:
            event.unsubscribe(listener)
    np.testing.assert_array_equal(run(), listened)


def test_subscriptions_of_many_threads_leave_nobody_behind() -> None:
    event, before = Event("something happened"), sys.getswitchinterval()
    sys.setswitchinterval(1e-6)

    def come_and_go() -> None:
        for number in range(2000):
            with event.subscribed(partial(print, number)):
                pass

    threads = [threading.Thread(target=come_and_go) for _ in range(4)]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert event.listeners == ()


@pytest.mark.parametrize(
    ("name", "times"),
    [("operation_starts", 4), ("operation_ran", 2), ("rule_starts", 2), ("backward_pass_ended", 1)],
)
def test_a_listener_alone_is_reason_enough_to_publish(
    name: str, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slow_path, "any", 0)  # other tests leave arrays that were written to
    monkeypatch.setattr(slow_path, "_reasons", {kind: [] for kind in slow_path._reasons})
    heard: list[Any] = []
    event = getattr(events, name)

    def run() -> None:
        np.sum(np.tanh(ol.to_tensor([0.5, 1.0], requires_grad=True))).backward()

    with event.subscribed(lambda *what: heard.append(what)), event.subscribed(print):
        event.unsubscribe(print)
        run()
    assert len(heard) == times
    assert slow_path.any == 0
    run()
    assert len(heard) == times
