"""LookAhead and the averages under the names and arguments of ``paddle.fluid.optimizer`` 1.8.5."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from optlab import optimizer as modern
from optlab.fluid.methods import OldMethods
from optlab.optimizer.params.pairs import (
    Pairs,
    gradients_by_id,
    refuse_static_graph,
    run_backward,
    selected,
)


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


class PipelineOptimizer(OldMethods, modern.PipelineOptimizer):
    """`optlab.optimizer.PipelineOptimizer` in its old module.

    ``step(network, criterion, x, y)`` replaces ``exe.train_from_dataset`` of static graphs.

    Examples
    --------
    >>> import optlab as ol
    >>> model = ol.nn.Sequential(ol.nn.Linear(2, 3), ol.nn.Tanh(), ol.nn.Linear(3, 1))
    >>> criterion = ol.nn.MSELoss()
    >>> sgd = ol.fluid.optimizer.SGD(0.5, parameter_list=model.parameters())
    >>> optimizer = ol.fluid.optimizer.PipelineOptimizer(
    ...     sgd,
    ...     cut_list=[[model[1]], [criterion]],
    ...     place_list=[ol.fluid.CPUPlace(), ol.fluid.CPUPlace(), ol.fluid.CPUPlace()],
    ...     concurrency_list=[1, 1, 4],
    ...     queue_size=2,
    ...     sync_steps=1,
    ... )
    >>> loss = optimizer.step(model, criterion, ol.ones([8, 2]), ol.zeros([8, 1]))
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
    """`optlab.optimizer.ModelAverage` with the arguments and methods of 1.8.5.

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

    def backward(
        self,
        loss: Any,
        startup_program: None = None,
        parameter_list: Iterable[Any] | None = None,
        no_grad_set: Iterable[Any] | None = None,
        callbacks: Sequence[Callable[..., Any]] | None = None,
    ) -> Pairs:
        """Run backward from `loss`, unless that was done; return parameters with gradients.

        Parameters
        ----------
        loss : Tensor
        startup_program : None
        parameter_list, no_grad_set : iterable of Tensor or str, optional
            Only these of the averaged parameters are returned, or not these.
        callbacks : list of callable, optional
            Each is called with every such parameter and its gradient.
        """
        self._require_parameters()
        refuse_static_graph("startup_program", startup_program)
        chosen = selected("ModelAverage", self.parameters, parameter_list, no_grad_set)
        return run_backward(loss, chosen, callbacks)

    def apply_gradients(self, params_grads: Iterable[tuple[Any, Any]]) -> list[Any]:
        """Add the current weights to the average, as `step` does, and return an empty list.

        The pairs, of `backward`, must be of averaged parameters; an average has no use for
        gradients.
        """
        gradients_by_id("ModelAverage", self.parameters, params_grads)
        self.step()
        return []

    def apply_optimize(
        self, loss: Any, startup_program: None, params_grads: Iterable[tuple[Any, Any]]
    ) -> list[Any]:
        """Do what `apply_gradients` does; `loss` is not used."""
        refuse_static_graph("startup_program", startup_program)
        return self.apply_gradients(params_grads)

    def minimize(
        self,
        loss: Any,
        startup_program: None = None,
        parameter_list: None = None,
        no_grad_set: None = None,
        grad_clip: None = None,
    ) -> tuple[list[Any], Pairs]:
        """Run backward from `loss`, unless that was done; add the current weights to the average.

        Parameters
        ----------
        loss : Tensor
            The loss that the optimizer has minimized. The weights themselves stay.
        startup_program, parameter_list, no_grad_set, grad_clip : None
            Documented arguments, which only None fits: an average is of all parameters that it was
            made with, and has no use for gradients.

        Returns
        -------
        tuple
            An empty list, and the (parameter, gradient) pairs.

        Examples
        --------
        >>> import optlab as ol
        >>> w = ol.Parameter([1.0])
        >>> sgd = ol.fluid.optimizer.SGD(0.5, parameter_list=[w])
        >>> average = ol.fluid.optimizer.ModelAverage(0.15, parameter_list=[w])
        >>> for _ in range(2):
        ...     loss = w.sum()
        ...     _ = sgd.minimize(loss)
        ...     _ = average.minimize(loss)
        ...     sgd.clear_gradients()
        >>> with average.apply():  # the mean of 0.5 and 0
        ...     print(w.numpy())
        [0.25]
        """
        refuse_static_graph("startup_program", startup_program)
        for name, value in {"parameter_list": parameter_list, "no_grad_set": no_grad_set}.items():
            if value is not None:
                raise TypeError(
                    f"ModelAverage averages the parameters that it was made with; leave {name} out."
                )
        if grad_clip is not None:
            raise TypeError(
                "ModelAverage.minimize takes no step, so there is nothing to clip; give grad_clip "
                "to the optimizer."
            )
        self.require_own_weights("minimize()")
        pairs = self.backward(loss)
        return self.apply_gradients(pairs), pairs


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
