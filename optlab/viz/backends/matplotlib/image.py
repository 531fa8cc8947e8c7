"""Static images: an empty figure, the fonts and markers of the theme, PNG files."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from io import BytesIO
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, fontManager, get_font
from matplotlib.patheffects import withStroke
from matplotlib.textpath import text_to_path
from numpy.typing import NDArray
from PIL import Image

from optlab.backend.text import encodable
from optlab.viz.style import theme

DOTS_PER_INCH = 100
PIXEL = 72 / DOTS_PER_INCH  # in points, matplotlib's unit of lines and fonts
_KEPT, _MERGED = 80, 48  # colors of a PNG file: the most frequent, and those merged from the rest
_MARKERS = {
    "circle": "o", "square": "s", "triangle-up": "^", "diamond": "D", "pentagon": "p",
    "triangle-down": "v", "hexagon": "h", "cross": "P", "x": "X", "x-thin": "x", "star": "*",
}  # fmt: skip
# matplotlib and plotly draw markers of the same nominal size differently.
_MARKER_SCALE = {"diamond": 0.85, "square": 0.9, "star": 1.35, "x-thin": 0.85}


def blank_figure(width: float, height: float) -> Figure:
    """Return an empty figure of this size in pixels."""
    figure = Figure(figsize=(width / DOTS_PER_INCH, height / DOTS_PER_INCH), dpi=DOTS_PER_INCH)
    figure.set_facecolor(theme.PAPER)
    FigureCanvasAgg(figure)
    return figure


@cache
def _family() -> str:
    """Return the first font of the theme that is installed; the last comes with matplotlib."""
    installed = {font.name for font in fontManager.ttflist}
    return next((f for f in theme.FONT_FAMILIES if f in installed), theme.FONT_FAMILIES[-1])


@cache
def _font_file(family: str, weight: str) -> str:
    """Return the file of a font, which matplotlib searches again for every size."""
    return findfont(FontProperties(family=family, weight=weight))


@cache
def _letters(file: str) -> frozenset[int]:
    return frozenset(get_font(file).get_charmap())


def font(size: float, weight: str = "normal", family: str = "", text: str = "") -> FontProperties:
    """Return a font, by default that of the theme; sizes in pixels.

    A text with letters that this one lacks, such as the index of λ₂, is in matplotlib's own font.
    """
    family = family or _family()
    file = _font_file(family, weight)
    if not text.isascii() and not _letters(file).issuperset(map(ord, text.replace("\n", ""))):
        family = theme.FONT_FAMILIES[-1]
        file = _font_file(family, weight)
    return FontProperties(family=family, size=size * PIXEL, weight=weight, fname=file)


@cache
def width_of(text: str, size: float, *, bold: bool = False) -> float:
    """Return the width of a text in pixels, spaces at its ends included.

    Examples
    --------
    >>> width_of("ab ", 12) > width_of("ab", 12) > 0
    True
    """
    kind = font(size, "bold" if bold else "normal", text=text)
    # Between two strokes: the width with the spaces at both ends.
    wide, without = (
        text_to_path.get_text_width_height_descent(encodable(one), kind, ismath=False)[0]
        for one in (f"|{text}|", "||")
    )
    return float(wide - without) / PIXEL


def marker_pen(name: str, size: float, face: str, edge: str, edge_width: float) -> dict[str, Any]:
    """Return matplotlib's options of a marker; sizes in pixels."""
    return {
        "marker": _MARKERS[name],
        "markersize": size * PIXEL * _MARKER_SCALE.get(name, 1.0),
        "markerfacecolor": face,
        "markeredgecolor": edge,
        "markeredgewidth": edge_width * PIXEL,
    }


def halo(width: float = 2.5) -> list[Any]:
    """Return a path effect that keeps text readable over lines."""
    return [withStroke(linewidth=width * PIXEL, foreground=theme.PAPER)]


@contextmanager
def any_letters() -> Iterator[None]:
    """Draw letters that the font does not have as boxes, without a warning for each."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        yield


def as_png(figure: Figure, scale: float) -> bytes:
    """Return a figure as a PNG file with a palette: a third of the bytes, no visible change."""
    figure.set_dpi(DOTS_PER_INCH * scale)
    canvas = FigureCanvasAgg(figure)
    with any_letters():
        canvas.draw()
    pixels = np.ascontiguousarray(np.asarray(canvas.buffer_rgba())[..., :3])
    file = BytesIO()
    _with_few_colors(pixels).save(file, format="PNG", optimize=True)
    return file.getvalue()


def _with_few_colors(pixels: NDArray[np.uint8]) -> Image.Image:
    """Reduce an image to at most 128 colors; its most frequent ones stay exact.

    Pillow's own quantization merges small patches with large neighbors: a green square of the
    legend turns blue.
    """
    red, green, blue = np.moveaxis(pixels.astype(np.uint32), -1, 0)
    packed = ((red << 16) | (green << 8) | blue).ravel()
    # Neighbors mostly have one color: of each run of equal pixels the first is sorted.
    first = np.flatnonzero(np.diff(packed, prepend=packed[:1] + 1))
    lengths = np.diff(first, append=len(packed))
    codes, at = np.unique(packed[first], return_inverse=True)
    counts = np.bincount(at, lengths).astype(np.intp)
    at = np.repeat(at, lengths)
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
    image = Image.fromarray(nearest[at].reshape(pixels.shape[:2]))
    image.putpalette(palette.tobytes())
    return image
