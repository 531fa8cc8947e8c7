"""What a check is made of: scenarios, a reference, and the mistakes that can be put into it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from optlab.course.sessions import Session
from optlab.course.velocity_rules import Mistake


@dataclass(frozen=True)
class Scenario:
    """Some calls, and what they show.

    Attributes
    ----------
    name, part : str
        A short name, and what it checks in words: a line of the report.
    weight : float
        The share of the score.
    run : callable
        Makes the calls on a session.
    varies : str
        The setting in which this scenario differs from the first one, if it is made for that: a
        class that gives the same in both ignores the setting.
    """

    name: str
    part: str
    weight: float
    run: Callable[[Session], None]
    varies: str = ""


@dataclass(frozen=True)
class Check:
    """The check of one class.

    Attributes
    ----------
    name, title, signature : str
        What it is called, what it is, and how the class is made and called.
    scenarios : callable
        Return the scenarios for a seed. The first one is run a second time, beside another object
        of the class.
    reference : callable
        Return the right class, or the one with some pieces replaced.
    mistakes : list of Mistake
        What can be put into the reference, in the order in which equal ones are named.
    terms : dict
        What the pieces of the reference are called in a report.
    """

    name: str
    title: str
    signature: str
    scenarios: Callable[[int], list[Scenario]]
    reference: Callable[[dict[str, Callable[..., Any]]], Any]
    mistakes: list[Mistake] = field(default_factory=list)
    terms: dict[str, str] = field(default_factory=dict)
