"""Which processor's kernels OpenBLAS takes: measured, named by the doctor, set by `optlab lab`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

import pytest

import optlab as ol
from optlab import cli
from optlab._doctor import checks
from optlab.backend import blas_kernels
from optlab.backend.blas_kernels import Measured, choose_kernels, compare_kernels, wanted_kernels

AVX512 = {"X86_V2", "X86_V3", "X86_V4"}
AVX512_OF_NUMPY_2_0 = {"SSE42", "AVX2", "FMA3", "AVX512F", "AVX512_SKX"}
AVX2 = {"X86_V2", "X86_V3"}


class Machine:
    """Children that take the kernels named in their environment, else the library's own."""

    def __init__(self, own: str, **microseconds: float) -> None:
        self.own, self.microseconds, self.asked = own, microseconds, []  # type: ignore[var-annotated]

    def __call__(self, environment: Mapping[str, str]) -> Measured | None:
        named = environment.get(blas_kernels.VARIABLE) or self.own
        self.asked.append(named)
        if named not in self.microseconds:
            return None  # the child did not live
        return Measured(named, self.microseconds[named] / 1e6)


@pytest.mark.parametrize("features", [AVX512, AVX512_OF_NUMPY_2_0])
def test_an_older_processor_s_kernels_are_found_out(features: set[str]) -> None:
    choice = compare_kernels({}, Machine("Haswell", Haswell=300, SkylakeX=160), features)
    assert choice is not None
    assert choice.now == Measured("Haswell", 300e-6)
    assert choice.better == Measured("SkylakeX", 160e-6)
    assert choice.value == "SkylakeX"


def test_kernels_that_suit_the_processor_are_measured_once() -> None:
    machine = Machine("Zen", Zen=300, SkylakeX=100)
    choice = compare_kernels({}, machine, AVX2)
    assert choice is not None
    assert choice.better is None
    assert machine.asked == ["Zen"]
    assert wanted_kernels("SapphireRapids", AVX512) is None
    assert wanted_kernels("neoversev1", {"ASIMD", "SVE"}) is None
    assert wanted_kernels("armv8", {"ASIMD", "SVE"}) == "ARMV8SVE"
    assert wanted_kernels("Prescott", {"X86_V2"}) is None


@pytest.mark.parametrize("microseconds", [{"SkylakeX": 290}, {"SkylakeX": 400}, {}])
def test_what_is_no_faster_or_cannot_run_is_not_named(microseconds: dict[str, float]) -> None:
    machine = Machine("Haswell", Haswell=300, **microseconds)
    choice = compare_kernels({}, machine, AVX512)
    assert choice is not None
    assert choice.better is None
    assert choice.value is None
    assert machine.asked == ["Haswell", "SkylakeX"]


def test_a_variable_that_slows_is_to_be_taken_away() -> None:
    machine = Machine("SkylakeX", Haswell=300, SkylakeX=160)
    choice = compare_kernels({blas_kernels.VARIABLE: "Haswell"}, machine, AVX512)
    assert choice is not None
    assert choice.better == Measured("SkylakeX", 160e-6)
    assert choice.value is None


def test_a_variable_that_slows_where_the_library_is_no_better_gets_another_value() -> None:
    machine = Machine("Haswell", Prescott=900, Haswell=850, SkylakeX=160)
    choice = compare_kernels({blas_kernels.VARIABLE: "Prescott"}, machine, AVX512)
    assert choice is not None
    assert choice.value == "SkylakeX"


def test_other_libraries_have_nothing_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    assert compare_kernels({}, lambda environment: None, AVX512) is None
    monkeypatch.setattr(blas_kernels, "compare_kernels", lambda: None)
    assert list(checks.check_blas_kernels()) == []


def test_the_measurement_asks_the_library_itself() -> None:
    threadpoolctl = pytest.importorskip("threadpoolctl")
    found = blas_kernels.measure_product(os.environ)
    code = "import numpy, threadpoolctl as t; print([i for i in t.threadpool_info()])"
    told = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ
    ).stdout
    libraries: list[dict[str, Any]] = eval(told, {"__builtins__": {}})
    core = next((one.get("architecture") for one in libraries if one["user_api"] == "blas"), None)
    assert threadpoolctl.__version__
    if core is None:
        assert found is None
    else:
        assert found is not None
        assert found.kernels.lower() == core.lower()
        assert found.seconds > 0


def test_a_child_that_does_not_live_is_no_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blas_kernels, "_CHILD", "import os; os.abort()")
    assert blas_kernels.measure_product(os.environ) is None
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    assert blas_kernels.measure_product(os.environ) is None


# The doctor.


@pytest.mark.parametrize(
    ("environment", "own", "mend"),
    [
        ({}, "Haswell", "OPENBLAS_CORETYPE=SkylakeX in the environment before Python starts"),
        (
            {blas_kernels.VARIABLE: "Haswell"},
            "SkylakeX",
            "take OPENBLAS_CORETYPE out of the environment before Python starts",
        ),
    ],
)
def test_the_doctor_names_the_variable_that_mends_it(
    environment: dict[str, str], own: str, mend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(blas_kernels.VARIABLE, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    choice = compare_kernels(None, Machine(own, Haswell=300, SkylakeX=160), AVX512)
    monkeypatch.setattr(blas_kernels, "compare_kernels", lambda: choice)
    (row,) = [row for row in ol.doctor().rows if row.name == "BLAS kernels"]
    assert row.state == "slow"
    assert "Haswell" in row.detail
    assert "takes 300 us, with those for SkylakeX 160 us" in row.detail
    assert row.mend == mend


def test_the_doctor_has_nothing_to_mend_where_the_kernels_suit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    choice = compare_kernels({}, Machine("SkylakeX", SkylakeX=160), AVX512)
    monkeypatch.setattr(blas_kernels, "compare_kernels", lambda: choice)
    (row,) = checks.check_blas_kernels()
    assert "SkylakeX" in row.detail
    assert row.mend == ""


# `optlab lab`.


def test_the_lab_sets_what_helps_and_the_user_s_own_setting_wins() -> None:
    machine = Machine("Haswell", Haswell=300, SkylakeX=160)
    environment: dict[str, str] = {}
    assert choose_kernels(environment, machine, AVX512) is not None
    assert environment[blas_kernels.VARIABLE] == "SkylakeX"
    assert blas_kernels.why(environment) == "OPENBLAS_CORETYPE=SkylakeX, set by optlab lab"
    own = {blas_kernels.VARIABLE: "Haswell"}
    machine.asked.clear()
    assert choose_kernels(own, machine, AVX512) is None
    assert own == {blas_kernels.VARIABLE: "Haswell"}
    assert machine.asked == []
    assert blas_kernels.why(own) == "OPENBLAS_CORETYPE=Haswell, set by the user"


def test_the_lab_sets_nothing_where_nothing_helps() -> None:
    environment: dict[str, str] = {}
    assert choose_kernels(environment, Machine("Haswell", Haswell=300), AVX512) is None
    assert environment == {}


def test_optlab_lab_says_what_it_set(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    labapp = pytest.importorskip("jupyterlab.labapp")
    seen = []
    monkeypatch.setattr(
        labapp.LabApp,
        "launch_instance",
        lambda words: seen.append(os.environ.get(blas_kernels.VARIABLE)),
    )
    monkeypatch.setattr(cli, "_announce", lambda *arguments: None)
    for name in ("JUPYTER_TOKEN", "JUPYTER_CONFIG_PATH", "OPENBLAS_NUM_THREADS",
                 "MKL_NUM_THREADS", "OMP_NUM_THREADS", "OPTLAB_LAB_BLAS_THREADS",
                 blas_kernels.VARIABLE, blas_kernels.CHOSEN_BY_LAB):  # fmt: skip
        monkeypatch.setenv(name, "")  # as if it was not set; put back after the test
    machine = Machine("Haswell", Haswell=300, SkylakeX=160)
    monkeypatch.setattr(
        blas_kernels, "choose_kernels", lambda e: choose_kernels(e, machine, AVX512)
    )
    assert cli.main(["lab", "--no-browser", "--directory", str(tmp_path)]) == 0
    assert seen == ["SkylakeX"]
    said = capsys.readouterr().out
    assert "OPENBLAS_CORETYPE=SkylakeX, 1.9 times as fast" in said
    monkeypatch.setenv(blas_kernels.VARIABLE, "Haswell")
    assert cli.main(["lab", "--no-browser", "--directory", str(tmp_path)]) == 0
    assert seen == ["SkylakeX", "Haswell"]
    assert "OPENBLAS_CORETYPE" not in capsys.readouterr().out
