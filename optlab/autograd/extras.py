"""What an operation does only when somebody asked for it, behind one cheap question.

Saved-tensor hooks, anomaly detection and the checks after an in-place write are rare. `apply` asks
once, ``if extras.on``, and the files that offer them count themselves in and out here.
"""

from __future__ import annotations


class _Extras:
    """How many extras are in use anywhere in the program; `watching` of them only look on."""

    __slots__ = ("on", "watching")

    def __init__(self) -> None:
        self.on = 0
        self.watching = 0


extras = _Extras()
