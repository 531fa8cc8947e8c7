"""Sweeps of a network's training: each member equals its own run."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import optlab as ol
from optlab.lab.problems.networks import Network

pytest.importorskip("sklearn", reason="the digits are in scikit-learn")

STEPS = 12


def own_run(problem: Any, optimizer: Any, steps: int = STEPS, seed: int = 0) -> dict[str, Any]:
    """Train by a plain loop."""
    run = problem.run(seed=seed)
    optimizer = optimizer.bind(run.parameters)
    losses = np.full(steps, np.nan)
    stopped = -1
    with np.errstate(all="ignore"):
        for step in range(steps):
            losses[step] = run.backward(step)
            if not np.isfinite(losses[step]):
                stopped = step
                break
            optimizer.step()
            if optimizer.schedule is not None:
                optimizer.schedule.step()
        return {
            "loss": losses,
            "final": run.loss(),
            "accuracy": run.accuracy,
            "stopped": stopped,
            "parameters": {name: p.numpy() for name, p in run.model.named_parameters()},
        }


def assert_same_run(sweep: Any, place: tuple[int, ...], own: dict[str, Any]) -> None:
    """Compare to the bit: NumPy computes the products of a stack as single ones."""
    np.testing.assert_array_equal(sweep.loss[place], own["loss"])
    assert sweep.stopped[place] == own["stopped"]
    assert sweep.accuracy[place] == own["accuracy"]
    assert sweep.final_loss[place] == (np.inf if own["stopped"] >= 0 else own["final"])
    for name, values in own["parameters"].items():
        np.testing.assert_array_equal(sweep.parameters[name][place], values)


RULES = {
    "Adam": ol.optimizer.Adam,
    "SGD": ol.optimizer.SGD,
    "Momentum": ol.optimizer.Momentum,
    "RMSProp": ol.optimizer.RMSProp,
    "AdamW": ol.optimizer.AdamW,
    "RAdam": ol.optimizer.RAdam,
    "Lamb": ol.optimizer.Lamb,
    "Muon": ol.optimizer.Muon,
}


@pytest.mark.parametrize("name", RULES)
def test_members_are_runs_of_their_own_to_the_bit(name: str) -> None:
    problem = ol.problems.digits_mlp(hidden=16)
    rates = [0.001, 0.02, 0.5]
    sweep = ol.sweep(problem, RULES[name], {"learning_rate": rates}, steps=STEPS)
    assert sweep.execution == "3 runs together, as an ensemble of batched products"
    assert sweep.loss.shape == (3, STEPS)
    for k, rate in enumerate(rates):
        assert_same_run(sweep, (k,), own_run(problem, RULES[name](rate)))


def test_several_settings_of_which_some_choose_the_form_of_the_rule() -> None:
    problem = ol.problems.digits_mlp(hidden=16)
    settings = {"learning_rate": [0.001, 0.1], "amsgrad": [False, True], "beta2": [0.9, 0.999]}
    sweep = ol.sweep(problem, ol.optimizer.Adam, settings, steps=STEPS, seed=3)
    assert sweep.execution == "4 runs together, as an ensemble of batched products"
    assert sweep.loss.shape == (2, 2, 2, STEPS)
    for place in np.ndindex(2, 2, 2):
        chosen = {
            name: values[i] for (name, values), i in zip(settings.items(), place, strict=True)
        }
        assert_same_run(sweep, place, own_run(problem, ol.optimizer.Adam(**chosen), seed=3))


def test_enough_members_are_updated_in_place_to_the_same_bits() -> None:
    problem = ol.problems.digits_mlp(hidden=16)
    rates = np.geomspace(1e-4, 1.0, 40).tolist()
    for make, more in (
        (ol.optimizer.Adam, {}),
        (ol.optimizer.Adam, {"weight_decay": [0.01], "grad_clip": [ol.nn.ClipGradByGlobalNorm(1)]}),
        (ol.optimizer.Adadelta, {"epsilon": [1e-3]}),
    ):
        sweep = ol.sweep(problem, make, {"learning_rate": rates, **more}, steps=4)
        fixed = {name: values[0] for name, values in more.items()}
        for k in (0, 17, 39):
            own = own_run(problem, make(learning_rate=rates[k], **fixed), steps=4)
            assert_same_run(sweep, (k, *[0] * len(more)), own)


def test_a_run_that_diverges_ends_and_the_others_go_on() -> None:
    problem = ol.problems.digits_mlp(hidden=16)
    rates = [0.01, 1e25, 0.1]
    sweep = ol.sweep(problem, ol.optimizer.SGD, {"learning_rate": rates}, steps=STEPS)
    assert "together" in sweep.execution
    assert sweep.stopped.tolist()[::2] == [-1, -1]
    assert sweep.stopped[1] > 0
    assert sweep.final_loss[1] == np.inf
    for k, rate in enumerate(rates):
        assert_same_run(sweep, (k,), own_run(problem, ol.optimizer.SGD(rate)))
    assert "1 of 3 diverged" in repr(sweep)
    assert sweep.table()["diverged at"].notna().sum() == 1


def test_a_policy_that_raises_ends_the_run_that_it_is_about() -> None:
    settings = {"learning_rate": [0.01, 1e25], "not_finite": ["raise"]}
    problem = ol.problems.digits_mlp(hidden=8)
    with np.errstate(all="ignore"):
        sweep = ol.sweep(problem, ol.optimizer.SGD, settings, steps=STEPS)
    assert "one after another: FloatingPointError" in sweep.execution
    assert sweep.stopped[0, 0] == -1
    assert sweep.stopped[1, 0] >= 0


APART = {
    "a schedule": (
        ol.optimizer.SGD,
        {"learning_rate": [ol.optimizer.lr.StepDecay(0.1, 5), ol.optimizer.lr.StepDecay(0.2, 5)]},
        "a schedule changes the rate",
    ),
    "one run": (ol.optimizer.Adam, {"learning_rate": [0.01]}, "no other run"),
    "LBFGS": (ol.optimizer.LBFGS, {"learning_rate": [0.1, 0.2]}, "chooses its own evaluations"),
    "draws": (ol.optimizer.Dpsgd, {"learning_rate": [0.1, 0.2]}, "draws random numbers"),
}


@pytest.mark.parametrize("name", APART)
def test_what_cannot_go_together_runs_one_after_another(name: str) -> None:
    make, settings, said = APART[name]
    problem = ol.problems.digits_mlp(hidden=8)
    with ThreadPoolExecutor(1) as executor:
        sweep = ol.sweep(problem, make, settings, steps=3, executor=executor)
    assert "one after another" in sweep.execution
    assert said in sweep.execution
    assert np.isfinite(sweep.final_loss).all()
    if name == "a schedule":
        one = ol.optimizer.SGD(ol.optimizer.lr.StepDecay(0.1, 5))
        assert_same_run(sweep, (0,), own_run(problem, one, steps=3))


def network(*layers: Any) -> Network:
    return Network(
        lambda: ol.nn.Sequential(*(layer() for layer in layers)),
        ol.problems.digits_mlp().data,
        name="own",
        title="a network of one's own",
    )


@pytest.mark.parametrize(
    ("layer", "said"),
    [
        (lambda: ol.nn.BatchNorm1D(8), "keeps a state"),
        (lambda: ol.nn.Dropout(0.5), None),
    ],
)
def test_models_with_a_state_or_with_chance_give_each_run_its_own_numbers(
    layer: Any, said: str | None
) -> None:
    problem = network(lambda: ol.nn.Linear(64, 8), layer, ol.nn.Tanh, lambda: ol.nn.Linear(8, 10))
    rates = [0.01, 0.1, 0.3]
    sweep = ol.sweep(problem, ol.optimizer.SGD, {"learning_rate": rates}, steps=STEPS)
    if said:
        assert said in sweep.execution
    for k, rate in enumerate(rates):
        with ol.backend.random.scope("race", seed=0):
            own = own_run(problem, ol.optimizer.SGD(rate))
        np.testing.assert_allclose(sweep.loss[k], own["loss"], rtol=1e-4)


def test_results_as_tables() -> None:
    pytest.importorskip("xarray")
    problem = ol.problems.digits_mlp(hidden=8)
    settings = {"learning_rate": [0.0001, 0.1], "momentum": [0.5, 0.9]}
    sweep = ol.sweep(problem, ol.optimizer.Momentum, settings, steps=30)
    assert sweep.best()["learning_rate"] == 0.1
    table = sweep.table()
    assert list(table) == [
        "learning_rate", "momentum", "final loss", "held-out accuracy", "diverged at",
    ]  # fmt: skip
    assert table["final loss"][0] == sweep.final_loss.min()
    data = sweep.to_xarray()
    assert float(data.final_loss.sel(learning_rate=0.1, momentum=0.9)) == sweep.final_loss[1, 1]
    assert data["0.weight"].shape == (2, 2, 64, 8)
    assert "Sweep of Momentum on Handwritten digits, 64-8-10: 2 x learning_rate" in repr(sweep)
    assert sweep._repr_html_().startswith("<p>")


def test_by_name_and_with_an_empty_list() -> None:
    sweep = ol.sweep("digits_mlp", ol.optimizer.SGD, {"learning_rate": [0.01, 0.1]}, steps=2)
    assert isinstance(sweep, ol.lab.NetworkSweep)
    with pytest.raises(ValueError, match="list of at least one"):
        ol.sweep("digits_mlp", ol.optimizer.SGD, {"learning_rate": []}, steps=2)
