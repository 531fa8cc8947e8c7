"""Layers that are a function with settings: their constructors, and their repr."""

from __future__ import annotations

import copy
import inspect
import pickle
import pydoc
import re
import subprocess
import sys
from typing import Any

import pytest

import optlab as ol

nn = ol.nn

SIGNATURES = {
    "MaxPool2D": (
        "kernel_size, stride=None, padding=0, return_mask=False, ceil_mode=False, "
        "data_format='NCHW', name=None"
    ),
    "MaxPool3D": (
        "kernel_size, stride=None, padding=0, return_mask=False, ceil_mode=False, "
        "data_format='NCDHW', name=None"
    ),
    "AvgPool1D": (
        "kernel_size, stride=None, padding=0, exclusive=True, ceil_mode=False, name=None"
    ),
    "AdaptiveAvgPool3D": "output_size, data_format='NCDHW', name=None",
    "AdaptiveMaxPool2D": "output_size, return_mask=False, name=None",
    "Pad1D": "padding, mode='constant', value=0.0, data_format='NCL', name=None",
    "ZeroPad3D": "padding, data_format='NCDHW', name=None",
    "Unfold": "kernel_sizes, dilations=1, paddings=0, strides=1, name=None",
    "LeakyReLU": "negative_slope=0.01, name=None",
    "Dropout": "p=0.5, axis=None, mode='upscale_in_train', name=None",
    "KLDivLoss": "reduction='mean', log_target=False",
    "MarginRankingLoss": "margin=0.0, reduction='mean', name=None",
    "Upsample": (
        "size=None, scale_factor=None, mode='nearest', align_corners=False, align_mode=0, "
        "data_format=None, recompute_scale_factor=None, name=None"
    ),
    "MaxUnPool2D": (
        "kernel_size, stride=None, padding=0, data_format='NCHW', output_size=None, name=None"
    ),
}


@pytest.mark.parametrize("name", SIGNATURES)
def test_the_constructors_are_paddles(name: str) -> None:
    shown = inspect.signature(getattr(nn, name)).parameters.values()
    given = [p.name if p.default is p.empty else f"{p.name}={p.default!r}" for p in shown]
    assert ", ".join(given) == SIGNATURES[name]


def test_a_layer_has_the_signature_of_its_call() -> None:
    assert list(inspect.signature(nn.MaxPool2D(2)).parameters) == ["inputs", "options"]
    assert list(inspect.signature(nn.MSELoss().forward).parameters) == ["input", "label"]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: nn.MaxPool2D(), r"MaxPool2D\(kernel_size, .*\) needs kernel_size"),
        (
            lambda: nn.MaxPool2D(2, kernel=3),
            r"MaxPool2D has no argument 'kernel'; it has kernel_size",
        ),
        (lambda: nn.MaxPool2D(2, kernel_size=3), "kernel_size twice"),
        (lambda: nn.Tanh(None, 2), r"Tanh\(name\) takes 1 at most; got 2"),
    ],
)
def test_wrong_arguments_are_named(call: Any, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        call()


def test_settings_may_be_changed_and_are_shown() -> None:
    pool = nn.MaxPool2D(2, name="small")
    assert repr(pool) == "MaxPool2D(kernel_size=2, name='small')"
    pool.stride = 1
    assert repr(pool) == "MaxPool2D(kernel_size=2, stride=1, name='small')"
    assert pool(ol.ones([1, 1, 4, 4])).shape == (1, 1, 3, 3)
    for again in (copy.deepcopy(pool), pickle.loads(pickle.dumps(pool))):
        assert repr(again) == repr(pool)
        assert again(ol.ones([1, 1, 4, 4])).shape == (1, 1, 3, 3)


def test_a_users_class_may_have_its_own_constructor() -> None:
    class Halving(nn.MaxPool2D):
        note: str = "not a setting"

        def __init__(self, size: int = 2) -> None:
            super().__init__(size, ceil_mode=True)

    assert list(inspect.signature(Halving).parameters) == ["size"]
    assert Halving()(ol.ones([1, 1, 5, 5])).shape == (1, 1, 3, 3)
    assert repr(Halving()) == "Halving(kernel_size=2, ceil_mode=True)"


def test_families_are_told_apart() -> None:
    assert not isinstance(nn.MaxPool3D(2), nn.MaxPool2D)
    assert not issubclass(nn.Pad3D, nn.Pad2D)


#: Not those that take anything, or the constructor of Layer.
LAYERS = sorted(
    {name for name in nn.layers.__all__ if issubclass(getattr(nn, name), nn.Layer)}
    - {"Identity", "RNNCellBase"}
)


def documented(doc: str) -> list[str]:
    """Give the names in the Parameters section of a docstring, in order."""
    section = re.search(r"^Parameters\n-+\n(.*?)\n\n[A-Z]", doc, re.DOTALL | re.MULTILINE)[1]
    heads = re.findall(r"^(\S.*?)(?: :.*)?$", section, re.MULTILINE)
    return [name.lstrip("*") for head in heads for name in head.split(", ")]


@pytest.mark.parametrize("name", LAYERS)
def test_every_argument_is_documented_once_and_in_order(name: str) -> None:
    layer = getattr(nn, name)
    doc = inspect.getdoc(layer)
    assert doc == inspect.cleandoc(layer.__doc__)
    assert documented(doc) == list(inspect.signature(layer).parameters)
    assert "\n\nExamples\n--------\n>>> " in doc


def test_a_docstring_has_the_arguments_of_the_function_and_the_defaults_of_the_class() -> None:
    assert nn.GELU.__doc__ == nn.GELU().__doc__
    assert "approximate : bool, default False\n    Use :math:" in nn.GELU.__doc__
    assert "name : str, optional\n    Shown by ``repr``." in nn.GELU.__doc__
    assert "optlab.nn.functional.gelu : " in nn.GELU.__doc__
    assert "data_format : {'NCL', 'NLC'}, default 'NCL'\n    " in nn.Pad1D.__doc__
    assert "mode : {'constant', 'reflect', 'replicate', 'circular'}, default 'constant'\n    " in (
        nn.Pad1D.__doc__
    )
    assert "padding : int or list of int\n    " in nn.Pad1D.__doc__
    assert "momentum : float, default 0.9\n    " in nn.BatchNorm3D.__doc__
    assert "Parameters\n |  ----------\n |  approximate : bool" in pydoc.render_doc(
        nn.GELU, renderer=pydoc.plaintext
    )


def test_a_user_s_class_keeps_its_own_docstring() -> None:
    class Half(nn.GELU):
        """Half of it."""

    class Plain(nn.BatchNorm1D):
        pass

    assert (Half.__doc__, Plain.__doc__) == ("Half of it.", None)
    assert inspect.getdoc(Plain) == inspect.getdoc(nn.BatchNorm1D)


def test_layers_work_where_docstrings_are_stripped() -> None:
    code = "import optlab as ol; print(ol.nn.GELU.__doc__, ol.nn.GELU(), ol.nn.BatchNorm2D.__doc__)"
    done = subprocess.run([sys.executable, "-OO", "-c", code], capture_output=True, text=True)
    assert done.stdout == "None GELU() None\n", done.stderr


@pytest.mark.parametrize("name", [n for n in nn.functional.__all__ if re.search("[13]d", n)])
def test_functions_document_the_arguments_and_shapes_of_their_own_dimension(name: str) -> None:
    function = getattr(nn.functional, name)
    doc = function.__doc__
    assert doc == inspect.getdoc(function)
    assert [*documented(doc), "name"] == list(inspect.signature(function).parameters)
    described = doc.partition("Parameters\n---")[2].partition("\n\nExamples")[0]
    foreign = "NCHW|NHWC|2d|image|" + (r"\b[HW]\b" if "1d" in name else r"\[N, [CO], H")
    assert not re.search(foreign, described)
    assert f"[N, C, {'L' if '1d' in name else 'D, H, W'}]" in described
    assert "\n\nRaises\n" in described


def test_the_sections_of_a_function_come_before_those_of_its_source() -> None:
    doc = nn.functional.smooth_l1_loss.__doc__
    assert documented(doc) == ["input", "label", "reduction", "delta", "is_huber"]
    assert doc.count("Raises\n------\n") == 1
    assert "`delta` is not positive" in doc


def test_functions_work_where_docstrings_are_stripped() -> None:
    code = "import optlab as ol; print(ol.nn.functional.conv1d.__doc__)"
    done = subprocess.run([sys.executable, "-OO", "-c", code], capture_output=True, text=True)
    assert done.stdout == "None\n", done.stderr
