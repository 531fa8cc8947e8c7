"""Plain arrays in place of recorded ones in the objects of the user, after a call that has no plan.

A list to which the function has appended, an attribute that it has set: what they hold must be what
an eager call leaves there. They are found by asking Python's garbage collector who refers to them.
"""

from __future__ import annotations

import dis
import gc
from collections import deque
from collections.abc import Iterable
from types import CellType, FrameType
from typing import Any

from optlab.backend.user_frames import lines_outside, location
from optlab.plan.calls.undo import slots_of

#: What functions written in C say of an array that is recorded.
_WORDS = ("CallArray", "CallNumber", "bytes-like", "setting an array element", "real number")

#: How deep tuples are nested that hold a recorded array.
_ROUNDS = 4


def make_plain(recorded: list[Any]) -> None:
    """Put plain arrays and numbers in the place of recorded ones, wherever they are held."""
    new: dict[int, Any] = {id(x): x.value for x in recorded}
    olds: Iterable[Any] = recorded
    kept: list[Any] = []  # so that identities stay unique
    for _ in range(_ROUNDS):
        tuples = []
        for holder in gc.get_referrers(*olds):
            if holder is recorded or holder is olds or isinstance(holder, FrameType):
                continue
            if type(holder) is tuple:
                tuples.append(holder)
            else:
                _replace(holder, new)
        if not tuples:
            return
        kept.append(tuples)
        new = {id(x): tuple([new.get(id(part), part) for part in x]) for x in tuples}
        olds = tuples


def _replace(holder: Any, new: dict[int, Any]) -> None:
    if isinstance(holder, dict):
        for key, x in list(dict.items(holder)):
            if id(x) in new:
                dict.__setitem__(holder, key, new[id(x)])
    elif isinstance(holder, (list, deque)):
        for i, x in enumerate(holder):
            if id(x) in new:
                holder[i] = new[id(x)]
    elif isinstance(holder, CellType):
        if id(holder.cell_contents) in new:
            holder.cell_contents = new[id(holder.cell_contents)]
    else:
        own = getattr(holder, "__dict__", None)
        if isinstance(own, dict):
            _replace(own, new)
        for name in slots_of(type(holder)):
            x = getattr(holder, name, None)
            if id(x) in new:
                object.__setattr__(holder, name, new[id(x)])


def met_recorded(error: Exception) -> str:
    """Return what to say of an error if recorded arrays are its reason; empty if they are not."""
    if not isinstance(error, (TypeError, ValueError)) or not any(x in str(error) for x in _WORDS):
        return ""
    if _raised_by_user(error):
        return ""
    lines = lines_outside(error, "optlab", "numpy")
    where = location(*lines[-1]) if lines else "its function"
    return (
        f"a function written in C, which takes plain arrays alone ({where}: {error}; for "
        "np.fromiter write np.stack([...]), for np.frombuffer and memoryview x.view(dtype))"
    )


def _raised_by_user(error: Exception) -> bool:
    """Return whether a ``raise`` in code of the user has made an error."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is None or trace.tb_frame.f_globals.get("__name__", "").startswith("optlab"):
        return False
    return trace.tb_frame.f_code.co_code[trace.tb_lasti] == dis.opmap["RAISE_VARARGS"]
