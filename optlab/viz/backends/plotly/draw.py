"""Scenes as interactive figures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import singledispatch
from typing import Any

import numpy as np
import plotly.graph_objects as go

from optlab.viz.backends.scene import (
    HIDDEN,
    Area,
    Arrow,
    Axis,
    Band,
    Bars,
    Boxes,
    Contour,
    Fill,
    HeatMap,
    Line,
    Mark,
    Marker,
    Panel,
    Pen,
    Points,
    Region,
    Rule,
    Scene,
    Text,
    end_marker,
    pen_of,
)
from optlab.viz.style import layout, theme
from optlab.viz.style.labels import escaped
from optlab.viz.style.layout import Page
from optlab.viz.style.theme import Style

CLOUD_BUTTON = "sendChartToCloud"
"""plotly's button that uploads the chart; removed, so that no data leaves the machine."""
CONFIG: dict[str, Any] = {
    "displaylogo": False,
    "showSendToCloud": False,
    "modeBarButtonsToRemove": [CLOUD_BUTTON, "select2d", "lasso2d", "autoScale2d"],
}
"""plotly's configuration of all figures."""
FONT = ", ".join((*theme.FONT_FAMILIES, "sans-serif"))
"""The font of all figures."""

_AROUND = ((1, 0), (-1, 0), (0, 1), (0, -1), (0, 0))
_PLACES = ("x", "y", "text")  # what differs among marks of one look
_ANYWHERE = Panel(HIDDEN, HIDDEN, [])
_BLANK = "\u00a0"  # plotly strips plain spaces
_BLANK_WIDTH = 0.28  # relative to the size of the font


def draw(scene: Scene) -> go.Figure:
    """Return the interactive figure of a scene."""
    page = scene.page
    drawn: dict[str, Any] = {"data": _legend(scene), "annotations": _texts(scene), "shapes": []}
    axes: dict[str, Any] = {}
    for at, panel in enumerate(scene.panels):
        x_name, y_name = ("x", "y") if at == 0 else (f"x{at + 1}", f"y{at + 1}")
        axes[f"xaxis{x_name[1:]}"] = _x_axis(panel, page, at) | {"anchor": y_name}
        y_axis = _y_axis(panel, page, at) | {"anchor": x_name}
        if panel.equal:
            y_axis |= {"scaleanchor": x_name, "scaleratio": 1}
        axes[f"yaxis{y_name[1:]}"] = y_axis
        for mark in panel.marks:
            for kind, one in _drawn(mark, panel):
                names = {"xaxis": x_name, "yaxis": y_name}
                if kind == "annotations":
                    names = {"xref": x_name, "yref": y_name}
                    if one["showarrow"]:
                        names |= {"axref": x_name, "ayref": y_name}
                elif kind == "shapes":
                    names = {"xref": x_name, "yref": y_name}
                    names["yref" if one["x0"] == one["x1"] else "xref"] += " domain"
                elif "stackgroup" in one:
                    names["stackgroup"] = f"panel {at}"
                drawn[kind].append(one | names)
    return go.Figure(
        data=drawn.pop("data"),
        layout={
            # Without plotly's default template: the theme is complete, and the figure is smaller.
            "template": "none",
            **page_options(page.width, page.height),
            "margin": {
                "l": layout.LEFT, "r": layout.RIGHT, "t": page.top, "b": page.bottom, "pad": 0
            },
            "title": {
                "text": f"<b>{escaped(scene.title)}</b>",
                "font": {"size": theme.FONT_TITLE},
                "x": layout.LEFT / page.width,
                "xanchor": "left",
                "y": 1 - layout.TITLE_LINE / page.height,
                "yanchor": "bottom",
            },
            "hovermode": scene.hover,
            "barmode": "overlay",
            "legend": _legend_place(page),
            **axes,
            **drawn,
        },
    )  # fmt: skip


def page_options(width: float, height: float) -> dict[str, Any]:
    """Return size, paper, fonts and buttons, which all figures share."""
    return {
        "width": width,
        "height": height,
        "paper_bgcolor": theme.PAPER,
        "plot_bgcolor": theme.PAPER,
        "font": {"family": FONT, "size": theme.FONT_TEXT, "color": theme.INK},
        "hoverlabel": {"bgcolor": theme.PAPER, "font": {"color": theme.INK}},
        "modebar": {
            "remove": CONFIG["modeBarButtonsToRemove"],
            "color": theme.QUIET,
            "activecolor": theme.INK,
            "bgcolor": theme.with_opacity(theme.PAPER, 0),
        },
    }


def _texts(scene: Scene) -> list[dict[str, Any]]:
    """Return the headline, the note, and the headings of the panels."""
    page = scene.page
    lines: list[tuple[str, float, float, int]]
    left = layout.LEFT
    lines = [(scene.headline, left, layout.HEADLINE_LINE - 4, theme.FONT_TEXT)]
    lines += [(t, left, page.note_line(at), theme.FONT_SMALL) for at, t in enumerate(page.note)]
    found = [
        _on_page(page, x, y, escaped(text), {"size": size, "color": theme.QUIET})
        for text, x, y, size in lines
    ]
    for panel, place in zip(scene.panels, page.panels, strict=True):
        if panel.heading:
            text = (
                f'<b>{escaped(panel.heading)}</b>  <span style="color:{theme.QUIET};'
                f'font-size:{theme.FONT_SMALL}px">{escaped(panel.note)}</span>'
            )
            font = {"size": theme.FONT_HEADING}
            found.append(_on_page(page, place.left, place.top - 16, text, font))
    return found


def _on_page(page: Page, x: float, y: float, text: str, font: dict[str, Any]) -> dict[str, Any]:
    """Return a text, in pixels from the upper left corner of the page."""
    return {
        "text": text,
        "font": font,
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


def _legend(scene: Scene) -> list[dict[str, Any]]:
    """Return an empty trace for each entry of the legend, which switches all marks of its group."""
    found = []
    for group, (name, sample) in scene.legend.items():
        look: dict[str, Any] = {"mode": "lines+markers"}
        if isinstance(sample, Style):
            look |= {"line": _line(pen_of(sample)), "marker": _marker(end_marker(sample))}
        elif isinstance(sample, Fill):
            look = {"mode": "markers"}
            look |= {"marker": {"symbol": "square", "size": 13, "color": sample.color}}
        else:
            look = {"mode": "lines", "line": _line(sample)}
        found.append(
            {"type": "scatter", "x": [None], "y": [None], "name": escaped(name),
             "legendgroup": group, "hoverinfo": "skip", **look}
        )  # fmt: skip
    return found


def _legend_place(page: Page) -> dict[str, Any]:
    # plotly draws a sample at least 30 wide, 10 before its name, and centers narrower ones.
    item = max(30.0, page.sample - 10)
    before = 13.0 if page.sample == layout.SQUARE_SAMPLE else 0.0
    return {
        "orientation": "h",
        "x": (layout.LEFT - before) / page.width,
        "xref": "container",
        "xanchor": "left",
        "y": 1 - (layout.LEGEND_LINE - layout.LEGEND_ROW / 2) / page.height,
        "yref": "container",
        "yanchor": "top",
        "entrywidth": max(0, page.entry_width - item - 14),
        "itemwidth": item,
        "tracegroupgap": 0,
        "font": {"size": theme.FONT_TEXT},
        "bgcolor": theme.with_opacity(theme.PAPER, 0),
    }


def _x_axis(panel: Panel, page: Page, at: int) -> dict[str, Any]:
    across, place = page.width - layout.LEFT - layout.RIGHT, page.panels[at]
    left = (place.left - layout.LEFT) / across
    lined = panel.frame in ("box", "open", "below")
    found: dict[str, Any] = {
        "domain": [left, min(1.0, left + place.width / across)],
        "tickangle": 0,
    }
    if panel.equal:
        found |= {"constrain": "domain", "constraintoward": "left"}
    return found | _axis(panel.x, panel.frame, lined)


def _y_axis(panel: Panel, page: Page, at: int) -> dict[str, Any]:
    first, place = page.panels[0], page.panels[at]
    low = 1 - (place.top + place.height - first.top) / first.height
    high = 1 - (place.top - first.top) / first.height
    lined = panel.frame in ("box", "open", "left")
    found: dict[str, Any] = {"domain": [max(0.0, low), min(1.0, high)]}
    if panel.equal:
        found |= {"constrain": "domain"}
    return found | _axis(panel.y, panel.frame, lined)


def _axis(axis: Axis, frame: str, lined: bool) -> dict[str, Any]:
    found: dict[str, Any] = {"range": [axis.low, axis.high], "zeroline": False, "showgrid": False}
    if not axis.shown:
        return found | {"visible": False, "fixedrange": True}
    font: dict[str, Any] = {"size": theme.FONT_SMALL, "color": theme.QUIET}
    if axis.loud:
        font = {"size": theme.FONT_TEXT, "color": theme.INK}
    found |= {"ticks": "", "tickfont": font, "type": axis.scale, "ticklabelstandoff": 3}
    if lined:
        found |= {"showline": True, "linecolor": theme.FRAME, "mirror": frame == "box"}
    if axis.grid:
        found |= {"showgrid": True, "gridcolor": theme.RULE}
    if axis.zero:
        found |= {"zeroline": True, "zerolinecolor": theme.FRAME}
    if not axis.numbers:
        found["showticklabels"] = False
    if axis.numbered is not None:
        found |= {"tickvals": [place for place, _ in axis.numbered]}
        found |= {"ticktext": [escaped(text) for _, text in axis.numbered]}
    elif axis.scale == "log":
        # Whole decades only: 2 and 5 between them would be taken for decades.
        found |= {"dtick": max(1, round((axis.high - axis.low) / 6)), "exponentformat": "power"}
        # plotly draws powers a quarter larger than other numbers.
        found["tickfont"] = font | {"size": theme.FONT_SMALL / 1.25}
    else:
        found["nticks"] = axis.count + 1
    if axis.whole:
        found["tickformat"] = ",d"
    if axis.name:
        found |= {"tickprefix": f"{axis.name} "}
        found |= {"showtickprefix": "last" if axis.low > axis.high else "first"}
    if axis.suffix:
        found |= {"ticksuffix": axis.suffix, "showticksuffix": "all"}
    if axis.right:
        found |= {"side": "right", "fixedrange": True}
    return found


def _line(pen: Pen) -> dict[str, Any]:
    color = pen.color if pen.opacity == 1 else theme.with_opacity(pen.color, pen.opacity)
    dash = ",".join(f"{length:g}px" for length in pen.dash) or "solid"
    return {"color": color, "width": pen.width, "dash": dash}


def _marker(marker: Marker) -> dict[str, Any]:
    face = "rgba(0, 0, 0, 0)" if marker.face == "none" else marker.face
    edge = {"color": marker.edge or face, "width": marker.edge_width}
    return {"symbol": marker.name, "size": marker.size, "color": face, "line": edge}


def _font(color: str, size: float = theme.FONT_TEXT, halo: bool = True) -> dict[str, Any]:
    """Return the font of a label, with a halo to be readable over lines."""
    found: dict[str, Any] = {"size": size, "color": color}
    if halo:
        found["shadow"] = ", ".join(f"{x}px {y}px 2px {theme.PAPER}" for x, y in _AROUND)
    return found


def _short(values: Any) -> Any:
    """Convert to float32, finer than any screen: it halves the size of a figure.

    Not single points, which may lie on the border of a panel.
    """
    return list(values) if len(values) < 3 else np.asarray(values, dtype=np.float32)


def _thousandths(height: Any) -> Any:
    """Convert heights to thousandths of a decade, in 16-bit integers if possible: half the size."""
    scaled = np.rint(1000 * height)
    whole = bool(np.isfinite(scaled).all()) and np.abs(scaled).max() < 2**15
    return scaled.astype(np.int16) if whole else _short(scaled)


def _scatter(mark: Line | Points, **more: Any) -> tuple[str, dict[str, Any]]:
    found: dict[str, Any] = {"type": "scatter", "x": _short(mark.x), "y": _short(mark.y)}
    found |= {"showlegend": False, "cliponaxis": mark.clip}
    if mark.group:
        found |= {"legendgroup": mark.group, "name": escaped(mark.group)}
    if mark.hover:
        found["hovertemplate"] = f"{mark.hover}<extra></extra>"
    else:
        found["hoverinfo"] = "skip"
    if len(mark.tips):
        found["text"] = mark.tips
    return "data", found | more


@singledispatch
def _drawn(mark: Mark, panel: Panel) -> list[tuple[str, dict[str, Any]]]:
    """Return what plotly draws of a mark: traces ("data"), "annotations" and "shapes"."""
    raise TypeError(f"{type(mark).__name__} is no mark.")


@_drawn.register
def _(mark: Line, panel: Panel) -> list[tuple[str, dict[str, Any]]]:
    # Lines are already simplified to less than a pixel; plotly's own is coarser.
    line = _line(mark.pen) | {"simplify": False}
    if mark.stepped:
        line["shape"] = "vh"
    return [_scatter(mark, mode="lines", line=line)]


@_drawn.register
def _(mark: Points, panel: Panel) -> list[tuple[str, dict[str, Any]]]:
    more: dict[str, Any] = {"mode": "markers"}
    if mark.marker is None:
        more["marker"] = {"opacity": 0, "size": 2}
    else:
        opacity = mark.marker.opacity
        more["marker"] = _marker(mark.marker) | {"opacity": opacity}
        if mark.seen is not None:
            shown = mark.seen.astype(np.uint8)
            more["marker"]["opacity"] = shown if opacity == 1 else opacity * shown
        if len(mark.faces):
            more["marker"]["color"] = list(mark.faces)
    if mark.data:
        more["customdata"] = np.stack([_short(column) for column in mark.data], axis=1)
    if mark.text and mark.side is not None:
        more |= {"mode": "markers+text", "text": [escaped(mark.text).replace("\n", "<br>")]}
        more |= {"textposition": mark.side, "textfont": _font(mark.ink)}
    return [_scatter(mark, **more)]


@_drawn.register
def _(mark: Text, panel: Panel) -> list[tuple[str, dict[str, Any]]]:
    if mark.group:  # plotly hides traces with their group, not annotations
        return [_text_trace(mark)]
    text, font = _written(mark), _font(mark.ink, mark.size, mark.halo)
    box = {"bgcolor": theme.with_opacity(theme.PAPER, mark.ground)} if mark.ground else {}
    return [(
        "annotations",
        {
            "x": _of_annotation(mark.x, panel.x), "y": _of_annotation(mark.y, panel.y),
            "text": text, "font": font,
            "showarrow": False, "xanchor": mark.across, "yanchor": mark.up, "xshift": mark.shift[0],
            "yshift": mark.shift[1], "textangle": -mark.angle, "borderpad": int(bool(box)),
            "align": mark.across, "opacity": mark.opacity, **box,
        },
    )]  # fmt: skip


def _written(mark: Text) -> str:
    text = escaped(mark.text).replace("\n", "<br>")
    return f"<b>{text}</b>" if mark.bold else text


def _text_trace(mark: Text) -> tuple[str, dict[str, Any]]:
    """Return a text as a trace."""
    right = {"left": "right", "right": "left", "center": "center"}[mark.across]
    down = {"top": "bottom", "bottom": "top", "middle": "middle"}[mark.up]
    text, blanks = _written(mark), _BLANK * round(abs(mark.shift[0]) / (_BLANK_WIDTH * mark.size))
    text = text + blanks if mark.across == "right" else blanks + text
    points = Points([mark.x], [mark.y], None, group=mark.group, clip=False)
    options = {"mode": "text", "text": [text], "textposition": f"{down} {right}"}
    font = _font(mark.ink, mark.size, mark.halo)
    return _scatter(points, textfont=font, opacity=mark.opacity, **options)


def traces_of(marks: Sequence[Line | Region | Text]) -> dict[str, dict[str, Any]]:
    """Return marks as traces, by their look: many marks of one look are one trace.

    Places are rounded to hundredths.

    Examples
    --------
    >>> pen = Pen("#000000")
    >>> [trace] = traces_of([Line([0, 1], [0, 2], pen), Line([5, 6], [7, 8], pen)]).values()
    >>> trace["x"]
    [0.0, 1.0, None, 5.0, 6.0, None]
    """
    found: dict[str, dict[str, Any]] = {}
    for mark in marks:
        is_text = isinstance(mark, Text)
        [(_, trace)] = [_text_trace(mark)] if isinstance(mark, Text) else _drawn(mark, _ANYWHERE)
        look = repr([(name, value) for name, value in trace.items() if name not in _PLACES])
        one = found.setdefault(look, trace | {name: [] for name in _PLACES if name in trace})
        for name in ("x", "y"):
            rounded = np.asarray(trace[name], dtype=np.float64).round(2).tolist()
            one[name] += [None if value != value else value for value in rounded]
            one[name] += [] if is_text else [None]
        if is_text:
            one["text"] += trace["text"]
    return found


def _of_annotation(value: float, axis: Axis) -> float:
    """Return a coordinate of an annotation, which alone is a power of ten on a log axis."""
    return math.log10(value) if axis.scale == "log" else value


@_drawn.register
def _(mark: Rule, panel: Panel) -> list[tuple[str, dict[str, Any]]]:
    across = "y" if mark.along == "x" else "x"
    ends = {f"{mark.along}0": mark.at, f"{mark.along}1": mark.at, f"{across}0": 0, f"{across}1": 1}
    layer = {"layer": "below"} if mark.below else {}
    return [("shapes", {"type": "line", "line": _line(mark.pen), **ends, **layer})]


@_drawn.register
def _(mark: Area, panel: Panel) -> list[tuple[str, dict[str, Any]]]:
    line = Line(mark.x, mark.high - mark.low, mark.edge or Pen(theme.PAPER, 0), group=mark.group)
    return [_scatter(
        line, mode="lines", stackgroup="", line=_line(line.pen), fillcolor=mark.fill.color,
        fillpattern=_pattern(mark.fill),
    )]  # fmt: skip


@_drawn.register
def _(mark: Band, panel: Panel) -> list[tuple[str, dict[str, Any]]]:
    around = Line(
        np.concatenate([mark.x, mark.x[::-1]]), np.concatenate([mark.high, mark.low[::-1]]),
        Pen(mark.color, 0), group=mark.group,
    )  # fmt: skip
    color = theme.with_opacity(mark.color, mark.opacity)
    return [_scatter(
        around, mode="lines", line={"width": 0}, fill="toself", fillcolor=color, hoverinfo="skip",
    )]  # fmt: skip


@_drawn.register
def _(mark: Boxes, panel: Panel) -> list[tuple[str, dict[str, Any]]]:
    fills = mark.fills if len(mark.fills) > 1 else [*mark.fills] * len(mark.x0)
    found = []
    for x0, y0, x1, y1, fill in zip(mark.x0, mark.y0, mark.x1, mark.y1, fills, strict=True):
        x, y = np.array([x0, x1, x1, x0, x0]), np.array([y0, y0, y1, y1, y0])
        found += _drawn(Region(x, y, fill, mark.edge, mark.opacity), panel)
    return found


@_drawn.register
def _(mark: Region, panel: Panel) -> list[tuple[str, dict[str, Any]]]:
    outline = Line(mark.x, mark.y, mark.edge or Pen(mark.fill.color, 0))
    return [_scatter(
        outline, mode="lines", line=_line(outline.pen), fill="toself", hoverinfo="skip",
        fillcolor=_clear(mark.fill.color, mark.opacity), fillpattern=_pattern(mark.fill),
    )]  # fmt: skip


def _clear(color: str, opacity: float) -> str:
    return color if opacity == 1 else theme.with_opacity(color, opacity)


@_drawn.register
def _(mark: Arrow, panel: Panel) -> list[tuple[str, dict[str, Any]]]:
    pens = [mark.pen]
    if mark.halo:
        pens.insert(0, Pen(theme.PAPER, mark.pen.width + 2.8, opacity=mark.pen.opacity))
    return [(
        "annotations",
        {
            "x": _of_annotation(mark.x1, panel.x), "y": _of_annotation(mark.y1, panel.y),
            "ax": _of_annotation(mark.x0, panel.x), "ay": _of_annotation(mark.y0, panel.y),
            "text": "",
            "showarrow": True, "arrowhead": 2, "arrowwidth": pen.width, "arrowcolor": pen.color,
            "arrowsize": max(0.3, mark.head[1] / (2 * pen.width)), "opacity": pen.opacity,
        },
    ) for pen in pens]  # fmt: skip


def _pattern(fill: Fill) -> dict[str, Any]:
    return {
        "shape": fill.pattern,
        "fgcolor": fill.ink or theme.with_opacity(*theme.HATCHING),
        "bgcolor": fill.color,
        "size": 7,
        "solidity": 0.18,
    }


@_drawn.register
def _(mark: Bars, panel: Panel) -> list[tuple[str, dict[str, Any]]]:
    edge = mark.edge or Pen(theme.PAPER, 0)
    shared = {
        "type": "bar", "orientation": "h", "width": mark.thickness, "hoverinfo": "skip",
        "showlegend": False,
    }  # fmt: skip
    found = []
    for length, place, fill in zip(mark.lengths, mark.places, mark.fills, strict=True):
        line = {"color": edge.color, "width": edge.width}
        marker = {"color": fill.color, "pattern": _pattern(fill), "line": line}
        found.append(("data", shared | {"x": [length], "y": [place], "marker": marker}))
    return found


@_drawn.register
def _(mark: Contour, panel: Panel) -> list[tuple[str, dict[str, Any]]]:
    if not len(mark.colors):
        return [_contour_line(mark, float(level)) for level in mark.levels]
    last = len(mark.colors) - 1
    contours = {
        "start": 1000 * float(mark.levels[0]),
        "end": 1000 * float(mark.levels[-1]),
        "size": 1000 * float(mark.levels[1] - mark.levels[0]),
        "coloring": "fill",
    }
    return [(
        "data",
        {
            "type": "contour", "x": _short(mark.x), "y": _short(mark.y),
            "z": _thousandths(mark.height), "autocontour": False, "contours": contours,
            "colorscale": [[place / last, color] for place, color in enumerate(mark.colors)],
            "line": {"color": mark.pen.color, "width": mark.pen.width}, "showscale": False,
            "hoverinfo": "skip",
        },
    )]  # fmt: skip


def _contour_line(mark: Contour, level: float) -> tuple[str, dict[str, Any]]:
    only = {"type": "constraint", "operation": "=", "value": level}
    return (
        "data",
        {
            "type": "contour", "x": _short(mark.x), "y": _short(mark.y), "z": _short(mark.height),
            "autocontour": False, "contours": only, "showscale": False, "hoverinfo": "skip",
            "line": _line(mark.pen), "showlegend": False,
        },
    )  # fmt: skip


@_drawn.register
def _(mark: HeatMap, panel: Panel) -> list[tuple[str, dict[str, Any]]]:
    count = len(mark.colors)
    if mark.smooth:
        scale = [[i / (count - 1), color] for i, color in enumerate(mark.colors)]
    else:
        scale = [[(i + j) / count, c] for i, c in enumerate(mark.colors) for j in (0, 1)]
    values = np.asarray(mark.values)
    hover: dict[str, Any] = {"hoverinfo": "skip"}
    if mark.hover:
        hover = {"text": mark.tips, "hovertemplate": f"{mark.hover}<extra></extra>"}
    return [(
        "data",
        {
            "type": "heatmap", "x": _short(mark.x), "y": _short(mark.y),
            "z": values.astype(np.uint8) if values.dtype.kind in "iu" else _short(values),
            "zmin": mark.low, "zmax": mark.high, "colorscale": scale, "showscale": False,
            "zsmooth": "best" if mark.blended else False, "opacity": mark.opacity, **hover,
        },
    )]  # fmt: skip
