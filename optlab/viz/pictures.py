"""Static twins of the figures, drawn by matplotlib from the same views.

A saved notebook shows them where no JavaScript runs: on a code host, in a PDF, in print. They are
made without pyplot and with every font and colour named, so that neither a user's settings nor an
open window is touched.
"""

from __future__ import annotations

from io import BytesIO

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image

from optlab.viz import layout
from optlab.viz.matplotlib_panels import draw_accuracies, draw_curves, draw_map
from optlab.viz.matplotlib_parts import DOTS_PER_INCH, blank, draw_page, panel_axes
from optlab.viz.pages import curves_page, race_page
from optlab.viz.results import ComparisonLike
from optlab.viz.series import accuracy_view, loss_view
from optlab.viz.views import has_map, map_view

_KEPT, _MERGED = 80, 48  # colours of a picture


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
        What `optlab.compare` returned.
    width, height : int
        Size in pixels, as of the interactive figure.
    scale : float
        Pixels of the image for each of these: 2 for print and for fine screens.

    Returns
    -------
    bytes
        The file's content.

    Examples
    --------
    >>> import optlab as ol
    >>> race_png(ol.compare("rosenbrock", {"Adam": ol.optimizer.Adam(0.1)}, steps=20))[:4]
    b'\x89PNG'
    """
    accuracies = accuracy_view(comparison)
    no_map = not has_map(comparison.problem)
    alone = no_map and accuracies is None
    page = (curves_page if alone else race_page)(comparison, width, height)
    figure = blank(page.width, page.height)
    draw_page(figure, page, comparison)
    first = page.panels[0]
    if no_map:
        draw_curves(panel_axes(figure, page, 0), loss_view(comparison, first.width, first.height))
        if accuracies is not None:
            draw_accuracies(panel_axes(figure, page, 1), accuracies)
    else:
        beside = page.panels[1]
        view = map_view(comparison.problem, comparison, first.width, first.height)
        draw_map(panel_axes(figure, page, 0), view)
        draw_curves(panel_axes(figure, page, 1), loss_view(comparison, beside.width, beside.height))
    return as_png(figure, scale)


def as_png(figure: Figure, scale: float) -> bytes:
    """Write a figure with the few colours that it has: a third of the bytes, no visible change."""
    figure.set_dpi(DOTS_PER_INCH * scale)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    pixels = np.ascontiguousarray(np.asarray(canvas.buffer_rgba())[..., :3])
    file = BytesIO()
    _with_few_colors(pixels).save(file, format="PNG", optimize=True)
    return file.getvalue()


def _with_few_colors(pixels: NDArray[np.uint8]) -> Image.Image:
    """Give an image of 128 colours at most: those that it has most of, as they are.

    Left to itself, Pillow merges small patches with large neighbours: a green square of the legend
    comes out blue.
    """
    packed = pixels.astype(np.uint32) @ np.array([1 << 16, 1 << 8, 1], dtype=np.uint32)
    codes, at, counts = np.unique(packed, return_inverse=True, return_counts=True)
    colors = (codes[:, None] >> np.array([16, 8, 0], dtype=np.uint32) & 255).astype(np.uint8)
    order = np.argsort(-counts, kind="stable")
    rank = np.empty(len(codes), dtype=np.intp)
    rank[order] = np.arange(len(codes))
    palette = colors[order[:_KEPT]]
    rest = colors[at[rank[at] >= _KEPT]]
    if len(rest):
        merged = Image.fromarray(rest[None]).quantize(_MERGED, dither=Image.Dither.NONE)
        others = np.array(merged.getpalette(), dtype=np.uint8).reshape(-1, 3)[:_MERGED]
        palette = np.concatenate([palette, others])
    apart = [np.square(colors - one.astype(np.int32)).sum(axis=1) for one in palette]
    nearest = np.argmin(apart, axis=0).astype(np.uint8)
    image = Image.fromarray(nearest[at].reshape(packed.shape))
    image.putpalette(palette.tobytes())
    return image
