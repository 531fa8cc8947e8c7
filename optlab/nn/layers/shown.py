"""What layers have in common that hold settings only."""

from __future__ import annotations

from inspect import signature
from typing import TYPE_CHECKING, Any

from optlab.nn.layer import Layer


class Shown(Layer):
    """A layer without parameters: its settings are attributes; ``repr`` shows what was set."""

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...

    def __init__(self, name: str | None = None, **settings: Any) -> None:
        super().__init__()
        for key, value in settings.items():
            setattr(self, key, value)
        self._shown = settings if name is None else {**settings, "name": name}

    def extra_repr(self) -> str:
        """Say the settings that are not what they would be by themselves."""
        defaults = signature(type(self).__init__).parameters
        return ", ".join(
            f"{key}={value!r}"
            for key, value in self._shown.items()
            if key not in defaults or value != defaults[key].default
        )
