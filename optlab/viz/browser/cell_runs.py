"""Runs of notebook cells: a cell's widgets are closed when the cell runs again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakMethod

_made: dict[str, tuple[Any, list[WeakMethod[Callable[[], None]]]]] = {}
_inside: dict[str, str] = {}  # the cell of an output of `interact`
_watched: list[Any] = []


def close_earlier(release: Callable[[], None]) -> None:
    """Close the widgets that an earlier run of the same cell created.

    Kernel and page keep every open widget: twenty runs of a cell would keep twenty widgets. From
    the first call on they are also closed when the cell runs again and creates none.

    Parameters
    ----------
    release : bound method
        Closes the widget just created; called when its cell runs again. Only a weak reference to
        it is stored.
    """
    running = _running()
    if running is None:
        return
    _watch_runs()
    _release_earlier()
    cell, message = running
    _, made = _made.get(cell, (message, []))
    alive = [one for one in made if one() is not None]
    _made[cell] = message, [*alive, WeakMethod(release)]


def _running() -> tuple[str, str] | None:
    """Return the cell that runs and the message that requested the run; None if there is none."""
    from ipykernel.kernelbase import Kernel

    if not Kernel.initialized():
        return None
    header = Kernel.instance().get_parent("shell")
    message = header.get("header", {}).get("msg_id")
    cell = header.get("metadata", {}).get("cellId")
    output = _interactive(message)
    if output is not None and cell is not None:
        _inside[output] = cell
    place = cell if output is None else output
    return None if place is None or message is None else (place, message)


def _interactive(message: str | None) -> str | None:
    """Return the id of the output of `interact` that a message fills: it is cleared like a cell."""
    from ipywidgets import interactive
    from ipywidgets.widgets.widget import _instances

    for one in list(_instances.values()):
        if isinstance(one, interactive) and one.clear_output and one.out.msg_id == message:
            found: str = one.out.model_id
            return found
    return None


def _release_earlier(*_: Any) -> None:
    """Close what earlier runs of the running cell made."""
    running = _running()
    if running is None:
        return
    cell, message = running
    for output in [output for output, outer in _inside.items() if outer == cell]:
        if _made.get(output, (message,))[0] != message:
            del _inside[output]
            _release(output)
    if cell in _made and _made[cell][0] != message:
        _release(cell)


def _release(place: str) -> None:
    """Close what was made in a cell, or in an output of `interact`."""
    for reference in _made.pop(place)[1]:
        close = reference()
        if close is not None:
            close()


def _watch_runs() -> None:
    """Close them also where the next run of the cell makes none."""
    from IPython import get_ipython

    shell = get_ipython()  # type: ignore[no-untyped-call]
    if shell is not None and shell not in _watched:
        _watched.append(shell)
        shell.events.register("pre_run_cell", _release_earlier)
