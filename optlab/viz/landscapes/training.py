"""A training of a recipe: its loss and its scores, at its end or while it goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import plotly.graph_objects as go

from optlab.lab.progress import notebook_display
from optlab.viz.backends.matplotlib.draw import draw_png
from optlab.viz.backends.plotly.draw import draw
from optlab.viz.backends.scene import (
    Axis,
    Line,
    Mark,
    Marker,
    Panel,
    Pen,
    Points,
    Rule,
    Scene,
    Text,
)
from optlab.viz.landscapes.boundary import decision_boundary_png
from optlab.viz.style import layout, theme
from optlab.viz.style.geometry import Floats
from optlab.viz.style.results import refuse_runs
from optlab.viz.style.text import format_number

WIDTH, HEIGHT = 900, 400
#: The line over the losses of single batches is a running mean over this share of them.
_SMOOTH = 0.03


@layout.documented
def training(result: Any, *, width: int = WIDTH, height: int = HEIGHT) -> go.Figure:
    """Draw the losses and the scores of a training, beside the result that its recipe states.

    Parameters
    ----------
    result : Training
        Of ``recipe.run()``, at its end or in the middle.

    Examples
    --------
    >>> import optlab as ol
    >>> figure = training(ol.lab.recipe("moons").run(steps=100))
    >>> figure.layout.title.text
    '<b>Two moons, 2-32-32-2</b>'
    """
    return draw(_scene(result, width, height))


@layout.documented
def training_png(
    result: Any, *, width: int = WIDTH, height: int = HEIGHT, scale: float = 1.0
) -> bytes:
    r"""Draw the losses and the scores of a training as a PNG image.

    Parameters
    ----------
    result : Training
        Of ``recipe.run()``, at its end or in the middle.

    Examples
    --------
    >>> import optlab as ol
    >>> training_png(ol.lab.recipe("moons").run(steps=20))[:4]
    b'\x89PNG'
    """
    return draw_png(_scene(result, width, height), scale)


class Live:
    """A picture that is drawn again while a model learns: a callback of ``recipe.run``.

    Attributes
    ----------
    latest : bytes
        The picture drawn last.
    count : int
        How many were drawn.
    """

    def __init__(self, picture: Callable[[Any], bytes]) -> None:
        self._picture = picture
        self._display = notebook_display()
        self._handle: Any = None
        self.latest = b""
        self.count = 0

    def __call__(self, result: Any) -> None:
        """Draw the training as it is now, in place of the last picture."""
        self.latest = self._picture(result)
        self.count += 1
        if self._display is None:
            return
        content = {"image/png": self.latest, "text/plain": repr(result)}
        if self._handle is None:
            self._handle = self._display(content, raw=True, display_id=True)
        else:
            self._handle.update(content, raw=True)

    def __repr__(self) -> str:
        return f"<Live: {self.count} pictures drawn>"


def live(picture: Callable[[Any], bytes] | None = None) -> Live:
    r"""Return a callback that draws a training in a notebook while it goes on.

    Parameters
    ----------
    picture : callable, optional
        Takes the `Training` and returns a PNG image. By default the decision boundary of a model of
        two coordinates, and losses and scores of others.

    Returns
    -------
    Live

    Examples
    --------
    >>> import optlab as ol
    >>> view = live()
    >>> _ = ol.lab.recipe("spirals").run(steps=500, callback=view)
    >>> view.count, view.latest[:4]  # in a notebook: one picture, which changes
    (2, b'\x89PNG')
    """
    if picture is not None and not callable(picture):
        raise TypeError(
            "live takes a function from a Training to a PNG image, such as ol.viz.training_png; "
            f"got {picture!r}."
        )
    return Live(_usual if picture is None else picture)


def _usual(result: Any) -> bytes:
    x = getattr(result.data, "train_x", None)
    y = getattr(result.data, "train_y", None)
    if x is not None and np.ndim(x) == 2 and x.shape[1] == 2 and np.asarray(y).dtype.kind in "iu":
        title = f"{result.recipe.title}, after {result.step} steps"
        return decision_boundary_png(result.model, result.data, title=title)
    return training_png(result)


def _scene(result: Any, width: int, height: int) -> Scene:
    needs = "a run keeps no scores. Give what ol.lab.recipe(name).run() returns."
    refuse_runs(result, "training", needs, has="recipe")
    recipe = result.recipe
    line, other = theme.area_colors()[:2]
    page = layout.page(
        width, height, names=[], note="", shares=[1, 1], rooms=[66, 14], headed=True
    )  # fmt: skip
    last = float(max(result.steps, 1))
    losses = np.asarray(result.losses, np.float64)
    steps = np.arange(len(losses), dtype=float)
    marks: list[Mark] = []
    if len(losses):
        count = max(1, round(_SMOOTH * len(losses)))
        mean = np.convolve(losses, np.full(count, 1 / count), "valid")
        marks = [
            Line(steps, losses, Pen(line, 1.0, opacity=0.35)),
            Line(steps[count - 1 :], mean, Pen(line, 2.0), "step %{x:d}<br>mean %{y:.4g}"),
        ]
    axis, said = _axis(losses)
    words = "of a batch, and its running mean" + said
    panels = [Panel(Axis(0.0, last, name="step", whole=True, count=4), axis, marks, "Loss", words)]
    at = np.array(list(result.scores), float)
    scores = np.array(list(result.scores.values()), float)
    dashed: list[Mark] = [
        Rule("y", recipe.target, Pen(theme.QUIET, 1.2, (5, 4)), below=True),
        Text(last, recipe.target, f"stated {recipe.target:g}", theme.QUIET, theme.FONT_SMALL,
             "right", "bottom", (-2, 3)),
    ]  # fmt: skip
    if len(at):
        dashed += [
            Line(at, scores, Pen(other, 2.0)),
            Points(at, scores, Marker("circle", 6, other), "after %{x:d} steps<br>%{y:.4g}",
                   clip=False),
        ]  # fmt: skip
    known = np.append(scores[np.isfinite(scores)], recipe.target)
    low, high = float(known.min()), float(known.max())
    room = 0.12 * (high - low) or 0.1 * abs(high) or 1.0
    heading = recipe.measure[:1].upper() + recipe.measure[1:]
    panels.append(
        Panel(Axis(0.0, last, name="step", whole=True, count=4),
              Axis(low - room, high + room, grid=True), dashed, heading)
    )  # fmt: skip
    state = f"{result.step:,} of {result.steps:,} steps, {result.seconds:.3g} s of training"
    if result.scores:
        verb = "reaches" if result.reached else "does not reach"
        state += f"; {format_number(result.score)} {verb} what is stated"
    return Scene(page, recipe.title, f"{state}.", panels)


def _axis(losses: Floats) -> tuple[Axis, str]:
    known = losses[np.isfinite(losses)]
    if not len(known):
        return Axis(0.0, 1.0, grid=True), ""
    low, high = float(known.min()), float(known.max())
    if low > 0 and high > 10 * low:
        ends = np.log10([low, high])
        room = 0.05 * float(ends[1] - ends[0])
        return Axis(float(ends[0]) - room, float(ends[1]) + room, "log", grid=True), ", log scale"
    room = 0.05 * (high - low) or 1.0
    return Axis(min(0.0, low - room) if low >= 0 else low - room, high + room, grid=True), ""
