"""Reparameterizations: weights computed from other parameters at each call of the layer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from optlab.autograd.random.creation import randn
from optlab.autograd.tape.grad_mode import learns, no_grad
from optlab.autograd.tensor.tensor import Tensor, raw
from optlab.backend.call_recorder import effect, here
from optlab.backend.ensemble import EnsembleArray, EnsembleError
from optlab.nn.base.layer import Layer
from optlab.nn.base.parameter import Parameter
from optlab.nn.docstrings import documented_like
from optlab.nn.functional.norm.private_buffer import PrivateBuffer


class _Reparameterization:
    """Computes a weight of a layer from other parameters before each call, by forward hooks."""

    #: Its name in messages.
    what = ""

    def __init__(self, name: str) -> None:
        self.name = self.computed = name

    def value(self, layer: Any) -> Any:
        """Compute the weight."""
        raise NotImplementedError

    def before(self, layer: Any, inputs: Any) -> None:
        """Set the weight for this call."""
        if here.recorder is not None:
            here.recorder.undo.protect(layer)
        setattr(layer, self.name, self.value(layer))

    def after(self, layer: Any, inputs: Any, output: Any) -> None:
        """Detach the weight, which would keep the tape alive."""
        _set_weight(layer, self.name, getattr(layer, self.name).detach())

    def install(self, layer: Layer) -> None:
        """Compute the weight, now and at each call."""
        with no_grad():
            setattr(layer, self.name, self.value(layer))
        layer.register_forward_pre_hook(self.before, prepend=True)
        layer.register_forward_post_hook(self.after)


@effect
def _set_weight(layer: Any, name: str, weight: Tensor) -> None:
    setattr(layer, name, weight)


def _reparameterizations_of(layer: Any, name: str) -> list[_Reparameterization]:
    """Return the reparameterizations of the weight of this name."""
    entries = [] if layer._hooks is None else layer._hooks.before
    owners = [getattr(entry.hook, "__self__", None) for entry in entries]
    return [
        owner for owner in owners if isinstance(owner, _Reparameterization) and owner.name == name
    ]


def _weight_to_replace(layer: Any, name: str, call: str) -> Parameter:
    """Return the parameter to reparameterize."""
    if not isinstance(layer, Layer):
        raise TypeError(f"{call} takes a layer; got {type(layer).__name__}.")
    existing = _reparameterizations_of(layer, name)
    if existing:
        kind = type(layer).__name__
        raise ValueError(f"{call}: {name!r} of {kind} has {existing[0].what} already.")
    weight = getattr(layer, name, None)
    if not isinstance(weight, Parameter):
        known = [key for key, value in vars(layer).items() if isinstance(value, Parameter)]
        raise ValueError(
            f"{call}: {type(layer).__name__} has no parameter {name!r}; it has "
            f"{', '.join(known) or 'none of its own'}."
        )
    return weight


def _parameter_like(
    old: Parameter, data: Any, rename: Callable[[str], str], generated: Any = None
) -> Parameter:
    """Create a parameter with the settings of another, its name changed by `rename`.

    Its generated name is that of `old`, which it takes the place of, or the given one.
    """
    name: Any = old._generated if generated is None else generated
    new = Parameter(
        Tensor(raw(data)),
        name=name,
        trainable=old.trainable,
        learning_rate=old.learning_rate,
        regularizer=old.regularizer,
        need_clip=old.need_clip,
    )
    if old.structural_name is None:
        return new
    renamed = rename(old.structural_name)
    if old.name == old.structural_name:  # it was given that name
        new.name = renamed
    else:
        new.structural_name = renamed
    return new


def _axis(dim: Any, weight: Any, call: str) -> int:
    if not isinstance(dim, int) or not -weight.ndim <= dim < weight.ndim:
        raise ValueError(
            f"{call}: dim is an axis of the weight of shape {weight.shape}; got {dim!r}."
        )
    return dim % int(weight.ndim)


# Weight normalization ---------------------------------------------------------------------------


class _WeightNorm(_Reparameterization):
    what = "weight normalisation"

    def __init__(self, name: str, axes: tuple[int, ...]) -> None:
        super().__init__(name)
        self.axes = axes

    def norm(self, v: Any) -> Any:
        """Return the norms, with axes of length 1 where they were summed."""
        return np.sqrt(np.sum(v * v, axis=self.axes, keepdims=True))

    def value(self, layer: Any) -> Any:
        v, g = getattr(layer, f"{self.name}_v"), getattr(layer, f"{self.name}_g")
        norm = self.norm(v)
        return v * (g.reshape(norm.shape) / norm)


def weight_norm(layer: Any, name: str = "weight", dim: int | None = 0) -> Any:
    r"""Apply weight normalization, :math:`w = g\, v / \lVert v \rVert`, to a layer.

    Parameters
    ----------
    layer : Layer
        Its parameter `name` is replaced by two, the norm ``name_g`` and the direction ``name_v``,
        and computed from them at each call.
    name : str
    dim : int or None
        Axis with one norm g for each index: 0 for the filters of a convolution, 1 for the outputs
        of a `Linear`, whose weight is [in, out]. None or -1: one norm of the whole weight.

    Returns
    -------
    Layer
        The layer itself.

    Raises
    ------
    TypeError, ValueError
        If there is no such parameter or axis, or it is reparameterized already.

    Notes
    -----
    An optimizer made before does not have the two new parameters. Source: Salimans and Kingma 2016.
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
    weight_normalization = _WeightNorm(name, axes)
    norms = weight_normalization.norm(weight.data).reshape(shape)
    delattr(layer, name)
    setattr(layer, f"{name}_v", _parameter_like(weight, weight.data, "{}_v".format))
    norm_name = layer._own_name().of_parameter()
    setattr(layer, f"{name}_g", _parameter_like(weight, norms, "{}_g".format, norm_name))
    weight_normalization.install(layer)
    return layer


@documented_like(weight_norm)
def remove_weight_norm(layer: Any, name: str = "weight") -> Any:
    """Undo `weight_norm`: make one parameter of norm and direction again.

    Parameters
    ----------
    layer : Layer

    Raises
    ------
    ValueError
        If the parameter has no weight normalization.

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
    one = _parameter_like(v, weight, lambda name: name.removesuffix("_v"))
    for part in (name, f"{name}_v", f"{name}_g"):
        delattr(layer, part)
    setattr(layer, name, one)
    return layer


# Spectral normalization -------------------------------------------------------------------------


class _SpectralNorm(_Reparameterization):
    what = "spectral normalisation"

    def __init__(self, name: str, axis: int, steps: int, epsilon: float) -> None:
        super().__init__(name)
        self.axis, self.steps, self.epsilon = axis, steps, epsilon

    def matrix(self, weight: Any) -> Any:
        """Return the weight as a matrix whose rows are `axis`."""
        if self.axis:
            weight = np.moveaxis(weight, self.axis, 0)
        return weight.reshape(weight.shape[0], -1)

    def unit(self, vector: Any) -> Any:
        """Return the vector scaled to norm 1."""
        return vector / np.maximum(np.sqrt(np.sum(vector * vector)), self.epsilon)

    def value(self, layer: Any) -> Any:
        weight = getattr(layer, f"{self.name}_orig")
        u, v = (getattr(layer, f"{self.name}_{part}") for part in "uv")
        matrix = self.matrix(weight)
        if layer.training and self.steps and learns():
            self.iterate(layer, raw(matrix), u, v)
        u, v = (Tensor(raw(x).copy()) for x in (u, v))  # the next call overwrites the buffers
        return weight / (u @ matrix @ v).astype(weight.dtype)

    def iterate(self, layer: Any, matrix: Any, u: Any, v: Any) -> None:
        """Update the singular vectors by power iteration."""
        private = isinstance(u, PrivateBuffer) and isinstance(v, PrivateBuffer)
        if (
            isinstance(matrix, EnsembleArray)
            and not isinstance(raw(u), EnsembleArray)
            and not private
        ):
            raise EnsembleError(
                "spectral_norm in training brings its singular vectors up to date, but inside "
                "ol.vmap each member has its own and the layer keeps one pair: call layer.eval()."
            )
        left, right = raw(u), raw(v)
        for _ in range(self.steps):
            right = self.unit(left @ matrix)
            left = self.unit(matrix @ right)
        if private:
            u.replace(left)
            v.replace(right)
            return
        with no_grad():
            u[...], v[...] = Tensor(left), Tensor(right)


@documented_like(weight_norm)
def spectral_norm(
    layer: Any, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12,
    dim: int | None = None,
) -> Any:  # fmt: skip
    r"""Apply spectral normalization to a layer: divide a weight by its largest singular value.

    .. math:: w = w_o / \sigma(w_o)

    Parameters
    ----------
    layer : Layer
        Its parameter `name` is replaced by ``name_orig``, and computed from it at each call. The
        singular vectors are the buffers ``name_u`` and ``name_v``.
    n_power_iterations : int
        Power iterations of each call in training.
    eps : float
        Smallest divisor in them.
    dim : int, optional
        Axis of the rows of the weight as a matrix; by default that of the outputs: 1 for `Linear`
        and transposed convolutions, otherwise 0.

    Notes
    -----
    The singular vectors are constants in the backward pass. Source: Miyato et al. 2018. Signature:
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
    axis = _axis(dim, weight, "spectral_norm")
    normalization = _SpectralNorm(name, axis, n_power_iterations, float(eps))
    matrix = normalization.matrix(weight.data)
    vectors = [
        normalization.unit(randn([n], weight.dtype).to(weight.device).data).astype(weight.dtype)
        for n in matrix.shape
    ]
    delattr(layer, name)
    setattr(layer, f"{name}_orig", _parameter_like(weight, weight.data, "{}_orig".format))
    for part, vector in zip("uv", vectors, strict=True):
        layer.register_buffer(f"{name}_{part}", Tensor(vector))
    normalization.install(layer)
    return layer
