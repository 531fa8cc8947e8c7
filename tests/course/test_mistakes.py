"""Classes with one mistake each, as students write them: the report names it."""

import pytest

from tests.course.helpers import TEXTS, changed, class_of, quick_check

M = "self.m[i] = self.b1 * self.m[i] + (1 - self.b1) * g"
V = "self.v[i] = self.b2 * self.v[i] + (1 - self.b2) * g ** 2"
MHAT = "m_hat = self.m[i] / (1 - self.b1 ** self.t)"
VHAT = "v_hat = self.v[i] / (1 - self.b2 ** self.t)"
AVG = "self.avg[i] = self.rho * self.avg.get(i, np.zeros(p.shape)) + (1 - self.rho) * g * g"
RMS = "new.append(p - self.lr * g / np.sqrt(self.avg[i] + self.eps))"
VEL = "self.v = [self.mu * v + g for v, g in zip(self.v, grads)]"
MOVE = "return [p - self.lr * v for p, v in zip(params, self.v)]"
NEST = "return [p - self.lr * (g + self.mu * v) for p, g, v in zip(params, grads, self.v)]"
SGD = "return [p - self.lr * g for p, g in zip(params, grads)]"
SYNC = "if self.steps % self.k == 0:"
SLOW = "self.slow = [s + self.alpha * (f - s) for s, f in zip(self.slow, fast)]"
INNER = "fast = self.inner.step(params, grads)"
TAKE = "self.avg = [self.decay * a + (1 - self.decay) * p for a, p in zip(self.avg, params)]"
GIVE = "return [a / (1 - self.decay ** self.n) for a in self.avg]"

WRONG = [
    # (check, mistake, pieces of the right text and what stands there instead)
    ("sgd", "wrong_sign", (SGD, SGD.replace("p -", "p +"))),
    ("sgd", "rate_ignored", (SGD, SGD.replace("self.lr", "0.01"))),
    ("sgd", "rate_ignored", (SGD, SGD.replace("self.lr * g", "g"))),
    ("sgd", "changed_in_place", (SGD, "for p, g in zip(params, grads):\n            p -= self.lr * g\n        return params")),
    ("sgd", "changed_in_place", (SGD, "for p, g in zip(params, grads):\n            np.subtract(p, self.lr * g, out=p)")),
    ("sgd", "gradient_twice", (SGD, SGD.replace("self.lr * g", "self.lr * (g + g)"))),
    ("sgd", "gradient_accumulated", ("self.lr = learning_rate", "self.lr, self.total = learning_rate, 0"), (SGD, "self.total = [t + g for t, g in zip(self.total or [0] * len(grads), grads)]\n        return [p - self.lr * t for p, t in zip(params, self.total)]")),
    ("sgd", "hidden_broadcast", (SGD, SGD.replace("* g ", "* g.reshape(-1, 1) "))),
    ("sgd", "hidden_broadcast", (SGD, SGD.replace("* g ", "* np.mean(g) "))),
    ("sgd", "wrong_shape", (SGD, SGD.replace("p - self.lr * g", "(p - self.lr * g).ravel()"))),
    ("sgd", "wrong_shape", (SGD, "return params[0] - self.lr * grads[0]")),
    ("sgd", "wrong_shape", (SGD, "new = [p - self.lr * g for p, g in zip(params, grads)]")),
    ("sgd", "raises", (SGD, "raise NotImplementedError('your code here')")),
    ("sgd", "raises", (SGD, "1 / 0")),
    ("momentum", "dampened_momentum", (VEL, VEL.replace("+ g", "+ (1 - self.mu) * g"))),
    ("momentum", "state_not_kept", (VEL, "self.v = [np.zeros_like(p) for p in params]\n        " + VEL)),
    ("momentum", "nesterov_order", (MOVE, NEST)),
    ("momentum", "hyperparameter_ignored", (VEL, VEL.replace("self.mu", "0.9"))),
    ("momentum", "wrong_sign", (MOVE, MOVE.replace("p -", "p +"))),
    ("momentum", "gradient_twice", (MOVE, "return [p - self.lr * (v + g) for p, v, g in zip(params, self.v, grads)]")),
    ("momentum", "shared_state", ("class Momentum:", "class Momentum:\n    kept = {}"), (VEL, "self.kept.update({i: self.mu * self.kept.get(i, 0) + g for i, g in enumerate(grads)})"), (MOVE, "return [p - self.lr * self.kept[i] for i, p in enumerate(params)]")),
    ("momentum", "shared_state", ("momentum=0.9)", "momentum=0.9, v=[])"), ("self.v = None", "self.v = v"), ("if self.v is None:\n            self.v = [np.zeros_like(p) for p in params]", "if not self.v:\n            self.v.extend(np.zeros_like(p) for p in params)"), (VEL, "for i, g in enumerate(grads):\n            self.v[i] = self.mu * self.v[i] + g")),
    ("momentum", "changed_in_place", ("self.v = [np.zeros_like(p) for p in params]", "self.v = grads\n            return [p - self.lr * g for p, g in zip(params, grads)]"), (VEL, "for v, g in zip(self.v, grads):\n            v *= self.mu\n            v += g")),
    ("momentum", "hidden_broadcast", (VEL, "w, moved = self.v[0], []\n        for g in grads:\n            w = self.mu * w + g\n            moved.append(w)\n        self.v = moved")),
    ("nesterov", "nesterov_order", (NEST, MOVE)),
    ("nesterov", "nesterov_order", (NEST, NEST.replace("self.mu * v)", "v)").replace("g + v", "v + self.mu * g"))),
    ("nesterov", "state_not_kept", (VEL, "self.v = [g for g in grads]")),
    ("nesterov", "rate_ignored", (NEST, NEST.replace("self.lr", "0.1"))),
    ("rmsprop", "epsilon_outside_root", (RMS, RMS.replace("np.sqrt(self.avg[i] + self.eps)", "(np.sqrt(self.avg[i]) + self.eps)"))),
    ("rmsprop", "missing_root", (RMS, RMS.replace("np.sqrt", ""))),
    ("rmsprop", "missing_square", (AVG, AVG.replace("g * g", "np.abs(g)"))),
    ("rmsprop", "gradient_accumulated", (AVG, AVG.replace("self.rho * self.avg", "self.avg").replace("(1 - self.rho) * ", ""))),
    ("rmsprop", "state_not_kept", (AVG, "self.avg[i] = (1 - self.rho) * g * g")),
    ("rmsprop", "averages_wrong_weights", (AVG, AVG.replace("self.rho * self", "(1 - self.rho) * self").replace("+ (1 - self.rho)", "+ self.rho"))),
    ("rmsprop", "hyperparameter_ignored", (RMS, RMS.replace("self.eps", "1e-6"))),
    ("rmsprop", "hidden_broadcast", (AVG, AVG.replace("g * g", "np.mean(g * g)"))),
    ("adam", "no_bias_correction", (MHAT, "m_hat = self.m[i]"), (VHAT, "v_hat = self.v[i]")),
    ("adam", "bias_correction_of_one_moment", (VHAT, "v_hat = self.v[i]")),
    ("adam", "bias_correction_of_one_moment", (MHAT, "m_hat = self.m[i]")),
    ("adam", "epsilon_inside_root", ("np.sqrt(v_hat) + self.eps", "np.sqrt(v_hat + self.eps)")),
    ("adam", "step_count_off_by_one", ("self.t = 0", "self.t = 1")),
    ("adam", "step_count_off_by_one", ("self.t += 1", "pass"), ("        return out", "        self.t += 1\n        return out")),
    ("adam", "step_count_off_by_one", ("self.t += 1", "pass"), (M, "self.t += 1\n            " + M)),
    ("adam", "step_count_off_by_one", ("self.t += 1", "pass"), ("        return out", "        self.t += 1\n        return out"), ("self.lr * m_hat", "self.lr * np.sqrt(1 - self.b2 ** self.t) / (1 - self.b1 ** self.t) * m_hat"), (MHAT, "m_hat = self.m[i]"), (VHAT, "v_hat = self.v[i]")),
    ("adam", "missing_square", (V, V.replace(" ** 2", ""))),
    ("adam", "missing_root", ("np.sqrt(v_hat)", "v_hat")),
    ("adam", "swapped_betas", ("self.b1, self.b2, self.eps = learning_rate, beta1, beta2", "self.b2, self.b1, self.eps = learning_rate, beta1, beta2")),
    ("adam", "wrong_sign", ("out.append(p -", "out.append(p +")),
    ("adam", "state_not_kept", ("if self.m is None", "if True")),
    ("adam", "shared_state", ("        self.m = None\n        self.v = None\n", ""), ("class Adam:", "class Adam:\n    m = v = None"), ("if self.m is None", "if Adam.m is None"), ("self.m = [", "Adam.m = ["), ("self.v = [", "Adam.v = [")),
    ("adam", "changed_in_place", (V, "g **= 2\n            self.v[i] = self.b2 * self.v[i] + (1 - self.b2) * g")),
    ("adam", "rate_ignored", ("self.lr *", "0.001 *")),
    ("adam", "hyperparameter_ignored", ("self.lr, self.b1, self.b2", "self.lr, self.b1, self.b2 = learning_rate, 0.9, beta2\n        _, _, _")),
    ("adam", "hyperparameter_ignored", ("+ self.eps", "+ 1e-8")),
    ("adam", "averages_wrong_weights", (M, M.replace("(1 - self.b1) * g", "g"))),
    ("adam", "hidden_broadcast", ("[np.zeros_like(p) for p in params]", "np.zeros(1)"), ("self.m[i]", "self.m"), ("self.v[i]", "self.v")),
    ("adam", "gradient_accumulated", (V, "self.v[i] = self.v[i] + g ** 2")),
    ("adam", "gradient_twice", ("self.t += 1", "self.t += 1\n        grads = [g + g for g in grads]")),
    ("adam", "wrong_shape", ("return out", "return np.concatenate([o.ravel() for o in out])")),
    ("adam", "raises", ("self.t += 1", "self.t += 1\n        if self.t == 4:\n            raise SystemExit")),
    ("adamw", "coupled_decay", ("p = p - self.lr * self.wd * p\n", "\n"), ("p, g = params[i], grads[i]", "p, g = params[i], grads[i] + self.wd * params[i]")),
    ("adamw", "decay_without_rate", ("self.lr * self.wd", "self.wd")),
    ("adamw", "hyperparameter_ignored", ("p = p - self.lr * self.wd * p", "pass")),
    ("adamw", "wrong_sign", ("p = p - self.lr * self.wd * p", "p = p + self.lr * self.wd * p")),
    ("adamw", "no_bias_correction", (MHAT, "m_hat = self.m[i]"), (VHAT, "v_hat = self.v[i]")),
    ("lookahead", "late_synchronisation", (SYNC, "if self.steps % (self.k + 1) == 0:")),
    ("lookahead", "late_synchronisation", (SYNC, "if self.steps > 1 and self.steps % self.k == 1:")),
    ("lookahead", "early_synchronisation", (INNER + "\n        self.steps += 1\n        " + SYNC, INNER + "\n        self.steps += 1\n        if (self.steps - 1) % self.k == 0:")),
    ("lookahead", "slow_weights_not_started", ("p.copy() for p in params", "np.zeros_like(p) for p in params")),
    ("lookahead", "fast_not_reset", ("return [s.copy() for s in self.slow]\n", "pass\n")),
    ("lookahead", "fast_not_reset", ("self.slow = None", "self.slow = self.fast = None"), (INNER, "self.fast = fast = self.inner.step(self.fast or params, grads)")),
    ("lookahead", "averages_wrong_weights", (SLOW, SLOW.replace("s + self.alpha * (f - s)", "self.alpha * s + (1 - self.alpha) * f"))),
    ("lookahead", "hyperparameter_ignored", (SLOW, SLOW.replace("self.alpha", "0.5"))),
    ("lookahead", "hyperparameter_ignored", (SYNC, SYNC.replace("self.k", "5"))),
    ("lookahead", "gradient_twice", (INNER, INNER + "\n        fast = self.inner.step(fast, grads)")),
    ("ema", "no_bias_correction", (GIVE, "return [a.copy() for a in self.avg]")),
    ("ema", "averages_wrong_weights", (TAKE, TAKE.replace("self.decay * a + (1 - self.decay) * p", "(1 - self.decay) * a + self.decay * p"))),
    ("ema", "step_count_off_by_one", ("self.n = 0", "self.n = 1")),
    ("ema", "hyperparameter_ignored", (TAKE, TAKE.replace("self.decay * a + (1 - self.decay) * p", "0.9 * a + 0.1 * p")), (GIVE, GIVE.replace("self.decay", "0.9"))),
    ("ema", "changed_in_place", ("self.avg = [np.zeros_like(p) for p in params]", "self.avg = [np.zeros_like(p) for p in params]\n            self.out = [np.zeros_like(p) for p in params]"), (GIVE, "for o, a in zip(self.out, self.avg):\n            o[...] = a / (1 - self.decay ** self.n)\n        return self.out")),
    ("ema", "state_not_kept", ("if self.avg is None:", "if True:")),
]  # fmt: skip


@pytest.mark.parametrize(
    ("check", "mistake", "changes"),
    [(check, mistake, changes) for check, mistake, *changes in WRONG],
    ids=[f"{check}-{mistake}-{i}" for i, (check, mistake, *_) in enumerate(WRONG)],
)
def test_a_mistake_is_named(check, mistake, changes):
    report = quick_check(check, class_of(changed(TEXTS[check], *changes)))
    assert not report.passed
    assert report.mistake == mistake, str(report)
    assert report.score < 1
    assert report.message
