"""Image data sets that need no download."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from optlab.backend import random
from optlab.backend.extras import needed_for


class Data(NamedTuple):
    """Inputs and labels, for training and held out."""

    train_x: np.ndarray
    train_y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray


def with_validation(data: Data, share: float = 0.2) -> Data:
    """Return the training examples alone, a part of them in place of those held out.

    The split is drawn once and is always the same.

    Raises
    ------
    ValueError
        If one of the two parts would be empty.

    Examples
    --------
    >>> data = with_validation(digits(), 0.2)
    >>> len(data.train_x), len(data.test_x)  # of the 1437 to train on
    (1150, 287)
    """
    n = len(data.train_x)
    judges = round(share * n)
    if not 0 < judges < n:
        raise ValueError(f"{share:g} of {n} training examples leaves a part empty.")
    order = random.Key(0).fold("validation").generator().permutation(n)
    judging, learning = order[:judges], order[judges:]
    return Data(
        data.train_x[learning], data.train_y[learning],
        data.train_x[judging], data.train_y[judging],
    )  # fmt: skip


def digits(size: int | None = None) -> Data:
    """Return handwritten digits, 8 x 8 pixels in [0, 1]: 1437 for training, 360 held out.

    Parameters
    ----------
    size : int, optional
        The images then have the shape [count, 1, size, size], for convolutions, interpolated
        linearly between pixel centers (LeNet takes 28); without it [count, 64].

    Returns
    -------
    Data
        Images of float32, labels of int64; the split is stratified by class, and never changes.

    Raises
    ------
    ModuleNotFoundError
        If scikit-learn, which contains the images, is not installed.
    ValueError
        If the size is less than 1.

    Notes
    -----
    Source: E. Alpaydin and C. Kaynak, Optical Recognition of Handwritten Digits, UCI Machine
    Learning Repository (1998), as shipped with scikit-learn.

    Examples
    --------
    >>> digits().train_x.shape, digits(28).test_x.shape
    ((1437, 64), (360, 1, 28, 28))
    """
    if size is not None and (not isinstance(size, (int, np.integer)) or size < 1):
        raise ValueError(f"digits: size is the length of the images in pixels; got {size!r}.")
    with needed_for("The data set of handwritten digits"):
        from sklearn.datasets import load_digits
        from sklearn.model_selection import train_test_split
    x, y = load_digits(return_X_y=True)
    x = (x / 16).astype(np.float32)
    train_x, test_x, train_y, test_y = train_test_split(
        x, y.astype(np.int64), test_size=0.2, stratify=y, random_state=0
    )
    if size is not None:
        train_x, test_x = (_enlarged(images, size) for images in (train_x, test_x))
    return Data(train_x, train_y, test_x, test_y)


def _enlarged(images: np.ndarray, size: int) -> np.ndarray:
    """Return images of 8 x 8 pixels in another size, with an axis for the one channel."""
    at = np.clip((np.arange(size) + 0.5) * 8 / size - 0.5, 0, 7)
    left = np.minimum(at.astype(int), 6)
    weights = np.zeros((size, 8), images.dtype)
    weights[np.arange(size), left] = 1 - (at - left)
    weights[np.arange(size), left + 1] += at - left
    larger: np.ndarray = weights @ images.reshape(-1, 1, 8, 8) @ weights.T
    return larger
