"""Random keys and generators of a captured call: what they draw is drawn anew in every call."""

from __future__ import annotations

from functools import partial
from typing import Any

from optlab.backend.call_recorder import here, suspended
from optlab.backend.random import Key


class CallKey(Key):
    """A random key of a captured call; what is drawn from it is drawn anew in every call."""

    __slots__ = ()

    def generator(self) -> Any:
        """Return a generator whose draws are recorded."""
        recorder = here.recorder
        if recorder is None:
            return super().generator()
        with suspended():
            generator = super().generator()
        recorder.add("read", "generator", Key.generator, (recorder.template(self),), {}, generator)
        return CallGenerator(recorder, generator)


class CallGenerator:
    """A random generator whose draws are recorded."""

    def __init__(self, recorder: Any, generator: Any) -> None:
        self._recorder = recorder
        self._generator = generator

    def __getattr__(self, name: str) -> Any:
        method = getattr(type(self._generator), name)
        if not callable(method):
            return getattr(self._generator, name)
        return partial(self._recorder.draw, name, method, self._generator)
