"""The reference: rules are found by the name of a function, and the page of rules is current."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import optlab as ol
import optlab.numpy
from optlab import cli
from optlab.autograd import rule
from optlab.autograd.dispatch.array_protocols import PLAIN
from optlab.autograd.operation import TABLE
from optlab.autograd.reference import entries, notes
from optlab.autograd.reference.text import explain, table
from optlab.autograd.rules.source import rule_text
from tests.autograd import rules_page
from tests.autograd.test_rules import FUNCTIONS

ENTRIES = entries.entries()

#: NumPy removed trapz, the last of its functions to go, in 2.4.
RECENT = pytest.mark.skipif(hasattr(np, "trapz"), reason="the page is written by NumPy 2.4")


@RECENT
def test_the_page_of_rules_is_up_to_date() -> None:
    assert rules_page.PAGE.read_text(encoding="utf-8") == rules_page.page(), (
        f"optlab/autograd/rules/README.md is out of date; this writes it: {rules_page.COMMAND}"
    )


@RECENT
def test_every_function_of_the_engine_is_on_the_page_with_its_checks() -> None:
    page = rules_page.page()
    rows = {line.split("|")[1].strip(" `"): line for line in page.splitlines() if "|" in line}
    for function in FUNCTIONS:
        entry = entries.entry_of(function)
        assert entry is not None
        checks = int(rows[entry.name].rstrip(" |").rsplit("|", 1)[1])
        assert checks > 0, entry.name


def test_the_files_that_the_page_links_to_are_there() -> None:
    import re

    links = re.findall(r"\]\(([^)#]+)", rules_page.PAGE.read_text(encoding="utf-8"))
    folder = rules_page.PAGE.parent
    assert [link for link in links if not (folder / link).exists()] == []


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.name)
def test_every_function_is_explained_with_the_source_of_its_rules(entry: entries.Entry) -> None:
    said = explain(entry)
    assert said.startswith(entry.name)
    assert len(said.splitlines()) < 150, "this is not understood in a minute"
    for _, one in entry.rules():
        assert one is None or rule_text(one).splitlines()[0] in said
    if entry.kind in ("rule", "zero", "composed", "random"):
        file, _, line = said.splitlines()[1].rpartition(":")
        path = rules_page.ROOT / file.rpartition(": ")[2].strip()
        assert 0 < int(line) <= len(path.read_text(encoding="utf-8").splitlines())


NAMES = {
    "np.tanh": "np.tanh", "numpy.tanh": "np.tanh", "tanh": "np.tanh", "ol.tanh": "np.tanh",
    "optlab.numpy.tanh": "np.tanh", "t.sum": "np.sum", "Tensor.reshape": "np.reshape",
    "linalg.svd": "np.linalg.svd", "svd": "np.linalg.svd", "abs": "np.absolute",
    "concat": "np.concatenate", "add.reduce": "np.sum", "hypot.reduce": "np.hypot.reduce",
    "getitem": "getitem", "[]": "getitem", "setitem": "assign", "@": "np.matmul", "**": "np.power",
    "random.normal": "ol.numpy.random.normal", "dirichlet": "ol.numpy.random.dirichlet",
    "T": "np.transpose", "fft": "np.fft.fft",
    "sliding_window_view": "np.lib.stride_tricks.sliding_window_view",
}  # fmt: skip


@pytest.mark.parametrize("wanted", NAMES)
def test_a_function_is_found_by_the_name_that_people_use(wanted: str) -> None:
    found = entries.find(wanted)
    assert found is not None
    assert found.name == NAMES[wanted]


KINDS = {
    "tanh": "rule", "floor": "zero", "einsum": "composed", "argmax": "plain", "copyto": "composed",
    "gcd": "whole numbers", "roots": "no rule", "array": "optlab.numpy", "amax": "rule",
    "uniform": "random",
}  # fmt: skip


@pytest.mark.parametrize("name", KINDS)
def test_the_kind_of_a_function_is_what_a_tensor_meets(name: str) -> None:
    found = entries.find(name)
    assert found is not None
    assert found.kind == KINDS[name]


@pytest.mark.parametrize(
    "entry", [e for e in ENTRIES if e.kind in ("plain",)], ids=lambda entry: entry.name
)
def test_what_is_said_to_be_plain_is_plain_to_the_engine(entry: entries.Entry) -> None:
    assert entry.function in PLAIN
    assert "plain arrays" in explain(entry)


def test_what_is_refused_comes_with_what_to_write_instead() -> None:
    for name, instead in {"roots": "Function", "gcd": "t.numpy()"}.items():
        found = entries.find(name)
        assert found is not None
        assert instead in explain(found)
    t = ol.to_tensor([1.0], requires_grad=True)
    with pytest.raises(TypeError, match="roots"):
        np.roots(t)


def test_the_conventions_of_a_function_stand_with_its_rule() -> None:
    said = {name: explain(found) for name in ("sqrt", "maximum", "power", "tanh")
            if (found := entries.find(name))}  # fmt: skip
    assert "one-sided slope" in said["sqrt"]
    assert "half to each where a = b" in said["maximum"]
    assert "at a < 0" in said["power"]
    assert "no derivative" not in said["tanh"]


@pytest.mark.parametrize(
    ("name", "said"),
    [("max", "shared equally"), ("amax", "shared equally"), ("median", "neighbours"),
     ("quantile", "with ties"), ("svd", "arbitrary rotation"), ("eigh", "both triangles"),
     ("norm", "zero vector"), ("std", "all numbers are equal")],
)  # fmt: skip
def test_the_conventions_of_other_files_stand_with_their_functions(name: str, said: str) -> None:
    found = entries.find(name)
    assert found is not None
    assert said in explain(found).partition("Where there is no derivative:")[2]


def test_the_conventions_are_of_functions_that_are_there() -> None:
    known = {entry.name for entry in ENTRIES}
    named = {name for *_, whose in notes.ELSEWHERE for name in whose}
    assert named | set(notes.FORMULAS) <= known


def test_decompositions_come_with_formula_reference_and_warning() -> None:
    for name in ("svd", "eigh", "qr", "inv", "det", "max"):
        said = str(ol.autograd.rule_of(name))
        assert "See " in said.partition("lambda")[0].partition("def ")[0]
    assert "repeated singular values" in ol.autograd.rule_of("svd")
    assert "repeated eigenvalues" in ol.autograd.rule_of("eigh")


def test_what_a_rule_calls_is_shown_with_its_place_and_can_be_looked_up() -> None:
    said = str(ol.autograd.rule_of("svd"))
    assert "def inverse_gaps(" in said
    assert "def _split_rotation(" in said
    assert "rules/linalg/matrices.py:" in said
    assert "def inverse_gaps(" in ol.autograd.rule_of("inverse_gaps")


def test_a_long_function_is_cut() -> None:
    from optlab.autograd.reference.text import _shortened

    assert _shortened("a\n" * 40).count("\n") == 40
    cut = _shortened("a\n" * 60).splitlines()
    assert (len(cut), cut[-1].strip()) == (40, "... (21 lines more)")


def test_the_functions_that_optlab_numpy_has_are_said_to_be_there() -> None:
    own = {name for name in vars(optlab.numpy) if not name.startswith("_") and hasattr(np, name)}
    assert own >= entries.IN_OPTLAB_NUMPY
    asking = {name for name in own if hasattr(getattr(np, name), "_implementation")}
    assert own - asking - {"random"} == entries.IN_OPTLAB_NUMPY | {"full_like"} - asking


def test_rules_that_users_add_are_theirs() -> None:
    def mine(x: np.ndarray) -> np.ndarray:
        return x

    rule(mine, lambda g: g)
    try:
        assert "mine" not in {entry.name for entry in entries.entries()}
    finally:
        del TABLE[mine]


def test_a_function_itself_may_be_asked_for() -> None:
    assert ol.autograd.rule_of(np.cos) == ol.autograd.rule_of("cos")
    assert repr(ol.autograd.rule_of(np.cos)).startswith("np.cos(x)\n")
    assert "no rule" in ol.autograd.rule_of(np.roots)
    with pytest.raises(LookupError, match=r"linalg\.cholesky"):
        ol.autograd.rule_of("cholsky")
    with pytest.raises(LookupError, match="knows nothing"):
        ol.autograd.rule_of(test_a_function_itself_may_be_asked_for)


def test_the_map_of_the_engine_names_every_file_and_no_other() -> None:
    import re

    said = ol.autograd.__doc__ or ""
    folder = Path(ol.autograd.__file__).parent
    present = {path.name for path in folder.glob("*.py")} - {"__init__.py"}
    assert set(re.findall(r"``(\w+\.py)``", said)) == present
    packages = {path.parent.name for path in folder.glob("*/__init__.py")}
    assert set(re.findall(r"``(\w+)/``", said)) == packages


# The command.


def test_the_command_shows_the_rule(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["rules", "np.tanh", "floor"]) == 0
    said = capsys.readouterr().out
    assert "lambda g, y: g * (1 - y * y)" in said
    assert "elementwise.py:" in said
    assert "np.floor" in said


def test_the_command_suggests_what_was_meant(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["rules", "tahn"]) == 1
    said = capsys.readouterr().err
    assert "'tahn'" in said
    assert "np.tanh" in said


def test_the_command_says_so_where_nothing_is_spelled_like_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert cli.main(["rules", "nonexist"]) == 1
    said = capsys.readouterr().err
    assert "No name is spelled like it." in said
    assert "Did you mean" not in said


@pytest.mark.skipif(sys.platform == "win32", reason="pipes break otherwise there")
def test_the_command_is_quiet_where_nobody_reads_on() -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "optlab", "rules"], stdout=write, stderr=subprocess.PIPE, check=False
    )
    os.close(write)
    assert done.stderr == b""


def test_the_command_without_a_name_lists_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["rules"]) == 0
    said = capsys.readouterr().out
    for entry in ENTRIES:
        assert entry.name in said
    assert "relu" in said  # functions of layers are listed too


def test_the_table_keeps_to_its_width() -> None:
    assert max(map(len, table(80).splitlines())) <= 80
