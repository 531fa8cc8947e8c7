"""Claim figures: one sentence, one small picture, one slider, alive without a kernel."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from optlab.backend.display import SavedBySave
from optlab.lab.compare import Comparison
from optlab.viz.browser import save_page
from optlab.viz.claims.image import claim_png
from optlab.viz.claims.page import full_page, live_output
from optlab.viz.claims.view import ClaimView, claim_view
from optlab.viz.style.results import not_of_runs

__all__ = ["Claim", "claim"]

_MOST_POSITIONS = 60


class Claim(SavedBySave):
    """A claim with its data, which a notebook shows as a page with a slider.

    Attributes
    ----------
    sentence : str
    positions : list of float
    values : dict of str to array
        What was measured of each optimizer, at each position.
    """

    def __init__(
        self, sentence: str, positions: list[float], values: dict[str, np.ndarray], view: ClaimView
    ) -> None:
        self.sentence = sentence
        self.positions = positions
        self.values = values
        self.view = view

    def to_html(self, path: str | Path | None = None) -> str | Path:
        """Return a page that works with no kernel and no network, or write it to a file."""
        return save_page(full_page(self.view), path)

    def to_png(self, path: str | Path | None = None, width: int = 760) -> bytes:
        """Return the picture at the first position that is shown, as a PNG image.

        Parameters
        ----------
        path : path, optional
            The file to write.
        width : int
            Pixels; the height follows.
        """
        content = claim_png(self.view, scale=2 * width / 760)
        if path is not None:
            Path(path).write_bytes(content)
        return content

    def save(self, path: str | Path) -> Path:
        """Write the figure to a file: ``.png``, or ``.html`` with the live figure.

        Raises
        ------
        ValueError
            If the name ends in something else.
        """
        target = Path(path)
        if target.suffix not in (".png", ".html"):
            raise ValueError(f"the name must end in .png or .html; got {target.name!r}.")
        if target.suffix == ".png":
            self.to_png(target)
        else:
            self.to_html(target)
        return target

    def __repr__(self) -> str:
        return f"<Claim: {self.view.plain_sentence}>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return {"text/plain": repr(self), "text/html": live_output(self.view)}


@not_of_runs(
    "it makes runs of its own, one for each position of its slider",
    "Give a sentence, positions, a function race(position) that returns ol.compare(...), "
    "measure(comparison, name), holds(values), and in words what is measured.",
)
def claim(
    sentence: str,
    *,
    positions: Sequence[float],
    race: Callable[[float], Comparison],
    measure: Callable[[Comparison, str], float],
    holds: Callable[[Mapping[str, np.ndarray]], bool],
    measured: str,
    unit: str = "",
    question: str = "",
    setting: str = "",
    label: str = "{:g}",
    title: str = "{}",
    note: str = "",
    at: float | None = None,
) -> Claim:
    """Draw one claim: a sentence, the races that prove it, and a slider through them.

    All races are run now, and travel with the figure: it works in a notebook without a kernel, in a
    page, and on a site. Where scripts may not run, a picture stays.

    Parameters
    ----------
    sentence : str
        The claim. A name of an optimizer between asterisks gets its color: ``"With *momentum*, ten
        steps."``
    positions : sequence of float
        The positions of the slider, 3 to 60 in ascending order; on a logarithmic scale if they are
        positive and span a factor of 20.
    race : callable
        Maps a position to a `Comparison` on a surface of two numbers, of the same optimizers each
        time.
    measure : callable
        Maps a comparison and a name to the number on the vertical axis.
    holds : callable
        Maps what was measured, an array over the positions for each name, to whether the claim is
        true of it.
    measured, unit : str
        What that number is, above the axis, and its unit behind a number: "steps needed", "steps".
    question : str
        What the slider asks: "How uneven is the bowl?"
    setting : str
        What the positions are, under the question.
    label, title : str
        Formats of a position, and of the heading of the map, where ``{}`` is the label.
    note : str
        Conditions, under the figure.
    at : float, optional
        The position shown first; by default the middle one.

    Returns
    -------
    Claim
        It displays itself in a notebook; ``.to_html()`` and ``.to_png()`` write files.

    Raises
    ------
    ValueError
        If the claim does not hold of its data; they are in the message. If positions or races do
        not fit. If one of the functions raises; the message has the claim and the position.

    Examples
    --------
    >>> import optlab as ol
    >>> def race(condition):
    ...     methods = {"gradient descent": ol.optimizer.SGD(1 / condition)}
    ...     return ol.compare(ol.problems.quadratic(condition), methods, steps=300)
    >>> figure = ol.viz.claim(
    ...     "The more uneven the bowl, the more loss is left to *gradient descent*.",
    ...     positions=[2, 5, 10, 20, 50],
    ...     race=race,
    ...     measure=lambda comparison, name: comparison.final_loss[name],
    ...     holds=lambda values: (values["gradient descent"][1:] > 0).all(),
    ...     measured="loss after 300 steps",
    ...     label="{:g} : 1",
    ... )
    >>> figure.values["gradient descent"].shape
    (5,)
    """
    places = [float(position) for position in positions]
    if not 3 <= len(places) <= _MOST_POSITIONS:
        raise ValueError(
            f"positions must be 3 to {_MOST_POSITIONS} numbers, the stops of the slider; got "
            f"{len(places)}."
        )
    if any(a >= b for a, b in itertools.pairwise(places)):
        raise ValueError(f"positions must be in ascending order; got {places}.")
    if at is not None and float(at) not in places:
        raise ValueError(f"at must be one of the positions {places}; got {at!r}.")
    try:
        labels = [label.format(place) for place in places]
    except (ValueError, LookupError) as error:
        raise ValueError(
            f"label must be a format of one number, such as '{{:g}} : 1'; got {label!r} ({error})."
        ) from error
    said = sentence.replace("*", "")
    races = []
    for position in positions:
        with _told(said, f"race({position!r})"):
            races.append(race(position))
    _check(races)
    names = list(races[0].traces)
    values = {name: np.empty(len(races)) for name in names}
    for number, (position, one) in enumerate(zip(positions, races, strict=True)):
        for name in names:
            with _told(said, f"at {position!r}, measure(comparison, {name!r})"):
                values[name][number] = float(measure(one, name))
    with _told(said, "holds(values)"):
        true = bool(holds(values))
    if not true:
        numbers = "; ".join(f"{name}: {array.round(4).tolist()}" for name, array in values.items())
        raise ValueError(f"the claim does not hold of its data. {measured}: {numbers}.")
    first = len(places) // 2 if at is None else places.index(float(at))
    view = claim_view(
        sentence, races, values, places, labels, first,
        measured=measured, unit=unit, question=question, setting=setting, title=title, note=note,
    )  # fmt: skip
    return Claim(sentence, places, values, view)


@contextmanager
def _told(sentence: str, call: str) -> Iterator[None]:
    """Say which claim, and which call for it, raised."""
    try:
        yield
    except Exception as error:
        raise ValueError(
            f"in the claim {sentence!r}, {call} raised {type(error).__name__}: {error}"
        ) from error


def _check(races: list[Any]) -> None:
    """Raise for what are no races of the same optimizers on surfaces of two numbers."""
    for one in races:
        if not isinstance(one, Comparison):
            raise ValueError(
                f"race must return what ol.compare returns, for every position; got {one!r}."
            )
        if getattr(one.problem, "dimension", None) != 2:
            raise ValueError(
                f"a claim draws a map, of a surface of two numbers; {one.problem.title} is another "
                "problem."
            )
        if list(one.traces) != list(races[0].traces):
            raise ValueError(
                f"the races must be of the same optimizers: {list(races[0].traces)}; got "
                f"{list(one.traces)}."
            )
