"""The doctor finds problems and suggests repairs, and never raises."""

import importlib
import subprocess
import sys
import types
from importlib import metadata

import pytest

import optlab as ol
from optlab import _doctor
from optlab._doctor import browser, checks, requirements
from optlab._doctor.report import NEEDED
from optlab._doctor.requirements import Requirement
from optlab.backend import blas_kernels
from optlab.parallel import launcher

FAULT_OF_TWO_RANKS = checks.fault_of_two_ranks


def rows_named(name):
    return [row for row in ol.doctor().rows if row.name == name]


@pytest.fixture(autouse=True)
def _no_measurement(monkeypatch):
    """Products are measured in child processes; tests/backend/test_blas_kernels.py does that."""
    monkeypatch.setattr(blas_kernels, "compare_kernels", lambda: None)
    monkeypatch.setattr(checks, "fault_of_two_ranks", lambda program: "")  # a second each


@pytest.fixture
def versions(monkeypatch):
    """Set the versions that the doctor finds: name -> version, or None for a missing package."""
    changed = {}
    true_version = metadata.version

    def version(name):
        if name not in changed:
            return true_version(name)
        if changed[name] is None:
            raise metadata.PackageNotFoundError(name)
        return changed[name]

    monkeypatch.setattr(metadata, "version", version)
    return changed


def test_python_and_numpy_come_first():
    report = ol.doctor()
    assert [row.name for row in report.rows][:2] == ["Python", "numpy"]
    assert {"lab", "fast", "cuda12", "test"} <= set(report.parts())


def test_it_is_shown_as_text_and_as_a_table():
    report = ol.doctor()
    assert "numpy" in str(report)
    assert report.summary in str(report)
    assert report._repr_html_().startswith("<table>")


def test_a_missing_extra_is_no_fault(versions):
    versions["zarr"] = None
    report = ol.doctor()
    [row] = [row for row in report.rows if row.name == "zarr"]
    assert row.state == "missing"
    assert row.mend.endswith('-m pip install "zarr>=3.1.6"')
    assert report.ok == all(row.state != "broken" for row in report.rows)


def test_missing_numpy_is_a_fault(versions):
    versions["numpy"] = None
    report = ol.doctor()
    assert not report.ok
    assert "numpy" in report.summary
    assert '"numpy>=2.3.2"' in str(report)


@pytest.mark.parametrize(("version", "state"), [("0.1.0", "ok"), (None, "missing")])
def test_optlab_itself_should_be_installed(versions, version, state):
    versions["optlab"] = version
    [row] = rows_named("optlab")
    assert row.state == state
    assert ("pip install -e" in row.mend) is (state == "missing")


def test_an_old_version_is_a_fault_with_both_versions(versions):
    versions["plotly"] = "5.9.0"
    [row] = rows_named("plotly")
    assert row.state == "broken"
    assert "5.9.0" in row.detail
    assert ">=6.7,<8" in row.detail
    assert '"plotly>=6.7,<8"' in row.mend


def test_another_version_than_a_pinned_one_is_no_fault(versions):
    versions["torch"] = "2.1.0"
    assert rows_named("torch")[0].state == "missing"


def test_damaged_metadata_is_a_fault(versions, monkeypatch):
    monkeypatch.setattr(metadata, "version", lambda name: ["no text"])
    report = ol.doctor()
    assert not report.ok
    assert "damaged" in str(report)


def test_a_package_that_cannot_be_imported_is_a_fault(monkeypatch):
    def broken(name, *more):
        raise SystemError("compiled for another NumPy\nand a second line")

    monkeypatch.setattr(importlib, "import_module", broken)
    [row] = [row for row in checks.check_packages() if row.name == "import numpy"]
    assert row.state == "broken"
    assert row.detail == "SystemError: compiled for another NumPy"


@pytest.mark.parametrize(("available", "state"), [(True, "ok"), (False, "missing")])
def test_cupy_needs_a_device_too(versions, monkeypatch, available, state):
    runtime = types.SimpleNamespace(getDeviceCount=lambda: 1)
    cuda = types.SimpleNamespace(is_available=lambda: available, runtime=runtime)
    fake = types.ModuleType("cupy")
    fake.cuda = cuda
    monkeypatch.setitem(sys.modules, "cupy", fake)
    versions["cupy-cuda12x"] = "14.2.0"
    [row] = [row for row in checks.check_gpu() if row.name == "CUDA device"]
    assert row.state == state


def test_cupy_that_breaks_when_asked_is_a_finding(versions, monkeypatch):
    def is_available():
        raise RuntimeError("driver too old")

    fake = types.ModuleType("cupy")
    fake.cuda = types.SimpleNamespace(is_available=is_available)
    monkeypatch.setitem(sys.modules, "cupy", fake)
    versions["cupy-cuda12x"] = "14.2.0"
    assert "driver too old" in str(ol.doctor())


@pytest.mark.parametrize(
    ("page", "state"),
    [
        ({"federated_extensions": []}, "broken"),
        ({"federated_extensions": [{"name": name} for name in checks.LAB_EXTENSIONS]}, "ok"),
        ({"disabledExtensions": list(checks.LAB_EXTENSIONS)}, "broken"),
        ({"disabledExtensions": dict.fromkeys(checks.LAB_EXTENSIONS, True)}, "broken"),
    ],
)
def test_jupyterlab_s_extensions_must_be_enabled(monkeypatch, page, state):
    config = pytest.importorskip("jupyterlab_server.config")
    monkeypatch.setattr(config, "get_page_config", lambda *arguments: page)
    rows = list(checks.check_lab_extensions())
    assert [row.name for row in rows] == list(checks.LAB_EXTENSIONS)
    assert {row.state for row in rows} == {state}


@pytest.mark.parametrize(
    "name", ["check_packages", "check_lab_extensions", "check_numba", "check_gpu", "check_browser"]
)
def test_it_lives_through_a_check_that_raises(monkeypatch, name):
    def raising():
        raise ZeroDivisionError("of all things")

    monkeypatch.setattr(checks, name, raising)
    report = ol.doctor()
    assert not report.ok
    assert "of all things" in str(report)
    assert report._repr_html_()


def test_the_folder_of_compiled_loops_is_named(monkeypatch, tmp_path):
    pytest.importorskip("numba")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    [row] = checks.check_numba()
    assert (row.part, row.state) == ("fast", "ok")
    assert row.detail == f"0 kept in {tmp_path / 'optlab' / 'kernels'}"
    (tmp_path / "file").touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "file"))
    [row] = checks.check_numba()
    assert row.state == "missing"
    assert "NUMBA_CACHE_DIR" in row.mend


def test_faster_kernels_are_said_to_be_faster(monkeypatch):
    from optlab.backend.blas_kernels import Choice, Measured

    slow, fast = Measured("Haswell", 300e-6), Measured("SkylakeX", 160e-6)
    for choice, state in ((Choice(slow, fast, "SkylakeX"), "slow"), (Choice(fast), "ok")):
        monkeypatch.setattr(blas_kernels, "compare_kernels", lambda choice=choice: choice)
        [row] = rows_named("BLAS kernels")
        assert row.state == state
        assert ("OPENBLAS_CORETYPE=SkylakeX" in row.mend) == (state == "slow")
        report = ol.doctor()
        assert ("BLAS kernels" in report.summary) == (state == "slow")
        assert report.ok == all(row.state != "broken" for row in report.rows)


def test_numba_comes_with_the_first_command_and_alone():
    wanted = {part: {r.text for r in found} for part, found in checks.requirements().items()}
    assert wanted["fast"] <= wanted["lab"]


def test_two_ranks_of_mpi_meet(monkeypatch):
    pytest.importorskip("mpi4py")
    monkeypatch.setattr(checks, "fault_of_two_ranks", FAULT_OF_TWO_RANKS)
    [row] = checks.check_mpi()
    assert row.state == "ok"
    assert "two ranks added a number" in row.detail


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        (FileNotFoundError("no mpiexec"), "there is no mpiexec"),
        (subprocess.TimeoutExpired("mpiexec", 30), "did not meet in 30 seconds"),
        (subprocess.CompletedProcess([], 1, "", "first\nno route to host"), "no route to host"),
    ],
    ids=["absent", "silent", "failing"],
)
def test_what_is_wrong_with_mpi_is_said(monkeypatch, outcome, said):
    pytest.importorskip("mpi4py")

    def found(*args, **kwargs):
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    absent = isinstance(outcome, FileNotFoundError)
    monkeypatch.setattr(launcher, "mpiexec", found if absent else lambda: "mpiexec")
    monkeypatch.setattr(checks, "fault_of_two_ranks", FAULT_OF_TWO_RANKS)
    monkeypatch.setattr(checks.subprocess, "run", found)
    [row] = checks.check_mpi()
    assert row.state == "broken"
    assert said in row.detail
    assert "mpich" in row.mend


def test_no_browser_is_said_with_the_command(monkeypatch):
    monkeypatch.setattr(checks, "find_browser", lambda: None)
    [row] = checks.check_browser()
    assert row.state == "missing"
    assert "playwright install chromium" in row.mend


def test_a_browser_is_found_by_its_command_or_its_place(monkeypatch, tmp_path):
    monkeypatch.setattr(browser.shutil, "which", {"chromium": "/somewhere/chromium"}.get)
    assert _doctor.find_browser().name == "chromium"
    monkeypatch.setattr(browser.shutil, "which", lambda command: None)
    (tmp_path / "chrome.exe").touch()
    monkeypatch.setattr(browser, "BROWSER_PLACES", (("$NOT_SET", "x"), (str(tmp_path), "*.exe")))
    assert _doctor.find_browser() == tmp_path / "chrome.exe"
    monkeypatch.setattr(browser, "BROWSER_PLACES", ())
    assert _doctor.find_browser() is None


# The requirements of optlab.


def test_clone_and_metadata_say_the_same(monkeypatch):
    clone = requirements.requirements()
    lines = [requirement.text for requirement in clone[NEEDED]]
    for extra in clone:
        if extra != NEEDED:
            lines += [f'{wanted.text}; extra == "{extra}"' for wanted in clone[extra]]
    monkeypatch.setattr(metadata, "requires", lambda name: lines)
    monkeypatch.setattr(requirements, "__file__", "/nowhere/optlab/_doctor/requirements.py")
    assert requirements.requirements() == clone


def test_a_requirement_for_another_system_is_left_out(monkeypatch):
    line = "mpich>=4.2; sys_platform != 'win32' and extra == 'parallel'"
    monkeypatch.setattr(sys, "platform", "win32")
    assert Requirement.read(line) is None
    monkeypatch.setattr(sys, "platform", "linux")
    assert Requirement.read(line).name == "mpich"


@pytest.mark.parametrize(
    ("line", "version", "accepted"),
    [
        ("numpy>=2", "2.0.0", True),
        ("numpy>=2", "1.26.4", False),
        ("numpy>=2", "2.1.0rc1", True),
        ("plotly>=6.7,<8", "7.1.0", True),
        ("plotly>=6.7,<8", "8.0", False),
        ("plotly>=6.7,<8", "6.10", True),
        ("torch==2.13.0", "2.13", True),
        ("torch==2.13.0", "2.13.0+cpu", True),
        ("a~=1.4", "1.9", True),
        ("a~=1.4", "2.0", False),
        ("a!=1.4", "1.4", False),
        ("dask[distributed]>=2024.8", "2025.1", True),
        ("a", "0.1", True),
    ],
)
def test_bounds(line, version, accepted):
    assert Requirement.read(line).accepts(version) is accepted
