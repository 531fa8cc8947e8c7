"""Tables of numbers that come with scikit-learn, and points of a plane in classes."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from optlab.backend.extras import needed_for
from optlab.backend.random import Key
from optlab.lab.data.images import Data


def _table(name: str, classes: bool, held_out: float) -> Data:
    """Return a table of scikit-learn, standardized by its training part."""
    if not 0 < held_out < 1:
        raise ValueError(f"held_out is a share, above 0 and below 1; got {held_out!r}.")
    with needed_for(f"The data set {name}"):
        import sklearn.datasets
        from sklearn.model_selection import train_test_split
    x, y = getattr(sklearn.datasets, f"load_{name}")(return_X_y=True)
    train_x, test_x, train_y, test_y = train_test_split(
        x, y, test_size=held_out, stratify=y if classes else None, random_state=0
    )
    mean, spread = train_x.mean(axis=0), train_x.std(axis=0)
    train_x, test_x = ((part - mean) / spread for part in (train_x, test_x))
    if not classes:
        mean, spread = train_y.mean(), train_y.std()
        train_y, test_y = ((part - mean)[:, None] / spread for part in (train_y, test_y))
    kind: Any = np.int64 if classes else np.float32
    return Data(
        train_x.astype(np.float32), train_y.astype(kind),
        test_x.astype(np.float32), test_y.astype(kind),
    )  # fmt: skip


def breast_cancer(held_out: float = 0.2) -> Data:
    """Return measurements of 569 tumors, 30 features each, benign (1) or malignant (0).

    Features are standardized with the mean and standard deviation of the training part.

    Parameters
    ----------
    held_out : float
        The share that is held out, stratified by class; the split never changes.

    Raises
    ------
    ModuleNotFoundError
        If scikit-learn, which contains the data, is not installed.

    Notes
    -----
    Source: W. Wolberg, O. Mangasarian, N. Street and W. Street, Breast Cancer Wisconsin
    (Diagnostic), UCI Machine Learning Repository (1995), as shipped with scikit-learn.

    Examples
    --------
    >>> breast_cancer().train_x.shape
    (455, 30)
    """
    return _table("breast_cancer", True, held_out)


def wine(held_out: float = 0.2) -> Data:
    """Return chemical analyses of 178 wines, 13 features each, of three cultivars.

    Features are standardized with the mean and standard deviation of the training part.

    Parameters
    ----------
    held_out : float
        The share that is held out, stratified by class; the split never changes.

    Raises
    ------
    ModuleNotFoundError
        If scikit-learn, which contains the data, is not installed.

    Notes
    -----
    Source: S. Aeberhard and M. Forina, Wine, UCI Machine Learning Repository (1992), as shipped
    with scikit-learn.

    Examples
    --------
    >>> sorted(set(wine().train_y.tolist()))
    [0, 1, 2]
    """
    return _table("wine", True, held_out)


def iris(held_out: float = 0.2) -> Data:
    """Return the lengths and widths of sepals and petals of 150 irises of three species.

    Features are standardized with the mean and standard deviation of the training part.

    Parameters
    ----------
    held_out : float
        The share that is held out, stratified by class; the split never changes.

    Raises
    ------
    ModuleNotFoundError
        If scikit-learn, which contains the data, is not installed.

    Notes
    -----
    Source: R. A. Fisher, The use of multiple measurements in taxonomic problems (1936), as shipped
    with scikit-learn.

    Examples
    --------
    >>> iris().test_x.shape
    (30, 4)
    """
    return _table("iris", True, held_out)


def diabetes(held_out: float = 0.2) -> Data:
    """Return 10 features of 442 patients, and the progression of their disease: a regression.

    Features and targets are standardized with the mean and standard deviation of the training part;
    targets have the shape [count, 1].

    Parameters
    ----------
    held_out : float
        The share that is held out; the split never changes.

    Raises
    ------
    ModuleNotFoundError
        If scikit-learn, which contains the data, is not installed.

    Notes
    -----
    Source: B. Efron, T. Hastie, I. Johnstone and R. Tibshirani, Least angle regression (2004), as
    shipped with scikit-learn.

    Examples
    --------
    >>> diabetes().train_y.shape, diabetes().train_y.dtype
    ((353, 1), dtype('float32'))
    """
    return _table("diabetes", False, held_out)


def _two_dimensional(
    points: np.ndarray, labels: np.ndarray, noise: float, key: Key, held_out: float
) -> Data:
    """Return points with noise, shuffled and split."""
    if not 0 < held_out < 1:
        raise ValueError(f"held_out is a share, above 0 and below 1; got {held_out!r}.")
    if not noise >= 0:
        raise ValueError(f"noise is a standard deviation, at least 0; got {noise!r}.")
    draws = key.fold("points").generator()
    points = points + noise * draws.standard_normal(points.shape)
    order = draws.permutation(len(points))
    count = max(1, round(held_out * len(points)))
    x, y = points[order].astype(np.float32), labels[order].astype(np.int64)
    return Data(x[count:], y[count:], x[:count], y[:count])


def _checked_count(count: Any, classes: int) -> int:
    found = operator.index(count)
    if found < 2 * classes:
        raise ValueError(f"count is the number of points, at least {2 * classes}; got {count!r}.")
    return found


def moons(count: int = 400, noise: float = 0.15, seed: int = 0, held_out: float = 0.25) -> Data:
    """Return points of two interleaving half circles, in two classes.

    Parameters
    ----------
    count : int
        Points of both classes.
    noise : float
        The standard deviation of what is added to each coordinate.
    seed : int
    held_out : float
        The share that is held out.

    Examples
    --------
    >>> data = moons(200)
    >>> data.train_x.shape, data.test_x.shape
    ((150, 2), (50, 2))
    """
    count = _checked_count(count, 2)
    upper = np.linspace(0, np.pi, count - count // 2)
    lower = np.linspace(0, np.pi, count // 2)
    points = np.concatenate(
        [
            np.stack([np.cos(upper) - 0.5, np.sin(upper) - 0.25], axis=1),
            np.stack([0.5 - np.cos(lower), 0.25 - np.sin(lower)], axis=1),
        ]
    )
    labels = np.repeat([0, 1], [len(upper), len(lower)])
    return _two_dimensional(points, labels, noise, Key(seed).fold("moons"), held_out)


def spirals(
    count: int = 400, classes: int = 2, turns: float = 1.0, noise: float = 0.04, seed: int = 0,
    held_out: float = 0.25,
) -> Data:  # fmt: skip
    """Return points of spirals that turn around each other, a class each.

    Parameters
    ----------
    count : int
        Points of all classes.
    classes : int
        The number of spirals, at least 2.
    turns : float
        How often a spiral goes around.
    noise : float
        The standard deviation of what is added to each coordinate; spirals end at the radius 1.
    seed : int
    held_out : float
        The share that is held out.

    Examples
    --------
    >>> data = spirals(300, classes=3)
    >>> data.train_x.shape, sorted(set(data.train_y.tolist()))
    ((225, 2), [0, 1, 2])
    """
    if operator.index(classes) < 2 or not turns > 0:
        raise ValueError(
            f"spirals needs at least 2 classes and turns above 0; got {classes!r}, {turns!r}."
        )
    count = _checked_count(count, classes)
    labels = np.arange(count) % classes
    radius = np.sqrt(np.linspace(0.01, 1, count))  # points at equal distances along a spiral
    angle = 2 * np.pi * (turns * radius + labels / classes)
    points = radius[:, None] * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return _two_dimensional(points, labels, noise, Key(seed).fold("spirals"), held_out)
