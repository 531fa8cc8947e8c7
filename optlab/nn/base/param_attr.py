"""ParamAttr: the settings of a parameter that a layer is about to make."""

from __future__ import annotations

from typing import Any

from optlab.autograd.tensor.creation import read_shape
from optlab.backend.dtypes import dtype_named, is_floating
from optlab.nn.base.parameter import Parameter
from optlab.nn.initializer import Constant, Initializer, XavierUniform


class ParamAttr:
    """The settings of a parameter, for ``weight_attr=`` and ``bias_attr=`` of layers.

    Parameters
    ----------
    name : str, optional
        What traces and errors call it.
    initializer : Initializer, optional
        How it starts; by default as the layer says.
    learning_rate : float
        Multiplies the optimizer's learning rate for this parameter.
    regularizer : L1Decay or L2Decay, optional
        Takes the place of the optimizer's regularizer for this parameter.
    trainable : bool
        Whether it collects a gradient and is updated.
    do_model_average : bool
        True: what averages a model includes every parameter.
    need_clip : bool
        Whether gradient clipping includes this parameter.

    Examples
    --------
    >>> import optlab as ol
    >>> slow = ol.ParamAttr(learning_rate=0.1, initializer=ol.nn.initializer.Constant(1.0))
    >>> layer = ol.nn.Linear(2, 1, weight_attr=slow, bias_attr=False)
    >>> layer.weight.numpy().tolist(), layer.weight.learning_rate
    ([[1.0], [1.0]], 0.1)
    """

    def __init__(
        self,
        name: str | None = None,
        initializer: Initializer | None = None,
        learning_rate: float = 1.0,
        regularizer: Any = None,
        trainable: bool = True,
        do_model_average: bool = True,
        need_clip: bool = True,
    ) -> None:
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
    """Read what ``weight_attr=`` takes; False means that there is no parameter, and gives None.

    Raises
    ------
    TypeError
        If it is none of these.

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
    shape: tuple[int, ...],
    attr: Any,
    argument: str,
    dtype: Any,
    default: Initializer,
    name: str | None = None,
) -> Parameter | None:
    """Make a parameter of a layer as ``weight_attr=`` says; None where it says False."""
    settings = as_attr(attr, argument)
    if settings is None:
        return None
    start = settings.initializer or default
    return Parameter(
        start(shape, dtype),
        name=settings.name or name,
        trainable=settings.trainable,
        learning_rate=settings.learning_rate,
        regularizer=settings.regularizer,
        need_clip=settings.need_clip,
    )


def require_parameter(parameter: Parameter | None, layer: str, argument: str) -> Parameter:
    """Give the parameter, which a layer cannot do without."""
    if parameter is None:
        raise TypeError(f"{layer} cannot do without it: {argument}=False is not covered.")
    return parameter


def parameter_name(name: str | None, role: str) -> str | None:
    """Give the name of a parameter of a layer that was given a name."""
    return None if name is None else f"{name}.{role}"


def create_parameter(
    shape: Any,
    dtype: Any = "float32",
    name: str | None = None,
    attr: Any = None,
    is_bias: bool = False,
    default_initializer: Initializer | None = None,
) -> Parameter:
    """Make a parameter.

    Parameters
    ----------
    shape : list or tuple of int
    dtype : str or dtype
    name : str, optional
        What traces and errors call it; a name in `attr` comes first.
    attr : ParamAttr, str or Initializer, optional
        Its settings: all of them, or its name, or how it starts.
    is_bias : bool
        Whether it starts at 0 where nothing else is said; otherwise by Xavier's rule.
    default_initializer : Initializer, optional
        How it starts where `attr` does not say.

    Raises
    ------
    TypeError
        If `attr` is none of these, or `dtype` is not floating.

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
    found = make_parameter(read_shape(shape), attr, "attr", dtype, default, name)
    return require_parameter(found, "create_parameter", "attr")
