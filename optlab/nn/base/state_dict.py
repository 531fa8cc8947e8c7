"""The state of layers: giving it out by name, taking it in, and changing its type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from optlab.autograd.tape import nodes
from optlab.autograd.tape.nodes import leaf_for
from optlab.autograd.tape.row_sparse import RowSparse
from optlab.autograd.tensor import in_place
from optlab.autograd.tensor.tensor import Tensor, raw
from optlab.backend import events
from optlab.backend.device import device_named, device_of, moved
from optlab.backend.dtypes import dtype_named, is_floating
from optlab.backend.text import comma_list
from optlab.nn.base.children import Structure, named_values, qualified_name
from optlab.nn.base.parameter import Parameter

if TYPE_CHECKING:
    from typing import Self

_MOST_LISTED = 12


class Keys(NamedTuple):
    """The names in which a layer and a state dict differed."""

    missing_keys: list[str]
    unexpected_keys: list[str]


class State(Structure):
    """The state of a layer: the part of `Layer` that gives it out and takes it in."""

    def state_dict(
        self,
        destination: dict[str, Any] | None = None,
        include_sublayers: bool = True,
        structured_name_prefix: str = "",
    ) -> dict[str, Tensor]:
        """Give parameters and persistable buffers, by their place in the structure.

        The values are the layer's own Tensors, not copies: they change as training goes on.
        ``ol.save`` writes what they hold now; ``copy.deepcopy(layer.state_dict())`` keeps it in
        memory. A parameter that is shared is there under each of its places.

        Parameters
        ----------
        destination : dict, optional
            Where to put them; a new dict by default.
        include_sublayers : bool
            Whether to include the layers inside this one.
        structured_name_prefix : str
            What to put before the names, its dot included.

        Raises
        ------
        ValueError
            If two parameters or buffers are found under one name.

        Examples
        --------
        >>> import optlab as ol
        >>> ol.seed(0)
        >>> model = ol.nn.Sequential(ol.nn.Linear(2, 3), ol.nn.Tanh())
        >>> list(model.state_dict())
        ['0.weight', '0.bias']
        >>> model.state_dict()["0.bias"] is model[0].bias
        True
        """
        state = {} if destination is None else destination
        prefix = structured_name_prefix
        found: dict[str, Tensor] = {}
        for name, value in self._state("", include_sublayers, ()):
            if found.setdefault(name, value) is not value:
                raise ValueError(
                    f"two parameters or buffers of {type(self).__name__} are named {name!r}, of "
                    f"shapes {found[name].shape} and {value.shape}: rename an attribute or a key "
                    "of a dict, so that each has a place of its own."
                )
            state[f"{prefix}{name}"] = value
        return state

    def _state(
        self, prefix: str, include_sublayers: bool, path: tuple[int, ...]
    ) -> Iterator[tuple[str, Tensor]]:
        """Go through the state, under each place where it is found."""
        held = list(named_values(self))
        for name, value in held:
            if isinstance(value, Parameter):
                yield qualified_name(prefix, name), value
        for name, buffer in self._own_buffers(persistable=True):
            yield qualified_name(prefix, name), buffer
        if include_sublayers:
            path = (*path, id(self))
            for name, value in held:
                if isinstance(value, State) and id(value) not in path:  # a layer may know its owner
                    yield from value._state(qualified_name(prefix, name), True, path)

    def set_state_dict(
        self, state_dict: Mapping[str, Any], use_structured_name: bool = True, strict: bool = True
    ) -> Keys:
        """Write the values of a state dict to the parameters and buffers of the same names.

        Everything is checked before anything is written. A shared parameter may be given under any
        of its places. Values are copied to the device where the layer's own lie: what ``ol.load``
        gives lies on the CPU, and goes to where each parameter is.

        Parameters
        ----------
        state_dict : mapping of str to Tensor or array
            What `state_dict` gave, of this layer or another, or what ``ol.load`` read.
        use_structured_name : bool
            False finds parameters by their own ``name`` in place of their place in the structure.
        strict : bool
            False leaves alone what only one of the two has, and says so in what it returns.

        Returns
        -------
        tuple
            ``missing_keys``, which the layer has and the state dict does not, and
            ``unexpected_keys``, which it is the other way round. Empty where `strict`.

        Raises
        ------
        ValueError
            If names are missing or unexpected (where `strict`), or a value has another shape or
            dtype than the layer's, or two places of one parameter got different values. Nothing is
            written then, and the message lists all of it.

        Notes
        -----
        A PyTorch ``Linear`` keeps its weight as [out, in], this one as [in, out], like Paddle:
        ``ol.nn.utils.from_torch(layer, state_dict)`` brings PyTorch's weights into this form.
        Nothing is transposed behind your back:
        ``state["fc.weight"] = state["fc.weight"].T``.

        Examples
        --------
        >>> import optlab as ol
        >>> ol.seed(0)
        >>> one, other = ol.nn.Linear(2, 3), ol.nn.Linear(2, 3)
        >>> other.set_state_dict(one.state_dict())
        Keys(missing_keys=[], unexpected_keys=[])
        >>> one.weight.numpy().tolist() == other.weight.numpy().tolist()
        True
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(
                "set_state_dict takes a dict of names and values, as state_dict() gives it or "
                f"optlab.load(path) reads it; got {type(state_dict).__name__}."
            )
        own = self.state_dict() if use_structured_name else _state_by_own_name(self)
        keys, writes, faults = _match(own, state_dict)
        if strict:
            faults = [*_differences(keys, own, state_dict), *faults]
        if faults:
            raise ValueError(
                f"{type(self).__name__} cannot take this state dict; nothing was written.\n  "
                + "\n  ".join(faults)
            )
        for tensor, array in writes:
            in_place.overwrite(tensor, array, "set_state_dict()")
        return Keys([], []) if strict else keys

    load_dict = set_state_dict
    set_dict = set_state_dict

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True) -> Keys:
        """Do what `set_state_dict` does; the name and the arguments are PyTorch's.

        Values go to the device where each parameter lies; nothing is written unless all fits.

        Examples
        --------
        >>> import optlab as ol
        >>> ol.nn.Tanh().load_state_dict({"w": ol.zeros([1])}, strict=False)
        Keys(missing_keys=[], unexpected_keys=['w'])
        """
        return self.set_state_dict(state_dict, strict=strict)

    def clear_gradients(self, set_to_zero: bool = True) -> None:
        """Clear the gradients of all parameters.

        Parameters
        ----------
        set_to_zero : bool
            True leaves gradients of zero, False leaves none (an optimizer then skips them).

        Examples
        --------
        >>> import optlab as ol
        >>> ol.seed(0)
        >>> layer = ol.nn.Linear(1, 1)
        >>> layer(ol.ones([1, 1])).sum().backward()
        >>> layer.clear_gradients()
        >>> layer.bias.grad.tolist()
        [0.0]
        """
        for _, parameter in self.named_parameters():
            node = parameter.node
            if node is not None and (not set_to_zero or node.grad is not None):
                node.grad = nodes.ZERO if set_to_zero else None
        if events.gradients_cleared.listeners:
            events.gradients_cleared.publish(self.parameters())

    def to(self, device: Any = None, dtype: Any = None) -> Self:
        """Move parameters and buffers to a device, change their floating type, or both.

        In this layer and all inside. Whole numbers keep their type. The parameters stay the same
        objects, their gradients go along; an optimizer that was made before says so at its next
        step, and has to be made again.

        Parameters
        ----------
        device : str, optional
            "cpu", "gpu" or "gpu:1".
        dtype : str or dtype, optional
            "float16", "bfloat16", "float32" or "float64".

        Examples
        --------
        >>> import optlab as ol
        >>> ol.seed(0)
        >>> ol.nn.Linear(2, 3).to(dtype="float64").weight.dtype
        dtype('float64')
        """
        if device is not None:
            goal = device_named(device).name
            held = [*self.named_parameters(), *self.named_buffers()]
            for _, tensor in held:
                if tensor.device != goal:
                    replace_array(tensor, moved(tensor.data, goal))
        return self if dtype is None else self._cast(dtype, None)

    def astype(self, dtype: Any) -> Self:
        """Change the floating type of parameters and buffers, see `to`."""
        return self._cast(dtype, None)

    def double(self) -> Self:
        """Change the floating type of parameters and buffers to float64."""
        return self._cast(np.float64, None)

    def float16(self, excluded_layers: Any = None) -> Self:
        """Change the floating type to float16, except in layers of the excluded classes."""
        return self._cast(np.float16, excluded_layers)

    def bfloat16(self, excluded_layers: Any = None) -> Self:
        """Change the floating type to bfloat16 (it needs the package ml_dtypes), see `float16`."""
        return self._cast("bfloat16", excluded_layers)

    def float(self, excluded_layers: Any = None) -> Self:
        """Change the floating type to float32, except in layers of the excluded classes.

        Parameters
        ----------
        excluded_layers : class or list of classes, optional
            Layers of these classes keep what they have.
        """
        return self._cast(np.float32, excluded_layers)

    def _cast(self, dtype: Any, excluded: Any) -> Self:
        wanted = dtype_named(dtype)
        if not is_floating(wanted):
            raise TypeError(
                f"the parameters of a layer are floating numbers, and cannot be {wanted}; choose "
                "float16, bfloat16, float32 or float64."
            )
        if excluded is None:
            classes: tuple[type, ...] = ()
        else:
            classes = tuple(excluded) if isinstance(excluded, Sequence) else (excluded,)
        for layer in self.sublayers(include_self=True):
            if classes and isinstance(layer, classes):
                continue
            layer._dtype = wanted.name
            own = [value for _, value in named_values(layer) if isinstance(value, Parameter)]
            for tensor in [*own, *(buffer for _, buffer in layer._own_buffers())]:
                if is_floating(tensor.dtype) and tensor.dtype != wanted:
                    replace_array(tensor, tensor.data.astype(wanted))
        return self


def replace_array(tensor: Tensor, array: Any) -> None:
    """Give a Tensor another array, of another dtype or device; its gradient goes along."""
    old = tensor.node
    tensor.data = array
    if old is None:
        return
    new = leaf_for(array)
    new.name, new.hooks = old.name, old.hooks
    if old.grad is not None:
        new.grad = old.grad if old.grad is nodes.ZERO else _like(old.grad, array)
    tensor.node = new


def _like(grad: Any, array: Any) -> Any:
    """Give a gradient in the dtype and on the device of `array`."""
    goal = device_of(array)
    if isinstance(grad, RowSparse):
        rows, values = moved(grad.rows, goal), moved(grad.values, goal)
        return RowSparse(rows, values.astype(array.dtype), grad.shape)
    if isinstance(grad, Tensor):
        return grad.to(goal, array.dtype)
    return moved(grad, goal).astype(array.dtype)


def _state_by_own_name(layer: State) -> dict[str, Tensor]:
    """Give the state by the parameters' own names, where they have one."""
    found: dict[str, Tensor] = {}
    for where, value in layer.state_dict().items():
        name = getattr(value, "name", None) or where
        if found.setdefault(name, value) is not value:
            raise ValueError(
                f"two parameters are named {name!r}; load by their places, with "
                "use_structured_name=True."
            )
    return found


def _match(
    own: Mapping[str, Tensor], given: Mapping[str, Any]
) -> tuple[Keys, list[tuple[Tensor, Any]], list[str]]:
    """Give the names that differ, what is to be written, and what is wrong with it."""
    faults: list[str] = []
    writes: dict[int, tuple[str, Tensor, Any]] = {}
    for name, tensor in own.items():
        if name not in given:
            continue
        array, fault = _checked_value(name, tensor, given[name])
        if fault:
            faults.append(fault)
            continue
        before = writes.setdefault(id(tensor), (name, tensor, array))
        if before[2] is not array and not np.array_equal(
            before[2], array, equal_nan=is_floating(array.dtype)
        ):
            faults.append(f"{before[0]} and {name} are one and the same here, but differ there")
    absent = [name for name in own if name not in given]
    reached = {id(own[name]) for name in own if name in given}
    missing = [name for name in absent if id(own[name]) not in reached]
    unexpected = [str(name) for name in given if name not in own]
    return Keys(missing, unexpected), [(t, array) for _, t, array in writes.values()], faults


def _checked_value(name: str, tensor: Tensor, value: Any) -> tuple[Any, str]:
    """Give the array to write and an empty text, or a text that says what does not fit."""
    array = raw(value)
    if not hasattr(array, "dtype"):
        try:
            array = np.asarray(array, tensor.dtype)
        except (TypeError, ValueError):
            return None, f"{name} is {value!r}, which is no array of numbers"
    array = moved(array, tensor.device)
    if array.shape != tensor.shape:
        fault = f"{name} has shape {tensor.shape} here, {array.shape} there"
        if array.ndim == 2 and array.shape[::-1] == tensor.shape:
            fault += " (transposed it would fit: PyTorch's Linear keeps [out, in])"
        return None, fault
    if array.dtype != tensor.dtype:
        return None, (
            f"{name} is {tensor.dtype} here, {array.dtype} there (layer.to(dtype='{array.dtype}') "
            f"or value.astype('{tensor.dtype}') makes them one)"
        )
    return array, ""


def _differences(keys: Keys, own: Mapping[str, Any], given: Mapping[str, Any]) -> list[str]:
    """Say which names are in one of the two only."""
    said = []
    if keys.missing_keys:
        said.append(f"not in the state dict: {comma_list(keys.missing_keys, _MOST_LISTED)}")
    if keys.unexpected_keys:
        said.append(f"not in the layer: {comma_list(keys.unexpected_keys, _MOST_LISTED)}")
        first = keys.unexpected_keys[0]
        near = get_close_matches(first, keys.missing_keys, 1, 0.5)
        if near:
            said.append(f"(was {first!r} meant to be {near[0]!r}?)")
    if said:
        said.append("strict=False takes what fits by name and leaves the rest alone")
    return said
