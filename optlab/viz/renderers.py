"""What `optlab.viz` declares to the display registry: who draws which kind of result."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from optlab.viz.figures import CONFIG, race
from optlab.viz.memories import memory as draw_memory
from optlab.viz.memories import memory_png
from optlab.viz.pictures import race_png
from optlab.viz.recomputations import recompute
from optlab.viz.recompute_pictures import recompute_png
from optlab.viz.schedules import is_foreseen, schedule_png
from optlab.viz.schedules import schedule as draw_schedule
from optlab.viz.words import summary

_SIZE = {"width": 850, "height": 440}
"""Of picture and figure alike, in pixels. JupyterLab shows the stored picture until the mouse
enters it, and never scales it: it has to fit beside the file browser of a small screen."""
_SMALL = {"width": 640, "height": 340}
"""The same for a schedule, of which a notebook may show several."""


@dataclass(frozen=True)
class Renderer:
    """Draws results of one kind.

    Attributes
    ----------
    draw, picture : callable
        Give the interactive figure of a result, and its static twin as a PNG image.
    size : dict
        Their options in a notebook.
    say : callable
        Gives a result in words, for a terminal and for those who see no pictures.
    has_picture : callable
        Whether there is something to draw: else a notebook stores words alone.
    """

    draw: Callable[..., Any]
    picture: Callable[..., bytes]
    size: dict[str, int] = field(default_factory=lambda: _SIZE)
    say: Callable[[Any], str] = str
    has_picture: Callable[[Any], bool] = lambda result: True

    def figure(self, result: Any, /, **options: Any) -> Any:
        """Return the interactive figure of a result; the options are those of `draw`."""
        return self.draw(result, **options)

    def save(self, result: Any, path: Path, /) -> None:
        """Write a result to a file: ``.png``, or ``.html`` with the live figure."""
        if path.suffix == ".png":
            path.write_bytes(self.picture(result, scale=2))
        elif path.suffix == ".html":
            self.draw(result).write_html(path, config=CONFIG)
        else:
            raise ValueError(f"the name must end in .png or .html; got {path.name!r}.")

    def mimebundle(self, result: Any, /) -> dict[str, Any]:
        """Return a result as a notebook stores it.

        The interactive figure for a living notebook, the picture for one that is only read, and
        the result in words; as a table, too, if it has one.

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
        found: dict[str, Any] = {"text/plain": self.say(result)}
        if hasattr(result, "_repr_html_"):
            found["text/html"] = result._repr_html_()
        if self.has_picture(result):
            drawn = json.loads(self.draw(result, **self.size).to_json())
            picture = self.picture(result, **self.size)
            found["application/vnd.plotly.v1+json"] = {**drawn, "config": CONFIG}
            found["image/png"] = base64.b64encode(picture).decode("ascii")
        return found


comparison = Renderer(race, race_png, say=summary)
"""The renderer of comparisons, as `pyproject.toml` names it."""
schedule = Renderer(
    draw_schedule, schedule_png, _SMALL, repr, is_foreseen
)  # fmt: skip
"""The renderer of schedules: those whose rates do not depend on what will be measured."""
memory = Renderer(
    draw_memory, memory_png, has_picture=lambda trace: len(trace) > 1
)  # fmt: skip
"""The renderer of memory traces; before its block is left there is nothing to draw yet."""
memory_study = Renderer(recompute, recompute_png, {"width": _SIZE["width"]})
"""The renderer of memory studies; a study is as high as it has runs."""
