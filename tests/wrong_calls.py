"""Random calls with wrong arguments, of every public callable: the same ones for the same seed.

``python -m tests.wrong_calls 20000`` makes that many and prints what they raised but should not.
"""

from __future__ import annotations

import collections
import contextlib
import inspect
import io
import os
import random
import signal
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import optlab as ol
from tests.nn.valid_calls import CALLS, LAYERS

#: Not called: they open pages, look at the machine, run experiments, or change what is shared.
LEFT_OUT = {
    "doctor", "explore", "compare", "sweep", "record", "set_device", "set_rng_state",
    "set_cuda_rng_state", "random_scope", "disable_static", "rematerialize", "seed",
}  # fmt: skip
PACKAGES = {
    "ol": ol,
    "ol.nn": ol.nn,
    "ol.nn.functional": ol.nn.functional,
    "ol.nn.initializer": ol.nn.initializer,
    "ol.nn.utils": ol.nn.utils,
    "ol.optimizer": ol.optimizer,
    "ol.optimizer.lr": ol.optimizer.lr,
    "ol.regularizer": ol.regularizer,
    "ol.io": ol.io,
}


def callables() -> dict[str, Callable[..., Any]]:
    """Return the public callables of optlab by their names; NumPy's own are NumPy's."""
    found = {}
    for package, module in PACKAGES.items():
        for name in sorted(module.__all__):
            thing = getattr(module, name)
            ours = getattr(thing, "__module__", "").startswith("optlab")
            if callable(thing) and ours and name not in LEFT_OUT:
                found[f"{package}.{name}"] = thing
    return found


def _layer() -> Any:
    return ol.nn.Linear(3, 2)


#: Makers of arguments. Some are right in some places: calls then get further inside.
VALUES: tuple[Callable[[], Any], ...] = (
    lambda: None,
    lambda: "a",
    lambda: "",
    lambda: b"x",
    lambda: -1,
    lambda: 0,
    lambda: 1,
    lambda: 2,
    lambda: 7,
    lambda: 10**30,
    lambda: -(10**30),
    lambda: 0.5,
    lambda: -0.5,
    lambda: float("nan"),
    lambda: float("inf"),
    lambda: 1e308,
    lambda: 2j,
    lambda: True,
    lambda: (),
    list,
    lambda: [[]],
    lambda: [1, [2, 3]],
    lambda: [1, 2, 3],
    lambda: (2, 2),
    lambda: [None, "a"],
    dict,
    lambda: {"a": 1},
    lambda: {1, 2},
    object,
    lambda: int,
    lambda: len,
    lambda: np.sin,
    lambda: range(3),
    lambda: np.array([]),
    lambda: np.zeros((0, 3)),
    lambda: np.array(1.5),
    lambda: np.ones(3),
    lambda: np.ones((2, 3)),
    lambda: np.ones((2, 3, 4)),
    lambda: np.ones((1, 2, 4, 4), np.float32),
    lambda: np.ones((1, 1, 2, 2, 2)),
    lambda: np.array(["a", "b"]),
    lambda: np.array([None, 1], dtype=object),
    lambda: np.array([1 + 2j]),
    lambda: np.array([0, 5, -7]),
    lambda: np.datetime64("2020-01-01"),
    lambda: ol.to_tensor(2.0),
    lambda: ol.to_tensor([1, 2]),
    lambda: ol.to_tensor([[1.0, 2.0, 3.0]]),
    lambda: ol.to_tensor([1.0, float("nan")], requires_grad=True),
    lambda: ol.zeros([0]),
    lambda: ol.Parameter([1.0, 2.0]),
    lambda: [ol.Parameter([1.0])],
    _layer,
    lambda: _layer().parameters(),
    lambda: ol.optimizer.SGD(0.1),
    lambda: ol.optimizer.lr.StepDecay(0.1, step_size=2),
    lambda: ol.nn.initializer.Constant(1.0),
    lambda: ol.nn.ClipGradByNorm(1.0),
)


class Call:
    """One call: a callable, and the makers of its arguments."""

    def __init__(self, name: str, function: Any, by_position: list[Any], by_name: Any) -> None:
        self.name, self.function = name, function
        self.by_position, self.by_name = by_position, by_name

    def __call__(self) -> Any:
        """Make the arguments and call; what is called gives is called no further."""
        args = [make() for make in self.by_position]
        return self.function(*args, **{name: make() for name, make in self.by_name.items()})

    def __repr__(self) -> str:
        with contextlib.suppress(Exception):
            args = [repr(make()) for make in self.by_position]
            args += [f"{name}={make()!r}" for name, make in self.by_name.items()]
            return f"{self.name}({', '.join(args)})"
        return self.name


#: Arguments of the rest with which the calls are right; one of them is then replaced.
_RIGHT: dict[str, dict[str, Callable[[], Any]]] = {
    "ol.nn.utils.clip_grad_norm_": {
        "parameters": lambda: [_with_gradient()], "max_norm": lambda: 1.0, "norm_type": lambda: 2.0
    },
    "ol.nn.utils.clip_grad_value_": {
        "parameters": lambda: [_with_gradient()], "clip_value": lambda: 1.0
    },
    "ol.nn.utils.from_torch": {"layer": _layer, "state_dict": dict, "strict": lambda: True},
    "ol.nn.utils.weight_norm": {"layer": _layer, "name": lambda: "weight", "dim": lambda: 0},
    "ol.nn.utils.spectral_norm": {"layer": _layer, "name": lambda: "weight"},
    "ol.nn.utils.remove_weight_norm": {"layer": lambda: ol.nn.utils.weight_norm(_layer())},
    "ol.nn.utils.vector_to_parameters": {
        "vec": lambda: np.ones(2), "parameters": lambda: [ol.Parameter([1.0, 2.0])]
    },
    "ol.nn.create_parameter": {"shape": lambda: [2, 3], "dtype": lambda: "float32"},
    "ol.grad": {"f": lambda: np.sum, "argnums": lambda: 0},
    "ol.vjp": {"f": lambda: np.sin, "args": lambda: 1.0},
    "ol.jvp": {"f": lambda: np.sin, "args": lambda: (1.0,), "tangents": lambda: (1.0,)},
    "ol.hvp": {"f": lambda: np.sum, "x": lambda: np.ones(2), "v": lambda: np.ones(2)},
    "ol.recompute": {"function": lambda: np.sin, "args": lambda: ol.to_tensor(1.0)},
    "ol.uniform": {"shape": lambda: [2], "min": lambda: 0.0, "max": lambda: 1.0},
    "ol.normal": {"mean": lambda: 0.0, "std": lambda: 1.0, "shape": lambda: [2]},
    "ol.randint": {"low": lambda: 0, "high": lambda: 5, "shape": lambda: [2]},
    "ol.multinomial": {"x": lambda: np.ones(3), "num_samples": lambda: 2},
    "ol.full": {"shape": lambda: [2], "fill_value": lambda: 1.0},
    "ol.mean": {"x": lambda: np.ones((2, 3)), "axis": lambda: 0, "keepdim": lambda: True},
    "ol.ensemble": {"data": lambda: np.ones((2, 3)), "axis": lambda: 0},
    "ol.members": {"x": lambda: ol.ensemble(np.ones((2, 3))), "axis": lambda: 0},
    "ol.io.DataLoader": {
        "dataset": lambda: ol.io.TensorDataset([np.ones((4, 2))]), "batch_size": lambda: 2
    },
    "ol.io.TensorDataset": {"tensors": lambda: [np.ones((4, 2))]},
    "ol.io.BatchSampler": {"dataset": lambda: range(4), "batch_size": lambda: 2},
    "ol.io.RandomSampler": {"data_source": lambda: range(4)},
    "ol.io.WeightedRandomSampler": {"weights": lambda: np.ones(3), "num_samples": lambda: 2},
    "ol.io.random_split": {"dataset": lambda: range(4), "lengths": lambda: [2, 2]},
    "ol.io.save": {"obj": lambda: {"a": np.ones(2)}, "path": lambda: "file.npz"},
    "ol.optimizer.LookAhead": {"inner_optimizer": lambda: ol.optimizer.SGD(0.1)},
    "ol.optimizer.ExponentialMovingAverage": {"parameters": lambda: [ol.Parameter([1.0])]},
}  # fmt: skip


def _with_gradient() -> Any:
    w = ol.Parameter([1.0, 2.0])
    w.grad = np.ones(2, np.float32)
    return w


def _right(name: str, function: Any) -> dict[str, Callable[[], Any]]:
    """Return arguments by name with which a call is right, if some are known."""
    last = name.rpartition(".")[2]
    if name in _RIGHT:
        return dict(_RIGHT[name])
    if function is getattr(ol.nn.functional, last, None) and last in CALLS:
        return {key: (lambda value=value: value) for key, value in CALLS[last].items()}
    if function is getattr(ol.nn, last, None) and last in LAYERS:
        return {key: (lambda value=value: value) for key, value in LAYERS[last][0].items()}
    if name.startswith("ol.optimizer.") and getattr(function, "hyperparameters", None):
        return {"learning_rate": lambda: 0.1, "parameters": lambda: [ol.Parameter([[1.0, 2.0]])]}
    return {}


def _settled(known: list[inspect.Parameter], right: dict[str, Any]) -> tuple[list[Any], Any]:
    """Return arguments by position and by name."""
    by_position, by_name = [], dict(right)
    for one in known:
        if one.name not in by_name or one.kind is one.KEYWORD_ONLY:
            break
        by_position.append(by_name.pop(one.name))
    return by_position, by_name


def calls(count: int, seed: int = 0, only: str = "") -> Iterator[Call]:
    """Yield random calls, as many of each callable: all arguments random, or one of right ones."""
    every = [(name, f) for name, f in callables().items() if only in name]
    for number in range(count):
        name, function = every[number % len(every)]
        draw = random.Random(f"{seed} {name} {number // len(every)}")  # whatever else is called
        try:
            known = list(inspect.signature(function).parameters.values())
        except (TypeError, ValueError):
            known = []
        right = _right(name, function)
        if right and draw.random() < 0.7:
            names = [one.name for one in known if one.kind is not one.VAR_KEYWORD]
            for changed in draw.sample(names, min(len(names), draw.choice((1, 1, 2)))):
                right[changed] = draw.choice(VALUES)
            yield Call(name, function, *_settled(known, right))
            continue
        by_position, by_name = [], {}
        for one in known:
            if one.kind is one.VAR_POSITIONAL:
                by_position += [draw.choice(VALUES) for _ in range(draw.randrange(3))]
            elif one.kind is one.VAR_KEYWORD:
                continue
            elif one.default is one.empty and not by_name:
                by_position.append(draw.choice(VALUES))
            elif draw.random() < 1.5 / len(known):
                by_name[one.name] = draw.choice(VALUES)
        yield Call(name, function, by_position, by_name)


#: What wrong arguments may raise: OSError for paths, MemoryError for sizes; NotImplementedError
#: where a base class is used in place of a class.
EXPECTED = (ValueError, TypeError, OSError, MemoryError, NotImplementedError)

#: What else is documented.
DOCUMENTED = {"ol.nn.functional.embedding": IndexError}


@contextlib.contextmanager
def quiet_place() -> Iterator[None]:
    """Run in a folder of its own, without warnings and output."""
    before = os.getcwd()
    with (
        tempfile.TemporaryDirectory() as folder,
        warnings.catch_warnings(),
        np.errstate(all="ignore"),
    ):
        warnings.simplefilter("ignore")
        os.chdir(folder)
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                yield
        finally:
            os.chdir(before)


@contextlib.contextmanager
def _time_limit(seconds: float) -> Iterator[None]:
    """Raise InterruptedError in a call that takes longer, where the system has signals for it."""

    def alarm(*_: Any) -> None:
        raise InterruptedError("too slow")

    if not hasattr(signal, "setitimer"):
        yield
        return
    before = signal.signal(signal.SIGALRM, alarm)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def unexpected(call: Call) -> Exception | None:
    """Make a call; return its error if that is none of the expected ones, or says nothing."""
    try:
        with _time_limit(10.0):
            call()
    except InterruptedError as error:
        return error
    except EXPECTED as error:
        return None if str(error) else error
    except Exception as error:  # noqa: BLE001 (that is what is looked for)
        return None if isinstance(error, DOCUMENTED.get(call.name, ())) else error
    return None


def main(count: int = 1000, seed: int = 0, only: str = "") -> None:
    """Make calls and print what was unexpected, most frequent first."""
    found: collections.Counter[str] = collections.Counter()
    first: dict[str, str] = {}
    with quiet_place():
        for call in calls(count, seed, only):
            error = unexpected(call)
            if error is not None:
                key = f"{call.name}: {type(error).__name__}: {str(error)[:90]}"
                found[key] += 1
                first.setdefault(key, repr(call)[:200])
    for key, times in found.most_common():
        sys.stderr.write(f"{times:5}  {key}\n         {first[key]}\n")
    sys.stderr.write(f"{sum(found.values())} of {count}\n")


if __name__ == "__main__":
    main(*[int(given) if given.isdigit() else given for given in sys.argv[1:]])  # type: ignore[arg-type]
