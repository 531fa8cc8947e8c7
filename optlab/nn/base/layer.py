"""Layer, a function with parameters.

Its parts: `children` finds what it holds, `state_dict` saves and loads it, `hooks` observe its
calls.
"""

from __future__ import annotations

from collections.abc import Callable
from reprlib import recursive_repr
from types import NoneType
from typing import TYPE_CHECKING, Any

from optlab.autograd.tensor.creation import DEFAULT_DTYPE, ones, read_shape
from optlab.autograd.tensor.tensor import Tensor
from optlab.backend.dtypes import dtype_named
from optlab.backend.text import encodable
from optlab.backend.wrong_arguments import INTERNAL, explanation
from optlab.nn.base.children import named_values
from optlab.nn.base.hooks import Hookable
from optlab.nn.base.names import UniqueName, snake_case
from optlab.nn.base.param_attr import make_parameter
from optlab.nn.base.parameter import Parameter
from optlab.nn.base.state_dict import State
from optlab.nn.initializer import Constant, Initializer, XavierUniform

if TYPE_CHECKING:
    from typing import Self

    from optlab.nn.base.summary import Summary

#: Names of PyTorch, and their counterparts here.
_CALLED_HERE = {
    "zero_grad": "clear_gradients()",
    "modules": "sublayers(include_self=True)",
    "named_modules": "named_sublayers(include_self=True)",
    "add_module": "add_sublayer(name, layer)",
    "register_module": "add_sublayer(name, layer)",
    "register_parameter": "add_parameter(name, parameter)",
    "register_forward_hook": "register_forward_post_hook(hook)",
    "register_full_backward_hook": "register_backward_hook(hook)",
    "half": "float16()",
    "cuda": "to('gpu')",
    "cpu": "to('cpu')",
}


class Layer(State, Hookable):
    """A function with parameters. Subclasses set parameters and layers as attributes.

    The parameters and layers that its attributes refer to, also within lists, tuples and dicts,
    belong to a layer, and are named by their attributes: 'body.0.weight'.

    Parameters
    ----------
    name_scope : str, optional
        Prefix of `full_name`; by default the name of the class.
    dtype : str or dtype
        Dtype of the parameters that `create_parameter` makes.

    Attributes
    ----------
    training : bool
        Whether the layer is in training mode, see `train` and `eval`.

    Examples
    --------
    >>> import optlab as ol
    >>> class Scale(ol.nn.Layer):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.factor = ol.Parameter([2.0])
    ...     def forward(self, x):
    ...         return x * self.factor
    >>> scale = Scale()
    >>> scale(ol.to_tensor([3.0]))
    Tensor([6.], dtype=float32, requires_grad=True)
    >>> [name for name, _ in scale.named_parameters()]
    ['factor']
    """

    # Class attributes, so that a subclass which does not call super().__init__() works too.
    training: bool = True
    _unique_name: UniqueName | None = None
    _dtype: str = DEFAULT_DTYPE.name

    def __init__(self, name_scope: str | None = None, dtype: Any = DEFAULT_DTYPE) -> None:
        self._unique_name = UniqueName(name_scope or snake_case(type(self).__name__))
        if dtype != DEFAULT_DTYPE:
            self._dtype = dtype_named(dtype).name

    def forward(self, *inputs: Any, **options: Any) -> Any:
        """Compute the output. Subclasses define it."""
        raise NotImplementedError(
            f"{type(self).__name__} has no forward method; define forward(self, x) in the class."
        )

    def __call__(self, *inputs: Any, **options: Any) -> Any:
        """Run `forward` and the hooks around it."""
        try:
            if self._hooks is None:
                return self.forward(*inputs, **options)
            return self._hooks.run(self, inputs, options)
        except INTERNAL as error:
            given = (self, *inputs)
            forward = type(self).forward
            said = explanation(error, type(self).__name__, forward, given, options, skip=1)
            if said is None:
                raise
            raise said from error

    def __setattr__(self, name: str, value: Any) -> None:
        if isinstance(vars(self).get(name), Parameter) and not isinstance(
            value, (Parameter, NoneType)
        ):
            raise TypeError(
                f"{type(self).__name__}.{name} is a parameter; a {type(value).__name__} in its "
                "place would be neither trained nor saved. Nothing was changed. Other values: "
                f"layer.{name}.set_value(values), or, for a step by hand, `with ol.no_grad(): "
                f"layer.{name} -= rate * layer.{name}.grad`. Another parameter: layer.{name} = "
                f"ol.Parameter(values), or None. For a Tensor computed elsewhere: "
                f"del layer.{name} first."
            )
        super().__setattr__(name, value)

    if not TYPE_CHECKING:  # a type checker would accept every name as an attribute

        def __getattr__(self, name: str) -> Any:
            """Raise for an unknown attribute, with the counterpart of a name of PyTorch."""
            here = _CALLED_HERE.get(name)
            if here is None:
                # Fails once more with the original message, perhaps that of a property.
                return object.__getattribute__(self, name)
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r}; here it is "
                f"layer.{here}.",
                name=name,
                obj=self,
            )

    def guarded(self) -> dict[str, Any]:
        """Return the attributes that a captured call depends on, but for what it computes."""
        hooks = () if self._hooks is None else self._hooks.before
        owners = [getattr(entry.hook, "__self__", None) for entry in hooks]
        left = {"_unique_name", "_full_name", *(getattr(x, "computed", None) for x in owners)}
        return {name: x for name, x in vars(self).items() if name not in left}

    # Training and evaluation --------------------------------------------------------------------

    def train(self, mode: bool = True) -> Self:
        """Switch this layer and all sublayers to training, or to evaluation if `mode` is False.

        Returns
        -------
        Layer
            The layer itself.
        """
        for layer in self.sublayers(include_self=True):
            layer.training = bool(mode)
        return self

    def eval(self) -> Self:
        """Switch this layer and all sublayers to evaluation; return the layer itself."""
        return self.train(False)

    def apply(self, fn: Callable[[Layer], Any]) -> Self:
        """Call `fn` with every sublayer, then with this layer; return the layer itself.

        Examples
        --------
        >>> import optlab as ol
        >>> def zero(layer):
        ...     if isinstance(layer, ol.nn.Linear):
        ...         layer.bias.set_value(ol.zeros(layer.bias.shape))
        >>> model = ol.nn.Sequential(ol.nn.Linear(2, 3), ol.nn.Tanh()).apply(zero)
        """
        for layer in reversed(self.sublayers(include_self=True)):
            fn(layer)
        return self

    # Creating parameters ------------------------------------------------------------------------

    def create_parameter(
        self, shape: Any, attr: Any = None, dtype: Any = None, is_bias: bool = False,
        default_initializer: Initializer | None = None,
    ) -> Parameter | None:  # fmt: skip
        """Create a parameter; assigned to an attribute, it belongs to this layer.

        Parameters
        ----------
        shape : list or tuple of int
        attr : ParamAttr, str, Initializer or bool, optional
            Settings, name or initializer. False makes no parameter.
        dtype : str or dtype, optional
            By default that of the layer.
        is_bias : bool
            Whether the initializer is by default zero, instead of Xavier uniform.
        default_initializer : Initializer, optional
            Initializer unless `attr` has one.

        Returns
        -------
        Parameter or None

        Raises
        ------
        TypeError
            If `attr` is none of these.

        Examples
        --------
        >>> import optlab as ol
        >>> layer = ol.nn.Layer()
        >>> layer.create_parameter([2], is_bias=True)
        Parameter ([0., 0.], dtype=float32, requires_grad=True)
        """
        default = default_initializer or (Constant(0.0) if is_bias else XavierUniform())
        lengths = read_shape(shape)
        return make_parameter(
            self._own_name(), lengths, attr, "attr", dtype or self._dtype, default, None, is_bias
        )

    def _new_parameter(
        self, shape: tuple[int, ...], attr: Any, argument: str, dtype: Any, default: Initializer,
        name: str | None = None,
    ) -> Parameter | None:  # fmt: skip
        """Create a parameter from the value of ``weight_attr=`` or ``bias_attr=``."""
        is_bias = argument.startswith("bias")
        return make_parameter(
            self._own_name(), shape, attr, argument, dtype, default, name, is_bias
        )

    # Display ------------------------------------------------------------------------------------

    def full_name(self) -> str:
        """Return a name that is unique in this process, such as ``"linear_0"``.

        The layers of a class are numbered in the order in which they are made. A copy gets a
        number of its own.

        Examples
        --------
        >>> import optlab as ol
        >>> class MyBlock(ol.nn.Layer):
        ...     pass
        >>> MyBlock().full_name(), MyBlock().full_name()
        ('my_block_0', 'my_block_1')
        """
        return str(self._own_name())

    def _own_name(self) -> UniqueName:
        if self._unique_name is None:  # of a class whose __init__ does not call that of Layer
            self._unique_name = UniqueName(snake_case(type(self).__name__))
        return self._unique_name

    def summary(self, *inputs: Any, **options: Any) -> Summary:
        """Run forward and tabulate the output, parameters and saved bytes of each layer.

        The run leaves no trace: buffers are restored, hooks are removed, and random numbers
        elsewhere are unaffected.

        Parameters
        ----------
        *inputs, **options
            Arguments of the call. A tuple or list of integers stands for an input of that shape,
            see `example_input`: ones, or the index of the first row of an `Embedding`.

        Returns
        -------
        Summary
            Shown as a table by ``print`` and by notebooks.

        Examples
        --------
        >>> import optlab as ol
        >>> ol.seed(0)
        >>> model = ol.nn.Sequential(ol.nn.Linear(64, 32), ol.nn.Tanh(), ol.nn.Linear(32, 10))
        >>> print(model.summary((100, 64)))
        layer       | output    | parameters | saved for backward
        ------------+-----------+------------+-------------------
        Sequential  | (100, 10) |            |
          0: Linear | (100, 32) |      2,080 |             25 KiB
          1: Tanh   | (100, 32) |            |           12.5 KiB
          2: Linear | (100, 10) |        330 |
        ------------+-----------+------------+-------------------
        total       |           |      2,410 |           37.5 KiB
        """
        from optlab.nn.base.summary import summarize  # here: `import optlab.nn` need not pay 2.5 ms

        return summarize(self, inputs, options, Layer.example_input)

    def example_input(self, shape: Any) -> Tensor:
        """Return an input of this shape for `summary`: ones, unless a subclass overrides it."""
        return ones(shape)

    def extra_repr(self) -> str:
        """Return the settings that ``repr`` shows in parentheses."""
        return ""

    @recursive_repr("...")
    def __repr__(self) -> str:
        inside = [
            f"  {name}: {value!r}".replace("\n", "\n  ")
            for name, value in named_values(self)
            if isinstance(value, Layer)
        ]
        head = f"{type(self).__name__}({self.extra_repr()})"
        return head if not inside else "\n".join([f"{type(self).__name__}(", *inside, ")"])

    def _repr_html_(self) -> str:
        from optlab.nn.base.html import layer_page

        return encodable(layer_page(self))
