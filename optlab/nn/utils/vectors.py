"""Parameters to one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from optlab.autograd.tensor import in_place
from optlab.autograd.tensor.conversions import refuse_unrecorded
from optlab.autograd.tensor.tensor import Tensor, raw
from optlab.backend.arrays import unwrapped
from optlab.backend.call_recorder import effect
from optlab.backend.device import device_of
from optlab.nn.functional.arguments import given_with, no_name


def parameter_list(parameters: Any, call: str) -> list[Tensor]:
    """Return parameters, one Tensor or an iterable of Tensors, as a list."""
    if isinstance(parameters, Tensor):
        return [parameters]
    if callable(getattr(parameters, "parameters", None)):
        raise TypeError(f"{call} takes parameters, not the layer: give layer.parameters().")
    if not isinstance(parameters, Iterable) or isinstance(parameters, (str, bytes)):
        raise TypeError(f"{call} takes parameters, as layer.parameters() gives; got {parameters!r}")
    found = list(parameters)
    for one in found:
        if not isinstance(one, Tensor):
            raise TypeError(f"{call} takes Tensors; got a {type(one).__name__} among them.")
    return found


def parameters_to_vector(parameters: Iterable[Tensor], name: None = None) -> Tensor:
    """Concatenate parameters to a vector, differentiably.

    Parameters
    ----------
    parameters : iterable of Tensor
        Such as ``layer.parameters()``; of one dtype and on one device.
    name : None
        Must be None: results have no names here.

    Returns
    -------
    Tensor, shape [n]

    Raises
    ------
    TypeError, ValueError
        If there are none, or they differ in dtype or device.

    Examples
    --------
    >>> import optlab as ol
    >>> layer = ol.nn.Linear(2, 3)
    >>> ol.nn.utils.parameters_to_vector(layer.parameters()).shape
    (9,)
    """
    no_name(name)
    given = parameter_list(parameters, "parameters_to_vector")
    if not given:
        raise ValueError("parameters_to_vector got no parameters.")
    for what in ("dtype", "device"):
        kinds = sorted({str(getattr(p, what)) for p in given})
        if len(kinds) > 1:
            raise TypeError(f"parameters_to_vector takes one {what}; got {' and '.join(kinds)}.")
    rows: Any = [p.reshape(-1) for p in given]
    vector: Any = np.concatenate(rows)
    return vector  # type: ignore[no-any-return]


@effect
def vector_to_parameters(vec: Any, parameters: Iterable[Tensor], name: None = None) -> None:
    """Write the parts of a vector to parameters, in order.

    Parameters
    ----------
    vec : Tensor or array, shape [n]
        One value for each element of the parameters. They are copied, without gradients.
    parameters : iterable of Tensor
        They keep their dtypes.
    name : None
        Must be None: results have no names here.

    Raises
    ------
    TypeError, ValueError
        If the vector has another length or is on another device. Nothing is written then.

    Examples
    --------
    >>> import optlab as ol
    >>> layer = ol.nn.Linear(2, 1)
    >>> ol.nn.utils.vector_to_parameters([1.0, 2.0, 3.0], layer.parameters())
    >>> layer.weight.tolist(), layer.bias.tolist()
    ([[1.0], [2.0]], [3.0])
    """
    no_name(name)
    given = parameter_list(parameters, "vector_to_parameters")
    refuse_unrecorded(
        vec,
        "vector_to_parameters()",
        "ol.nn.functional_call(layer, {'weight': vec[:n].reshape(shape), ...}, x) to differentiate "
        "with respect to parameters; or give vec.detach()",
    )
    total = sum(p.size for p in given)
    shape = np.shape(raw(vec))
    if shape != (total,):
        raise ValueError(
            f"vector_to_parameters: the parameters hold {total} numbers; got a vector of shape "
            f"{shape}."
        )
    arrays = [given_with(p.data, vec, "the vector") for p in given]
    start = 0
    for p, array in zip(given, arrays, strict=True):
        part = array[start : start + p.size].reshape(p.shape).astype(p.dtype)
        in_place.overwrite(p, part, "vector_to_parameters()")
        start += p.size


def devices_of(arrays: Iterable[Any]) -> set[str]:
    """Return the names of the devices of arrays."""
    return {device_of(unwrapped(array)) for array in arrays}
