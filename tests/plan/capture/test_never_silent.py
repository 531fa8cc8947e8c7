"""What changes between two calls is followed, or refused by name: never silently ignored."""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

import optlab as ol
from tests.plan.capture.twins import F, given, leaves, nn, same


class World:
    """A model, its optimizer, a step, and what the user may change between two calls."""

    scale_of_class = 2.0

    def __init__(self) -> None:
        ol.seed(0)
        self.model = nn.Sequential(
            nn.Linear(3, 6), nn.BatchNorm1D(6), nn.LeakyReLU(0.1), nn.Dropout(0.3),
            nn.LayerNorm(6), nn.Linear(6, 2),
        )  # fmt: skip
        self.optimizer = ol.optimizer.Adam(
            0.05, parameters=self.model.parameters(), weight_decay=0.01,
            grad_clip=ol.nn.ClipGradByGlobalNorm(0.5),
        )  # fmt: skip
        self.array = np.ones(2, "float32")
        self.tensor = ol.ones([2])
        self.number = 2.0
        self.dict = {"scale": 2.0, "array": np.ones(2, "float32")}
        self.list = [2.0, 3.0]
        self.rows = np.array([0, 1, 2])
        self.mask = np.array([True, False, True, False])
        self.space = types.SimpleNamespace(scale=2.0, inner=types.SimpleNamespace(scale=1.0))
        self.loss = lambda out, y: F.cross_entropy(out, y)
        self.flag = True
        self.scalar = np.float32(2)
        self.zero_dimensions = np.array(2.0, "float32")

    def step(self, x: Any) -> Any:
        loss = self.loss(self.model(x), np.arange(4) % 2)
        loss.backward()
        self.optimizer.step()
        self.optimizer.clear_grad()
        return loss


def of_the_model(w: World) -> Callable[[Any], Any]:
    return w.step


GLOBAL = 2.0
GLOBAL_ARRAY = np.ones(2, "float32")


def helper(x: Any) -> Any:
    return x * 2


def of_globals(_: World) -> Callable[[Any], Any]:
    return lambda x: helper(x[:, :2]) * GLOBAL + GLOBAL_ARRAY


def set_global(**values: Any) -> Callable[[World], None]:
    def change(_: World) -> None:
        globals().update(values)

    return change


@pytest.fixture(autouse=True)
def undo_globals() -> Iterator[Callable[[], None]]:
    """Yield a function that undoes what a run changed in this module; it is called at last."""
    kept = {name: globals()[name] for name in ("GLOBAL", "GLOBAL_ARRAY", "helper")}

    def undo() -> None:
        globals().update(kept)
        kept["GLOBAL_ARRAY"][...] = 1.0

    yield undo
    undo()


def fill_global(_: World) -> None:
    GLOBAL_ARRAY[...] = 5.0


def of_closures() -> tuple[Callable[[World], Any], Callable[[World], None]]:
    """Return a function of the variables of a closure, and what rebinds them."""
    cells: dict[int, Callable[[], None]] = {}

    def make(w: World) -> Any:
        scale, array = 2.0, np.ones(2, "float32")

        def rebind() -> None:
            nonlocal scale, array
            scale, array = 3.0, np.full(2, 7.0, "float32")

        cells[id(w)] = rebind
        return lambda x: x[:, :2] * scale + array

    return make, lambda w: cells[id(w)]()


def attribute(name: str, value: Any, of: Callable[[World], Any] = lambda w: w) -> Any:
    def change(w: World) -> None:
        setattr(of(w), name, value)

    return change


def item(name: str, key: Any, value: Any) -> Any:
    def change(w: World) -> None:
        getattr(w, name)[key] = value

    return change


def layer(i: int) -> Callable[[World], Any]:
    return lambda w: w.model[i]


def replace_layer(w: World) -> None:
    w.model[5] = nn.Linear(6, 2, weight_attr=nn.initializer.Constant(0.5))


def replace_weight(w: World) -> None:
    w.model[5].weight = ol.Parameter(given(6, 2, seed=9))


def add_hook(w: World) -> None:
    w.model[2].register_forward_post_hook(lambda layer, inputs, output: output * 2)


def add_gradient_hook(w: World) -> None:
    w.model[5].weight.register_hook(lambda g: g * 0.5)


def patch_forward(w: World) -> None:
    w.model[2].forward = lambda x: np.tanh(x)


def evaluate_one_layer(w: World) -> None:
    w.model[3].eval()


def to_float64(w: World) -> None:
    w.model.to(dtype="float64")
    new_optimizer(w)


def new_optimizer(w: World) -> None:
    w.optimizer = ol.optimizer.SGD(0.5, parameters=w.model.parameters())


def new_scheduler(w: World) -> None:
    w.optimizer.set_lr_scheduler(ol.optimizer.lr.StepDecay(0.5, 1))


def set_tensor(w: World) -> None:
    w.tensor.set_value(np.full(2, 4.0, "float32"))


def write_tensor(w: World) -> None:
    w.tensor[0] = 9.0


def fill_array(w: World) -> None:
    w.array[...] = 4.0


def fill_array_in_part(w: World) -> None:
    w.array[1] = np.nextafter(w.array[1], np.float32(2))


def fill_array_in_a_dict(w: World) -> None:
    w.dict["array"] *= 3


def reverse_rows(w: World) -> None:
    w.rows[...] = w.rows[::-1].copy()


def flip_mask(w: World) -> None:
    w.mask[:] = ~w.mask


def shrink_mask(w: World) -> None:
    w.mask[:] = False


def lengthen(w: World) -> None:
    w.list.append(4.0)


CLOSURE, REBIND = of_closures()
Make, Change = Callable[[World], Callable[[Any], Any]], Callable[[World], Any]

#: Functions, and what happens between two calls.
CHANGES: dict[str, tuple[Make, Change]] = {
    # Plain arrays.
    "an array is filled": (lambda w: lambda x: x[:, :2] + w.array, fill_array),
    "one bit of an array": (lambda w: lambda x: x[:, :2] + w.array, fill_array_in_part),
    "an array is replaced": (
        lambda w: lambda x: x[:, :2] + w.array, attribute("array", np.full(2, 3, "float32"))
    ),
    "an array of another shape": (
        lambda w: lambda x: x[:, :1] + w.array, attribute("array", np.full(3, 3, "float32"))
    ),
    "an array in a dict": (lambda w: lambda x: x[:, :2] + w.dict["array"], fill_array_in_a_dict),
    "a view of an array": (lambda w: lambda x: x[:, :1] + w.array[1:], fill_array),
    "an array in a product": (lambda w: lambda x: x[:, :2] @ w.array, fill_array),
    "an array that is read as a number": (
        lambda w: lambda x: x * float(w.array.sum()), fill_array
    ),
    "an array of zero dimensions": (
        lambda w: lambda x: x * w.zero_dimensions, item("zero_dimensions", ..., 5.0)
    ),
    "an array that is only copied": (lambda w: lambda x: (x, w.array.copy()), fill_array),
    "an array made into a Tensor": (
        lambda w: lambda x: x[:, :2] * ol.to_tensor(w.array), fill_array
    ),
    "indices": (lambda w: lambda x: x[w.rows], reverse_rows),
    "a mask": (lambda w: lambda x: x[w.mask], flip_mask),
    "a mask of another count": (lambda w: lambda x: x[w.mask], shrink_mask),
    "a mask in where": (lambda w: lambda x: np.where(w.mask[:, None], x, 0.0), flip_mask),
    "labels": (
        lambda w: lambda x: F.cross_entropy(w.model(x), (w.rows[[0, 1, 1, 0]] > 0) * 1),
        reverse_rows,
    ),
    # Tensors.
    "set_value of a Tensor": (lambda w: lambda x: x[:, :2] * w.tensor, set_tensor),
    "a write into a Tensor": (lambda w: lambda x: x[:, :2] * w.tensor, write_tensor),
    "a Tensor is replaced": (
        lambda w: lambda x: x[:, :2] * w.tensor, attribute("tensor", ol.to_tensor([5.0, 6.0]))
    ),
    "a Tensor that needs a gradient now": (
        lambda w: lambda x: x[:, :2] * w.tensor,
        attribute("stop_gradient", False, lambda w: w.tensor),
    ),
    # Names and numbers.
    "a number of a global": (of_globals, set_global(GLOBAL=3.0)),
    "an array of a global": (of_globals, fill_global),
    "an array of a global is replaced": (
        of_globals, set_global(GLOBAL_ARRAY=np.full(2, 8, "float32"))
    ),
    "a function of a global": (of_globals, set_global(helper=lambda x: x * 5)),
    "variables of a closure": (CLOSURE, REBIND),
    "a number": (lambda w: lambda x: x * w.number, attribute("number", 3.0)),
    "a number that becomes whole": (lambda w: lambda x: x * w.number, attribute("number", 3)),
    "a number that becomes an array": (
        lambda w: lambda x: x * w.number, attribute("number", np.full(3, 2.0))
    ),
    "a NumPy number": (lambda w: lambda x: x * w.scalar, attribute("scalar", np.float32(3))),
    "a flag": (lambda w: lambda x: x * 2 if w.flag else x, attribute("flag", False)),
    "an entry of a dict": (lambda w: lambda x: x * w.dict["scale"], item("dict", "scale", 3.0)),
    "an element of a list": (lambda w: lambda x: x * w.list[1], item("list", 1, 5.0)),
    "the length of a list": (lambda w: lambda x: x * sum(w.list), lengthen),
    "an attribute of an attribute": (
        lambda w: lambda x: x * w.space.inner.scale,
        attribute("scale", 4.0, lambda w: w.space.inner),
    ),
    "an attribute is replaced by another object": (
        lambda w: lambda x: x * w.space.scale,
        attribute("space", types.SimpleNamespace(scale=7.0)),
    ),
    "an attribute that hides the class's": (
        lambda w: lambda x: x * w.scale_of_class, attribute("scale_of_class", 5.0)
    ),
    "a function that is an attribute": (
        of_the_model, attribute("loss", lambda out, y: (out**2).mean())
    ),
    # Layers.
    "p of Dropout": (of_the_model, attribute("p", 0.7, layer(3))),
    "momentum of batch normalization": (of_the_model, attribute("momentum", 0.5, layer(1))),
    "epsilon of batch normalization": (of_the_model, attribute("epsilon", 0.5, layer(1))),
    "epsilon of layer normalization": (of_the_model, attribute("epsilon", 0.5, layer(4))),
    "slope of an activation": (of_the_model, attribute("negative_slope", 0.5, layer(2))),
    "one layer evaluates": (of_the_model, evaluate_one_layer),
    "a layer is replaced": (of_the_model, replace_layer),
    "a weight is replaced": (of_the_model, replace_weight),
    "a hook of a layer": (of_the_model, add_hook),
    "a hook of a gradient": (of_the_model, add_gradient_hook),
    "a forward method is replaced": (of_the_model, patch_forward),
    "another dtype": (of_the_model, to_float64),
    "the model is replaced": (of_the_model, attribute("model", nn.Linear(3, 2))),
    # Optimizers.
    "another optimizer": (of_the_model, new_optimizer),
    "another scheduler": (of_the_model, new_scheduler),
    "a rate of one parameter": (
        of_the_model, attribute("learning_rate", 0.1, lambda w: w.model[0].weight)
    ),
    "a regularizer of one parameter": (
        of_the_model,
        attribute("regularizer", ol.regularizer.L1Decay(0.1), lambda w: w.model[0].weight),
    ),
    "a parameter that is not clipped": (
        of_the_model, attribute("need_clip", False, lambda w: w.model[0].weight)
    ),
    "the rate is read as a number": (
        lambda w: lambda x: x * w.optimizer.get_lr(), lambda w: w.optimizer.set_lr(0.3)
    ),
    "the mode is read": (
        lambda w: lambda x: x * 2 if w.model.training else x, lambda w: w.model.eval()
    ),
    "the clip": (
        of_the_model, attribute("clip_norm", 0.01, lambda w: w.optimizer.groups[0].grad_clip)
    ),
}  # fmt: skip


def outcomes(name: str, how: Any, refusable: bool) -> list[Any]:
    """Call three times before and after a change; None for a call that is refused."""
    make, change = CHANGES[name]
    w = World()
    f = how(make(w))
    found: list[Any] = []
    ol.seed(5)
    for i in range(6):
        if i == 3:
            change(w)
        x = ol.to_tensor(given(4, 3, seed=i))
        try:
            result = f(x)
        except ol.CaptureError as error:
            assert refusable
            assert i >= 3
            assert "test_never_silent.py" in str(error)  # noqa: PT017 (refused is right, too)
            found.append(None)
            break
        found.append(dict(leaves({f"call {i}": result, "model": w.model.state_dict()})))
    return found


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_followed_or_refused(name: str, undo_globals: Callable[[], None]) -> None:
    wanted = outcomes(name, lambda f: f, refusable=False)
    undo_globals()
    found = outcomes(name, ol.capture, refusable=True)
    for one, other in zip(found, wanted, strict=False):
        if one is not None:
            same(one, other)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_followed_if_not_strict(name: str, undo_globals: Callable[[], None]) -> None:
    wanted = outcomes(name, lambda f: f, refusable=False)
    undo_globals()
    found = outcomes(name, partial(ol.capture, strict=False), refusable=False)
    for one, other in zip(found, wanted, strict=True):
        same(one, other)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", CHANGES)
def test_that_the_change_matters(name: str, undo_globals: Callable[[], None]) -> None:
    """Else a run that ignores it would pass."""
    make, change = CHANGES[name]
    seen = []
    for changed in (False, True):
        undo_globals()
        w = World()
        f = make(w)
        if changed:
            change(w)
        ol.seed(5)
        x = ol.to_tensor(given(4, 3))
        seen.append(dict(leaves({"": [f(x), f(x)], "model": w.model.state_dict()})))
        seen[-1]["needs a gradient"] = getattr(f(x), "requires_grad", None)
    assert seen[0] != seen[1]


#: What the issue names as side inputs stays live: these must be followed.
LIVE = [
    "set_value of a Tensor",
    "a write into a Tensor",
    "one layer evaluates",
    "another scheduler",
]


@pytest.mark.parametrize("name", LIVE)
def test_side_inputs_stay_live(name: str) -> None:
    wanted = outcomes(name, lambda f: f, refusable=False)
    for one, other in zip(outcomes(name, ol.capture, refusable=False), wanted, strict=True):
        same(one, other)


def test_labels_to_ignore_that_come_later_are_noticed() -> None:
    """Whether labels are ignored decides which operations run; it may differ from call to call."""

    def results(how: Any) -> list[Any]:
        ol.seed(0)
        model = nn.Sequential(nn.Linear(4, 3), nn.Dropout(0.3))
        optimizer = ol.optimizer.Adam(0.1, parameters=model.parameters())

        def step(x: Any, y: Any) -> Any:
            loss = F.cross_entropy(model(x), y, ignore_index=2)
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            return loss

        step = how(step)
        x = ol.to_tensor(given(6, 4))
        labels = [[0, 1, 0, 1, 1, 0], [0, 1, 2, 1, 1, 0], [0, 1, 1, 1, 1, 0], [0, 1, 2, 2, 1, 0]]
        found = [step(x, np.array(y)).numpy().tobytes() for y in labels]
        return [found, dict(leaves({"": model.state_dict()})), ol.rand([2]).tolist()]

    assert results(ol.capture) == results(lambda f: f)
