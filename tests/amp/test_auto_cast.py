"""auto_cast: the effect of its lists on single operations and in a network."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import optlab as ol
from optlab.amp.lists import ALIASES, ALWAYS_BLACK, BLACK, WHITE, operations_named
from optlab.autograd.operation import TABLE
from optlab.autograd.reference.entries import is_ours
from optlab.autograd.tape.slow_path import slow_path

F = ol.nn.functional
auto_cast = ol.amp.auto_cast


def numbers(*shape: int, dtype: str = "float32") -> ol.Tensor:
    values = np.random.default_rng(shape).uniform(0.1, 0.9, shape)
    return ol.to_tensor(values, dtype=dtype, requires_grad=True)


SQUARE = np.eye(3, dtype="float32") * 2

WHITE_CALLS = {
    "matmul": lambda x: x @ x.T,
    "dot": lambda x: np.dot(x, x.T),
    "einsum": lambda x: np.einsum("ij,kj->ik", x, x),
    "tensordot": lambda x: np.tensordot(x, x, 2),
    "vecdot": lambda x: np.vecdot(x, x),
    "linear": lambda x: F.linear(x, ol.ones([3, 2]), ol.ones([2])),
    "conv1d": lambda x: F.conv1d(x[None], ol.ones([2, 4, 1])),
    "conv2d": lambda x: F.conv2d(x[None, None], ol.ones([2, 1, 2, 2]), ol.ones([2])),
    "conv2d_transpose": lambda x: F.conv2d_transpose(x[None, None], ol.ones([1, 2, 2, 2])),
    "attention": lambda x: F.scaled_dot_product_attention(*[x[None, :, None]] * 3),
}

BLACK_CALLS = {
    "exp": np.exp, "log": np.log, "log1p": np.log1p, "power": lambda x: x**2.5,
    "square": np.square, "cube": lambda x: x**3, "reciprocal": np.reciprocal, "sum": np.sum,
    "mean": np.mean, "cumsum": np.cumsum, "prod": np.prod, "var": np.var, "std": np.std,
    "norm": np.linalg.norm, "softmax": F.softmax, "log_softmax": F.log_softmax,
    "softplus": F.softplus, "layer_norm": lambda x: F.layer_norm(x, 3),
    "rms_norm": lambda x: F.rms_norm(x, 3), "group_norm": lambda x: F.group_norm(x, 3),
    "cross_entropy": lambda x: F.cross_entropy(x, [0, 1, 2, 0]),
    "nll_loss": lambda x: F.nll_loss(x, [0, 1, 2, 0]),
    "mse_loss": lambda x: F.mse_loss(x, ol.zeros([4, 3])),
    "bce": lambda x: F.binary_cross_entropy_with_logits(x, ol.ones([4, 3])),
    "inverse": lambda x: np.linalg.inv(x[:3]),
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("name", WHITE_CALLS)
def test_the_white_list_computes_with_16_bits(name: str, dtype: str) -> None:
    x = numbers(4, 3, dtype=dtype)
    with auto_cast():
        y = WHITE_CALLS[name](x)
    assert y.dtype == "float16"
    wanted = WHITE_CALLS[name](x.detach().astype("float32"))
    np.testing.assert_allclose(y.detach().numpy(), wanted.numpy(), rtol=5e-3)
    y.sum().backward()
    assert x.grad is not None
    assert x.grad.dtype == dtype


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("name", BLACK_CALLS)
def test_the_black_list_computes_with_32_bits(name: str, dtype: str) -> None:
    x = numbers(4, 3, dtype=dtype)
    with auto_cast():
        y = BLACK_CALLS[name](x)
    assert y.dtype == "float32"
    wanted = BLACK_CALLS[name](x.detach().astype("float32"))
    np.testing.assert_allclose(y.detach().numpy(), wanted.numpy(), rtol=2e-5, atol=1e-6)
    y.sum().backward()
    assert x.grad is not None
    assert x.grad.dtype == dtype


GREY = {"add": lambda a, b: a + b, "relu": lambda a, b: F.relu(a), "where": lambda a, b: (
    np.where([True, False, True], a, b))}  # fmt: skip


@pytest.mark.parametrize("name", GREY)
@pytest.mark.parametrize(
    ("level", "options", "wanted"),
    [
        ("O1", {}, ["float16", "float32"]),
        ("O2", {}, ["float16", "float32"]),
        ("O2", {"use_promote": False}, ["float16", "float16"]),
        ("OD", {}, ["float32", "float32"]),
        ("O0", {}, ["float16", "float32"]),
    ],
)
def test_what_is_on_neither_list(
    name: str, level: str, options: dict[str, Any], wanted: list[str]
) -> None:
    low, high = numbers(3, dtype="float16"), numbers(3)
    with auto_cast(level=level, **options):
        found = [GREY[name](low, low).dtype, GREY[name](high, low).dtype]
    assert found == wanted


def test_o2_leaves_only_lookups_in_float32() -> None:
    x = numbers(4, 3, dtype="float16")
    with auto_cast(level="O2"):
        assert np.exp(x).dtype == "float16"
        assert F.softmax(x).dtype == "float16"
        assert F.embedding([0, 1], x).dtype == "float32"


def test_od_puts_all_but_products_in_float32() -> None:
    x = numbers(4, 3, dtype="float16")
    with auto_cast(level="OD"):
        assert (x @ x.T).dtype == "float16"
        assert F.relu(x).dtype == "float32"


def test_lists_of_one_s_own() -> None:
    a = numbers(3)
    with auto_cast(custom_white_list={"elementwise_add", "softmax"}):
        assert (a + a).dtype == "float16"
        assert F.softmax(a).dtype == "float16"
    with auto_cast(custom_black_list=["linear", "conv2d"]):
        assert (a[None] @ a[:, None]).dtype == "float32"
        assert F.linear(a[None], ol.ones([3, 2])).dtype == "float32"
        assert WHITE_CALLS["conv2d"](numbers(4, 3)).dtype == "float32"


def test_every_name_stands_for_operations_that_are_there() -> None:
    known = {operation.name for operation in TABLE.values()}
    for names in (ALIASES, WHITE, BLACK, ALWAYS_BLACK):
        for name in names:
            assert operations_named([name], "list") <= known, name


def test_float64_and_whole_numbers_are_left_alone() -> None:
    wide, whole = numbers(3, 3, dtype="float64"), ol.to_tensor([[1, 2], [3, 4]])
    with auto_cast():
        assert (wide @ wide).dtype == "float64"
        assert (whole @ whole).dtype == "int64"
        assert whole.sum().dtype == "int64"


def test_it_ends_where_it_ends_also_by_an_error() -> None:
    a = numbers(2, 2)
    before = slow_path.any
    with pytest.raises(ZeroDivisionError), auto_cast():
        raise ZeroDivisionError
    assert slow_path.any == before
    assert not ol.amp.is_autocast_enabled()
    assert (a @ a).dtype == "float32"


def test_inside_another_one() -> None:
    a, outer = numbers(2, 2), auto_cast()
    with outer:
        with auto_cast(enable=False):
            assert not ol.amp.is_autocast_enabled()
            assert (a @ a).dtype == "float32"
        with outer:
            assert (a @ a).dtype == "float16"
        assert (a @ a).dtype == "float16"
    assert (a @ a).dtype == "float32"


def test_a_derivative_of_a_derivative_inside() -> None:
    x = numbers(3, 3)

    def f(x: Any) -> Any:
        return np.sum((x @ x) ** 2)

    wanted = ol.hvp(f, x.detach(), ol.ones([3, 3])).numpy()
    with auto_cast():
        found = ol.hvp(f, x.detach(), ol.ones([3, 3])).numpy()
    assert found.dtype == "float32"
    np.testing.assert_allclose(found, wanted, rtol=1e-2)


def test_a_network_is_near_float32() -> None:
    with ol.random_scope("network", seed=0):  # whatever other tests have drawn
        model = ol.nn.Sequential(
            ol.nn.Conv2D(1, 4, 3), ol.nn.BatchNorm2D(4), ol.nn.ReLU(), ol.nn.MaxPool2D(2),
            ol.nn.Flatten(), ol.nn.Linear(36, 8), ol.nn.LayerNorm(8), ol.nn.GELU(),
            ol.nn.Linear(8, 3),
        )  # fmt: skip
    x, labels = numbers(5, 1, 8, 8).detach(), [0, 1, 2, 0, 1]
    found = {}
    for enable in (True, False):
        with auto_cast(enable):
            loss = F.cross_entropy(model(x), labels)
        loss.backward()
        assert loss.dtype == "float32"
        found[enable] = [loss.numpy(), *[p.grad.numpy() for p in model.parameters()]]
        model.clear_gradients(set_to_zero=False)
    for low, high in zip(found[True], found[False], strict=True):
        assert low.dtype == "float32"
        np.testing.assert_allclose(low, high, atol=0.02 * max(1.0, float(np.abs(high).max())))


class TestErrors:
    def test_an_operation_that_is_not_there(self) -> None:
        with pytest.raises(ValueError, match=r"custom_white_list names 'softmaxx'.*'softmax'"):
            auto_cast(custom_white_list=["softmaxx"])

    def test_a_text_in_place_of_a_list(self) -> None:
        with pytest.raises(TypeError, match=r"write \['softmax'\]"):
            auto_cast(custom_black_list="softmax")

    def test_on_both_lists(self) -> None:
        with pytest.raises(ValueError, match="exp: on custom_white_list and on"):
            auto_cast(custom_white_list=["exp"], custom_black_list=["exp", "log"])

    def test_a_level_that_is_none(self) -> None:
        with pytest.raises(ValueError, match="'O3'"):
            auto_cast(level="O3")

    def test_a_dtype_of_32_bits(self) -> None:
        with pytest.raises(ValueError, match="'float16' or 'bfloat16'; got dtype='float32'"):
            auto_cast(dtype="float32")


def test_it_may_be_the_first_thing_that_a_program_does() -> None:
    code = (
        "import optlab as ol\n"
        "with ol.amp.auto_cast(custom_black_list=['softmax']):\n"
        "    print((ol.ones([2, 2]) @ ol.ones([2, 2])).dtype)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == ("float16", "")


class TestThreads:
    def test_another_thread_is_not_cast(self) -> None:
        found = []
        thread = threading.Thread(target=lambda: found.append((numbers(4, 3) @ SQUARE).dtype))
        with auto_cast():
            thread.start()
            thread.join()
            assert ol.amp.is_autocast_enabled()
        assert found == ["float32"]

    @pytest.mark.parametrize("shared", [False, True])
    def test_two_threads_that_enter_and_leave_in_turns(self, shared: bool) -> None:
        turn = threading.Barrier(2, timeout=60)
        one = auto_cast()
        modes = [one, one if shared else auto_cast(dtype="float16", level="O2")]
        seen: dict[int, list[bool]] = {0: [], 1: []}

        def work(which: int) -> None:
            for _ in range(2):  # enter 0, enter 1, leave 0, leave 1
                for step, action in enumerate(("enter", "enter", "leave", "leave")):
                    if step % 2 == which:
                        if action == "enter":
                            modes[which].__enter__()
                        else:
                            modes[which].__exit__(None, None, None)
                    turn.wait()
                    seen[which].append(ol.amp.is_autocast_enabled())
                    turn.wait()

        before = slow_path.any
        threads = [threading.Thread(target=work, args=(i,)) for i in (0, 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert seen[0] == [True, True, False, False] * 2
        assert seen[1] == [False, True, True, False] * 2
        assert slow_path.any == before
        assert not ol.amp.is_autocast_enabled()

    def test_a_generator_that_another_thread_ends(self) -> None:
        def inside() -> Any:
            with auto_cast():
                yield

        before = slow_path.any
        running = inside()
        thread = threading.Thread(target=next, args=(running,))
        thread.start()
        thread.join()
        running.close()
        assert slow_path.any == before
        assert not ol.amp.is_autocast_enabled()


@pytest.mark.peers
@pytest.mark.parametrize("name", ["linear", "softmax", "log_softmax", "layer_norm", "mse_loss",
                                  "cross_entropy", "matmul", "exp"])  # fmt: skip
def test_pytorch_chooses_the_same_types(name: str) -> None:
    """The dtypes are those of PyTorch's lists for the GPU; its CPU lists leave more in 16 bits."""
    torch = pytest.importorskip("torch")
    x = torch.tensor(numbers(4, 3).detach().numpy())
    theirs = {
        "linear": lambda: torch.nn.functional.linear(x, torch.ones(2, 3)),
        "matmul": lambda: x @ x.T,
        "softmax": lambda: torch.softmax(x.half(), 1).float(),
        "log_softmax": lambda: torch.log_softmax(x.half(), 1).float(),
        "layer_norm": lambda: torch.nn.functional.layer_norm(x.half(), (3,)).float(),
        "mse_loss": lambda: torch.nn.functional.mse_loss(x, torch.zeros(4, 3)),
        "cross_entropy": lambda: torch.nn.functional.cross_entropy(x, torch.tensor([0, 1, 2, 0])),
        "exp": lambda: torch.exp(x),
    }[name]
    with torch.autocast("cpu", torch.float16):
        wanted = theirs()
    with auto_cast():
        found = {**WHITE_CALLS, **BLACK_CALLS}[name](numbers(4, 3))
    assert str(found.dtype) == str(wanted.dtype).removeprefix("torch.")
    if name != "linear":
        np.testing.assert_allclose(found.detach().numpy(), wanted.numpy(), rtol=5e-3, atol=2e-3)


LOSSES_OF_CLASSES: dict[str, Callable[..., Any]] = {
    "cross_entropy": F.cross_entropy,
    "sum": partial(F.cross_entropy, reduction="sum"),
    "none": partial(F.cross_entropy, reduction="none"),
    "smoothed": partial(F.cross_entropy, label_smoothing=0.1),
    "ignored": partial(F.cross_entropy, ignore_index=1),
    "of probabilities": partial(F.cross_entropy, use_softmax=False),
    "of probabilities, none": partial(F.cross_entropy, use_softmax=False, reduction="none"),
    "nll_loss": F.nll_loss,
    "nll_loss, none": partial(F.nll_loss, reduction="none"),
}


@pytest.mark.parametrize("rows", [4, 257])  # from 65,536 scores on, cross entropy is fused
@pytest.mark.parametrize("name", LOSSES_OF_CLASSES)
def test_losses_of_few_and_of_many_classes_compute_with_32_bits(name: str, rows: int) -> None:
    x = numbers(rows, rows, dtype="float16")
    loss, labels = LOSSES_OF_CLASSES[name], np.arange(rows)
    with auto_cast():
        y = loss(x, labels)
    assert y.dtype == "float32"
    np.testing.assert_allclose(y.numpy(), loss(x.detach().astype("float32"), labels), rtol=2e-5)
    with auto_cast(level="O2"):
        assert loss(x, labels).dtype == "float16"
    y.sum().backward()
    assert x.grad is not None
    assert x.grad.dtype == "float16"


@pytest.mark.parametrize("with_indices", [False, True])
def test_max_pooling_is_named_with_and_without_its_indices(with_indices: bool) -> None:
    x = numbers(1, 1, 4, 4, dtype="float16")
    with auto_cast(custom_black_list=["max_pool2d"]):
        pooled = F.max_pool2d(x, 2, return_mask=with_indices)
    assert (pooled[0] if with_indices else pooled).dtype == "float32"


def test_a_list_s_name_stands_for_the_operation_of_that_name_too() -> None:
    operations_named([], "custom_white_list")  # registers the operations
    for name in {operation.name for function, operation in TABLE.items() if is_ours(function)}:
        assert name in operations_named([name], "custom_white_list")


def test_two_operations_have_one_name_only_if_they_are_one_function() -> None:
    operations_named([], "custom_white_list")
    by_name = Counter(one.name for function, one in TABLE.items() if is_ours(function))
    assert [name for name, count in by_name.items() if count > 1] == [
        "linear"
    ]  # with and without bias
