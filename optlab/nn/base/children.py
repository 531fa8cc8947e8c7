"""What a layer holds, found by looking: parameters, buffers and layers, named by their place.

There is no registry. A layer's attributes are looked through whenever somebody asks, and with them
the lists, tuples and dicts among them; so whatever an attribute refers to now is what counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING, Any, TypeVar

from optlab.autograd.tensor.tensor import Tensor
from optlab.nn.base.parameter import Parameter

if TYPE_CHECKING:
    from optlab.nn.base.layer import Layer

T = TypeVar("T")


#: From this length on, a container is asked for the types in it before it is gone through.
_LONG = 32


def named_values(holder: Any) -> Iterator[tuple[str, Any]]:
    """Go through what the attributes of a layer refer to, in lists, tuples and dicts as well.

    Long containers that hold neither Tensors nor layers, such as a vocabulary, are left out.

    Raises
    ------
    ValueError
        If the keys of a dict give two of its parameters or layers one name, or one with a dot.
    """
    for name, value in list(vars(holder).items()):
        if isinstance(value, (list, tuple, dict)):
            yield from _container_values(name, value, ())
        else:
            yield name, value


def _container_values(
    name: str, container: Any, path: tuple[int, ...]
) -> Iterator[tuple[str, Any]]:
    if id(container) in path:  # it contains itself
        return
    if len(container) > _LONG and _holds_no_values(container):
        return
    path = (*path, id(container))
    if not isinstance(container, dict):
        for position, value in enumerate(container):
            yield from _values_at(f"{name}.{position}", value, path)
        return
    taken: dict[str, Any] = {}
    for key, value in container.items():
        word, named = str(key), False
        for found in _values_at(f"{name}.{word}", value, path):
            if not named and isinstance(found[1], (Structure, Parameter)):
                named = True
                _check_key(name, key, word, value, taken)
            yield found


def _values_at(name: str, value: Any, path: tuple[int, ...]) -> Iterator[tuple[str, Any]]:
    if isinstance(value, (list, tuple, dict)):
        yield from _container_values(name, value, path)
    else:
        yield name, value


def _check_key(name: str, key: Any, word: str, value: Any, taken: dict[str, Any]) -> None:
    """Refuse a key of a dict that is no name for what lies there."""
    if "." in word:
        raise ValueError(
            f"the dict {name!r} of a layer holds parameters or layers under the key {key!r}: dots "
            "part the names in places such as 'body.0.weight'. Take a key without a dot, "
            f"{word.replace('.', '_')!r} perhaps."
        )
    first, other = taken.setdefault(word, (key, value))
    if other is not value:
        raise ValueError(
            f"the dict {name!r} of a layer holds parameters or layers under the keys {first!r} and "
            f"{key!r}, and both would be named {name}.{word}. Choose keys that are written "
            "differently."
        )


def _holds_no_values(container: Any) -> bool:
    """Say whether neither a container nor the lists in it hold a Tensor, a layer or a container.

    It is asked anew every time, as lists change; looking at types alone takes about 10 ns each.
    """
    values: Iterable[Any] = container.values() if isinstance(container, dict) else container
    types = set(map(type, values))
    inner = {one for one in types if issubclass(one, (list, tuple))}
    if not _may_hold_values(types - inner):
        if not inner:
            return True
        if len(inner) == len(types):  # a list of pairs, say: one level more is as quick
            return not _may_hold_values(set(map(type, chain.from_iterable(values))))
    return False


def _may_hold_values(types: set[type]) -> bool:
    return any(issubclass(one, (Tensor, Structure, list, tuple, dict)) for one in types)


def qualified_name(prefix: str, name: str) -> str:
    """Give the place of something called `name` inside `prefix`."""
    return f"{prefix}.{name}" if prefix else name


def _unique(found: Iterator[tuple[str, T]]) -> Iterator[tuple[str, T]]:
    """Leave out what came before under another name."""
    seen: set[int] = set()
    for name, value in found:
        if id(value) not in seen:
            seen.add(id(value))
            yield name, value


class Structure:
    """What a layer holds: the part of `Layer` that finds and adds it."""

    #: Names of buffers, and whether each is persistable. A class attribute until there is one.
    _buffer_names: dict[str, bool] = {}

    # Layers -------------------------------------------------------------------------------------

    def named_children(self) -> Iterator[tuple[str, Layer]]:
        """Go through the layers that this one holds itself, with their names; each one once."""
        return _unique(self._own_layers())

    def _own_layers(self) -> Iterator[tuple[str, Any]]:
        return ((name, value) for name, value in named_values(self) if isinstance(value, Structure))

    def children(self) -> Iterator[Layer]:
        """Go through the layers that this one holds itself; each one once.

        Examples
        --------
        >>> import optlab as ol
        >>> [type(layer).__name__ for layer in ol.nn.Sequential(ol.nn.Tanh()).children()]
        ['Tanh']
        """
        return (layer for _, layer in self.named_children())

    def named_sublayers(
        self, prefix: str = "", include_self: bool = False, *, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Layer]]:
        """Go through the layers inside this one, all the way down, with their place; each one once.

        Parameters
        ----------
        prefix : str
            What to put before the places.
        include_self : bool
            Whether to start with this layer itself; its place is the prefix.
        remove_duplicate : bool
            False: a layer that is found in several places comes once for each.

        Examples
        --------
        >>> import optlab as ol
        >>> model = ol.nn.Sequential(("body", ol.nn.Sequential(ol.nn.Tanh())))
        >>> [name for name, _ in model.named_sublayers()]
        ['body', 'body.0']
        """
        return self._named_layers(prefix, include_self, {id(self)}, remove_duplicate)

    def _named_layers(
        self, prefix: str, here: bool, seen: set[int], once: bool
    ) -> Iterator[tuple[str, Any]]:
        """Go down; `seen` has what came before or, if not `once`, what lies above."""
        if here:
            yield prefix, self
        for name, layer in self.named_children() if once else self._own_layers():
            if id(layer) not in seen:
                if once:
                    seen.add(id(layer))
                below = seen if once else seen | {id(layer)}
                yield from layer._named_layers(qualified_name(prefix, name), True, below, once)

    def sublayers(self, include_self: bool = False) -> list[Layer]:
        """Give the layers inside this one, all the way down."""
        return [layer for _, layer in self.named_sublayers(include_self=include_self)]

    def add_sublayer(self, name: str, sublayer: Layer) -> Layer:
        """Put a layer inside this one, under a name.

        Raises
        ------
        TypeError
            If `sublayer` is not a Layer.
        ValueError
            If the name cannot be used: it has a dot, or would hide a method of this layer.

        Examples
        --------
        >>> import optlab as ol
        >>> model = ol.nn.Sequential()
        >>> model.add_sublayer("first", ol.nn.Tanh())
        Tanh()
        >>> model.first
        Tanh()
        """
        if not isinstance(sublayer, Structure):
            raise TypeError(
                f"add_sublayer({name!r}, ...) takes a Layer; got {type(sublayer).__name__}."
            )
        self._check_name(name, "layer")
        setattr(self, name, sublayer)
        return sublayer

    # Parameters ---------------------------------------------------------------------------------

    def named_parameters(
        self, prefix: str = "", include_sublayers: bool = True, *, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Go through all parameters, with their place in the structure; each one once.

        A parameter that is found in several places (weights that are shared) has the first one.

        Parameters
        ----------
        prefix : str
            What to put before the places.
        include_sublayers : bool
            Whether to look inside the layers that this one holds.
        remove_duplicate : bool
            False: a parameter that is found in several places comes once for each.
        """
        found = (
            (qualified_name(where, name), value)
            for where, layer in self._scopes(prefix, include_sublayers, remove_duplicate)
            for name, value in named_values(layer)
            if isinstance(value, Parameter)
        )
        return _unique(found) if remove_duplicate else found

    def parameters(self, include_sublayers: bool = True) -> list[Parameter]:
        """Give all parameters; those without a name get their place in the structure as name.

        Examples
        --------
        >>> import optlab as ol
        >>> ol.seed(0)
        >>> [p.name for p in ol.nn.Linear(2, 3).parameters()]
        ['weight', 'bias']
        """
        found = []
        for where, parameter in self.named_parameters(include_sublayers=include_sublayers):
            if parameter.name is None:
                parameter.name = where
            found.append(parameter)
        return found

    def add_parameter(self, name: str, parameter: Parameter | None) -> Parameter | None:
        """Put a parameter into this layer, under a name; None stands for one that is left out.

        Raises
        ------
        TypeError
            If it is no `Parameter`.
        ValueError
            If the name cannot be used.

        Examples
        --------
        >>> import optlab as ol
        >>> layer = ol.nn.Tanh()
        >>> layer.add_parameter("scale", ol.Parameter([1.0])) is layer.scale
        True
        """
        if parameter is not None and not isinstance(parameter, Parameter):
            raise TypeError(
                f"add_parameter({name!r}, ...) takes an optlab.Parameter; got "
                f"{type(parameter).__name__}. Make one with optlab.Parameter(array)."
            )
        self._check_name(name, "parameter")
        setattr(self, name, parameter)
        return parameter

    # Buffers ------------------------------------------------------------------------------------

    def register_buffer(self, name: str, tensor: Tensor | None, persistable: bool = True) -> None:
        """Put a Tensor into this layer that belongs to its state but is not trained.

        The attribute may be given a new value later, and stays a buffer.

        Parameters
        ----------
        name : str
        tensor : Tensor or None
            None stands for a buffer that has no value yet.
        persistable : bool
            Whether `state_dict` has it, and so files.

        Raises
        ------
        TypeError
            If `tensor` is no Tensor, or one that needs a gradient.
        ValueError
            If the name cannot be used.

        Examples
        --------
        >>> import optlab as ol
        >>> layer = ol.nn.Tanh()
        >>> layer.register_buffer("running_mean", ol.zeros([2]))
        >>> [name for name, _ in layer.named_buffers()]
        ['running_mean']
        """
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"register_buffer({name!r}, ...) takes a Tensor; got {type(tensor).__name__}. "
                "optlab.to_tensor(array) makes one."
            )
        if tensor is not None and tensor.requires_grad:
            raise TypeError(
                f"register_buffer({name!r}, ...) got a Tensor that needs a gradient. A buffer is "
                "not trained: give it t.detach(), or use add_parameter."
            )
        self._check_name(name, "buffer")
        self._buffer_names = {**self._buffer_names, name: bool(persistable)}
        setattr(self, name, tensor)

    def named_buffers(
        self, prefix: str = "", include_sublayers: bool = True, *, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Go through all buffers, with their place in the structure; each one once.

        With ``remove_duplicate=False`` one that is found in several places comes once for each.
        """
        found = (
            (qualified_name(where, name), value)
            for where, layer in self._scopes(prefix, include_sublayers, remove_duplicate)
            for name, value in layer._own_buffers()
        )
        return _unique(found) if remove_duplicate else found

    def buffers(self, include_sublayers: bool = True) -> list[Tensor]:
        """Give all buffers."""
        return [tensor for _, tensor in self.named_buffers("", include_sublayers)]

    def _own_buffers(self, persistable: bool = False) -> Iterator[tuple[str, Tensor]]:
        """Go through the buffers of this layer itself; only the persistable ones if asked."""
        for name, kept in self._buffer_names.items():
            value = vars(self).get(name)
            if isinstance(value, Parameter) or not isinstance(value, Tensor):
                continue
            if kept or not persistable:
                yield name, value

    # Shared -------------------------------------------------------------------------------------

    def _scopes(
        self, prefix: str, include_sublayers: bool, once: bool
    ) -> Iterator[tuple[str, Any]]:
        """Go through this layer and, if asked, those inside, with their places."""
        if include_sublayers:
            return self.named_sublayers(prefix, include_self=True, remove_duplicate=once)
        return iter([(prefix, self)])

    def _check_name(self, name: str, what: str) -> None:
        """Refuse a name that no attribute can have, or that would hide a method."""
        if not isinstance(name, str) or not name:
            raise TypeError(f"a {what} needs a name, such as 'first'; got {name!r}.")
        if "." in name:
            raise ValueError(
                f"a {what} inside {type(self).__name__} cannot be named {name!r}: dots part the "
                "names in places such as 'body.0.weight'. Choose another name."
            )
        if hasattr(type(self), name):
            raise ValueError(
                f"a {what} inside {type(self).__name__} cannot be named {name!r}: that is what "
                f"{type(self).__name__}.{name} is called. Choose another name."
            )

    def __delattr__(self, name: str) -> None:
        object.__delattr__(self, name)
        if name in self._buffer_names:
            self._buffer_names = {
                other: kept for other, kept in self._buffer_names.items() if other != name
            }
