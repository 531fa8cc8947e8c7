"""ParamAttr and create_parameter: every form of weight_attr and bias_attr, in every layer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import optlab as ol

nn, init = ol.nn, ol.nn.initializer

#: Layers with an optional weight and bias, and their arguments.
LAYERS: dict[str, Any] = {
    "Linear": lambda **given: nn.Linear(3, 2, **given),
    "Bilinear": lambda **given: nn.Bilinear(3, 3, 2, **given),
    "BatchNorm1D": lambda **given: nn.BatchNorm1D(3, **given),
    "BatchNorm2D": lambda **given: nn.BatchNorm2D(3, **given),
    "BatchNorm3D": lambda **given: nn.BatchNorm3D(3, **given),
    "LayerNorm": lambda **given: nn.LayerNorm(3, **given),
    "GroupNorm": lambda **given: nn.GroupNorm(1, 3, **given),
    "InstanceNorm1D": lambda **given: nn.InstanceNorm1D(3, **given),
    "InstanceNorm2D": lambda **given: nn.InstanceNorm2D(3, **given),
    "InstanceNorm3D": lambda **given: nn.InstanceNorm3D(3, **given),
}
WEIGHT_ONLY: dict[str, Any] = {
    "RMSNorm": lambda **given: nn.RMSNorm(3, **given),
    "Embedding": lambda **given: nn.Embedding(3, 2, **given),
    "PReLU": lambda **given: nn.PReLU(3, **given),
}
ALL = pytest.mark.parametrize("make", [*LAYERS.values(), *WEIGHT_ONLY.values()],
                              ids=[*LAYERS, *WEIGHT_ONLY])  # fmt: skip
BOTH = pytest.mark.parametrize("make", LAYERS.values(), ids=LAYERS)


@ALL
def test_all_settings(make: Any) -> None:
    decay = ol.regularizer.L2Decay(0.5)
    attr = ol.ParamAttr("mine", init.Constant(7.0), 0.25, decay, need_clip=False)
    weight = make(weight_attr=attr).weight
    assert weight.name == "mine"
    assert np.unique(weight.numpy()).tolist() == [7.0]
    assert (weight.learning_rate, weight.need_clip, weight.trainable) == (0.25, False, True)
    assert weight.regularizer is decay


@ALL
def test_a_name_an_initializer_and_what_stands_for_nothing_said(make: Any) -> None:
    assert make(weight_attr="mine").weight.name == "mine"
    assert np.unique(make(weight_attr=init.Constant(3.0)).weight.numpy()).tolist() == [3.0]
    ol.seed(1)
    plain = make().weight.numpy()
    for attr in (None, True, ol.ParamAttr()):
        ol.seed(1)
        assert np.array_equal(make(weight_attr=attr).weight.numpy(), plain)


@ALL
def test_what_is_not_trained_gets_no_gradient(make: Any) -> None:
    assert make(weight_attr=ol.ParamAttr(trainable=False)).weight.requires_grad is False


@ALL
def test_the_name_of_a_layer_begins_the_names_of_its_parameters(make: Any) -> None:
    assert make(name="first").weight.name == "first.weight"
    assert make(name="first", weight_attr="mine").weight.name == "mine"


@ALL
@pytest.mark.parametrize("attr", [1.5, np.zeros(3), {"name": "w"}], ids=repr)
def test_what_is_none_of_these_is_refused(make: Any, attr: Any) -> None:
    with pytest.raises(TypeError, match="weight_attr must be an optlab"):
        make(weight_attr=attr)


@BOTH
def test_the_bias_can_be_left_out(make: Any) -> None:
    assert make(bias_attr=False).bias is None
    assert np.unique(make(bias_attr=init.Constant(2.0)).bias.numpy()).tolist() == [2.0]
    assert make(name="first").bias.name == "first.bias"


@pytest.mark.parametrize("name", ["Linear", "Bilinear", "Embedding", "PReLU"])
def test_what_cannot_do_without_a_weight_says_so(name: str) -> None:
    with pytest.raises(TypeError, match=f"{name} cannot do without"):
        {**LAYERS, **WEIGHT_ONLY}[name](weight_attr=False)


@pytest.mark.parametrize("name", [name for name in LAYERS if "Norm" in name] + ["RMSNorm"])
def test_normalisations_do_without_a_weight(name: str) -> None:
    layer = {**LAYERS, **WEIGHT_ONLY}[name](weight_attr=False)
    assert layer.weight is None


class TestParamAttr:
    def test_bad_settings(self) -> None:
        with pytest.raises(TypeError, match="name must be text"):
            ol.ParamAttr(3)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="initializer must be one of"):
            ol.ParamAttr(initializer=0.5)  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="do_model_average=False"):
            ol.ParamAttr(do_model_average=False)

    def test_it_can_be_shared(self) -> None:
        attr = ol.ParamAttr(initializer=init.Normal())
        layer = nn.Linear(2, 2, weight_attr=attr, bias_attr=attr)
        assert layer.weight is not layer.bias

    def test_repr(self) -> None:
        assert "learning_rate=0.5" in repr(ol.ParamAttr(learning_rate=0.5))


class TestCreateParameter:
    def test_forms(self) -> None:
        ol.seed(0)
        weight = ol.create_parameter([3, 4], "float64")
        assert isinstance(weight, ol.Parameter)
        assert (weight.shape, weight.dtype, weight.requires_grad) == ((3, 4), np.float64, True)
        assert np.abs(weight.numpy()).max() <= np.sqrt(6 / 7)
        assert ol.create_parameter([2], is_bias=True).tolist() == [0.0, 0.0]
        start = init.Constant(2.0)
        assert ol.create_parameter([2], default_initializer=start).tolist() == [2.0, 2.0]
        assert ol.create_parameter([1], attr=init.Constant(5.0), is_bias=True).item() == 5.0

    def test_names(self) -> None:
        assert ol.create_parameter([2], name="a").name == "a"
        assert ol.create_parameter([2], name="a", attr="b").name == "b"

    def test_bad_input(self) -> None:
        with pytest.raises(TypeError, match="makes floating numbers"):
            ol.create_parameter([2], "int64")
        with pytest.raises(TypeError, match="attr=False"):
            ol.create_parameter([2], attr=False)
        with pytest.raises(TypeError, match="default_initializer must be an initializer"):
            ol.create_parameter([2], default_initializer=1.0)  # type: ignore[arg-type]
