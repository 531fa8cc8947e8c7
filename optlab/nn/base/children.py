"""The parameters, buffers and sublayers of a layer, with their qualified names.

There is no registry: the attributes of a layer, and the lists, tuples and dicts among them, are
searched at every call, so that what an attribute refers to now is what counts.
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

#: From this length on, the types in a container are checked before it is searched.
_LONG = 32


def named_values(holder: Any) -> Iterator[tuple[str, Any]]:
    """Yield the attributes of a layer by name, those in lists, tuples and dicts too.

    Long containers that hold neither Tensors nor layers, such as a vocabulary, are skipped.

    Raises
    ------
    ValueError
        If the keys of a dict give two parameters or layers the same name, or a name with a dot.
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
    """Raise if the key of a dict cannot name the parameter or layer under it."""
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
    """Return whether neither a container nor the lists in it hold a Tensor, layer or container.

    It is checked at every search, as lists change; types alone take about 10 ns an element.
    """
    values: Iterable[Any] = container.values() if isinstance(container, dict) else container
    types = set(map(type, values))
    inner = {one for one in types if issubclass(one, (list, tuple))}
    if not _may_hold_values(types - inner):
        if not inner:
            return True
        if len(inner) == len(types):  # such as a list of pairs: one more level is as fast
            return not _may_hold_values(set(map(type, chain.from_iterable(values))))
    return False


def _may_hold_values(types: set[type]) -> bool:
    return any(issubclass(one, (Tensor, Structure, list, tuple, dict)) for one in types)


def qualified_name(prefix: str, name: str) -> str:
    """Return `name` with a prefix: 'body' and 'weight' make 'body.weight'."""
    return f"{prefix}.{name}" if prefix else name


def _unique(found: Iterator[tuple[str, T]]) -> Iterator[tuple[str, T]]:
    """Yield each value once, under its first name."""
    seen: set[int] = set()
    for name, value in found:
        if id(value) not in seen:
            seen.add(id(value))
            yield name, value


class Structure:
    """The part of `Layer` that finds and adds parameters, buffers and sublayers."""

    #: Names of buffers, and whether each is persistable; a class attribute until there are any.
    _buffer_names: dict[str, bool] = {}

    # Layers -------------------------------------------------------------------------------------

    def named_children(self) -> Iterator[tuple[str, Layer]]:
        """Yield the direct sublayers with their names; each one once."""
        return _unique(self._own_layers())

    def _own_layers(self) -> Iterator[tuple[str, Any]]:
        return ((name, value) for name, value in named_values(self) if isinstance(value, Structure))

    def children(self) -> Iterator[Layer]:
        """Yield the direct sublayers; each one once.

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
        """Yield all sublayers, at any depth, with their qualified names; each one once.

        Parameters
        ----------
        prefix : str
            Prefix of the names.
        include_self : bool
            Whether to start with this layer itself, under the prefix.
        remove_duplicate : bool
            If False, a shared layer comes once for each of its names.

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
        """Yield layers depth first; `seen` has earlier ones or, if not `once`, those above."""
        if here:
            yield prefix, self
        for name, layer in self.named_children() if once else self._own_layers():
            if id(layer) not in seen:
                if once:
                    seen.add(id(layer))
                below = seen if once else seen | {id(layer)}
                yield from layer._named_layers(qualified_name(prefix, name), True, below, once)

    def sublayers(self, include_self: bool = False) -> list[Layer]:
        """Return all sublayers, at any depth."""
        return [layer for _, layer in self.named_sublayers(include_self=include_self)]

    def add_sublayer(self, name: str, sublayer: Layer) -> Layer:
        """Add a sublayer under a name.

        Raises
        ------
        TypeError
            If `sublayer` is not a Layer.
        ValueError
            If the name has a dot, or would hide a method of this layer.

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
        """Yield all parameters with their qualified names; a shared one once, under its first name.

        Parameters
        ----------
        prefix : str
            Prefix of the names.
        include_sublayers : bool
            Whether to include sublayers.
        remove_duplicate : bool
            If False, a shared parameter comes once for each of its names.
        """
        found = (
            (qualified_name(where, name), value)
            for where, layer in self._scopes(prefix, include_sublayers, remove_duplicate)
            for name, value in named_values(layer)
            if isinstance(value, Parameter)
        )
        return _unique(found) if remove_duplicate else found

    def parameters(self, include_sublayers: bool = True) -> list[Parameter]:
        """Return all parameters; those without a name have from then on a structural one.

        Examples
        --------
        >>> import optlab as ol
        >>> ol.seed(0)
        >>> [p.structural_name for p in ol.nn.Linear(2, 3).parameters()]
        ['weight', 'bias']
        """
        found = []
        for where, parameter in self.named_parameters(include_sublayers=include_sublayers):
            if parameter.structural_name is None:
                parameter.structural_name = where
            found.append(parameter)
        return found

    def add_parameter(self, name: str, parameter: Parameter | None) -> Parameter | None:
        """Add a parameter under a name; None stands for an omitted one.

        Raises
        ------
        TypeError
            If it is not a `Parameter`.
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
        """Add a Tensor that belongs to the state of this layer but is not trained.

        The attribute stays a buffer when it is assigned a new value.

        Parameters
        ----------
        name : str
        tensor : Tensor or None
            None stands for a buffer without a value yet.
        persistable : bool
            Whether `state_dict`, and so a file, includes it.

        Raises
        ------
        TypeError
            If `tensor` is not a Tensor, or requires a gradient.
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
        """Yield all buffers with their qualified names, each one once.

        With ``remove_duplicate=False`` a shared one is yielded under each of its names.
        """
        found = (
            (qualified_name(where, name), value)
            for where, layer in self._scopes(prefix, include_sublayers, remove_duplicate)
            for name, value in layer._own_buffers()
        )
        return _unique(found) if remove_duplicate else found

    def buffers(self, include_sublayers: bool = True) -> list[Tensor]:
        """Return all buffers."""
        return [tensor for _, tensor in self.named_buffers("", include_sublayers)]

    def _own_buffers(self, persistable: bool = False) -> Iterator[tuple[str, Tensor]]:
        """Yield the buffers of this layer itself; only the persistable ones if `persistable`."""
        for name, kept in self._buffer_names.items():
            value = vars(self).get(name)
            if isinstance(value, Parameter) or not isinstance(value, Tensor):
                continue
            if kept or not persistable:
                yield name, value

    # Helpers ------------------------------------------------------------------------------------

    def _scopes(
        self, prefix: str, include_sublayers: bool, once: bool
    ) -> Iterator[tuple[str, Any]]:
        """Yield this layer and, if `include_sublayers`, its sublayers, with their names."""
        if include_sublayers:
            return self.named_sublayers(prefix, include_self=True, remove_duplicate=once)
        return iter([(prefix, self)])

    def _check_name(self, name: str, what: str) -> None:
        """Raise for a name that cannot be an attribute, or would hide a method."""
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
