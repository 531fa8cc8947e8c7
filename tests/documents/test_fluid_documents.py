"""The examples of paddle.fluid: where they stop and what that says, and their eager counterparts.

They build static graphs. Each stops at the first line that must change, with what to write; with
these lines changed it runs.
"""

from __future__ import annotations

import numpy as np
import pytest

import optlab as ol
from optlab import fluid
from tests.documents.test_documents import read, run

STOPS = {
    "static_graph_asgd_get_lr": "there are no static graphs",
    "static_graph_recompute_optimizer": r"x = ol\.to_tensor\(array\)",
    "static_graph_recompute_optimizer_set_dict": r"write Embedding\(size=\[10, 10\]\)",
}


@pytest.mark.parametrize("name", list(STOPS))
def test_an_example_of_static_graphs_stops_with_what_to_write(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = "\n".join(read(name)[0]).replace("import paddle.fluid as fluid", "")
    with pytest.raises((AttributeError, TypeError), match=STOPS[name]):
        exec(code, {"paddle": ol, "fluid": fluid, "np": np})


def test_the_example_of_state_dict_runs_as_it_is(tmp_path, monkeypatch):
    space, _ = run("static_graph_recompute_optimizer_state_dict", tmp_path, monkeypatch)
    assert isinstance(space["state_dict"], dict)


#: Lines of the example of set_dict, and what the errors say to write; the last is its misprint.
CHANGED = {
    'fluid.dygraph.Embedding( "emb", [10, 10])': "fluid.dygraph.Embedding(size=[10, 10])",
    "fluid.layers.noam_decay( 100, 10000)": "ol.optimizer.lr.NoamDecay(100, 10000)",
    '"padle_dy"': '"paddle_dy"',
}


def test_the_example_of_set_dict_runs_with_three_changes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = "\n".join(read("static_graph_recompute_optimizer_set_dict")[0])
    for line, ours in CHANGED.items():
        assert code.count(line) == 1
        code = code.replace(line, ours)
    space = {"fluid": fluid, "ol": ol}
    exec(code, space)
    np.testing.assert_array_equal(
        space["para_state_dict"]["weight"].numpy(), space["emb"].weight.numpy()
    )
    assert space["opti_state_dict"] is not None


class Perceptron(fluid.dygraph.Layer):
    """The network of the example of RecomputeOptimizer, by layers in place of fluid.layers.fc."""

    def __init__(self, hid_dim=128, label_dim=2):
        super().__init__()
        self.fc_1 = fluid.dygraph.Linear(32, hid_dim)
        self.prediction = fluid.dygraph.Linear(hid_dim, label_dim, act="softmax")

    def forward(self, input_x, input_y):
        prediction = self.prediction(self.fc_1(input_x))
        return fluid.layers.reduce_mean(fluid.layers.cross_entropy(prediction, input_y))


def costs_of(wrap):
    rng = np.random.default_rng(0)
    ol.seed(0)
    mlp = Perceptron()
    sgd = wrap(fluid.optimizer.Adam(learning_rate=0.01, parameter_list=mlp.parameters()), mlp)
    x = rng.random((32, 32), dtype="float32")
    y = rng.integers(2, size=(32, 1))
    costs = []
    for _ in range(10):
        cost = mlp(fluid.dygraph.to_variable(x), fluid.dygraph.to_variable(y))
        sgd.minimize(cost)
        sgd.clear_gradients()
        costs.append(cost.item())
    return costs


def test_the_example_of_recompute_optimizer():
    def recomputed(sgd, mlp):
        sgd = fluid.optimizer.RecomputeOptimizer(sgd)
        sgd._set_checkpoints([mlp.fc_1, mlp.prediction])
        return sgd

    costs = costs_of(recomputed)
    assert costs[-1] < costs[0]
    assert costs == costs_of(lambda sgd, mlp: sgd)


#: The optimizers as the examples of fluid.optimizer make them, parameter_list beside.
MADE = {
    "Adagrad": lambda **ps: fluid.optimizer.Adagrad(learning_rate=0.2, **ps),
    "Adam": lambda **ps: fluid.optimizer.Adam(learning_rate=0.01, **ps),
    "Adamax": lambda **ps: fluid.optimizer.Adamax(learning_rate=0.2, **ps),
    "DecayedAdagrad": lambda **ps: fluid.optimizer.DecayedAdagrad(learning_rate=0.2, **ps),
    "Ftrl": lambda **ps: fluid.optimizer.Ftrl(learning_rate=0.1, **ps),
    "Lamb": lambda **ps: fluid.optimizer.Lamb(
        learning_rate=0.002,
        exclude_from_weight_decay_fn=lambda param: param.name.endswith(".b_0"),
        **ps,
    ),
    "LarsMomentum": lambda **ps: fluid.optimizer.LarsMomentumOptimizer(
        learning_rate=0.001, momentum=0.9, **ps
    ),
    "Momentum": lambda **ps: fluid.optimizer.MomentumOptimizer(
        learning_rate=0.001, momentum=0.9, **ps
    ),
    "RMSProp": lambda **ps: fluid.optimizer.RMSProp(learning_rate=0.1, **ps),
    "SGD": lambda **ps: fluid.optimizer.SGD(learning_rate=0.001, **ps),
}


@pytest.mark.parametrize("name", list(MADE))
def test_the_regression_of_the_examples(name):
    """Inputs of 13 numbers, one layer, the mean of squared errors, as the examples have it."""
    rng = np.random.default_rng(0)
    xs = rng.standard_normal((20, 13)).astype("float32")
    ys = xs.sum(1, keepdims=True) + 3
    with fluid.dygraph.guard(fluid.CPUPlace()):
        ol.seed(0)
        layer = fluid.dygraph.Linear(13, 1, act=None)
        optimizer = MADE[name](parameter_list=layer.parameters())
        costs = []
        for _ in range(10):
            x, y = fluid.dygraph.to_variable(xs), fluid.dygraph.to_variable(ys)
            cost = fluid.layers.square_error_cost(input=layer(x), label=y)
            avg_cost = fluid.layers.mean(cost)
            ops, pairs = optimizer.minimize(avg_cost)
            optimizer.clear_gradients()
            costs.append(avg_cost.item())
    assert ops == []
    assert [id(p) for p, _ in pairs] == [id(p) for p in layer.parameters()]
    assert costs[-1] < costs[0]


def test_the_usages_of_the_averages():
    """Usages 1 and 2 of ExponentialMovingAverage and ModelAverage: restored, and by hand."""
    layer = fluid.dygraph.Linear(5, 10)
    sgd = fluid.optimizer.Momentum(
        learning_rate=0.2, momentum=0.1, parameter_list=layer.parameters()
    )
    ema = fluid.optimizer.ExponentialMovingAverage(0.999, parameter_list=layer.parameters())
    mean = fluid.optimizer.ModelAverage(
        0.15, min_average_window=10000, max_average_window=12500, parameter_list=layer.parameters()
    )
    seen = []
    for _ in range(6):
        sgd.minimize(fluid.layers.mean(layer(ol.rand([10, 5]))))
        sgd.clear_gradients()
        ema.update()
        mean.step()
        seen.append(layer.weight.numpy().astype(float))
    decays = 0.999 ** np.arange(5, -1, -1)
    averages = {
        ema: np.tensordot(decays, seen, 1) / decays.sum(),
        mean: np.mean(seen, 0),
    }
    for average, expected in averages.items():
        with average.apply():
            np.testing.assert_allclose(layer.weight.numpy(), expected, rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(layer.weight.numpy(), seen[-1])
        with average.apply(need_restore=False):
            pass
        np.testing.assert_allclose(layer.weight.numpy(), expected, rtol=1e-4, atol=1e-5)
        average.restore()
        np.testing.assert_array_equal(layer.weight.numpy(), seen[-1])
