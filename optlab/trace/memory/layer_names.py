"""Names of the layers in ledgers: in a model, or in a plain loop over several layers."""

from __future__ import annotations

import weakref
from collections import Counter
from dataclasses import dataclass

from optlab.nn.base.layer import Layer
from optlab.nn.observe.call_stack import CallStack


@dataclass(eq=False)
class _Root:
    """A layer that is part of no other: a model, or one of several that a loop calls.

    Attributes
    ----------
    layer : weakref of a Layer
        Tracking must not extend its lifetime.
    kind : str
        Its class.
    number : int
        Its number among those of its class, in the order of their first call.
    by_itself : bool
        Whether it was called outside of any other layer.
    parts : bool
        Whether a part of it ran.
    """

    layer: weakref.ref[Layer]
    kind: str
    number: int
    by_itself: bool = False
    parts: bool = False

    def name_of(self, layer: Layer) -> str | None:
        """Return the name of a part, "" for the layer itself, None for a layer outside of it."""
        root = self.layer()
        if root is None or root is layer:
            return None if root is None else ""
        return next((name for name, part in root.named_sublayers() if part is layer), None)


class LayerNames:
    """Names the layers that run by their position in the model: ``"blocks.0.act: GELU"``.

    If several layers run that are part of no other, as in a loop over a list, each is named by its
    class and number, and so are its parts: ``"Sequential 2, 0: Linear"``.

    Examples
    --------
    >>> import optlab as ol
    >>> from optlab.nn.observe.call_stack import follow_calls
    >>> running = CallStack()
    >>> places, seen = LayerNames(running), []
    >>> blocks = [ol.nn.Sequential(ol.nn.Tanh()) for _ in range(2)]
    >>> for block in blocks:
    ...     _ = block[0].register_forward_post_hook(lambda *_: seen.append(places.path()))
    >>> with follow_calls(running):
    ...     for block in blocks:
    ...         _ = block(ol.zeros([1]))
    >>> [places.label(path) for path in seen]
    ['Sequential 0, 0: Tanh', 'Sequential 1, 0: Tanh']
    """

    def __init__(self, running: CallStack) -> None:
        self.running = running
        self._roots: list[_Root] = []
        self._count: Counter[str] = Counter()
        #: The root of each layer that was met, and its name there.
        self._known: weakref.WeakKeyDictionary[Layer, tuple[_Root, str]] = (
            weakref.WeakKeyDictionary()
        )
        #: The root of each path, and the position in it.
        self._paths: dict[str, tuple[_Root, str]] = {}

    def path(self) -> str:
        """Return the unique path of the innermost layer that runs; empty without one."""
        layers = self.running.layers
        if not layers:
            return ""
        layer = layers[-1]
        root, name = self._known.get(layer) or self._find_root(layers)
        place = f"{name}: {type(layer).__name__}" if name else ""
        path = f"{root.kind} {root.number}" + (f", {place}" if place else "")
        self._paths[path] = root, place
        return path

    def label(self, path: str) -> str:
        """Return the label of a path, without what is common to all layers that ran."""
        if path not in self._paths:
            return path
        root, place = self._paths[path]
        whole = f"{root.kind} {root.number}" if self._count[root.kind] > 1 else root.kind
        if not place:
            return whole
        models = [one for one in self._roots if one.by_itself and one.parts]
        return place if models == [root] else f"{whole}, {place}"

    def names(self) -> dict[str, str]:
        """Return the label of each path that was met."""
        return {path: self.label(path) for path in self._paths}

    def _find_root(self, layers: list[Layer]) -> tuple[_Root, str]:
        """Find the root of the innermost of `layers`: the outermost layer that contains it."""
        layer = layers[-1]
        for outer in layers:
            root = self._root_of(outer)
            root.by_itself |= outer is layers[0] and root.layer() is outer
            name = root.name_of(layer)
            if name is not None:
                break
        assert name is not None  # the last is its own root
        root.parts |= bool(name)
        found = self._known[layer] = root, name
        return found

    def _root_of(self, layer: Layer) -> _Root:
        """Return the root of a layer: a known one, or the layer itself."""
        if layer in self._known:
            return self._known[layer][0]
        for root in self._roots:
            if root.name_of(layer) is not None:
                return root
        kind = type(layer).__name__
        root = _Root(weakref.ref(layer), kind, self._count[kind])
        self._count[kind] += 1
        self._roots.append(root)
        return root
