"""The page of one optimizer: A4, written by matplotlib's PDF backend."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from matplotlib.backends.backend_pdf import FigureCanvasPdf
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.transforms import Bbox, BboxTransformTo, TransformedBbox

from optlab import __version__
from optlab.course.handouts.formulas import formula
from optlab.course.handouts.subjects import SUBJECTS, Subject
from optlab.lab import compare
from optlab.optimizer import SGD
from optlab.parallel import LocalWorld
from optlab.viz.backends.matplotlib.draw import draw_panel, panel_axes
from optlab.viz.comparison.figure import race_scene
from optlab.viz.style import theme

WIDE, HIGH = 595.28, 841.89
"""A4, in points."""
MARGIN = 52.0
_PICTURE = 232.0  # points
_FORMULA, _CODE, _LEADING = 14.0, 8.0, 1.36
_MONO = {"family": "DejaVu Sans Mono"}
_LETTERS = 0.602  # width of a letter of this font, in sizes


def save_handouts(directory: str | Path, names: Iterable[str] = ()) -> list[Path]:
    """Write the handouts of optimizers into a folder.

    Parameters
    ----------
    directory : str or Path
        The folder; it is made if it is not there. Files of the same names are replaced.
    names : iterable of str
        The optimizers, such as ``"Adam"``; all by default.

    Returns
    -------
    list of Path
        The files, one for each optimizer.

    Raises
    ------
    ValueError
        If an optimizer has no handout. Nothing is written then.
    """
    chosen = list(names) or list(SUBJECTS)
    unknown = [name for name in chosen if name not in SUBJECTS]
    if unknown:
        raise ValueError(
            f"there is no handout of {', '.join(unknown)}; there is one of {', '.join(SUBJECTS)}"
        )
    folder = Path(directory).expanduser()
    folder.mkdir(parents=True, exist_ok=True)
    return [save_handout(folder / f"{name}.pdf", SUBJECTS[name]) for name in chosen]


def save_handout(file: str | Path, subject: Subject) -> Path:
    """Write one handout and return its file.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     save_handout(f"{folder}/sgd.pdf", SUBJECTS["SGD"]).read_bytes()[:5]
    b'%PDF-'
    """
    path = Path(file)
    figure = handout(subject)
    # Without its date, the same page is the same file.
    metadata = {
        "Title": f"{subject.name}: formula, picture, code",
        "Creator": f"optlab {__version__}",
        "CreationDate": None,
    }
    FigureCanvasPdf(figure).print_pdf(str(path), metadata=metadata)
    return path


def handout(subject: Subject) -> Figure:
    """Return the page of an optimizer as a figure of A4's size."""
    figure = Figure(figsize=(WIDE / 72, HIGH / 72), dpi=100, facecolor=theme.PAPER)
    inner = WIDE - 2 * MARGIN
    y = MARGIN + 18
    _write(figure, MARGIN, y, subject.name, 22, weight="bold")
    y += 22
    for line in textwrap.wrap(subject.summary, 92):
        _write(figure, MARGIN, y, line, 10, color=theme.QUIET)
        y += 14
    y = _heading(figure, y + 14, "Formula")
    set_ = formula(subject.cls.formula, _FORMULA)
    if set_.width > inner:
        set_ = formula(subject.cls.formula, _FORMULA * inner / set_.width)
    set_.draw(figure, MARGIN, y)
    y = _heading(figure, y + set_.height + 26, "Picture")
    y = _picture(figure, y, subject)
    y = _heading(figure, y + 22, "Code")
    _code(figure, y, subject)
    foot = HIGH - MARGIN + 14
    _write(figure, MARGIN, foot, f"optlab {__version__}", 8, color=theme.QUIET)
    return figure


def _write(figure: Figure, x: float, y: float, text: str, size: float, **look: Any) -> Any:
    """Write with the baseline at y, in points from the upper left corner."""
    look = {"color": theme.INK, "family": "DejaVu Sans", "va": "baseline"} | look
    return figure.text(x / WIDE, 1 - y / HIGH, text, size=size, parse_math=False, **look)


def _heading(figure: Figure, y: float, text: str) -> float:
    """Write a heading with its line, and return where what follows begins."""
    _write(figure, MARGIN, y, text, 10.5, weight="bold")
    line = [1 - (y + 5) / HIGH] * 2
    ends = [MARGIN / WIDE, 1 - MARGIN / WIDE]
    figure.add_artist(Line2D(ends, line, color=theme.RULE, lw=0.8, transform=figure.transFigure))
    return y + 18


def _picture(figure: Figure, y: float, subject: Subject) -> float:
    """Draw a run beside one of SGD, and return where the picture ends."""
    race = race_of(subject)
    inner = WIDE - 2 * MARGIN
    scene = race_scene(race, int(inner / 0.72), int(_PICTURE / 0.72) + 60)
    page = scene.page
    # The panels alone, as title and legend of the page are its own; a point is 1/0.72 pixels.
    above = page.top * 0.72 - 24
    whole = page.height * 0.72
    sub: Any = figure.add_subfigure(figure.add_gridspec(1, 1)[0])
    _place(sub, MARGIN, y - above, inner, whole)
    for at, panel in enumerate(scene.panels):
        draw_panel(panel_axes(sub, page, at), panel)
    y += whole - above - page.bottom * 0.72 + 34
    x = MARGIN
    for name, style in scene.legend.values():
        line = [1 - (y - 3) / HIGH] * 2
        ends = [x / WIDE, (x + 18) / WIDE]
        look: dict[str, Any] = {"color": getattr(style, "color", theme.INK), "lw": 1.6}
        figure.add_artist(Line2D(ends, line, transform=figure.transFigure, **look))
        made = f"ol.optimizer.{race.optimizers[name]!r}"
        for text in textwrap.wrap(made, 96, subsequent_indent="    "):
            _write(figure, x + 24, y, text, 8.5)
            y += 12
    for text in textwrap.wrap(subject.note, 110):
        _write(figure, MARGIN, y, text, 8.5, color=theme.QUIET)
        y += 12
    return y


def race_of(subject: Subject) -> Any:
    """Run the optimizer on the surface of its picture, and SGD beside it."""

    def run(_: Any = None) -> Any:
        runs = {subject.name: subject.make()}
        if subject.name != "SGD":
            runs["SGD"] = SGD(0.03)
        return compare(subject.problem, runs, steps=subject.steps, seed=0)

    return run() if subject.ranks == 1 else LocalWorld(subject.ranks).run(run)[0]


def _place(sub: Any, left: float, top: float, width: float, height: float) -> None:
    """Put a part of a figure at a place in points; a grid knows shares of the page alone."""
    box = Bbox.from_bounds(left / WIDE, 1 - (top + height) / HIGH, width / WIDE, height / HIGH)
    sub.bbox_relative = box
    sub.bbox = TransformedBbox(box, sub.figure.transFigure)
    sub.transSubfigure = BboxTransformTo(sub.bbox)


def _code(figure: Figure, y: float, subject: Subject) -> None:
    """Write the call and the rule, as large as the rest of the page allows."""
    call = textwrap.wrap(subject.call, 96, subsequent_indent="    ")
    lines = [*call, "", *subject.code.splitlines()]
    inner, left = WIDE - 2 * MARGIN, HIGH - MARGIN - y
    longest = max(map(len, lines))
    size = min(_CODE, inner / (_LETTERS * longest), left / (_LEADING * len(lines)))
    for line in lines:
        quiet = {"color": theme.QUIET} if line in call else {}
        _write(figure, MARGIN, y + size, line, size, **_MONO, **quiet)
        y += _LEADING * size
