"""Convolutions over many combinations of their arguments, and LeNet-5, against PyTorch."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import optlab as ol

pytestmark = pytest.mark.peers

F = ol.nn.functional


@pytest.fixture(scope="module")
def torch() -> Any:
    return pytest.importorskip("torch")


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(shape).standard_normal(shape)


def same(ours: Any, theirs: Any, dtype: str) -> None:
    tolerance = 1e-5 if dtype == "float32" else 1e-10
    wanted = theirs.detach().numpy()
    assert ours.shape == wanted.shape
    assert ours.dtype == wanted.dtype
    np.testing.assert_allclose(
        ours.detach().numpy(), wanted, rtol=tolerance, atol=tolerance * max(abs(wanted).max(), 1)
    )


KERNELS, STRIDES, PADDINGS, DILATIONS = (1, 2, 3), (1, 2, 3), (0, 1, 2), (1, 2)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize(("groups", "channels", "filters"), [(1, 3, 4), (2, 4, 6), (4, 4, 8)])
def test_convolutions(torch: Any, dims: int, groups: int, channels: int, filters: int, dtype: str):
    convolution = getattr(torch.nn.functional, f"conv{dims}d")
    for kernel, stride, padding, dilation in itertools.product(
        KERNELS, STRIDES, PADDINGS, DILATIONS
    ):
        size = (7, 6, 5)[:dims]
        shape = (filters, channels // groups, *(kernel,) * dims)
        arrays = [a.astype(dtype) for a in (numbers(2, channels, *size), numbers(*shape),
                                            numbers(filters))]  # fmt: skip
        ours = [ol.to_tensor(a, requires_grad=True) for a in arrays]
        theirs = [torch.tensor(a, requires_grad=True) for a in arrays]
        y = getattr(F, f"conv{dims}d")(*ours, stride, padding, dilation, groups)
        z = convolution(*theirs, stride, padding, dilation, groups)
        same(y, z, dtype)
        g = numbers(*y.shape).astype(dtype)
        y.backward(g)
        z.backward(torch.tensor(g))
        for one, two in zip(ours, theirs, strict=True):
            same(one.grad, two.grad, dtype)


@pytest.mark.parametrize("dims", [1, 2, 3])
@pytest.mark.parametrize(("groups", "channels", "filters"), [(1, 3, 4), (2, 4, 6), (4, 4, 8)])
def test_transposed_convolutions(torch: Any, dims: int, groups: int, channels: int, filters: int):
    for kernel, stride, padding, dilation in itertools.product(
        KERNELS, STRIDES, PADDINGS, DILATIONS
    ):
        size = (4, 3, 2)[:dims]
        least = [(n - 1) * stride - 2 * padding + (kernel - 1) * dilation + 1 for n in size]
        if min(least) < 1:
            continue
        more = stride - 1
        shape = (channels, filters // groups, *(kernel,) * dims)
        arrays = [numbers(2, channels, *size), numbers(*shape), numbers(filters)]
        ours = [ol.to_tensor(a, requires_grad=True) for a in arrays]
        theirs = [torch.tensor(a, requires_grad=True) for a in arrays]
        options = {"output_padding": more, "groups": groups, "dilation": dilation}
        y = getattr(F, f"conv{dims}d_transpose")(*ours, stride, padding, **options)
        z = getattr(torch.nn.functional, f"conv_transpose{dims}d")(
            *theirs, stride, padding, **options
        )
        same(y, z, "float64")
        g = numbers(*y.shape)
        y.backward(g)
        z.backward(torch.tensor(g))
        for one, two in zip(ours, theirs, strict=True):
            same(one.grad, two.grad, "float64")


def lenet(nn: Any) -> Any:
    """Return the layers of LeNet-5 in either library."""
    convolution, maximum = getattr(nn, "Conv2D", None), getattr(nn, "MaxPool2D", None)
    convolution, maximum = convolution or nn.Conv2d, maximum or nn.MaxPool2d
    return [
        convolution(1, 6, 5, padding=2), nn.ReLU(), maximum(2),
        convolution(6, 16, 5), nn.ReLU(), maximum(2),
        nn.Flatten() if hasattr(nn, "Flatten") else None,
        nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10),
    ]  # fmt: skip


def test_a_training_run_of_lenet_and_what_it_keeps(torch: Any):
    """Five steps, weight by weight, and the bytes saved for the backward pass."""
    ol.seed(0)
    ours, theirs = lenet(ol.nn), torch.nn.Sequential(*lenet(torch.nn))
    for one, two in zip(ours, theirs, strict=True):
        if hasattr(one, "weight"):
            turned = type(one).__name__ == "Linear"
            with torch.no_grad():
                weight = one.weight.numpy()
                two.weight.copy_(torch.tensor(weight.T if turned else weight))
                two.bias.copy_(torch.tensor(one.bias.numpy()))
    x, labels = numbers(16, 1, 28, 28).astype("float32"), np.arange(16) % 10
    parameters = [p for layer in ours if layer is not None for p in layer.parameters()]
    one = ol.optimizer.SGD(0.05, parameters=parameters)
    two = torch.optim.SGD(theirs.parameters(), lr=0.05)

    def forward() -> Any:
        y: Any = ol.to_tensor(x)
        for layer in ours:
            y = y.reshape((16, -1)) if layer is None else layer(y)
        return F.cross_entropy(y, labels)

    for _ in range(5):
        loss = forward()
        loss.backward()
        one.step()
        one.clear_grad()
        two.zero_grad()
        reference = torch.nn.functional.cross_entropy(theirs(torch.tensor(x)), torch.tensor(labels))
        reference.backward()
        two.step()
        assert loss.item() == pytest.approx(reference.item(), rel=1e-4)

    def counted(kept: dict[Any, int], find: Any) -> Any:
        def pack(t: Any) -> Any:
            found = find(t)
            if found is not None:
                kept[found[0]] = found[1]
            return t

        return pack

    def base(array: Any) -> Any:
        while isinstance(array.base, np.ndarray):
            array = array.base
        return array

    weights = {id(base(p.data)) for p in parameters}
    held: dict[Any, int] = {}
    alive = []

    def ours_of(t: Any) -> Any:
        memory = base(t.data)
        alive.append(memory)
        return None if id(memory) in weights else (id(memory), memory.nbytes)

    with ol.autograd.saved_tensors_hooks(counted(held, ours_of), lambda t: t):
        loss = forward()
    their_weights = {p.untyped_storage().data_ptr() for p in theirs.parameters()}
    their_held: dict[Any, int] = {}

    def theirs_of(t: Any) -> Any:
        storage = t.untyped_storage()
        alive.append(t)
        if storage.data_ptr() in their_weights:
            return None
        return storage.data_ptr(), storage.nbytes()

    with torch.autograd.graph.saved_tensors_hooks(counted(their_held, theirs_of), lambda t: t):
        reference = torch.nn.functional.cross_entropy(theirs(torch.tensor(x)), torch.tensor(labels))
    assert sum(held.values()) <= 1.1 * sum(their_held.values())
