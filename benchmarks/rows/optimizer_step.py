"""One update of ten million parameters, limited by memory bandwidth."""

from __future__ import annotations

from functools import partial
from typing import Any

from benchmarks.row import Peer, Row, Work, at_least, at_most, unbounded

TENSORS, SIZE = 20, 500_000
NAMES = ("SGD", "Momentum", "Adam", "AdamW", "Lamb")
#: Arrays that a rule reads and writes; a copy of as many bytes moves half of them each way.
TOUCHED = {"SGD": 3, "Momentum": 5, "Adam": 7, "AdamW": 7, "Lamb": 7}


def values() -> tuple[list[Any], list[Any]]:
    """Return the parameters and their gradients, float32."""
    import numpy as np

    draw = np.random.default_rng(0)
    shape = (TENSORS, SIZE)
    tensors = draw.standard_normal(shape, dtype=np.float32)
    return list(tensors), list(draw.standard_normal(shape, dtype=np.float32))


def ours(name: str, executor: str | None = None) -> Work:
    """Return the third step and later ones of one of our optimizers, on the same gradients.

    Without an executor it is what a user gets whose earlier program has filled the cache of
    compiled loops: here a few elements fill it, since a loop is the same for all sizes.
    """
    import optlab as ol
    from optlab.plan.executors import has_numba, use_executor

    def optimizer_of(parameters: list[Any], gradients: list[Any]) -> Any:
        tensors = [ol.Parameter(p) for p in parameters]
        for tensor, g in zip(tensors, gradients, strict=True):
            tensor.grad = g
        return getattr(ol.optimizer, name)(1e-5, parameters=tensors)

    parameters, gradients = values()
    if executor is None and has_numba():
        with use_executor("numba"):
            few = [x[:100_000] for x in (parameters[0], gradients[0])]
            optimizer_of(few[:1], few[1:]).step()
    use_executor(executor or "auto")
    optimizer = optimizer_of(parameters, gradients)
    for _ in range(2):
        optimizer.step()
    how = " ".join(optimizer.execution.values())
    if executor is None and has_numba() and "compiled by numba" not in how:
        raise RuntimeError(f"after two steps {name} runs {how}")
    return optimizer.step  # type: ignore[no-any-return]


def pytorch(name: str, form: str) -> Work:
    """Return the same step in PyTorch, in its foreach or fused form."""
    import torch

    parameters, gradients = values()
    tensors = [torch.nn.Parameter(torch.from_numpy(p)) for p in parameters]
    for tensor, g in zip(tensors, gradients, strict=True):
        tensor.grad = torch.from_numpy(g)
    options: dict[str, Any] = {form: True}
    if name == "Lamb":
        return lamb(tensors)
    if name == "Momentum":
        name, options["momentum"] = "SGD", 0.9
    optimizer: Any = getattr(torch.optim, name)(tensors, 1e-5, **options)
    return optimizer.step  # type: ignore[no-any-return]


def lamb(tensors: list[Any]) -> Work:
    """Return Lamb written with PyTorch's foreach functions, since PyTorch has no Lamb."""
    import torch

    gradients = [tensor.grad for tensor in tensors]
    first = [torch.zeros_like(tensor) for tensor in tensors]
    second = [torch.zeros_like(tensor) for tensor in tensors]
    count = 0

    def step() -> None:
        nonlocal count
        count += 1
        with torch.no_grad():
            torch._foreach_lerp_(first, gradients, 0.1)
            torch._foreach_mul_(second, 0.999)
            torch._foreach_addcmul_(second, gradients, gradients, 0.001)
            root = torch._foreach_sqrt(second)
            torch._foreach_div_(root, (1 - 0.999**count) ** 0.5)
            torch._foreach_add_(root, 1e-6)
            direction = torch._foreach_div(first, root)
            torch._foreach_div_(direction, 1 - 0.9**count)
            torch._foreach_add_(direction, tensors, alpha=0.01)
            weights, lengths = torch._foreach_norm(tensors), torch._foreach_norm(direction)
            ratios = torch._foreach_div(weights, lengths)
            torch._foreach_mul_(direction, ratios)
            torch._foreach_add_(tensors, direction, alpha=-1e-5)

    return step


def copy(name: str) -> Work:
    """Return a copy of as many bytes as the rule reads and writes."""
    import numpy as np

    source = np.ones(TENSORS * SIZE * TOUCHED[name] // 2, np.float32)
    target = np.empty_like(source)
    return lambda: np.copyto(target, source)


def peers(name: str) -> list[Peer]:
    """Return the peers of one rule."""
    fused = at_least(1.0 if name == "Adam" else 0.5)
    forms = [("foreach", at_least(1.0))] + [("fused", fused)] * (name != "Lamb")
    there = [
        Peer(
            f"PyTorch {form}" + " functions" * (name == "Lamb"),
            partial(pytorch, name, form),
            "torch",
            target,
            threads=(2,),
        )
        for form, target in forms
    ]
    bound = at_most(1.2) if name == "Adam" else unbounded()
    at_home = [
        Peer("copy", partial(copy, name), "numpy", bound, in_our_environment=True),
        Peer(
            "optlab with NumPy blocks",
            partial(ours, name, "numpy"),
            "numpy",
            unbounded(),
            in_our_environment=True,
        ),
    ]
    return [*there, *at_home]


ROWS = [
    Row(
        name=f"update_{name.lower()}",
        title=f"{name} on 10 million float32 parameters in {TENSORS} tensors",
        unit="update",
        ours=partial(ours, name),
        peers=peers(name),
    )
    for name in NAMES
]
