"""Weights of PyTorch models give the same outputs as in PyTorch."""

from __future__ import annotations

import numpy as np
import pytest

import optlab as ol
from optlab import nn
from optlab.nn.utils import from_torch


def test_a_square_weight_is_turned():
    network = nn.Sequential(nn.Linear(2, 2))
    weight = np.array([[1.0, 2.0], [3.0, 4.0]], "float32")
    given = {"0.weight": weight, "0.bias": np.zeros(2, "float32")}
    network.set_state_dict(from_torch(network, given))
    np.testing.assert_array_equal(network(np.eye(2, dtype="float32")).numpy(), weight.T)
    np.testing.assert_array_equal(given["0.weight"], [[1.0, 2.0], [3.0, 4.0]])


def test_a_linear_map_by_itself():
    layer = nn.Linear(2, 3)
    layer.set_state_dict(
        from_torch(layer, {"weight": np.ones((3, 2), "float32"), "bias": np.ones(3, "float32")})
    )


def test_other_matrices_stay_as_they_are():
    table = np.arange(6, dtype="float32").reshape(3, 2)
    assert from_torch(nn.Embedding(3, 2), {"weight": table})["weight"] is table


def test_what_does_not_fit_is_said_by_the_layer():
    network = nn.Sequential(nn.Linear(2, 3))
    given = {"0.weight": np.zeros((2, 3), "float32"), "0.bias": np.zeros(3, "float32")}
    with pytest.raises(ValueError, match=r"0\.weight"):
        network.set_state_dict(from_torch(network, given))


@pytest.mark.peers
class TestPeers:
    def same(self, ours, theirs, *shapes):
        torch = pytest.importorskip("torch")
        inputs = [np.random.default_rng(i).standard_normal(s).astype("float32")
                  for i, s in enumerate(shapes)]  # fmt: skip
        assert ours.set_state_dict(from_torch(ours, theirs.state_dict())) == ([], [])
        ours.eval()
        theirs.eval()
        result = ours(*[ol.to_tensor(x) for x in inputs])
        expected = theirs(*[torch.from_numpy(x) for x in inputs])
        expected = expected[0] if isinstance(expected, tuple) else expected
        result = result[0] if isinstance(result, tuple) else result
        np.testing.assert_allclose(result.numpy(), expected.detach().numpy(), atol=1e-5)

    def test_layers(self):
        torch = pytest.importorskip("torch")
        torch.manual_seed(0)
        of = torch.nn
        self.same(
            nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 3)),
            of.Sequential(of.Linear(4, 4), of.ReLU(), of.Linear(4, 3)),
            (5, 4),
        )
        self.same(
            nn.Sequential(nn.Conv2D(2, 3, 3), nn.BatchNorm2D(3), nn.Flatten(), nn.Linear(48, 4)),
            of.Sequential(of.Conv2d(2, 3, 3), of.BatchNorm2d(3), of.Flatten(), of.Linear(48, 4)),
            (2, 2, 6, 6),
        )
        self.same(nn.LSTM(3, 4), of.LSTM(3, 4, batch_first=True), (2, 5, 3))

    def test_attention_and_transformers(self):
        torch = pytest.importorskip("torch")
        torch.manual_seed(0)
        of = torch.nn
        self.same(
            nn.MultiHeadAttention(8, 2),
            of.MultiheadAttention(8, 2, batch_first=True),
            *[(2, 5, 8)] * 3,
        )
        self.same(
            nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0),
            of.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True),
            (2, 5, 8),
        )
        self.same(
            nn.TransformerDecoderLayer(8, 2, 16, dropout=0.0),
            of.TransformerDecoderLayer(8, 2, 16, 0.0, batch_first=True),
            (2, 5, 8),
            (2, 6, 8),
        )
