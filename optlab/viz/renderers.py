"""What `optlab.viz` declares to the display registry: who draws which kind of result."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

from optlab.viz import (
    figures,
    memories,
    pictures,
    recomputations,
    recompute_pictures,
    schedules,
    words,
)
from optlab.viz.results import ComparisonLike

_SIZE = {"width": 850, "height": 440}
"""Of picture and figure alike, in pixels. JupyterLab shows the stored picture until the mouse
enters it, and never scales it: it has to fit beside the file browser of a small screen."""
_SMALL: dict[str, Any] = {"width": 640, "height": 340}
"""The same for a schedule, of which a notebook may show several."""


class ComparisonRenderer:
    """Draws comparisons: a race of optimizers on one problem."""

    def figure(self, result: ComparisonLike, /, **options: Any) -> Any:
        """Return `optlab.viz.race` of a comparison; the options are its `width` and `height`."""
        return figures.race(result, **options)

    def save(self, result: ComparisonLike, path: Path, /) -> None:
        """Write a comparison to a file: ``.png``, or ``.html`` with the live figure."""
        if path.suffix == ".png":
            path.write_bytes(pictures.race_png(result, scale=2))
        elif path.suffix == ".html":
            figures.race(result).write_html(path, config=figures.CONFIG)
        else:
            raise ValueError(f"the name must end in .png or .html; got {path.name!r}.")

    def mimebundle(self, result: ComparisonLike, /) -> dict[str, Any]:
        """Return a comparison as a notebook stores it.

        The interactive figure for a living notebook, the picture for one that is only read, and the
        summary in words for a terminal and for those who see neither.

        Examples
        --------
        >>> import optlab as ol
        >>> race = ol.compare("rosenbrock", {"Adam": ol.optimizer.Adam(0.1)}, steps=5)
        >>> sorted(comparison.mimebundle(race))
        ['application/vnd.plotly.v1+json', 'image/png', 'text/plain']
        """
        picture = pictures.race_png(result, **_SIZE)
        drawn = json.loads(figures.race(result, **_SIZE).to_json())
        return {
            "application/vnd.plotly.v1+json": {**drawn, "config": figures.CONFIG},
            "image/png": base64.b64encode(picture).decode("ascii"),
            "text/plain": words.summary(result),
        }


class ScheduleRenderer:
    """Draws schedules: learning rates over the steps."""

    def figure(self, result: Any, /, **options: Any) -> Any:
        """Return `optlab.viz.schedule` of a schedule, with its options."""
        return schedules.schedule(result, **options)

    def save(self, result: Any, path: Path, /) -> None:
        """Write a schedule to a file: ``.png``, or ``.html`` with the live figure."""
        if path.suffix == ".png":
            path.write_bytes(schedules.schedule_png(result, scale=2))
        elif path.suffix == ".html":
            schedules.schedule(result).write_html(path, config=figures.CONFIG)
        else:
            raise ValueError(f"the name must end in .png or .html; got {path.name!r}.")

    def mimebundle(self, result: Any, /) -> dict[str, Any]:
        """Return a schedule as a notebook stores it: figure, picture and words.

        Words alone where the rates depend on what will be measured.

        Examples
        --------
        >>> import optlab as ol
        >>> sorted(schedule.mimebundle(ol.optimizer.lr.StepDecay(0.5, step_size=10)))
        ['application/vnd.plotly.v1+json', 'image/png', 'text/plain']
        """
        if not schedules.is_foreseen(result):
            return {"text/plain": repr(result)}
        drawn = json.loads(schedules.schedule(result, **_SMALL).to_json())
        return {
            "application/vnd.plotly.v1+json": {**drawn, "config": figures.CONFIG},
            "image/png": base64.b64encode(schedules.schedule_png(result, **_SMALL)).decode("ascii"),
            "text/plain": repr(result),
        }


class MemoryRenderer:
    """Draws memory traces: the bytes of a step."""

    def figure(self, result: Any, /, **options: Any) -> Any:
        """Return `optlab.viz.memory` of a trace; the options are its `width` and `height`."""
        return memories.memory(result, **options)

    def save(self, result: Any, path: Path, /) -> None:
        """Write a memory trace to a file: ``.png``, or ``.html`` with the live figure."""
        if path.suffix == ".png":
            path.write_bytes(memories.memory_png(result, scale=2))
        elif path.suffix == ".html":
            memories.memory(result).write_html(path, config=figures.CONFIG)
        else:
            raise ValueError(f"the name must end in .png or .html; got {path.name!r}.")

    def mimebundle(self, result: Any, /) -> dict[str, Any]:
        """Return a memory trace as a notebook stores it: figure, picture, and the table in words.

        Words alone before its block is left: there is nothing to draw yet.

        Examples
        --------
        >>> import numpy as np
        >>> import optlab as ol
        >>> w = ol.to_tensor(np.ones(1000), requires_grad=True)
        >>> sorted(memory.mimebundle(ol.memory.report(lambda: np.sum(np.exp(w)).backward())))
        ['application/vnd.plotly.v1+json', 'image/png', 'text/html', 'text/plain']
        """
        if len(result) < 2:
            return {"text/html": result._repr_html_(), "text/plain": str(result)}
        drawn = json.loads(memories.memory(result, **_SIZE).to_json())
        picture = memories.memory_png(result, **_SIZE)
        return {
            "application/vnd.plotly.v1+json": {**drawn, "config": figures.CONFIG},
            "image/png": base64.b64encode(picture).decode("ascii"),
            "text/html": result._repr_html_(),
            "text/plain": str(result),
        }


class MemoryStudyRenderer:
    """Draws memory studies: a step under schedules and budgets."""

    def figure(self, result: Any, /, **options: Any) -> Any:
        """Return `optlab.viz.recompute` of a study; the options are its `width` and `height`."""
        return recomputations.recompute(result, **options)

    def save(self, result: Any, path: Path, /) -> None:
        """Write a study to a file: ``.png``, or ``.html`` with the live figure."""
        if path.suffix == ".png":
            path.write_bytes(recompute_pictures.recompute_png(result, scale=2))
        elif path.suffix == ".html":
            recomputations.recompute(result).write_html(path, config=figures.CONFIG)
        else:
            raise ValueError(f"the name must end in .png or .html; got {path.name!r}.")

    def mimebundle(self, result: Any, /) -> dict[str, Any]:
        """Return a study as a notebook stores it: figure, picture, table and words.

        Examples
        --------
        >>> import numpy as np
        >>> import optlab as ol
        >>> w = ol.to_tensor(np.ones(1000), requires_grad=True)
        >>> step = lambda: np.sum(np.exp(np.sin(w))).backward()
        >>> sorted(memory_study.mimebundle(ol.lab.memory_study(step, [], ["1 MiB"], repeats=1)))
        ['application/vnd.plotly.v1+json', 'image/png', 'text/html', 'text/plain']
        """
        width = _SIZE["width"]
        drawn = json.loads(recomputations.recompute(result, width=width).to_json())
        picture = recompute_pictures.recompute_png(result, width=width)
        return {
            "application/vnd.plotly.v1+json": {**drawn, "config": figures.CONFIG},
            "image/png": base64.b64encode(picture).decode("ascii"),
            "text/html": result._repr_html_(),
            "text/plain": str(result),
        }


comparison = ComparisonRenderer()
"""The renderer of comparisons, as `pyproject.toml` names it."""
schedule = ScheduleRenderer()
"""The renderer of schedules, as `pyproject.toml` names it."""
memory = MemoryRenderer()
"""The renderer of memory traces, as `pyproject.toml` names it."""
memory_study = MemoryStudyRenderer()
"""The renderer of memory studies, as `pyproject.toml` names it."""
