"""ExponentialMovingAverage: an exponential moving average of the weights over the steps."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from optlab.autograd.tensor.conversions import as_setting
from optlab.backend.call_recorder import effect
from optlab.optimizer.rule.hyperparameters import by_names
from optlab.optimizer.rule.traced import TracedNumber
from optlab.optimizer.step import functional
from optlab.optimizer.wrappers.average import Average
from optlab.optimizer.wrappers.checks import check_is_setting
from optlab.optimizer.wrappers.state import Memory, move_arrays
from optlab.plan.progress import Progress


class ExponentialMovingAverage(Average):
    r"""Average the weights over the steps, with exponentially decaying factors, for evaluation.

    `update`, called after the optimizer's step, moves E; `apply` corrects its bias towards zero:

    .. math::
        E_t &= d_t E_{t-1} + (1 - d_t) \theta_t, \quad E_0 = 0 \\
        \hat\theta_t &= \frac{E_t}{1 - \prod_{i \le t} d_i}

    Parameters
    ----------
    decay : float
        The decay d, in [0, 1): about 1 / (1 - d) steps count.
    thres_steps : number or callable, optional
        A step count s, or a function without arguments that returns it; the decay is then
        :math:`d_t = \min(d, (1 + s) / (10 + s))`: the average is short at the start of training,
        and grows longer.
    parameters : list of Tensor
        What to average; ``ExponentialMovingAverage.around(optimizer)`` takes the optimizer's.
    name : str, optional
        Its name in tables.

    Raises
    ------
    TypeError, ValueError
        If the parameters are no list of Tensors, the decay is not in [0, 1), or `thres_steps` is
        neither a number nor a function.

    Notes
    -----
    The average includes the weights of every update, whether or not a parameter had a gradient. It
    is float32 at least. It stays in the convex hull of these weights, but for rounding: the product
    is rounded to the precision of the weights, as Paddle's is, so that the relative error in
    float32 is up to 6e-8 / (1 - product): in the first steps of a long average, the fifth digit.

    Source: Polyak and Juditsky 1992 for averaging; the correction is that of Kingma and Ba 2015,
    arXiv 1412.6980, section 3.

    Examples
    --------
    >>> import optlab as ol
    >>> w = ol.Parameter([1.0])
    >>> sgd = ol.optimizer.SGD(0.1, parameters=[w])
    >>> ema = ol.optimizer.ExponentialMovingAverage(0.5, parameters=[w])
    >>> for _ in range(2):
    ...     w.sum().backward()
    ...     sgd.step()
    ...     ema.update()
    ...     sgd.clear_grad()
    >>> with ema.apply():  # 0.8 counts twice as much as 0.9
    ...     print(w.numpy().round(4))
    [0.8333]
    """

    optional_settings: ClassVar[tuple[str, ...]] = ("thres_steps",)
    instead: ClassVar[dict[str, str]] = {
        "step": " Call update() after the optimizer's step(); or let one step() do both: "
        "ExponentialMovingAverage.around(optimizer)."
    }

    @by_names
    def __init__(
        self,
        decay: float = 0.999,
        thres_steps: Any = None,
        parameters: Any = None,
        name: str | None = None,
    ) -> None:
        for label, value in {"decay": decay, "thres_steps": thres_steps}.items():
            check_is_setting("ExponentialMovingAverage", label, value, "decay=0.999")
        number = _checked_decay(decay)
        self.thres_steps = thres_steps
        self.own_settings = {"decay": number}
        if thres_steps is not None:
            self.own_settings["thres_steps"] = thres_steps
            if not callable(thres_steps):
                self._steps()
        super().__init__(parameters, name)

    @effect
    def update(self) -> None:
        """Add the current weights to the average; call it after the optimizer's step.

        Raises
        ------
        RuntimeError
            If there are no parameters, or the averages are applied.
        """
        self.require_own_weights("update()")
        self._update()

    @property
    def present_decay(self) -> float:
        """The decay of the next update."""
        decay: float = self.own_settings["decay"]
        if self.thres_steps is None:
            return decay
        present: float = _early(decay, self._steps())
        return present

    def _steps(self) -> float:
        """Return the step count that sets the decay."""
        return _checked_steps(
            self.thres_steps() if callable(self.thres_steps) else self.thres_steps
        )

    def _initial_memory(self, values: Any) -> Memory:
        return {"ema": np.zeros_like(values), "ema_decays": 1.0}

    def _accumulate(self, memories: list[tuple[Memory, Any]], progress: Progress) -> None:
        decay = self.present_decay
        for m, values in memories:
            d = _rounded(decay, values)
            now = {"ema_decays": m["ema_decays"] * d}  # the product of all decays

            def moved(ema: Any, new: Any, d: float = d) -> list[Any]:
                return [ema * d + (1 - d) * new]

            move_arrays(m, ["ema"], values, moved, now, progress)

    def _functional_settings(self, given: dict[str, Any]) -> Any:
        decay = functional.number_of(given.get("decay", self.own_settings["decay"]), _checked_decay)
        steps = given.get("thres_steps", self.thres_steps)
        if callable(steps):
            raise ValueError(
                "thres_steps of this ExponentialMovingAverage is a function, whose count is not "
                "part of the state: give its number, functional_step(..., thres_steps=step)."
            )
        return decay if steps is None else _early(decay, _checked_steps(steps))

    def _next_memory(self, memory: Memory, values: Any, settings: Any) -> Memory:
        d = _rounded(settings, values)
        return {
            "ema": memory["ema"] * d + (1 - d) * values,
            "ema_decays": memory["ema_decays"] * d,
        }

    def _average(self, memory: Memory) -> Any:
        if memory["ema_decays"] == 1:
            return None
        return memory["ema"] / (1 - _rounded(memory["ema_decays"], memory["ema"]))


def _checked_decay(value: Any) -> float:
    """Return the decay, checked."""
    decay = as_setting(value, "decay")
    if not 0 <= decay < 1:
        raise ValueError(f"decay must be in [0, 1); got {value!r}.")
    return decay


def _checked_steps(value: Any) -> float:
    """Return the step count that sets the decay, checked."""
    steps = as_setting(value, "thres_steps")
    if not 0 <= steps < np.inf:
        raise ValueError(f"thres_steps must be finite and at least 0; got {steps!r}.")
    return steps


def _early(decay: Any, steps: float) -> Any:
    """Return the decay after a number of steps."""
    return min(decay, (1 + steps) / (10 + steps))


def _rounded(number: Any, beside: Any) -> Any:
    """Round a number to the precision of an array, as Paddle rounds decays and their product."""
    if isinstance(number, TracedNumber):
        return number.rounded(beside.dtype)
    return float(beside.dtype.type(number))
