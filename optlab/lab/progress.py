"""A progress bar: a line on standard error, or an output of a notebook that it updates."""

from __future__ import annotations

import sys
import warnings
from time import monotonic
from typing import Any

from optlab.backend.user_frames import stack_level_outside

_WIDTH = 30
#: Seconds that runs may take without a warning, and after how many runs or seconds one is sure.
LONG = 60.0
_FEW, _TRIED = 10, 1.0
#: Seconds before a bar appears by itself in a notebook, and between two updates.
_PATIENCE, _PAUSE = 0.5, 0.1


class ProgressBar:
    """A bar for a known amount of work.

    Parameters
    ----------
    total : int
    label : str
    wanted : bool, optional
        True shows it from the beginning; None shows it in notebooks alone, if the work takes long.
    unit : str
        What is counted.
    """

    def __init__(self, total: int, label: str, wanted: bool | None, unit: str = "cells") -> None:
        self.total = total
        self.label = label
        self.unit = unit
        self._display = notebook_display() if wanted is not False else None
        self._shown = wanted is True
        self._hidden = wanted is False or (wanted is None and self._display is None)
        self._handle: Any = None
        self._begin = self._last = monotonic()

    def update(self, done: int) -> None:
        """Show that this much is done."""
        now = monotonic()
        if self._hidden or (not self._shown and now - self._begin < _PATIENCE):
            return
        if done < self.total and self._handle is not None and now - self._last < _PAUSE:
            return
        self._shown, self._last = True, now
        self._write(self.text(done, now - self._begin))

    def text(self, done: int, seconds: float) -> str:
        """Return the bar as a line of text.

        Examples
        --------
        >>> ProgressBar(200, "Sweep", False).text(50, 3.0)
        'Sweep  25% [#######.......................] 50/200 cells, 3 s, 9 s left'
        """
        share = done / self.total if self.total else 1.0
        filled = int(_WIDTH * share)
        left = f", {seconds / share - seconds:.0f} s left" if 0 < share < 1 else ""
        bar = "#" * filled + "." * (_WIDTH - filled)
        count = f"{done}/{self.total} {self.unit}"
        return f"{self.label} {share:4.0%} [{bar}] {count}, {seconds:.0f} s{left}"

    def close(self) -> None:
        """End the line, or take the output away."""
        if self._handle is None:
            return
        if self._display is None:
            sys.stderr.write("\n")
        else:
            self._handle.update({"text/plain": ""}, raw=True)

    def _write(self, text: str) -> None:
        if self._display is None:
            sys.stderr.write(f"\r{text:<90}")
            sys.stderr.flush()
            self._handle = True
        elif self._handle is None:
            self._handle = self._display({"text/plain": text}, raw=True, display_id=True)
        else:
            self._handle.update({"text/plain": text}, raw=True)


class Patience:
    """A warning, once, that runs one after another will take long.

    Parameters
    ----------
    total : int
        How many runs there are.
    label : str
        Of what.
    why : str
        Why they are not one loop.
    """

    def __init__(self, total: int, label: str, why: str) -> None:
        self.total, self.label, self.why = total, label, why
        self._began = monotonic()
        self._warned = False

    def ended(self, count: int) -> None:
        """Hear that so many runs have ended; warn if the others take longer than a minute."""
        spent = monotonic() - self._began
        if self._warned or count == self.total or (spent < _TRIED and count < _FEW):
            return
        left = spent / count * (self.total - count)
        if left < LONG:
            self._warned = count >= _FEW and spent >= _TRIED
            return
        self._warned = True
        warnings.warn(
            f"{self.total:,} runs on {self.label} go one after another, about {in_minutes(left)} "
            f"more: {self.why}. Functions of NumPy without a branch on a value (write np.where) "
            "and rules that are elementwise run as one loop. Ctrl-C ends it and keeps what is "
            "done; fewer starts, settings or steps take less.",
            UserWarning,
            stacklevel=stack_level_outside("optlab"),
        )


def in_minutes(seconds: float) -> str:
    """Return a time in words.

    Examples
    --------
    >>> in_minutes(61), in_minutes(1500), in_minutes(9000)
    ('61 s', '25 min', '2.5 h')
    """
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def notebook_display() -> Any:
    """Return IPython's display if this runs in a notebook's kernel, else None."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None or type(shell).__name__ != "ZMQInteractiveShell":
        return None
    from IPython.display import display

    return display
