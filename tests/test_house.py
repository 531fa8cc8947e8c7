"""Checks of the whole repository: style, types, layers of packages, notebooks, documents."""

import ast
import json
import operator
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import optlab

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
NOTEBOOKS = sorted((ROOT / "notebooks").rglob("*.ipynb"))

FLOORS_0_TO_3 = [
    "backend", "autograd", "numpy", "special", "paddle_names", "plan", "jit", "io", "nn", "amp",
    "optimizer", "incubate", "distributed", "parallel", "fluid",
]  # fmt: skip
BASH_RUNS_HERE = pytest.mark.skipif(sys.platform == "win32", reason=".ci/run is a bash script")


def run(*command, **options):
    """Run a command in the root of the repository and return its output; fail if it failed."""
    done = subprocess.run(
        command, cwd=ROOT, text=True, encoding="utf-8", capture_output=True, **options
    )
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def python(code, **options):
    """Run a few lines in a fresh interpreter."""
    return run(sys.executable, "-c", code, **options)


def files_of_the_repository():
    """List the files that git tracks or would track, without ignored files."""
    git = ["git", "-c", f"safe.directory={ROOT}", "ls-files", "-z"]
    listed = subprocess.run(
        [*git, "--cached", "--others", "--exclude-standard"], cwd=ROOT, capture_output=True
    )
    if listed.returncode != 0:
        pytest.skip("this is no git checkout")
    paths = (ROOT / name for name in listed.stdout.decode().split("\0") if name)
    return [path for path in paths if path.is_file()]


def code_block(command):
    """Return the code block below the marker of a command in the README."""
    block = re.search(rf"<!-- command: {command} -->\n```bash\n(.*?)\n```", README, re.DOTALL)
    assert block, f"README.md has no command {command!r}"
    return block[1]


# Style, types, layers of packages.


def test_ruff_finds_nothing():
    run(sys.executable, "-m", "ruff", "check", ".")


def test_ruff_would_format_nothing():
    run(sys.executable, "-m", "ruff", "format", "--check", ".")


@pytest.mark.slow
def test_mypy_finds_nothing():
    run(sys.executable, "-m", "mypy")


def test_each_floor_knows_only_the_floors_below_it():
    python("from importlinter.cli import lint_imports_command as lint; lint()")


def test_the_contract_names_every_package_of_the_engine():
    """The contract may only name packages that exist, so a new one must be added by hand."""
    contracts = {
        contract["id"]: contract for contract in PROJECT["tool"]["importlinter"]["contracts"]
    }
    present = {
        f"optlab.{name}"
        for name in FLOORS_0_TO_3
        if (ROOT / f"optlab/{name}.py").exists() or (ROOT / f"optlab/{name}/__init__.py").exists()
    }
    assert set(contracts["engine-needs-numpy-alone"]["source_modules"]) == present


def test_mypy_is_strict_on_every_package_of_the_engine():
    strict = PROJECT["tool"]["mypy"]["overrides"][0]["module"]
    assert set(strict) == {f"optlab.{name}.*" for name in FLOORS_0_TO_3}


# The public names.


def test_importing_optlab_imports_next_to_nothing():
    before_and_after = (
        "import sys; before = set(sys.modules); import optlab; "
        "print(*sorted(set(sys.modules) - before))"
    )
    assert python(before_and_after).split() == ["optlab"]


@pytest.mark.parametrize("name", dir(optlab))
def test_every_public_name_is_there(name):
    if name == "bfloat16":  # of the extra `formats`
        pytest.importorskip("ml_dtypes")
    assert getattr(optlab, name) is not None


@pytest.mark.parametrize(
    "place",
    [
        "amp", "course", "distributed", "distributed.fleet", "distributed.fleet.utils", "fluid",
        "fluid.clip", "fluid.dygraph", "fluid.layers", "fluid.optimizer", "fluid.regularizer",
        "incubate", "incubate.optimizer", "io", "jit", "lab", "lab.data", "lab.models", "memory",
        "nn", "nn.functional", "nn.initializer", "nn.utils", "optimizer", "optimizer.lr",
        "problems", "regularizer", "trace", "viz",
    ],
)  # fmt: skip
def test_public_modules_list_public_names_alone(place):
    module = operator.attrgetter(place)(optlab)
    listed = {name for name in dir(module) if not name.startswith("__")}
    assert listed == set(module.__all__)
    assert all(getattr(module, name) is not None for name in module.__all__)


def test_optlab_numpy_lists_numpy_s_names_and_its_own():
    listed = dir(optlab.numpy)
    assert {name for name in dir(np) if not name.startswith("_")} <= set(listed)
    assert not {"Any", "wraps", "sys", "ModuleType", "Tensor", "_KINDS"} & set(listed)


def test_numpy_s_functions_are_handed_on_as_they_are():
    assert optlab.expand_dims is np.expand_dims
    assert optlab.concatenate is np.concatenate
    assert optlab.float32 is np.float32


def test_the_stub_names_what_the_face_hands_on():
    stub = ast.parse((ROOT / "optlab/__init__.pyi").read_text(encoding="utf-8"))
    places = {}
    for line in stub.body:
        if isinstance(line, ast.ImportFrom) and line.module.startswith("optlab"):
            places.update({alias.asname: f"{line.module}.{alias.name}" for alias in line.names})
        if isinstance(line, ast.AnnAssign) and line.target.id != "__version__":
            ours = line.target.id == "bfloat16"  # looked up when it is requested
            module = "optlab.backend.dtypes" if ours else "numpy"
            places[line.target.id] = f"{module}.{line.target.id}"
    assert places == {name: place.replace(":", ".") for name, place in optlab._NAMES.items()}


@pytest.mark.parametrize(
    ("wrong", "suggestion"),
    [
        ("compar", "ol.compare"),
        ("enable_static", "static graphs"),
        ("Tensr", "ol.Tensor"),
        ("SGD", "ol.optimizer"),
        ("xyz", "dir("),
    ],
)
def test_an_unknown_name_gets_a_suggestion(wrong, suggestion):
    with pytest.raises(AttributeError, match=f"no name '{wrong}'") as caught:
        getattr(optlab, wrong)
    assert suggestion in str(caught.value)


def test_a_star_import_leaves_python_s_own_names_alone():
    kept = "from optlab import *; import builtins; assert sum is builtins.sum; print(Tensor)"
    assert "Tensor" in python(kept)


def test_a_missing_package_of_a_name_is_said_in_the_sentence_of_all(monkeypatch):
    monkeypatch.setitem(optlab._NAMES, "from_elsewhere", "a_package_that_nobody_has")
    with pytest.raises(ModuleNotFoundError, match=r"ol.from_elsewhere needs a_package_that_nobody"):
        optlab.from_elsewhere  # noqa: B018


def test_the_doctor_stays_a_function_whatever_was_imported():
    python("import optlab._doctor, optlab as ol; assert ol.doctor().rows")


# Documents.


@BASH_RUNS_HERE
def test_ci_runs_the_command_of_the_readme():
    shown = run("bash", str(ROOT / ".ci/run"), "--show")
    assert shown.strip() == code_block("test")


def test_the_readme_s_commands_install_extras_that_exist():
    extras = PROJECT["project"]["optional-dependencies"]
    wanted = re.findall(r'"\.\[(\w+)\]"', README)
    assert {"lab", "test", "docs"} == set(wanted) <= set(extras)


def test_the_version_stands_in_one_place():
    assert "version" in PROJECT["project"]["dynamic"]
    assert PROJECT["tool"]["hatch"]["version"]["path"] == "optlab/__init__.py"
    assert not re.search(r"^version:", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)


# Files.


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_notebooks_are_stored_without_outputs(path):
    import nbformat

    notebook = json.loads(path.read_text(encoding="utf-8"))
    nbformat.validate(notebook)
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)
    assert "widgets" not in notebook["metadata"]


def test_no_file_is_larger_than_a_megabyte():
    assert [path for path in files_of_the_repository() if path.stat().st_size > 1_000_000] == []
