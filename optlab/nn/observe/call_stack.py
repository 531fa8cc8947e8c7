"""Following which layer runs, for those who watch: at no cost while nobody does."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from optlab.nn.base.layer import Layer


class CallStack(threading.local):
    """The layers that run in this thread, the outermost first.

    Examples
    --------
    >>> import optlab as ol
    >>> running, seen = CallStack(), []
    >>> model = ol.nn.Sequential(ol.nn.Tanh())
    >>> _ = model[0].register_forward_post_hook(lambda *_: seen.append(running.path()))
    >>> with follow_calls(running):
    ...     _ = model(ol.zeros([1]))
    >>> seen
    ['0: Tanh']
    """

    def __init__(self) -> None:
        self.layers: list[Layer] = []
        self._names: dict[int, tuple[Layer, dict[int, str]]] = {}

    def path(self) -> str:
        """Name the innermost layer by its place in the outermost, and by its class."""
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
def follow_calls(running: CallStack, given: Callable[[Any], None] | None = None) -> Iterator[None]:
    """Keep `running` told of every layer that is called inside, and `given` of its inputs."""
    before = Layer.__call__

    @functools.wraps(before)
    def call(self: Layer, *inputs: Any, **options: Any) -> Any:
        running.layers.append(self)
        if given is not None:
            given((*inputs, *options.values()))
        try:
            return before(self, *inputs, **options)
        finally:
            running.layers.pop()

    Layer.__call__ = call  # type: ignore[method-assign]
    try:
        yield
    finally:
        Layer.__call__ = before  # type: ignore[method-assign]
