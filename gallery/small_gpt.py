"""A small GPT trained on the reference of the Python language, compared with n-grams.

The text comes with Python (`help("while")` shows a part of it), so nothing is downloaded. The
baseline are n-grams, which count how often each character followed the last few, with Kneser-Ney
smoothing, the best known. Both are trained on the same text, and both are judged on the held-out
part in bits per character: the length of that text when it is compressed with the model.

Run it with ``python gallery/small_gpt.py``: it trains for some minutes, continues a sentence, and
writes small-gpt.png beside this file.
"""

from __future__ import annotations

import math
import sys
import time
from pathlib import Path
from typing import NamedTuple

import optlab as ol

STEPS, BATCH, LENGTH = 5000, 16, 64
RATE, WARM_UP, DECAY = 3e-3, 100, 0.1
READINGS = 16
ORDERS = range(1, 10)


class Result(NamedTuple):
    """Bits per character on the held-out text, and a sample from the model."""

    ngrams: list[float]  # of orders 1, 2, ...
    order: int  # the best on the last part of the training text
    steps: list[int]
    gpt: list[float]  # after these numbers of steps
    sample: str


def baseline(text: ol.data.Text) -> tuple[list[float], int]:
    """Count n-grams; return the bits per character of every order, and the order to choose."""
    letters = ol.data.Characters(text.train + text.validation)
    train, validation = letters.encode(text.train), letters.encode(text.validation)
    bits = [ol.data.KneserNey(train, n, len(letters)).bits(validation) for n in ORDERS]
    return bits, ol.data.best_order(train, len(letters), ORDERS)


def rate(step: int, steps: int) -> float:
    """Return the learning rate: linear warm-up, then a cosine decay."""
    return RATE * min(1, (step + 1) / WARM_UP) * (1 + math.cos(math.pi * step / steps)) / 2


def learn(steps: int = STEPS, look: int = 500) -> Result:
    """Train, and evaluate on the held-out text every `look` steps; the last evaluation counts."""
    text = ol.data.pydoc_topics()
    ngrams, order = baseline(text)
    print(f"n-grams of order {order}: {ngrams[order - 1]:.3f} bits a character", flush=True)

    pairs = ol.data.BytePairs(text.train, 512, alphabet=text.validation)
    readings = [pairs.encode(text.train, skip=0.1, seed=seed) for seed in range(READINGS)]
    validation = pairs.encode(text.validation)
    ol.seed(0)
    model = ol.lab.models.GPT(len(pairs), LENGTH, width=128, depth=4, heads=4, dropout=0.1)
    optimizer = ol.optimizer.Adam(
        RATE,
        beta2=0.99,
        parameters=model.parameters(),
        grad_clip=ol.nn.ClipGradByGlobalNorm(1.0),
    )
    matrices = [parameter for parameter in model.parameters() if parameter.ndim > 1]
    begin, seen, found = time.perf_counter(), [], []
    for step in range(steps):
        optimizer.set_lr(rate(step, steps))
        symbols, following = ol.data.windows(readings[step % READINGS], LENGTH, BATCH, step)
        loss = ol.nn.functional.cross_entropy(model(symbols), following)
        loss.backward()
        with ol.no_grad():
            for matrix in matrices:
                matrix *= 1 - rate(step, steps) * DECAY
        optimizer.step()
        optimizer.clear_grad()
        if (step + 1) % look == 0 or step + 1 == steps:
            seen.append(step + 1)
            found.append(model.bits(validation) / len(text.validation))
            took = time.perf_counter() - begin
            print(f"GPT after {step + 1} steps: {found[-1]:.3f}, {took:.0f} s", flush=True)
    written = model.generate(pairs.encode("The "), 120, temperature=0.7, seed=1)
    return Result(ngrams, order, seen, found, pairs.decode(written))


def draw(result: Result, folder: Path) -> Path:
    """Plot the learning curve of the GPT and the n-grams; return the image's path."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    axes.plot(result.steps, result.gpt, "o-", color="#0072b2", label="GPT, 0.9 million weights")
    for order, bits in zip(ORDERS, result.ngrams, strict=True):
        if order == result.order:
            axes.axhline(bits, color="#b34700", label=f"n-grams of order {order}, Kneser-Ney")
        elif order >= 4:
            axes.axhline(bits, color="#b34700", alpha=0.3, lw=0.8)
            axes.text(result.steps[-1], bits, f"order {order} ", ha="right", va="bottom", size=7)
    axes.set(xlabel="steps", ylabel="bits a character, on text held out")
    axes.set_xlim(0)
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    picture = folder / "small-gpt.png"
    figure.savefig(picture, dpi=150)
    return picture


def main(folder: Path) -> Path:
    """Train, write the image into `folder`; return its path."""
    result = learn()
    print(result.sample)
    return draw(result, folder)


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    print(main(target))
