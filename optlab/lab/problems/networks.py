"""Networks to train: a model, its data, and its accuracy on held-out data."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from optlab.autograd.tape.grad_mode import enable_grad, no_grad
from optlab.backend import random
from optlab.lab.data.images import Data, digits, with_validation
from optlab.nn import CrossEntropyLoss, Layer, Linear, ReLU, Sequential


class Network:
    """A network and its data.

    Parameters
    ----------
    build : callable
        Returns a fresh model; its initial values come from the current random scope.
    data : callable
        Returns the `Data`.
    name, title : str
        For code, and for display.
    batch_size : int
        Examples per step.
    tolerance : float
        The loss to reach, as a running mean over 20 steps.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.problems.digits_mlp()
    <Network 'Handwritten digits, 64-64-10', batches of 32>
    """

    kind = "network"

    def __init__(
        self,
        build: Callable[[], Layer],
        data: Callable[[], Data],
        *,
        name: str,
        title: str,
        batch_size: int = 32,
        tolerance: float = 0.1,
    ) -> None:
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1; got {batch_size!r}.")
        self.build = build
        self.data = data
        self.name = name
        self.title = title
        self.batch_size = batch_size
        self.tolerance = tolerance

    def __repr__(self) -> str:
        return f"<Network {self.title!r}, batches of {self.batch_size}>"

    def run(self, start: Any = None, seed: int = 0) -> NetworkRun:
        """Return a fresh model and its stream of batches, both fixed by the seed.

        Raises
        ------
        TypeError
            If a start is given: a network starts from the initial weights of its seed.
        """
        if start is not None:
            raise TypeError(
                f"{self.title} starts from the initial weights that its seed gives; leave start "
                "out, and use seed= for another start."
            )
        return NetworkRun(self, seed)

    def with_validation(self, share: float = 0.2) -> Network:
        """Return the same network with a part of the training data as its held-out data.

        Settings are chosen on it, so that the held-out data stay unseen until the end. The split is
        drawn once and is always the same.

        Parameters
        ----------
        share : float
            The share of the training data for validation, between 0 and 1.

        Raises
        ------
        ValueError
            If one of the two parts would be empty.

        Examples
        --------
        >>> import optlab as ol
        >>> data = ol.problems.digits_mlp().with_validation(0.2).data()
        >>> len(data.train_x), len(data.test_x)  # of the 1437 to train on
        (1150, 287)
        """
        if not 0 < share < 1:
            raise ValueError(f"share must lie between 0 and 1; got {share!r}.")

        @cache
        def divided() -> Data:
            return with_validation(self.data(), share)

        other = copy.copy(self)
        other.data = divided
        return other


class NetworkRun:
    """One model in training.

    Attributes
    ----------
    model : Layer
    parameters : list of Parameter
    """

    def __init__(self, network: Network, seed: int) -> None:
        self.network = network
        self.data = network.data()
        with random.scope("weights", seed=seed):
            self.model = network.build()
        self.parameters = self.model.parameters()
        self.key = random.Key(seed).fold("order")
        self.loss_function = CrossEntropyLoss()
        self._order = np.empty(0, dtype=np.int64)
        self._epoch = -1

    def batch(self, step: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the examples of step `step` (from 0); every epoch is shuffled by the seed."""
        n, size = len(self.data.train_x), min(self.network.batch_size, len(self.data.train_x))
        steps_per_epoch = n // size
        epoch, place = divmod(step, steps_per_epoch)
        if epoch != self._epoch:
            self._order = self.key.fold(epoch).generator().permutation(n)
            self._epoch = epoch
        chosen = self._order[place * size : (place + 1) * size]
        return self.data.train_x[chosen], self.data.train_y[chosen]

    def backward(self, step: int) -> Any:
        """Compute the loss on the next batch, and set the gradients of the parameters."""
        for parameter in self.parameters:
            if parameter.trainable:
                parameter.grad = None
        x, y = self.batch(step)
        with enable_grad():
            loss = self.loss_function(self.model(x), y)
        loss.backward()
        return loss.data

    def loss(self) -> float:
        """Return the loss on all training data."""
        with no_grad():
            value = self.loss_function(self.model(self.data.train_x), self.data.train_y)
        return float(value.item())

    def held_out_loss(self) -> float:
        """Return the loss on all held-out data."""
        with no_grad():
            value = self.loss_function(self.model(self.data.test_x), self.data.test_y)
        return float(value.item())

    @property
    def accuracy(self) -> float:
        """The accuracy on held-out data."""
        with no_grad():
            scores = self.model(self.data.test_x)
        return float(np.mean(scores.argmax(axis=1) == self.data.test_y))

    def place(self) -> str:
        """Return the position of the run, for messages."""
        return "in training"


def digits_mlp(hidden: int = 64, batch_size: int = 32) -> Network:
    """Return the handwritten digits as a problem: 8 x 8 pixels, ten classes, a two-layer network.

    1437 images are for training and 360 held out, stratified by class; the split never changes.

    Parameters
    ----------
    hidden : int
        Hidden units.
    batch_size : int
        Images per step.

    Raises
    ------
    ModuleNotFoundError
        When a run starts and scikit-learn, which contains the images, is not installed.

    Notes
    -----
    Source: E. Alpaydin and C. Kaynak, Optical Recognition of Handwritten Digits, UCI Machine
    Learning Repository (1998), as shipped with scikit-learn.

    Examples
    --------
    >>> import optlab as ol
    >>> run = ol.problems.digits_mlp().run(seed=0)
    >>> [parameter.shape for parameter in run.parameters]
    [(64, 64), (64,), (64, 10), (10,)]
    """
    if hidden < 1:
        raise ValueError(f"hidden must be at least 1; got {hidden!r}.")

    def build() -> Layer:
        return Sequential(Linear(64, hidden), ReLU(), Linear(hidden, 10))

    return Network(
        build,
        digits,
        name="digits_mlp",
        title=f"Handwritten digits, 64-{hidden}-10",
        batch_size=batch_size,
    )
