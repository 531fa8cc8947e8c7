"""Eager execution under the names of ``paddle.fluid.dygraph`` 1.8.5.

Here everything runs eagerly: ``guard`` switches nothing on.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from optlab.autograd.tape.grad_mode import no_grad
from optlab.autograd.tensor.creation import to_tensor
from optlab.autograd.tensor.tensor import Tensor
from optlab.backend.device import get_device, set_device
from optlab.fluid.instead import STATIC, no_such_name
from optlab.io import load, save
from optlab.nn import Embedding as ModernEmbedding
from optlab.nn import Layer, LayerList, Parameter, ParameterList, Sequential, functional
from optlab.nn import Linear as ModernLinear

__all__ = [
    "Embedding",
    "Layer",
    "LayerList",
    "Linear",
    "ParameterList",
    "Sequential",
    "enabled",
    "guard",
    "load_dygraph",
    "no_grad",
    "save_dygraph",
    "to_variable",
]


@contextmanager
def guard(place: str | None = None) -> Iterator[None]:
    """Run a block on a device; without one it changes nothing, as everything runs eagerly.

    Parameters
    ----------
    place : CPUPlace, CUDAPlace or str, optional
        The device of new Tensors inside of the block.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> with ol.fluid.dygraph.guard(ol.fluid.CPUPlace()):
    ...     x = ol.fluid.dygraph.to_variable(np.ones(2))
    """
    if place is None:
        yield
        return
    before = get_device()
    set_device(place)
    try:
        yield
    finally:
        set_device(before)


def enabled() -> bool:
    """Return whether operations run eagerly; they always do."""
    return True


def to_variable(value: Any, name: None = None) -> Tensor:
    """Return an array as a Tensor that needs no gradient; a Tensor as it is.

    Parameters
    ----------
    value : array_like or Tensor
    name : None
        Only parameters have names: ``ol.Parameter(value, name="w")``.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> ol.fluid.dygraph.to_variable(np.ones(2, "float32"))
    Tensor([1., 1.], dtype=float32)
    """
    if name is not None:
        raise TypeError(
            f"to_variable: only parameters have names; write ol.Parameter(value, name={name!r})."
        )
    return value if isinstance(value, Tensor) else to_tensor(value)


class Linear(ModernLinear):
    """`optlab.nn.Linear` with the arguments of 1.8.5.

    Parameters
    ----------
    input_dim, output_dim : int
    param_attr, bias_attr : ParamAttr, str, Initializer or bool, optional
    act : str, optional
        An activation of `optlab.nn.functional`, such as "relu", applied to the output.
    dtype : str or dtype

    Examples
    --------
    >>> import optlab as ol
    >>> layer = ol.fluid.dygraph.Linear(2, 3, act="relu")
    >>> bool((layer(ol.ones([4, 2])).numpy() >= 0).all())
    True
    """

    def __init__(
        self, input_dim: int, output_dim: int, param_attr: Any = None, bias_attr: Any = None,
        act: str | None = None, dtype: Any = "float32",
    ) -> None:  # fmt: skip
        if act is not None and (
            not isinstance(act, str) or not callable(getattr(functional, act, None))
        ):
            raise ValueError(
                f"Linear: act names an activation of ol.nn.functional, such as 'relu'; got {act!r}."
            )
        super().__init__(input_dim, output_dim, param_attr, bias_attr, dtype=dtype)
        self.act = act

    def forward(self, x: Any) -> Tensor:
        """Compute x W + b, and the activation of it."""
        y = super().forward(x)
        return y if self.act is None else getattr(functional, self.act)(y)


class Embedding(ModernEmbedding):
    """`optlab.nn.Embedding` with the arguments of 1.8.5.

    Parameters
    ----------
    size : pair of int
        The number of vectors, and their length.
    is_sparse : bool
        Whether the gradient has only the rows that were looked up.
    padding_idx : int, optional
    param_attr : ParamAttr, str or Initializer, optional
    dtype : str or dtype

    Examples
    --------
    >>> import optlab as ol
    >>> ol.fluid.dygraph.Embedding(size=[10, 3])(ol.to_tensor([1, 2])).shape
    (2, 3)
    """

    def __init__(
        self, size: Sequence[int], is_sparse: bool = False, *, padding_idx: int | None = None,
        param_attr: Any = None, dtype: Any = "float32",
    ) -> None:  # fmt: skip
        if isinstance(size, str):
            raise TypeError(
                f"Embedding({size!r}, ...): names before the size were of versions before 1.8; "
                "write Embedding(size=[10, 10])."
            )
        if not isinstance(size, (list, tuple)) or len(size) != 2:
            raise ValueError(
                f"Embedding: size is the number of vectors and their length, such as [10, 3]; got "
                f"{size!r}."
            )
        count, length = size
        super().__init__(count, length, padding_idx, is_sparse, param_attr, dtype=dtype)


def save_dygraph(state_dict: Mapping[str, Any], model_path: str) -> None:
    """Save the state of a layer as ``model_path.pdparams``, of an optimizer as ``.pdopt``.

    Parameters
    ----------
    state_dict : dict
        What ``layer.state_dict()`` or ``optimizer.state_dict()`` gives. It is a layer's if there
        are parameters in it.
    model_path : str
        The path without its ending.

    Raises
    ------
    ValueError
        If the state is empty, or the path names a folder.

    Notes
    -----
    The format is that of `optlab.save`, which has no pickle in it; Paddle cannot read it.

    Examples
    --------
    >>> import os, tempfile
    >>> import optlab as ol
    >>> fluid = ol.fluid
    >>> emb = fluid.dygraph.Embedding(size=[10, 10])
    >>> adam = fluid.optimizer.Adam(0.1, parameter_list=emb.parameters())
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "paddle_dy")
    ...     fluid.save_dygraph(emb.state_dict(), path)
    ...     fluid.save_dygraph(adam.state_dict(), path)
    ...     weights, state = fluid.load_dygraph(path)
    >>> emb.set_dict(weights)
    Keys(missing_keys=[], unexpected_keys=[])
    >>> adam.set_dict(state)
    """
    if not isinstance(state_dict, Mapping):
        raise TypeError(
            "save_dygraph takes a state, layer.state_dict() or optimizer.state_dict(); got "
            f"{type(state_dict).__name__}."
        )
    if not state_dict:
        raise ValueError("save_dygraph: the state is empty, there is nothing to save.")
    path = os.fspath(model_path)
    if not os.path.basename(path):
        raise ValueError(f"save_dygraph: {path!r} names a folder; give a file in it.")
    is_layer = any(isinstance(value, Parameter) for value in state_dict.values())
    save(dict(state_dict), path + (".pdparams" if is_layer else ".pdopt"))


def load_dygraph(model_path: str) -> tuple[Any, Any]:
    """Load the states that `save_dygraph` saved: of the layer and of the optimizer.

    Parameters
    ----------
    model_path : str
        The path, with or without its ending.

    Returns
    -------
    tuple of dict or None
        None for a state that was not saved.

    Raises
    ------
    FileNotFoundError
        If there is neither.
    """
    path = os.fspath(model_path).removesuffix(".pdparams").removesuffix(".pdopt")
    files = [path + ending for ending in (".pdparams", ".pdopt")]
    if not any(map(os.path.exists, files)):
        raise FileNotFoundError(f"there is neither {files[0]} nor {files[1]}.")
    weights, state = (load(file) if os.path.exists(file) else None for file in files)
    return weights, state


_SCHEDULE = "schedules are in ol.optimizer.lr; call schedule.step() after each step of training."
_INSTEAD = {
    **STATIC,
    "Conv2D": "write ol.nn.Conv2D(in_channels, out_channels, kernel_size); an activation is a "
    "function of its output.",
    "Conv2DTranspose": "write ol.nn.Conv2DTranspose(in_channels, out_channels, kernel_size).",
    "Pool2D": "write ol.nn.MaxPool2D(kernel_size) or ol.nn.AvgPool2D(kernel_size).",
    "BatchNorm": "write ol.nn.BatchNorm1D, BatchNorm2D or BatchNorm3D(num_features).",
    "LayerNorm": "write ol.nn.LayerNorm(normalized_shape).",
    "GroupNorm": "write ol.nn.GroupNorm(num_groups, num_channels).",
    "InstanceNorm": "write ol.nn.InstanceNorm2D(num_features).",
    "PRelu": "write ol.nn.PReLU(num_parameters).",
    "Dropout": "write ol.nn.Dropout(p).",
    "BilinearTensorProduct": "write ol.nn.Bilinear(in1_features, in2_features, out_features).",
    "GRUUnit": "write ol.nn.GRUCell(input_size, hidden_size).",
    "FC": "write ol.nn.Linear(in_features, out_features).",
    "grad": "write ol.grad(function), or loss.backward() and x.grad.",
    "ParallelEnv": "optlab runs in one process.",
    "DataParallel": "optlab runs in one process; use the layer itself.",
    "prepare_context": "optlab runs in one process; leave it out.",
    "TracedLayer": "write ol.save(layer.state_dict(), path).",
    "declarative": "write @ol.jit.to_static, or nothing: the values are the same.",
    "dygraph_to_static_func": "write @ol.jit.to_static, or nothing: the values are the same.",
    "ProgramTranslator": "everything runs eagerly; leave it out.",
    "enable_dygraph": "everything runs eagerly; leave it out.",
    **dict.fromkeys(
        (
            "NoamDecay", "PiecewiseDecay", "NaturalExpDecay", "ExponentialDecay",
            "InverseTimeDecay", "PolynomialDecay", "CosineDecay", "LinearLrWarmup", "StepDecay",
            "MultiStepDecay", "LambdaDecay", "ReduceLROnPlateau",
        ),
        _SCHEDULE,
    ),
}  # fmt: skip


def __getattr__(name: str) -> object:
    raise no_such_name("optlab.fluid.dygraph", name, __all__, _INSTEAD)


def __dir__() -> list[str]:
    return __all__
