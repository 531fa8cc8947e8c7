"""Helpers of all distributions: reading parameters, and drawing from the next key."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from optlab.autograd.rules import random as rules
from optlab.autograd.tape.grad_mode import recording
from optlab.autograd.tensor.tensor import Tensor, apply, raw
from optlab.backend.arrays import Shape, as_array, constants_beside, is_on_device, on_host
from optlab.backend.dtypes import common_dtype, is_floating
from optlab.backend.random import Key, next_key

Size = int | Sequence[int] | None

#: What to do instead of differentiating through a discrete sample.
SCORE_FUNCTION = (
    "A discrete sample is piecewise constant in its parameters, so it has no gradient. "
    "The expected loss has one: (loss.detach() * log_probability).mean().backward(), where "
    "log_probability is that of the numbers drawn (the score function); draw with "
    "{parameter}.detach()."
)
#: The same, for continuous distributions whose quantile function has no simple form.
NO_FORM = (
    "The derivative of its samples is not known here. Use {parameter}.detach(), and the score "
    "function: (loss.detach() * log_density).mean().backward()."
)


def as_parameters(*parameters: Any) -> list[Any]:
    """Convert lists to arrays, and lists that hold Tensors to Tensors; keep other parameters."""
    return [_stack_nested(x) if isinstance(x, (list, tuple)) else x for x in parameters]


def _stack_nested(x: Any) -> Any:
    if not isinstance(x, (list, tuple)):
        return x
    parts = [_stack_nested(part) for part in x]
    if any(isinstance(part, Tensor) for part in parts):
        return np.stack(parts)
    return np.asarray(x)


def any_tensor(*parameters: Any) -> bool:
    """Return whether a Tensor is among the parameters."""
    return any(isinstance(x, Tensor) for x in parameters)


def copied_values(x: Any) -> Any:
    """Return the values of a parameter that the tape reads later; arrays are copied."""
    x = raw(x)
    return x.copy() if isinstance(x, np.ndarray) or is_on_device(x) else x


def read_size(size: Any) -> Shape | None:
    """Return a size as a tuple, or None."""
    if size is None:
        return None
    return tuple(size) if np.ndim(size) else (int(size.__index__()),)


def draw(law: str, *parameters: Any, size: Any = None, **options: Any) -> Any:
    """Draw from the next key, by a method of NumPy's generators."""
    return getattr(next_key().generator(), law)(*parameters, size=size, **options)


def draw_without_gradient(
    law: str, hint: str, size: Any, parameters: dict[str, Any], **options: Any
) -> Any:
    """Draw from a distribution without a derivative: a Tensor if a parameter is one, or an array.

    Raises
    ------
    TypeError
        If a parameter needs a gradient.
    """
    values = as_parameters(*parameters.values())
    for name, x in zip(parameters, values, strict=True):
        refuse_gradient(law, name, x, hint)
    if not any_tensor(*values):
        return draw(law, *values, size=size, **options)
    drawn = np.asarray(draw(law, *[on_host(raw(x)) for x in values], size=size, **options))
    drawn = drawn.astype(_draw_dtype(values), copy=False) if drawn.dtype.kind == "f" else drawn
    return Tensor(constants_beside(device_among(values), drawn))


def refuse_gradient(law: str, parameter: str, x: Any, hint: str) -> None:
    """Raise if a parameter needs a gradient and operations are being recorded."""
    if isinstance(x, Tensor) and x.node is not None and recording.on:
        raise TypeError(
            f"random.{law} has no derivative with respect to {parameter!r}. "
            + hint.format(parameter=parameter)
        )


def check_sign(law: str, parameter: str, x: Any, *, positive: bool = False) -> None:
    """Raise ValueError unless a parameter is nonnegative (or positive), as NumPy does."""
    x = raw(x)
    if isinstance(x, (np.ndarray, np.generic, int, float)) or is_on_device(x):
        wrong = np.any(as_array(x) <= 0) if positive else np.any(as_array(x) < 0)
        if wrong:
            wanted = "positive" if positive else "0 or more"
            raise ValueError(f"random.{law} takes a {parameter} that is {wanted}; got {x!r}.")


def device_among(parameters: Sequence[Any]) -> Any:
    """Return the first parameter that is stored on a device; None if all are NumPy's."""
    return next((raw(x) for x in parameters if is_on_device(raw(x))), None)


def _draw_dtype(parameters: Sequence[Any]) -> Any:
    """Return the dtype of a sample: the common one of Tensors and arrays, not of Python numbers."""
    kinds = [raw(x).dtype for x in parameters if hasattr(raw(x), "dtype")]
    dtype = common_dtype(*kinds) if kinds else np.dtype(np.float64)
    return dtype if is_floating(dtype) else np.dtype(np.float64)


def _common_shape(law: str, size: Shape | None, shapes: list[Shape]) -> Shape:
    """Return the shape to draw: `size`, to which parameters broadcast, or their common shape."""
    wanted = [] if size is None else [size]
    with suppress(ValueError):
        shape = np.broadcast_shapes(*shapes, *wanted)
        if size in (None, shape):
            return shape
    raise ValueError(
        f"random.{law} got parameters of shape {', '.join(map(str, shapes))}, which do not fit "
        + ("together." if size is None else f"into size={size}.")
    )


class Draw:
    """A draw with Tensors among its parameters: its key, shape, dtype and device."""

    def __init__(self, law: str, size: Any, *parameters: Any) -> None:
        self.shape = _common_shape(law, read_size(size), [np.shape(x) for x in parameters])
        self.dtype = _draw_dtype(parameters)
        self.key = next_key()
        self.like = device_among(parameters)

    def times(self, scale: Any, *law: Any) -> Any:
        """Return `scale` times noise from `law`."""
        return self._times(self.key, scale, *law)

    def _times(self, key: Key, scale: Any, *law: Any) -> Any:
        if self.like is not None and np.ndim(scale) == 0 and not hasattr(scale, "__array_ufunc__"):
            scale = constants_beside(self.like, np.asarray(scale, self.dtype))
        return rules.scaled_noise(scale, law, key, self.shape, self.dtype)

    def gamma(self, a: Any, part: str | None = None) -> Any:
        """Draw from the standard gamma distribution with shape `a`; differentiable in it."""
        key = self.key if part is None else self.key.fold(part)
        a = a if hasattr(a, "dtype") else constants_beside(self.like, self.dtype.type(a))
        static = {"key": key, "shape": self.shape, "dtype": self.dtype}
        return apply(rules.STANDARD_GAMMA, (a,), static)

    def log_gamma(self, a: Any, part: str) -> Any:
        """Draw the logarithm of a standard gamma variable, without underflow for small `a`.

        A draw of shape a is a draw of shape a + 1 times u**(1/a).
        """
        key = self.key.fold(part, "power")
        power = self._times(key, 1 / a, "log of uniform")
        return np.log(self.gamma(a + 1, part)) + power
