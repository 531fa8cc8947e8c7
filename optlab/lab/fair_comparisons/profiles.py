"""Performance profiles: the share of problems solved within a factor of the best."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np


class Profile(NamedTuple):
    r"""Shares of problems by the factor to the best.

    Attributes
    ----------
    factors : array
        Where a share changes, from 1 on.
    shares : dict of str to array
        :math:`\rho_s(\tau)`: the share of the problems that an optimizer solves at no more than
        :math:`\tau` times the cost of the best one.
    problems : int
    """

    factors: np.ndarray
    shares: dict[str, np.ndarray]
    problems: int


def performance_profile(costs: Mapping[str, Any]) -> Profile:
    r"""Compute performance profiles.

    .. math:: r_{p,s} = \frac{t_{p,s}}{\min_s t_{p,s}}, \qquad
        \rho_s(\tau) = \frac{|\{p : r_{p,s} \le \tau\}|}{n_p}

    Parameters
    ----------
    costs : dict of str to array
        For each optimizer its cost on each problem, above 0; infinite where it failed. A problem
        that all fail counts against all.

    Returns
    -------
    Profile

    Raises
    ------
    ValueError
        If the arrays differ in length, are empty, or hold costs of 0 or below.

    References
    ----------
    Dolan and More, Benchmarking optimization software with performance profiles, 2002.

    Examples
    --------
    >>> found = performance_profile({"A": [10, 30, np.inf], "B": [20, 15, 40]})
    >>> found.factors, found.shares["A"].round(2), found.shares["B"].round(2)
    (array([1., 2.]), array([0.33, 0.67]), array([0.67, 1.  ]))
    """
    table = {name: np.asarray(row, np.float64) for name, row in costs.items()}
    shapes = {row.shape for row in table.values()}
    if len(shapes) != 1 or len(next(iter(shapes))) != 1 or not next(iter(shapes))[0]:
        raise ValueError(
            "performance_profile takes a cost of each problem for each optimizer, such as "
            "{'A': [10, 30], 'B': [20, 15]}; got the shapes "
            f"{', '.join(map(str, sorted(shapes))) or 'of nothing'}."
        )
    stacked = np.stack(list(table.values()))
    if not (stacked > 0).all():
        raise ValueError("costs are above 0, and infinite where an optimizer failed.")
    best = stacked.min(axis=0)
    with np.errstate(invalid="ignore"):
        ratios = np.where(np.isfinite(stacked), stacked / best, np.inf)
    factors = np.unique(np.append(ratios[np.isfinite(ratios)], 1.0))
    shares = {
        name: (row[None, :] <= factors[:, None]).mean(axis=1)
        for name, row in zip(table, ratios, strict=True)
    }
    return Profile(factors, shares, stacked.shape[1])
