"""Building blocks of the plotly figures: page, axes, legend, line and marker styles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go

from optlab.viz.protocols import ComparisonLike
from optlab.viz.style import layout, theme
from optlab.viz.style.geometry import Floats
from optlab.viz.style.layout import Page, Panel
from optlab.viz.style.theme import Area, Style
from optlab.viz.views.map_view import Mark, styles_of

CLOUD_BUTTON = "sendChartToCloud"
"""plotly's button that uploads the chart; removed, so that no data leaves the machine."""
CONFIG: dict[str, Any] = {
    "displaylogo": False,
    "showSendToCloud": False,
    "modeBarButtonsToRemove": [CLOUD_BUTTON, "select2d", "lasso2d", "autoScale2d"],
}
"""plotly's configuration of all figures."""

_FONT = ", ".join((*theme.FONT_FAMILIES, "sans-serif"))
_AROUND = ((1, 0), (-1, 0), (0, 1), (0, -1), (0, 0))


def empty_figure(page: Page, title: str, headline: str) -> go.Figure:
    """Return a figure with title, headline and note, without data."""
    margin = {"l": layout.LEFT, "r": layout.RIGHT, "t": page.top, "b": page.bottom, "pad": 0}
    figure = go.Figure(
        layout={
            # Without plotly's default template: the theme is complete, and the figure is smaller.
            "template": "none",
            "width": page.width,
            "height": page.height,
            "margin": margin,
            "paper_bgcolor": theme.PAPER,
            "plot_bgcolor": theme.PAPER,
            "font": {"family": _FONT, "size": theme.FONT_TEXT, "color": theme.INK},
            "title": {
                "text": f"<b>{title}</b>",
                "font": {"size": theme.FONT_TITLE},
                "x": layout.LEFT / page.width,
                "xanchor": "left",
                "y": 1 - layout.TITLE_LINE / page.height,
                "yanchor": "bottom",
            },
            "hovermode": "closest",
            "hoverlabel": {"bgcolor": theme.PAPER, "font": {"color": theme.INK}},
            "modebar": {
                "remove": CONFIG["modeBarButtonsToRemove"],
                "color": theme.QUIET,
                "activecolor": theme.INK,
                "bgcolor": theme.with_opacity(theme.PAPER, 0),
            },
            "legend": {
                "orientation": "h",
                "x": (layout.LEFT - _before_sample(page)) / page.width,
                "xref": "container",
                "xanchor": "left",
                "y": 1 - (layout.LEGEND_LINE - layout.LEGEND_ROW / 2) / page.height,
                "yref": "container",
                "yanchor": "top",
                "entrywidth": max(0, page.entry_width - _item_width(page) - 14),
                "itemwidth": _item_width(page),
                "tracegroupgap": 0,
                "font": {"size": theme.FONT_TEXT},
                "bgcolor": theme.with_opacity(theme.PAPER, 0),
            },
        }
    )
    lines: list[tuple[str, float, int]]
    lines = [(headline, layout.HEADLINE_LINE - 4, theme.FONT_TEXT)]
    lines += [(text, page.note_line(at), theme.FONT_SMALL) for at, text in enumerate(page.note)]
    for text, middle, size in lines:
        figure.add_annotation(
            text=text,
            font={"size": size, "color": theme.QUIET},
            **page_anchor(page, layout.LEFT, middle),
        )
    return figure


def _item_width(page: Page) -> float:
    """Return the width of a legend sample, 10 pixels before its name; plotly needs at least 30."""
    return max(30.0, page.sample - 10)


def _before_sample(page: Page) -> float:
    """Return the pixels that plotly leaves free before a sample centered in a wider one."""
    return 13.0 if page.sample == layout.SQUARE_SAMPLE else 0.0


def page_anchor(page: Page, x: float, y: float) -> dict[str, Any]:
    """Return the position of an annotation, in pixels from the upper left corner of the page."""
    return {
        "xref": "paper",
        "yref": "paper",
        "x": 0,
        "y": 1,
        "xshift": x - layout.LEFT,
        "yshift": page.top - y,
        "xanchor": "left",
        "yanchor": "middle",
        "showarrow": False,
        "align": "left",
        "borderpad": 0,
    }


def add_heading(figure: go.Figure, page: Page, at: int, title: str, note: str) -> None:
    """Write title and note above a panel."""
    panel = page.panels[at]
    figure.add_annotation(
        text=f'<b>{title}</b>  <span style="color:{theme.QUIET};font-size:{theme.FONT_SMALL}px">'
        f"{note}</span>",
        font={"size": theme.FONT_HEADING},
        **page_anchor(page, panel.left, panel.top - 16),
    )


def _domain(page: Page, panel: Panel) -> list[float]:
    across = page.width - layout.LEFT - layout.RIGHT
    left = (panel.left - layout.LEFT) / across
    return [left, min(1.0, left + panel.width / across)]


def axis_names(at: int) -> tuple[str, str]:
    """Return plotly's names for the axes of panel number `at`."""
    return ("x", "y") if at == 0 else (f"x{at + 1}", f"y{at + 1}")


def put_axes(figure: go.Figure, page: Page, at: int, x: dict[str, Any], y: dict[str, Any]) -> None:
    """Place the axes of a panel on the page."""
    x_name, y_name = axis_names(at)
    common = {
        "zeroline": False,
        "ticks": "",
        "tickfont": {"size": theme.FONT_SMALL, "color": theme.QUIET},
        "gridcolor": theme.RULE,
    }
    suffix = x_name[1:]
    figure.update_layout(
        {
            f"xaxis{suffix}": {
                **common,
                "domain": _domain(page, page.panels[at]),
                "anchor": y_name,
                **x,
            },
            f"yaxis{suffix}": {**common, "domain": [0, 1], "anchor": x_name, **y},
        }
    )


def axis_name_prefix(name: str) -> dict[str, Any]:
    """Return the options that name an axis at its first number, where the eye starts to read."""
    return {"tickprefix": f"{name} ", "showtickprefix": "first"}


def dash_text(style: Style) -> str:
    """Format a dash for plotly."""
    return ",".join(f"{length:g}px" for length in style.dash) or "solid"


def add_legend(figure: go.Figure, comparison: ComparisonLike) -> None:
    """Add a legend entry per optimizer, with line and marker, that toggles all its traces."""
    add_entries(figure, styles_of(comparison))


def add_entries(figure: go.Figure, styles: Mapping[str, Style]) -> None:
    """Add a legend entry for every name."""
    for name, style in styles.items():
        figure.add_scatter(
            x=[None],
            y=[None],
            name=name,
            legendgroup=name,
            mode="lines+markers",
            line={"color": style.color, "width": theme.LINE_WIDTH, "dash": dash_text(style)},
            marker=end_marker(style),
            hoverinfo="skip",
        )


def add_areas(figure: go.Figure, roles: Iterable[tuple[str, str]]) -> None:
    """Add a legend square for every role of memory that toggles its traces."""
    for role, name in roles:
        figure.add_scatter(
            x=[None],
            y=[None],
            name=name,
            legendgroup=role,
            mode="markers",
            marker={"symbol": "square", "size": 13, "color": theme.MEMORY[role].color},
            hoverinfo="skip",
        )


def area_pattern(area: Area | None, size: int = 7) -> dict[str, Any]:
    """Return plotly's fill pattern of a role of memory; None stands for other roles."""
    return {
        "shape": "" if area is None else area.pattern,
        "fgcolor": theme.with_opacity(theme.INK, 0.35),
        "bgcolor": theme.FRAME if area is None else area.color,
        "size": size,
        "solidity": 0.18,
    }


def end_marker(
    style: Style, *, hollow: bool = False, size: float = theme.END_SIZE
) -> dict[str, Any]:
    """Return the end marker of a run; hollow if it left the panel or stopped early."""
    return {
        "symbol": style.marker,
        "size": size,
        "color": theme.PAPER if hollow else style.color,
        "line": {"color": style.color if hollow else theme.PAPER, "width": 2.0 if hollow else 1.2},
        "opacity": 1,
    }


def add_peak(figure: go.Figure, peak: tuple[float, float], **axes: str) -> None:
    """Mark the peak of a memory timeline."""
    marker = {"symbol": "triangle-down", "size": theme.END_SIZE, "color": theme.INK}
    figure.add_scatter(
        x=[peak[0]], y=[peak[1]], mode="markers", cliponaxis=False, showlegend=False,
        marker=marker | {"line": {"color": theme.PAPER, "width": 1.2}}, hoverinfo="skip", **axes,
    )  # fmt: skip


def add_tips(
    figure: go.Figure, x: Floats, y: Floats, tips: Sequence[str], size: int, **axes: str
) -> None:
    """Add invisible points with a text each, shown while the mouse is near."""
    figure.add_scatter(
        x=x, y=y, mode="markers", marker={"opacity": 0, "size": size}, showlegend=False,
        text=tips, hovertemplate="%{text}<extra></extra>", **axes,
    )  # fmt: skip


def as_float32(values: Floats) -> Any:
    """Convert to float32, finer than any screen: it halves the size of a figure."""
    return np.asarray(values, dtype=np.float32)


def thousandths(height: Floats) -> Any:
    """Convert heights to thousandths of a decade, in 16-bit integers if possible: half the size."""
    scaled = np.rint(1000 * height)
    whole = bool(np.isfinite(scaled).all()) and np.abs(scaled).max() < 2**15
    return scaled.astype(np.int16) if whole else as_float32(scaled)


def label_font(color: str) -> dict[str, Any]:
    """Return the font of a label, with a halo to be readable over lines."""
    halo = ", ".join(f"{x}px {y}px 2px {theme.PAPER}" for x, y in _AROUND)
    return {"size": theme.FONT_TEXT, "color": color, "shadow": halo}


def mark_text(mark: Mark) -> dict[str, Any]:
    """Return the options of a scatter trace for the text of a mark; no text without a position."""
    if mark.position is None:
        return {"mode": "markers"}
    return {
        "mode": "markers+text",
        "text": [mark.text.replace("\n", "<br>")],
        "textposition": mark.position,
    }
