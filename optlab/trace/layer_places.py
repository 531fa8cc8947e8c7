"""Where a layer stands: what ledgers call it in a model, or in a plain loop over several layers."""

from __future__ import annotations

import weakref
from collections import Counter
from dataclasses import dataclass

from optlab.nn.following import CallStack
from optlab.nn.layer import Layer


@dataclass(eq=False)
class _Home:
    """A layer that is part of no other: a model, or one of a list that a loop goes through.

    Attributes
    ----------
    layer : weakref of a Layer
        Nobody's memory is to last longer because it is watched.
    kind : str
        Its class.
    number : int
        Which it is among those of its class, in the order of their first call.
    by_itself : bool
        Whether it was called by no other layer.
    parts : bool
        Whether a part of it ran.
    """

    layer: weakref.ref[Layer]
    kind: str
    number: int
    by_itself: bool = False
    parts: bool = False

    def name_of(self, layer: Layer) -> str | None:
        """Give the name of a part, "" for the layer itself; None for what is not in it."""
        home = self.layer()
        if home is None or home is layer:
            return None if home is None else ""
        return next((name for name, part in home.named_sublayers() if part is layer), None)


class LayerPlaces:
    """Names the layers that run: by their place in the model, ``"blocks.0.act: GELU"``.

    Where several layers run that are part of no other, as in a loop over a list, each is called by
    its class and number, and so are its parts: ``"Sequential 2, 0: Linear"``.

    Parameters
    ----------
    running : CallStack
        Which layers run.

    Examples
    --------
    >>> import optlab as ol
    >>> from optlab.nn.following import follow_calls
    >>> running = CallStack()
    >>> places, seen = LayerPlaces(running), []
    >>> blocks = [ol.nn.Sequential(ol.nn.Tanh()) for _ in range(2)]
    >>> for block in blocks:
    ...     _ = block[0].register_forward_post_hook(lambda *_: seen.append(places.path()))
    >>> with follow_calls(running):
    ...     for block in blocks:
    ...         _ = block(ol.zeros([1]))
    >>> [places.said(path) for path in seen]
    ['Sequential 0, 0: Tanh', 'Sequential 1, 0: Tanh']
    """

    def __init__(self, running: CallStack) -> None:
        self.running = running
        self._homes: list[_Home] = []
        self._count: Counter[str] = Counter()
        #: The home of each layer that was met, and its name there.
        self._known: weakref.WeakKeyDictionary[Layer, tuple[_Home, str]] = (
            weakref.WeakKeyDictionary()
        )
        #: Of each path: the home, and the place in it.
        self._paths: dict[str, tuple[_Home, str]] = {}

    def path(self) -> str:
        """Give the innermost layer that runs, told apart from all others; nothing where none."""
        layers = self.running.layers
        if not layers:
            return ""
        layer = layers[-1]
        home, name = self._known.get(layer) or self._met(layers)
        place = f"{name}: {type(layer).__name__}" if name else ""
        path = f"{home.kind} {home.number}" + (f", {place}" if place else "")
        self._paths[path] = home, place
        return path

    def said(self, path: str) -> str:
        """Give a path as people read it: without what is the same for all that have run."""
        if path not in self._paths:
            return path
        home, place = self._paths[path]
        whole = f"{home.kind} {home.number}" if self._count[home.kind] > 1 else home.kind
        if not place:
            return whole
        models = [one for one in self._homes if one.by_itself and one.parts]
        return place if models == [home] else f"{whole}, {place}"

    def names(self) -> dict[str, str]:
        """Give what each path is called that was met."""
        return {path: self.said(path) for path in self._paths}

    def _met(self, layers: list[Layer]) -> tuple[_Home, str]:
        """Find the home of the innermost of layers: what holds it, as far out as there is."""
        layer = layers[-1]
        for outer in layers:
            home = self._home_of(outer)
            home.by_itself |= outer is layers[0] and home.layer() is outer
            name = home.name_of(layer)
            if name is not None:
                break
        assert name is not None  # at the latest, it is its own
        home.parts |= bool(name)
        found = self._known[layer] = home, name
        return found

    def _home_of(self, layer: Layer) -> _Home:
        """Give the home of a layer: one that is known, else itself."""
        if layer in self._known:
            return self._known[layer][0]
        for home in self._homes:
            if home.name_of(layer) is not None:
                return home
        kind = type(layer).__name__
        home = _Home(weakref.ref(layer), kind, self._count[kind])
        self._count[kind] += 1
        self._homes.append(home)
        return home
