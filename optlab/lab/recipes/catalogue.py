"""The recipes of this package."""

from __future__ import annotations

import math
from collections.abc import Callable
from difflib import get_close_matches
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from optlab.autograd.tape.grad_mode import no_grad
from optlab.backend.random import Key
from optlab.lab import data as data_sets
from optlab.lab.data.images import Data
from optlab.lab.models import (
    GPT,
    MLP,
    CharLSTM,
    ConvAutoencoder,
    LeNet5,
    LogisticRegression,
    MatrixFactorization,
    PhysicsInformed,
    ResNet,
    poisson_source,
)
from optlab.lab.problems.networks import Network
from optlab.lab.recipes.recipe import Recipe
from optlab.nn import ClipGradByGlobalNorm, Layer, functional
from optlab.optimizer import Adam, AdamW, Momentum, Optimizer
from optlab.optimizer.lr import LambdaDecay

# Parts that several recipes share -----------------------------------------------------------------


@lru_cache(maxsize=8)
def _order(count: int, epoch: int, seed: int) -> np.ndarray:
    return Key(seed).fold("order").fold(epoch).generator().permutation(count)


def shuffled(size: int) -> Callable[[Data, int, int], tuple[np.ndarray, np.ndarray]]:
    """Return a function that gives the batch of a step: every epoch in an order of its own."""

    def batch(data: Data, step: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        count = len(data.train_x)
        epoch, place = divmod(step, max(1, count // size))
        chosen = _order(count, epoch, seed)[place * size : (place + 1) * size]
        return data.train_x[chosen], data.train_y[chosen]

    return batch


def shifted(size: int, most: int) -> Callable[[Data, int, int], tuple[np.ndarray, np.ndarray]]:
    """Return a function that gives the batch of a step, each image moved by up to `most` pixels."""
    plain = shuffled(size)

    def batch(data: Data, step: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        x, y = plain(data, step, seed)
        draws = Key(seed).fold("shifts", step).generator()
        down, right = draws.integers(0, 2 * most + 1, (2, len(x), 1))
        padded = np.pad(x, ((0, 0), (0, 0), (most, most), (most, most)))
        rows, columns = down + np.arange(x.shape[2]), right + np.arange(x.shape[3])
        images = np.arange(len(x))[:, None, None]
        return padded.transpose(0, 2, 3, 1)[
            images, rows[:, :, None], columns[:, None, :]
        ].transpose(0, 3, 1, 2), y

    return batch


def cross_entropy(model: Layer, batch: Any) -> Any:
    """Return the mean cross entropy of a batch (x, classes)."""
    x, y = batch
    return functional.cross_entropy(model(x), y)


def accuracy(model: Layer, data: Data, size: int = 256) -> float:
    """Return the share of held-out examples whose class has the highest score."""
    right = 0
    with no_grad():
        for i in range(0, len(data.test_x), size):
            scores = model(data.test_x[i : i + size]).numpy()
            right += int(np.sum(scores.argmax(axis=1) == data.test_y[i : i + size]))
    return right / len(data.test_x)


def warm_cosine(rate: float, steps: int, warm_up: float = 0.05) -> LambdaDecay:
    """Return a schedule: a linear rise, then half a cosine down to zero."""
    rise = max(1.0, warm_up * steps)

    def share(step: int) -> float:
        fall = (step - rise) / max(1.0, steps - rise)
        return min(1.0, (step + 1) / rise) if step < rise else 0.5 + 0.5 * math.cos(math.pi * fall)

    return LambdaDecay(rate, share)


def _adam(rate: float, decay: float = 0.0) -> Callable[[Layer, int], Optimizer]:
    """Return a function that makes Adam, or AdamW, with a warm-up and half a cosine."""

    def optimizer(model: Layer, steps: int) -> Optimizer:
        schedule = warm_cosine(rate, steps)
        if decay:
            return AdamW(schedule, parameters=model.parameters(), weight_decay=decay)
        return Adam(schedule, parameters=model.parameters())

    return optimizer


def _classifier(
    name: str, title: str, data: Callable[[], Data], model: Callable[[Any], Layer],
    optimizer: Callable[[Layer, int], Optimizer], *, batch: int, steps: int, every: int,
    target: float, seconds: float, shifts: int = 0,
) -> Recipe:  # fmt: skip
    return Recipe(
        name, title, "accuracy on held-out examples", target, True, seconds, steps, every,
        data, model, optimizer, shifted(batch, shifts) if shifts else shuffled(batch),
        cross_entropy, accuracy,
        lambda: Network(lambda: model(None), data, name=name, title=title, batch_size=batch),
    )  # fmt: skip


# Texts --------------------------------------------------------------------------------------------


class Corpus(NamedTuple):
    """A text as symbols.

    Attributes
    ----------
    tokenizer : Characters or BytePairs
    readings : list of array of int
        The training text, in one or several ways of writing it as symbols.
    validation : array of int
    characters : int
        Of the held-out text.
    """

    tokenizer: Any
    readings: list[np.ndarray]
    validation: np.ndarray
    characters: int


@lru_cache(maxsize=1)
def _characters() -> Corpus:
    text = data_sets.pydoc_topics()
    letters = data_sets.Characters(text.train + text.validation)
    return Corpus(
        letters, [letters.encode(text.train)], letters.encode(text.validation),
        len(text.validation),
    )  # fmt: skip


@lru_cache(maxsize=1)
def _byte_pairs() -> Corpus:
    text = data_sets.pydoc_topics()
    pairs = data_sets.BytePairs(text.train, 512, alphabet=text.validation)
    readings = [pairs.encode(text.train, skip=0.1, seed=seed) for seed in range(16)]
    return Corpus(pairs, readings, pairs.encode(text.validation), len(text.validation))


def _last_tenth(data: Corpus) -> Corpus:
    """Return the training text, its last tenth held out: the same characters of every reading."""
    lengths = np.array([len(symbol) for symbol in data.tokenizer.symbols])
    ends = [np.cumsum(lengths[reading]) for reading in data.readings]
    kept = [int(np.searchsorted(end, 0.9 * end[-1], "right")) for end in ends]
    readings = [reading[:n] for reading, n in zip(data.readings, kept, strict=True)]
    after = max(int(end[n - 1]) for end, n in zip(ends, kept, strict=True))
    first = int(np.searchsorted(ends[0] - lengths[data.readings[0]], after))
    held_out = data.readings[0][first:]
    return Corpus(data.tokenizer, readings, held_out, int(lengths[held_out].sum()))


def _windows(length: int, count: int) -> Callable[[Corpus, int, int], Any]:
    def batch(data: Corpus, step: int, seed: int) -> Any:
        reading = data.readings[step % len(data.readings)]
        return data_sets.windows(reading, length, count, step, seed)

    return batch


def _bits_per_character(model: Any, data: Corpus) -> float:
    return float(model.bits(data.validation) / data.characters)


def _gpt_optimizer(model: Layer, steps: int) -> Optimizer:
    schedule = warm_cosine(3e-3, steps, min(0.5, 100 / steps))
    matrices = {p.name for p in model.parameters() if p.ndim > 1}
    return AdamW(
        schedule, beta2=0.99, parameters=model.parameters(), weight_decay=0.1,
        apply_decay_param_fun=lambda name: name in matrices,
        grad_clip=ClipGradByGlobalNorm(1.0),
    )  # fmt: skip


def _lstm_optimizer(model: Layer, steps: int) -> Optimizer:
    return Adam(
        warm_cosine(5e-3, steps), parameters=model.parameters(),
        grad_clip=ClipGradByGlobalNorm(1.0),
    )  # fmt: skip


# Other losses than cross entropy ------------------------------------------------------------------


def _pictures() -> Data:
    return data_sets.digits(8)


def _rebuilt(model: Layer, batch: Any) -> Any:
    x, _ = batch
    return functional.mse_loss(model(x), x)


def _rebuilt_held_out(model: Layer, data: Data) -> float:
    with no_grad():
        return float(functional.mse_loss(model(data.test_x), data.test_x).item())


@lru_cache(maxsize=1)
def _ratings() -> Data:
    """Return a fifth of the ratings of 400 users for 250 items: rank 4, users' means, noise."""
    draws = Key(0).fold("ratings").generator()
    users, items = draws.standard_normal((400, 4)), draws.standard_normal((250, 4))
    whole = 3.5 + 0.5 * users @ items.T + 0.5 * draws.standard_normal((400, 1))
    known = draws.permutation(whole.size)[: whole.size // 5]
    pairs = np.stack(np.unravel_index(known, whole.shape), axis=1)
    ratings = whole.flat[known] + 0.1 * draws.standard_normal(len(known))
    cut = len(known) // 10
    x, y = pairs.astype(np.int64), ratings.astype(np.float32)
    return Data(x[cut:], y[cut:], x[:cut], y[:cut])


def _squared(model: Layer, batch: Any) -> Any:
    x, y = batch
    return functional.mse_loss(model(x), y)


def _root_mean_square(model: Layer, data: Data) -> float:
    with no_grad():
        return math.sqrt(functional.mse_loss(model(data.test_x), data.test_y).item())


def _points(data: None, step: int, seed: int) -> np.ndarray:
    """Return 64 points of [-1, 1], one at random in each of as many cells."""
    draws = Key(seed).fold("points", step).generator().random(64)
    return (2 * (np.arange(64) + draws) / 64 - 1).astype(np.float32)[:, None]


def _equation(model: Any, x: np.ndarray) -> Any:
    return (model.residual(x, poisson_source) ** 2).mean()


def _farthest(model: Layer, data: None) -> float:
    x = np.linspace(-1, 1, 401, dtype=np.float32)[:, None]
    with no_grad():
        return float(np.abs(model(x).numpy() - np.sin(np.pi * x)).max())


# The recipes --------------------------------------------------------------------------------------


def _momentum(rate: float, decay: float) -> Callable[[Layer, int], Optimizer]:
    def optimizer(model: Layer, steps: int) -> Optimizer:
        return Momentum(
            warm_cosine(rate, steps), 0.9, parameters=model.parameters(), use_nesterov=True,
            weight_decay=decay,
        )  # fmt: skip

    return optimizer


RECIPES = {
    recipe.name: recipe
    for recipe in (
        _classifier(
            "logistic", "Logistic regression on tumors", data_sets.breast_cancer,
            lambda _: LogisticRegression(30), _adam(0.02), batch=64, steps=400, every=100,
            target=0.97, seconds=1,
        ),
        _classifier(
            "moons", "Two moons, 2-32-32-2", data_sets.moons, lambda _: MLP([2, 32, 32, 2]),
            _adam(0.01), batch=50, steps=600, every=100, target=0.98, seconds=1,
        ),
        _classifier(
            "spirals", "Two spirals, 2-64-64-2", data_sets.spirals,
            lambda _: MLP([2, 64, 64, 2], "tanh"), _adam(0.01), batch=50, steps=1500, every=250,
            target=0.98, seconds=2,
        ),
        _classifier(
            "digits_mlp", "Handwritten digits, 64-128-10", data_sets.digits,
            lambda _: MLP([64, 128, 10]), _adam(3e-3, 0.01), batch=32, steps=1500, every=250,
            target=0.97, seconds=2,
        ),
        _classifier(
            "lenet", "LeNet-5 on digits of 28 x 28 pixels", lambda: data_sets.digits(28),
            lambda _: LeNet5(), _adam(2e-3, 0.01), batch=32, steps=900, every=180, target=0.985,
            seconds=15, shifts=2,
        ),
        _classifier(
            "resnet8", "ResNet-8 on digits of 16 x 16 pixels", lambda: data_sets.digits(16),
            lambda _: ResNet(8, width=8), _momentum(0.1, 5e-4), batch=64, steps=400, every=80,
            target=0.985, seconds=15, shifts=1,
        ),
        _classifier(
            "resnet20", "ResNet-20 on digits of 16 x 16 pixels", lambda: data_sets.digits(16),
            lambda _: ResNet(20, width=8), _momentum(0.1, 5e-4), batch=64, steps=400, every=80,
            target=0.985, seconds=60, shifts=1,
        ),
        Recipe(
            "autoencoder", "Digits through a code of 8 numbers", "squared error held out", 0.02,
            False, 20, 1000, 200, _pictures, lambda _: ConvAutoencoder(8), _adam(4e-3),
            shuffled(64), _rebuilt, _rebuilt_held_out,
        ),
        Recipe(
            "ratings", "Ratings as a product of rank 4, sparse rows", "error of held-out ratings",
            0.2, False, 10, 3000, 500, _ratings,
            lambda data: MatrixFactorization(400, 250, 4, float(data.train_y.mean())),
            lambda model, steps: Adam(
                warm_cosine(0.02, steps), parameters=model.parameters(), lazy_mode=True
            ),
            shuffled(256), _squared, _root_mean_square,
        ),
        Recipe(
            "poisson", "A network that solves -u'' = pi^2 sin(pi x)", "largest error of u", 0.01,
            False, 10, 1500, 250, lambda: None, lambda _: PhysicsInformed(), _adam(5e-3),
            _points, _equation, _farthest,
        ),
        Recipe(
            "char_lstm", "An LSTM on the reference of Python", "bits a character, held out", 2.1,
            False, 90, 1500, 500, _characters,
            lambda data: CharLSTM(len(data.tokenizer), 128, dropout=0.1), _lstm_optimizer,
            _windows(64, 16), cross_entropy, _bits_per_character, validation=_last_tenth,
        ),
        Recipe(
            "gpt", "A GPT on the reference of Python", "bits a character, held out", 1.77,
            False, 900, 5000, 1000, _byte_pairs,
            lambda data: GPT(len(data.tokenizer), 64, width=128, depth=4, heads=4, dropout=0.1),
            _gpt_optimizer, _windows(64, 16), cross_entropy, _bits_per_character,
            validation=_last_tenth,
        ),
    )
}  # fmt: skip


def recipe(name: str) -> Recipe:
    """Return a recipe by its name.

    Parameters
    ----------
    name : str
        "logistic", "moons", "spirals", "digits_mlp", "lenet", "resnet8", "resnet20",
        "autoencoder", "ratings", "poisson", "char_lstm" or "gpt".

    Returns
    -------
    Recipe

    Raises
    ------
    ValueError
        If there is no recipe of that name; the message lists them.

    Examples
    --------
    >>> import optlab as ol
    >>> training = ol.lab.recipe("digits_mlp").run(steps=300, seed=0)
    >>> training.score > 0.9
    True
    """
    if name not in RECIPES:
        near = get_close_matches(str(name), RECIPES, 1, 0.4)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise ValueError(f"there is no recipe {name!r}; there are {', '.join(RECIPES)}.{hint}")
    return RECIPES[name]
