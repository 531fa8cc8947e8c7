"""Pipelines: Gantt charts of forward and backward passes, and what every section holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import matplotlib.patches as patches
import plotly.graph_objects as go

from optlab.optimizer.wrappers.pipeline import PipelineTrace, Span, simulate
from optlab.trace import Trace
from optlab.viz.backends.matplotlib.image import as_png, blank_figure
from optlab.viz.backends.plotly.draw import CONFIG
from optlab.viz.style import layout, theme
from optlab.viz.style.text import format_number

WIDTH, HEIGHT = 850, 500
MICRO_BATCHES = (1, 2, 4, 8, 16)
"""The stops of the slider, beside those of the trace."""
_MOST_LABELS = 160
"""Numbers of micro-batches are written into the bars of a chart of at most so many passes."""
_TOP, _LEFT, _RIGHT, _BOTTOM = 92, 118, 24, 50
_SHARE = 0.56
"""The part of the height that the chart of passes takes."""
_GAP = 0.16
"""The part between the charts, for the legend of the lower one."""
_EDGED, _NUMBERED = 4, 9
"""Pixels: bars from so many on have an edge, and a number in the image."""


@dataclass(frozen=True)
class _View:
    """One position of the slider."""

    label: str
    trace: PipelineTrace
    unit: float
    unit_name: str

    @property
    def began(self) -> float:
        """When the first pass began: until then the workers were being started."""
        return min((one.start for one in self.trace.spans), default=0.0)

    @property
    def end(self) -> float:
        """The end of the last pass on the axis."""
        last = max((one.end for one in self.trace.spans), default=self.began + 1.0)
        return self.at(last)

    def at(self, seconds: float) -> float:
        """Return where a time lies on the axis, which begins with the first pass."""
        return (seconds - self.began) * self.unit

    def pixels(self, one: Span, width: int) -> float:
        """Return how wide the bar of a pass is in a figure."""
        return (one.end - one.start) * self.unit / (self.end or 1.0) * (width - _LEFT - _RIGHT)

    @property
    def headline(self) -> str:
        """What the chart shows, in words."""
        trace = self.trace
        how = "predicted" if trace.simulated else "measured"
        return (
            f"{trace.schedule}, {trace.micro_batches} micro-batches: {trace.bubble:.0%} idle, "
            f"{how}; (p - 1)/(m + p - 1) = {trace.predicted_bubble:.0%} for equal sections"
        )


@layout.documented
def pipeline(trace: Any, *, width: int = WIDTH, height: int = HEIGHT) -> go.Figure:
    """Draw the passes of a pipelined step by worker, and the bytes that each section holds.

    The slider changes schedule and number of micro-batches: beside the measured step there are
    those that the same sections would take, as a simulation with their mean seconds predicts. It
    needs no kernel.

    Parameters
    ----------
    trace : PipelineTrace, PipelineOptimizer or Trace
        What ``optimizer.trace`` is after a step, or `optlab.optimizer.wrappers.pipeline.simulate`
        returns. Of what `optlab.record` gave, the last step that its optimizer has taken.

    Examples
    --------
    >>> from optlab.optimizer.wrappers.pipeline import simulate
    >>> figure = pipeline(simulate(4, 8))
    >>> figure.layout.title.text.partition("<br>")[0]
    '<b>Pipeline of 4 sections</b>'
    """
    views = _views(_checked(trace))
    figure = go.Figure()
    counts = []
    for number, view in enumerate(views):
        before = len(figure.data)
        _draw(figure, view, width, visible=number == 0)
        counts.append(len(figure.data) - before)
    steps = []
    for number, view in enumerate(views):
        shown = [k == number for k, count in enumerate(counts) for _ in range(count)]
        steps.append(
            {
                "method": "update",
                "label": view.label,
                "args": [{"visible": shown}, _texts(view)],
            }
        )
    places = _places(views[0].trace)
    figure.update_layout(
        width=width,
        height=height,
        template="none",
        paper_bgcolor=theme.PAPER,
        plot_bgcolor=theme.PAPER,
        font={"color": theme.INK, "family": ", ".join(theme.FONT_FAMILIES), "size": 12},
        hoverlabel={"bgcolor": theme.PAPER, "font": {"color": theme.INK}},
        modebar={
            "remove": CONFIG["modeBarButtonsToRemove"], "color": theme.QUIET,
            "activecolor": theme.INK, "bgcolor": theme.with_opacity(theme.PAPER, 0),
        },
        margin={"t": _TOP, "l": _LEFT, "r": _RIGHT, "b": _BOTTOM + 76},
        barmode="overlay",
        bargap=0.12,
        legend=_legend(1.0),
        legend2=_legend(1 - _SHARE - _GAP, f"{_held_what(views[0].trace)} by "),
        yaxis={
            "domain": [1 - _SHARE, 1], "tickvals": list(range(len(places))), "ticktext": places,
            "autorange": "reversed", "zeroline": False, "showgrid": False,
        },
        xaxis={
            "anchor": "y2", "title.font.size": 12, "gridcolor": theme.RULE, "zeroline": False,
            "rangemode": "tozero",
        },
        yaxis2={
            "domain": [0, 1 - _SHARE - _GAP], "title.font.size": 12, "gridcolor": theme.RULE,
            "rangemode": "tozero", "zeroline": False,
        },
        sliders=[
            {
                "steps": steps, "active": 0, "pad": {"t": 48},
                "currentvalue": {
                    "prefix": "schedule and micro-batches: ", "xanchor": "right",
                    "font": {"color": theme.INK},
                },
                "font": {"color": theme.INK},
                "bgcolor": theme.RULE, "bordercolor": theme.FRAME,
            }
        ],
        **_texts(views[0]),
    )  # fmt: skip
    return figure


@layout.documented
def pipeline_png(
    trace: Any, *, width: int = WIDTH, height: int = HEIGHT, scale: float = 1.0
) -> bytes:
    r"""Draw the passes of a pipelined step, and what each section holds, as a PNG image.

    Parameters
    ----------
    trace : PipelineTrace, PipelineOptimizer or Trace
        As for `pipeline`.

    Examples
    --------
    >>> from optlab.optimizer.wrappers.pipeline import simulate
    >>> pipeline_png(simulate(4, 8))[:4]
    b'\x89PNG'
    """
    view = _views(_checked(trace))[0]
    trace = view.trace
    figure = blank_figure(width, height)
    figure.text(16 / width, 1 - 26 / height, _title(trace), weight="bold", size=11, color=theme.INK)
    figure.text(16 / width, 1 - 46 / height, view.headline, size=8.5, color=theme.INK)
    inner = height - _TOP - _BOTTOM
    box = (_LEFT / width, (width - _LEFT - _RIGHT) / width)
    upper = figure.add_axes(
        (box[0], (_BOTTOM + (1 - _SHARE) * inner) / height, box[1], _SHARE * inner / height)
    )
    lower = figure.add_axes(
        (box[0], _BOTTOM / height, box[1], (1 - _SHARE - _GAP) * inner / height), sharex=upper
    )
    rows = {place: i for i, place in enumerate(trace.places)}
    for one in trace.spans:
        pixels = view.pixels(one, width)
        upper.add_patch(
            patches.Rectangle(
                (view.at(one.start), rows[one.section, one.worker] - 0.42),
                (one.end - one.start) * view.unit, 0.84, facecolor=_color(one.phase),
                edgecolor=theme.PAPER if pixels >= _EDGED else _color(one.phase), linewidth=0.6,
            )
        )  # fmt: skip
        if len(trace.spans) <= _MOST_LABELS and pixels >= _NUMBERED:
            upper.text(
                view.at((one.start + one.end) / 2), rows[one.section, one.worker],
                str(one.micro_batch), ha="center", va="center", size=6.5, color=theme.PAPER,
                clip_on=True,
            )  # fmt: skip
    upper.set(
        xlim=(0, view.end),
        ylim=(len(rows) - 0.5, -0.5),
    )
    upper.set_yticks(range(len(rows)), _places(trace))
    upper.tick_params(labelbottom=False)
    handles = [patches.Patch(color=_color(phase), label=phase) for phase in ("forward", "backward")]
    upper.legend(
        handles=handles,
        loc="lower right",
        bbox_to_anchor=(1, 1),
        ncols=2,
        frameon=False,
        fontsize=8,
        labelcolor=theme.INK,
    )
    for s, (x, y, _) in enumerate(_held(view)):
        lower.plot(
            x, y, drawstyle="steps-post", color=_line(s), label=f"section {s}", linewidth=1.3
        )
    lower.set_xlabel(f"time ({view.unit_name})", size=8.5, color=theme.INK)
    lower.set_ylabel(_held_title(trace), size=8.5, color=theme.INK)
    lower.set_ylim(0)
    lower.legend(
        frameon=False,
        fontsize=7,
        ncols=4,
        loc="lower right",
        bbox_to_anchor=(1, 1),
        labelcolor=theme.INK,
    )
    lower.set_title(f"{_held_what(trace)}, by section", loc="left", size=8.5, color=theme.INK)
    for axes in (upper, lower):
        axes.set_facecolor(theme.PAPER)
        axes.tick_params(labelsize=8, length=0, labelcolor=theme.INK)
        axes.grid(axis="x", color=theme.RULE, linewidth=0.6)
        axes.set_axisbelow(True)
        for side in axes.spines.values():
            side.set_visible(False)
    return as_png(figure, scale)


def _checked(trace: Any) -> PipelineTrace:
    """Return the timeline of what was given."""
    if isinstance(trace, Trace):  # of ol.record: its optimizer has the timeline of the last step
        trace = trace.optimizer
    found = trace if isinstance(trace, PipelineTrace) else getattr(trace, "trace", None)
    if not isinstance(found, PipelineTrace):
        raise TypeError(
            "pipeline draws the trace of a PipelineOptimizer that has taken a step, or what "
            f"simulate returns; got {type(trace).__name__}."
        )
    return found


def _views(trace: PipelineTrace) -> list[_View]:
    """Return the trace, and what its sections would do by other schedules and micro-batches."""
    seconds = {phase: _means(trace, phase) for phase in ("forward", "backward")}
    saved = [0] * len(trace.sections)
    for one in trace.spans:
        if one.held:
            saved[one.section] = max(saved[one.section], one.held_bytes // one.held)
    unit, name = (1.0, "units of a forward pass") if trace.simulated else (1e3, "ms")
    how = "as simulated" if trace.simulated else "as measured"
    views = [_View(how, trace, unit, name)]
    for schedule in ("1F1B", "GPipe"):
        for m in sorted({*MICRO_BATCHES, trace.micro_batches}):
            other = simulate(
                len(trace.sections), m, schedule, workers=trace.workers, nbytes=saved,
                forward=seconds["forward"], backward=seconds["backward"],
                queue_size=trace.queue_size,
            )  # fmt: skip
            views.append(_View(f"{schedule} {m}", other, unit, name))
    return views


def _means(trace: PipelineTrace, phase: str) -> list[float]:
    """Return the mean seconds of a pass of each section."""
    found: list[list[float]] = [[] for _ in trace.sections]
    for one in trace.spans:
        if one.phase == phase:
            found[one.section].append(one.end - one.start)
    return [sum(each) / len(each) if each else 0.0 for each in found]


def _draw(figure: go.Figure, view: _View, width: int, visible: bool) -> None:
    trace, unit = view.trace, view.unit
    rows = {place: i for i, place in enumerate(trace.places)}
    for phase in ("forward", "backward"):
        own = [one for one in trace.spans if one.phase == phase]
        edges = [theme.PAPER if view.pixels(one, width) >= _EDGED else _color(phase) for one in own]
        figure.add_bar(
            x=[(one.end - one.start) * unit for one in own],
            base=[view.at(one.start) for one in own],
            y=[rows[one.section, one.worker] for one in own],
            orientation="h", name=phase, visible=visible, legendgroup=phase,
            marker={"color": _color(phase), "line": {"color": edges, "width": 1}},
            text=[str(one.micro_batch) if len(trace.spans) <= _MOST_LABELS else "" for one in own],
            textposition="inside", insidetextanchor="middle", textangle=0,
            insidetextfont={"color": theme.PAPER, "size": 10},
            customdata=[
                (i, s, held, format_number((end - start) * unit))
                for s, _, _, i, start, end, held, _ in own
            ],
            hovertemplate=(
                f"micro-batch %{{customdata[0]}} {phase} through section %{{customdata[1]}}: "
                "%{customdata[3]}<br>the section then holds %{customdata[2]}<extra></extra>"
            ),
        )  # fmt: skip
    for s, (x, y, text) in enumerate(_held(view)):
        figure.add_scatter(
            x=x, y=y, text=text, mode="lines", yaxis="y2", visible=visible,
            name=f"section {s}", legend="legend2",
            line={"shape": "hv", "color": _line(s), "width": 2},
            hovertemplate="%{text}<extra></extra>",
        )  # fmt: skip


def _held(view: _View) -> list[tuple[list[float], list[float], list[str]]]:
    """Return times and what is held from then on, for each section."""
    found = []
    in_bytes = any(view.trace.most_bytes)
    for s in range(len(view.trace.sections)):
        own = [one for one in view.trace.spans if one.section == s]
        x = [0.0, *(view.at(one.end) for one in own)]
        y = [0.0, *(one.held_bytes / 1024 if in_bytes else float(one.held) for one in own)]
        text = ["", *(f"section {s} holds {one.held} micro-batches" for one in own)]
        found.append((x, y, text))
    return found


def _held_what(trace: PipelineTrace) -> str:
    return "saved values held" if any(trace.most_bytes) else "micro-batches held"


def _held_title(trace: PipelineTrace) -> str:
    return "KiB" if any(trace.most_bytes) else ""


def _places(trace: PipelineTrace) -> list[str]:
    """Return the names of the workers."""
    return [
        f"section {s}" + (f", worker {w}" if trace.workers[s] > 1 else "") for s, w in trace.places
    ]


def _title(trace: PipelineTrace) -> str:
    p = len(trace.sections)
    return f"Pipeline of {p} section{'s' * (p != 1)}"


def _texts(view: _View) -> dict[str, Any]:
    """Return what changes with the slider."""
    return {
        "title": {
            "text": f"<b>{_title(view.trace)}</b><br><sup>{view.headline}</sup>",
            "x": 0.02, "xanchor": "left", "y": 0.955, "yanchor": "top", "font": {"size": 17},
        },
        "xaxis.range": [0, view.end],
        "xaxis.title.standoff": 4,
        "xaxis.title.text": f"time ({view.unit_name})",
        "yaxis2.title.text": _held_title(view.trace),
    }  # fmt: skip


def _legend(y: float, title: str = "") -> dict[str, Any]:
    """Return a legend at the right above a chart."""
    return {
        "title": {"text": title},
        "orientation": "h", "x": 1, "xanchor": "right", "y": y + 0.015, "yanchor": "bottom",
        "font": {"size": 11},
    }  # fmt: skip


def _color(phase: str) -> str:
    return theme.colors()[0 if phase == "forward" else 1]


def _line(section: int) -> str:
    colors = theme.colors()[2:]  # the first two are those of the passes
    return colors[section % len(colors)]
