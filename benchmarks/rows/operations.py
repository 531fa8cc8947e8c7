"""Single operations, forward and backward, dominated by the overhead of each call.

Every side runs the same lines of `OPERATIONS` with its own module in place of NumPy's, on
float32 vectors (`matmul`: on square matrices of about as many elements). One unit builds the
graph, computes the vector-Jacobian product for every input, reads the gradients and clears them.
The rows called forward only build the graph, with inputs that need a gradient, and drop it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import isqrt
from typing import Any

from benchmarks.row import Peer, Row, Target, Work, at_least, unbounded

SIZES = (1, 1_000, 1_000_000)

#: ``operation(np, x, u, condition)``; whether u takes part and needs a gradient too.
OPERATIONS: dict[str, tuple[Callable[..., Any], bool]] = {
    "add": (lambda np, x, u, condition: x + u, True),
    "subtract": (lambda np, x, u, condition: x - u, True),
    "multiply": (lambda np, x, u, condition: x * u, True),
    "divide": (lambda np, x, u, condition: x / u, True),
    "power": (lambda np, x, u, condition: x**3, False),
    "exp": (lambda np, x, u, condition: np.exp(x), False),
    "log": (lambda np, x, u, condition: np.log(x), False),
    "sqrt": (lambda np, x, u, condition: np.sqrt(x), False),
    "sin": (lambda np, x, u, condition: np.sin(x), False),
    "tanh": (lambda np, x, u, condition: np.tanh(x), False),
    "abs": (lambda np, x, u, condition: np.abs(x), False),
    "maximum": (lambda np, x, u, condition: np.maximum(x, u), True),
    "where": (lambda np, x, u, condition: np.where(condition, x, u), True),
    "sum": (lambda np, x, u, condition: np.sum(x), False),
    "mean": (lambda np, x, u, condition: np.mean(x), False),
    "max": (lambda np, x, u, condition: np.max(x), False),
    "matmul": (lambda np, x, u, condition: x @ u, True),
    "reshape": (lambda np, x, u, condition: np.reshape(x, (-1, 1)), False),
    "getitem": (lambda np, x, u, condition: x[::2], False),
    "concatenate": (lambda np, x, u, condition: np.concatenate([x, u]), True),
}


def numbers(name: str, size: int) -> tuple[Any, Any, Any]:
    """Return x, u and a condition: float32 numbers between 0.5 and 1.5, and as many booleans."""
    import numpy as np

    shape = (isqrt(size), isqrt(size)) if name == "matmul" else (size,)
    random = np.random.default_rng(0)
    x, u = (random.uniform(0.5, 1.5, shape).astype(np.float32) for _ in range(2))
    return x, u, random.uniform(size=shape) < 0.5


def leafwise(forward: Callable[..., Any], inputs: tuple[Any, ...], seed: Any) -> Work:
    """Return the unit of the sides where backward stores the gradients in ``grad``."""
    x, u, *_ = inputs

    def by_one() -> Any:
        forward(*inputs).backward(seed)
        found = x.grad
        x.grad = None
        return (found,)

    def by_two() -> Any:
        forward(*inputs).backward(seed)
        found = x.grad, u.grad
        x.grad = u.grad = None
        return found

    return by_two if u.requires_grad else by_one


def ours(size: int, backward: bool) -> dict[str, Work]:
    """Return optlab's units: NumPy's own functions on Tensors."""
    import numpy as np

    import optlab as ol

    units: dict[str, Work] = {}
    for name, (operation, by_both) in OPERATIONS.items():
        x, u, condition = numbers(name, size)
        x, u = ol.to_tensor(x, requires_grad=True), ol.to_tensor(u, requires_grad=by_both)
        inputs = (x, u, condition)
        forward = partial(operation, np)
        seed = ol.ones(forward(*inputs).shape)
        units[name] = leafwise(forward, inputs, seed) if backward else partial(forward, *inputs)
    return units


def pytorch(size: int, backward: bool) -> dict[str, Work]:
    """Return PyTorch's units."""
    import torch

    units: dict[str, Work] = {}
    for name, (operation, by_both) in OPERATIONS.items():
        x, u, condition = (torch.from_numpy(array) for array in numbers(name, size))
        inputs = (x.requires_grad_(), u.requires_grad_(by_both), condition)
        forward = partial(operation, torch)
        seed = torch.ones_like(forward(*inputs).detach())
        units[name] = leafwise(forward, inputs, seed) if backward else partial(forward, *inputs)
    return units


def hips_autograd(size: int, backward: bool, public: bool = True) -> dict[str, Work]:
    """Return HIPS autograd's units, by its public API or by the internal function below it.

    Of the public ways to compute one vector-Jacobian product this is the fastest:
    `autograd.make_vjp`, called once beforehand, of one input, of a pair where two need a gradient.
    """
    import autograd
    import autograd.core
    import autograd.numpy as np

    def unit(of_one: Callable[[Any], Any], x: Any, seed: Any) -> Work:
        if public:
            forward = partial(autograd.make_vjp(of_one), x)
        else:
            forward = partial(autograd.core.make_vjp, of_one, x)

        def both_ways() -> Any:
            pull_back, _ = forward()
            found = pull_back(seed)
            return found if isinstance(found, tuple) else (found,)

        return both_ways if backward else forward

    units: dict[str, Work] = {}
    for name, (operation, by_both) in OPERATIONS.items():
        x, u, condition = numbers(name, size)
        seed = np.ones_like(operation(np, x, u, condition))
        if by_both:
            of_pair = partial(lambda f, c, pair: f(np, pair[0], pair[1], c), operation, condition)
            units[name] = unit(of_pair, (x, u), seed)
        else:
            of_x = partial(lambda f, u, c, x: f(np, x, u, c), operation, u, condition)
            units[name] = unit(of_x, x, seed)
    return units


def row(size: int, backward: bool) -> Row:
    """Return the table of one size."""
    elements = f"{size:,} element" + ("s" if size > 1 else "")
    held = size == 1 and backward

    def target(bound: float) -> Target:
        return at_least(bound) if held else unbounded()

    return Row(
        name=f"operations_{size}" if backward else f"forward_{size}",
        title=f"{len(OPERATIONS)} operations on {elements}, float32, "
        + ("forward and backward" if backward else "forward alone, recorded"),
        unit="operation",
        kind="table",
        default=backward,
        ours=partial(ours, size, backward),
        peers=[
            Peer(
                "PyTorch eager",
                partial(pytorch, size, backward),
                "torch",
                target(1.0),
                threads=(1, 2),
            ),
            Peer("HIPS autograd", partial(hips_autograd, size, backward), "autograd", target(5.0)),
            Peer(
                "HIPS autograd, internal core",
                partial(hips_autograd, size, backward, public=False),
                "autograd",
                unbounded(),
            ),
        ],
    )


ROWS = [row(size, backward) for backward in (True, False) for size in SIZES]
