"""Arguments that layers and functions do not have: the error says what to write."""

from __future__ import annotations

import inspect
import pickle
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import optlab as ol
import optlab.nn.functional as F
from optlab import nn

X = ol.ones([2, 3])
LAYERS = [
    name
    for name in nn.__all__
    if isinstance(cls := getattr(nn, name), type)
    and issubclass(cls, nn.Layer)
    and cls is not nn.Identity  # takes any arguments, as documented
]
#: Layers that take any number of layers or arguments by position.
VARIADIC = ("Sequential",)


def required(callable_: Any) -> list[str]:
    return [
        name
        for name, one in inspect.signature(callable_).parameters.items()
        if one.default is one.empty and one.kind is one.POSITIONAL_OR_KEYWORD
    ]


def names(callable_: Any) -> list[str]:
    return list(inspect.signature(callable_).parameters)


@pytest.mark.parametrize("name", F.__all__)
def test_every_function_names_its_arguments(name: str) -> None:
    function = getattr(F, name)
    with pytest.raises(TypeError) as error:
        function(X, nonsense_of_mine=1)
    listed = ", ".join(names(function))
    assert str(error.value) == f"{name} has no argument 'nonsense_of_mine'; it has {listed}."
    by_position = [
        one
        for one, parameter in inspect.signature(function).parameters.items()
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD
    ]
    with pytest.raises(TypeError, match=rf"{name} takes at most {len(by_position)} arg.*; got 30"):
        function(*[X] * 30)
    with pytest.raises(TypeError, match=rf"^{name}\(.* needs {' and '.join(required(function))}"):
        function()
    first = by_position[0]
    with pytest.raises(TypeError, match=f"{name} got {first} twice: by position and by name"):
        function(*[X] * len(required(function)), **{first: X})


@pytest.mark.parametrize("name", LAYERS)
def test_every_layer_names_its_arguments(name: str) -> None:
    cls = getattr(nn, name)
    needed = [1] * len(required(cls))
    if name in VARIADIC:
        needed = []
    with pytest.raises(TypeError) as error:
        cls(*needed, nonsense_of_mine=1)
    assert str(error.value).startswith(f"{name} has no argument 'nonsense_of_mine'")
    if name in VARIADIC:
        return
    listed = ", ".join(names(cls))
    assert f"; it has {listed}." in str(error.value)
    with pytest.raises(TypeError, match=rf"{name}.* takes .*at most|takes \d+ at most"):
        cls(*[1] * 30)
    if needed:
        with pytest.raises(TypeError, match=rf"^{name}\(.*\) needs {required(cls)[0]}"):
            cls()


#: What is written elsewhere (in PyTorch, most of it), and what the error says to write.
ELSEWHERE: dict[str, tuple[Callable[[], Any], str]] = {
    "Conv2d(bias)": (lambda: nn.Conv2D(3, 8, 3, bias=False), "Write bias_attr=False."),
    "Conv2d(bias=True)": (lambda: nn.Conv2D(3, 8, 3, bias=True), "there is a bias by default"),
    "Linear(bias)": (lambda: nn.Linear(3, 8, bias=False), "Write bias_attr=False."),
    "Linear(device)": (lambda: nn.Linear(3, 8, device="cpu"), r"layer\.to\("),
    "BatchNorm2d(eps)": (
        lambda: nn.BatchNorm2D(8, eps=1e-3),
        r"Write epsilon=0\.001\..*1 minus PyTorch's: momentum=0\.9 for its 0\.1",
    ),
    "BatchNorm2d(affine)": (
        lambda: nn.BatchNorm2D(8, affine=False), "Write weight_attr=False, bias_attr=False.",
    ),
    "BatchNorm2d(affine=True)": (lambda: nn.BatchNorm2D(8, affine=True), "Leave it out"),
    "BatchNorm2d(track_running_stats)": (
        lambda: nn.BatchNorm2D(8, track_running_stats=False), "use_global_stats=False",
    ),
    "LayerNorm(eps)": (lambda: nn.LayerNorm(8, eps=1e-6), "Write epsilon=1e-06."),
    "LayerNorm(elementwise_affine)": (
        lambda: nn.LayerNorm(8, elementwise_affine=False), "weight_attr=False, bias_attr=False",
    ),
    "Dropout(inplace)": (lambda: nn.Dropout(0.5, inplace=True), "Leave it out"),
    "Dropout(rate)": (lambda: nn.Dropout(rate=0.2), r"Write p=0\.2\."),
    "ReLU(inplace)": (lambda: nn.ReLU(inplace=True), "Leave it out"),
    "Softmax(dim)": (lambda: nn.Softmax(dim=1), "Write axis=1."),
    "LSTM(batch_first)": (lambda: nn.LSTM(2, 3, batch_first=True), "Leave it out"),
    "LSTM(batch_first=False)": (lambda: nn.LSTM(2, 3, batch_first=False), "time_major=True"),
    "LSTM(bidirectional)": (
        lambda: nn.LSTM(2, 3, bidirectional=True), "Write direction='bidirect'.",
    ),
    "MaxPool2d(return_indices)": (
        lambda: nn.MaxPool2D(2, return_indices=True), "Write return_mask=True.",
    ),
    "AvgPool2d(count_include_pad)": (
        lambda: nn.AvgPool2D(2, count_include_pad=False), "Write exclusive=True.",
    ),
    "Flatten(start_dim)": (lambda: nn.Flatten(start_dim=2), "Write start_axis=2."),
    "TransformerEncoderLayer(norm_first)": (
        lambda: nn.TransformerEncoderLayer(4, 2, 8, norm_first=True), "normalize_before=True",
    ),
    "CrossEntropyLoss(size_average)": (
        lambda: nn.CrossEntropyLoss(size_average=False), "Write reduction='mean'",
    ),
    "softmax(dim)": (lambda: F.softmax(X, dim=1), "Write axis=1."),
    "log_softmax(dim)": (lambda: F.log_softmax(X, dim=-1), "Write axis=-1."),
    "normalize(dim, eps)": (lambda: F.normalize(X, dim=1), "Write axis=1."),
    "normalize(eps)": (lambda: F.normalize(X, eps=1e-6), "Write epsilon=1e-06."),
    "layer_norm(eps)": (lambda: F.layer_norm(X, 3, eps=1e-6), "Write epsilon=1e-06."),
    "cosine_similarity(epsilon)": (
        lambda: F.cosine_similarity(X, X, epsilon=1e-6), "Write eps=1e-06.",
    ),
    "cross_entropy(target)": (lambda: F.cross_entropy(X, target=[0, 1]), r"label=\[0, 1\]"),
    "linear(input)": (lambda: F.linear(input=X, weight=X), r"Write x=\.\.\."),
    "relu(inplace)": (lambda: F.relu(X, inplace=True), "Leave it out"),
    "gumbel_softmax(tau)": (lambda: F.gumbel_softmax(X, tau=0.5), "Write temperature=0.5."),
    "pairwise_distance(keepdims)": (
        lambda: F.pairwise_distance(X, X, keepdims=True), "Write keepdim=True.",
    ),
    "linear(transpose_y)": (lambda: F.linear(X, X, transpose_y=True), r"x @ y\.mT"),
    "softmax(perm)": (lambda: F.softmax(X, perm=[1, 0]), r"np\.transpose"),
    "a word that is nearly right": (lambda: F.softmax(X, axes=1), "axis"),
    "another word that is nearly right": (
        lambda: nn.Conv2D(3, 8, 3, paddings=1), "Did you mean 'padding'?",
    ),
}  # fmt: skip


@pytest.mark.parametrize("given", ELSEWHERE)
def test_arguments_of_other_libraries(given: str) -> None:
    call, written = ELSEWHERE[given]
    with pytest.raises(TypeError, match=rf"has no argument.*{written}"):
        call()


def test_rms_norm_takes_epsilon_as_its_layer_does() -> None:
    x = ol.to_tensor([[3.0, 4.0]])
    by_layer = nn.RMSNorm(2, epsilon=0.5)(x)
    assert F.rms_norm(x, 2, epsilon=0.5).tolist() == by_layer.tolist()
    assert F.rms_norm(x, 2, eps=0.5).tolist() == by_layer.tolist()
    with pytest.raises(TypeError, match="eps and epsilon are the same"):
        F.rms_norm(x, 2, eps=0.1, epsilon=0.5)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: F.relu(None), "relu cannot take x=None: x must be an array, a Tensor or numbers"),
        (lambda: F.softmax(X, axis="a"), "softmax cannot take axis='a': axis must be a whole num"),
        (lambda: F.gelu({"a": 1}), "gelu cannot take x={'a': 1}"),
        (lambda: F.glu(X, axis=None), "axis must be a whole number"),
    ],
)
def test_values_of_another_kind_are_named(call: Any, said: str) -> None:
    with pytest.raises(TypeError, match=re.escape(said)) as error:
        call()
    assert error.value.__cause__ is not None  # where it failed, for whoever looks for a defect


def test_an_error_of_the_users_own_function_passes_unchanged() -> None:
    def distance(a: Any, b: Any) -> Any:
        raise AttributeError("mine")

    with pytest.raises(AttributeError, match=r"^mine$"):
        F.triplet_margin_with_distance_loss(X, X, X, distance_function=distance)

    class Mine(nn.Layer):
        def __init__(self, size: int) -> None:
            super().__init__()
            self.layer = nn.Linear(size, {}["nothing"])

    with pytest.raises(KeyError, match="nothing"):
        Mine(3)


def test_a_layer_of_the_user_with_an_unknown_argument_for_its_base() -> None:
    class Mine(nn.Linear):
        def __init__(self) -> None:
            super().__init__(2, 3, bias=False)

    with pytest.raises(TypeError, match=r"Mine has no argument 'bias'.*Write bias_attr=False"):
        Mine()


def test_functions_keep_their_names_signatures_and_pickles() -> None:
    assert F.softmax.__name__ == "softmax"
    assert F.softmax.__module__ == "optlab.nn.functional"
    assert pickle.loads(pickle.dumps(F.softmax)) is F.softmax
    assert names(F.softmax) == ["x", "axis", "dtype", "name"]
    assert "Parameters" in (F.softmax.__doc__ or "")
    assert names(nn.Linear)[:2] == ["in_features", "out_features"]
    np.testing.assert_array_equal(F.relu(np.array([-1.0, 2.0])), [0, 2])
