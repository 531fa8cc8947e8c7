"""Convolution and its two gradients: three operations, each the derivative of the others.

Convolution is bilinear in input and weight, so the derivatives of these three operations, of any
order, are the same three. Columns are recomputed for each: only input and weight are saved.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from optlab.autograd.operation import as_single_operation, rule
from optlab.backend.arrays import Shape, zeros_beside
from optlab.nn.functional.conv import depthwise, im2col
from optlab.nn.functional.windows import Pairs


def convolution(
    x: Any, weight: Any, stride: Shape, padding: Pairs, dilation: Shape, groups: int
) -> Any:
    """Return the convolution of `x` (N, C, ...) with `weight` (O, C / groups, ...).

    Examples
    --------
    >>> import numpy as np
    >>> x, weight = np.arange(5.0).reshape(1, 1, 5), np.ones((1, 1, 2))
    >>> convolution(x, weight, (2,), ((0, 0),), (1,), 1)
    array([[[1., 5.]]])
    """
    return _convolved(x, weight, None, stride, padding, dilation, groups)


def biased_convolution(
    x: Any, weight: Any, bias: Any, stride: Shape, padding: Pairs, dilation: Shape, groups: int
) -> Any:
    """Return a convolution plus a bias for each filter.

    Examples
    --------
    >>> import numpy as np
    >>> x, weight = np.arange(5.0).reshape(1, 1, 5), np.ones((1, 1, 2))
    >>> biased_convolution(x, weight, np.array([0.5]), (2,), ((0, 0),), (1,), 1)
    array([[[1.5, 5.5]]])
    """
    return _convolved(x, weight, bias, stride, padding, dilation, groups)


def _convolved(
    x: Any, weight: Any, bias: Any, stride: Shape, padding: Pairs, dilation: Shape, groups: int
) -> Any:
    dtype = np.result_type(x.dtype, weight.dtype)
    x, weight = im2col.at_least_float32(x, weight)
    filters, kernel = weight.shape[0], weight.shape[2:]
    plan = im2col.plan_of(x.shape[2:], kernel, stride, padding, dilation, filters // groups)
    matrix = im2col.in_groups(weight.reshape((filters, -1)), groups)
    xt, count = im2col.channels_first(x), x.shape[0]
    if bias is not None:
        bias = bias.reshape((filters,) + (1,) * (1 + len(kernel)))

    def product(images: Any) -> Any:
        made = matrix @ im2col.in_groups(im2col.im2col(images, plan), groups)
        made = made.reshape((filters, images.shape[1], *plan.grid))
        if bias is not None:
            made = made + bias  # before row ends are discarded: NumPy adds long runs faster
        return made if plan.grid == plan.out else made[plan.valid]

    if not im2col.all_numpy(x, weight) or not (bias is None or im2col.all_numpy(bias)):
        y = product(xt)
        return im2col.channels_first(y if y.dtype == dtype else y.astype(dtype))
    y = np.empty((filters, count, *plan.out), dtype)
    for block in im2col.blocks(count, x.shape[1], plan, x.itemsize):
        y[:, block] = product(xt[:, block])
    return im2col.channels_first(y)


def convolution_input(
    g: Any, weight: Any, size: Shape, stride: Shape, padding: Pairs, dilation: Shape, groups: int
) -> Any:
    """Return the gradient of a convolution with respect to its input, of spatial size `size`.

    This is the transposed convolution. `g` is (N, O, ...), `weight` (O, C / groups, ...).

    Examples
    --------
    >>> import numpy as np
    >>> g, weight = np.array([[[1.0, 10.0]]]), np.ones((1, 1, 2))
    >>> convolution_input(g, weight, (5,), (2,), ((0, 0),), (1,), 1)
    array([[[ 1.,  1., 10., 10.,  0.]]])
    """
    dtype = np.result_type(g.dtype, weight.dtype)
    g, weight = im2col.at_least_float32(g, weight)
    filters, kernel = weight.shape[0], weight.shape[2:]
    channels = weight.shape[1] * groups
    plan = im2col.plan_of(tuple(size), kernel, stride, padding, dilation, filters // groups)
    matrix = im2col.in_groups(weight.reshape((filters, -1)), groups).swapaxes(-1, -2)
    gt, count = im2col.channels_first(g), g.shape[0]
    if depthwise.fits(groups, filters, channels, plan, g, weight):
        x = depthwise.by_input(gt, weight.reshape((filters, -1)), plan, dtype)
        return im2col.channels_first(x)

    def product(images: Any) -> Any:
        made = matrix @ im2col.in_groups(im2col.on_grid(images, plan), groups)
        return im2col.col2im(made, plan, channels, images.shape[1])

    if not im2col.all_numpy(g, weight):
        x = product(gt)
        return im2col.channels_first(x if x.dtype == dtype else x.astype(dtype))
    x = np.empty((channels, count, *plan.size), dtype)
    for block in im2col.blocks(count, channels, plan, g.itemsize):
        x[:, block] = product(gt[:, block])
    return im2col.channels_first(x)


def convolution_weight(
    x: Any, g: Any, kernel: Shape, stride: Shape, padding: Pairs, dilation: Shape, groups: int
) -> Any:
    """Return the gradient of a convolution with respect to its weight, of kernel size `kernel`.

    Examples
    --------
    >>> import numpy as np
    >>> x, g = np.arange(5.0).reshape(1, 1, 5), np.array([[[1.0, 10.0]]])
    >>> convolution_weight(x, g, (2,), (2,), ((0, 0),), (1,), 1)
    array([[[20., 31.]]])
    """
    dtype = np.result_type(x.dtype, g.dtype)
    x, g = im2col.at_least_float32(x, g)
    channels, filters = x.shape[1], g.shape[1]
    shape = (filters, channels // groups, *kernel)
    plan = im2col.plan_of(x.shape[2:], tuple(kernel), stride, padding, dilation, filters // groups)
    xt, gt, count = im2col.channels_first(x), im2col.channels_first(g), x.shape[0]
    if not count:
        return zeros_beside(g, shape)
    if depthwise.fits(groups, filters, channels, plan, x, g):
        return depthwise.by_weight(xt, gt, plan).reshape(shape).astype(dtype, copy=False)

    def product(images: Any, gradients: Any) -> Any:
        seen = im2col.in_groups(im2col.im2col(images, plan), groups)
        return seen @ im2col.in_groups(im2col.on_grid(gradients, plan), groups).swapaxes(-1, -2)

    cut = (
        im2col.blocks(count, channels, plan, x.itemsize)
        if im2col.all_numpy(x, g)
        else [slice(None)]
    )
    total = None
    for block in cut:
        part = product(xt[:, block], gt[:, block])
        total = part if total is None else total + part
    weight: Any = total.swapaxes(-1, -2).reshape(shape)  # type: ignore[union-attr]
    return weight if weight.dtype == dtype else weight.astype(dtype)


def _by_x(
    g: Any, weight: Any, x_shape: Any, stride: Any, padding: Any, dilation: Any, groups: Any
) -> Any:
    size = tuple(x_shape[2:])
    return as_single_operation(
        convolution_input, g, weight, size, stride, padding, dilation, groups
    )


def _by_weight(
    g: Any, x: Any, weight_shape: Any, stride: Any, padding: Any, dilation: Any, groups: Any
) -> Any:
    kernel = tuple(weight_shape[2:])
    return as_single_operation(convolution_weight, x, g, kernel, stride, padding, dilation, groups)


def _by_bias(g: Any) -> Any:
    return np.add.reduce(g, axis=(0, *range(2, g.ndim)))


CONVOLUTION = rule(
    convolution, _by_x, _by_weight, inputs="x weight", static="stride padding dilation groups"
)
BIASED_CONVOLUTION = rule(
    biased_convolution, _by_x, _by_weight, _by_bias,
    inputs="x weight bias", static="stride padding dilation groups",
)  # fmt: skip
CONVOLUTION_INPUT = rule(
    convolution_input,
    lambda g, weight, stride, padding, dilation, groups: as_single_operation(
        convolution, g, weight, stride, padding, dilation, groups
    ),
    lambda g, upper, weight_shape, stride, padding, dilation, groups: as_single_operation(
        convolution_weight, g, upper, tuple(weight_shape[2:]), stride, padding, dilation, groups
    ),
    inputs="upper weight",
    static="size stride padding dilation groups",
)
CONVOLUTION_WEIGHT = rule(
    convolution_weight,
    lambda g, upper, x_shape, stride, padding, dilation, groups: as_single_operation(
        convolution_input, upper, g, tuple(x_shape[2:]), stride, padding, dilation, groups
    ),
    lambda g, x, stride, padding, dilation, groups: as_single_operation(
        convolution, x, g, stride, padding, dilation, groups
    ),
    inputs="x upper",
    static="kernel stride padding dilation groups",
)


def unfolded(x: Any, kernel: Shape, stride: Shape, padding: Pairs, dilation: Shape) -> Any:
    """Return the patches of `x` (N, C, ...) as columns (N, C * kernel, positions).

    Examples
    --------
    >>> import numpy as np
    >>> unfolded(np.arange(4.0).reshape(1, 1, 4), (2,), (1,), ((0, 0),), (1,))
    array([[[0., 1., 2.],
            [1., 2., 3.]]])
    """
    plan = im2col.plan_of(x.shape[2:], kernel, stride, padding, dilation, None)
    seen = im2col.im2col(im2col.channels_first(x), plan)
    return im2col.channels_first(seen.reshape((seen.shape[0], x.shape[0], math.prod(plan.out))))


def folded(
    seen: Any, size: Shape, kernel: Shape, stride: Shape, padding: Pairs, dilation: Shape
) -> Any:
    """Add columns to where they were read: the transpose of `unfolded`.

    Examples
    --------
    >>> import numpy as np
    >>> folded(np.ones((1, 2, 3)), (4,), (2,), (1,), ((0, 0),), (1,))
    array([[[1., 2., 2., 1.]]])
    """
    plan = im2col.plan_of(tuple(size), kernel, stride, padding, dilation, None)
    count, rows = seen.shape[:2]
    channels = rows // math.prod(kernel)
    return im2col.channels_first(im2col.col2im(im2col.channels_first(seen), plan, channels, count))


UNFOLDED = rule(
    unfolded,
    lambda g, x_shape, kernel, stride, padding, dilation: as_single_operation(
        folded, g, tuple(x_shape[2:]), kernel, stride, padding, dilation
    ),
    static="kernel stride padding dilation",
)
FOLDED = rule(
    folded,
    lambda g, kernel, stride, padding, dilation: as_single_operation(
        unfolded, g, kernel, stride, padding, dilation
    ),
    static="size kernel stride padding dilation",
)
