"""ReLU and related activation layers."""

from __future__ import annotations

from typing import Any

from optlab.autograd.tensor.tensor import Tensor
from optlab.nn import functional
from optlab.nn.base.layer import Layer
from optlab.nn.base.param_attr import parameter_name, require_parameter
from optlab.nn.initializer import Constant
from optlab.nn.layers.configured import Unary


class CELU(Unary, function=functional.celu):
    """Apply the continuously differentiable ELU: x if x > 0, else alpha (e^(x / alpha) - 1).

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.CELU()(ol.to_tensor([-100.0, 2.0]))
    Tensor([-1.,  2.], dtype=float32)
    """

    alpha: float = 1.0
    name: str | None = None


class ELU(Unary, function=functional.elu):
    """Apply the exponential linear unit: x if x > 0, else alpha (e^x - 1).

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.ELU()(ol.to_tensor([-100.0, 2.0]))
    Tensor([-1.,  2.], dtype=float32)
    """

    alpha: float = 1.0
    name: str | None = None


class LeakyReLU(Unary, function=functional.leaky_relu):
    """Apply leaky ReLU: x if x > 0, else negative_slope * x.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.LeakyReLU(0.5)(ol.to_tensor([-1.0, 2.0]))
    Tensor([-0.5,  2. ], dtype=float32)
    """

    negative_slope: float = 0.01
    name: str | None = None


class ReLU(Unary, function=functional.relu):
    """Apply the rectified linear unit: max(x, 0).

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.ReLU()(ol.to_tensor([-1.0, 2.0]))
    Tensor([0., 2.], dtype=float32)
    """

    name: str | None = None


class ReLU6(Unary, function=functional.relu6):
    """Apply ReLU6: min(max(x, 0), 6).

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.ReLU6()(ol.to_tensor([-1.0, 7.0]))
    Tensor([0., 6.], dtype=float32)
    """

    name: str | None = None


class SELU(Unary, function=functional.selu):
    """Apply the scaled ELU: scale * x if x > 0, else scale * alpha (e^x - 1).

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.SELU(2.0, 1.0)(ol.to_tensor([-100.0, 2.0]))
    Tensor([-2.,  4.], dtype=float32)
    """

    scale: float = 1.0507009873554805
    alpha: float = 1.6732632423543772
    name: str | None = None


class PReLU(Layer):
    """Apply parametric ReLU: x if x > 0, else weight * x, with a learned weight.

    Parameters
    ----------
    num_parameters : int
        1 for a single weight, or the number of channels.
    init : float
        Initial value of the weights.
    weight_attr : ParamAttr, str or Initializer, optional
        Settings of the weights.
    data_format : {'NC', 'NCL', 'NCHW', 'NCDHW', 'NLC', 'NHWC', 'NDHWC'}
        Position of the channel axis: 1 or the last.
    name : str, optional
        Prefix of the parameter name.

    See Also
    --------
    optlab.nn.functional.prelu : the formula, and its source.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.nn.PReLU()(ol.to_tensor([-1.0, 2.0])).tolist()
    [-0.25, 2.0]
    """

    def __init__(
        self, num_parameters: int = 1, init: float = 0.25, weight_attr: Any = None,
        data_format: str = "NCHW", name: str | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        start = Constant(float(init))
        weight = self._new_parameter(
            (num_parameters,), weight_attr, "weight_attr", "float32", start,
            parameter_name(name, "weight"),
        )  # fmt: skip
        self.weight = require_parameter(weight, "PReLU", "weight_attr")
        self.data_format = data_format

    def forward(self, x: Any) -> Tensor:
        """Apply parametric ReLU."""
        return functional.prelu(x, self.weight, self.data_format)

    def extra_repr(self) -> str:
        """Return the sizes and settings."""
        return f"num_parameters={self.weight.size}, data_format={self.data_format!r}"
