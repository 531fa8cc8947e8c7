"""A schedule that watches the training."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable
from typing import Any

from optlab.backend.arrays import as_float
from optlab.optimizer.lr import arguments
from optlab.optimizer.lr.base import LRScheduler


class ReduceOnPlateau(LRScheduler):
    r"""Lower the rate when a loss has stopped falling.

    .. math::
        \eta \leftarrow \max(f \eta, \; \eta_{\text{min}})
        \quad \text{after more than } P \text{ epochs without a better metric}

    Parameters
    ----------
    learning_rate : float
        The rate at the start.
    mode : {"min", "max"}
        Whether lower or higher metrics are better.
    factor : float
        What the rate is multiplied by: f, at least 0 and below 1.
    patience : int
        How many epochs P without a better metric are borne.
    threshold : float
        By how much a metric must be better than the best.
    threshold_mode : {"rel", "abs"}
        Whether `threshold` is a share of the best or a difference.
    cooldown : int
        How many epochs after a reduction are not counted.
    min_lr : float
        The lowest rate.
    epsilon : float
        A smaller change of the rate is left out.
    last_epoch, verbose
        As in `LRScheduler`. It prints only reductions.

    Attributes
    ----------
    best : float or None
        The best metric.
    num_bad_epochs, cooldown_counter : int
        Epochs without a better metric, and epochs of cooldown that are left.

    Raises
    ------
    TypeError, ValueError
        If an argument does not fit.

    Notes
    -----
    A metric that is not a number is no better than any, and never the best.

    Source: He et al. 2016, arXiv 1512.03385, section 3.4 (divided by 10 when the error plateaus);
    the documents of Paddle.

    Examples
    --------
    >>> import optlab as ol
    >>> schedule = ol.optimizer.lr.ReduceOnPlateau(0.5, factor=0.5, patience=1)
    >>> schedule.preview([3.0, 2.0, 2.0, 2.0, 1.0])
    [0.5, 0.5, 0.5, 0.5, 0.25, 0.25]
    """

    def __init__(
        self,
        learning_rate: Any,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: float = 0,
        epsilon: float = 1e-8,
        last_epoch: int = -1,
        verbose: bool = False,
    ) -> None:
        self.mode = arguments.choice("mode", _lower(mode), ("min", "max"))
        self.factor = arguments.number("factor", factor, least=0, below=1)
        self.patience = arguments.whole("patience", patience, 0)
        self.threshold = arguments.number("threshold", threshold, least=0)
        self.threshold_mode = arguments.choice(
            "threshold_mode", _lower(threshold_mode), ("rel", "abs")
        )
        self.cooldown = arguments.whole("cooldown", cooldown, 0)
        self.min_lr = arguments.rate("min_lr", min_lr)
        self.epsilon = arguments.number("epsilon", epsilon, least=0)
        self.cooldown_counter = 0
        self.best: float | None = None
        self.num_bad_epochs = 0
        super().__init__(learning_rate, last_epoch, verbose)

    def _begin(self) -> None:
        self.last_epoch += 1  # nothing has been measured, so nothing else happens

    def get_lr(self) -> float:
        """Give the present rate."""
        return self.last_lr

    def step(self, metrics: Any = None, epoch: int | None = None) -> None:  # type: ignore[override]
        """Look at the metric of an epoch, and lower the rate if it was the last straw.

        Parameters
        ----------
        metrics : float, NumPy scalar, one-element array or Tensor
            What was measured, such as the validation loss.
        epoch : int, optional
            The number of the epoch; by default the next.

        Raises
        ------
        TypeError, ValueError
            If `metrics` is not one number. Nothing has changed then.

        Examples
        --------
        >>> import optlab as ol
        >>> schedule = ol.optimizer.lr.ReduceOnPlateau(0.5, patience=0)
        >>> for loss in (1.0, ol.to_tensor(1.0)):
        ...     schedule.step(loss)
        >>> schedule()
        0.05
        """
        if metrics is None:
            raise TypeError(
                "metrics must be one number: ReduceOnPlateau.step takes what was measured, such as "
                "the validation loss. Write schedule.step(loss)."
            )
        if (getattr(metrics, "size", 1) or 0) != 1:
            raise ValueError(
                f"metrics must be one number, but has shape {metrics.shape}; take its mean first."
            )
        metric = as_float(metrics, "metrics")
        self.last_epoch = (
            self.last_epoch + 1 if epoch is None else arguments.whole("epoch", epoch, 0)
        )
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            return
        if self._is_better(metric):
            self.best = metric
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.num_bad_epochs > self.patience:
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
            lower = max(self.last_lr * self.factor, self.min_lr)
            if self.last_lr - lower > self.epsilon:
                self.last_lr = lower
                self._tell()

    def _is_better(self, metric: float) -> bool:
        best = self.best
        if best is None:
            return not math.isnan(metric)
        margin = self.threshold
        if self.threshold_mode == "rel":
            margin = best * margin if math.isfinite(best) else 0.0
        return metric < best - margin if self.mode == "min" else metric > best + margin

    def preview(self, metrics: Iterable[Any]) -> list[float]:  # type: ignore[override]
        """Give the rates that these metrics would lead to, and stay where it is.

        Parameters
        ----------
        metrics : sequence of float
            What will have been measured.

        Returns
        -------
        list of float
            The present rate, and the rate after each metric.
        """
        if isinstance(metrics, int) or not isinstance(metrics, Iterable):
            raise TypeError(
                "the rates of a ReduceOnPlateau depend on what is measured: preview takes the "
                f"metrics, such as preview([1.0, 0.9, 0.9]); got {metrics!r}."
            )
        twin = copy.copy(self)
        twin.verbose = False
        rates = [twin.last_lr]
        for metric in metrics:
            twin.step(metric)
            rates.append(twin.last_lr)
        return rates

    def state_keys(self) -> list[str]:
        """Name the attributes that `state_dict` holds."""
        self.keys = ["cooldown_counter", "best", "num_bad_epochs", "last_epoch", "last_lr"]
        return self.keys

    def _state_value(self, key: str, value: Any, where: str) -> Any:
        if key in ("cooldown_counter", "num_bad_epochs"):
            return arguments.whole(where + key, super()._state_value(key, value, where), 0)
        if key == "best":
            return None if value is None else as_float(value, where + key)
        return super()._state_value(key, value, where)


def _lower(word: Any) -> Any:
    return word.lower() if isinstance(word, str) else word
