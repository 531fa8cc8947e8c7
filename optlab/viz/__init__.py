"""Figures of results, made by pure functions: a result in, a figure out.

Needs the extra ``lab``. Names are imported at first use, so that importing this package loads
neither plotly nor matplotlib.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from optlab.backend.extras import needed_for
from optlab.viz.style.jupyter_theme import follow

_NAMES = {
    "optlab.viz.claims": ("Claim", "claim"),
    "optlab.viz.comparison.figure": ("loss_curves", "race", "surface_map"),
    "optlab.viz.comparison.image": ("race_png",),
    "optlab.viz.style.own_plots": ("use_style",),
    "optlab.viz.style.text": ("summary",),
    "optlab.viz.graphs": ("graph",),
    "optlab.viz.memory_timeline.figure": ("memory", "memory_png"),
    "optlab.viz.memory_study.figure": ("recompute",),
    "optlab.viz.memory_study.image": ("recompute_png",),
    "optlab.viz.memory_study.schedule": ("recompute_schedule", "recompute_schedule_png"),
    "optlab.viz.memory_study.widget": ("recompute_explorer",),
    "optlab.viz.fair_comparisons.figure": ("fair_comparison", "fair_comparison_png"),
    "optlab.viz.fair_comparisons.tuning": ("tuning", "tuning_png"),
    "optlab.viz.landscapes.boundary": ("decision_boundary", "decision_boundary_png"),
    "optlab.viz.landscapes.connection": ("connection", "connection_png"),
    "optlab.viz.landscapes.curvature": ("curvature", "curvature_png"),
    "optlab.viz.landscapes.plane": ("landscape", "landscape_png"),
    "optlab.viz.landscapes.training": ("live", "training", "training_png"),
    "optlab.viz.landscapes.trajectory": ("trajectory", "trajectory_png"),
    "optlab.viz.lr_schedule.figure": ("schedule", "schedule_png"),
    "optlab.viz.pipelines": ("pipeline", "pipeline_png"),
    "optlab.viz.quadratics.figure": ("modes", "modes_png"),
    "optlab.viz.sweeps.attraction_map": ("basins", "basins_png"),
    "optlab.viz.sweeps.rate_range": ("rate_range", "rate_range_png"),
    "optlab.viz.sweeps.settings_map": ("heatmap", "heatmap_png"),
    "optlab.viz.traces.compression": ("dgc", "dgc_png"),
    "optlab.viz.traces.figure": ("influence", "influence_png", "series", "series_png"),
    "optlab.viz.weight_averages.figure": ("averages", "averages_png", "lookahead", "lookahead_png"),
}
_HOMES = {name: home for home, names in _NAMES.items() for name in names}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"optlab.viz has no {name!r}; it has {', '.join(__all__)}")
    with needed_for(f"optlab.viz.{name}()"):
        found = getattr(import_module(home), name)
    follow()
    return found


def __dir__() -> list[str]:
    return [*__all__, *(name for name in globals() if name.startswith("__"))]
