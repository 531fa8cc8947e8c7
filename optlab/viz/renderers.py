"""Renderers that `optlab.viz` declares to the display registry, one per kind of result."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from optlab.viz.comparison.figure import CONFIG, race
from optlab.viz.comparison.image import race_png
from optlab.viz.fair_comparisons.figure import fair_comparison as draw_fair_comparison
from optlab.viz.fair_comparisons.figure import fair_comparison_png
from optlab.viz.landscapes.connection import connection as draw_connection
from optlab.viz.landscapes.connection import connection_png
from optlab.viz.landscapes.plane import landscape as draw_landscape
from optlab.viz.landscapes.plane import landscape_png
from optlab.viz.lr_schedule.figure import is_known_in_advance, schedule_png
from optlab.viz.lr_schedule.figure import schedule as draw_schedule
from optlab.viz.memory_study.figure import recompute
from optlab.viz.memory_study.image import recompute_png
from optlab.viz.memory_timeline.figure import memory as draw_memory
from optlab.viz.memory_timeline.figure import memory_png
from optlab.viz.pipelines import pipeline as draw_pipeline
from optlab.viz.pipelines import pipeline_png
from optlab.viz.quadratics.figure import modes, modes_png
from optlab.viz.style.jupyter_theme import follow
from optlab.viz.style.text import summary
from optlab.viz.sweeps.attraction_map import basins as draw_basins
from optlab.viz.sweeps.attraction_map import basins_png
from optlab.viz.sweeps.rate_range import rate_range as draw_rate_range
from optlab.viz.sweeps.rate_range import rate_range_png
from optlab.viz.sweeps.settings_map import heatmap, heatmap_png
from optlab.viz.traces.figure import series, series_png

_SIZE = {"width": 850, "height": 440}
"""Size of figure and static image in pixels. JupyterLab shows the stored image until the mouse
enters it, and never scales it: it has to fit beside the file browser of a small screen."""
_SMALL = {"width": 640, "height": 340}
"""Size of a schedule; a notebook may show several."""


@dataclass(frozen=True)
class Renderer:
    """Renderer of results of one kind.

    Attributes
    ----------
    draw, draw_png : callable
        Return the interactive figure of a result, and its static image as a PNG file.
    size : dict
        Their options in a notebook.
    describe : callable
        Return a text alternative, for terminals and screen readers.
    can_draw : callable
        Return whether there is something to draw; otherwise a notebook stores text only.
    """

    draw: Callable[..., Any]
    draw_png: Callable[..., bytes]
    size: dict[str, int] = field(default_factory=lambda: _SIZE)
    describe: Callable[[Any], str] = str
    can_draw: Callable[[Any], bool] = lambda result: True

    def figure(self, result: Any, /, **options: Any) -> Any:
        """Return the interactive figure of a result; the options are those of `draw`."""
        follow()
        return self.draw(result, **options)

    def save(self, result: Any, path: Path, /) -> None:
        """Write a result to a file: ``.png``, or ``.html`` with the interactive figure."""
        follow()
        if path.suffix == ".png":
            path.write_bytes(self.draw_png(result, scale=2))
        elif path.suffix == ".html":
            self.draw(result).write_html(path, config=CONFIG)
        else:
            raise ValueError(f"the name must end in .png or .html; got {path.name!r}.")

    def table(self, result: Any, /) -> Any:
        """Return ``result.rows()``, a dict for each row, as a pandas DataFrame.

        Whole numbers stay whole where some are missing.
        """
        import pandas as pd

        rows = result.rows()
        frame = pd.DataFrame(rows)
        for name in frame:
            column = [row[name] for row in rows]
            if None in column and all(x is None or isinstance(x, int) for x in column):
                frame[name] = pd.array(column, dtype="Int64")
        return frame

    def mimebundle(self, result: Any, /) -> dict[str, Any]:
        """Return a result as a notebook stores it.

        The interactive figure for a live notebook, the static image for a saved one, a text
        alternative, and the table of the result if it has one.

        Examples
        --------
        >>> import optlab as ol
        >>> race = ol.compare("rosenbrock", {"Adam": ol.optimizer.Adam(0.1)}, steps=5)
        >>> sorted(comparison.mimebundle(race))
        ['application/vnd.plotly.v1+json', 'image/png', 'text/plain']
        >>> sorted(schedule.mimebundle(ol.optimizer.lr.StepDecay(0.5, step_size=10)))
        ['application/vnd.plotly.v1+json', 'image/png', 'text/plain']
        >>> w = ol.to_tensor([1.0], requires_grad=True)
        >>> sorted(memory.mimebundle(ol.memory.report(lambda: (w * w).sum().backward())))
        ['application/vnd.plotly.v1+json', 'image/png', 'text/html', 'text/plain']
        """
        follow()
        found: dict[str, Any] = {"text/plain": self.describe(result)}
        if hasattr(result, "_repr_html_"):
            found["text/html"] = result._repr_html_()
        if self.can_draw(result):
            drawn = json.loads(self.draw(result, **self.size).to_json())
            image = self.draw_png(result, **self.size)
            found["application/vnd.plotly.v1+json"] = {**drawn, "config": CONFIG}
            found["image/png"] = base64.b64encode(image).decode("ascii")
        return found


comparison = Renderer(race, race_png, describe=summary)
"""Renderer of comparisons, under the name in `pyproject.toml`."""
schedule = Renderer(draw_schedule, schedule_png, _SMALL, repr, is_known_in_advance)
"""Renderer of schedules; it draws those whose rates do not depend on measurements."""
memory = Renderer(draw_memory, memory_png, can_draw=lambda trace: len(trace) > 1)
"""Renderer of memory traces; a trace is empty until its block has ended."""
memory_study = Renderer(recompute, recompute_png, {"width": _SIZE["width"]})
"""Renderer of memory studies; the height depends on the number of runs."""
sweep = Renderer(heatmap, heatmap_png, {"width": 760, "height": 440})
"""Renderer of sweeps."""
basins = Renderer(draw_basins, basins_png, {"width": 850, "height": 500})
"""Renderer of basins of attraction."""
rate_range = Renderer(draw_rate_range, rate_range_png, {"width": 700, "height": 400})
"""Renderer of learning-rate range tests."""
pipeline = Renderer(draw_pipeline, pipeline_png, {"width": 850, "height": 500})
"""Renderer of the timelines of pipelined steps."""
closed_form = Renderer(modes, modes_png, {"width": 760, "height": 400})
"""Renderer of closed forms, by their modes."""
connection = Renderer(draw_connection, connection_png, {"width": 640, "height": 380}, repr)
"""Renderer of connections between two solutions."""
fair_comparison = Renderer(
    draw_fair_comparison, fair_comparison_png, describe=repr,
    can_draw=lambda result: bool(result.runs),
)  # fmt: skip
"""Renderer of comparisons over seeds: bands and performance profiles."""
landscape = Renderer(
    draw_landscape, landscape_png, {"width": 850, "height": 480}, repr,
    lambda result: bool(result.evaluated.any()),
)  # fmt: skip
"""Renderer of landscapes: a map with paths."""
trace = Renderer(series, series_png, {"width": 850, "height": 400}, repr)
"""Renderer of traces: loss and norms over the steps."""
