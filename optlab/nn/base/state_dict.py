"""The state of layers: saving and loading it by name, and moving it to a dtype or device."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from optlab.autograd.tape import nodes
from optlab.autograd.tape.nodes import leaf_for
from optlab.autograd.tape.row_sparse import RowSparse
from optlab.autograd.tensor import in_place
from optlab.autograd.tensor.conversions import refuse_unrecorded
from optlab.autograd.tensor.tensor import Tensor, raw
from optlab.backend import events
from optlab.backend.call_recorder import effect
from optlab.backend.device import device_named, device_of, moved
from optlab.backend.dtypes import dtype_named, is_floating
from optlab.backend.text import comma_list
from optlab.nn.base.children import Structure, named_values, qualified_name
from optlab.nn.base.parameter import Parameter
from optlab.plan.undisturbed import whole

if TYPE_CHECKING:
    from typing import Self

_MOST_LISTED = 12


class Keys(NamedTuple):
    """Names that only a layer, or only a state dict, has."""

    missing_keys: list[str]
    unexpected_keys: list[str]


class State(Structure):
    """The part of `Layer` that saves, loads, casts and moves its state."""

    def state_dict(
        self,
        destination: dict[str, Any] | None = None,
        include_sublayers: bool = True,
        structured_name_prefix: str = "",
    ) -> dict[str, Tensor]:
        """Return parameters and persistable buffers by their qualified names.

        The values are the Tensors of the layer, not copies: training changes them. ``ol.save``
        writes their current values; ``copy.deepcopy(layer.state_dict())`` keeps these in memory. A
        shared parameter is listed under each of its names.

        Parameters
        ----------
        destination : dict, optional
            Dict to fill; by default a new one.
        include_sublayers : bool
            Whether to include sublayers.
        structured_name_prefix : str
            Prefix of the names, with its dot.

        Raises
        ------
        ValueError
            If two parameters or buffers have the same name.

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
        if destination is not None and not isinstance(destination, MutableMapping):
            raise TypeError(
                "state_dict(destination) fills a dict; got "
                f"{type(destination).__name__}. Leave it out for a new one."
            )
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
        """Yield parameters and persistable buffers, under each of their names."""
        held = list(named_values(self))
        for name, value in held:
            if isinstance(value, Parameter):
                yield qualified_name(prefix, name), value
        for name, buffer in self._own_buffers(persistable=True):
            yield qualified_name(prefix, name), buffer
        if include_sublayers:
            path = (*path, id(self))
            for name, value in held:
                if isinstance(value, State) and id(value) not in path:  # may refer to its owner
                    yield from value._state(qualified_name(prefix, name), True, path)

    @effect
    def set_state_dict(
        self, state_dict: Mapping[str, Any], use_structured_name: bool = True, strict: bool = True
    ) -> Keys:
        """Write the values of a state dict to the parameters and buffers of the same names.

        Everything is checked before anything is written. A shared parameter may be given under any
        of its names. Values, such as those of ``ol.load`` on the CPU, are copied to the device of
        each parameter.

        Parameters
        ----------
        state_dict : mapping of str to Tensor or array
            The result of `state_dict`, of this layer or another, or of ``ol.load``.
        use_structured_name : bool
            If False, parameters are matched by the ``name`` that they were given, those without
            one by their qualified name.
        strict : bool
            If False, names that only one of the two has are ignored, and returned.

        Returns
        -------
        tuple
            ``missing_keys``, only in the layer, and ``unexpected_keys``, only in the state dict;
            empty if `strict`.

        Raises
        ------
        ValueError
            If names are missing or unexpected (if `strict`), a shape or dtype differs from the
            layer's, or two names of a shared parameter have different values. Nothing is written
            then, and the message lists all faults.
        SilentDetachError
            If a value depends on an argument of a running transform (`grad`, `vjp`, ...). Nothing
            is written then.

        Notes
        -----
        A PyTorch ``Linear`` stores its weight as [out, in], this one as [in, out], like Paddle:
        ``ol.nn.utils.from_torch(layer, state_dict)`` converts the weights of PyTorch. Nothing is
        transposed implicitly: ``state["fc.weight"] = state["fc.weight"].T``.

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

        def write() -> None:
            for tensor, array in writes:
                in_place.overwrite(tensor, array, "set_state_dict()")

        whole(write)
        return Keys([], []) if strict else keys

    load_dict = set_state_dict
    set_dict = set_state_dict

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True) -> Keys:
        """Do the same as `set_state_dict`, with the name and arguments of PyTorch.

        Values are copied to the device of each parameter; nothing is written unless all fits.

        Examples
        --------
        >>> import optlab as ol
        >>> ol.nn.Tanh().load_state_dict({"w": ol.zeros([1])}, strict=False)
        Keys(missing_keys=[], unexpected_keys=['w'])
        """
        return self.set_state_dict(state_dict, strict=strict)

    @effect
    def clear_gradients(self, set_to_zero: bool = True) -> None:
        """Clear the gradients of all parameters.

        Parameters
        ----------
        set_to_zero : bool
            True sets gradients to zero, False to None (optimizers skip these parameters).

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
        """Move parameters and buffers to a device, cast them to a floating dtype, or both.

        Sublayers are included; integers keep their dtype. Parameters stay the same objects and
        keep their gradients. An optimizer made before raises at its next step: make a new one.

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
        """Cast floating parameters and buffers, see `to`."""
        return self._cast(dtype, None)

    def double(self) -> Self:
        """Cast floating parameters and buffers to float64."""
        return self._cast(np.float64, None)

    def float16(self, excluded_layers: Any = None) -> Self:
        """Cast to float16, except in layers of the excluded classes, see `float`."""
        return self._cast(np.float16, excluded_layers)

    def bfloat16(self, excluded_layers: Any = None) -> Self:
        """Cast to bfloat16 (which needs the package ml_dtypes), see `float`."""
        return self._cast("bfloat16", excluded_layers)

    def float(self, excluded_layers: Any = None) -> Self:
        """Cast floating parameters and buffers to float32, except in excluded layers.

        Parameters
        ----------
        excluded_layers : class or list of classes, optional
            Layers of these classes keep their dtype.
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
    """Replace the array of a Tensor by one of another dtype or device; convert its gradient."""
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
    """Return a gradient in the dtype and on the device of `array`."""
    goal = device_of(array)
    if isinstance(grad, RowSparse):
        rows, values = moved(grad.rows, goal), moved(grad.values, goal)
        return RowSparse(rows, values.astype(array.dtype), grad.shape)
    if isinstance(grad, Tensor):
        return grad.to(goal, array.dtype)
    return moved(grad, goal).astype(array.dtype)


def _state_by_own_name(layer: State) -> dict[str, Tensor]:
    """Return the state by the parameters' own names, if they have one."""
    found: dict[str, Tensor] = {}
    for where, value in layer.state_dict().items():
        name = getattr(value, "structural_name", None) or where
        if found.setdefault(name, value) is not value:
            raise ValueError(
                f"two parameters are named {name!r}; load by their places, with "
                "use_structured_name=True."
            )
    return found


def _match(
    own: Mapping[str, Tensor], given: Mapping[str, Any]
) -> tuple[Keys, list[tuple[Tensor, Any]], list[str]]:
    """Return the names that differ, the writes, and the faults."""
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
    """Return the array to write and an empty text, or None and what does not fit."""
    refuse_unrecorded(
        value,
        f"set_state_dict() with {name}",
        "ol.nn.functional_call(layer, state, x) to differentiate with respect to its values; or "
        "give value.detach()",
    )
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
    """Return lines about names that only one of the two has."""
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
