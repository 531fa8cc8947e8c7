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
from optlab.nn.functional.blocks import added_up, for_each
from optlab.nn.functional.conv import depthwise, im2col
from optlab.nn.functional.conv.plan import Plan, plan_of
from optlab.nn.functional.conv.products import (
    image_by_image,
    in_groups,
    multiplied,
    one_matrix,
    strided_sums,
    sums_of_rows,
    weight_sums,
)
from optlab.nn.functional.conv.scratch import SCRATCH
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
    plan = plan_of(x.shape[2:], kernel, stride, padding, dilation, filters // groups)
    matrix = in_groups(weight.reshape((filters, -1)), groups)
    xt, count = im2col.channels_first(x), x.shape[0]
    if not im2col.all_numpy(x, weight) or not (bias is None or im2col.all_numpy(bias)):
        seen = in_groups(one_matrix(im2col.im2col(xt, plan)), groups)
        y = (matrix @ seen).reshape((filters, count, *plan.grid))
        if bias is not None:
            y = y + bias.reshape((filters,) + (1,) * (1 + len(kernel)))
        y = y if plan.grid == plan.out else y[plan.valid]
        return im2col.channels_first(y if y.dtype == dtype else y.astype(dtype))
    y = np.empty((filters, count, *plan.out), dtype)
    each = image_by_image(plan, weight.size, groups)
    direct = plan.grid == plan.out and dtype == weight.dtype
    ones = im2col.takes_ones(plan, groups)
    if ones:  # the product adds the bias
        last = np.zeros((filters, 1), x.dtype) if bias is None else bias.reshape((filters, 1))
        matrix = np.concatenate((matrix, last), axis=1)

    def fill(block: slice) -> None:
        part = y[:, block]
        if direct:
            made, valid = part.reshape((filters, -1, plan.length)), part
        else:
            made, valid = im2col.grid_in_scratch(x, plan, filters, part.shape[1])
        multiplied(matrix, im2col.columns_of(xt[:, block], plan, groups), made, groups, each)
        if bias is not None and not ones:
            np.add(made, bias.reshape((filters, 1, 1)), out=made)
        if not direct:
            part[...] = valid

    for_each(fill, im2col.blocks(count, x.shape[1], plan, x.itemsize, filters // groups))
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
    plan = plan_of(tuple(size), kernel, stride, padding, dilation, filters // groups)
    turned = in_groups(weight.reshape((filters, -1)), groups).swapaxes(-1, -2)
    gt, count = im2col.channels_first(g), g.shape[0]
    if depthwise.fits(groups, filters, channels, plan, g, weight):
        x = depthwise.by_input(gt, weight.reshape((filters, -1)), plan, dtype)
        return im2col.channels_first(x)

    if not im2col.all_numpy(g, weight):
        given = in_groups(one_matrix(im2col.on_grid(gt, plan)), groups)
        made = (turned @ given).reshape((-1, count, plan.length))
        x = im2col.col2im(made, plan)
        return im2col.channels_first(x if x.dtype == dtype else x.astype(dtype))
    x = np.empty((channels, count, *plan.size), dtype)
    each = image_by_image(plan, weight.size, groups)

    def fill(block: slice) -> None:
        given = im2col.in_rows(gt[:, block], plan, each)
        _fill_input(x[:, block], turned, given, plan, groups, each)

    for_each(
        fill,
        im2col.blocks(count, channels, plan, g.itemsize, filters // groups, strided_sums(plan)),
    )
    return im2col.channels_first(x)


def _fill_input(x: Any, turned: Any, given: Any, plan: Plan, groups: int, each: bool) -> None:
    """Write the gradient of some images to `x` (C, N, ...size), for `given` (O, N, positions).

    `turned` is the weight, transposed. NumPy arrays only.
    """
    channels, count = x.shape[:2]
    if strided_sums(plan):
        sums = im2col.column_sums(given, plan, channels, count)
        multiplied(turned, given, sums.columns, groups, each or not plan.keeps_size)
        sums.add_up(x)
        return
    shape = (channels * plan.elements, count, plan.length)
    direct = plan.is_identity and x.dtype == given.dtype
    made = x.reshape(shape) if direct else SCRATCH(given, shape, "columns")
    multiplied(turned, given, made, groups, each)
    if not direct:
        x[...] = im2col.col2im(made, plan, SCRATCH)


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
    plan = plan_of(x.shape[2:], tuple(kernel), stride, padding, dilation, filters // groups)
    xt, gt, count = im2col.channels_first(x), im2col.channels_first(g), x.shape[0]
    if not count:
        return zeros_beside(g, shape)
    if depthwise.fits(groups, filters, channels, plan, x, g):
        return depthwise.by_weight(xt, gt, plan).reshape(shape).astype(dtype, copy=False)
    if im2col.all_numpy(x, g):
        each = image_by_image(plan, math.prod(shape), groups)

        def product(block: slice) -> Any:
            given = im2col.in_rows(gt[:, block], plan, each)
            return weight_sums(im2col.columns_of(xt[:, block], plan, groups), given, groups, each)

        total = added_up(
            for_each(product, im2col.blocks(count, channels, plan, x.itemsize, filters // groups))
        )
        total = total[:-1] if im2col.takes_ones(plan, groups) else total
    else:
        total = weight_sums(im2col.im2col(xt, plan), im2col.on_grid(gt, plan), groups, each=False)
    weight: Any = total.swapaxes(-1, -2).reshape(shape)
    return weight if weight.dtype == dtype else weight.astype(dtype)


def gradients(
    g: Any, weight: Any, x: Any, stride: Shape, padding: Pairs, dilation: Shape, groups: int
) -> tuple[Any, Any, Any]:
    """Return the gradients of a convolution with respect to input, weight and bias.

    For large NumPy arrays one pass over the images makes them all.
    """
    filters, kernel = weight.shape[0], weight.shape[2:]
    count, channels = x.shape[:2]
    plan = plan_of(x.shape[2:], kernel, stride, padding, dilation, filters // groups)
    if (
        not im2col.all_numpy(g, x, weight)
        or not g.dtype == x.dtype == weight.dtype
        or g.itemsize < 4
        or not count
        or depthwise.fits(groups, filters, channels, plan, g, x, weight)
    ):
        return (
            _by_x(g, weight, x.shape, stride, padding, dilation, groups),
            _by_weight(g, x, weight.shape, stride, padding, dilation, groups),
            _by_bias(g),
        )
    turned = in_groups(weight.reshape((filters, -1)), groups).swapaxes(-1, -2)
    xt, gt = im2col.channels_first(x), im2col.channels_first(g)
    by_x = np.empty((channels, count, *plan.size), x.dtype)
    each = image_by_image(plan, weight.size, groups)

    ones = im2col.takes_ones(plan, groups)

    def work(block: slice) -> tuple[Any, Any]:
        given = im2col.in_rows(gt[:, block], plan, each)
        part = weight_sums(im2col.columns_of(xt[:, block], plan, groups), given, groups, each)
        # The columns were read: their memory is free.
        _fill_input(by_x[:, block], turned, given, plan, groups, each)
        return (part[:-1], part[-1]) if ones else (part, sums_of_rows(given, each))

    blocks = im2col.blocks(count, channels, plan, x.itemsize, filters // groups, strided_sums(plan))
    parts = for_each(work, blocks)
    by_weight: Any = added_up([part for part, _ in parts])
    by_weight = by_weight.swapaxes(-1, -2).reshape(weight.shape)
    return im2col.channels_first(by_x), by_weight, added_up([part for _, part in parts])


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


def _gradients(
    g: Any, weight: Any, x: Any, stride: Any, padding: Any, dilation: Any, groups: Any
) -> Any:
    return gradients(g, weight, x, stride, padding, dilation, groups)[:2]


CONVOLUTION = rule(
    convolution, _by_x, _by_weight, joint=_gradients,
    inputs="x weight", static="stride padding dilation groups",
)  # fmt: skip
BIASED_CONVOLUTION = rule(
    biased_convolution, _by_x, _by_weight, _by_bias, joint=gradients,
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
    plan = plan_of(x.shape[2:], kernel, stride, padding, dilation, None)
    return im2col.channels_first(im2col.im2col(im2col.channels_first(x), plan))


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
    plan = plan_of(tuple(size), kernel, stride, padding, dilation, None)
    return im2col.channels_first(im2col.col2im(im2col.channels_first(seen), plan))


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
