"""Weights made of other parameters, anew at each call of the layer."""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.random.creation import randn
from optlab.autograd.tape.grad_mode import learns, no_grad
from optlab.autograd.tensor.tensor import Tensor, raw
from optlab.backend.ensemble import EnsembleArray, EnsembleError
from optlab.nn.base.layer import Layer
from optlab.nn.base.parameter import Parameter


class _Reparameterization:
    """Makes one weight of a layer from others before each call; the hooks of the layer hold it."""

    #: What it is called in messages.
    what = ""

    def __init__(self, name: str) -> None:
        self.name = name

    def value(self, layer: Any) -> Any:
        """Give the weight."""
        raise NotImplementedError

    def before(self, layer: Any, inputs: Any) -> None:
        """Make the weight for this call."""
        setattr(layer, self.name, self.value(layer))

    def after(self, layer: Any, inputs: Any, output: Any) -> None:
        """Keep the value alone: the tape would live on with it."""
        setattr(layer, self.name, getattr(layer, self.name).detach())

    def install(self, layer: Layer) -> None:
        """Make the weight, now and at each call."""
        with no_grad():
            setattr(layer, self.name, self.value(layer))
        layer.register_forward_pre_hook(self.before, prepend=True)
        layer.register_forward_post_hook(self.after)


def _reparameterizations_of(layer: Any, name: str) -> list[_Reparameterization]:
    """Give what makes the weight of this name, if anything does."""
    entries = [] if layer._hooks is None else layer._hooks.before
    owners = [getattr(entry.hook, "__self__", None) for entry in entries]
    return [
        owner for owner in owners if isinstance(owner, _Reparameterization) and owner.name == name
    ]


def _weight_to_replace(layer: Any, name: str, call: str) -> Parameter:
    """Give the parameter that is to be made of others."""
    if not isinstance(layer, Layer):
        raise TypeError(f"{call} takes a layer; got {type(layer).__name__}.")
    made = _reparameterizations_of(layer, name)
    if made:
        raise ValueError(f"{call}: {name!r} of {type(layer).__name__} has {made[0].what} already.")
    weight = getattr(layer, name, None)
    if not isinstance(weight, Parameter):
        known = [key for key, value in vars(layer).items() if isinstance(value, Parameter)]
        raise ValueError(
            f"{call}: {type(layer).__name__} has no parameter {name!r}; it has "
            f"{', '.join(known) or 'none of its own'}."
        )
    return weight


def _parameter_like(old: Parameter, data: Any, role: str) -> Parameter:
    """Make a parameter with the settings of another."""
    return Parameter(
        Tensor(raw(data)),
        name=f"{old.name}_{role}" if old.name else None,
        trainable=old.trainable,
        learning_rate=old.learning_rate,
        regularizer=old.regularizer,
        need_clip=old.need_clip,
    )


def _axis(dim: Any, weight: Any, call: str) -> int:
    if not isinstance(dim, int) or not -weight.ndim <= dim < weight.ndim:
        raise ValueError(
            f"{call}: dim is an axis of the weight of shape {weight.shape}; got {dim!r}."
        )
    return dim % int(weight.ndim)


# Weight normalisation ---------------------------------------------------------------------------


class _WeightNorm(_Reparameterization):
    what = "weight normalisation"

    def __init__(self, name: str, axes: tuple[int, ...]) -> None:
        super().__init__(name)
        self.axes = axes

    def norm(self, v: Any) -> Any:
        """Give the norms, with axes of length 1 where they were added up."""
        return np.sqrt(np.sum(v * v, axis=self.axes, keepdims=True))

    def value(self, layer: Any) -> Any:
        v, g = getattr(layer, f"{self.name}_v"), getattr(layer, f"{self.name}_g")
        norm = self.norm(v)
        return v * (g.reshape(norm.shape) / norm)


def weight_norm(layer: Any, name: str = "weight", dim: int | None = 0) -> Any:
    r"""Split a weight into lengths and directions: :math:`w = g\, v / \lVert v \rVert`.

    Parameters
    ----------
    layer : Layer
        Its parameter `name` is replaced by two, ``name_g`` and ``name_v``, and is made of them anew
        at each call.
    name : str
    dim : int or None
        The axis with a length g each: 0 for the filters of a convolution, 1 for the outputs of a
        `Linear`, whose weight is [in, out]. None or -1: one length for the whole weight.

    Returns
    -------
    Layer
        The layer itself.

    Raises
    ------
    TypeError, ValueError
        If there is no such parameter or axis, or it is normalised already.

    Notes
    -----
    An optimizer made before does not know the two new parameters. Source: Salimans and Kingma 2016.
    Signature: paddle.nn.utils.weight_norm.

    Examples
    --------
    >>> import optlab as ol
    >>> layer = ol.nn.utils.weight_norm(ol.nn.Linear(2, 3), dim=1)
    >>> [(key, p.shape) for key, p in layer.named_parameters()]
    [('bias', (3,)), ('weight_v', (2, 3)), ('weight_g', (3,))]
    >>> layer(ol.ones([4, 2])).shape
    (4, 3)
    """
    weight = _weight_to_replace(layer, name, "weight_norm")
    shape: tuple[int, ...]
    if dim is None or dim == -1:
        axes, shape = tuple(range(weight.ndim)), ()
    else:
        axis = _axis(dim, weight, "weight_norm")
        axes = tuple(i for i in range(weight.ndim) if i != axis)
        shape = (weight.shape[axis],)
    made = _WeightNorm(name, axes)
    norms = made.norm(weight.data).reshape(shape)
    delattr(layer, name)
    setattr(layer, f"{name}_v", _parameter_like(weight, weight.data, "v"))
    setattr(layer, f"{name}_g", _parameter_like(weight, norms, "g"))
    made.install(layer)
    return layer


def remove_weight_norm(layer: Any, name: str = "weight") -> Any:
    """Make one parameter again of what `weight_norm` has split.

    Parameters
    ----------
    layer : Layer
    name : str

    Returns
    -------
    Layer
        The layer itself.

    Raises
    ------
    ValueError
        If the parameter was not split.

    Examples
    --------
    >>> import optlab as ol
    >>> layer = ol.nn.utils.weight_norm(ol.nn.Linear(2, 3))
    >>> [key for key, _ in ol.nn.utils.remove_weight_norm(layer).named_parameters()]
    ['bias', 'weight']
    """
    made = [one for one in _reparameterizations_of(layer, name) if isinstance(one, _WeightNorm)]
    if not made:
        raise ValueError(f"remove_weight_norm: {name!r} of {type(layer).__name__} has none.")
    v = getattr(layer, f"{name}_v")
    with no_grad():
        weight = made[0].value(layer)
    hooks = layer._hooks
    for entries in (hooks.before, hooks.after):
        entries[:] = [e for e in entries if getattr(e.hook, "__self__", None) is not made[0]]
    one = _parameter_like(v, weight, "")
    one.name = v.name.removesuffix("_v") if v.name else None
    for part in (name, f"{name}_v", f"{name}_g"):
        delattr(layer, part)
    setattr(layer, name, one)
    return layer


# Spectral normalisation -------------------------------------------------------------------------


class _SpectralNorm(_Reparameterization):
    what = "spectral normalisation"

    def __init__(self, name: str, axis: int, steps: int, epsilon: float) -> None:
        super().__init__(name)
        self.axis, self.steps, self.epsilon = axis, steps, epsilon

    def matrix(self, weight: Any) -> Any:
        """Give the weight as a matrix, with `axis` for its rows."""
        if self.axis:
            weight = np.moveaxis(weight, self.axis, 0)
        return weight.reshape(weight.shape[0], -1)

    def unit(self, vector: Any) -> Any:
        """Give a vector of length 1."""
        return vector / np.maximum(np.sqrt(np.sum(vector * vector)), self.epsilon)

    def value(self, layer: Any) -> Any:
        weight = getattr(layer, f"{self.name}_orig")
        u, v = (getattr(layer, f"{self.name}_{part}") for part in "uv")
        matrix = self.matrix(weight)
        if layer.training and self.steps and learns():
            self.iterate(layer, raw(matrix), u, v)
        u, v = (Tensor(raw(x).copy()) for x in (u, v))  # the next call writes to those of the layer
        return weight / (u @ matrix @ v).astype(weight.dtype)

    def iterate(self, layer: Any, matrix: Any, u: Any, v: Any) -> None:
        """Bring the singular vectors nearer to the first ones."""
        if isinstance(matrix, EnsembleArray) and not isinstance(raw(u), EnsembleArray):
            raise EnsembleError(
                "spectral_norm in training brings its singular vectors up to date, but inside "
                "ol.vmap each member has its own and the layer keeps one pair: call layer.eval()."
            )
        left, right = raw(u), raw(v)
        for _ in range(self.steps):
            right = self.unit(left @ matrix)
            left = self.unit(matrix @ right)
        with no_grad():
            u[...], v[...] = Tensor(left), Tensor(right)


def spectral_norm(
    layer: Any,
    name: str = "weight",
    n_power_iterations: int = 1,
    eps: float = 1e-12,
    dim: int | None = None,
) -> Any:
    r"""Divide a weight by its largest singular value: :math:`w = w_o / \sigma(w_o)`.

    Parameters
    ----------
    layer : Layer
        Its parameter `name` is replaced by ``name_orig``, and is made of it anew at each call. The
        singular vectors are buffers, ``name_u`` and ``name_v``.
    name : str
    n_power_iterations : int
        How many steps of the power method each call in training takes.
    eps : float
        The least norm by which is divided in them.
    dim : int, optional
        The axis that is taken for the rows of a matrix; by default that of the outputs: 1 for
        `Linear` and transposed convolutions, otherwise 0.

    Returns
    -------
    Layer
        The layer itself.

    Raises
    ------
    TypeError, ValueError
        If there is no such parameter or axis, or it is normalised already.

    Notes
    -----
    The singular vectors are constants for derivatives. Source: Miyato et al. 2018. Signature:
    paddle.nn.utils.spectral_norm.

    Examples
    --------
    >>> import numpy as np
    >>> import optlab as ol
    >>> layer = ol.nn.utils.spectral_norm(ol.nn.Linear(4, 3), n_power_iterations=50)
    >>> _ = layer(ol.ones([2, 4]))
    >>> round(float(np.linalg.norm(layer.weight.numpy(), 2)), 4)
    1.0
    """
    weight = _weight_to_replace(layer, name, "spectral_norm")
    if weight.ndim < 2:
        raise ValueError(f"spectral_norm takes a matrix at least; got shape {weight.shape}.")
    if not isinstance(n_power_iterations, int) or n_power_iterations < 1:
        raise ValueError(
            f"spectral_norm: n_power_iterations is at least 1; got {n_power_iterations!r}."
        )
    if dim is None:
        kind = type(layer).__name__
        dim = 1 if kind == "Linear" or kind.endswith("Transpose") else 0
    made = _SpectralNorm(name, _axis(dim, weight, "spectral_norm"), n_power_iterations, float(eps))
    matrix = made.matrix(weight.data)

    vectors = [
        made.unit(randn([n], weight.dtype).to(weight.device).data).astype(weight.dtype)
        for n in matrix.shape
    ]
    delattr(layer, name)
    setattr(layer, f"{name}_orig", _parameter_like(weight, weight.data, "orig"))
    for part, vector in zip("uv", vectors, strict=True):
        layer.register_buffer(f"{name}_{part}", Tensor(vector))
    made.install(layer)
    return layer
