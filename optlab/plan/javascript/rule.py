"""Update rules as data: what a JavaScript module needs of an optimizer, and nothing of its class.

A rule is one or several parts (an optimizer, then each wrapper around it). A part has variants, one
for each combination of the settings that choose its form, and a variant has forms, one for each
kind of step. What a step computes of its number and the settings alone, and JavaScript would round
differently, is in tables that Python has made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from optlab.plan.javascript.elementwise import ElementLoop
from optlab.plan.plan import Instruction, Place, Plan


class Table(NamedTuple):
    """Numbers of each step, for each combination of the settings that they depend on.

    Attributes
    ----------
    settings : tuple of str
        Names; empty if the numbers depend on the step alone.
    rows : dict of tuple to list of float
        By the values of these settings: one number a step, that of step 1 first.
    """

    settings: tuple[str, ...]
    rows: dict[tuple[Any, ...], list[float]]


class Scalars(NamedTuple):
    """Numbers that a step computes once, before it goes over the elements.

    Attributes
    ----------
    instructions : list of Instruction
        On numbers, in order.
    inputs : dict of Place to str
        Settings, ``"h.beta1"``, and columns of tables, ``"c0"``.
    results : dict of str to Place or float
        The numbers that the rule reads, by name.
    """

    instructions: list[Instruction]
    inputs: dict[Place, str]
    results: dict[str, Any]


class Form(NamedTuple):
    """One step of a part: its scalars, and the captured update of the arrays.

    Attributes
    ----------
    scalars : Scalars
    plan : ElementLoop or Plan
        Over the elements of arrays of any length, or on arrays of one shape.
    arrays : list of str
        The arrays that it takes: ``"p"`` and ``"g"``, the parameter and its gradient, and slots.
    numbers : list of str
        The numbers that it takes after them: settings, ``"h.beta1"``, and results of `scalars`.
    outputs : list of str
        The arrays that the outputs of a `Plan` are; an `ElementLoop` names its own.
    """

    scalars: Scalars
    plan: ElementLoop | Plan
    arrays: list[str]
    numbers: list[str]
    outputs: list[str]


class Variant(NamedTuple):
    """A part for one combination of the settings that choose its form.

    Attributes
    ----------
    settings : dict
        This combination.
    slots : dict of str to (float, str or None)
        Each slot with the value that it starts with: a number, the name of a setting, or None for
        that of the weights.
    forms : list of Form
    form_of_step : list of int
        The number of the form of each step, that of step 1 first.
    tables : dict of str to Table
    """

    settings: dict[str, Any]
    slots: dict[str, Any]
    forms: list[Form]
    form_of_step: list[int]
    tables: dict[str, Table]


class Part(NamedTuple):
    """An optimizer's own rule, or what a wrapper does after each of its steps.

    Attributes
    ----------
    title : str
    settings : dict
        The settings with their values.
    notches : dict of str to list
        The values for which there are tables or variants; others of these settings are refused.
    rates : dict of str to list of float
        Learning rates that change from step to step, by the text of their schedule.
    variants : list of Variant
    evaluated : str or None
        The slot that holds the weights to evaluate at the end, if not the parameters.
    """

    title: str
    settings: dict[str, Any]
    notches: dict[str, list[Any]]
    rates: dict[str, list[float]]
    variants: list[Variant]
    evaluated: str | None = None


class Rule(NamedTuple):
    """An optimizer as data, for a parameter of `dimension` elements and at most `steps` steps."""

    title: str
    dimension: int
    steps: int
    parts: list[Part]


def combinations(
    names: Sequence[str], notches: Mapping[str, Sequence[Any]]
) -> list[dict[str, Any]]:
    """Return every combination of the notches of these settings.

    Examples
    --------
    >>> combinations(["a", "b"], {"a": [1, 2], "b": [True]})
    [{'a': 1, 'b': True}, {'a': 2, 'b': True}]
    """
    found: list[dict[str, Any]] = [{}]
    for name in names:
        found = [{**one, name: value} for one in found for value in notches[name]]
    return found
