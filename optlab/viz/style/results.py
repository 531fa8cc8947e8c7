"""What was given to a figure, read as traces or as a comparison; its errors name what is missing.

A figure of runs takes a trace (of ``ol.record``, ``ol.load_trace`` or a comparison), a list or dict
of traces, or a comparison, as far as what it draws was recorded.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ParamSpec, TypeVar

import numpy as np

from optlab.backend.text import comma_list
from optlab.backend.wrong_arguments import explained
from optlab.trace import Trace
from optlab.viz.style.geometry import Floats
from optlab.viz.style.labels import Renamed, labeled_trace

P = ParamSpec("P")
R = TypeVar("R")

_KINDS = (
    "a trace (what ol.record or ol.load_trace gave, or race['name'] of ol.compare), a list or dict "
    "of traces, or a comparison (what ol.compare gave)"
)


def is_trace(given: Any) -> bool:
    """Return whether something is a trace of a run."""
    return isinstance(given, Trace)


def is_comparison(given: Any) -> bool:
    """Return whether something has runs of one problem."""
    return hasattr(given, "traces") and hasattr(given, "problem")


def are_runs(given: Any) -> bool:
    """Return whether something is a trace, a comparison, or a list or dict of traces."""
    if isinstance(given, (Mapping, list, tuple)):
        several = given.values() if isinstance(given, Mapping) else given
        return len(given) > 0 and all(map(is_trace, several))
    return is_trace(given) or is_comparison(given)


def traces_of(given: Any, what: str) -> dict[str, Any]:
    """Return traces by their names: of one, several, or a comparison.

    Parameters
    ----------
    given
        What the figure was given.
    what : str
        The name of the figure's function, for messages.

    Raises
    ------
    TypeError, ValueError
        If something else was given, or nothing.
    """
    given = getattr(given, "traces", given)
    given = given.trace if is_trace(getattr(given, "trace", None)) else given  # a Training
    named: Iterable[tuple[str | None, Any]] = [(None, given)]
    if isinstance(given, Mapping):
        named = [(str(name), one) for name, one in given.items()]
    elif isinstance(given, (list, tuple)):
        named = [(None, one) for one in given]
    found: dict[str, Any] = {}
    for own, one in named:
        if not is_trace(one):
            raise TypeError(f"{what} takes {_KINDS}; got {type(one).__name__}.")
        shown = own or labeled_trace(one).name
        name, count = shown, 2
        while name in found:
            name, count = f"{shown} ({count})", count + 1
        found[name] = one
    if not found:
        raise ValueError(f"{what} needs at least one trace.")
    return found


def one_trace(given: Any, what: str, fits: Callable[[Any], bool] | None = None) -> Any:
    """Return the trace of a figure of one run: given alone, or the only one of several that fits.

    Raises
    ------
    TypeError, ValueError
        If there is no trace, or there are several; the message says how to choose.
    """
    found = traces_of(given, what)
    if len(found) > 1 and fits is not None:
        found = {name: trace for name, trace in found.items() if fits(trace)} or found
    if len(found) > 1:
        name = next(iter(found))
        many = "race" if is_comparison(given) else "traces"
        chosen = f"{many}[{name!r}]" if many == "race" or isinstance(given, dict) else "traces[0]"
        raise ValueError(
            f"{what} draws one run; got {len(found)}: {comma_list(found, 8)}. Choose one, such as "
            f"{what}({chosen})."
        )
    [(name, trace)] = found.items()
    return trace if labeled_trace(trace).name == name else Renamed(trace, name=name)


def refuse_runs(given: Any, what: str, needs: str, has: str = "") -> None:
    """Raise where runs, or something else that was given, cannot tell what a figure draws.

    Parameters
    ----------
    given
    what : str
        The name of the figure's function.
    needs : str
        What a run lacks, and then "Give ...", what to give instead.
    has : str
        An attribute of every result that the figure draws.

    Raises
    ------
    TypeError
        If a trace, several, or a comparison were given, or something without the attribute.

    Examples
    --------
    >>> refuse_runs(3, "table", "a run keeps no cells. Give a sheet: table(sheet).", has="cells")
    Traceback (most recent call last):
    ...
    TypeError: table cannot be drawn from an object of int. Give a sheet: table(sheet).
    """
    if are_runs(given):
        kind = "a comparison" if is_comparison(given) else "traces"
        kind = "a trace" if is_trace(given) else kind
        raise TypeError(f"{what} cannot be drawn from {kind}: {needs}")
    if has and (isinstance(given, type) or not hasattr(given, has)):
        kind = given.__name__ if isinstance(given, type) else type(given).__name__
        which = "the class" if isinstance(given, type) else "an object of"
        give = needs[max(0, needs.find("Give ")) :]
        raise TypeError(f"{what} cannot be drawn from {which} {kind}. {give}")


def not_of_runs(why: str, give: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Let a figure of something else than runs say what it needs; a decorator.

    Parameters
    ----------
    why : str
        What a run lacks, for traces and comparisons.
    give : str
        What to give instead, for these and for a call without arguments.

    Examples
    --------
    >>> @not_of_runs("a run keeps no cells", "Give a sheet: table(sheet).")
    ... def table(sheet): ...
    >>> table()
    Traceback (most recent call last):
    ...
    TypeError: table() has nothing to draw. Give a sheet: table(sheet).
    """

    def decorate(draw: Callable[P, R]) -> Callable[P, R]:
        what, drawn = draw.__name__, explained(draw)

        @functools.wraps(draw)
        def checked(*args: P.args, **options: P.kwargs) -> R:
            if not (args or options):
                raise TypeError(f"{what}() has nothing to draw. {give}")
            for given in (*args, *options.values()):
                refuse_runs(given, what, f"{why}. {give}")
            return drawn(*args, **options)

        return checked

    return decorate


@dataclass(frozen=True)
class _NoSurface:
    """The problem of runs that were recorded outside of a comparison."""

    title: str
    kind: str = "runs"
    dimension: int = 0
    minimum_value: float | None = None


@dataclass(frozen=True)
class _Runs:
    """Runs that were given one by one, as a `ComparisonLike`.

    Attributes
    ----------
    apart : bool
        Whether starts, steps or seeds may differ.
    """

    problem: Any
    traces: dict[str, Any]
    steps: int
    seed: int | None
    apart: bool
    final_loss: dict[str, float]
    accuracy: dict[str, float] = field(default_factory=dict)


def comparison_of(given: Any, what: str) -> Any:
    """Return a comparison: as given, or of traces.

    Raises
    ------
    TypeError, ValueError
        If something else was given, or a trace has no loss.
    """
    if is_comparison(given):
        return given
    if not (is_trace(given) or isinstance(given, (Mapping, list, tuple))):
        raise TypeError(f"{what} takes {_KINDS}; got {type(given).__name__}.")
    found = traces_of(given, what)
    for name, trace in found.items():
        if not len(trace):
            raise ValueError(f"the trace {name!r} has no steps to draw.")
        if not np.isfinite(np.asarray(trace.loss, dtype=np.float64)).any():
            raise ValueError(without_loss(name, what))
    problems = [trace.problem for trace in found.values()]
    same = problems[0] is not None and all(one is problems[0] for one in problems)
    problem = problems[0] if same else _NoSurface(_title(found, problems))
    paths = [_path(trace) for trace in found.values()]
    on_path = problem.kind == "surface" and all(path is not None for path in paths)
    if problem.kind == "surface" and not on_path:
        problem = _NoSurface(problem.title, minimum_value=problem.minimum_value)
    runs, final, ends = {}, {}, []
    for name, trace in found.items():
        last = int(trace.step[-1])
        runs[name], final[name] = (_on_surface if on_path else _of_losses)(name, trace, problem)
        ends.append(last if on_path else last - 1)  # the loss is the one before a step
    origins = [trace.origin for trace in found.values()]
    alike = same and all(one == origins[0] for one in origins) and len(set(ends)) == 1
    known = alike and origins[0] is not None
    seed = origins[0][1] if known and origins[0] is not None else None
    apart = len(found) > 1 and not known
    return _Runs(problem, runs, max(ends), seed, apart, final)


def without_loss(name: str, what: str) -> str:
    """Return what a figure says of a trace without losses."""
    return (
        f"the trace {name!r} has no loss, which {what} draws. It is read where backward() runs "
        "inside ol.record(optimizer), with every probe; trace.append(loss=...) gives that of "
        "another library."
    )


def _title(found: dict[str, Any], problems: list[Any]) -> str:
    titles = list(dict.fromkeys(problem.title for problem in problems if problem is not None))
    if titles and None not in problems:
        return ", ".join(titles)
    return next(iter(found)) if len(found) == 1 else f"{len(found)} recorded runs"


def _path(trace: Any) -> Floats | None:
    """Return the recorded path of a run on a surface; None if there is none."""
    path = trace.parameters.get("point")
    return None if path is None else np.asarray(path, dtype=np.float64)


def _on_surface(name: str, trace: Any, problem: Any) -> tuple[Any, float]:
    """Return a run with the losses along its path, and the loss at its end."""
    path = _path(trace)
    assert path is not None
    columns = path.reshape(len(path), -1).T
    with np.errstate(all="ignore"):
        losses = np.asarray(problem.values(*columns), dtype=np.float64)
    replaced: dict[str, Any] = {"name": name}
    step = np.asarray(trace.step)
    if not np.array_equal(step, np.arange(1, len(step) + 1)):  # recorded every few steps
        replaced |= {"loss": losses[:-1], "taken": np.insert(step, 0, 0).astype(np.float64)}
    return Renamed(trace, **replaced), float(losses[-1])


def _of_losses(name: str, trace: Any, problem: Any) -> tuple[Any, float]:
    """Return a run with its recorded losses, of which the last is that before the last step."""
    taken = np.asarray(trace.step, dtype=np.float64) - 1
    return Renamed(trace, name=name, taken=taken), float(trace.loss[-1])


def check_paths(traces: Mapping[str, Any], what: str) -> None:
    """Raise where runs have no paths over one map.

    Raises
    ------
    ValueError
        If a problem is unknown, values were not recorded, or the problems differ.
    """
    for name, trace in traces.items():
        if trace.problem is None:
            raise ValueError(
                f"the trace {name!r} does not know its problem, whose map {what} draws: only runs "
                "of ol.compare do, until they are saved. Set it, such as "
                "trace.problem = ol.problems.rosenbrock."
            )
        if trace.problem.kind == "surface" and _path(trace) is None:
            raise ValueError(
                f"the trace {name!r} has no values of its parameter 'point', the path that {what} "
                "draws. Record them: ol.record(optimizer, probes=[ol.probes.Values()])."
            )
    problems = {id(trace.problem): trace.problem.title for trace in traces.values()}
    if len(problems) > 1:
        raise ValueError(
            f"{what} draws runs on one problem; got runs on {comma_list(problems.values())}."
        )
