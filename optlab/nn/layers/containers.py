"""Layers that hold others, or parameters: a chain, lists and dicts."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar, overload

from optlab.backend.threads import PerThread
from optlab.nn.base.layer import Layer
from optlab.nn.base.parameter import Parameter

if TYPE_CHECKING:
    from typing import Self

Item = TypeVar("Item")


class _Ordered(Layer):
    """Base class of ordered containers: the items are the attributes of the right class, in order.

    Items are named by their position, unless they were given a name.
    """

    _kind: type = Layer
    _what = "Layer"

    def _items(self) -> list[tuple[str, Any]]:
        return [(name, x) for name, x in vars(self).items() if isinstance(x, self._kind)]

    def _set_items(self, items: Iterable[tuple[str, Any]]) -> None:
        """Replace the items; names that are positions are renumbered."""
        items = list(items)
        for _, item in items:
            self._check(item)
        numbered = [
            (str(i) if name.isdecimal() else name, item) for i, (name, item) in enumerate(items)
        ]
        for name, _ in self._items():
            delattr(self, name)
        for name, item in numbered:
            setattr(self, name, item)

    def _check(self, item: Any) -> None:
        if not isinstance(item, self._kind):
            raise TypeError(f"{type(self).__name__} takes a {self._what}; got {_described(item)}.")

    def _position(self, position: Any) -> int:
        """Validate a position, which may count from the end."""
        items = self._items()
        try:
            i = operator.index(position)
        except TypeError:
            raise TypeError(
                f"{type(self).__name__} is asked by position; got {position!r}."
            ) from None
        if not -len(items) <= i < len(items):
            raise IndexError(
                f"{type(self).__name__} holds {len(items)} of them; there is no number {i}."
            )
        return i % len(items)

    def _item(self, position: Any) -> Any:
        return self._items()[self._position(position)][1]

    def __len__(self) -> int:
        return len(self._items())

    def __iter__(self) -> Iterator[Any]:
        return iter([item for _, item in self._items()])

    def __delitem__(self, position: Any) -> None:
        items = self._items()
        if isinstance(position, slice):
            del items[position]
        else:
            del items[self._position(position)]
        self._set_items(items)

    def __setitem__(self, position: Any, item: Any) -> None:
        self._check(item)
        setattr(self, self._items()[self._position(position)][0], item)

    def append(self, item: Any) -> Self:
        """Append an item; return the container itself."""
        return self.extend([item])

    def insert(self, position: int, item: Any) -> Self:
        """Insert an item before a position and renumber the rest; return the container itself."""
        self._check(item)
        items = self._items()
        items.insert(position, ("0", item))
        self._set_items(items)
        return self

    def extend(self, items: Iterable[Any]) -> Self:
        """Append several items, all or none; return the container itself."""
        self._set_items([*self._items(), *(("0", item) for item in items)])
        return self


def _described(x: Any) -> str:
    """Return what an argument is: a class or a function is often given where a layer is meant."""
    if isinstance(x, type):
        return f"the class {x.__name__}; call it: {x.__name__}(...)"
    if callable(x) and hasattr(x, "__name__"):
        layer = _layer_like(x.__name__)
        remedy = f"use nn.{layer}()" if layer else "write a Layer whose forward calls it"
        return f"the function {x.__name__}; {remedy}"
    return type(x).__name__


def _layer_like(name: str) -> str | None:
    """Return the public layer class that has the name of a function: ReLU for relu."""
    wanted, classes = name.replace("_", "").lower(), [Layer]
    for cls in classes:
        if cls.__module__ == Layer.__module__ and cls.__name__.lower() == wanted:
            return cls.__name__
        classes += cls.__subclasses__()
    return None


#: The replacement of `Sequential.forward` in this thread, if there is one.
chain_runner: PerThread[Callable[[Any, Any], Any] | None] = PerThread(None)


@contextmanager
def run_chains_by(run: Callable[[Any, Any], Any] | None) -> Iterator[None]:
    """Let ``run(sequential, x)`` replace `Sequential.forward` in this thread; None: no replacement.

    Examples
    --------
    >>> import optlab as ol
    >>> model = ol.nn.Sequential(ol.nn.Tanh(), ol.nn.Tanh())
    >>> with run_chains_by(lambda chain, x: len(chain)):
    ...     model(ol.zeros([1]))
    2
    """
    before, chain_runner.value = chain_runner.value, run
    try:
        yield
    finally:
        chain_runner.value = before


class Sequential(_Ordered):
    """A chain of layers: each takes the output of the one before.

    Parameters
    ----------
    layers : Layer or (str, Layer) or dict
        In order; named by position, or by the given name. A single dict gives names and layers.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.seed(0)
    >>> model = ol.nn.Sequential(ol.nn.Linear(4, 3), ol.nn.ReLU(), ol.nn.Linear(3, 2))
    >>> model(ol.ones([5, 4])).shape
    (5, 2)
    >>> [parameter.structural_name for parameter in model.parameters()]
    ['0.weight', '0.bias', '2.weight', '2.bias']
    >>> model[1:]
    Sequential(
      0: ReLU()
      1: Linear(3, 2)
    )
    """

    def __init__(self, *layers: Layer | tuple[str, Layer] | Mapping[str, Layer]) -> None:
        super().__init__()
        given: Iterable[Any] = layers
        if len(layers) == 1 and isinstance(layers[0], Mapping):
            given = layers[0].items()
        for position, item in enumerate(given):
            named = isinstance(item, (tuple, list)) and len(item) == 2 and isinstance(item[0], str)
            name, layer = item if named else (str(position), item)
            if not isinstance(layer, Layer):
                self._refuse_part(layer, name)
            self.add_sublayer(name, layer)

    def _refuse_part(self, part: Any, name: str) -> None:
        """Raise for a part that is no layer, with what to write instead."""
        said = f"is {_described(part)}"
        if isinstance(part, type):
            said = f"is the class {part.__name__}; write {part.__name__}()"
        elif isinstance(part, (list, tuple)):
            said = f"is a {type(part).__name__}; write Sequential(*layers)"
        raise TypeError(f"Sequential takes a Layer: part {name} {said}.")

    def add_sublayer(self, name: str, sublayer: Layer) -> Layer:
        """Append a layer to the chain; its name must be new.

        Raises
        ------
        ValueError
            If another layer of the chain has this name, or a method has.
        """
        if name in vars(self):
            raise ValueError(f"two layers of a Sequential cannot both be named {name!r}.")
        return super().add_sublayer(name, sublayer)

    def forward(self, x: Any) -> Any:
        """Apply the layers in order."""
        if chain_runner.value is not None:
            return chain_runner.value(self, x)
        for layer in list(vars(self).values()):
            if isinstance(layer, Layer):
                x = layer(x)
        return x

    @overload
    def __getitem__(self, position: slice) -> Sequential: ...
    @overload
    def __getitem__(self, position: int | str) -> Layer: ...
    def __getitem__(self, position: int | str | slice) -> Layer:
        """Return a layer by its position or name, or a chain of some (the same layers)."""
        if isinstance(position, slice):
            part = Sequential()
            part._set_items(self._items()[position])
            return part
        if isinstance(position, str):
            named = dict(self._items())
            if position not in named:
                raise KeyError(f"no layer is named {position!r}; there are {', '.join(named)}.")
            return named[position]  # type: ignore[no-any-return]
        return self._item(position)  # type: ignore[no-any-return]

    def __setitem__(self, position: Any, item: Any) -> None:
        """Replace a layer by position or by name; a new name appends it."""
        if not isinstance(position, str):
            super().__setitem__(position, item)
        elif position in dict(self._items()):
            self._check(item)
            setattr(self, position, item)
        else:
            self.add_sublayer(position, item)


class LayerList(_Ordered):
    """A list of layers, named by position; it has no forward of its own.

    Parameters
    ----------
    sublayers : iterable of Layer, optional

    Examples
    --------
    >>> import optlab as ol
    >>> ol.seed(0)
    >>> class Deep(ol.nn.Layer):
    ...     def __init__(self, depth):
    ...         super().__init__()
    ...         self.layers = ol.nn.LayerList([ol.nn.Linear(2, 2) for _ in range(depth)])
    ...     def forward(self, x):
    ...         for layer in self.layers:
    ...             x = x + layer(x).tanh()
    ...         return x
    >>> model = Deep(2)
    >>> model(ol.ones([1, 2])).shape
    (1, 2)
    >>> [name for name, _ in model.named_parameters()]
    ['layers.0.weight', 'layers.0.bias', 'layers.1.weight', 'layers.1.bias']
    """

    def __init__(self, sublayers: Iterable[Layer] | None = None) -> None:
        super().__init__()
        self.extend(sublayers or ())

    @overload
    def __getitem__(self, position: slice) -> LayerList: ...
    @overload
    def __getitem__(self, position: int) -> Layer: ...
    def __getitem__(self, position: int | slice) -> Layer:
        """Return a layer by its position, or a list of some (the same layers)."""
        if isinstance(position, slice):
            return LayerList(list(self)[position])
        return self._item(position)  # type: ignore[no-any-return]

    def pop(self, position: int = -1) -> Layer:
        """Remove and return a layer, by default the last."""
        layer = self._item(position)
        del self[position]
        return layer  # type: ignore[no-any-return]

    def __iadd__(self, layers: Iterable[Layer]) -> Self:
        return self.extend(layers)

    def __add__(self, layers: Iterable[Layer]) -> LayerList:
        return LayerList([*self, *layers])


class ParameterList(_Ordered):
    """A list of parameters, named by position.

    Parameters
    ----------
    parameters : iterable of Parameter, optional

    Examples
    --------
    >>> import optlab as ol
    >>> layer = ol.nn.Layer()
    >>> layer.factors = ol.nn.ParameterList(ol.Parameter([1.0]) for _ in range(2))
    >>> [name for name, _ in layer.named_parameters()]
    ['factors.0', 'factors.1']
    """

    _kind = Parameter
    _what = "Parameter"

    def __init__(self, parameters: Iterable[Parameter] | None = None) -> None:
        super().__init__()
        self.extend(parameters or ())

    @overload
    def __getitem__(self, position: slice) -> ParameterList: ...
    @overload
    def __getitem__(self, position: int) -> Parameter: ...
    def __getitem__(self, position: int | slice) -> Parameter | ParameterList:
        """Return a parameter by its position, or a list of some (the same parameters)."""
        if isinstance(position, slice):
            return ParameterList(list(self)[position])
        return self._item(position)  # type: ignore[no-any-return]

    def extra_repr(self) -> str:
        """Return the shapes."""
        return ", ".join(str(parameter.shape) for parameter in self)


class _Dictionary(Layer, Generic[Item]):
    """Base class of named containers: the items are the attributes of the right class."""

    _kind: ClassVar[Any]
    _what: ClassVar[str]

    def __init__(self, items: Any = None) -> None:
        super().__init__()
        self.update(items or ())

    def _items(self) -> dict[str, Item]:
        return {name: x for name, x in vars(self).items() if isinstance(x, self._kind)}

    def __getitem__(self, key: str) -> Item:
        items = self._items()
        if key not in items:
            known = ", ".join(items) or "none"
            raise KeyError(f"no {self._what} is named {key!r}; there are {known}.")
        return items[key]

    def __delitem__(self, key: str) -> None:
        self[key]
        delattr(self, key)

    def __setitem__(self, key: str, item: Item) -> None:
        raise NotImplementedError

    def __len__(self) -> int:
        return len(self._items())

    def __iter__(self) -> Iterator[str]:
        return iter(self._items())

    def __contains__(self, key: object) -> bool:
        return key in self._items()

    def keys(self) -> Iterable[str]:
        """Return the names."""
        return self._items().keys()

    def values(self) -> Iterable[Item]:
        """Return the items."""
        return self._items().values()

    def items(self) -> Iterable[tuple[str, Item]]:
        """Return pairs of name and item."""
        return self._items().items()

    def pop(self, key: str) -> Item:
        """Remove and return an item."""
        item = self[key]
        del self[key]
        return item

    def clear(self) -> None:
        """Remove all items."""
        for key in list(self):
            del self[key]

    def update(self, items: Any) -> None:
        """Add or replace items, from a dict or from pairs of name and item."""
        if isinstance(items, (Mapping, _Dictionary)):
            items = items.items()
        for key, item in items:
            self[key] = item


class LayerDict(_Dictionary[Layer]):
    """A dict of layers, named by their keys; it has no forward of its own.

    Parameters
    ----------
    sublayers : mapping or iterable of (str, Layer), optional

    Examples
    --------
    >>> import optlab as ol
    >>> heads = ol.nn.LayerDict({"mean": ol.nn.Linear(4, 1), "spread": ol.nn.Linear(4, 1)})
    >>> list(heads), heads["mean"]
    (['mean', 'spread'], Linear(4, 1))
    """

    _kind = Layer
    _what = "layer"

    def __init__(
        self, sublayers: Mapping[str, Layer] | Iterable[tuple[str, Layer]] | LayerDict | None = None
    ) -> None:
        super().__init__(sublayers)

    def __setitem__(self, key: str, sublayer: Layer) -> None:
        self.add_sublayer(key, sublayer)


class ParameterDict(_Dictionary[Parameter]):
    """A dict of parameters, named by their keys.

    Parameters
    ----------
    parameters : mapping or iterable of (str, Parameter), optional

    Examples
    --------
    >>> import optlab as ol
    >>> layer = ol.nn.Layer()
    >>> layer.scales = ol.nn.ParameterDict({"mean": ol.Parameter([1.0])})
    >>> [name for name, _ in layer.named_parameters()], list(layer.scales)
    (['scales.mean'], ['mean'])
    """

    _kind = Parameter
    _what = "parameter"

    def __init__(
        self,
        parameters: Mapping[str, Parameter]
        | Iterable[tuple[str, Parameter]]
        | ParameterDict
        | None = None,
    ) -> None:
        super().__init__(parameters)

    def __setitem__(self, key: str, parameter: Parameter) -> None:
        self.add_parameter(key, parameter)

    def extra_repr(self) -> str:
        """Return the shapes."""
        return ", ".join(f"{name}: {parameter.shape}" for name, parameter in self.items())
