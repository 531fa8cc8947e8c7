"""Right classes in many styles: none is accused of anything."""

import pytest

from tests.course.helpers import ADAM, EMA, LOOKAHEAD, MOMENTUM, TEXTS, changed, class_of, quick_check

RIGHT = [
    ("sgd", "a closure", '''
def sgd(learning_rate):
    class Rule:
        def step(self, params, grads):
            return [np.add(p, np.multiply(-learning_rate, g)) for p, g in zip(params, grads)]
    return Rule()
'''),
    ("sgd", "a tuple", "class S:\n    def __init__(self, learning_rate): self.a = learning_rate\n    def step(self, params, grads): return tuple(p - self.a * g for p, g in zip(params, grads))"),
    ("sgd", "map", "class S:\n    def __init__(self, learning_rate): self.a = learning_rate\n    def step(self, params, grads): return map(lambda p, g: p - self.a * g, params, grads)"),
    ("sgd", "copies changed in place", "class S:\n    def __init__(self, learning_rate): self.a = learning_rate\n    def step(self, params, grads):\n        new = [np.array(p, copy=True) for p in params]\n        for n, g in zip(new, grads): n -= self.a * g\n        return new"),
    ("momentum", "the rate in the velocity", '''
class M:
    def __init__(self, learning_rate, momentum=0.9):
        self.learning_rate, self.momentum, self.v = learning_rate, momentum, {}
    def step(self, params, grads):
        out = []
        for k, (p, g) in enumerate(zip(params, grads)):
            self.v[k] = self.momentum * self.v.get(k, 0.0) - self.learning_rate * g
            out.append(p + self.v[k])
        return out
'''),
    ("momentum", "a generator of states", '''
class M:
    def __init__(self, learning_rate, momentum=0.9):
        def run():
            params, grads = yield
            v = [0.0] * len(params)
            while True:
                v = [momentum * a + g for a, g in zip(v, grads)]
                params, grads = yield [p - learning_rate * a for p, a in zip(params, v)]
        self.run = run(); next(self.run)
    def step(self, params, grads):
        return self.run.send((params, grads))
'''),
    ("nesterov", "Sutskever's form of the velocity", '''
class N:
    def __init__(self, learning_rate, momentum=0.9):
        self.lr, self.mu, self.v = learning_rate, momentum, None
    def step(self, params, grads):
        old = self.v if self.v is not None else [0 * g for g in grads]
        self.v = [self.mu * v - self.lr * g for v, g in zip(old, grads)]
        return [p - self.mu * o + (1 + self.mu) * v for p, o, v in zip(params, old, self.v)]
'''),
    ("nesterov", "lists of numbers inside", '''
class N:
    def __init__(self, learning_rate, momentum=0.9):
        self.lr, self.mu, self.v = learning_rate, momentum, None
    def step(self, params, grads):
        if self.v is None:
            self.v = [[0.0] * p.size for p in params]
        out = []
        for i, (p, g) in enumerate(zip(params, grads)):
            flat, grad = list(p.ravel()), list(g.ravel())
            for j in range(len(flat)):
                self.v[i][j] = self.mu * self.v[i][j] + grad[j]
                flat[j] = flat[j] - self.lr * (grad[j] + self.mu * self.v[i][j])
            out.append(np.array(flat).reshape(p.shape))
        return out
'''),
    ("rmsprop", "reciprocal roots and a moving form", '''
class R:
    def __init__(self, learning_rate, rho=0.95, epsilon=1e-6):
        self.__dict__.update(locals()); self.s = []
    def step(self, params, grads):
        if not self.s: self.s = [np.zeros(np.shape(p)) for p in params]
        self.s = [s + (1 - self.rho) * (np.square(g) - s) for s, g in zip(self.s, grads)]
        return [p - self.learning_rate * g * (s + self.epsilon) ** -0.5 for p, g, s in zip(params, grads, self.s)]
'''),
    ("adam", "Kingma's faster form", changed(ADAM, ("self.lr * m_hat / (np.sqrt(v_hat) + self.eps)", "step * self.m[i] / (np.sqrt(self.v[i]) + self.eps * np.sqrt(1 - self.b2 ** self.t))"), ("self.t += 1", "self.t += 1\n        step = self.lr * np.sqrt(1 - self.b2 ** self.t) / (1 - self.b1 ** self.t)"))),
    ("adam", "products of betas, a moving form", '''
class A:
    def __init__(self, learning_rate=1e-3, beta1=0.9, beta2=0.999, epsilon=1e-8):
        self.h = learning_rate, beta1, beta2, epsilon
        self.powers = [1.0, 1.0]
        self.state = {}
    def step(self, params, grads):
        lr, b1, b2, eps = self.h
        self.powers = [self.powers[0] * b1, self.powers[1] * b2]
        result = []
        for key, (w, g) in enumerate(zip(params, grads)):
            m, v = self.state.setdefault(key, (np.zeros_like(w), np.zeros_like(w)))
            m = m + (1 - b1) * (g - m)
            v = v + (1 - b2) * (g * g - v)
            self.state[key] = (m, v)
            result.append(w - lr * (m / (1 - self.powers[0])) / (eps + (v / (1 - self.powers[1])) ** 0.5))
        return result
'''),
    ("adam", "weighted sums of all gradients", '''
class A:
    def __init__(self, learning_rate=1e-3, beta1=0.9, beta2=0.999, epsilon=1e-8):
        self.lr, self.b1, self.b2, self.e, self.all = learning_rate, beta1, beta2, epsilon, []
    def step(self, params, grads):
        self.all.append([g.copy() for g in grads])
        n = len(self.all)
        w1 = [self.b1 ** (n - 1 - j) for j in range(n)]
        w2 = [self.b2 ** (n - 1 - j) for j in range(n)]
        return [p - self.lr * (sum(w * g[i] for w, g in zip(w1, self.all)) / sum(w1))
                / (np.sqrt(sum(w * g[i] ** 2 for w, g in zip(w2, self.all)) / sum(w2)) + self.e)
                for i, p in enumerate(params)]
'''),
    ("adam", "moments changed in place, kept by the object", changed(ADAM, ("self.m[i] = self.b1 * self.m[i] + (1 - self.b1) * g", "self.m[i] *= self.b1; self.m[i] += (1 - self.b1) * g"), ("self.v[i] = self.b2 * self.v[i] + (1 - self.b2) * g ** 2", "self.v[i] *= self.b2; self.v[i] += (1 - self.b2) * g ** 2"))),
    ("adam", "a step number that starts at 1", changed(ADAM, ("self.t = 0", "self.t = 1"), ("self.t += 1", "pass"), ("        return out", "        self.t += 1\n        return out"))),
    ("adam", "a helper and a dataclass", '''
from dataclasses import dataclass, field
def ema(old, new, beta): return beta * old + (1 - beta) * new
@dataclass
class A:
    learning_rate: float = 1e-3
    beta1: float = 0.9
    beta2: float = 0.999
    epsilon: float = 1e-8
    moments: list = field(default_factory=list)
    t: int = 0
    def step(self, params, grads):
        self.t += 1
        self.moments = self.moments or [(0.0, 0.0) for _ in params]
        self.moments = [(ema(m, g, self.beta1), ema(v, g * g, self.beta2)) for (m, v), g in zip(self.moments, grads)]
        f1, f2 = 1 - self.beta1 ** self.t, 1 - self.beta2 ** self.t
        return [p - self.learning_rate * m / f1 / (np.sqrt(v / f2) + self.epsilon) for p, (m, v) in zip(params, self.moments)]
'''),
    ("adamw", "decay and step in one subtraction", changed(TEXTS["adamw"], ("p = p - self.lr * self.wd * p\n", "\n"), ("out.append(p - self.lr * m_hat / (np.sqrt(v_hat) + self.eps))", "out.append(p - self.lr * (m_hat / (np.sqrt(v_hat) + self.eps) + self.wd * p))"))),
    ("adamw", "a factor on the weights", changed(TEXTS["adamw"], ("p = p - self.lr * self.wd * p", "p = (1 - self.lr * self.wd) * p"))),
    ("lookahead", "a weighted mean, a countdown", '''
class L:
    def __init__(self, inner, alpha=0.5, k=5):
        self.inner, self.alpha, self.k, self.left, self.slow = inner, alpha, k, k, []
    def step(self, params, grads):
        self.slow = self.slow or [np.copy(p) for p in params]
        fast = self.inner.step(params, grads)
        self.left -= 1
        if self.left: return fast
        self.left = self.k
        self.slow = [(1 - self.alpha) * s + self.alpha * f for s, f in zip(self.slow, fast)]
        return [+s for s in self.slow]
'''),
    ("lookahead", "slow weights that are the arguments", changed(LOOKAHEAD, ("[p.copy() for p in params]", "params"), ("return [s.copy() for s in self.slow]", "return self.slow"))),
    ("ema", "a list of all weights", '''
class E:
    def __init__(self, decay=0.999): self.d, self.seen = decay, []
    def update(self, params): self.seen.append([np.copy(p) for p in params])
    def average(self):
        w = [self.d ** i for i in range(len(self.seen))][::-1]
        return [sum(a * s[i] for a, s in zip(w, self.seen)) / sum(w) for i in range(len(self.seen[0]))]
'''),
    ("ema", "a rate that falls", '''
class E:
    def __init__(self, decay=0.999): self.d, self.n, self.a = decay, 0, {}
    def update(self, params):
        self.n += 1
        rate = (1 - self.d) / (1 - self.d ** self.n)
        for i, p in enumerate(params): self.a[i] = self.a.get(i, 0 * p) + rate * (p - self.a.get(i, 0 * p))
    def average(self): return [np.array(a) for a in self.a.values()]
'''),
    ("momentum", "no copies", changed(MOMENTUM, ("np.zeros_like(p)", "0.0"))),
    ("ema", "the average of an average asked for", changed(EMA, ("self.avg = None", "self.avg = None; self.unused = {}"))),
]  # fmt: skip


@pytest.mark.parametrize("check", list(TEXTS))
def test_the_plain_class_passes(check):
    report = quick_check(check, class_of(TEXTS[check]))
    assert report.passed, str(report)
    assert (report.score, report.mistake, report.first_difference) == (1.0, None, None)


@pytest.mark.parametrize(
    ("check", "text"),
    [(check, text) for check, _, text in RIGHT],
    ids=[f"{check}: {style}" for check, style, _ in RIGHT],
)
@pytest.mark.parametrize("seed", [0, 7])
def test_a_right_class_passes_in_every_style(check, text, seed):
    report = quick_check(check, class_of(text), seed=seed)
    assert report.passed, str(report)
