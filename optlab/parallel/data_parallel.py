"""Data parallelism: each rank has a copy of the model and its own batches."""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.tape.row_sparse import RowSparse
from optlab.autograd.tensor.tensor import Tensor
from optlab.backend.arrays import constants_beside, on_host, zeros_beside
from optlab.backend.exchange import Exchange, added, check_apart
from optlab.nn.base.layer import Layer
from optlab.optimizer import PipelineOptimizer
from optlab.optimizer.optimizer import Optimizer
from optlab.optimizer.params.labels import label_of
from optlab.optimizer.wrappers import layers_of
from optlab.optimizer.wrappers.wrapper import Wrapper


def broadcast(model: Any, comm: Any, root: int = 0, **deadlines: float) -> None:
    """Give every rank the parameters and buffers of one.

    Parameters
    ----------
    model : Layer, Optimizer, or sequence of Tensor
        Each rank has a copy of its own.
    comm : communicator
        That of ``LocalWorld.run``, ``MPI.COMM_WORLD`` of mpi4py, or `nccl_world`.
    root : int
        The rank whose values all get.
    timeout, longest : float, optional
        Deadlines in seconds, as of `LocalWorld` (which has its own).

    Raises
    ------
    ValueError
        If the ranks' models differ in structure, or two ranks share a parameter.

    Examples
    --------
    >>> import optlab as ol
    >>> def f(comm):
    ...     w = ol.Parameter([float(comm.rank)], name="w")
    ...     ol.parallel.broadcast([w], comm, root=1)
    ...     return w.item()
    >>> ol.parallel.LocalWorld(2).run(f)
    [1.0, 1.0]
    """
    exchange = Exchange(comm, "broadcast", **deadlines)
    tensors = _tensors_of(model)
    check_apart(exchange, tensors, label_of)
    _broadcast(exchange, tensors, root)


def _broadcast(exchange: Exchange, tensors: list[Any], root: int) -> None:
    """Write the root's values into the Tensors of every rank."""
    if not 0 <= root < exchange.size:
        raise ValueError(f"root={root}, but the ranks are 0 to {exchange.size - 1}.")
    for t in tensors:
        if exchange.moves(t.data):
            [values] = exchange.bcast([t.data.reshape(-1)], root)
            if exchange.rank != root:
                t.set_value(values.reshape(t.data.shape))
    tensors = [t for t in tensors if not exchange.moves(t.data)]
    flat = [np.ascontiguousarray(on_host(t.data)).reshape(-1).view(np.uint8) for t in tensors]
    if not flat:
        return
    [got] = exchange.bcast([np.concatenate(flat)], root)
    place = 0
    for t, own in zip(tensors, flat, strict=True):
        values = got[place : place + own.nbytes].view(t.data.dtype).reshape(t.data.shape)
        place += own.nbytes
        if exchange.rank != root:
            t.set_value(constants_beside(t.data, values))


def _tensors_of(model: Any) -> list[Any]:
    """Return the parameters of something, and its buffers."""
    if isinstance(model, Layer):
        return [*model.parameters(), *model.buffers()]
    if isinstance(model, (Optimizer, Wrapper)):
        return list(model.parameters)
    tensors = list(model)
    for one in tensors:
        if not isinstance(one, Tensor):
            raise TypeError(
                f"broadcast takes a Layer, an Optimizer or a list of Tensors; got a "
                f"{type(one).__name__} among them."
            )
    return tensors


class GradientAverage:
    """What averages the gradients of an optimizer's parameters over the ranks.

    Attributes
    ----------
    bytes_sent : int
        The bytes that this rank put into the last average.
    """

    def __init__(self, optimizer: Any, comm: Any, **deadlines: float) -> None:
        self.optimizer = optimizer
        self.bytes_sent = 0
        self._exchange = Exchange(comm, "average_gradients", **deadlines)
        check_apart(self._exchange, list(optimizer.parameters), label_of)

    def __call__(self, *step: Any) -> None:
        """Replace every gradient by the mean over the ranks."""
        exchange, self.bytes_sent = self._exchange, 0
        for group in self.optimizer.groups:
            for params in group.arenas:
                gradients = [
                    g.dense() if isinstance(g, RowSparse) else g for g in params.gradients()
                ]
                present = np.array([g is not None for g in gradients], np.uint8)
                stays = exchange.moves(params.flat)
                size = (params.bounds[-1],)
                bucket = (
                    zeros_beside(params.flat, size) if stays else np.zeros(size, params.flat.dtype)
                )
                for i, g in enumerate(gradients):
                    if g is not None:
                        flat = (g if stays else on_host(g)).reshape(-1)
                        bucket[params.bounds[i] : params.bounds[i + 1]] = flat
                self.bytes_sent += present.nbytes + bucket.nbytes
                flags, buckets = self._gathered(present, bucket)
                there = np.bitwise_or.reduce(flags)
                mean = added(buckets)
                mean /= mean.dtype.type(exchange.size)
                mean = constants_beside(params.flat, mean)
                for i, p in enumerate(params.parameters):
                    if there[i]:
                        part = mean[params.bounds[i] : params.bounds[i + 1]]
                        p.grad = part.reshape(p.data.shape)

    def _gathered(self, present: Any, bucket: Any) -> tuple[list[Any], list[Any]]:
        """Return the flags and the gradients of all ranks."""
        if self._exchange.moves(bucket):
            return self._exchange.gather(present), self._exchange.gather(bucket)
        found = self._exchange.gather(np.concatenate([present, bucket.view(np.uint8)]))
        flags = [one[: present.size] for one in found]
        return flags, [one[present.size :].view(bucket.dtype) for one in found]


def average_gradients(optimizer: Any, comm: Any, **deadlines: float) -> GradientAverage:
    """Average the gradients over the ranks before each step of an optimizer.

    The gradients of a group travel as one flat array, as the optimizer stores its parameters, and
    every rank adds them in the order of the ranks. So all ranks take the same step, to the bit, and
    simulated ranks take that of MPI's.

    Parameters
    ----------
    optimizer : Optimizer
        It gets a hook; from now on all ranks call its ``step``, or ``minimize``, together. (The
        gradients that ``apply_gradients`` is given are not averaged.)
    comm : communicator
        That of ``LocalWorld.run``, ``MPI.COMM_WORLD`` of mpi4py, or `nccl_world`.
    timeout, longest : float, optional
        Deadlines in seconds, as of `LocalWorld` (which has its own).

    Returns
    -------
    GradientAverage
        Its ``bytes_sent`` has the bytes that this rank put into the last average.

    Raises
    ------
    TypeError
        If the optimizer computes gradients inside its step (LBFGS, SAM, PipelineOptimizer).
    ValueError
        If the optimizers differ in the structure of their parameters, or two ranks share one.

    Notes
    -----
    A parameter without a gradient on this rank, but with one on another, counts as one with a
    gradient of zeros. Clips and decay see the mean.

    Examples
    --------
    >>> import optlab as ol
    >>> def f(comm):
    ...     w = ol.Parameter([1.0], name="w")
    ...     optimizer = ol.optimizer.SGD(0.5, parameters=[w])
    ...     ol.parallel.average_gradients(optimizer, comm)
    ...     loss = (w * (1 + comm.rank)).sum()
    ...     optimizer.minimize(loss)
    ...     return w.item()
    >>> ol.parallel.LocalWorld(3).run(f)
    [0.0, 0.0, 0.0]
    """
    _check_one_gradient(optimizer)
    average = GradientAverage(optimizer, comm, **deadlines)
    optimizer.register_step_pre_hook(average)
    return average


def _check_one_gradient(optimizer: Any) -> None:
    """Raise TypeError for an optimizer that has no gradient yet when its step begins."""
    innermost, layers = layers_of(optimizer)
    for one in (innermost, *layers):
        if getattr(type(one), "needs_closure", False) or isinstance(one, PipelineOptimizer):
            raise TypeError(
                "average_gradients averages the gradients that are there when step() begins; "
                f"{type(one).__name__} computes its own inside of the step, which would not be "
                "averaged. Use an optimizer of one gradient a step."
            )


class DataParallel(Layer):
    """A model of which each rank has a copy, trained on its own share of every batch.

    Making it gives every rank the parameters and buffers of rank 0. It computes what the model
    computes; `average_gradients`, or its method `averages`, makes the steps of all ranks one.

    Parameters
    ----------
    layer : Layer
        This rank's own model; build or copy it inside the function that the world runs.
    comm : communicator
        That of ``LocalWorld.run``, ``MPI.COMM_WORLD`` of mpi4py, or `nccl_world`.
    timeout, longest : float, optional
        Deadlines in seconds, as of `LocalWorld` (which has its own).

    Raises
    ------
    ValueError
        If the ranks' models differ in structure, or two ranks share a parameter.

    Notes
    -----
    Parameters are equal to the bit on all ranks after every step, and those of one process with
    the whole batch up to rounding, if the batches are of one size (`DistributedBatchSampler`).
    Buffers, such as the running means of batch normalization, are those of each rank's batches.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> def train(comm):
    ...     model = ol.parallel.DataParallel(ol.nn.Linear(3, 1), comm)
    ...     optimizer = model.averages(ol.optimizer.SGD(0.1, parameters=model.parameters()))
    ...     x = np.eye(3, dtype=np.float32)[comm.rank :: comm.size]
    ...     optimizer.minimize(model(ol.to_tensor(x)).sum())
    ...     return model.state_dict()["weight"].numpy().tolist()
    >>> a, b, c = ol.parallel.LocalWorld(3).run(train)
    >>> a == b == c
    True
    """

    _comm: Any
    _deadlines: dict[str, float]

    def __init__(self, layer: Layer, comm: Any, **deadlines: float) -> None:
        super().__init__()
        if not isinstance(layer, Layer):
            raise TypeError(f"DataParallel takes a Layer and a communicator; got {layer!r}.")
        self._layers = layer
        object.__setattr__(self, "_comm", comm)
        object.__setattr__(self, "_deadlines", deadlines)
        broadcast(layer, comm, 0, **deadlines)

    def forward(self, *inputs: Any, **named: Any) -> Any:
        """Compute what the model computes."""
        return self._layers(*inputs, **named)

    def averages(self, optimizer: Any) -> Any:
        """Average the gradients before each step of an optimizer; return the optimizer."""
        average_gradients(optimizer, self._comm, **self._deadlines)
        return optimizer

    def state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Return the state of the model, without the name of this layer around it."""
        return self._layers.state_dict(*args, **kwargs)

    def set_state_dict(self, *args: Any, **kwargs: Any) -> Any:
        """Load a state of the model."""
        return self._layers.set_state_dict(*args, **kwargs)
