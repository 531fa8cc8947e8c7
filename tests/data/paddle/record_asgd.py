"""Write the trajectories of ASGD with decay into golden.npz, by the formula of its document.

Paddle 3.3.1 adds the decay to the gradients that it stores. Its documentation prints another
formula, which counts here (paddle.optimizer.ASGD, "x = x - learning_rate (d / min(m + 1, n) +
lambda x)"). It is transcribed in float64; an L1 decay stands in the place of lambda x.

Run from the root of the repository: ``python -m tests.data.paddle.record_asgd``.
"""

import json
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent
SOURCE = "float64 transcription of the document's formula: decay outside of the averaged gradient"


def asgd(x, gradients, learning_rate, n, decay):
    """Return the parameters after every step, and the sum and gradients stored at the end."""
    x = x.copy()
    d, y, path = np.zeros_like(x), np.zeros((n, *x.shape)), []
    for m, gradient in enumerate(gradients):
        i = m % n
        d = d - y[i] + gradient
        y[i] = gradient
        x = x - learning_rate * (d / min(m + 1, n) + decay(x))
        path.append(x)
    return np.array(path), d, y


def decay_of(setting):
    """Return the decay of a case as a function of the parameter."""
    if isinstance(setting, dict):
        assert setting["type"] == "L1Decay"
        return lambda x: setting["coeff"] * np.sign(x)
    return lambda x: setting * x


def main():
    description = json.loads((FOLDER / "golden.json").read_text(encoding="utf-8"))
    arrays = dict(np.load(FOLDER / "golden.npz"))
    for case in description["cases"]:
        settings = case["kwargs"]
        if case["optimizer"] != "ASGD" or not case["weight_decay"] or settings["batch_num"] == 1:
            continue  # with one batch the two are the same
        case["source"] = SOURCE
        for name, start in case["params"].items():
            path, d, y = asgd(
                arrays[start],
                arrays[case["grads"][name]][: case["steps"]],
                settings["learning_rate"],
                settings["batch_num"],
                decay_of(case["weight_decay"]),
            )
            stored = case["state"][name]
            arrays |= {case["trajectory"][name]: path, stored["d"]: d, stored["y"]: y}
    np.savez_compressed(FOLDER / "golden.npz", **arrays)
    text = json.dumps(description, separators=(",", ":"))
    (FOLDER / "golden.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
