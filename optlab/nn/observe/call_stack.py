"""The stack of running layers, tracked inside `follow_calls` and at no cost elsewhere."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from optlab.nn.base.layer import Layer


class CallStack(threading.local):
    """Layers that run in this thread, the outermost first.

    Examples
    --------
    >>> import optlab as ol
    >>> stack, seen = CallStack(), []
    >>> model = ol.nn.Sequential(ol.nn.Tanh())
    >>> _ = model[0].register_forward_post_hook(lambda *_: seen.append(stack.path()))
    >>> with follow_calls(stack):
    ...     _ = model(ol.zeros([1]))
    >>> seen
    ['0: Tanh']
    """

    def __init__(self) -> None:
        self.layers: list[Layer] = []
        self._names: dict[int, tuple[Layer, dict[int, str]]] = {}

    def path(self) -> str:
        """Return the qualified name of the innermost layer within the outermost, and its class."""
        if not self.layers:
            return ""
        root, layer = self.layers[0], self.layers[-1]
        kind = type(layer).__name__
        if root is layer:
            return kind
        known = self._names.get(id(root))
        if known is None or id(layer) not in known[1]:
            names = {id(part): name for name, part in root.named_sublayers()}
            known = self._names[id(root)] = (root, names)
        name = known[1].get(id(layer))
        return kind if name is None else f"{name}: {kind}"


@contextmanager
def follow_calls(stack: CallStack, on_call: Callable[[Any], None] | None = None) -> Iterator[None]:
    """Push every layer that is called inside to `stack`, and pass its inputs to `on_call`."""
    before = Layer.__call__

    @functools.wraps(before)
    def call(self: Layer, *inputs: Any, **options: Any) -> Any:
        stack.layers.append(self)
        if on_call is not None:
            on_call((*inputs, *options.values()))
        try:
            return before(self, *inputs, **options)
        finally:
            stack.layers.pop()

    Layer.__call__ = call  # type: ignore[method-assign]
    try:
        yield
    finally:
        Layer.__call__ = before  # type: ignore[method-assign]
