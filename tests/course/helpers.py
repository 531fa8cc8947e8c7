"""Students' classes as text, and a student's process as a thread: quick enough for many classes."""

import os
import threading
from pathlib import Path

import numpy as np

from optlab.course.catalogue import CHECKS
from optlab.course.checking import packed
from optlab.course.judging import judge
from optlab.course.student_process import Student
from optlab.course.students import StudentTarget


class _Thread:
    """What `StudentTarget` asks of a process, of a thread of this one."""

    def __init__(self, made):
        to_student, requests = os.pipe()
        replies, from_student = os.pipe()
        self.stdin, self.stdout = os.fdopen(requests, "wb"), os.fdopen(replies, "rb")
        self.ends = os.fdopen(to_student, "rb"), os.fdopen(from_student, "wb")
        self.student = Student(*self.ends)
        self.student.made = made
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        with np.errstate(all="ignore"):  # in a process of its own, no one reads warnings
            self.student.serve()

    def wait(self, seconds=None):
        self.thread.join(seconds)
        for end in self.ends:
            end.close()


class InThread(StudentTarget):
    """A student's class behind the same messages, without the start of a process."""

    def __init__(self, made):
        super().__init__()
        self.made = made

    def _start(self):
        self._timer = None
        self.process = _Thread(self.made)

    def _clock(self, seconds):
        """A class of a test that hangs is left to pytest."""

    def stop(self):
        if self.process is not None:
            self.process.stdin.close()
            self.process.wait()
            self.process.stdout.close()
            self.process = None


def quick_check(name, made, **options):
    """Return what `ol.course.check` reports, from a thread."""
    with InThread(made) as target:
        return judge(CHECKS[name], target, **options)


def process_check(name, made, **options):
    """Return what `ol.course.check` reports: a process for the class, none for the judge."""
    with StudentTarget(packed(made)) as target:
        return judge(CHECKS[name], target, **options)


def entries(name):
    """Return check, title and body of the entries of a file of students' classes."""
    text = Path(__file__).with_name(name).read_text(encoding="utf-8")
    found = [entry.partition("\n") for entry in text.split("\n== ")[1:]]
    return [(*head.split(" ", 1), body) for head, _, body in found]


def changes(body):
    """Return pairs of old and new text."""
    pieces = []
    for line in body.splitlines():
        if line[:1] in "-+":
            pieces.append(line[2:])
        elif line:
            pieces[-1] += "\n" + line[2:]
    return list(zip(pieces[::2], pieces[1::2], strict=True))


def class_of(text):
    """Return the last class (or function) that a text defines."""
    names = {"np": np}
    exec(text, names)
    return [thing for name, thing in names.items() if callable(thing) and name != "np"][-1]


def changed(text, *changes):
    """Return a text with pieces replaced; each must be there."""
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return text


def solutions(cells, *pieces):
    """Return the solutions of an assignment by their cells' names, each piece changed in one."""
    answers = {}
    for cell in cells:
        marks = cell.metadata.get("nbgrader", {})
        if marks.get("solution"):
            lines = cell.source.splitlines()
            kept = [line for line in lines if not line.lstrip().startswith("### ")]
            answers[marks["grade_id"]] = "\n".join(kept)
    for old, new in pieces:
        [name] = [name for name, text in answers.items() if old in text]
        answers[name] = answers[name].replace(old, new)
    return answers


ADAM = """
class Adam:
    def __init__(self, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8):
        self.lr, self.b1, self.b2, self.eps = learning_rate, beta1, beta2, epsilon
        self.t = 0
        self.m = None
        self.v = None

    def step(self, params, grads):
        if self.m is None:
            self.m = [np.zeros_like(p) for p in params]
            self.v = [np.zeros_like(p) for p in params]
        self.t += 1
        out = []
        for i in range(len(params)):
            p, g = params[i], grads[i]
            self.m[i] = self.b1 * self.m[i] + (1 - self.b1) * g
            self.v[i] = self.b2 * self.v[i] + (1 - self.b2) * g ** 2
            m_hat = self.m[i] / (1 - self.b1 ** self.t)
            v_hat = self.v[i] / (1 - self.b2 ** self.t)
            out.append(p - self.lr * m_hat / (np.sqrt(v_hat) + self.eps))
        return out
"""

ADAMW = changed(
    ADAM,
    ("class Adam", "class AdamW"),
    ("epsilon=1e-8)", "epsilon=1e-8, weight_decay=0.01)"),
    ("self.t = 0", "self.t = 0\n        self.wd = weight_decay"),
    ("out.append(p - ", "p = p - self.lr * self.wd * p\n            out.append(p - "),
)

RMSPROP = """
class RMSProp:
    def __init__(self, learning_rate, rho=0.95, epsilon=1e-6):
        self.lr, self.rho, self.eps = learning_rate, rho, epsilon
        self.avg = {}

    def step(self, params, grads):
        new = []
        for i, (p, g) in enumerate(zip(params, grads)):
            self.avg[i] = self.rho * self.avg.get(i, np.zeros(p.shape)) + (1 - self.rho) * g * g
            new.append(p - self.lr * g / np.sqrt(self.avg[i] + self.eps))
        return new
"""

SGD = """
class SGD:
    def __init__(self, learning_rate):
        self.lr = learning_rate

    def step(self, params, grads):
        return [p - self.lr * g for p, g in zip(params, grads)]
"""

MOMENTUM = """
class Momentum:
    def __init__(self, learning_rate, momentum=0.9):
        self.lr, self.mu = learning_rate, momentum
        self.v = None

    def step(self, params, grads):
        if self.v is None:
            self.v = [np.zeros_like(p) for p in params]
        self.v = [self.mu * v + g for v, g in zip(self.v, grads)]
        return [p - self.lr * v for p, v in zip(params, self.v)]
"""

NESTEROV = changed(
    MOMENTUM,
    (
        "return [p - self.lr * v for p, v in zip(params, self.v)]",
        "return [p - self.lr * (g + self.mu * v) for p, g, v in zip(params, grads, self.v)]",
    ),
)

LOOKAHEAD = """
class LookAhead:
    def __init__(self, inner, alpha=0.5, k=5):
        self.inner, self.alpha, self.k = inner, alpha, k
        self.steps = 0
        self.slow = None

    def step(self, params, grads):
        if self.slow is None:
            self.slow = [p.copy() for p in params]
        fast = self.inner.step(params, grads)
        self.steps += 1
        if self.steps % self.k == 0:
            self.slow = [s + self.alpha * (f - s) for s, f in zip(self.slow, fast)]
            return [s.copy() for s in self.slow]
        return fast
"""

EMA = """
class EMA:
    def __init__(self, decay=0.999):
        self.decay = decay
        self.n = 0
        self.avg = None

    def update(self, params):
        if self.avg is None:
            self.avg = [np.zeros_like(p) for p in params]
        self.n += 1
        self.avg = [self.decay * a + (1 - self.decay) * p for a, p in zip(self.avg, params)]

    def average(self):
        return [a / (1 - self.decay ** self.n) for a in self.avg]
"""

TEXTS = {
    "sgd": SGD, "momentum": MOMENTUM, "nesterov": NESTEROV, "rmsprop": RMSPROP, "adam": ADAM,
    "adamw": ADAMW, "lookahead": LOOKAHEAD, "ema": EMA,
}  # fmt: skip
