"""ParamAttr, the settings of a parameter, and the creation of parameters from them."""

from __future__ import annotations

from typing import Any

from optlab.autograd.tensor.creation import read_shape
from optlab.backend.dtypes import dtype_named, is_floating
from optlab.nn.base.names import UniqueName
from optlab.nn.base.parameter import Parameter
from optlab.nn.initializer import Constant, Initializer, XavierUniform


class ParamAttr:
    """Settings of a parameter, for ``weight_attr=`` and ``bias_attr=`` of layers.

    Parameters
    ----------
    name : str, optional
        Its name, also in states and traces; by default a generated one.
    initializer : Initializer, optional
        Initializer; by default that of the layer.
    learning_rate : float
        Factor of the optimizer's learning rate.
    regularizer : L1Decay or L2Decay, optional
        Regularizer in place of the optimizer's.
    trainable : bool
        Whether it collects a gradient and is updated.
    do_model_average : bool
        Must be True: model averages include every parameter.
    need_clip : bool
        Whether gradient clipping includes it.

    Examples
    --------
    >>> import optlab as ol
    >>> slow = ol.ParamAttr(learning_rate=0.1, initializer=ol.nn.initializer.Constant(1.0))
    >>> layer = ol.nn.Linear(2, 1, weight_attr=slow, bias_attr=False)
    >>> layer.weight.numpy().tolist(), layer.weight.learning_rate
    ([[1.0], [1.0]], 0.1)
    """

    def __init__(
        self, name: str | None = None, initializer: Initializer | None = None,
        learning_rate: float = 1.0, regularizer: Any = None, trainable: bool = True,
        do_model_average: bool = True, need_clip: bool = True,
    ) -> None:  # fmt: skip
        if name is not None and not isinstance(name, str):
            raise TypeError(f"ParamAttr: name must be text; got {name!r}.")
        if initializer is not None and not isinstance(initializer, Initializer):
            raise TypeError(
                "ParamAttr: initializer must be one of optlab.nn.initializer, such as Normal(); "
                f"got {initializer!r}."
            )
        if not do_model_average:
            raise TypeError(
                "ParamAttr(do_model_average=False) is not covered: give the averaging only the "
                "parameters that it should include."
            )
        self.name = name
        self.initializer = initializer
        self.learning_rate = learning_rate
        self.regularizer = regularizer
        self.trainable = trainable
        self.need_clip = need_clip

    def __repr__(self) -> str:
        given = ", ".join(f"{key}={value!r}" for key, value in vars(self).items())
        return f"ParamAttr({given})"


def as_attr(attr: Any, argument: str = "attr") -> ParamAttr | None:
    """Return the value of ``weight_attr=`` as a ParamAttr; None for False, no parameter.

    Raises
    ------
    TypeError
        If it is no such value.

    Examples
    --------
    >>> as_attr("w").name, as_attr(False), as_attr(Constant(1.0)).initializer.value
    ('w', None, 1.0)
    """
    if isinstance(attr, ParamAttr):
        return attr
    if attr is False:
        return None
    if attr is None or attr is True:
        return ParamAttr()
    if isinstance(attr, str):
        return ParamAttr(name=attr)
    if isinstance(attr, Initializer):
        return ParamAttr(initializer=attr)
    raise TypeError(
        f"{argument} must be an optlab.ParamAttr, a name, an initializer, False (for no "
        f"parameter), True or None; got {attr!r}."
    )


def make_parameter(
    owner: UniqueName, shape: tuple[int, ...], attr: Any, argument: str, dtype: Any,
    default: Initializer, name: str | None = None, is_bias: bool = False,
) -> Parameter | None:  # fmt: skip
    """Create a parameter of `owner` from the value of ``weight_attr=``; None for False."""
    settings = as_attr(attr, argument)
    if settings is None:
        return None
    initializer = settings.initializer or default
    values = initializer(shape, dtype)
    called: Any = settings.name or name or owner.of_parameter(is_bias)
    return Parameter(
        values,
        name=called,
        trainable=settings.trainable,
        learning_rate=settings.learning_rate,
        regularizer=settings.regularizer,
        need_clip=settings.need_clip,
    )


def require_parameter(parameter: Parameter | None, layer: str, argument: str) -> Parameter:
    """Return a parameter that a layer requires; raise if it is None."""
    if parameter is None:
        raise TypeError(f"{layer} cannot do without it: {argument}=False is not covered.")
    return parameter


def parameter_name(name: str | None, role: str) -> str | None:
    """Return the name of a parameter from the name of its layer, if it has one."""
    return None if name is None else f"{name}.{role}"


def create_parameter(
    shape: Any, dtype: Any = "float32", name: str | None = None, attr: Any = None,
    is_bias: bool = False, default_initializer: Initializer | None = None,
) -> Parameter:  # fmt: skip
    """Create a parameter.

    Parameters
    ----------
    shape : list or tuple of int
    dtype : str or dtype
    name : str, optional
        Its name; one in `attr` takes precedence. By default ``"create_parameter_0.w_0"``, unique.
    attr : ParamAttr, str or Initializer, optional
        Settings, name or initializer.
    is_bias : bool
        Whether the initializer is by default zero, instead of Xavier uniform.
    default_initializer : Initializer, optional
        Initializer unless `attr` has one.

    Raises
    ------
    TypeError
        If `attr` is none of these, or `dtype` is not floating point.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.create_parameter([2], "float32", name="b", is_bias=True)
    Parameter 'b' ([0., 0.], dtype=float32, requires_grad=True)
    """
    if not is_floating(dtype_named(dtype)):
        raise TypeError(f"create_parameter makes floating numbers; got dtype={dtype!r}.")
    default = default_initializer or (Constant(0.0) if is_bias else XavierUniform())
    if not isinstance(default, Initializer):
        raise TypeError(
            f"create_parameter: default_initializer must be an initializer; got {default!r}."
        )
    owner = UniqueName("create_parameter")
    parameter = make_parameter(
        owner, read_shape(shape), attr, "attr", dtype, default, name, is_bias
    )
    return require_parameter(parameter, "create_parameter", "attr")
