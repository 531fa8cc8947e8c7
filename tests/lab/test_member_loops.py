"""A sweep as one loop: final values and histories are those of single runs, to the bit."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import optlab as ol
from optlab.lab.members import groups_of_templates
from optlab.lab.sweeps.run import Sweeper
from optlab.plan import use_executor
from optlab.plan.executors import has_numba
from optlab.plan.member_loops import execution, numba_loop
from optlab.plan.member_loops.numba_loop import MachineCode
from optlab.plan.member_loops.numpy_loop import NumpyLoop
from optlab.plan.numba_cache import Kernel
from tests.lab.test_sweep import assert_equals_separate_runs

O = ol.optimizer  # noqa: E741
EMA = O.ExponentialMovingAverage
RULES = [
    "SGD", "Momentum", "RMSProp", "Adam", "Adagrad", "DecayedAdagrad", "Adadelta", "AdamW",
    "Adamax", "NAdam", "RAdam", "Rprop", "Ftrl", "ASGD", "Lion",
]  # fmt: skip
needs_numba = pytest.mark.skipif(not has_numba(), reason="needs the extra `fast` (numba)")
SURFACES = [name for name in ol.problems.names() if ol.problems.find(name).kind == "surface"]


@pytest.fixture(scope="module", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep compiled loops out of the user's cache."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NUMBA_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        yield


def both(cases: Iterable[Any], compiled: Iterable[Any]) -> list[Any]:
    """Return each case with NumPy, and some with numba, which takes a second or two to compile."""
    chosen = list(compiled)
    found = [pytest.param(case, "numpy") for case in cases]
    for case in cases:
        if case in chosen:
            found.append(pytest.param(case, "numba", marks=[pytest.mark.nightly, pytest.mark.slow]))
    return found


class Sharpened(O.Optimizer):
    """A rule of a user, which branches on the step count and has slots and terms."""

    hyperparameters = {"learning_rate": 0.1, "power": 0.9, "warm": 3}
    slots = {"mean": 0.5}

    def scalars(self, t: int, h: Any) -> dict[str, Any]:
        return {"early": t <= h.warm, "scale": math.sqrt(t) * h.learning_rate * h.power**t}

    def update(self, p: Any, g: Any, s: Any, h: Any, c: Any) -> Any:
        mean = h.power * s.mean + (1 - h.power) * np.abs(g)
        mean = np.where(np.abs(g) < 50, s.mean, mean)
        step = c.scale * np.where(mean > 1, g / mean, g)
        if c.early:
            step = step / 2
        return p - step, {"mean": mean}, {"step": step}


def custom(x: Any, y: Any) -> Any:
    """Return the value of a surface of a user, who has promised nothing."""
    return (x * y - 1) ** 2 + np.maximum(x, 0.5) * y**2


def assert_cell(sweep: Any, place: Any, race: Any) -> None:
    """Hold the final values first, which no history was read for."""
    trace = race["run"]
    whole = len(trace) == sweep.steps
    assert sweep.stopped[place] == (len(trace) if trace.stopped else -1)
    if not trace.stopped:
        np.testing.assert_array_equal(sweep.final_loss[place], race.final_loss["run"])
    expected = trace.parameters["point"][-1] if whole else np.full(2, np.nan)
    np.testing.assert_array_equal(
        sweep.final_point[place], expected[: len(sweep.final_point[place])]
    )
    assert_equals_separate_runs(sweep, place, race)


@pytest.mark.parametrize(("name", "executor"), both(RULES, ["Rprop", "RAdam"]))
def test_every_elementwise_rule(name: str, executor: str) -> None:
    cls: Any = getattr(O, name)
    rates = [1e-3, 0.03, 0.9]
    with use_executor(executor):
        sweep = ol.sweep("rosenbrock", cls, {"learning_rate": rates}, steps=40)
    assert "one loop" in sweep.execution
    assert ("machine code" in sweep.execution) == (executor == "numba")
    for i, rate in enumerate(rates):
        assert_cell(sweep, (i,), ol.compare("rosenbrock", {"run": cls(rate)}, steps=40))


NOISY = ol.problems.noisy("himmelblau", 0.5)


@pytest.mark.parametrize(
    ("problem", "executor"), both([*SURFACES, custom, NOISY], ["double_well", custom, NOISY])
)
def test_every_surface(problem: Any, executor: str) -> None:
    rates, betas = [1e-3, 0.2], [0.0, 0.5, 0.9]
    with use_executor(executor):
        sweep = ol.sweep(
            problem, O.Adam, {"learning_rate": rates, "beta1": betas}, steps=30, seed=2
        )
    assert "one loop" in sweep.execution
    for i, rate in enumerate(rates):
        for j, beta in enumerate(betas):
            race = ol.compare(problem, {"run": O.Adam(rate, beta)}, steps=30, seed=2)
            assert_cell(sweep, (i, j), race)


WRAPPED = {
    "LookAhead": lambda rate: O.LookAhead(O.Momentum(rate), 0.3, 4),
    "LookAhead, alpha 1": lambda rate: O.LookAhead(O.Adam(rate), 1, 3),
    "LookAhead twice": lambda rate: O.LookAhead(O.LookAhead(O.SGD(rate), 0.5, 2), 0.8, 3),
    "EMA": lambda rate: EMA.around(O.Adam(rate), 0.9),
    "EMA, thres_steps": lambda rate: EMA.around(O.Adam(rate), 0.9, 3),
    "ModelAverage": lambda rate: O.ModelAverage.around(O.RMSProp(rate), 0.3, min_average_window=3),
    "EMA around LookAhead": lambda rate: EMA.around(O.LookAhead(O.Adam(rate), 0.5, 3), 0.8),
    "LookAhead around EMA": lambda rate: O.LookAhead(EMA.around(O.Adam(rate), 0.9), 0.5, 3),
    "StepDecay": lambda rate: O.Adam(O.lr.StepDecay(rate, step_size=7)),
    "OneCycleLR": lambda rate: O.Momentum(O.lr.OneCycleLR(rate, 30)),
    "a schedule inside LookAhead": lambda rate: O.LookAhead(O.SGD(O.lr.StepDecay(rate, 7)), 0.5, 3),
    "L2 decay": lambda rate: O.Adam(rate, weight_decay=0.05),
    "L1 decay": lambda rate: O.Momentum(rate, weight_decay=ol.regularizer.L1Decay(0.05)),
    "ASGD with decay": lambda rate: O.ASGD(rate, 3, weight_decay=0.05),
    "AMSGrad": lambda rate: O.Adam(rate, amsgrad=True),
    "a rule of a user": lambda rate: Sharpened(rate),
}


COMPILED = ["LookAhead twice", "ModelAverage", "a schedule inside LookAhead", "a rule of a user"]


@pytest.mark.parametrize(("name", "executor"), both(WRAPPED, COMPILED))
def test_wrappers_schedules_and_decays(name: str, executor: str) -> None:
    rates = [1e-4, 0.01, 0.7]
    surface = ol.problems.rosenbrock
    templates = [WRAPPED[name](rate) for rate in rates]
    groups = groups_of_templates(templates, np.arange(3))
    sweeper = Sweeper(surface, groups, np.array([surface.start]), 30, 0, 1 << 30)
    with use_executor(executor):
        outcome = sweeper.run(lambda done: None)
    assert all("one loop" in said for said in outcome.said)
    assert len(groups) == 1
    run = sweeper.histories()
    for i, template in enumerate(templates):
        race = ol.compare(surface, {"run": template}, steps=30)
        trace = race["run"]
        n = len(trace)
        assert outcome.stopped[i] == (n if trace.stopped else -1)
        if not trace.stopped:
            np.testing.assert_array_equal(outcome.loss[i], race.final_loss["run"])
            np.testing.assert_array_equal(outcome.point[i], trace.parameters["point"][-1])
        np.testing.assert_array_equal(run.loss[i, :n], trace.loss)
        np.testing.assert_array_equal(run.loss[i, n], race.final_loss["run"])
        for kind, recorded in ((run.slots, trace.slots), (run.terms, trace.terms)):
            assert list(kind) == list(recorded)
            for label, arrays in recorded.items():
                np.testing.assert_array_equal(kind[label][i, :n], arrays["point"], err_msg=label)


def test_settings_that_choose_a_form_make_a_loop_each() -> None:
    settings = {"amsgrad": [False, True], "learning_rate": [0.01, 0.1, 0.5]}
    sweep = ol.sweep("beale", O.Adam, settings, steps=30)
    assert sweep.execution.startswith("6 cells in 2 loops over 30 steps: ")
    assert "\n" not in sweep.execution  # said once for both, as they are alike
    for i, amsgrad in enumerate(settings["amsgrad"]):
        for j, rate in enumerate(settings["learning_rate"]):
            race = ol.compare("beale", {"run": O.Adam(rate, amsgrad=amsgrad)}, steps=30)
            np.testing.assert_array_equal(sweep.final_loss[i, j], race.final_loss["run"])
            np.testing.assert_array_equal(sweep.point[i, j], race["run"].parameters["point"])


@pytest.mark.parametrize(("count", "executor"), both([1, 257, 600, 12_500], [257, 600, 12_500]))
def test_any_number_of_members_and_chunks(count: int, executor: str) -> None:
    rates = np.geomspace(1e-3, 3.0, count)
    with use_executor(executor):
        whole = ol.sweep("six_hump_camel", O.Momentum, {"learning_rate": rates}, steps=25)
        parts = ol.sweep(
            "six_hump_camel", O.Momentum, {"learning_rate": rates}, steps=25, limit=1 << 14
        )
    np.testing.assert_array_equal(whole.final_loss, parts.final_loss)
    np.testing.assert_array_equal(whole.final_point, parts.final_point)
    np.testing.assert_array_equal(whole.stopped, parts.stopped)
    for i in {0, count // 2, count - 1}:
        run = O.Momentum(float(rates[i]))
        race = ol.compare("six_hump_camel", {"run": run}, steps=25)
        assert whole.stopped[i] == (len(race["run"]) if race["run"].stopped else -1)
        if whole.stopped[i] < 0:
            assert whole.final_loss[i] == race.final_loss["run"]


def test_histories_beyond_the_limit_are_refused_and_final_values_are_there() -> None:
    sweep = ol.sweep("booth", O.SGD, {"learning_rate": [0.01, 0.1]}, steps=50, limit="1 KiB")
    assert np.isfinite(sweep.final_loss).all()
    with pytest.raises(MemoryError, match=r"limit='.*KiB'"):
        _ = sweep.loss


def test_an_interrupt_keeps_what_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def stop(self: Any, done: int) -> None:
        seen.append(done)
        if len(seen) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr("optlab.lab.progress.ProgressBar.update", stop)
    rates = np.geomspace(1e-3, 0.1, 64)
    sweep = ol.sweep("booth", O.Adam, {"learning_rate": rates}, steps=20, limit=4096)
    monkeypatch.undo()
    whole = ol.sweep("booth", O.Adam, {"learning_rate": rates}, steps=20)
    done = seen[-1]
    assert sweep.interrupted
    assert 0 < done < 64
    np.testing.assert_array_equal(sweep.status, ["done"] * done + ["missing"] * (64 - done))
    np.testing.assert_array_equal(sweep.final_loss[:done], whole.final_loss[:done])
    assert np.isnan(sweep.final_loss[done:]).all()
    assert sweep.best()["learning_rate"] in rates[:done]
    assert f"{64 - done} missing" in repr(sweep)
    assert "interrupted" in sweep.execution


def test_cells_that_fail_are_marked() -> None:
    def fragile(x: Any, y: Any) -> Any:
        if x > 3:
            raise ArithmeticError("x is beyond 3")
        return x * x + y * y

    rates = [0.1, 1.9, 0.3]
    with pytest.warns(ol.lab.RaceWarning, match="x is beyond 3"):
        sweep = ol.sweep(fragile, O.SGD, {"learning_rate": rates}, start=(-2.0, 1.0), steps=9)
    assert sweep.status.tolist() == ["done", "raised", "done"]
    assert list(sweep.errors) == [(1,)]
    assert "ArithmeticError: x is beyond 3" in sweep.errors[(1,)]
    assert np.isinf(sweep.final_loss[1])
    assert "1 raised" in repr(sweep)
    assert "one after another" in sweep.execution


def test_diverged_cells_are_marked() -> None:
    sweep = ol.sweep("rosenbrock", O.SGD, {"learning_rate": [1e-3, 1.0]}, steps=50)
    assert sweep.status.tolist() == ["done", "diverged"]


def test_a_loss_that_depends_on_the_run_is_stepped_by_itself() -> None:
    rates = [O.lr.ReduceOnPlateau(0.1, patience=1), O.lr.StepDecay(0.1, 5)]
    sweep = ol.sweep("booth", O.SGD, {"learning_rate": rates}, steps=15)
    assert "looks at the loss" in sweep.execution
    for i, rate in enumerate(rates):
        race = ol.compare("booth", {"run": O.SGD(rate)}, steps=15)
        assert sweep.final_loss[i] == race.final_loss["run"]


SWEPT = """
import sys
import optlab as ol
from optlab.plan import executors
executors.LOOK_UP, executors.COMPILE = 1, {compile}
def sweep():
    return ol.sweep("booth", ol.optimizer.SGD, {{"learning_rate": [0.01, 0.05]}}, steps=9)
"""


@needs_numba
@pytest.mark.slow
def test_a_child_process_compiles_and_another_program_has_it_at_once(tmp_path: Path) -> None:
    waits = """
import time
found = sweep()
assert "NumPy, until machine code is compiled" in found.execution, found.execution
while "machine code by numba" not in (again := sweep()).execution:
    time.sleep(0.02)
assert again.final_loss.tolist() == found.final_loss.tolist()
"""
    at_once = 'assert "machine code by numba" in (found := sweep()).execution, found.execution\n'
    ends = 'assert "numba" not in sys.modules\nprint(found.final_loss.tolist())\n'
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    programs = [SWEPT.format(compile=1) + waits, SWEPT.format(compile=1 << 60) + at_once]
    said = [
        subprocess.run(
            [sys.executable, "-c", program + ends], env=environment, capture_output=True,
            text=True, check=True, timeout=300,
        ).stdout
        for program in programs
    ]  # fmt: skip
    assert said[0] == said[1]


def programs_of(*templates: Any) -> list[Any]:
    """Return the program of each template by itself, on the Rosenbrock function."""
    surface = ol.problems.rosenbrock
    groups = [groups_of_templates([one], np.arange(1))[0] for one in templates]
    assert surface.plan is not None
    return [group.program(surface, surface.plan, 9, 0).program for group in groups]


def test_programs_that_differ_in_settings_share_their_machine_code() -> None:
    rules = O.Adam(0.3), O.Adam(0.7, beta1=0.3, epsilon=1e-6), O.Adam(0.3, amsgrad=True)
    one, other, third = map(MachineCode, programs_of(*rules))
    assert one.source == other.source != third.source
    assert one.shared is other.shared
    assert one.constants.tolist() != other.constants.tolist()


@needs_numba
def test_machine_code_that_gives_other_bits_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(numba_loop, "_known", {})
    monkeypatch.setattr(execution, "is_compiled", lambda *_: True)
    monkeypatch.setattr(Kernel, "look_up", lambda self: True)
    kernel = Kernel("", [])
    kernel.function = lambda *_: 0  # it moves no member
    monkeypatch.setattr(numba_loop, "kernel_of", lambda *_: kernel)
    settings = {"learning_rate": [0.01, 0.1]}
    with use_executor("auto"):
        sweep = ol.sweep("booth", O.SGD, settings, steps=5)
    assert "NumPy, as machine code gives other bits here" in sweep.execution
    with use_executor("numpy"):
        expected = ol.sweep("booth", O.SGD, settings, steps=5)
    np.testing.assert_array_equal(sweep.final_point, expected.final_point)


@needs_numba
def test_a_long_sweep_changes_to_machine_code_on_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def compiled(kernel: Any, worked: int) -> bool:
        asked.append(worked)
        return len(asked) > 2

    class Loop:
        """Machine code, played by NumPy."""

        def __init__(self, program: Any, *_: Any) -> None:
            self.run = NumpyLoop(program).run

    monkeypatch.setattr(execution, "is_compiled", compiled)
    monkeypatch.setattr(numba_loop, "NumbaLoop", Loop)
    monkeypatch.setattr(numba_loop, "_known", {})
    monkeypatch.setattr(numba_loop, "_agrees_with_numpy", lambda loop: True)
    monkeypatch.setattr(execution, "LOOK_UP", 1)
    rates = np.geomspace(1e-3, 0.1, 64)
    with use_executor("auto"):
        sweep = ol.sweep("booth", O.Adam, {"learning_rate": rates}, steps=20, limit=4096)
    assert "NumPy, until machine code is compiled, then machine code by numba" in sweep.execution
    assert len(set(asked)) == 1  # all work of the sweep counts from its beginning
    whole = ol.sweep("booth", O.Adam, {"learning_rate": rates}, steps=20)
    np.testing.assert_array_equal(sweep.final_loss, whole.final_loss)


class TestProgress:
    def test_is_quiet_unless_asked(self, capsys: pytest.CaptureFixture[str]) -> None:
        ol.sweep("booth", O.SGD, {"learning_rate": [0.1]}, steps=5)
        assert capsys.readouterr().err == ""
        ol.sweep("booth", O.SGD, {"learning_rate": [0.1, 0.2]}, steps=5, progress=True)
        assert "2/2 cells" in capsys.readouterr().err
