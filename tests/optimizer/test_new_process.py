"""Resuming in a new process, from a file, with the parameters in another order, bitwise equal.

Every class with a state is a case; one process resumes them all.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import optlab as ol
from tests.optimizer.helpers import EACH, random
from tests.optimizer.schedules import PLATEAUS, SETTINGS, make
from tests.optimizer.test_wrapper_states import WRAP

O = ol.optimizer  # noqa: E741
HALF = 4


def network_weights():
    return [
        ol.Parameter(random(3, 2, seed=1, dtype="float32"), name="a.weight"),
        ol.Parameter(random(2, seed=2, dtype="float32"), name="a.bias"),
        ol.Parameter(random(2, 2, seed=3, dtype="float32"), name="b.weight"),
    ]


def half_weights():
    return [ol.Parameter(p.numpy().astype("float16"), name=p.name) for p in network_weights()]


def ensemble_weights():
    return [
        ol.Parameter(ol.ensemble(random(4, 3, seed=1)), name="a"),
        ol.Parameter(ol.ensemble(random(4, 2, 2, seed=2)), name="b"),
    ]


def rates():
    return ol.ensemble(np.array([0.01, 0.02, 0.05, 0.1]))


#: Case -> constructors of its parameters, and of its optimizer for them.
CASES = {
    **{
        name: (network_weights, lambda ps, one=one: one(parameters=ps))
        for name, one in EACH.items()
    },
    **{
        f"{name}, float16": (
            half_weights,
            lambda ps, name=name: EACH[name](parameters=ps, multi_precision=True),
        )
        for name in ("Momentum", "Adam", "Lamb")
    },
    "LBFGS": (network_weights, lambda ps: O.LBFGS(0.1, max_iter=3, parameters=ps)),
    "LBFGS, strong Wolfe": (
        network_weights,
        lambda ps: O.LBFGS(0.5, max_iter=2, line_search_fn="strong_wolfe", parameters=ps),
    ),
    **{
        f"clipped, {dtype}": (
            lambda dtype=dtype: [
                ol.Parameter(random(7, seed=i, dtype=dtype), name=f"p{i}") for i in range(5)
            ],
            lambda ps: O.Momentum(
                0.1, parameters=ps, grad_clip=ol.nn.ClipGradByGlobalNorm(1.0), weight_decay=0.1
            ),
        )
        for dtype in ("float32", "float64")
    },
    "RecomputeOptimizer": (
        network_weights,
        lambda ps: O.RecomputeOptimizer(O.LookAhead(O.Adam(0.1, parameters=ps), k=3)),
    ),
    "SAM": (network_weights, lambda ps: O.SAM(O.Adam(0.1, parameters=ps), rho=0.1)),
    "Dpsgd that draws": (network_weights, lambda ps: O.Dpsgd(0.1, sigma=1.0, parameters=ps)),
    **{
        f"{name}, {inner}": (
            network_weights,
            lambda ps, wrap=wrap, inner=inner: wrap(EACH[inner](parameters=ps)),
        )
        for name, wrap in WRAP.items()
        for inner in ("Momentum", "AdamW")
    },
    **{
        f"{name}, ensemble": (
            ensemble_weights,
            lambda ps, wrap=wrap: wrap(O.Adam(rates(), parameters=ps)),
        )
        for name, wrap in {"none": lambda inner: inner, **WRAP}.items()
    },
    **{
        f"{case['class']} {number}": (
            network_weights,
            lambda ps, case=case: O.Momentum(make(O.lr, case), parameters=ps),
        )
        for number, case in enumerate([*SETTINGS, *PLATEAUS])
    },
}


def train(parameters, optimizer, start, stop):
    for t in range(start, stop):

        def closure(t=t):
            optimizer.clear_grad()
            loss = sum(
                ((p - random(*p.shape, seed=10 * t, dtype=str(p.dtype))) ** 2).sum()
                for p in parameters
            )
            loss.backward()
            return loss

        if getattr(optimizer, "needs_closure", False):
            optimizer.step(closure)
        else:
            closure()
            optimizer.step()
        if isinstance(optimizer.schedule, O.lr.ReduceOnPlateau):
            optimizer.schedule.step(1.0 + 0.1 * (t % 3))
        elif optimizer.schedule is not None:
            optimizer.schedule.step()


def values(parameters, optimizer):
    """Return the weights, the learning rate and the applied averages."""
    found = {p.name: _stacked(p) for p in parameters}
    if optimizer.schedule is not None:
        found["rate"] = np.asarray(optimizer.get_lr())
    if hasattr(optimizer, "apply"):
        with optimizer.apply():
            found |= {f"average {p.name}": _stacked(p) for p in parameters}
    return found


def _stacked(p):
    return np.array(getattr(p.data, "members", p.data))


def resume(states, results):
    """Resume all cases, train, and save the results: the program of the new process."""
    state = ol.load(states)
    found = {}
    for number, (name, (weights, wrap)) in enumerate(CASES.items()):
        parameters = weights()
        by_name = {p.name: p for p in parameters}
        for key, value in state[name]["weights"].items():
            p = by_name[key]
            p.set_value(ol.ensemble(value.numpy()) if "ensemble" in name else value)
        optimizer = wrap(parameters[::-1])
        optimizer.set_state_dict(state[name]["optimizer"])
        train(parameters, optimizer, HALF, 2 * HALF)
        found |= {f"{number} {key}": value for key, value in values(parameters, optimizer).items()}
    np.savez(results, **found)


@pytest.fixture(scope="module")
def resumed(tmp_path_factory):
    folder = tmp_path_factory.mktemp("states")
    states, results = folder / "states", folder / "results.npz"
    saved, expected = {}, {}
    for name, (weights, wrap) in CASES.items():
        ol.seed(7)
        parameters = weights()
        optimizer = wrap(parameters)
        train(parameters, optimizer, 0, HALF)
        saved[name] = {
            "weights": {p.name: ol.to_tensor(_stacked(p)) for p in parameters},
            "optimizer": optimizer.state_dict(),
        }
        train(parameters, optimizer, HALF, 2 * HALF)
        expected[name] = values(parameters, optimizer)
    ol.save(saved, states)
    script = (
        "import sys; from tests.optimizer.test_new_process import resume; resume(*sys.argv[1:])"
    )
    root = Path(__file__).parents[2]
    subprocess.run([sys.executable, "-c", script, states, results], check=True, cwd=root)
    with np.load(results) as found:
        return expected, dict(found)


@pytest.mark.parametrize(("number", "name"), list(enumerate(CASES)), ids=list(CASES))
def test_a_resumed_run_equals_an_unbroken_one(number, name, resumed):
    expected, found = resumed
    for key, value in expected[name].items():
        np.testing.assert_array_equal(found[f"{number} {key}"], value)
        assert np.isfinite(value).all()


def test_every_class_is_a_case():
    """Classes added to the package must be added here."""
    made = {type(wrap(weights())).__name__ for weights, wrap in CASES.values()}
    rules = {
        name
        for name in O.__all__
        if isinstance(getattr(O, name), type) and issubclass(getattr(O, name), O.Optimizer)
    }
    # Those of many ranks or workers resume in tests/parallel.
    elsewhere = {"Optimizer", "DGCMomentum", "PipelineOptimizer"}
    assert made == rules - elsewhere | {"AdamOptimizer", "LambOptimizer"}
    schedules = {case["class"] for case in [*SETTINGS, *PLATEAUS]}
    of_package = {
        name
        for name in O.lr.__all__
        if isinstance(getattr(O.lr, name), type)
        and issubclass(getattr(O.lr, name), O.lr.LRScheduler)
    }
    assert schedules == of_package - {"LRScheduler"}
