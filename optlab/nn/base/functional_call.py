"""`functional_call`: a layer called with given weights, which leaves the layer alone.

The weights are not swapped in and out of the layer, which other threads may be calling: the call is
one of a shallow copy of the layers, made for it, whose attributes are the given values.
"""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import partial
from types import CellType, FunctionType, MethodType
from typing import Any

import numpy as np

from optlab.autograd.tensor.tensor import Tensor, raw
from optlab.backend.arrays import as_array, copied
from optlab.backend.dtypes import is_floating
from optlab.backend.text import comma_list
from optlab.nn.base.children import Structure
from optlab.nn.functional.norm.private_buffer import PrivateBuffer


def functional_call(layer: Any, parameters: Any, /, *inputs: Any, **options: Any) -> Any:
    """Call a layer with given weights in place of its own.

    The result is a function of the weights, which can be differentiated and vectorized: by `grad`,
    `hvp`, `jacobian`, `hessian`, `vmap` and what is composed of them.

    Parameters
    ----------
    layer : Layer
    parameters : dict of str to array or Tensor, or a tuple of such dicts
        Values of parameters and buffers by their names in `Layer.named_parameters`,
        `Layer.named_buffers` or `Layer.state_dict`, in the shapes that they have there. Where there
        is none, the layer's own value is used. A shared parameter is replaced wherever it occurs.
        The layer computes in the dtype of what is given.
    *inputs, **options
        The arguments of the call.

    Returns
    -------
    What the layer returns.

    Raises
    ------
    TypeError
        If `layer` is no Layer, or `parameters` no dict of arrays.
    ValueError
        If the layer has no parameter or buffer of a name, a shape differs, or two names of a shared
        parameter have different values.

    Notes
    -----
    Nothing is written: not to the layer, whatever happens in the call and whoever else is calling
    it, and not to what is given. What a call would change (the running statistics of a batch
    normalization, an attribute that `forward` sets) changes in a copy that is dropped. The values
    replace what is found in the layer's attributes: in lists, dicts, deques and tuples, bound
    methods, `functools.partial`, and layers and Tensors that a function closes over. A function
    that reaches a layer by a global name sees the layer's own weights.

    Examples
    --------
    The gradients of a network for each example separately:

    >>> import numpy as np
    >>> import optlab as ol
    >>> ol.seed(0)
    >>> model = ol.nn.Sequential(ol.nn.Linear(3, 4), ol.nn.Tanh(), ol.nn.Linear(4, 1))
    >>> weights = {name: p.numpy() for name, p in model.named_parameters()}
    >>> def loss(weights, x, y):
    ...     return np.sum((ol.nn.functional_call(model, weights, x) - y) ** 2)
    >>> x, y = np.ones((5, 3), "float32"), np.zeros((5, 1), "float32")
    >>> each = ol.vmap(ol.grad(loss), in_axes=(None, 0, 0))(weights, x, y)
    >>> {name: g.shape for name, g in each.items()}
    {'0.weight': (5, 3, 4), '0.bias': (5, 4), '2.weight': (5, 4, 1), '2.bias': (5, 1)}
    """
    if not isinstance(layer, Structure):
        made = " Make one first: Linear(2, 3)." if isinstance(layer, type) else ""
        raise TypeError(
            f"functional_call takes a Layer, its weights and the inputs; got {layer!r} as the "
            f"layer.{made}"
        )
    return _Twins(_values_by_id(layer, _merged(parameters))).of(layer)(*inputs, **options)


def _merged(parameters: Any) -> dict[str, Any]:
    """Return one dict of all that was given."""
    parts = parameters if isinstance(parameters, (tuple, list)) else [parameters]
    given: dict[str, Any] = {}
    for part in parts:
        if not isinstance(part, Mapping):
            raise TypeError(
                "functional_call takes the weights as a dict by name, such as "
                "dict(layer.named_parameters()) or {'0.weight': array}; got "
                f"{type(part).__name__}."
            )
        for name, value in part.items():
            if name in given:
                raise ValueError(f"functional_call got {name!r} in two of the dicts; give it once.")
            given[name] = value
    return given


def _values_by_id(layer: Any, given: dict[str, Any]) -> dict[int, Any]:
    """Return the given values by the identity of the parameters and buffers that they replace."""
    own = dict(layer.named_parameters(remove_duplicate=False))
    own.update(layer.named_buffers(remove_duplicate=False))
    unknown = [str(name) for name in given if name not in own]
    if unknown:
        near = get_close_matches(unknown[0], list(own), 1, 0.5)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(
            f"{type(layer).__name__} has no parameter or buffer named "
            f"{comma_list(list(map(repr, unknown)), 8)}; it has "
            f"{comma_list(list(own), 12) or 'none'}.{hint}"
        )
    found: dict[int, Any] = {}
    names: dict[int, str] = {}
    for name, value in given.items():
        before = own[name]
        tensor = _checked(name, before, value)
        if id(before) in found and not _same(found[id(before)], tensor):
            raise ValueError(
                f"{names[id(before)]!r} and {name!r} are one parameter of the layer, but were "
                "given different values; give it under one name."
            )
        found.setdefault(id(before), tensor)
        names.setdefault(id(before), name)
    for _, parameter in layer.named_parameters():
        if id(parameter) in found:
            found[id(parameter)] = _as_parameter(parameter, found[id(parameter)])
    for _, buffer in layer.named_buffers():  # some layers write to them
        value = found.get(id(buffer), buffer)
        found[id(buffer)] = PrivateBuffer(copied(value.data), value.node)
    return found


def _as_parameter(own: Any, value: Tensor) -> Any:
    """Return a parameter with the value, and all else of the layer's own one."""
    twin: Any = object.__new__(type(own))
    for slot in _slots_of(type(own)):
        if hasattr(own, slot):
            object.__setattr__(twin, slot, getattr(own, slot))
    twin.data, twin.node = value.data, value.node
    return twin


def _slots_of(cls: type) -> Iterator[str]:
    """Yield the names of the attributes that a class keeps in slots."""
    for kind in cls.__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for slot in (slots,) if isinstance(slots, str) else slots:
            if slot not in ("__dict__", "__weakref__"):
                yield slot


def _checked(name: str, own: Tensor, value: Any) -> Tensor:
    """Return a given value as a Tensor; raise if it does not fit."""
    try:
        tensor = value if isinstance(value, Tensor) else Tensor(as_array(value))
        numbers = tensor.dtype.kind not in "OSU"
    except (TypeError, ValueError):
        numbers = False
    if not numbers:
        raise TypeError(f"the value of {name!r} must be an array; got {value!r}.")
    if tensor.shape != own.shape:
        raise ValueError(
            f"{name!r} has the shape {own.shape} in the layer, but was given with shape "
            f"{tensor.shape}."
            + (
                " Values for several networks, along a first axis, are for ol.vmap: "
                "ol.vmap(lambda weights: ol.nn.functional_call(layer, weights, x))(weights)."
                if tensor.shape[1:] == own.shape
                else ""
            )
        )
    if is_floating(own.dtype) and not is_floating(tensor.dtype):
        raise TypeError(
            f"{name!r} is {own.dtype} in the layer, but was given as {tensor.dtype}; write "
            f"value.astype({str(own.dtype)!r})."
        )
    return tensor


def _same(a: Tensor, b: Tensor) -> bool:
    """Return whether two values of a shared parameter are one."""
    if a is b or a.data is b.data:
        return True
    if a.node is not None or b.node is not None:
        return a.node is b.node
    return bool(np.array_equal(raw(a), raw(b), equal_nan=is_floating(a.dtype)))


class _Twins:
    """Shallow copies of layers, in which values are replaced, made as they are found.

    Parameters
    ----------
    values : dict of int to Tensor
        By the identities of the Tensors that they replace.
    """

    def __init__(self, values: dict[int, Any]) -> None:
        self.values = values
        self.layers: dict[int, Any] = {}
        #: The copies of lists and dicts, by the identities of these.
        self.containers: dict[int, Any] = {}
        #: The functions that close over twins, by the identities of the layers' own ones.
        self.functions: dict[int, FunctionType] = {}

    def of(self, layer: Any) -> Any:
        """Return the twin of a layer: an object of its class with the same attributes."""
        twin = self.layers.get(id(layer))
        if twin is not None:
            return twin
        cls = type(layer)
        twin = self.layers[id(layer)] = object.__new__(cls)
        attributes = vars(twin)
        for name, value in list(vars(layer).items()):
            attributes[name] = self.replaced(value)
        for slot in _slots_of(cls):
            if hasattr(layer, slot):
                object.__setattr__(twin, slot, self.replaced(getattr(layer, slot)))
        hooks = attributes.get("_hooks")
        if hooks is not None:
            attributes["_hooks"] = hooks.mapped(self.replaced)
        return twin

    def replaced(self, value: Any) -> Any:
        """Return what an attribute of the twin is, in place of this one of the layer."""
        if isinstance(value, Tensor):
            return self.values.get(id(value), value)
        if isinstance(value, Structure):
            return self.of(value)
        if isinstance(value, MethodType) and isinstance(value.__self__, Structure):
            return MethodType(value.__func__, self.of(value.__self__))
        if isinstance(value, (list, tuple, dict, deque)):
            return self._container(value)
        if isinstance(value, partial):
            settings = {name: self.replaced(part) for name, part in value.keywords.items()}
            arguments = [self.replaced(part) for part in value.args]
            return partial(self.replaced(value.func), *arguments, **settings)
        if isinstance(value, FunctionType) and value.__closure__:
            return self._function(value)
        return value

    def _function(self, function: FunctionType) -> FunctionType:
        """Return a function that closes over the twins, or the function where it needs none."""
        made = self.functions.get(id(function))
        if made is not None:
            return made
        self.functions[id(function)] = function  # it may close over itself
        filled = [cell for cell in function.__closure__ or () if cell != CellType()]
        # Not lists and dicts: what a hook appends to is the user's own.
        twins = {
            id(cell): cell.cell_contents
            if isinstance(cell.cell_contents, (list, dict, deque))
            else self.replaced(cell.cell_contents)
            for cell in filled
        }
        if all(twins[id(cell)] is cell.cell_contents for cell in filled):
            return function
        cells = tuple(
            CellType(twins[id(cell)]) if id(cell) in twins else cell
            for cell in function.__closure__ or ()
        )
        made = FunctionType(
            function.__code__, function.__globals__, function.__name__, function.__defaults__, cells
        )
        made.__kwdefaults__ = function.__kwdefaults__
        made.__dict__.update(vars(function))
        self.functions[id(function)] = made
        return made

    def _container(self, value: Any) -> Any:
        """Return a copy of a container, with the values replaced that it holds."""
        made = self.containers.get(id(value))
        if made is not None:
            return made
        if isinstance(value, tuple):
            build: Any = getattr(type(value), "_make", type(value))
            return build([self.replaced(part) for part in value])
        made = self.containers[id(value)] = copy.copy(value)  # a container may hold itself
        for key, part in value.items() if isinstance(value, dict) else enumerate(value):
            made[key] = self.replaced(part)
        return made
