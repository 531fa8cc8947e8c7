"""Racers: a student's plain class in races, with the numbers that it gives by itself."""

import numpy as np
import pytest

import optlab as ol
from optlab.backend.wrong_arguments import _of_values

STEPS = 500
RATE = 0.002


class SGD:
    def __init__(self, learning_rate):
        self.learning_rate = learning_rate

    def step(self, params, grads):
        return [p - self.learning_rate * g for p, g in zip(params, grads, strict=True)]


class Momentum:
    def __init__(self, learning_rate, momentum=0.9):
        self.learning_rate, self.momentum, self.velocities = learning_rate, momentum, None

    def step(self, params, grads):
        if self.velocities is None:
            self.velocities = [np.zeros_like(p) for p in params]
        self.velocities = [
            self.momentum * v + g for v, g in zip(self.velocities, grads, strict=True)
        ]
        return [p - self.learning_rate * v for p, v in zip(params, self.velocities, strict=True)]


class Adam:
    def __init__(self, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8):
        self.learning_rate, self.epsilon = learning_rate, epsilon
        self.beta1, self.beta2, self.t, self.m, self.v = beta1, beta2, 0, None, None

    def step(self, params, grads):
        if self.m is None:
            self.m = [np.zeros_like(p) for p in params]
            self.v = [np.zeros_like(p) for p in params]
        self.t += 1
        new = []
        for i, (p, g) in enumerate(zip(params, grads, strict=True)):
            self.m[i] = self.beta1 * self.m[i] + (1 - self.beta1) * g
            self.v[i] = self.beta2 * self.v[i] + (1 - self.beta2) * g**2
            first = self.m[i] / (1 - self.beta1**self.t)
            second = self.v[i] / (1 - self.beta2**self.t)
            new.append(p - self.learning_rate * first / (np.sqrt(second) + self.epsilon))
        return new


class LookAhead:
    def __init__(self, inner, alpha=0.5, k=5):
        self.inner, self.alpha, self.k, self.count, self.slow = inner, alpha, k, 0, None

    def step(self, params, grads):
        if self.slow is None:
            self.slow = [p.copy() for p in params]
        fast = self.inner.step(params, grads)
        self.count += 1
        if self.count % self.k:
            return fast
        self.slow = [s + self.alpha * (f - s) for s, f in zip(self.slow, fast, strict=True)]
        return [s.copy() for s in self.slow]


class InLists(SGD):
    def step(self, params, grads):
        return [new.tolist() for new in super().step(params, grads)]


MADE = {
    "SGD": SGD,
    "Momentum": Momentum,
    "Adam": Adam,
    "LookAhead": lambda rate: LookAhead(Adam(rate)),
    "InLists": InLists,
}


@pytest.mark.parametrize("name", MADE)
def test_a_racer_goes_the_way_of_the_plain_class(name):
    raced = ol.compare("booth", {"mine": ol.course.racer(MADE[name], RATE)}, steps=STEPS)
    points = raced["mine"].parameters["point"]
    gradients = raced["mine"].gradients["point"]
    alone = MADE[name](RATE)
    p = points[0]
    assert len(points) == STEPS + 1
    for t in range(STEPS):
        [new] = alone.step([p], [gradients[t]])
        p = np.asarray(new)
        np.testing.assert_array_equal(points[t + 1], p)


@pytest.mark.parametrize("name", MADE)
def test_a_page_can_be_made_of_a_racer(name):
    page = ol.explore("booth", {"mine": ol.course.racer(MADE[name], RATE)}).to_html()
    assert "mine" in page


def test_the_reason_of_a_wrong_call_keeps_its_quotes():
    said = _of_values("f", AttributeError("'SGD' object has no attribute 'objects'"), [])
    assert "(AttributeError: 'SGD' object has no attribute 'objects')" in str(said)
    assert "(KeyError: no slot 'm')" in str(_of_values("f", KeyError("no slot 'm'"), []))
