"""The classes that a model gives to the points of a plane, and how sure it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import plotly.graph_objects as go
from contourpy import contour_generator
from matplotlib.colors import to_rgba

from optlab.autograd import no_grad
from optlab.viz.backends.matplotlib.draw import draw_png
from optlab.viz.backends.plotly.draw import draw
from optlab.viz.backends.scene import Axis, HeatMap, Line, Mark, Marker, Panel, Pen, Points, Scene
from optlab.viz.landscapes.space import space_axes, space_image, space_layout
from optlab.viz.style import layout, theme
from optlab.viz.style.geometry import Floats
from optlab.viz.style.results import not_of_runs

WIDTH, HEIGHT = 620, 520
_GRID, _COARSE = 140, 60
_MOST_CLASSES = 6
#: Steps of confidence between an even chance and certainty, and how pale they are.
_SURE = 5
_PALEST, _DEEPEST = 0.93, 0.6
_says_what_it_needs = not_of_runs(
    "the classes of the points between its examples have to be computed",
    "Give a model and its data, such as ol.viz.decision_boundary(training.model, training.data) "
    "of training = ol.lab.recipe('moons').run().",
)
_MARKERS = ("circle", "square", "diamond", "triangle-up", "triangle-down", "pentagon")


@_says_what_it_needs
@layout.documented
def decision_boundary(
    model: Any, data: Any, *, kind: Literal["map", "surface"] = "map", title: str = "",
    width: int = WIDTH, height: int = HEIGHT,
) -> go.Figure:  # fmt: skip
    """Draw which class a model gives to each point of a plane, and the examples.

    The color is the class with the highest score, the deeper the surer the softmax; a line stands
    where two classes are even. Filled marks are examples to train on, hollow ones are held out.

    Parameters
    ----------
    model : Layer or callable
        Takes points [count, 2] and returns a score for each class, [count, classes].
    data : Data or (x, y)
        Points [count, 2] and their classes.
    kind : {"map", "surface"}
        From above, or in three dimensions with the softmax of a class as the height: of class 1 if
        there are two, of the best one otherwise.
    title : str
        By default what the model classifies rightly.

    Raises
    ------
    ValueError
        If the points do not have two coordinates, there are more than six classes, or the kind is
        neither.

    Examples
    --------
    >>> import optlab as ol
    >>> training = ol.lab.recipe("moons").run(steps=100)
    >>> figure = decision_boundary(training.model, training.data)
    >>> figure.layout.width
    620
    """
    if _checked_kind(kind) == "surface":
        return _surface_figure(model, data, title, width, height)
    return draw(_scene(model, data, title, width, height))


@_says_what_it_needs
@layout.documented
def decision_boundary_png(
    model: Any, data: Any, *, kind: Literal["map", "surface"] = "map", title: str = "",
    width: int = WIDTH, height: int = HEIGHT, scale: float = 1.0,
) -> bytes:  # fmt: skip
    r"""Draw which class a model gives to each point of a plane as a PNG image.

    Parameters
    ----------
    model, data, kind, title
        As for `decision_boundary`.

    Examples
    --------
    >>> import optlab as ol
    >>> training = ol.lab.recipe("moons").run(steps=10)
    >>> decision_boundary_png(training.model, training.data)[:4]
    b'\x89PNG'
    """
    if _checked_kind(kind) == "surface":
        return _surface_png(model, data, title, width, height, scale)
    return draw_png(_scene(model, data, title, width, height), scale)


def _checked_kind(kind: Any) -> str:
    if kind not in ("map", "surface"):
        raise ValueError(f'kind is "map" or "surface"; got {kind!r}.')
    return str(kind)


def _examples(data: Any) -> list[tuple[Floats, Any]]:
    """Return points and classes to train on, and held out ones if there are any."""
    parts = (
        [(data.train_x, data.train_y), (data.test_x, data.test_y)]
        if hasattr(data, "train_x")
        else [tuple(data)]
    )
    found = []
    for x, y in parts:
        x, y = (np.asarray(v.numpy() if hasattr(v, "numpy") else v) for v in (x, y))
        if x.ndim != 2 or x.shape[1] != 2 or y.shape != x.shape[:1]:
            raise ValueError(
                "decision_boundary draws points of a plane, [count, 2], and a class for each, "
                f"[count]; got the shapes {x.shape} and {y.shape}."
            )
        found.append((x, y.astype(int)))
    return found


def _scores(model: Any, points: Floats) -> Floats:
    """Return the softmax of the scores of points, in float64."""
    training = getattr(model, "training", False)
    if training:
        model.eval()
    try:
        with no_grad():
            found = model(points.astype(np.float32))
    finally:
        if training:
            model.train()
    scores = np.asarray(found.numpy() if hasattr(found, "numpy") else found, np.float64)
    if scores.ndim == 1 or scores.shape[1] == 1:  # the score of class 1 alone
        scores = np.stack([np.zeros(len(scores)), scores.reshape(-1)], axis=1)
    if scores.shape[1] > _MOST_CLASSES:
        raise ValueError(
            f"decision_boundary tells at most {_MOST_CLASSES} classes apart; the model gives "
            f"scores of {scores.shape[1]}."
        )
    scores = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares: Floats = scores / scores.sum(axis=1, keepdims=True)
    return shares


def _scene(model: Any, data: Any, title: str, width: int, height: int) -> Scene:
    parts = _examples(data)
    every = np.concatenate([x for x, _ in parts])
    low, high = every.min(axis=0), every.max(axis=0)
    names = ["to train on", "held out"][: len(parts)]
    page = layout.page(width, height, names=[], note="", shares=[1], rooms=[6], headed=True)
    place = page.panels[0]
    middle, half = (low + high) / 2, (high - low) / 2 * 1.12
    half = np.where(half > 0, half, 1.0)
    pixel = max(2 * half[0] / place.width, 2 * half[1] / place.height)
    half = np.array([place.width, place.height]) * pixel / 2
    x = np.linspace(middle[0] - half[0], middle[0] + half[0], _GRID)
    y = np.linspace(middle[1] - half[1], middle[1] + half[1], _GRID)
    grid = np.stack(np.meshgrid(x, y), axis=-1)
    shares = _scores(model, grid.reshape(-1, 2)).reshape(_GRID, _GRID, -1)
    classes = shares.shape[2]
    colors = theme.area_colors()[:classes]
    marks: list[Mark] = [_ground(x, y, shares, colors), *_lines(x, y, shares)]
    right = []
    for number, (points, labels) in enumerate(parts):
        found = _scores(model, points).argmax(axis=1)
        right.append(float(np.mean(found == labels)))
        for k in range(classes):
            chosen = labels == k
            hollow = number == 1
            face, edge = (theme.PAPER, colors[k]) if hollow else (colors[k], theme.PAPER)
            marks.append(
                Points(
                    points[chosen, 0], points[chosen, 1],
                    Marker(_MARKERS[k], 7, face, edge, 1.6 if hollow else 0.8),
                    f"class {k}, {names[number]}<br>%{{x:.3g}}, %{{y:.3g}}",
                )
            )  # fmt: skip
    said = f"Right: {right[0]:.1%} of {len(parts[0][1])} points"
    if len(parts) > 1:
        said += f"; held out (hollow), {right[1]:.1%} of {len(parts[1][1])}"
    return Scene(page, title or "Classes of a plane", said + ".", [
        Panel(Axis(float(x[0]), float(x[-1]), name="x"), Axis(float(y[0]), float(y[-1]), name="y"),
              marks, frame="box", equal=True),
    ])  # fmt: skip


def _ground(x: Floats, y: Floats, shares: Floats, colors: Sequence[str]) -> HeatMap:
    """Return the classes of the grid: a color a class and a step of confidence."""
    classes = len(colors)
    sure = (shares.max(axis=2) - 1 / classes) / (1 - 1 / classes)
    steps = np.minimum((sure * _SURE).astype(int), _SURE - 1)
    codes = shares.argmax(axis=2) * _SURE + steps
    pale = np.linspace(_PALEST, _DEEPEST, _SURE)
    table = [theme.paled(color, float(part)) for color in colors for part in pale]
    tips = [
        [f"class {code // _SURE}, {share:.0%}" for code, share in zip(row, best, strict=True)]
        for row, best in zip(codes.tolist(), shares.max(axis=2).tolist(), strict=True)
    ]
    return HeatMap(
        x, y, codes, -0.5, len(table) - 0.5, table, hover="%{x:.3g}, %{y:.3g}<br>%{text}",
        tips=tips,
    )  # fmt: skip


def _lines(x: Floats, y: Floats, shares: Floats) -> list[Mark]:
    """Return the lines where a class is even with the best of the others."""
    found: list[Mark] = []
    for k in range(shares.shape[2] if shares.shape[2] > 2 else 1):
        others = np.delete(shares, k, axis=2).max(axis=2)
        with np.errstate(divide="ignore"):
            lead = np.clip(np.log(shares[:, :, k]) - np.log(others), -50, 50)
        for line in contour_generator(x, y, lead).lines(0.0):
            points = np.asarray(line)
            found.append(Line(points[:, 0], points[:, 1], Pen(theme.INK, 1.4)))
    return found


def _heights(model: Any, data: Any) -> tuple[Floats, Floats, Floats, Floats, list[str], str]:
    """Return a grid, the heights of the surface, the class there, its colors, and what it is."""
    every = np.concatenate([x for x, _ in _examples(data)])
    low, high = every.min(axis=0), every.max(axis=0)
    middle, half = (low + high) / 2, np.maximum((high - low) / 2 * 1.12, 1e-9)
    x, y = (np.linspace(m - h, m + h, _COARSE) for m, h in zip(middle, half, strict=True))
    grid = np.stack(np.meshgrid(x, y), axis=-1)
    shares = _scores(model, grid.reshape(-1, 2)).reshape(_COARSE, _COARSE, -1)
    classes = shares.shape[2]
    z = shares[:, :, 1] if classes == 2 else shares.max(axis=2)
    said = "softmax of class 1" if classes == 2 else "softmax of the best class"
    return x, y, z, shares.argmax(axis=2), theme.area_colors()[:classes], said


def _over(model: Any, x: Floats, classes: int) -> Floats:
    """Return the heights of examples."""
    shares = _scores(model, x)
    found: Floats = shares[:, 1] if classes == 2 else shares.max(axis=1)
    return found


_SPACE_TITLE = "Classes of a plane"


def _surface_figure(model: Any, data: Any, title: str, width: int, height: int) -> go.Figure:
    x, y, z, code, colors, said = _heights(model, data)
    count = len(colors)
    scale = [
        [(k + end) / count, theme.paled(color, 0.35)]
        for k, color in enumerate(colors) for end in (0, 1)
    ]  # fmt: skip
    figure = go.Figure()
    figure.add_surface(
        x=x, y=y, z=z, surfacecolor=code + 0.5, cmin=0, cmax=count, colorscale=scale,
        showscale=False, opacity=0.95,
        hovertemplate="%{x:.3g}, %{y:.3g}<br>" + said + " %{z:.0%}<extra></extra>",
    )  # fmt: skip
    for number, (points, labels) in enumerate(_examples(data)):
        over = _over(model, points, count)
        for k, color in enumerate(colors):
            chosen = labels == k
            figure.add_scatter3d(
                x=points[chosen, 0], y=points[chosen, 1], z=over[chosen] + 0.02, mode="markers",
                marker={"color": color, "size": 3, "symbol": "circle-open" if number else "circle"},
                name=f"class {k}, {'held out' if number else 'to train on'}", showlegend=False,
            )  # fmt: skip
    words = f"Height: {said}. Filled: to train on; hollow: held out."
    figure.update_layout(
        space_layout(title or _SPACE_TITLE, words, ("x", "y", said), width, height)
    )
    return figure


def _surface_png(
    model: Any, data: Any, title: str, width: int, height: int, scale: float
) -> bytes:  # fmt: skip
    x, y, z, code, colors, said = _heights(model, data)
    words = f"Height: {said}. Filled: to train on; hollow: held out."
    figure, axes = space_axes(title or _SPACE_TITLE, words, ("x", "y", ""), width, height)
    faces = np.array([to_rgba(theme.paled(color, 0.35)) for color in colors])[code.astype(int)]
    axes.plot_surface(
        *np.meshgrid(x, y), z, facecolors=faces, rstride=1, cstride=1, linewidth=0.2,
        edgecolor=theme.PAPER, antialiased=True, alpha=0.9, shade=False,
    )  # fmt: skip
    for number, (points, labels) in enumerate(_examples(data)):
        over = _over(model, points, len(colors))
        for k, color in enumerate(colors):
            chosen = labels == k
            axes.plot(
                points[chosen, 0], points[chosen, 1], over[chosen] + 0.02, linestyle="none",
                marker="o", markersize=3, color=color, zorder=5,
                markerfacecolor=theme.PAPER if number else color,
            )  # fmt: skip
    return space_image(figure, axes, scale, False)
