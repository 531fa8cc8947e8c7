"""Layers that hold others, or parameters, by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, Generic, TypeVar

from optlab.nn.layer import Layer
from optlab.nn.parameter import Parameter

Item = TypeVar("Item")


class _Dictionary(Layer, Generic[Item]):
    """What holds items by name: they are the attributes of the right kind."""

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
        """Give the names."""
        return self._items().keys()

    def values(self) -> Iterable[Item]:
        """Give what is held."""
        return self._items().values()

    def items(self) -> Iterable[tuple[str, Item]]:
        """Give names and what is held."""
        return self._items().items()

    def pop(self, key: str) -> Item:
        """Take one out, and give it."""
        item = self[key]
        del self[key]
        return item

    def clear(self) -> None:
        """Take all out."""
        for key in list(self):
            del self[key]

    def update(self, items: Any) -> None:
        """Put in those of a dict, or of pairs of name and item; an old name gets the new."""
        if isinstance(items, (Mapping, _Dictionary)):
            items = items.items()
        for key, item in items:
            self[key] = item


class LayerDict(_Dictionary[Layer]):
    """A dict of layers, named by their keys. It has no forward: the layer that holds it has.

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
        """Say the shapes."""
        return ", ".join(f"{name}: {parameter.shape}" for name, parameter in self.items())
