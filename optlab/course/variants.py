"""Numbers of each student's own, drawn from the name that the course knows a student by."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Variant:
    """The numbers of one student: the same at every call, other ones for another student.

    Attributes
    ----------
    seed : int
        What the numbers are drawn from.

    Examples
    --------
    >>> mine = Variant(7)
    >>> mine.number("steepness", 20, 60) == mine.number("steepness", 20, 60)
    True
    """

    seed: int

    def number(self, name: str, low: float, high: float, digits: int = 2) -> float:
        """Return a number from `low` to `high`, rounded to some digits after the point.

        Parameters
        ----------
        name : str
            What the number is; another name gives another number.
        low, high : float
            Its bounds.
        digits : int
            How many digits after the point it has.

        Examples
        --------
        >>> 20 <= Variant(7).number("steepness", 20, 60) <= 60
        True
        """
        return self.point(name, low, high, 1, digits)[0]

    def point(
        self, name: str, low: float, high: float, size: int = 2, digits: int = 2
    ) -> tuple[float, ...]:
        """Return some numbers from `low` to `high`: a start, or a little data.

        Parameters
        ----------
        name : str
            What the numbers are; another name gives other ones.
        low, high : float
            Their bounds.
        size : int
            How many there are.
        digits : int
            How many digits after the point they have.

        Examples
        --------
        >>> len(Variant(7).point("start", -2, 2))
        2
        """
        if not low < high:
            raise ValueError(f"{name!r} needs low < high, not low={low} and high={high}")
        drawn = np.random.default_rng([self.seed, *name.encode()]).uniform(low, high, size)
        return tuple(min(max(round(float(x), digits), low), high) for x in drawn)


def variant(student: str = "", *, seed: int | None = None) -> Variant:
    """Return the numbers of a student, for constants, data and starts of an assignment.

    Parameters
    ----------
    student : str
        The name that the course knows the student by: nbgrader's student id. If it is empty, that
        of JupyterHub is taken, where there is one, and otherwise the numbers that all share.
    seed : int, optional
        A seed in place of a student: for a teacher, or a class in which all have the same numbers.

    Returns
    -------
    Variant
        `seed`, `number(name, low, high)`, `point(name, low, high)`.

    Examples
    --------
    >>> import optlab as ol
    >>> mine = ol.course.variant("ada")
    >>> mine.number("steepness", 20, 60) == ol.course.variant("grace").number("steepness", 20, 60)
    False
    >>> ol.course.variant(seed=7).seed
    7
    """
    if seed is None:
        return Variant(seed_of(own_name(student)))
    if student:
        raise ValueError(
            f"variant() takes a student or a seed: it was given {student!r} and seed={seed}"
        )
    return Variant(seed)


def own_name(student: str = "") -> str:
    """Return the name of a student: the one that is given, or JupyterHub's."""
    return student or os.environ.get("JUPYTERHUB_USER", "")


def seed_of(student: str, seed: int = 0, secret: str = "") -> int:
    """Return the seed of a student: without a name and a secret the seed itself.

    Spaces around a name and its upper case say nothing.

    Examples
    --------
    >>> seed_of("Ada ") == seed_of("ada") != seed_of("grace")
    True
    >>> seed_of("", 3)
    3
    """
    name = student.strip().casefold()
    if not (name or secret):
        return seed
    digest = hashlib.sha256("\n".join([secret, name, str(seed)]).encode()).digest()
    return int.from_bytes(digest[:4], "big")
