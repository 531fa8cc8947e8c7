"""Eight programs in the style of Paddle's beginner tutorials, run with ``import optlab as paddle``.

They are in `programs/`, run in Paddle 3.3.1 as they are, and learn there. Four run here without
another change; four stop at a line whose error says what to write, and run when that is written.
"""

from __future__ import annotations

import re
import traceback
from pathlib import Path

import numpy as np
import pytest

import optlab as ol

PROGRAMS = Path(__file__).with_name("programs")


def source_of(name):
    """Return a program with its imports of Paddle turned to optlab."""
    text = (PROGRAMS / f"{name}.txt").read_text(encoding="utf-8")
    text = re.sub(r"^import paddle$", "import optlab as paddle", text, flags=re.M)
    return re.sub(r"^(import|from) paddle\.", r"\1 optlab.", text, flags=re.M)


def run(text, folder):
    """Run a program; it stands in no module."""
    names = {"folder": str(folder), "__name__": "program"}
    before = np.random.get_state()  # noqa: NPY002 - programs set NumPy's seed
    try:
        exec(compile(text, "program", "exec"), names)
    finally:
        np.random.set_state(before)  # noqa: NPY002
    return names


def learned(names):
    losses = names["losses"]
    assert np.mean(losses[-5:]) < 0.4 * np.mean(losses[:5])


@pytest.mark.parametrize("name", ["linear_regression", "lstm", "transformer", "dygraph_basics"])
def test_a_program_runs_as_it_is(name, tmp_path):
    learned(run(source_of(name), tmp_path))


#: Program -> the line that stops, parts of its sentence, and what is written in place of what.
CHANGES = {
    "lenet": (
        "paddle.vision.transforms",
        ["no name 'vision'", "lambda image: image / 127.5 - 1", "ol.io.TensorDataset"],
        [(r"^normalize = .*", "normalize = lambda image: image / 127.5 - 1")],
    ),
    "own_data_set": (
        "paddle.Model(net)",
        ["no name 'Model'", "ol.io.DataLoader(data", "loss.backward()", "optimizer.step()"],
        [
            (r"^model = paddle.Model\(net\)\n", ""),
            (r"^model.prepare.*\n", ""),
            (
                r"^model.fit.*\nlosses = .*",
                (
                    "losses = []\n"
                    "for epoch in range(8):\n"
                    "    for x, y in paddle.io.DataLoader(train_data, batch_size=32):\n"
                    "        loss = paddle.nn.functional.cross_entropy(net(x), y)\n"
                    "        loss.backward()\n"
                    "        optimizer.step()\n"
                    "        optimizer.clear_grad()\n"
                    "        losses.append(loss.item())\n"
                ),
            ),
        ],
    ),
    "callbacks": (
        "paddle.callbacks.Callback",
        ["no name 'callbacks'", "loop of your own", "loss.item()"],
        [
            (r"^class LossCallback(.|\n)*?\n\n\n", ""),
            (
                r"^model = (.|\n)*",
                (
                    "optimizer = paddle.optimizer.Adam(0.05, parameters=net.parameters())\n"
                    "for epoch in range(10):\n"
                    "    for x, y in paddle.io.DataLoader(data, batch_size=32):\n"
                    "        loss = paddle.nn.functional.mse_loss(net(x), y)\n"
                    "        loss.backward()\n"
                    "        optimizer.step()\n"
                    "        optimizer.clear_grad()\n"
                    "        losses.append(loss.item())\n"
                ),
            ),
        ],
    ),
    "save_and_load": (
        "paddle.jit.save",
        ["ol.jit has no 'save'", "ol.save(layer.state_dict(), path)", "layer.set_state_dict("],
        [
            (r"^paddle.jit.save.*", "paddle.save(net.state_dict(), path)"),
            (
                r"^again = paddle.jit.load.*",
                "again = Net()\nagain.set_state_dict(paddle.load(path))",
            ),
        ],
    ),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_program_stops_where_its_error_says_what_to_write(name, tmp_path):
    line, parts, _ = CHANGES[name]
    text = source_of(name)
    with pytest.raises(AttributeError) as caught:
        run(text, tmp_path)
    places = [
        frame.lineno
        for frame in traceback.extract_tb(caught.value.__traceback__)
        if frame.filename == "program"
    ]
    assert line in text.splitlines()[places[-1] - 1]
    for part in parts:
        assert part in str(caught.value)


@pytest.mark.parametrize("name", CHANGES)
def test_a_program_runs_when_it_is_changed_as_the_error_says(name, tmp_path):
    text = source_of(name)
    for old, new in CHANGES[name][2]:
        text, count = re.subn(old, lambda _, new=new: new, text, flags=re.M)
        assert count == 1
    learned(run(text, tmp_path))


def test_a_loss_becomes_a_number_by_item():
    text = source_of("linear_regression").replace("loss.item()", "float(loss)", 1)
    with pytest.raises(TypeError, match=r"float\(\).*\.item\(\)"):
        run(text, "")


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("vision", "TensorDataset"), ("Model", "loss.backward()"), ("hapi", "loss.backward()"),
        ("callbacks", "loop"), ("text", "TensorDataset"), ("static", "no static graphs"),
        ("enable_static", "no static graphs"), ("batch", "DataLoader"), ("dataset", "Dataset"),
        ("reader", "DataLoader"), ("device", "ol.set_device"), ("CPUPlace", "place='cpu'"),
        ("DataParallel", "leave it out"), ("summary", "ol.nn.summary"), ("fft", "np.fft"),
        ("cat", "ol.concat"), ("permute", "ol.transpose"), ("inference", "net.eval()"),
    ],
)  # fmt: skip
def test_places_that_are_not_here_answer_with_a_sentence(name, part):
    with pytest.raises(AttributeError, match=f"optlab has no name '{name}': ") as caught:
        getattr(ol, name)
    assert part in str(caught.value)
    assert str(caught.value).endswith(".")


def test_parts_that_are_not_here_answer_with_a_sentence():
    with pytest.raises(AttributeError, match=r"ol\.metric\.accuracy\(scores, labels\)"):
        _ = ol.metric.Accuracy
    with pytest.raises(AttributeError, match="set_state_dict"):
        _ = ol.jit.load
    with pytest.raises(AttributeError, match=r"write np\.linalg\.lstsq"):
        _ = ol.linalg.lstsq


def test_the_accuracy_is_that_of_the_k_largest_scores():
    scores = ol.to_tensor([[0.1, 0.7, 0.2], [0.5, 0.2, 0.3], [0.2, 0.5, 0.3]])
    labels = ol.to_tensor([[1], [2], [0]])
    assert ol.metric.accuracy(scores, labels).item() == pytest.approx(1 / 3)
    assert ol.metric.accuracy(scores, labels.reshape([3]), k=2).item() == pytest.approx(2 / 3)
    assert ol.metric.accuracy(scores, labels).dtype == np.float32
    with pytest.raises(ValueError, match="labels of shape"):
        ol.metric.accuracy(scores, labels[:2])
    with pytest.raises(ValueError, match="k=4"):
        ol.metric.accuracy(scores, labels, k=4)
