"""What no plan can repeat raises CaptureError with the user's line, and changes nothing."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import optlab as ol
from tests.plan.capture import refused
from tests.plan.capture.refused import (
    CHANCE,
    EFFECTS,
    FOLLOWED,
    OF_THE_ENGINE,
    REFUSED,
    VALUES,
    Bench,
    inputs,
    lines_of,
    marked_lines,
)
from tests.plan.capture.twins import given


def refusal(name: str) -> str:
    """Return the message with which a function is refused in its first call."""
    ol.seed(1)
    captured = ol.capture(REFUSED[name](Bench()))
    with pytest.raises(ol.CaptureError) as error:
        captured(inputs(1)[0])
    return str(error.value)


def lines_in(message: str) -> list[int]:
    """Return the lines of the file of refused functions that a message names."""
    file = re.escape(Path(refused.__file__).name)
    return [
        int(n) for n in re.findall(rf"{file}\W+line (\d+)|{file}:(\d+)", message) for n in n if n
    ]


@pytest.mark.parametrize("name", [*VALUES, *OF_THE_ENGINE])
def test_what_depends_on_values_is_refused_with_its_line(name: str) -> None:
    message = refusal(name)
    found = set(lines_in(message))
    assert found, message
    assert found <= marked_lines(REFUSED[name]), message


@pytest.mark.parametrize("name", FOLLOWED)
def test_what_the_engine_does_with_values_is_followed(name: str) -> None:
    def results(how: Callable[[Any], Any]) -> list[Any]:
        ol.seed(1)
        b = Bench()
        f = how(FOLLOWED[name](b))
        return [[f(x).numpy().tobytes() for x in inputs(5)], b.state()]

    assert results(ol.capture) == results(lambda f: f)


@pytest.mark.parametrize("name", [*EFFECTS, *CHANCE])
def test_effects_and_chance_are_refused_with_the_function(name: str) -> None:
    """Such a line is found by what it did: it is named, or another line of the function."""
    message = refusal(name)
    found = set(lines_in(message))
    assert found, message
    assert found <= set(lines_of(REFUSED[name])), message


@pytest.mark.parametrize("name", REFUSED)
def test_a_refusal_changes_nothing_that_the_engine_owns(name: str) -> None:
    ol.seed(1)
    b = Bench()
    b.step(inputs(1)[0])  # slots are there
    f = REFUSED[name](b)
    before = b.state()
    with pytest.raises(ol.CaptureError):
        ol.capture(f)(inputs(1)[0])
    after = b.state()
    assert [key for key in before if before[key] != after.get(key)] == []
    assert list(after) == list(before)


@pytest.mark.parametrize("name", ["branch", "counter", "masked", "random_of_python"])
def test_training_goes_on_after_a_refusal_as_if_it_had_not_been_tried(name: str) -> None:
    def losses(tried: bool) -> list[float]:
        ol.seed(1)
        b = Bench()
        if tried:
            with pytest.raises(ol.CaptureError):
                ol.capture(REFUSED[name](b))(inputs(1)[0])
        return [b.step(x).item() for x in inputs()]

    assert losses(tried=True) == losses(tried=False)


@pytest.mark.parametrize("name", ["branch", "append_the_loss", "random_of_numpy", "masked"])
def test_the_message_says_what_to_write_instead(name: str) -> None:
    message = refusal(name)
    assert "strict=False" in message


def test_what_is_refused_is_named() -> None:
    named = {
        "branch": "branch on a value",
        "number_used_further": "item|number",
        "masked": "shape",
        "nonzero": "shape|nonzero",
        "append_the_loss": "list|append",
        "counter": r"\bn\b|attribute",
        "entry_of_a_dict": "dict|last",
        "printing": "print|text|number|value",
    }
    for name, words in named.items():
        message = refusal(name)
        assert re.search(words, message), (name, message)


def test_a_refused_function_is_refused_again() -> None:
    b = Bench()
    captured = ol.capture(refused.branch(b))
    for x in inputs(3):
        with pytest.raises(ol.CaptureError):
            captured(x)


def test_a_shape_that_can_be_captured_works_after_one_that_cannot() -> None:
    captured = ol.capture(lambda x: x * 2 if x.shape[0] < 4 or x.sum() > 0 else x)
    np.testing.assert_array_equal(captured(given(3)), given(3) * 2)
    with pytest.raises(ol.CaptureError):
        captured(given(5))
    np.testing.assert_array_equal(captured(given(3, seed=2)), given(3, seed=2) * 2)


def test_the_error_is_one_of_wrong_programs() -> None:
    assert issubclass(ol.CaptureError, TypeError)
    assert ol.CaptureError.__name__ == "CaptureError"
    assert ol.CaptureError.__module__.startswith("optlab")


@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
@pytest.mark.parametrize("kind", ["generator", "coroutine"])
def test_functions_that_do_not_return_at_once_are_refused(kind: str) -> None:
    if kind == "generator":

        def f(x: Any) -> Any:
            yield x

    else:

        async def f(x: Any) -> Any:  # type: ignore[misc]
            return x

    with pytest.raises(ol.CaptureError, match=f"is a {kind}: .*strict=False"):
        ol.capture(f)
    loose = ol.capture(f, strict=False)
    assert isinstance(loose(ol.ones([2])), Iterator | Coroutine)
    assert loose.execution == f"eagerly: it is a {kind}"


@pytest.mark.parametrize("how", [list, tuple, next], ids=lambda how: how.__name__)
def test_a_generator_runs_as_it_is_without_strict(how: Any) -> None:
    def f(x: Any) -> Any:
        yield x
        yield 2 * x

    loose = ol.capture(f, strict=False)
    for i in range(3):
        x = given(3, seed=i)
        np.testing.assert_array_equal(how(loose(x)), how(f(x)))


WRITES: dict[str, Callable[[Any], Any]] = {
    "an element": lambda x: operator.setitem(x, 0, 5.0),
    "+=": lambda x: operator.iadd(x, 1.0),
    "out=": lambda x: np.multiply(x, 2, out=x),
    "a method": lambda x: x.sort(),
    "copyto": lambda x: np.copyto(x, 1.0),
}


@pytest.mark.parametrize("name", WRITES)
def test_a_write_into_an_argument_is_named_with_what_to_write_instead(name: str) -> None:
    def f(batch: Any, labels: Any) -> Any:
        WRITES[name](batch)
        return batch * labels

    x, labels = given(4), given(4, seed=1)
    said = r"writes into the argument 'batch', a plain array \(.*test_refusals.py.*copy\(\)"
    with pytest.raises(ol.CaptureError, match=said):
        ol.capture(f)(x, labels)
    loose, eager = ol.capture(f, strict=False), given(4)
    x = given(4)
    for _ in range(3):
        np.testing.assert_array_equal(loose(x, labels), f(eager, labels))
        np.testing.assert_array_equal(x, eager)


@pytest.mark.parametrize("name", ["data[x]", "np.take(data, x)"])
def test_plain_data_are_indexed_as_a_tensor(name: str) -> None:
    data = given(20, 3)
    ways = {"data[x]": lambda x: data[x], "np.take(data, x)": lambda x: np.take(data, x, axis=0)}
    with pytest.raises(ol.CaptureError, match=r"ol\.to_tensor\(data\)\[x\]"):
        ol.capture(ways[name])(np.arange(4))
    tensor = ol.to_tensor(data)
    captured = ol.capture(lambda x: tensor[x])
    for i in range(4):
        x = np.arange(i, i + 5)
        np.testing.assert_array_equal(captured(x).numpy(), ways[name](x))
    assert len(captured.plans) == 1


def append(parts: Any, named: Any) -> Any:
    parts.append(parts[0])
    return 2 * parts[0]


def replace_an_entry(parts: Any, named: Any) -> Any:
    parts[0] = 2 * parts[0]
    return parts[0]


def add_a_key(parts: Any, named: Any) -> Any:
    named["twice"] = 2 * named["x"]
    return named["twice"]


@pytest.mark.parametrize("f", [append, replace_an_entry, add_a_key], ids=lambda f: f.__name__)
def test_a_list_or_dict_among_the_arguments_must_not_change(f: Any) -> None:
    with pytest.raises(ol.CaptureError, match=r"changes a (list|dict) among its arguments"):
        ol.capture(f)([given(3)], {"x": given(3)})
    loose = ol.capture(f, strict=False)
    mine, eager = ([given(3)], {"x": given(3)}), ([given(3)], {"x": given(3)})
    for _ in range(3):
        np.testing.assert_array_equal(loose(*mine), f(*eager))
    assert len(mine[0]) == len(eager[0])
    assert mine[1].keys() == eager[1].keys()
    np.testing.assert_array_equal(mine[0][0], eager[0][0])


@pytest.mark.parametrize("name", ["an element", "+="])
def test_what_the_message_says_instead_of_a_write_works(name: str) -> None:
    def copied(x: Any) -> Any:
        x = x.copy()
        WRITES[name](x)
        return x

    def given_a_tensor(t: Any) -> Any:
        with ol.no_grad():
            WRITES[name](t)
        return t

    one, other = ol.capture(copied), ol.capture(given_a_tensor)
    t, twin = ol.to_tensor(given(4)), ol.to_tensor(given(4))
    for i in range(3):
        x = given(4, seed=i)
        np.testing.assert_array_equal(one(x), copied(x))
        np.testing.assert_array_equal(other(t).numpy(), given_a_tensor(twin).numpy())
        np.testing.assert_array_equal(t.numpy(), twin.numpy())


def test_an_effect_on_a_local_object_is_no_effect() -> None:
    """Lists, dicts and arrays that a call makes and forgets are the function's own matter."""

    class Total:
        def __init__(self) -> None:
            self.n = 0

    def f(x: Any) -> Any:
        parts, total = [], Total()
        for i in range(3):
            parts.append(x * i)
            total.n += i
        named = {"sum": sum(parts)}
        named["n"] = total.n
        own = np.zeros(3, "float32")
        own[1] = 2.0
        return named["sum"] * named["n"] + own

    captured = ol.capture(f)
    for i in range(3):
        x = given(3, seed=i)
        np.testing.assert_array_equal(captured(x), f(x))


def test_a_seeded_generator_inside_repeats_itself() -> None:
    """The same numbers in every call, eagerly and captured; only fresh ones are refused."""
    f = lambda x: x + np.random.default_rng(0).standard_normal(3)  # noqa: E731
    captured = ol.capture(f)
    for i in range(3):
        x = given(3, seed=i)
        np.testing.assert_array_equal(captured(x), f(x))


def test_saving_inside_is_refused_or_done_every_time(tmp_path: Path) -> None:
    b = Bench()

    def f(x: Any) -> Any:
        loss = b.step(x)
        ol.save(b.model.state_dict(), str(tmp_path / "model.npz"))
        return loss

    captured = ol.capture(f)
    try:
        for x in inputs():
            captured(x)
    except ol.CaptureError as error:
        assert "test_refusals.py" in str(error)  # noqa: PT017 (one of two right ways)
    else:
        for name, value in ol.load(str(tmp_path / "model.npz")).items():
            wanted = b.model.state_dict()[name].numpy()
            np.testing.assert_array_equal(np.asarray(value), wanted)


def test_a_buffer_of_numpy_is_refused() -> None:
    """NumPy tells nobody of a write to an array that the function has made."""

    def f(x: Any) -> Any:
        y = np.empty(x.shape, x.dtype)
        np.multiply(x, 3, out=y)
        np.add(y, 1, out=y)
        return y

    x = given(3, 4)
    with pytest.raises(ol.CaptureError, match=r"a write by NumPy"):
        ol.capture(f)(x)
    loose = ol.capture(f, strict=False)
    for _ in range(3):
        np.testing.assert_array_equal(loose(x), f(x))
