"""The examples of Paddle's documents run unchanged except for their import lines.

Each file of ``examples/`` is one example, word for word. Lines that start with ``>>> `` or ``... ``
are its code and the others its output; without a ``>>> `` all of it is code.
"""

import contextlib
import io
import re
from pathlib import Path

import numpy as np
import pytest

import optlab as ol

FOLDER = Path(__file__).parent / "examples"
EAGER = sorted(p.stem for p in FOLDER.glob("*.txt") if not p.stem.startswith("static_graph"))
STATIC = sorted(p.stem for p in FOLDER.glob("static_graph*.txt"))

#: Missing features. Each has to be removed here once its example runs.
WAITS_FOR: dict[str, str] = {}
#: Examples whose output depends on Paddle's random numbers: not compared.
RANDOM = {"lookahead", "recompute"}

#: Output that the pages leave out.
LEFT_OUT = {"asgd_set_state_dict": ["Epoch 0: NoamDecay set learning rate to 0.0."]}  # verbose=True

IMPORTS = {
    "import paddle": "import optlab as paddle",
    "import paddle.nn as nn": "import optlab.nn as nn",
    "import paddle.fluid as fluid": "import optlab.fluid as fluid",
    "from paddle.distributed.fleet.utils import recompute": (
        "from optlab.distributed.fleet.utils import recompute"
    ),
}


def read(name):
    """Return the code of an example and its documented output."""
    head, line, body = (FOLDER / f"{name}.txt").read_text(encoding="utf-8").partition("# ----\n")
    assert line
    assert "Apache License 2.0" in head
    lines = body.splitlines()
    if not body.startswith(">>>"):
        return lines, []
    prompts = (">>> ", "... ")
    code = [line[4:] for line in lines if line.startswith(prompts)]
    printed = [
        line
        for line in lines
        if line and not line.startswith(prompts) and line not in (">>>", "...")
    ]
    return code, printed


def run(name, folder, monkeypatch):
    """Run an example in a fresh namespace; return the namespace and its output."""
    code, _ = read(name)
    monkeypatch.chdir(folder)
    space = {"__name__": "__main__"}
    said = io.StringIO()
    program = compile("\n".join(IMPORTS.get(line, line) for line in code), f"{name}.txt", "exec")
    with contextlib.redirect_stdout(said):
        exec(program, space)
    return space, said.getvalue().splitlines()


def as_parameters(names):
    """Return the parameters, with those that wait for a feature marked as xfail."""
    return [
        pytest.param(
            name,
            marks=pytest.mark.xfail(
                strict=True,
                raises=(AttributeError, ImportError),  # for no other error
                reason=f"no {WAITS_FOR[name]} yet",
            ),
        )
        if name in WAITS_FOR
        else name
        for name in names
    ]


@pytest.mark.parametrize("name", as_parameters(EAGER))
def test_an_example_runs(name, tmp_path, monkeypatch):
    _, expected = read(name)
    _, printed = run(name, tmp_path, monkeypatch)
    if name in RANDOM:
        assert printed
    else:
        assert printed == LEFT_OUT.get(name, []) + expected


def test_every_name_in_the_tables_is_an_example():
    assert {*WAITS_FOR, *RANDOM, *LEFT_OUT} <= set(EAGER)
    assert len(EAGER) == 13
    assert len(STATIC) == 4


def test_a_wrong_output_is_seen(tmp_path, monkeypatch):
    """The comparison can fail: with another learning rate the output differs."""
    monkeypatch.setattr(ol.optimizer.Adam, "get_lr", lambda self: 0.25)
    _, printed = run("asgd_set_lr", tmp_path, monkeypatch)
    assert len(printed) == 5
    assert printed != read("asgd_set_lr")[1]


@pytest.mark.parametrize("name", STATIC)
def test_examples_of_static_graphs_name_what_optlab_does_not_have(name):
    """They build a graph first and run it later; they are kept for reference and do not run."""
    text = (FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    assert re.search(r"\bfluid\b|enable_static", text)
    assert not hasattr(ol, "enable_static")
    assert not hasattr(ol, "static")


# Effects of an example beyond its output.


def test_asgd_step_and_clear_grad_moved_the_parameters_and_left_zeros(tmp_path, monkeypatch):
    for name in ("asgd_step", "asgd_clear_grad"):
        space, _ = run(name, tmp_path, monkeypatch)
        linear = space["linear"]
        # d(sum of out)/d(bias) is one for each of the two rows; Adam's first step is the rate.
        np.testing.assert_allclose(linear.bias.numpy(), -0.01, rtol=1e-5)
        assert not linear.weight.grad.numpy().any()


def test_asgd_minimize_used_the_gradients_that_were_there(tmp_path, monkeypatch):
    space, _ = run("asgd_minimize", tmp_path, monkeypatch)
    # Backward ran before minimize, which must not run it again: Adam's first step is the rate.
    np.testing.assert_allclose(space["linear"].bias.numpy(), -0.1, rtol=1e-4)
    assert not space["linear"].weight.grad.numpy().any()


def test_what_lookahead_trains_shares_its_bias(tmp_path, monkeypatch):
    """The layer of that page holds a parameter of its sublayer under a second name."""
    code, _ = read("lookahead")
    program = "\n".join(code).partition("def train")[0]
    for line, ours in IMPORTS.items():
        program = re.sub(rf"^{re.escape(line)}$", ours, program, flags=re.MULTILINE)
    space = {"__name__": "__main__"}
    exec(program, space)
    layer = space["LinearNet"]()
    assert len(layer.parameters()) == 2
    assert layer.bias is layer._linear.bias
    out = layer(ol.rand([3, 784]))
    out.sum().backward()
    np.testing.assert_allclose(layer.bias.grad.numpy(), np.full(10, 3.0), rtol=1e-6)


def test_recompute_gives_the_losses_of_plain_running(tmp_path, monkeypatch):
    space, printed = run("recompute", tmp_path, monkeypatch)
    assert space["loss"] == space["loss_ref"]
    assert any(loss != 0 for loss in space["loss"])
    for ours, plain in zip(space["param"], space["param_ref"], strict=True):
        assert np.array_equal(ours.numpy(), plain.numpy())
    assert re.match(r"normal_loss: \[.*\], recompute_loss: \[.*\]$", printed[-1])
