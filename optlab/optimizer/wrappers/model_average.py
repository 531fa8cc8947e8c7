"""ModelAverage: the mean of the weights over a window of the last steps."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, ClassVar

import numpy as np

from optlab.autograd.tensor.conversions import as_setting
from optlab.autograd.tensor.tensor import Tensor, raw
from optlab.backend.call_recorder import after_backward, effect
from optlab.optimizer.rule.hyperparameters import by_names
from optlab.optimizer.wrappers.average import Average
from optlab.optimizer.wrappers.checks import check_is_setting
from optlab.optimizer.wrappers.look_ahead import whole_number
from optlab.optimizer.wrappers.state import Memory, move_arrays
from optlab.plan.progress import Progress

_MOST_IN_ONE_SUM = 16384


class ModelAverage(Average):
    r"""Average the weights over the last steps, for evaluation.

    `step`, called after the optimizer's, adds the weights to a sum S of n terms. When the window is
    full, which is after the t-th step if :math:`n \ge n_{\min}` and
    :math:`n \ge \min(n_{\max}, \lfloor r t \rfloor)`, the sum is put aside, in place of the one put
    aside before, and a new one is started. The average is over both:

    .. math::
        S &\leftarrow S + \theta \\
        \bar\theta &= \frac{S + S_\text{aside}}{n + n_\text{aside}}

    Parameters
    ----------
    average_window_rate : float
        The rate r: the share of all steps that the window covers.
    parameters : list of Tensor
        What to average; ``ModelAverage.around(optimizer, ...)`` takes those of the optimizer.
    min_average_window, max_average_window : int
        The bounds of the window: give both if one is less than 10000.
    name : str, optional
        Its name in tables.

    Raises
    ------
    TypeError, ValueError
        If the parameters are no list of Tensors, the rate is negative or not finite, a window is
        below 1, or the lower bound exceeds the upper one.

    Notes
    -----
    The average includes the weights of every step, whether or not a parameter had a gradient.
    Sums are float32 at least, and split after every 16384 steps, to stay precise.

    Source: Polyak and Juditsky 1992, Acceleration of stochastic approximation by averaging, SIAM
    Journal on Control and Optimization 30(4); the window is PaddlePaddle's.

    Examples
    --------
    >>> import optlab as ol
    >>> w = ol.Parameter([1.0])
    >>> sgd = ol.optimizer.SGD(0.1, parameters=[w])
    >>> average = ol.optimizer.ModelAverage(0.15, parameters=[w])
    >>> for _ in range(3):
    ...     w.sum().backward()
    ...     sgd.step()
    ...     average.step()
    ...     sgd.clear_grad()
    >>> with average.apply():  # the mean of 0.9, 0.8 and 0.7
    ...     print(w.numpy().round(6))
    [0.8]
    """

    instead: ClassVar[dict[str, str]] = {
        "update": " Call step() after the optimizer's step(); or let one step() do both: "
        "ModelAverage.around(optimizer, average_window_rate=0.15)."
    }

    @by_names
    def __init__(
        self,
        average_window_rate: float,
        parameters: Any = None,
        min_average_window: int = 10000,
        max_average_window: int = 10000,
        name: str | None = None,
    ) -> None:
        check_is_setting(
            "ModelAverage", "average_window_rate", average_window_rate, "average_window_rate=0.15"
        )
        self.own_settings = _checked_settings(
            average_window_rate, min_average_window, max_average_window
        )
        super().__init__(parameters, name)

    @effect
    def step(self) -> None:
        """Add the current weights to the average; call it after the optimizer's step.

        Raises
        ------
        RuntimeError
            If there are no parameters, or the averages are applied.
        """
        self.require_own_weights("step()")
        self._update()

    @after_backward
    def minimize(
        self,
        loss: Any,
        startup_program: None = None,
        parameters: None = None,
        no_grad_set: None = None,
    ) -> tuple[list[Any], list[tuple[Tensor, Tensor]]]:
        """Add the current weights to the average, as `step` does; nothing is minimized.

        Parameters
        ----------
        loss : Tensor
            The loss that the optimizer has minimized.
        startup_program, parameters, no_grad_set : None
            Documented arguments; only None is accepted.

        Returns
        -------
        tuple
            An empty list, and the (parameter, gradient) pairs of parameters with a gradient.
        """
        if not isinstance(loss, Tensor):
            raise TypeError(f"the loss must be a Tensor; got {type(loss).__name__}.")
        given = {
            "startup_program": startup_program,
            "parameters": parameters,
            "no_grad_set": no_grad_set,
        }
        for name, value in given.items():
            if value is not None:
                raise TypeError(
                    f"ModelAverage averages the parameters that it was made with; leave {name} out."
                )
        self.step()
        return [], [(p, p.grad) for p in self.parameters if p.grad is not None]

    def _initial_memory(self, values: Any) -> Memory:
        return {
            "sum_1": np.zeros_like(values),
            "sum_2": np.zeros_like(values),
            "sum_3": np.zeros_like(values),
            "num_accumulates": 0,
            "old_num_accumulates": 0,
            "num_updates": 0,
        }

    def _accumulate(self, memories: list[tuple[Memory, Any]], progress: Progress) -> None:
        rate, least, most = self.own_settings.values()
        for m, values in memories:
            n, updates = m["num_accumulates"] + 1, m["num_updates"] + 1
            now = {"num_accumulates": n, "num_updates": updates}
            splits = updates % _MOST_IN_ONE_SUM == 0
            closes = n >= least and n >= min(most, int(updates * rate))
            if closes:
                now |= {"old_num_accumulates": n, "num_accumulates": 0}

            # Sums that stay are not among those that move.
            names = ["sum_1", *["sum_2"] * (splits or closes), *["sum_3"] * closes]
            move_arrays(m, names, values, partial(_moved, splits, closes), now, progress)

    def _functional_settings(self, given: dict[str, Any]) -> Any:
        settings = _checked_settings(**{**self.own_settings, **given})
        return tuple(settings.values())

    def _next_memory(self, memory: Memory, values: Any, settings: Any) -> Memory:
        rate, least, most = settings
        m = dict(memory)
        m["sum_1"] = m["sum_1"] + values
        m["num_accumulates"] += 1
        m["num_updates"] += 1
        if m["num_updates"] % _MOST_IN_ONE_SUM == 0:
            m["sum_2"] = m["sum_2"] + m["sum_1"]
            m["sum_1"] = np.zeros_like(raw(values))
        n = m["num_accumulates"]
        if n >= least and n >= min(most, int(m["num_updates"] * rate)):
            m["sum_3"] = m["sum_1"] + m["sum_2"]
            m["sum_1"], m["sum_2"] = np.zeros_like(raw(values)), np.zeros_like(raw(values))
            m["old_num_accumulates"], m["num_accumulates"] = n, 0
        return m

    def _average(self, memory: Memory) -> Any:
        m = memory
        count = m["num_accumulates"] + m["old_num_accumulates"]
        return (m["sum_1"] + m["sum_2"] + m["sum_3"]) / count if count else None


def _checked_settings(
    average_window_rate: Any, min_average_window: Any, max_average_window: Any
) -> dict[str, Any]:
    """Return the rate and the bounds of the window, checked."""
    rate = as_setting(average_window_rate, "average_window_rate")
    if not 0 <= rate < math.inf:
        raise ValueError(
            f"average_window_rate must be finite and at least 0; got {average_window_rate!r}."
        )
    least = whole_number("min_average_window", min_average_window)
    most = whole_number("max_average_window", max_average_window)
    if least > most:
        raise ValueError(
            f"min_average_window must not exceed max_average_window; got min_average_window="
            f"{least} and max_average_window={most}. Each is 10000 unless it is given: give "
            "both for a shorter window."
        )
    return {
        "average_window_rate": rate, "min_average_window": least, "max_average_window": most
    }  # fmt: skip


def _moved(splits: bool, closes: bool, *given: Any) -> list[Any]:
    """Return the sums after new values; the second and third are given where they move."""
    *sums, new = given
    one = sums[0] + new
    if splits:
        one, sums[1] = 0, sums[1] + one
    return [0, 0, one + sums[1]] if closes else [one, *sums[1:]]
