"""LookAhead and the averages under the names and arguments of ``paddle.fluid.optimizer`` 1.8.5."""

from __future__ import annotations

from typing import Any

from optlab import optimizer as modern
from optlab.fluid.methods import OldMethods


class LookaheadOptimizer(OldMethods, modern.LookAhead):
    """`optlab.optimizer.LookAhead` under its old name.

    Examples
    --------
    >>> import optlab as ol
    >>> w = ol.Parameter([1.0])
    >>> fast = ol.fluid.optimizer.SGD(0.5, parameter_list=[w])
    >>> optimizer = ol.fluid.optimizer.LookaheadOptimizer(fast, alpha=0.5, k=1)
    >>> optimizer.minimize((2 * w).sum())
    ([], <1 (parameter, gradient) pair>)
    >>> w.numpy()
    array([0.5], dtype=float32)
    """


class RecomputeOptimizer(OldMethods, modern.RecomputeOptimizer):
    """`optlab.optimizer.RecomputeOptimizer` in its old module.

    Examples
    --------
    >>> import optlab as ol
    >>> w = ol.Parameter([1.0])
    >>> sgd = ol.fluid.optimizer.SGD(0.5, parameter_list=[w])
    >>> optimizer = ol.fluid.optimizer.RecomputeOptimizer(sgd)
    >>> hidden = 2 * w
    >>> optimizer._set_checkpoints([hidden])
    >>> _ = optimizer.minimize((hidden * hidden).sum())
    >>> w.numpy()
    array([-3.], dtype=float32)
    """


class ModelAverage(modern.ModelAverage):
    """`optlab.optimizer.ModelAverage` with the arguments of 1.8.5.

    Parameters
    ----------
    average_window_rate : float
    min_average_window, max_average_window : int
    regularization : None
        Averages apply no decay; give it to the optimizer.
    name : str, optional
    parameter_list, parameters : list of Tensor
        The parameters to average. (The static graphs of 1.8.5 found them automatically.)
    """

    def __init__(
        self,
        average_window_rate: float,
        min_average_window: int = 10000,
        max_average_window: int = 10000,
        regularization: None = None,
        name: str | None = None,
        parameter_list: Any = None,
        parameters: Any = None,
    ) -> None:
        if regularization is not None:
            raise TypeError(
                "regularization of an average adds nothing to it; give the decay to the optimizer."
            )
        tensors = _one_of(parameter_list, parameters)
        super().__init__(average_window_rate, tensors, min_average_window, max_average_window, name)


class ExponentialMovingAverage(modern.ExponentialMovingAverage):
    """`optlab.optimizer.ExponentialMovingAverage` with the arguments of 1.8.5.

    Parameters
    ----------
    decay : float
    thres_steps : number or callable, optional
    name : str, optional
    parameter_list, parameters : list of Tensor
        The parameters to average. (The static graphs of 1.8.5 found them automatically.)
    """

    def __init__(
        self,
        decay: float = 0.999,
        thres_steps: Any = None,
        name: str | None = None,
        parameter_list: Any = None,
        parameters: Any = None,
    ) -> None:
        super().__init__(decay, thres_steps, _one_of(parameter_list, parameters), name)


def _one_of(parameter_list: Any, parameters: Any) -> Any:
    """Return the parameters, given under either name."""
    if parameter_list is not None and parameters is not None:
        raise TypeError("parameter_list and parameters are the same; give one.")
    return parameters if parameter_list is None else parameter_list
