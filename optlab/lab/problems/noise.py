"""Problems whose gradients are noisy."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from optlab.lab.problems.lookup import find
from optlab.lab.problems.surface import Surface


def noisy(problem: Any, sigma: float) -> Surface:
    """Return the same surface with noise on its gradients, as mini-batches have.

    Every element of every gradient gets independent normal noise; the reported losses stay exact,
    so that curves are comparable. The noise of a step depends only on the seed and the step: all
    runs of a comparison get the same.

    Parameters
    ----------
    problem : Surface, str or callable
        What `optlab.compare` accepts, except networks, whose mini-batches are noisy already.
    sigma : float
        Standard deviation of the noise.

    Raises
    ------
    ValueError
        If `sigma` is negative or not finite.
    TypeError
        If the problem is a network.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.problems.noisy("rosenbrock", 0.5).title
    'Rosenbrock valley, gradient noise 0.5'
    """
    surface = find(problem)
    if not isinstance(surface, Surface):
        raise TypeError(f"{surface.title} is a network: its mini-batches are noisy by themselves.")
    if not 0 <= sigma < np.inf:
        raise ValueError(f"sigma must be a finite number of at least 0; got {sigma!r}.")
    fresh = copy.copy(surface)
    fresh.noise = float(sigma)
    fresh.title = f"{surface.title}, gradient noise {sigma:g}"
    return fresh
