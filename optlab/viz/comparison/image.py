"""Static images of races."""

from __future__ import annotations

from optlab.viz.backends.matplotlib.draw import draw_png
from optlab.viz.comparison.figure import race_scene
from optlab.viz.protocols import ComparisonLike
from optlab.viz.style import layout


@layout.documented
def race_png(
    comparison: ComparisonLike,
    *,
    width: int = layout.WIDTH,
    height: int = layout.HEIGHT,
    scale: float = 1.0,
) -> bytes:
    r"""Draw a race as a PNG image.

    Parameters
    ----------
    comparison : Comparison
        The result of `optlab.compare`.

    Examples
    --------
    >>> import optlab as ol
    >>> race_png(ol.compare("rosenbrock", {"Adam": ol.optimizer.Adam(0.1)}, steps=20))[:4]
    b'\x89PNG'
    """
    return draw_png(race_scene(comparison, width, height), scale)
