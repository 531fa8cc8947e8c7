"""Layer: a function with parameters.

What it holds is found in `structure`, given out and taken in by `state`, watched by `hooks`.
"""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from reprlib import recursive_repr
from types import NoneType
from typing import TYPE_CHECKING, Any

import numpy as np

from optlab.autograd.tensor.creation import DEFAULT_DTYPE, ones
from optlab.autograd.tensor.tensor import Tensor
from optlab.backend.dtypes import dtype_named
from optlab.nn.base.children import named_values
from optlab.nn.base.hooks import Hookable
from optlab.nn.base.param_attr import make_parameter
from optlab.nn.base.parameter import Parameter
from optlab.nn.base.state_dict import State
from optlab.nn.initializer import Constant, Initializer, XavierUniform

if TYPE_CHECKING:
    from typing import Self

    from optlab.nn.base.summary import Summary

#: What PyTorch calls it, and what it is called here.
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

_instances: dict[str, Iterator[int]] = defaultdict(itertools.count)


class Layer(State, Hookable):
    """A function with parameters. Subclasses set parameters and layers as attributes.

    Whatever parameters and layers the attributes of a layer refer to, in lists, tuples and dicts as
    well, belong to it, and are named by their place.

    Parameters
    ----------
    name_scope : str, optional
        What `full_name` starts with; the name of the class by default.
    dtype : str or dtype
        The type of the parameters that `create_parameter` makes.

    Attributes
    ----------
    training : bool
        Whether the layer is in training, see `train` and `eval`.

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
    _name_scope: str | None = None
    _full_name: str | None = None
    _dtype: str = DEFAULT_DTYPE.name

    def __init__(self, name_scope: str | None = None, dtype: Any = DEFAULT_DTYPE) -> None:
        if name_scope is not None:
            self._name_scope = name_scope
        if dtype != DEFAULT_DTYPE:
            self._dtype = dtype_named(dtype).name

    def forward(self, *inputs: Any, **options: Any) -> Any:
        """Compute the output. Subclasses say how."""
        raise NotImplementedError(
            f"{type(self).__name__} has no forward method; define forward(self, x) in the class."
        )

    def __call__(self, *inputs: Any, **options: Any) -> Any:
        """Run `forward`, and the hooks around it."""
        if self._hooks is None:
            return self.forward(*inputs, **options)
        return self._hooks.run(self, inputs, options)

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

    if not TYPE_CHECKING:  # a type checker would take every name for an attribute

        def __getattr__(self, name: str) -> Any:
            """Say what a name of PyTorch is called here; asked where nothing is found."""
            here = _CALLED_HERE.get(name)
            if here is None:
                # Fails once more, in its own words: those of a property, perhaps.
                return object.__getattribute__(self, name)
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r}; here it is "
                f"layer.{here}.",
                name=name,
                obj=self,
            )

    # Training and evaluation --------------------------------------------------------------------

    def train(self, mode: bool = True) -> Self:
        """Switch this layer and all inside to training (or to evaluation, where `mode` is False).

        Returns
        -------
        Layer
            The layer itself.
        """
        for layer in self.sublayers(include_self=True):
            layer.training = bool(mode)
        return self

    def eval(self) -> Self:
        """Switch this layer and all inside to evaluation; give the layer itself."""
        return self.train(False)

    def apply(self, fn: Callable[[Layer], Any]) -> Self:
        """Call `fn` with every layer inside, then with this one; give the layer itself.

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

    # Making parameters --------------------------------------------------------------------------

    def create_parameter(
        self,
        shape: Any,
        attr: Any = None,
        dtype: Any = None,
        is_bias: bool = False,
        default_initializer: Initializer | None = None,
    ) -> Parameter | None:
        """Make a parameter; assign it to an attribute, and it belongs to this layer.

        Parameters
        ----------
        shape : list or tuple of int
        attr : ParamAttr, str, Initializer or bool, optional
            Its settings: all of them, or its name, or how it starts. False makes no parameter.
        dtype : str or dtype, optional
            By default that of the layer.
        is_bias : bool
            Whether it starts at zero, where nothing else is said.
        default_initializer : Initializer, optional
            How it starts where `attr` does not say; by default Xavier uniform.

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
        lengths = tuple(int(length) for length in np.atleast_1d(shape))
        return make_parameter(lengths, attr, "attr", dtype or self._dtype, default)

    # What it is ---------------------------------------------------------------------------------

    def full_name(self) -> str:
        """Give a name that no other layer of this process has, such as ``"linear_0"``.

        Layers are numbered in the order in which they are first asked.

        Examples
        --------
        >>> import optlab as ol
        >>> class MyBlock(ol.nn.Layer):
        ...     pass
        >>> MyBlock().full_name(), MyBlock().full_name()
        ('my_block_0', 'my_block_1')
        """
        if self._full_name is None:
            words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", type(self).__name__).lower()
            base = self._name_scope or words
            self._full_name = f"{base}_{next(_instances[base])}"
        return self._full_name

    def summary(self, *inputs: Any, **options: Any) -> Summary:
        """Run forward, and tabulate what each layer gives, holds, and keeps for backward.

        Nothing of the run remains: buffers get their values back, hooks are taken off, and random
        numbers outside are as if it had not been.

        Parameters
        ----------
        *inputs, **options
            What the layer is called with. A tuple or list of whole numbers stands for an input of
            that shape, see `example_input`: ones, or the number of the first row of an `Embedding`.

        Returns
        -------
        Summary
            ``print`` shows a table; so does a notebook.

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
        """Return an input of this shape for `summary`: ones, unless a subclass says otherwise."""
        return ones(shape)

    def extra_repr(self) -> str:
        """Say what distinguishes this layer from others of its class."""
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

        return layer_page(self)
