"""The names of parameters: as Paddle gives them, unique, and without influence on any number.

Expected names: PaddlePaddle 3.3.1, ``[p.name for p in layer.parameters()]`` in a fresh process.
"""

from __future__ import annotations

import copy
import pickle
import re
import subprocess
import sys

import numpy as np
import pytest

import optlab as ol
from optlab import nn

ONE = ["w_0", "b_0"]
CELL = ["w_0", "w_1", "b_0", "b_1"]

NAMES = [
    (lambda: nn.Linear(2, 3), "linear", ONE),
    (lambda: nn.Linear(2, 3, bias_attr=False), "linear", ["w_0"]),
    (lambda: nn.Bilinear(2, 3, 4), "bilinear", ONE),
    (lambda: nn.Embedding(4, 3), "embedding", ["w_0"]),
    (lambda: nn.Conv1D(2, 3, 3), "conv1d", ONE),
    (lambda: nn.Conv2D(2, 3, 3), "conv2d", ONE),
    (lambda: nn.Conv3D(2, 3, 3), "conv3d", ONE),
    (lambda: nn.Conv1DTranspose(2, 3, 3), "conv1d_transpose", ONE),
    (lambda: nn.Conv2DTranspose(2, 3, 3), "conv2d_transpose", ONE),
    (lambda: nn.Conv3DTranspose(2, 3, 3), "conv3d_transpose", ONE),
    (lambda: nn.BatchNorm1D(3), "batch_norm1d", ONE),
    (lambda: nn.BatchNorm2D(3), "batch_norm2d", ONE),
    (lambda: nn.BatchNorm3D(3), "batch_norm3d", ONE),
    (lambda: nn.LayerNorm(3), "layer_norm", ONE),
    (lambda: nn.GroupNorm(1, 3), "group_norm", ONE),
    (lambda: nn.InstanceNorm1D(3), "instance_norm1d", ONE),
    (lambda: nn.InstanceNorm2D(3), "instance_norm2d", ONE),
    (lambda: nn.InstanceNorm3D(3), "instance_norm3d", ONE),
    (lambda: nn.PReLU(), "p_re_lu", ["w_0"]),
    (lambda: nn.SimpleRNNCell(2, 3), "simple_rnn_cell", CELL),
    (lambda: nn.LSTMCell(2, 3), "lstm_cell", CELL),
    (lambda: nn.GRUCell(2, 3), "gru_cell", CELL),
    (lambda: nn.SimpleRNN(2, 3), "simple_rnn_cell", CELL),
    (lambda: nn.LSTM(2, 3), "lstm_cell", CELL),
    (lambda: nn.GRU(2, 3), "gru_cell", CELL),
]


@pytest.mark.parametrize(("make", "base", "roles"), NAMES)
def test_layers_name_their_parameters_as_in_paddle(make, base, roles):
    found = [re.fullmatch(r"(\w+)_(\d+)\.(\w+)", p.name) for p in make().parameters()]
    assert [match[1] for match in found] == [base] * len(roles)
    assert [match[3] for match in found] == roles
    assert len({match[2] for match in found}) == 1


PROGRAM = """
import optlab as ol
from optlab import nn

class MyNet(nn.Layer):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2, 2)
        self.a = self.create_parameter([2])
        self.b = self.create_parameter([2], is_bias=True)
        self.c = self.create_parameter([2])
        self.d = self.create_parameter([2], attr="mine")
        self.e = self.create_parameter([2], is_bias=True)

def show(layer):
    print(layer.full_name(), *[p.name for p in layer.parameters()])

show(nn.Linear(2, 3))
show(nn.Linear(2, 3))
show(MyNet())
show(nn.LSTM(2, 3, num_layers=2))
show(nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1)))
show(nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8), 2))
print(ol.create_parameter([2], "float32").name)
print(ol.create_parameter([2], "float32", is_bias=True).name)
print(nn.LeakyReLU().full_name(), nn.BCEWithLogitsLoss().full_name(), nn.ReLU6().full_name())
print(nn.Layer(name_scope="MyScope").full_name(), nn.Layer(name_scope="MyScope").full_name())
"""

# What Paddle prints, up to the order of MyNet's own parameters and its sublayer's, which here
# follows that of the attributes.
PRINTED = """\
linear_0 linear_0.w_0 linear_0.b_0
linear_1 linear_1.w_0 linear_1.b_0
my_net_0 linear_2.b_0 linear_2.w_0 mine my_net_0.b_0 my_net_0.b_1 my_net_0.w_0 my_net_0.w_1
lstm_0 lstm_cell_0.b_0 lstm_cell_0.b_1 lstm_cell_0.w_0 lstm_cell_0.w_1 \
lstm_cell_1.b_0 lstm_cell_1.b_1 lstm_cell_1.w_0 lstm_cell_1.w_1
sequential_0 linear_3.w_0 linear_3.b_0 linear_4.w_0 linear_4.b_0
"""


def test_a_fresh_process_counts_as_paddle_does():
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    lines = run.stdout.splitlines()
    for line, expected in zip(lines, PRINTED.splitlines(), strict=False):
        assert sorted(line.split()) == sorted(expected.split())
    encoder = lines[5].split()[1:]
    assert len(set(encoder)) == len(encoder) == 32
    assert lines[6:] == [
        "create_parameter_0.w_0",
        "create_parameter_1.b_0",
        "leaky_re_lu_0 bce_with_logits_loss_0 re_lu6_0",
        "MyScope_0 MyScope_1",
    ]


def test_every_name_is_another():
    made = [
        *nn.Linear(2, 2).parameters(), *nn.Linear(2, 2).parameters(), ol.Parameter([1.0]),
        ol.Parameter([1.0]), ol.create_parameter([2]), ol.create_parameter([2]),
    ]  # fmt: skip
    assert len({p.name for p in made}) == len(made)


def test_a_given_name_wins():
    assert nn.Linear(2, 2, weight_attr=ol.ParamAttr(name="mine")).weight.name == "mine"
    assert ol.create_parameter([2], attr="mine").name == "mine"
    assert ol.Parameter([1.0], name="mine").name == "mine"
    weight = nn.Linear(2, 2).weight
    before = weight.name
    weight.name = "mine"
    assert (weight.name, weight.structural_name) == ("mine", "mine")
    weight.name = None
    assert (weight.name, weight.structural_name) == (before, None)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_a_copied_layer_has_a_number_of_its_own(copied):
    """Its weight and bias go on having one number, and predicates about endings go on working."""
    layer = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    twin = copied(layer)
    names = [p.name for one in (layer, twin) for p in one.parameters()]
    assert len(set(names)) == 8
    assert [name.partition(".")[2] for name in names] == ONE * 4
    assert [p.name for p in twin[0].parameters()] == [f"{twin[0].full_name()}.{r}" for r in ONE]


def test_a_class_that_does_not_call_the_initializer_of_layer():
    class Bare(nn.Layer):
        def __init__(self):
            self.w = self.create_parameter([2])

    one, other = Bare(), Bare()
    assert one.w.name == f"{one.full_name()}.w_0"
    assert one.w.name != other.w.name


def test_a_reparameterized_weight_keeps_its_name():
    layer = nn.Linear(3, 2)
    name = layer.weight.name
    nn.utils.weight_norm(layer)
    assert layer.weight_v.name == name
    assert layer.weight_g.name == f"{layer.full_name()}.w_1"
    assert nn.utils.remove_weight_norm(layer).weight.name == name


def one_run():
    """Train with dropout and a rule that draws; return weights, loss, state and a trace."""
    ol.seed(7)
    model = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 1))
    free = ol.Parameter(np.ones(1))
    parameters = [*model.parameters(), free]
    optimizer = ol.optimizer.Dpsgd(0.1, clip=1.0, batch_size=4.0, sigma=0.5, parameters=parameters)
    losses = []
    with ol.record(optimizer) as trace:
        for _ in range(3):
            loss = (model(ol.ones([2, 3])) * free).sum()
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            losses.append(loss.item())
    return [p.numpy() for p in parameters], losses, optimizer.state_dict(), trace, model


def test_a_cell_that_is_run_again_is_the_same_run():
    """Though the parameters are called otherwise: keys, states and traces do not go by names."""
    weights, losses, state, trace, model = one_run()
    again, same, other, second, twin = one_run()
    assert model[0].weight.name != twin[0].weight.name
    assert losses == same
    for one, two in zip(weights, again, strict=True):
        np.testing.assert_array_equal(one, two)
    assert list(state) == list(other)
    assert [*trace["parameter"]] == [*second["parameter"]] == [
        "0.weight", "0.bias", "2.weight", "2.bias", "parameter 4",
    ]  # fmt: skip
    assert list(model.state_dict()) == ["0.weight", "0.bias", "2.weight", "2.bias"]


def test_the_state_of_an_optimizer_goes_by_structural_names():
    model = nn.Linear(2, 1)
    optimizer = ol.optimizer.Adam(0.1, parameters=[*model.parameters(), ol.Parameter([1.0])])
    assert {key.rpartition(".")[0] for key in optimizer.state_dict() if "." in key} == {
        "weight", "bias", "parameter 2",
    }  # fmt: skip


def test_a_loaded_state_by_own_names_goes_by_given_ones():
    layer = nn.Linear(2, 1, weight_attr="mine")
    layer.set_state_dict(
        {"mine": np.ones((2, 1), "f4"), "bias": np.ones(1, "f4")}, use_structured_name=False
    )
    assert layer.weight.numpy().tolist() == [[1.0], [1.0]]
