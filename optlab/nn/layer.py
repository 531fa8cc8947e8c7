"""Layer: a function with parameters, and Sequential, a chain of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from optlab.autograd.tensor import Tensor
from optlab.nn.parameter import Parameter


class Layer:
    """A function with parameters. Subclasses set parameters and layers as attributes.

    Examples
    --------
    >>> import optlab as ol
    >>> class Scale(ol.nn.Layer):
    ...     def __init__(self):
    ...         self.factor = ol.Parameter([2.0])
    ...     def forward(self, x):
    ...         return x * self.factor
    >>> scale = Scale()
    >>> scale(ol.to_tensor([3.0]))
    Tensor([6.], dtype=float32, requires_grad=True)
    >>> [name for name, _ in scale.named_parameters()]
    ['factor']
    """

    training: bool = True

    def forward(self, *inputs: Any, **options: Any) -> Any:
        """Compute the output. Subclasses say how."""
        raise NotImplementedError(
            f"{type(self).__name__} has no forward method; define forward(self, x) in the class."
        )

    def __call__(self, *inputs: Any, **options: Any) -> Any:
        """Run `forward`."""
        return self.forward(*inputs, **options)

    def named_sublayers(self, prefix: str = "") -> Iterator[tuple[str, Layer]]:
        """Go through the layers inside this one, with their place in the structure."""
        for name, value in vars(self).items():
            if isinstance(value, Layer):
                place = f"{prefix}{name}"
                yield place, value
                yield from value.named_sublayers(f"{place}.")

    def named_parameters(self) -> Iterator[tuple[str, Parameter]]:
        """Go through all parameters, with their place in the structure; each one once."""
        seen: set[Parameter] = set()
        for place, layer in [("", self), *self.named_sublayers()]:
            for name, value in vars(layer).items():
                if isinstance(value, Parameter) and value not in seen:
                    seen.add(value)
                    yield (f"{place}.{name}" if place else name), value

    def parameters(self) -> list[Parameter]:
        """Give all parameters; those without a name get their place in the structure as name."""
        found = []
        for place, parameter in self.named_parameters():
            if parameter.name is None:
                parameter.name = place
            found.append(parameter)
        return found

    def add_sublayer(self, name: str, layer: Layer) -> Layer:
        """Put a layer inside this one, under a name.

        Raises
        ------
        TypeError
            If `layer` is not a Layer.
        ValueError
            If the name would hide a method of this layer.
        """
        if not isinstance(layer, Layer):
            raise TypeError(
                f"add_sublayer({name!r}, ...) takes a Layer; got {type(layer).__name__}."
            )
        if hasattr(type(self), name):
            raise ValueError(
                f"a layer inside {type(self).__name__} cannot be named {name!r}: that is what "
                f"{type(self).__name__}.{name} is called. Choose another name."
            )
        setattr(self, name, layer)
        return layer

    def train(self) -> None:
        """Switch this layer and all inside to training."""
        self._set_training(True)

    def eval(self) -> None:
        """Switch this layer and all inside to evaluation."""
        self._set_training(False)

    def _set_training(self, training: bool) -> None:
        self.training = training
        for _, layer in self.named_sublayers():
            layer.training = training

    def __repr__(self) -> str:
        inside = [
            f"  {name}: {value!r}".replace("\n", "\n  ")
            for name, value in vars(self).items()
            if isinstance(value, Layer)
        ]
        head = f"{type(self).__name__}({self.extra_repr()})"
        return head if not inside else "\n".join([f"{type(self).__name__}(", *inside, ")"])

    def extra_repr(self) -> str:
        """Say what distinguishes this layer from others of its class."""
        return ""


class Sequential(Layer):
    """A chain of layers: each takes what the one before gives.

    Parameters
    ----------
    layers : Layer or (str, Layer)
        In order; named by their position, or by the name given.

    Examples
    --------
    >>> import optlab as ol
    >>> ol.seed(0)
    >>> model = ol.nn.Sequential(ol.nn.Linear(4, 3), ol.nn.ReLU(), ol.nn.Linear(3, 2))
    >>> model(ol.ones([5, 4])).shape
    (5, 2)
    >>> [parameter.name for parameter in model.parameters()]
    ['0.weight', '0.bias', '2.weight', '2.bias']
    """

    def __init__(self, *layers: Layer | tuple[str, Layer]) -> None:
        self._order: list[Layer] = []
        for position, item in enumerate(layers):
            name, layer = item if isinstance(item, tuple) else (str(position), item)
            self.add_sublayer(name, layer)

    def add_sublayer(self, name: str, layer: Layer) -> Layer:
        """Put a layer at the end of the chain; its name must be new.

        Raises
        ------
        ValueError
            If another layer of the chain has this name, or a method has.
        """
        if name in vars(self):
            raise ValueError(f"two layers of a Sequential cannot both be named {name!r}.")
        super().add_sublayer(name, layer)
        self._order.append(layer)
        return layer

    def forward(self, x: Any) -> Tensor:
        """Give `x` to the first layer, its output to the second, and so on."""
        for layer in self._order:
            x = layer.forward(x)
        return x  # type: ignore[no-any-return]

    def __len__(self) -> int:
        return len(self._order)

    def __getitem__(self, position: int) -> Layer:
        return self._order[position]

    def __iter__(self) -> Iterator[Layer]:
        return iter(self._order)
