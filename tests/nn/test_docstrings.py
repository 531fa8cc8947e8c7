"""Docstrings of layers and functions: documented formats are accepted, shapes fit the dimension."""

from __future__ import annotations

import inspect
import re

import numpy as np
import pytest

import optlab as ol
from optlab.nn.docstrings import documented_like

F = ol.nn.functional

#: Values of arguments without a default.
ARGUMENTS = {
    "in_channels": 2, "out_channels": 2, "kernel_size": 1, "num_features": 2, "num_channels": 2,
    "num_groups": 1, "groups": 1, "output_size": 2, "upscale_factor": 1, "downscale_factor": 1,
    "padding": 1, "norm_type": 2.0, "size": 1, "scale_factor": 1,
    "running_mean": np.zeros(2), "running_var": np.ones(2),
}  # fmt: skip


def arguments_of(call, dims):
    """Return values of the arguments without a default, but for the inputs of a function."""
    weight = [2] if call is F.prelu else [2, 2, *[1] * dims]
    values = ARGUMENTS | {"weight": ol.ones(weight), "pad": [1, 1] * dims}
    return {
        name: values[name]
        for name, argument in inspect.signature(call).parameters.items()
        if name in values
        and (argument.default is argument.empty or (name == "size" and argument.default is None))
    }


def documented_formats():
    for public in (ol.nn, F):
        for name in dir(public):
            call = getattr(public, name)
            if name.startswith("_") or not callable(call):
                continue
            for argument in inspect.signature(call).parameters:
                if argument not in ("data_format", "data_layout"):
                    continue
                doc = inspect.getdoc(call)
                found = re.search(rf"^(?:\w+, )*{argument}(?:, \w+)* : {{(.*?)}}", doc, re.M)
                formats = re.findall(r"'(\w+)'", found[1]) if found else [None]
                for data_format in formats:
                    name = f"{public.__name__.rpartition('.')[2]}.{call.__name__}-{data_format}"
                    yield pytest.param(call, argument, data_format, id=name)


@pytest.mark.parametrize(("call", "argument", "data_format"), list(documented_formats()))
def test_each_documented_data_format_is_accepted(call, argument, data_format):
    assert data_format is not None, "the docstring lists no values"
    dims = len(data_format) - 2
    shape = [{"N": 3, "C": 2}.get(axis, 4) for axis in data_format]
    inputs = [ol.ones(shape)]
    if "unpool" in call.__name__.lower():
        inputs.append(np.broadcast_to(np.arange(4**dims).reshape([4] * dims), shape))
    options = arguments_of(call, dims) | {argument: data_format}
    if "Bilinear" in call.__name__:
        options["size"] = 2
    y = call(**options)(*inputs) if isinstance(call, type) else call(*inputs, **options)
    assert len(y.shape) == len(data_format)


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize("layer", ["Conv{}D", "Conv{}DTranspose"])
def test_a_convolution_layer_refers_to_the_function_of_its_dimension(layer, dims):
    doc = inspect.getdoc(getattr(ol.nn, layer.format(dims)))
    assert f"optlab.nn.functional.conv{dims}d" in doc
    assert f"Signature: paddle.nn.{layer.format(dims)}" in doc
    for other in {1, 2, 3} - {dims}:
        assert f"conv{other}d" not in doc
        assert f"Conv{other}D" not in doc


def test_shapes_are_rewritten_as_whole_words():
    def source(x, kernel):
        """Do something.

        Parameters
        ----------
        x : Tensor of shape [N, C, H, W]
            The imagery of Huber; see `conv2d`.
        kernel : list of size [KH, KW]
            Of H elements of the images.
        """

    def function(x: object, kernel: object) -> None:
        """Do the same."""

    assert inspect.getdoc(documented_like(source, dims=1)(function)) == (
        "Do the same.\n\nParameters\n----------\n"
        "x : Tensor of shape [N, C, L]\n    The imagery of Huber; see `conv1d`.\n"
        "kernel : list of size [K]\n    Of L elements of the sequences."
    )


@pytest.mark.parametrize(
    "layer",
    [o for o in vars(ol.nn).values() if isinstance(o, type) and issubclass(o, ol.nn.Layer)],
    ids=lambda layer: layer.__name__,
)
def test_the_arguments_of_generated_docstrings_have_entries(layer):
    generated = [base for base in layer.__mro__ if type(vars(base).get("__doc__")) is not str]
    if layer in generated:  # an argument without an entry would be shown with its annotation
        assert not re.search(r"^\w+ : (Any\b|\w+ \| )", layer.__doc__, re.M)


def test_a_function_with_an_argument_without_an_entry_raises():
    def function(x: object, factor: object, name: None = None) -> None:
        """Do the same."""

    with pytest.raises(TypeError, match=r"function has no entry for factor; nor has that of relu"):
        documented_like(F.relu)(function)
