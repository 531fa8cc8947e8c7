"""A schedule that depends on a metric."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable
from typing import Any

from optlab.backend.arrays import as_float
from optlab.optimizer.lr import arguments
from optlab.optimizer.lr.base import LRScheduler, whole


class ReduceOnPlateau(LRScheduler):
    r"""Reduce the rate when a metric stops improving.

    .. math::
        \eta \leftarrow \max(f \eta, \; \eta_{\text{min}})
        \quad \text{after more than } P \text{ epochs without a better metric}

    Parameters
    ----------
    learning_rate : float
        The initial rate.
    mode : {"min", "max"}
        Whether lower or higher metrics are better.
    factor : float
        The factor f of a reduction, at least 0 and below 1.
    patience : int
        Number of epochs P without improvement that are tolerated.
    threshold : float
        The least improvement over the best metric.
    threshold_mode : {"rel", "abs"}
        Whether `threshold` is relative to the best metric or a difference.
    cooldown : int
        Number of epochs after a reduction that are not counted.
    min_lr : float
        The lowest rate.
    epsilon : float
        A smaller change of the rate is skipped.
    last_epoch, verbose
        As in `LRScheduler`. It prints only reductions.

    Attributes
    ----------
    best : float or None
        The best metric.
    num_bad_epochs, cooldown_counter : int
        Epochs without improvement, and remaining epochs of cooldown.

    Raises
    ------
    TypeError, ValueError
        If an argument is invalid.

    Notes
    -----
    A NaN metric is never an improvement.

    Source: He et al. 2016, arXiv 1512.03385, section 3.4 (divided by 10 when the error plateaus);
    the documentation of Paddle.

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
        self.patience = arguments.integer("patience", patience, 0)
        self.threshold = arguments.number("threshold", threshold, least=0)
        self.threshold_mode = arguments.choice(
            "threshold_mode", _lower(threshold_mode), ("rel", "abs")
        )
        self.cooldown = arguments.integer("cooldown", cooldown, 0)
        self.min_lr = arguments.rate("min_lr", min_lr)
        self.epsilon = arguments.number("epsilon", epsilon, least=0)
        self.cooldown_counter = 0
        self.best: float | None = None
        self.num_bad_epochs = 0
        super().__init__(learning_rate, last_epoch, verbose)

    def _begin(self) -> None:
        self.last_epoch += 1  # there is no metric yet

    def get_lr(self) -> float:
        """Return the current rate."""
        return self.last_lr

    @whole
    def step(self, metrics: Any = None, epoch: int | None = None) -> None:  # type: ignore[override]
        """Record the metric of an epoch, and reduce the rate if the patience is exceeded.

        Parameters
        ----------
        metrics : float, NumPy scalar, one-element array or Tensor
            The metric, such as the validation loss.
        epoch : int, optional
            The epoch; by default the next.

        Raises
        ------
        TypeError, ValueError
            If `metrics` is not one number. Nothing is changed then.

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
            self.last_epoch + 1 if epoch is None else arguments.integer("epoch", epoch, 0)
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
                self._print_rate()

    def _is_better(self, metric: float) -> bool:
        best = self.best
        if best is None:
            return not math.isnan(metric)
        margin = self.threshold
        if self.threshold_mode == "rel":
            margin = best * margin if math.isfinite(best) else 0.0
        return metric < best - margin if self.mode == "min" else metric > best + margin

    def preview(self, metrics: Iterable[Any]) -> list[float]:  # type: ignore[override]
        """Return the rates that these metrics would lead to, without changing the schedule.

        Parameters
        ----------
        metrics : sequence of float
            Future metrics.

        Returns
        -------
        list of float
            The current rate, and the rate after each metric.
        """
        if isinstance(metrics, int) or not isinstance(metrics, Iterable):
            raise TypeError(
                "the rates of a ReduceOnPlateau depend on what is measured: preview takes the "
                f"metrics, such as preview([1.0, 0.9, 0.9]); got {metrics!r}."
            )
        preview = copy.copy(self)
        preview.verbose = False
        rates = [preview.last_lr]
        for metric in metrics:
            preview.step(metric)
            rates.append(preview.last_lr)
        return rates

    def state_keys(self) -> list[str]:
        """Return the names of the attributes in `state_dict`."""
        self.keys = ["cooldown_counter", "best", "num_bad_epochs", "last_epoch", "last_lr"]
        return self.keys

    def _state_value(self, key: str, value: Any, where: str) -> Any:
        if key in ("cooldown_counter", "num_bad_epochs"):
            return arguments.integer(where + key, super()._state_value(key, value, where), 0)
        if key == "best":
            return None if value is None else as_float(value, where + key)
        return super()._state_value(key, value, where)


def _lower(word: Any) -> Any:
    return word.lower() if isinstance(word, str) else word
