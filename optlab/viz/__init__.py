"""Pictures: figures of traces, made by pure functions (a result in, a figure out).

Needs the extra ``lab``. Names are handed on at first use, so that importing this package loads
neither plotly nor matplotlib.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from optlab.backend.display import naming_the_extra

_HOMES = {
    "averages": "wrappers",
    "averages_png": "wrappers",
    "graph": "graphs",
    "lookahead": "wrappers",
    "lookahead_png": "wrappers",
    "memory": "memories",
    "memory_png": "memories",
    "recompute": "recomputations",
    "recompute_explorer": "recompute_widget",
    "recompute_png": "recompute_pictures",
    "recompute_schedule": "recompute_schedules",
    "recompute_schedule_png": "recompute_schedules",
    "race": "figures",
    "surface_map": "figures",
    "loss_curves": "figures",
    "race_png": "pictures",
    "schedule": "schedules",
    "schedule_png": "schedules",
    "summary": "words",
}

__all__ = [
    "averages",
    "averages_png",
    "graph",
    "lookahead",
    "lookahead_png",
    "loss_curves",
    "memory",
    "memory_png",
    "race",
    "race_png",
    "recompute",
    "recompute_explorer",
    "recompute_png",
    "recompute_schedule",
    "recompute_schedule_png",
    "schedule",
    "schedule_png",
    "summary",
    "surface_map",
]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"optlab.viz has no {name!r}; it has {', '.join(__all__)}")
    with naming_the_extra():
        return getattr(import_module(f"optlab.viz.{home}"), name)


def __dir__() -> list[str]:
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
