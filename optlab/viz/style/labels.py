"""Labels: results whose names and titles may be any text, as figures can write them."""

from __future__ import annotations

from html import escape
from typing import Any

from optlab.backend.text import one_line, unique_lines

_MOST = 48  # letters of a name in a legend
_MOST_OF_TITLE = 80


class Renamed:
    """A result with some attributes replaced; the others are those of the result."""

    def __init__(self, result: Any, **replaced: Any) -> None:
        self._result = result
        self.__dict__.update(replaced)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._result, name)

    def __len__(self) -> int:
        return len(self._result)


def labeled(comparison: Any) -> Any:
    """Return a comparison whose names and title are short, printable lines.

    Parameters
    ----------
    comparison : ComparisonLike
        Returned unchanged if all its names are such lines.
    """
    names = unique_lines(comparison.traces, _MOST)
    problem = labeled_problem(comparison.problem)
    if problem is comparison.problem and all(name == line for name, line in names.items()):
        return comparison

    def renamed(mapping: Any) -> dict[str, Any]:
        return {names.get(name, name): value for name, value in mapping.items()}

    replaced = {
        "problem": problem,
        "traces": {
            line: Renamed(comparison.traces[name], name=line) for name, line in names.items()
        },
        "final_loss": renamed(comparison.final_loss),
        "accuracy": renamed(comparison.accuracy),
    }
    if hasattr(comparison, "styles"):
        replaced["styles"] = renamed(comparison.styles)
    return Renamed(comparison, **replaced)


def labeled_problem(problem: Any) -> Any:
    """Return a problem whose title is a short, printable line."""
    title = one_line(str(problem.title), _MOST_OF_TITLE)
    return problem if title == problem.title else Renamed(problem, title=title)


def labeled_trace(trace: Any) -> Any:
    """Return a trace whose name, and the title of whose problem, are short, printable lines."""
    name = getattr(trace, "name", None)
    if not isinstance(name, str):
        return trace
    problem = getattr(trace, "problem", None)
    shown = None if problem is None else labeled_problem(problem)
    line = one_line(name, _MOST)
    if line == name and shown is problem:
        return trace
    return Renamed(trace, name=line, problem=shown)


def escaped(text: str) -> str:
    """Return a text as plotly shows it: no tag, no entity, no placeholder."""
    return escape(text, quote=False).replace("%{", "% {")
