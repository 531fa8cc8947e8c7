"""The static image of a memory study."""

from __future__ import annotations

from typing import Any

from optlab.viz.backends.matplotlib.draw import draw_png
from optlab.viz.memory_study.figure import recompute_scene
from optlab.viz.memory_study.view import recompute_view
from optlab.viz.memory_timeline.view import WIDTH
from optlab.viz.style import layout


@layout.documented
def recompute_png(
    study: Any, *, width: int = WIDTH, height: int | None = None, scale: float = 1.0
) -> bytes:
    r"""Draw a memory study as a PNG image.

    Parameters
    ----------
    study : MemoryStudy
        The result of `optlab.lab.memory_study`.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> w = ol.to_tensor(np.ones(1000), requires_grad=True)
    >>> step = lambda: np.sum(np.tanh(np.sin(w))).backward()
    >>> recompute_png(ol.lab.memory_study(step, [], ["1 MiB"], repeats=1))[:4]
    b'\x89PNG'
    """
    return draw_png(recompute_scene(recompute_view(study, width, height, "recompute_png")), scale)
