"""The command line, as far as it works without a server; tests/browser starts a real one."""

import argparse
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import optlab
from optlab import cli
from optlab.backend import blas_kernels, blas_threads
from tests.pages import stored_in


def test_version(capsys):
    with pytest.raises(SystemExit) as left:
        cli.main(["--version"])
    assert left.value.code == 0
    assert capsys.readouterr().out.strip() == f"optlab {optlab.__version__}"


def test_without_a_command_it_says_which_there_are(capsys):
    with pytest.raises(SystemExit) as left:
        cli.main([])
    assert left.value.code == 2
    assert "command" in capsys.readouterr().err


def test_python_m_optlab_is_the_same_command():
    done = subprocess.run(
        [sys.executable, "-m", "optlab", "--version"],
        capture_output=True,
        text=True,
        cwd=Path(optlab.__file__).parents[1],
    )
    assert done.stdout.strip() == f"optlab {optlab.__version__}"


def test_the_parser_needs_nothing_heavy():
    code = "import sys; from optlab import cli; cli._parser(); print('numpy' in sys.modules)"
    root = Path(optlab.__file__).parents[1]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root)
    assert done.stdout.strip() == "False"


def test_doctor_prints_the_report(capsys):
    status = cli.main(["doctor"])
    report = optlab.doctor()
    assert status == (0 if report.ok else 1)
    assert "numpy" in capsys.readouterr().out


# The notebook in the working folder.


def test_the_notebook_is_put_into_a_new_folder(tmp_path):
    notebook, remark = cli.place_notebook(tmp_path / "a" / "b")
    assert notebook.read_bytes() == cli.packaged_notebook().read_bytes()
    assert remark.startswith("Wrote")


def test_an_unchanged_copy_is_opened(tmp_path):
    cli.place_notebook(tmp_path)
    assert cli.place_notebook(tmp_path)[1].startswith("Opening")


def test_an_edited_copy_is_kept_and_that_is_said(tmp_path):
    notebook, _ = cli.place_notebook(tmp_path)
    notebook.write_text("my own work")
    same, remark = cli.place_notebook(tmp_path)
    assert same.read_text() == "my own work"
    assert "Keeping your own" in remark
    assert "--overwrite" in remark


def test_overwrite_replaces_it(tmp_path):
    notebook, _ = cli.place_notebook(tmp_path)
    notebook.write_text("my own work")
    _, remark = cli.place_notebook(tmp_path, overwrite=True)
    assert notebook.read_bytes() == cli.packaged_notebook().read_bytes()
    assert remark.startswith("Replaced")


def test_a_folder_that_cannot_be_written_is_named(tmp_path, capsys):
    (tmp_path / "file").write_text("")
    assert cli.main(["lab", "--directory", str(tmp_path / "file" / "below")]) == 1
    said = capsys.readouterr().err
    assert str(tmp_path / "file") in said
    assert "--directory" in said


def test_a_damaged_installation_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(cli, "__file__", str(tmp_path / "optlab" / "cli.py"))
    with pytest.raises(cli.Trouble, match=r"install\s+optlab again"):
        cli.packaged_notebook()


def test_missing_jupyterlab_gets_the_command_that_mends_it(monkeypatch, capsys):
    import importlib.util

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr("optlab._doctor.install_command", lambda part: f"install {part}")
    assert cli.main(["lab"]) == 1
    said = capsys.readouterr().err
    assert "JupyterLab is not installed" in said
    assert "install lab" in said


# Addresses, and the browser that opens the page.


def test_a_port_that_is_taken_is_named():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        number = taken.getsockname()[1]
        with pytest.raises(cli.Trouble, match=f"port {number} is in use"):
            cli.bound_sockets(number)


def test_two_that_start_at_one_moment_get_different_ports():
    found = [cli.bound_sockets() for _ in range(3)]
    try:
        assert len({sockets[0].getsockname()[1] for sockets in found}) == 3
        for sockets in found:
            with socket.create_connection(sockets[0].getsockname()[:2]):
                pass  # it listens: nobody else can have the port
    finally:
        for sockets in found:
            for one in sockets:
                one.close()


@pytest.mark.parametrize("text", ["0", "65536", "eight", "-1"])
def test_a_wrong_port_is_explained(text):
    with pytest.raises(argparse.ArgumentTypeError, match="from 1 to 65535"):
        cli._port(text)


PLACES = [
    ({}, "linux", False),
    ({"DISPLAY": ":0"}, "linux", True),
    ({"WAYLAND_DISPLAY": "wayland-0"}, "linux", True),
    ({"DISPLAY": ":10", "SSH_CONNECTION": "1"}, "linux", False),
    ({"BROWSER": "helper", "SSH_CONNECTION": "1"}, "linux", True),
    ({}, "darwin", True),
    ({"SSH_TTY": "/dev/ttys001"}, "darwin", False),
    ({}, "win32", True),
]


@pytest.mark.parametrize(("environment", "platform", "opens"), PLACES)
def test_a_browser_is_opened_only_where_it_would_be_seen(environment, platform, opens, monkeypatch):
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "SSH_CONNECTION", "SSH_TTY", "BROWSER"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", platform)
    assert cli.can_open_browser() is opens


@pytest.fixture
def jupyter_arguments(monkeypatch):
    """The arguments with which JupyterLab would have been started."""
    labapp = pytest.importorskip("jupyterlab.labapp")
    words = []
    monkeypatch.setattr(labapp.LabApp, "launch_instance", words.extend)
    monkeypatch.setattr(cli, "_announce", lambda *arguments: None)
    monkeypatch.setattr(blas_kernels, "choose_kernels", lambda environment: None)
    monkeypatch.setenv("JUPYTER_TOKEN", "a secret")
    for name in (*blas_threads.VARIABLES, blas_threads.CHOSEN_BY_LAB):
        monkeypatch.setenv(name, "")  # as if it was not set; put back after the test
    return words


@pytest.mark.parametrize("chosen", [None, *blas_threads.VARIABLES])
def test_kernels_hold_products_to_one_thread_unless_the_user_chose(
    chosen, jupyter_arguments, tmp_path, monkeypatch
):
    if chosen:
        monkeypatch.setenv(chosen, "2")
    assert cli.main(["lab", "--no-browser", "--directory", str(tmp_path)]) == 0
    code = (
        "import optlab as ol; "
        "print(next(row.detail for row in ol.doctor().rows if row.name == 'BLAS threads'))"
    )
    # A kernel is a process with the environment of the server.
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    wanted = f"{chosen}=2, set by the user" if chosen else "set by optlab lab"
    assert wanted in said.stdout
    if chosen is None:
        assert said.stdout.startswith("1 (OPENBLAS_NUM_THREADS=1")


def test_the_server_opens_on_the_notebook(jupyter_arguments, tmp_path):
    assert cli.main(["lab", "--no-browser", "--directory", str(tmp_path)]) == 0
    assert f"--ServerApp.root_dir={tmp_path}" in jupyter_arguments
    assert f"--LabApp.default_url=/lab/tree/{cli.FIRST_NOTEBOOK}" in jupyter_arguments
    assert "--ServerApp.open_browser=False" in jupyter_arguments


def test_it_opens_a_folder_of_notebooks_and_not_what_is_beside(
    jupyter_arguments, tmp_path, monkeypatch
):
    (tmp_path / "README.md").write_text("a clone, or a home folder")
    monkeypatch.chdir(tmp_path)
    assert cli.main(["lab", "--no-browser"]) == 0
    folder = tmp_path / cli.FOLDER
    assert f"--ServerApp.root_dir={folder}" in jupyter_arguments
    assert {path.suffix for path in folder.rglob("*") if path.is_file()} == {".ipynb"}
    assert not list(tmp_path.glob("*.ipynb"))
    # From inside it, and where notebooks of an earlier visit lie, the work goes on there.
    monkeypatch.chdir(folder)
    assert cli.working_folder(Path()) == folder
    earlier = tmp_path / "earlier"
    cli.place_notebook(earlier)
    assert cli.working_folder(earlier) == earlier


def test_the_further_notebooks_are_put_beside_it(jupyter_arguments, tmp_path, capsys):
    own = tmp_path / "02-find-a-wrong-gradient.ipynb"
    assert cli.main(["lab", "--no-browser", "--directory", str(tmp_path)]) == 0
    assert f"Wrote {own}" in capsys.readouterr().out
    own.write_text("my own work")
    assert cli.main(["lab", "--no-browser", "--directory", str(tmp_path)]) == 0
    assert f"Keeping your own {own}" in capsys.readouterr().out
    assert own.read_text() == "my own work"
    cli.main(["lab", "--no-browser", "--directory", str(tmp_path), "--overwrite"])
    assert own.read_bytes() == cli.packaged_notebook(own.name).read_bytes()


def test_the_lectures_lie_in_a_folder_of_their_own(jupyter_arguments, tmp_path, capsys):
    assert cli.main(["lab", "--no-browser", "--directory", str(tmp_path)]) == 0
    assert f"Wrote 18 lectures into {tmp_path / 'lectures'}" in capsys.readouterr().out
    own = tmp_path / "lectures" / "01-slope-and-rate.ipynb"
    assert (
        own.read_bytes() == cli.packaged_notebook("lectures/01-slope-and-rate.ipynb").read_bytes()
    )
    own.write_text("my own work")
    assert cli.main(["lab", "--no-browser", "--directory", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert f"Keeping your own {own}" in said
    assert "lectures into" not in said


def test_the_token_is_not_on_the_command_line(jupyter_arguments, tmp_path):
    cli.main(["lab", "--no-browser", "--directory", str(tmp_path)])
    assert not any("a secret" in word for word in jupyter_arguments)


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="there is no root here")
@pytest.mark.parametrize("number", [0, 1000])
def test_only_root_needs_to_be_allowed(jupyter_arguments, tmp_path, monkeypatch, number):
    monkeypatch.setattr(os, "geteuid", lambda: number)
    cli.main(["lab", "--no-browser", "--directory", str(tmp_path)])
    assert ("--ServerApp.allow_root=True" in jupyter_arguments) is (number == 0)


def test_the_greeting_shows_the_address_and_the_way_from_afar(monkeypatch):
    monkeypatch.delenv("SSH_CONNECTION", raising=False)
    near = cli._greeting(8888, "http://localhost:8888/x?token=1", open_browser=False)
    assert "http://localhost:8888/x?token=1" in near
    assert "ssh" not in near
    monkeypatch.setenv("SSH_CONNECTION", "1")
    assert "-L 8888:localhost:8888" in cli._greeting(8888, "http://localhost:8888", False)


def test_page_writes_the_whole_explorer(tmp_path, capsys):
    file = tmp_path / "explorer.html"
    assert cli.main(["page", str(file), "--problem", "x**2 + 7*y**2"]) == 0
    assert f"Wrote {file}" in capsys.readouterr().out
    stored = stored_in(file.read_text(encoding="utf-8"))
    assert stored["state"]["problem"] == "x**2 + 7*y**2"
    assert {"SGD", "Adam", "Lion", "Adadelta"} <= set(stored["given"]["rules"])
    assert {"rosenbrock", "parabola", "double_well"} <= set(stored["given"]["problems"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["race.txt"], "the page is an HTML file: write race.html"),
        (["no/such/folder/race.html"], "there is no folder"),
        (["race.html", "--problem", "x^2"], "write x**2"),
        (["race.html", "--problem", ""], "the problem is an empty text"),
    ],
)
def test_page_says_what_to_mend(arguments, said, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["page", *arguments]) == 1
    assert said in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
