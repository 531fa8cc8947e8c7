"""Layer.summary, and the display of layers and summaries in a notebook."""

from __future__ import annotations

from html.parser import HTMLParser

import numpy as np
import pytest

import optlab as ol


@pytest.fixture
def model():
    ol.seed(0)
    return ol.nn.Sequential(ol.nn.Linear(64, 32), ol.nn.Tanh(), ol.nn.Linear(32, 10))


def test_shapes_parameters_and_bytes(model):
    summary = model.summary(ol.ones([100, 64]))
    rows = {row.name: row for row in summary.rows}
    assert [row.output for row in summary.rows] == [
        "(100, 10)",
        "(100, 32)",
        "(100, 32)",
        "(100, 10)",
    ]
    assert rows["0"].parameters == 64 * 32 + 32
    assert summary.parameters == sum(p.size for p in model.parameters())
    # The input, and the output of tanh, which the last layer needs too: counted once.
    assert [row.saved for row in summary.rows] == [0, 100 * 64 * 4, 100 * 32 * 4, 0]
    assert summary.saved == 100 * (64 + 32) * 4


def test_a_shape_stands_for_ones(model):
    assert model.summary([5, 64]).rows[0].output == "(5, 10)"
    embedding = ol.nn.functional.embedding

    class Words(ol.nn.Layer):
        def __init__(self):
            super().__init__()
            self.table = ol.Parameter(np.ones((5, 2)))

        def forward(self, words, scale=1.0):
            return embedding(words, self.table) * scale

    assert Words().summary(np.array([1, 2, 3]), scale=2.0).rows[0].output == "(3, 2)"


def test_nothing_of_the_run_remains(model):
    class Counting(ol.nn.Layer):
        def __init__(self):
            super().__init__()
            self.register_buffer("replaced", ol.zeros([1]))
            self.register_buffer("written", ol.zeros([1]))

        def forward(self, x):
            self.replaced = self.replaced + 1
            with ol.no_grad():
                self.written[0] = self.written[0] + 1
            return ol.nn.functional.dropout(x)

    net = ol.nn.Sequential(model, Counting())
    ol.seed(5)
    expected = ol.rand([3]).tolist()
    ol.seed(5)
    with ol.no_grad():
        assert net.summary((2, 64)).saved > 0  # recorded, also under no_grad
    assert ol.rand([3]).tolist() == expected
    assert (net[1].replaced.item(), net[1].written.item()) == (0.0, 0.0)
    assert all(p.grad is None for p in net.parameters())
    assert not any(
        layer._hooks.before or layer._hooks.after for layer in net.sublayers(include_self=True)
    )


def test_an_error_in_forward_leaves_no_hook_behind(model):
    with pytest.raises(ValueError, match="linear"):
        model.summary((5, 63))
    assert not model._hooks.before
    assert model.summary((5, 64)).rows[0].calls == 1


def test_calls_shared_and_frozen_parameters():
    layer = ol.nn.Linear(4, 4)
    layer.bias.trainable = False
    unused = ol.nn.Sequential(layer, layer)
    unused.extra = ol.nn.LayerList([ol.nn.Tanh()])
    unused.forward = lambda x: layer(layer(x))
    text = repr(unused.summary((1, 4)))
    assert "0: Linear (2 calls)" in text
    assert "not called" in text
    assert "4 of the 20 parameters are not trained." in text


def test_a_layer_with_many_outputs():
    class Pair(ol.nn.Layer):
        def forward(self, x):
            return {"a": x, "rest": (x.sum(), 3)}

    assert Pair().summary((2, 3)).rows[0].output == "a: (2, 3), rest: (), int"


def test_own_functions_and_saved_tensors_hooks_are_counted(model):
    class Double(ol.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    class Own(ol.nn.Layer):
        def forward(self, x):
            return Double.apply(x)

    x = ol.to_tensor(np.ones(8), requires_grad=True)
    assert Own().summary(x).saved == 64
    with ol.autograd.saved_tensors_hooks(lambda t: t, lambda t: t):
        assert model.summary((100, 64)).saved == 100 * (64 + 32) * 4


@pytest.mark.peers
def test_bytes_are_those_of_pytorch(model):
    torch = pytest.importorskip("torch")
    theirs = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.Tanh(), torch.nn.Linear(32, 10))
    own = {p.untyped_storage().data_ptr() for p in theirs.parameters()}
    kept = {}

    def pack(t):
        storage = t.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage.nbytes()
        return t

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        output = theirs(torch.ones(100, 64))
    assert output.shape == (100, 10)
    assert model.summary((100, 64)).saved == sum(kept.values())


class Checked(HTMLParser):
    """A parser that asserts that every element is closed, and collects the text."""

    def __init__(self) -> None:
        super().__init__()
        self.open, self.text = [], ""

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def text_of(page):
    checked = Checked()
    checked.feed(page)
    assert checked.open == []
    return checked.text


def test_a_layer_as_a_page(model):
    model.add_sublayer("<head>", ol.nn.Linear(10, 2, dtype="float64"))
    model[2].bias.trainable = False
    model[1].shared = model[0].weight
    model[1].register_buffer("mean", ol.zeros([3]))
    text = text_of(model._repr_html_())
    for wanted in (
        "2,432 parameters", "in training", "0:\xa0Linear(64, 32)weight [64, 32]", "<head>:",
        "bias [10] not trained", "shared [64, 32] shared", "mean [3] buffer", "float64",
    ):  # fmt: skip
        assert wanted in text
    assert "<style" not in model._repr_html_()


def test_a_summary_as_a_page(model):
    text = text_of(model.summary((100, 64))._repr_html_())
    assert "saved for backward" in text
    assert "25 KiB" in text
    assert "2,410" in text


def test_an_embedding_reads_a_shape_as_whole_numbers():
    assert ol.nn.Embedding(4, 2).summary((1, 3)).rows[0].output == "(1, 3, 2)"
    model = ol.nn.Sequential(ol.nn.Embedding(1, 2), ol.nn.Linear(2, 5))
    assert model.summary((2, 3)).rows[-1].output == "(2, 3, 5)"
    gpt = ol.lab.models.GPT(7, 4, 8, 1, 2)
    assert gpt.summary((2, 4)).rows[0].output == "(2, 4, 7)"
