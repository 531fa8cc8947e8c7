"""Building blocks of the static images: page, axes, legend, line and marker styles, PNG files."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from io import BytesIO
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, fontManager
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.patheffects import withStroke
from matplotlib.ticker import FixedLocator, FuncFormatter
from numpy.typing import NDArray
from PIL import Image

from optlab.backend.text import encodable
from optlab.viz.protocols import ComparisonLike
from optlab.viz.style import layout, theme
from optlab.viz.style.layout import Page, Panel
from optlab.viz.style.text import format_number, race_headline
from optlab.viz.style.theme import Area, Style
from optlab.viz.views.map_view import Mark, styles_of

DOTS_PER_INCH = 100
PIXEL = 72 / DOTS_PER_INCH  # in points, matplotlib's unit of lines and fonts
_KEPT, _MERGED = 80, 48  # colors of a PNG file: the most frequent, and those merged from the rest
_MARKERS = {
    "circle": "o", "square": "s", "triangle-up": "^", "diamond": "D", "pentagon": "p",
    "triangle-down": "v", "hexagon": "h", "cross": "P", "x": "X", "star": "*",
}  # fmt: skip
_HATCHES = {"/": "////", "x": "xxx", ".": "...", "": None}
# matplotlib and plotly draw diamonds and stars of the same nominal size differently.
_MARKER_SCALE = {"diamond": 0.85, "square": 0.9, "star": 1.35}


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


def font(size: float, weight: str = "normal") -> FontProperties:
    """Return the font of the theme; sizes in pixels."""
    return FontProperties(family=_family(), size=size * PIXEL, weight=weight)


def write(
    figure: Figure,
    page: Page,
    x: float,
    y: float,
    text: str,
    size: float,
    *,
    color: str | None = None,
    weight: str = "normal",
) -> Any:
    """Write at the middle of a line, in pixels from the upper left corner of the page."""
    return figure.text(
        x / page.width, 1 - y / page.height, encodable(text), color=color or theme.INK,
        fontproperties=font(size, weight), va="center_baseline", parse_math=False,
    )  # fmt: skip


def draw_page(figure: Figure, page: Page, comparison: ComparisonLike) -> None:
    """Write title, headline and note of a comparison, and draw its legend."""
    title, headline = comparison.problem.title, race_headline(comparison)
    write_page(figure, page, title, headline, styles_of(comparison))


def write_page(
    figure: Figure, page: Page, title: str, headline: str, styles: Mapping[str, Style]
) -> None:
    """Write title, headline and note, and draw the legend."""
    place: float = layout.TITLE_LINE - 6
    write(figure, page, layout.LEFT, place, title, theme.FONT_TITLE, weight="bold")
    place = layout.HEADLINE_LINE - 4
    write(figure, page, layout.LEFT, place, headline, theme.FONT_TEXT, color=theme.QUIET)
    for at, line in enumerate(page.note):
        place = page.note_line(at)
        write(figure, page, layout.LEFT, place, line, theme.FONT_SMALL, color=theme.QUIET)
    for (x, y), style in zip(write_legend(figure, page, styles), styles.values(), strict=True):
        across = [(x + shift) / page.width for shift in (4, 26, 48)]
        sample = Line2D(
            across,
            [1 - y / page.height] * 3,
            transform=figure.transFigure,
            markevery=[1],
            **line_pen(style),
            **marker_pen(style.marker, theme.END_SIZE, style.color, theme.PAPER, 1.2),
        )
        figure.add_artist(sample)


def write_legend(figure: Figure, page: Page, names: Iterable[str]) -> list[tuple[float, float]]:
    """Write the names of the legend; return left end and middle height of each sample."""
    renderer = FigureCanvasAgg(figure).get_renderer()
    places, next_x = [], float(layout.LEFT)
    for at, name in enumerate(names):
        x, y = page.legend_place(at)
        if not page.entry_width:  # in one row; the layout overestimates the width of names
            x = next_x
        places.append((x, y))
        text = write(figure, page, x + page.sample, y, name, theme.FONT_TEXT)
        with _any_letters():
            next_x = x + page.sample + text.get_window_extent(renderer).width + layout.ENTRY_GAP
    return places


def write_areas(figure: Figure, page: Page, roles: Sequence[tuple[str, str]]) -> None:
    """Draw the legend of memory figures: a square and a name for every role."""
    names = [name for _, name in roles]
    for (x, y), (role, _) in zip(write_legend(figure, page, names), roles, strict=True):
        figure.add_artist(
            Rectangle(
                (x / page.width, 1 - (y + 6.5) / page.height),
                13 / page.width,
                13 / page.height,
                transform=figure.transFigure,
                **area_pen(theme.MEMORY[role]),
            )
        )


def area_pen(area: Area | None) -> dict[str, Any]:
    """Return matplotlib's color and hatch of a role of memory; None stands for other roles."""
    return {
        "facecolor": theme.FRAME if area is None else area.color,
        "edgecolor": (theme.INK, 0.35),
        "hatch": None if area is None else _HATCHES[area.pattern],
        "linewidth": 0,
    }


def panel_axes(figure: Figure, page: Page, at: int) -> Axes:
    """Add the empty axes of a panel."""
    panel: Panel = page.panels[at]
    axes = figure.add_axes(
        (
            panel.left / page.width,
            1 - (panel.top + panel.height) / page.height,
            panel.width / page.width,
            panel.height / page.height,
        )
    )
    axes.set_facecolor(theme.PAPER)
    axes.tick_params(which="both", length=0, pad=4, colors=theme.QUIET)
    for spine in axes.spines.values():
        spine.set(color=theme.FRAME, linewidth=PIXEL)
    return axes


def annotate(
    axes: Axes,
    text: str,
    point: tuple[float, float],
    shift: tuple[float, float],
    size: float = theme.FONT_TEXT,
    *,
    weight: str = "normal",
    **options: Any,
) -> Any:
    """Write a text beside a point of the axes; the shift is in pixels."""
    return axes.annotate(
        encodable(text), point, (shift[0] * PIXEL, shift[1] * PIXEL), textcoords="offset points",
        fontproperties=font(size, weight), parse_math=False,
        **{"va": "center_baseline", "color": theme.INK} | options,
    )  # fmt: skip


def add_heading(axes: Axes, title: str, note: str) -> None:
    """Write title and note above a panel."""
    corner: dict[str, Any] = {"point": (0, 1), "xycoords": "axes fraction"}
    bold = annotate(axes, title, shift=(0, 16), size=theme.FONT_HEADING, weight="bold", **corner)
    width = bold.get_window_extent().width
    shift = (width + 8, 16)
    annotate(axes, note, shift=shift, size=theme.FONT_SMALL, color=theme.QUIET, **corner)


def mark_peak(axes: Axes, peak: tuple[float, float]) -> None:
    """Mark the peak of a memory timeline."""
    axes.plot(
        [peak[0]], [peak[1]], marker="v", markersize=theme.END_SIZE * PIXEL, color=theme.INK,
        markeredgecolor=theme.PAPER, clip_on=False, zorder=5,
    )  # fmt: skip


def style_ticks(axes: Axes, x_name: str, y_name: str = "") -> None:
    """Set the font of the axis numbers, and name each axis at its first number."""
    for axis, name in ((axes.xaxis, x_name), (axes.yaxis, y_name)):
        low, high = sorted(axis.get_view_interval())
        shown = [tick for tick in axis.get_majorticklocs() if low <= tick <= high]
        first = shown[0] if shown else None
        if axis.get_scale() != "log" and not isinstance(axis.get_major_locator(), FixedLocator):

            def text(value: float, _: Any, first: float | None = first, name: str = name) -> str:
                return f"{name if value == first else ''} {format_number(value)}".strip()

            axis.set_major_formatter(FuncFormatter(text))
        for label in axis.get_ticklabels():
            label.set(fontproperties=font(theme.FONT_SMALL), color=theme.QUIET)


def line_pen(style: Style, width: float = theme.LINE_WIDTH) -> dict[str, Any]:
    """Return color, width and dash of a line; matplotlib measures dashes in line widths."""
    dash = (0, tuple(length / width for length in style.dash)) if style.dash else "solid"
    return {
        "color": style.color,
        "linewidth": width * PIXEL,
        "linestyle": dash,
        "dash_capstyle": "butt",
        "solid_joinstyle": "round",
    }


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


_SIDES = {"left": -1, "center": 0, "right": 1, "top": 1, "middle": 0, "bottom": -1}
_ALIGN = {-1: "right", 0: "center", 1: "left"}


def label_mark(axes: Axes, mark: Mark, color: str, size: float, order: float) -> None:
    """Write the text of a mark at its position, if it has one."""
    if mark.position is None:
        return
    vertical, horizontal = mark.position.split()
    right, up = _SIDES[horizontal], _SIDES[vertical]
    away = size / 2 + 2
    annotate(
        axes, mark.text, (mark.x, mark.y), (right * away, up * away), ha=_ALIGN[right],
        va={-1: "top", 0: "center", 1: "bottom"}[up], color=color, path_effects=halo(),
        zorder=order, annotation_clip=False,
    )  # fmt: skip


def put_mark(axes: Axes, mark: Mark, color: str, order: float, **marker: Any) -> None:
    """Draw a mark and its text."""
    pen = marker_pen(**marker)
    axes.plot([mark.x], [mark.y], linestyle="none", clip_on=False, zorder=order, **pen)
    label_mark(axes, mark, color, marker["size"], order + 0.1)


@contextmanager
def _any_letters() -> Iterator[None]:
    """Draw letters that the font does not have as boxes, without a warning for each."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")
        yield


def as_png(figure: Figure, scale: float) -> bytes:
    """Return a figure as a PNG file with a palette: a third of the bytes, no visible change."""
    figure.set_dpi(DOTS_PER_INCH * scale)
    canvas = FigureCanvasAgg(figure)
    with _any_letters():
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
