"""Normalizations: running statistics, modes, dtypes, saved bytes, and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import optlab as ol
from optlab.nn.functional.norm import layer_norm

nn, F = ol.nn, ol.nn.functional


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(2).normal(3.0, 2.0, shape)


class TestBatchNorm:
    @pytest.mark.parametrize(
        ("make", "shape", "axes"),
        [
            (nn.BatchNorm1D, (5, 3), (0,)),
            (nn.BatchNorm1D, (5, 3, 4), (0, 2)),
            (nn.BatchNorm2D, (5, 3, 2, 4), (0, 2, 3)),
            (nn.BatchNorm3D, (2, 3, 2, 4, 2), (0, 2, 3, 4)),
            (nn.BatchNorm, (5, 3, 4), (0, 2)),
        ],
    )
    def test_training_and_evaluation(self, make: Any, shape: Any, axes: Any) -> None:
        layer, x = make(3), numbers(*shape).astype("float32")
        y = layer(ol.to_tensor(x)).numpy()
        np.testing.assert_allclose(y.mean(axes), 0.0, atol=1e-5)
        np.testing.assert_allclose(y.var(axes), 1.0, rtol=1e-4)
        mean, variance = 0.1 * x.mean(axes), 0.9 + 0.1 * x.var(axes)
        np.testing.assert_allclose(layer.running_mean.numpy(), mean, rtol=1e-5)
        np.testing.assert_allclose(layer.running_var.numpy(), variance, rtol=1e-5)
        layer.eval()
        z = layer(ol.to_tensor(x)).numpy()
        each = (1, 3) + (1,) * (len(shape) - 2)
        expected = (x - mean.reshape(each)) / np.sqrt(variance.reshape(each) + 1e-5)
        np.testing.assert_allclose(z, expected, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(layer.running_mean.numpy(), mean, rtol=1e-5)  # unchanged

    def test_momentum_is_what_stays(self) -> None:
        layer = nn.BatchNorm1D(1, momentum=0.25)
        layer(ol.to_tensor([[2.0], [6.0]]))
        assert layer.running_mean.item() == pytest.approx(0.75 * 4)
        assert layer.running_var.item() == pytest.approx(0.25 + 0.75 * 4)

    def test_statistics_that_are_always_the_running_ones_or_never(self) -> None:
        x = ol.to_tensor(numbers(6, 2).astype("float32"))
        always = nn.BatchNorm1D(2, use_global_stats=True)
        np.testing.assert_allclose(always(x).numpy(), x.numpy(), rtol=1e-4)
        assert always.running_mean.tolist() == [0.0, 0.0]
        never = nn.BatchNorm1D(2, use_global_stats=False)
        never.eval()
        np.testing.assert_allclose(never(x).numpy().mean(0), 0.0, atol=1e-5)

    def test_the_older_layer(self) -> None:
        x = ol.to_tensor(numbers(6, 2).astype("float32"))
        layer = nn.BatchNorm(2, act="relu", is_test=True)
        np.testing.assert_allclose(layer(x).numpy(), np.maximum(x.numpy(), 0), rtol=1e-4)
        layer.train()
        assert layer(x).numpy().min() == 0.0
        batch = nn.BatchNorm(2, is_test=True, trainable_statistics=True)(x).numpy()
        np.testing.assert_allclose(batch.mean(0), 0.0, atol=1e-5)
        running = nn.BatchNorm(2, use_global_stats=True)(x).numpy()
        np.testing.assert_allclose(running, x.numpy(), rtol=1e-4)
        with pytest.raises(ValueError, match="act must name a function"):
            nn.BatchNorm(2, act="rulu")

    def test_an_earlier_evaluation_can_still_go_backward(self) -> None:
        layer = nn.BatchNorm1D(2, dtype="float64")
        x = ol.to_tensor(numbers(4, 2), requires_grad=True)
        layer.eval()
        y = layer(x) * ol.to_tensor(numbers(4, 2))
        layer.train()
        layer(numbers(5, 2))
        y.sum().backward()
        expected = (numbers(4, 2) * numbers(4, 2)).sum(0) / np.sqrt(1 + 1e-5)
        np.testing.assert_allclose(layer.weight.grad.numpy(), expected, rtol=1e-12)

    def test_channels_last(self) -> None:
        x = numbers(2, 3, 4, 5).astype("float32")
        first = nn.BatchNorm2D(3)(ol.to_tensor(x)).numpy()
        last = nn.BatchNorm2D(3, data_format="NHWC")(ol.to_tensor(np.moveaxis(x, 1, -1))).numpy()
        np.testing.assert_allclose(np.moveaxis(last, -1, 1), first, rtol=1e-5, atol=1e-6)

    def test_bad_input(self) -> None:
        with pytest.raises(ValueError, match="takes x of 4 axes; got shape"):
            nn.BatchNorm2D(3)(ol.ones([2, 3]))
        with pytest.raises(ValueError, match="x has 4 channels"):
            nn.BatchNorm1D(3)(ol.ones([2, 4]))
        with pytest.raises(ValueError, match="data_format='NCHW', 'NHWC'"):
            nn.BatchNorm2D(3, data_format="NCL")
        with pytest.raises(ValueError, match=r"layer\.eval\(\)"):
            nn.BatchNorm1D(3)(ol.ones([1, 3]))
        with pytest.raises(ValueError, match="one number for each channel has no variance"):
            nn.BatchNorm2D(3)(ol.ones([1, 3, 1, 1]))
        assert nn.BatchNorm2D(3).eval()(ol.ones([1, 3, 1, 1])).shape == (1, 3, 1, 1)
        with pytest.raises(ValueError, match="outside training needs running_mean"):
            F.batch_norm(ol.ones([2, 3]), None, None)


@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (lambda dtype: nn.LayerNorm([2, 3], dtype=dtype), (4, 2, 3)),
        (lambda dtype: nn.RMSNorm(3, dtype=dtype), (4, 2, 3)),
        (lambda dtype: nn.GroupNorm(2, 4, dtype=dtype), (2, 4, 3)),
        (lambda dtype: nn.InstanceNorm1D(3, dtype=dtype), (2, 3, 5)),
        (lambda dtype: nn.InstanceNorm2D(3, dtype=dtype), (2, 3, 4, 2)),
        (lambda dtype: nn.InstanceNorm3D(3, dtype=dtype), (2, 3, 4, 2, 2)),
        (lambda dtype: nn.BatchNorm2D(3, dtype=dtype), (2, 3, 4, 2)),
    ],
    ids=["layer", "rms", "group", "instance 1D", "instance 2D", "instance 3D", "batch"],
)
class TestLayers:
    def test_gradients(self, make: Any, shape: Any) -> None:
        layer = make("float64")
        for parameter in layer.parameters():
            parameter.trainable = False
        ol.check_grad(layer, numbers(*shape))

        def of_weight(w: Any) -> Any:
            layer.weight = w
            return layer(numbers(*shape))

        lengths = layer.weight.shape
        del layer.weight  # a Tensor replaces it
        ol.check_grad(of_weight, numbers(*lengths))

    def test_examples_one_by_one(self, make: Any, shape: Any) -> None:
        layer, x = make("float64"), numbers(*shape)
        layer.eval()
        alone = np.stack([layer(one[None]).numpy()[0] for one in x])
        together = ol.vmap(lambda one: layer(one[None])[0])(ol.to_tensor(x))
        np.testing.assert_allclose(together.numpy(), alone, rtol=1e-9, atol=1e-12)

    @pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
    def test_dtypes(self, make: Any, shape: Any, dtype: str) -> None:
        layer = make(dtype)
        x = ol.to_tensor(numbers(*shape).astype(dtype), requires_grad=True)
        y = layer(x)
        y.backward()
        assert (y.dtype, x.grad.dtype, layer.weight.grad.dtype) == (dtype,) * 3

    def test_large_numbers_of_16_bits(self, make: Any, shape: Any) -> None:
        x = 300 * numbers(*shape)
        y = make("float16")(x.astype("float16")).numpy()
        np.testing.assert_allclose(y, make("float64")(x).numpy(), atol=0.01)

    def test_repr(self, make: Any, shape: Any) -> None:
        assert "1e-05" in repr(make("float32"))


def kept_bytes(y: Any, parameters: list[Any]) -> int:
    """Count the bytes that the tape saves for y, each array once, without parameters."""
    from optlab.autograd.tape import backward

    seen: dict[int, int] = {}
    own = {id(p.data) for p in parameters}
    for node in backward.toposort(y.node):
        for value in getattr(node, "saved", None) or ():
            for array in value if isinstance(value, tuple) else (value,):
                if isinstance(array, np.ndarray):
                    while array.base is not None and isinstance(array.base, np.ndarray):
                        array = array.base
                    if id(array) not in own:
                        seen[id(array)] = array.nbytes
    return sum(seen.values())


@pytest.mark.parametrize(
    ("make", "shape"),
    [
        (lambda: nn.BatchNorm2D(3), (8, 3, 16, 16)),
        (lambda: nn.LayerNorm(64), (32, 64)),
        (lambda: nn.GroupNorm(3, 12), (8, 12, 8)),
        (lambda: nn.InstanceNorm2D(3), (8, 3, 16, 16)),
        (lambda: nn.RMSNorm(64), (32, 64)),
    ],
    ids=["batch", "layer", "group", "instance", "rms"],
)
def test_one_array_of_the_size_of_the_input_is_kept(make: Any, shape: Any) -> None:
    layer, x = make(), numbers(*shape).astype("float32")
    y = layer(ol.to_tensor(x, requires_grad=True))
    assert x.nbytes <= kept_bytes(y, layer.parameters()) <= 1.1 * x.nbytes


def test_functions_refuse_what_does_not_fit() -> None:
    with pytest.raises(ValueError, match=r"the last axes, of lengths \[3\]"):
        F.layer_norm(ol.ones([2, 4]), 3)
    with pytest.raises(ValueError, match="weight must be of shape"):
        F.layer_norm(ol.ones([2, 4]), 4, ol.ones([3]))
    with pytest.raises(ValueError, match="cannot be put into 3 groups"):
        F.group_norm(ol.ones([2, 4]), 3)
    with pytest.raises(ValueError, match="cannot be put into 3 groups"):
        nn.GroupNorm(3, 4)
    with pytest.raises(TypeError, match="instance_norm with running_mean"):
        F.instance_norm(ol.ones([2, 4, 3]), ol.zeros([4]), ol.ones([4]))
    with pytest.raises(TypeError, match="there are no running statistics"):
        nn.InstanceNorm1D(4, momentum=0.5)(ol.ones([2, 4, 3]))
    with pytest.raises(ValueError, match="data_format"):
        F.batch_norm(ol.ones([2, 4]), ol.zeros([4]), ol.ones([4]), data_format="CHW")
    with pytest.raises(TypeError, match="results of functions have no names"):
        F.layer_norm(ol.ones([2, 4]), 4, name="norm")  # type: ignore[arg-type]


@pytest.mark.peers
@pytest.mark.parametrize("training", [True, False])
def test_batch_norm_layer_against_pytorch(training: bool) -> None:
    torch = pytest.importorskip("torch")
    ours, theirs = nn.BatchNorm2D(3, momentum=0.8), torch.nn.BatchNorm2d(3, momentum=0.2)
    x = numbers(4, 3, 5, 5).astype("float32")
    if not training:
        ours.eval()
        theirs.eval()
    for _ in range(3):
        y, z = ours(ol.to_tensor(x)), theirs(torch.tensor(x))
    np.testing.assert_allclose(y.numpy(), z.detach().numpy(), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(ours.running_mean.numpy(), theirs.running_mean.numpy(), rtol=1e-5)
    count = x.size // 3  # PyTorch's running variance divides by count - 1
    biased = 1 + (theirs.running_var.numpy() - 1)
    if training:
        biased = 0.8**3 + (theirs.running_var.numpy() - 0.8**3) * (count - 1) / count
    np.testing.assert_allclose(ours.running_var.numpy(), biased, rtol=1e-5)


class TestInsideVmap:
    def test_running_statistics_shared_by_all_examples_are_refused(self) -> None:
        layer = nn.BatchNorm1D(3)
        x = ol.to_tensor(np.random.default_rng(0).normal(size=(4, 2, 3)).astype("float32"))
        with pytest.raises(TypeError, match=r"inside ol.vmap .*layer.eval\(\).*InstanceNorm"):
            ol.vmap(layer)(x)
        assert type(layer.running_mean.data) is np.ndarray
        assert layer.running_mean.tolist() == [0.0] * 3
        with pytest.raises(TypeError, match=r"inside ol\.vmap"):  # also for nested ensembles
            ol.vmap(ol.vmap(layer))(x[None])

    def test_what_keeps_nothing_works(self) -> None:
        x = ol.to_tensor(np.random.default_rng(0).normal(size=(4, 2, 3)).astype("float32"))
        one = ol.vmap(lambda x: F.batch_norm(x, None, None, training=True))(x)
        for k in range(4):
            np.testing.assert_allclose(
                one[k].numpy(), F.batch_norm(x[k], None, None, training=True).numpy(), rtol=1e-5
            )
        layer = nn.BatchNorm1D(3).eval()
        together = layer(x.reshape([8, 3])).numpy().reshape(4, 2, 3)
        np.testing.assert_allclose(ol.vmap(layer)(x).numpy(), together, rtol=1e-6)


EMPTY = {
    "layer_norm": (lambda x: nn.LayerNorm(4)(x), (0, 3, 4)),
    "rms_norm": (lambda x: F.rms_norm(x, 4), (0, 4)),
    "batch_norm": (lambda x: nn.BatchNorm2D(4)(x), (0, 4, 3, 3)),
    "batch_norm evaluated": (lambda x: nn.BatchNorm1D(4).eval()(x), (0, 4)),
    "group_norm": (lambda x: nn.GroupNorm(2, 4)(x), (0, 4, 3)),
    "group_norm, channels last": (
        lambda x: F.group_norm(x, 2, data_format="NHWC"), (0, 3, 3, 4),
    ),
    "instance_norm": (lambda x: nn.InstanceNorm1D(4)(x), (0, 4, 3)),
    "instance_norm without places": (F.instance_norm, (2, 4, 0)),
    "an encoder": (nn.TransformerEncoderLayer(4, 2, 8), (0, 5, 4)),
    "an encoder, evaluated": (nn.TransformerEncoderLayer(4, 2, 8).eval(), (0, 5, 4)),
}  # fmt: skip


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", EMPTY)
def test_an_empty_batch_gives_an_empty_result_and_gradient(name: str) -> None:
    call, shape = EMPTY[name]
    x = ol.to_tensor(np.zeros(shape, "float32"), requires_grad=True)
    y = call(x)
    assert y.shape == shape
    y.sum().backward()
    assert x.grad.shape == shape


def test_an_empty_batch_leaves_running_statistics_and_gives_weights_no_gradient() -> None:
    layer = nn.BatchNorm1D(2)
    before = {name: t.numpy().copy() for name, t in layer.state_dict().items()}
    layer(ol.ones([0, 2])).sum().backward()
    for name, t in layer.state_dict().items():
        np.testing.assert_array_equal(t.numpy(), before[name])
    assert layer.weight.grad.tolist() == layer.bias.grad.tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    ("shape", "data_format"),
    [((16, 4, 40, 40), "NCHW"), ((8, 40, 40, 4), "NHWC"), ((256, 64), "NC"), ((64, 8, 100), "NCL")],
)
def test_a_batch_far_from_zero_loses_little_to_rounding(shape: Any, data_format: str) -> None:
    x = (np.random.default_rng(0).standard_normal(shape) + 300).astype("float32")
    y = F.batch_norm(ol.to_tensor(x), None, None, training=True, data_format=data_format)
    channel = 1 if data_format.startswith("NC") else x.ndim - 1
    axes = tuple(i for i in range(x.ndim) if i != channel)
    wide = x.astype("float64")
    mean, variance = (f(wide, axis=axes, keepdims=True) for f in (np.mean, np.var))
    np.testing.assert_allclose(y.numpy(), (wide - mean) / np.sqrt(variance + 1e-5), atol=5e-6)


@pytest.mark.parametrize("axes", [(0,), (1,), (3,), (0, 2, 3), (0, 1, 2), (1, 3), (0, 2), (2, 3)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_means_over_any_axes(axes: tuple[int, ...], order: Any) -> None:
    a, b = (np.asarray(numbers(2, 3, 4, 5) + i, order=order) for i in (0, 1))
    mean = np.mean(a, axis=axes, keepdims=True)
    np.testing.assert_allclose(layer_norm._mean(a, axes), mean, rtol=1e-12)
    mean = np.mean(a * b, axis=axes, keepdims=True)
    np.testing.assert_allclose(layer_norm._mean_product(a, b, axes), mean, rtol=1e-12)
