"""Clipping in place, vectors of parameters, and reparameterized weights."""

from __future__ import annotations

import copy
import math
import pickle
from typing import Any

import numpy as np
import pytest

import optlab as ol
from tests.guarded import GuardedArray

nn, utils = ol.nn, ol.nn.utils


def with_gradients(*arrays: Any, device: str = "cpu") -> list[ol.Parameter]:
    found = []
    for array in arrays:
        g = ol.to_tensor(np.asarray(array, "float32")).to(device)
        p = ol.Parameter(np.zeros_like(g))
        p.grad = g
        found.append(p)
    return found


GRADIENTS = (np.array([[3.0, -4.0], [1.0, 0.0]]), np.array(2.0), np.arange(3.0))


class TestClipGradNorm:
    @pytest.mark.parametrize("p", [0, 0.5, 1, 2, 3.5, math.inf])
    @pytest.mark.parametrize("limit", [0.0, 1.0, 1e3])
    def test_the_formula(self, p: float, limit: float) -> None:
        flat = np.concatenate([np.ravel(g) for g in GRADIENTS])
        norm = np.linalg.norm(flat, p) if p != 0.5 else np.sum(np.abs(flat) ** 0.5) ** 2
        parameters = with_gradients(*GRADIENTS)
        assert utils.clip_grad_norm_(parameters, limit, p).item() == pytest.approx(norm, rel=1e-6)
        factor = min(1.0, limit / (norm + 1e-6))
        for parameter, g in zip(parameters, GRADIENTS, strict=True):
            assert parameter.grad.dtype == np.float32
            np.testing.assert_allclose(parameter.grad.numpy(), g * factor, rtol=1e-6)

    def test_gradients_below_the_limit_stay_to_the_bit(self) -> None:
        parameters = with_gradients(*GRADIENTS)
        utils.clip_grad_norm_(parameters, 100.0)
        for parameter, g in zip(parameters, GRADIENTS, strict=True):
            assert parameter.grad.tolist() == g.tolist()

    def test_what_has_no_gradient_is_left_alone(self) -> None:
        bare = ol.Parameter([1.0])
        (one,) = with_gradients([2.0])
        assert utils.clip_grad_norm_([bare, one], 1.0).item() == 2.0
        assert bare.grad is None
        assert utils.clip_grad_norm_(bare, 1.0).item() == 0.0
        assert utils.clip_grad_norm_(one, 1.0).item() == pytest.approx(1.0)

    def test_a_parameter_given_twice_counts_once(self) -> None:
        (one,) = with_gradients([3.0, 4.0])
        assert utils.clip_grad_norm_([one, one], 1.0).item() == 5.0
        np.testing.assert_allclose(one.grad.numpy(), [0.6, 0.8], rtol=1e-6)

    def test_squares_do_not_overflow(self) -> None:
        (one,) = with_gradients([3e30, 4e30])
        assert utils.clip_grad_norm_([one], 1.0).item() == pytest.approx(5e30)
        np.testing.assert_allclose(one.grad.numpy(), [0.6, 0.8], rtol=1e-6)

    def test_a_norm_that_is_not_finite(self) -> None:
        for bad in (np.nan, np.inf):
            parameters = with_gradients([1.0, 2.0], [bad])
            with pytest.raises(RuntimeError, match="nothing was changed"):
                utils.clip_grad_norm_(parameters, 1.0, error_if_nonfinite=True)
            assert parameters[0].grad.tolist() == [1.0, 2.0]
            assert not math.isfinite(utils.clip_grad_norm_(parameters, 1.0).item())

    def test_rows_stay_rows(self) -> None:
        table = nn.Embedding(9, 2, sparse=True)
        table([1, 1, 4]).sum().backward()
        norm = utils.clip_grad_norm_(table.parameters(), 1.0)
        assert norm.item() == pytest.approx(math.sqrt(10))
        assert isinstance(table.weight.grad, ol.autograd.RowSparse)
        assert np.linalg.norm(table.weight.grad.numpy()) == pytest.approx(1.0, rel=1e-5)

    def test_on_a_device_and_on_two(self) -> None:
        there = with_gradients([3.0], device="guarded")
        norm = utils.clip_grad_norm_(there, 1.0)
        assert isinstance(norm.data, GuardedArray)
        assert isinstance(there[0].grad.data, GuardedArray)
        both = [*with_gradients([3.0], device="guarded"), *with_gradients([4.0])]
        assert utils.clip_grad_norm_(both, 1.0).item() == 5.0
        assert [float(p.grad.numpy()[0]) for p in both] == pytest.approx([0.6, 0.8])
        assert [p.grad.device for p in both] == ["guarded", "cpu"]

    @pytest.mark.parametrize(
        ("call", "said"),
        [
            (lambda p: utils.clip_grad_norm_(p, -1.0), "max_norm must be finite"),
            (lambda p: utils.clip_grad_norm_(p, math.inf), "max_norm must be finite"),
            (lambda p: utils.clip_grad_norm_(p, 1.0, -1), "norm_type must be at least 0"),
            (lambda p: utils.clip_grad_norm_(nn.Linear(1, 1), 1.0), r"give layer\.parameters\(\)"),
            (lambda p: utils.clip_grad_norm_([1.0], 1.0), "got a float among them"),
            (lambda p: utils.clip_grad_norm_("w", 1.0), "takes parameters"),
            (lambda p: utils.clip_grad_value_(p, -1.0), "clip_value must be finite"),
        ],
    )
    def test_bad_arguments(self, call: Any, said: str) -> None:
        with pytest.raises((TypeError, ValueError), match=said):
            call(with_gradients([1.0]))

    @pytest.mark.peers
    @pytest.mark.parametrize("p", [0.5, 1.0, 2.0, 3.0, math.inf])
    def test_pytorch_says_the_same(self, p: float) -> None:
        torch = pytest.importorskip("torch")
        ours = with_gradients(*GRADIENTS)
        theirs = [torch.zeros(np.shape(g), requires_grad=True) for g in GRADIENTS]
        for t, g in zip(theirs, GRADIENTS, strict=True):
            t.grad = torch.tensor(g, dtype=torch.float32)
        a = utils.clip_grad_norm_(ours, 0.7, p)
        b = torch.nn.utils.clip_grad_norm_(theirs, 0.7, p)
        assert a.item() == pytest.approx(b.item(), rel=1e-5)
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(one.grad.numpy(), other.grad.numpy(), rtol=1e-5)


def test_clip_grad_value() -> None:
    parameters = with_gradients(*GRADIENTS)
    utils.clip_grad_value_(parameters, 1.5)
    for parameter, g in zip(parameters, GRADIENTS, strict=True):
        assert parameter.grad.tolist() == np.clip(g, -1.5, 1.5).tolist()


class TestVectors:
    def test_there_and_back(self) -> None:
        ol.seed(0)
        layer, other = nn.Linear(2, 3), nn.Linear(2, 3)
        vector = utils.parameters_to_vector(layer.parameters())
        utils.vector_to_parameters(vector, other.parameters())
        for a, b in zip(layer.parameters(), other.parameters(), strict=True):
            assert a.tolist() == b.tolist()
            assert not np.shares_memory(a.data, b.data)

    def test_gradients_flow_to_the_parameters(self) -> None:
        layer = nn.Linear(2, 1)
        vector = utils.parameters_to_vector(layer.parameters())
        (vector * [1.0, 2.0, 3.0]).sum().backward()
        assert layer.weight.grad.tolist() == [[1.0], [2.0]]
        assert layer.bias.grad.tolist() == [3.0]

    def test_what_does_not_fit_changes_nothing(self) -> None:
        layer = nn.Linear(2, 1)
        before = layer.weight.tolist()
        with pytest.raises(ValueError, match=r"hold 3 numbers; got a vector of shape \(4,\)"):
            utils.vector_to_parameters(np.zeros(4), layer.parameters())
        two = [*layer.parameters(), ol.Parameter(ol.ones([1]).to("guarded"))]
        with pytest.raises(TypeError, match=r"on cpu.*on guarded|on guarded.*on cpu"):
            utils.vector_to_parameters(np.zeros(4), two)
        assert layer.weight.tolist() == before
        with pytest.raises(TypeError, match="one device; got cpu and guarded"):
            utils.parameters_to_vector(two)
        with pytest.raises(ValueError, match="no parameters"):
            utils.parameters_to_vector([])


class TestWeightNorm:
    @pytest.mark.parametrize("dim", [0, 1, None, -1])
    def test_nothing_changes_at_first(self, dim: Any) -> None:
        ol.seed(0)
        layer = nn.Conv2D(2, 3, 2)
        x = ol.randn([1, 2, 4, 4])
        before, weight = layer(x).numpy(), layer.weight.numpy()
        utils.weight_norm(layer, dim=dim)
        np.testing.assert_allclose(layer(x).numpy(), before, rtol=1e-5, atol=1e-6)
        shape = () if dim in (None, -1) else (weight.shape[dim],)
        assert layer.weight_g.shape == shape
        assert sorted(layer.state_dict()) == ["bias", "weight_g", "weight_v"]
        assert utils.remove_weight_norm(layer) is layer
        assert isinstance(layer.weight, ol.Parameter)
        np.testing.assert_allclose(layer(x).numpy(), before, rtol=1e-5, atol=1e-6)
        assert sorted(layer.state_dict()) == ["bias", "weight"]

    def test_gradients_reach_lengths_and_directions(self) -> None:
        layer = utils.weight_norm(nn.Linear(3, 2), dim=1)
        layer(ol.ones([4, 3])).sum().backward()
        v, g = layer.weight_v, layer.weight_g
        assert g.grad.shape == (2,)
        np.testing.assert_allclose((v.grad * v).sum(0).numpy(), [0, 0], atol=1e-5)

        def loss(v: Any, g: Any) -> Any:
            return ol.numpy.tanh(v * (g / np.sqrt(np.sum(v * v, axis=0, keepdims=True)))).sum()

        ol.check_grad(loss, v.numpy().astype(float), g.numpy().astype(float), order=2)

    def test_training_goes_on_and_copies_stand_alone(self) -> None:
        ol.seed(0)
        layer = utils.weight_norm(nn.Linear(3, 1), dim=1)
        optimizer = ol.optimizer.SGD(0.1, parameters=layer.parameters())
        x = ol.randn([8, 3])
        losses = []
        for _ in range(5):
            loss = ((layer(x) - 1) ** 2).mean()
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            losses.append(loss.item())
        assert losses[-1] < losses[0]
        assert layer.weight.node is None  # it does not keep the tape alive
        for again in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
            np.testing.assert_array_equal(again(x).numpy(), layer(x).numpy())
            again.weight_g.set_value(again.weight_g * 2)
            assert np.abs(again(x).numpy() - layer(x).numpy()).max() > 0
            assert "weight" in utils.remove_weight_norm(again).state_dict()
            assert "weight_g" in layer.state_dict()

    def test_settings_go_along(self) -> None:
        attr = ol.ParamAttr(name="w", learning_rate=0.5, need_clip=False)
        layer = utils.weight_norm(nn.Linear(3, 2, weight_attr=attr))
        assert (layer.weight_v.name, layer.weight_g.name) == ("w_v", "w_g")
        assert layer.weight_v.learning_rate == 0.5
        assert not layer.weight_g.need_clip
        assert utils.remove_weight_norm(layer).weight.name == "w"

    def test_what_cannot_be_is_refused(self) -> None:
        layer = nn.Linear(3, 2)
        with pytest.raises(ValueError, match="no parameter 'kernel'; it has weight, bias"):
            utils.weight_norm(layer, "kernel")
        with pytest.raises(ValueError, match="dim is an axis"):
            utils.weight_norm(layer, dim=2)
        with pytest.raises(ValueError, match="has none"):
            utils.remove_weight_norm(layer)
        with pytest.raises(TypeError, match="takes a layer"):
            utils.weight_norm(layer.weight)
        utils.weight_norm(layer)
        with pytest.raises(ValueError, match="has weight normalisation already"):
            utils.weight_norm(layer)

    def test_on_a_device(self) -> None:
        layer = utils.weight_norm(nn.Linear(3, 2).to("guarded"))
        y = layer(ol.ones([1, 3]).to("guarded"))
        y.sum().backward()
        assert layer.weight_g.grad.device == "guarded"

    @pytest.mark.peers
    def test_pytorch_says_the_same(self) -> None:
        torch = pytest.importorskip("torch")
        ours = nn.Conv2D(2, 3, 2, dtype="float64")
        theirs = torch.nn.Conv2d(2, 3, 2, dtype=torch.float64)
        with torch.no_grad():
            theirs.weight[...] = torch.tensor(ours.weight.numpy())
            theirs.bias[...] = torch.tensor(ours.bias.numpy())
        utils.weight_norm(ours, dim=0)
        theirs = torch.nn.utils.parametrizations.weight_norm(theirs)
        x = np.random.default_rng(0).normal(size=(2, 2, 4, 4))
        a, b = ours(ol.to_tensor(x)), theirs(torch.tensor(x))
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-10)
        (a**2).sum().backward()
        (b**2).sum().backward()
        g, v = theirs.parametrizations.weight.original0, theirs.parametrizations.weight.original1
        np.testing.assert_allclose(ours.weight_g.grad.numpy(), g.grad.numpy().ravel(), rtol=1e-8)
        np.testing.assert_allclose(
            ours.weight_v.grad.numpy(), v.grad.numpy(), rtol=1e-8, atol=1e-10
        )


class TestSpectralNorm:
    @pytest.mark.parametrize(
        ("make", "axis"),
        [
            (lambda: nn.Linear(4, 3), 1),
            (lambda: nn.Conv2D(2, 3, 2), 0),
            (lambda: nn.Conv2DTranspose(2, 3, 2), 1),
        ],
    )
    def test_the_largest_singular_value_is_one(self, make: Any, axis: int) -> None:
        ol.seed(0)
        layer = utils.spectral_norm(make(), n_power_iterations=100)
        x = ol.ones([2, 4]) if hasattr(layer, "in_features") else ol.ones([1, 2, 4, 4])
        layer(x)
        matrix = np.moveaxis(layer.weight.numpy(), axis, 0).reshape(3, -1)
        assert np.linalg.norm(matrix, 2) == pytest.approx(1.0, abs=1e-3)
        assert sorted(layer.state_dict()) == ["bias", "weight_orig", "weight_u", "weight_v"]

    def test_vectors_move_in_training_only(self) -> None:
        ol.seed(0)
        layer = utils.spectral_norm(nn.Linear(4, 3))
        x = ol.ones([2, 4])
        before = layer.weight_u.tolist()
        layer.eval()
        layer(x)
        assert layer.weight_u.tolist() == before
        layer.train()
        y = layer(x)
        assert layer.weight_u.tolist() != before
        layer(x)  # overwrites the vectors; the gradient of y does not change
        (y**2).sum().backward()
        assert np.isfinite(layer.weight_orig.grad.numpy()).all()

    def test_inside_vmap(self) -> None:
        layer = utils.spectral_norm(nn.Linear(4, 3)).eval()
        x = np.random.default_rng(0).normal(size=(5, 2, 4)).astype("float32")
        together = ol.vmap(layer)(x)
        for k in range(5):
            np.testing.assert_allclose(together[k].numpy(), layer(x[k]).numpy(), rtol=1e-5)

    def test_what_cannot_be_is_refused(self) -> None:
        with pytest.raises(ValueError, match="takes a matrix"):
            utils.spectral_norm(nn.Linear(4, 3), "bias")
        with pytest.raises(ValueError, match="n_power_iterations is at least 1"):
            utils.spectral_norm(nn.Linear(4, 3), n_power_iterations=0)
        with pytest.raises(ValueError, match="has spectral normalisation already"):
            utils.weight_norm(utils.spectral_norm(nn.Linear(4, 3)))

    @pytest.mark.peers
    def test_pytorch_says_the_same(self) -> None:
        torch = pytest.importorskip("torch")
        ours = nn.Linear(4, 3, dtype="float64")
        theirs = torch.nn.Linear(4, 3, dtype=torch.float64)
        with torch.no_grad():
            theirs.weight[...] = torch.tensor(ours.weight.numpy().T)
            theirs.bias[...] = torch.tensor(ours.bias.numpy())
        utils.spectral_norm(ours)
        torch.nn.utils.spectral_norm(theirs)
        theirs.weight_u[...] = torch.tensor(ours.weight_u.numpy())
        theirs.weight_v[...] = torch.tensor(ours.weight_v.numpy())
        x = np.random.default_rng(0).normal(size=(5, 4))
        for _ in range(3):
            a, b = ours(ol.to_tensor(x)), theirs(torch.tensor(x))
            np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-9)
        (a**2).sum().backward()
        (b**2).sum().backward()
        np.testing.assert_allclose(
            ours.weight_orig.grad.numpy(), theirs.weight_orig.grad.numpy().T, rtol=1e-7, atol=1e-10
        )
