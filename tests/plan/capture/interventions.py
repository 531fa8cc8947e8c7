"""What happens to a program between its steps: rates, states, modes, values, recordings."""

from __future__ import annotations

from typing import Any

import numpy as np

import optlab as ol
from tests.plan.capture.twins import Program


def set_rate(p: Program) -> None:
    p.optimizer.set_lr(0.6 * p.optimizer.get_lr())


def evaluate(p: Program) -> None:
    p.model.eval()


def train(p: Program) -> None:
    p.model.train()


def save(p: Program) -> None:
    """Keep the state, as a file would."""
    copied = {
        name: {key: part.numpy().copy() if isinstance(part, ol.Tensor) else part
               for key, part in one.items()}
        for name, one in (
            ("model", p.model.state_dict()), ("optimizer", p.optimizer.state_dict())
        )
    }  # fmt: skip
    p.kept.update(copied, random=ol.get_rng_state())


def load(p: Program) -> None:
    p.model.set_state_dict(p.kept["model"])
    p.optimizer.set_state_dict(p.kept["optimizer"])


def load_with_random_state(p: Program) -> None:
    load(p)
    ol.set_rng_state(p.kept["random"])


def set_value(p: Program) -> None:
    """Overwrite a parameter and a running statistic."""
    weight = p.model.parameters()[0]
    weight.set_value(0.5 * weight.numpy() + 0.01)
    name, buffer = next(iter(p.model.named_buffers()))
    assert "mean" in name
    buffer.set_value(buffer.numpy() + np.float32(0.125))


def write_in_place(p: Program) -> None:
    with ol.no_grad():
        p.model.parameters()[-1][...] = 0.25


def freeze(p: Program) -> None:
    for parameter in p.model.parameters()[:2]:
        parameter.trainable = False


def thaw(p: Program) -> None:
    for parameter in p.model.parameters()[:2]:
        parameter.trainable = True


def seed(_: Program) -> None:
    ol.seed(77)


def draw(_: Program) -> Any:
    """Draw between the steps: the draws of later steps move on."""
    return ol.rand([3])


def step_eagerly(p: Program) -> Any:
    """Take a step outside of what is captured, on the same parameters and slots."""
    return p.step(*p.batches[0])


def leave_gradients(p: Program) -> None:
    """Run backward without a step: what the next step's backward finds is added to it."""
    x, y = p.batches[0]
    ol.nn.functional.cross_entropy(p.model(x), y).backward()


def drop_gradients(p: Program) -> None:
    for parameter in p.model.parameters():
        parameter.grad = None


def start_recording(p: Program) -> None:
    recording = ol.record(p.optimizer, probes="toy")
    p.kept["recording"], p.kept["trace"] = recording, recording.__enter__()


def stop_recording(p: Program) -> dict[str, Any]:
    """Return all that was recorded, but for the time."""
    p.kept["recording"].__exit__(None, None, None)
    return recorded(p.kept["trace"])


def recorded(trace: Any) -> dict[str, Any]:
    """Return the arrays of a trace, but for the time."""
    return {
        "step": trace.step,
        "loss": trace.loss,
        "learning rate": trace.learning_rate,
        "parameters": trace.parameters,
        "gradients": trace.gradients,
        "slots": dict(trace.slots),
        "terms": dict(trace.terms),
    }


#: All of them in one run of 200 steps.
ON_THE_WAY = [
    (17, set_rate),
    (30, save),
    (41, evaluate),
    (47, train),
    (62, set_value),
    (75, start_recording),
    (78, evaluate),
    (80, train),
    (83, set_rate),
    (90, stop_recording),
    (101, load),
    (120, freeze),
    (131, thaw),
    (140, draw),
    (145, step_eagerly),
    (150, write_in_place),
    (160, leave_gradients),
    (170, drop_gradients),
    (175, load_with_random_state),
    (190, seed),
]
