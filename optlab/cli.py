"""The command ``optlab``: open the laboratory, write the explorer's page, check, look up."""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from socket import socket

FIRST_NOTEBOOK = "01-first-race.ipynb"

FOLDER = "optlab-notebooks"
"""The folder that ``optlab lab`` makes and opens: notebooks alone, not what is beside it."""
LECTURES = "lectures"
"""The folder in it, and among the packaged notebooks, of those that prove one claim each."""

# Defaults for JupyterLab, which the user's settings override: its question about news from the
# network would cover the figure.
LAB_DEFAULTS = Path(__file__).resolve().parent / "jupyter"


class Trouble(Exception):
    """An error that the user can fix; its text is a sentence and the exit status is 1."""


def main(arguments: list[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    arguments : list of str, optional
        The arguments after ``optlab``; by default those of this process.

    Returns
    -------
    int
        The exit status: 0 on success, 1 if something needs fixing.
    """
    chosen = _parser().parse_args(arguments)
    try:
        status: int = chosen.run(chosen)
        sys.stdout.flush()
        return status
    except BrokenPipeError:  # the reader has stopped (`| head`); the exit must not flush again
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Trouble as trouble:
        print(f"optlab: {trouble}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    from optlab import __version__

    parser = argparse.ArgumentParser(prog="optlab", description="A laboratory for optimizers.")
    parser.add_argument("--version", action="version", version=f"optlab {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="command")

    lab = commands.add_parser("lab", help="open JupyterLab on the first race")
    lab.add_argument("--no-browser", action="store_true", help="only print the address to open")
    lab.add_argument(
        "--port", type=_port, help="the port to listen on (default: a free one from 8888)"
    )
    lab.add_argument(
        "--directory",
        type=Path,
        help=f"the folder to open (default: {FOLDER} in this one, or this one if your notebooks "
        "are here)",
    )
    lab.add_argument(
        "--overwrite",
        action="store_true",
        help="replace your copies of notebooks by fresh ones",
    )
    lab.set_defaults(run=_lab)

    doctor = commands.add_parser(
        "doctor", help="say what is installed, what is missing, how to mend it"
    )
    doctor.set_defaults(run=_doctor)

    page = commands.add_parser(
        "page", help="write the explorer as one HTML file, which needs no Python and no network"
    )
    page.add_argument("file", type=Path, help="the file to write, such as explorer.html")
    page.add_argument("--problem", help='a function: a name or a formula, such as "x**2 + 3*y**2"')
    page.set_defaults(run=_page)

    rules = commands.add_parser(
        "rules", help="show the derivative rule of a function, or the table of all"
    )
    rules.add_argument(
        "names", nargs="*", metavar="name", help="a function: tanh, np.linalg.svd, getitem, '@'"
    )
    rules.set_defaults(run=_rules)

    course = commands.add_parser(
        "course",
        help="lay out a course for nbgrader; write solutions, handouts and slides; list the checks",
    )
    course_commands = course.add_subparsers(title="commands", required=True, metavar="command")
    new = course_commands.add_parser(
        "new", help="make a folder with assignments, in which nbgrader's commands work"
    )
    new.add_argument("directory", type=Path, help="a new folder, such as optimizers-2026")
    new.add_argument(
        "--id", default="", help="nbgrader's name of the course (default: the folder's)"
    )
    new.set_defaults(run=_course_new)
    solutions = course_commands.add_parser(
        "solutions", help="write each assignment with its solutions folded, for after the deadline"
    )
    solutions.add_argument("directory", type=Path, help="the folder to write to")
    solutions.add_argument(
        "names", nargs="*", metavar="name", help="an assignment, such as 04-adam (default: all)"
    )
    solutions.set_defaults(run=_course_solutions)
    checks = course_commands.add_parser("checks", help="list the checks of students' classes")
    checks.set_defaults(run=_course_checks)
    handouts = course_commands.add_parser(
        "handouts", help="write a page for each optimizer, as PDF: formula, picture, code"
    )
    handouts.add_argument("directory", type=Path, help="the folder for the files")
    handouts.add_argument(
        "names", nargs="*", metavar="name", help="an optimizer, such as Adam (default: all)"
    )
    handouts.set_defaults(run=_course_handouts)
    slides = course_commands.add_parser(
        "slides", help="write slides of the lectures, or of notebooks: HTML files, figures alive"
    )
    slides.add_argument("directory", type=Path, help="the folder for the files")
    slides.add_argument(
        "notebooks", nargs="*", metavar="notebook",
        help="a lecture, such as 03-momentum, or the path of a notebook (default: all lectures)",
    )  # fmt: skip
    slides.set_defaults(run=_course_slides)
    return parser


def _port(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is no port: give a number from 1 to 65535")
    return int(text)


def _doctor(chosen: argparse.Namespace) -> int:
    from optlab._doctor import doctor

    report = doctor()
    print(report)
    return 0 if report.ok else 1


def _page(chosen: argparse.Namespace) -> int:
    from importlib.util import find_spec

    file: Path = chosen.file
    if file.suffix.lower() not in (".html", ".htm"):
        raise Trouble(f"the page is an HTML file: write {file.with_suffix('.html')}")
    if not file.absolute().parent.is_dir():
        raise Trouble(f"there is no folder {file.absolute().parent}; make it first")
    if find_spec("anywidget") is None:
        from optlab._doctor import install_command

        raise Trouble(
            "the explorer needs packages that are not installed here. This installs them:"
            f"\n\n    {install_command('lab')}\n"
        )
    from optlab.viz.explorer import explore

    try:
        made = explore() if chosen.problem is None else explore(chosen.problem)
    except ValueError as error:
        raise Trouble(str(error)) from None
    made.to_html(file, library=True)
    print(f"Wrote {file} ({file.stat().st_size / 1000:.0f} kB). Open it in any browser.")
    return 0


def _rules(chosen: argparse.Namespace) -> int:
    from shutil import get_terminal_size

    import optlab.nn.functional  # noqa: F401  (its operations are in the table too)
    from optlab.autograd.reference.lookup import rule_of
    from optlab.autograd.reference.text import table

    if not chosen.names:
        print(table(max(get_terminal_size((100, 40)).columns, 60)))
    unknown = []
    for i, name in enumerate(chosen.names):
        try:
            print("\n" * (i > 0) + rule_of(name))
        except LookupError as error:
            unknown.append(str(error.args[0]))
    if unknown:
        raise Trouble("; ".join(unknown) + " (`optlab rules` lists all.)")
    return 0


def _course_new(chosen: argparse.Namespace) -> int:
    from optlab.course.layout import new_course

    try:
        written = new_course(chosen.directory, packaged_assignments(), chosen.id)
    except OSError as error:
        raise Trouble(f"{error}. Choose another folder") from None
    for path in written:
        print(f"Wrote {path}")
    first = next((path.stem for path in written if path.suffix == ".ipynb"), "NAME")
    print(
        f"\nNext, in {written[0].parent}:\n\n"
        f"    nbgrader generate_assignment {first}    # the students' version, in release/\n"
        f"    nbgrader autograde {first}              # what lies in submitted/STUDENT/{first}/\n"
        f"    nbgrader generate_feedback {first}\n"
        "    nbgrader export                        # grades.csv\n"
    )
    return 0


def _course_solutions(chosen: argparse.Namespace) -> int:
    from optlab.course.solutions import write_solutions

    assignments = packaged_assignments()
    unknown = [name for name in chosen.names if name not in assignments]
    if unknown:
        raise Trouble(
            f"there is no assignment {', '.join(unknown)}. There are {', '.join(assignments)}"
        )
    chosen_ones = {name: assignments[name] for name in chosen.names or assignments}
    try:
        written = write_solutions(chosen.directory, chosen_ones)
    except OSError as error:
        raise Trouble(f"{error}. Choose another folder") from None
    for path in written:
        print(f"Wrote {path}")
    return 0


def _course_checks(chosen: argparse.Namespace) -> int:
    from optlab.course import names

    for name, signature in names().items():
        print(f"{name:<{max(map(len, names()))}}  {signature}")
    return 0


def _course_handouts(chosen: argparse.Namespace) -> int:
    from importlib.util import find_spec

    if find_spec("matplotlib") is None or find_spec("contourpy") is None:
        from optlab._doctor import install_command

        raise Trouble(
            f"handouts are drawn by matplotlib. This installs it:\n\n    {install_command('lab')}\n"
        )
    from optlab.course.handouts import save_handouts

    try:
        for path in save_handouts(chosen.directory, chosen.names):
            print(f"Wrote {path}")
    except (ValueError, OSError) as error:
        raise Trouble(str(error)) from None
    return 0


def _course_slides(chosen: argparse.Namespace) -> int:
    from optlab.course.slides import MissingPackages, save_slides

    lectures = packaged_lectures()
    notebooks = [lectures.get(name, Path(name)) for name in chosen.notebooks]
    for path in notebooks:
        if not path.is_file():
            raise Trouble(
                f"{path} is neither a notebook nor a lecture; lectures are {', '.join(lectures)}"
            )
    try:
        for path in save_slides(chosen.directory, notebooks or lectures.values()):
            print(f"Wrote {path}", flush=True)
    except MissingPackages as error:
        from optlab._doctor import install_command

        raise Trouble(f"{error}:\n\n    {install_command('slides')}\n") from None
    except OSError as error:
        raise Trouble(str(error)) from None
    return 0


def packaged_lectures() -> dict[str, Path]:
    """Return the notebooks of the lectures, by name."""
    folder = packaged_notebook().parent / LECTURES
    return {path.stem: path for path in sorted(folder.glob("*.ipynb"))}


def packaged_assignments() -> dict[str, Path]:
    """Return the notebooks of the course's assignments, by name."""
    folder = packaged_notebook().parent / "course"
    return {path.stem: path for path in sorted(folder.glob("*.ipynb"))}


def _lab(chosen: argparse.Namespace) -> int:
    from importlib.util import find_spec

    if find_spec("jupyterlab") is None:
        from optlab._doctor import install_command

        raise Trouble(
            f"JupyterLab is not installed here. This installs it:\n\n    {install_command('lab')}\n"
        )
    directory = working_folder(Path()) if chosen.directory is None else chosen.directory
    notebook, remark = place_notebook(directory, overwrite=chosen.overwrite)
    print(remark)
    lectures = 0
    for further in further_notebooks():
        target, remark = place_notebook(directory, chosen.overwrite, further)
        if remark.startswith("Wrote") and target.parent.name == LECTURES:
            lectures += 1
        elif not remark.startswith("Opening"):
            print(remark)
    if lectures:
        print(f"Wrote {lectures} lectures into {notebook.parent / LECTURES}")
    sockets = bound_sockets(chosen.port)
    try:
        return _serve(notebook, sockets, open_browser=not chosen.no_browser and can_open_browser())
    finally:
        for one in sockets:
            one.close()


def working_folder(here: Path) -> Path:
    """Return the folder to open from a folder: one of its own for notebooks.

    JupyterLab shows the folder that it opens, and in a clone or a home folder notebooks drown in
    what else is there. Where notebooks of an earlier visit lie, work goes on.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     working_folder(Path(folder)).name
    'optlab-notebooks'
    """
    here = here.expanduser().absolute()
    if here.name == FOLDER or (here / FIRST_NOTEBOOK).is_file():
        return here
    return here / FOLDER


def packaged_notebook(name: str = FIRST_NOTEBOOK) -> Path:
    """Return the path of a notebook of optlab: in the package, or beside it in a clone."""
    package = Path(__file__).resolve().parent
    for folder in (package / "notebooks", package.parent / "notebooks"):
        if (folder / name).is_file():
            return folder / name
    raise Trouble(
        f"the notebook {name} is missing from this installation ({package}); install optlab again"
    )


def further_notebooks() -> list[str]:
    """Return the names of optlab's notebooks after the first, with the folder of the lectures.

    Examples
    --------
    >>> names = further_notebooks()
    >>> names[0], names[-1]
    ('02-find-a-wrong-gradient.ipynb', 'lectures/a6-pipelines.ipynb')
    """
    folder = packaged_notebook().parent
    found = [*sorted(folder.glob("[0-9]*.ipynb")), *sorted(folder.glob(f"{LECTURES}/*.ipynb"))]
    return [path.relative_to(folder).as_posix() for path in found if path.name != FIRST_NOTEBOOK]


def place_notebook(
    directory: Path, overwrite: bool = False, name: str = FIRST_NOTEBOOK
) -> tuple[Path, str]:
    """Copy the packaged notebook into a folder, without overwriting the user's work.

    Parameters
    ----------
    directory : Path
        The working folder; it is created if it does not exist.
    overwrite : bool
        Replace an existing notebook.
    name : str
        The packaged notebook; the first by default.

    Returns
    -------
    tuple of (Path, str)
        The notebook to open, and one sentence on what was done.
    """
    source = packaged_notebook(name)
    directory = directory.expanduser().absolute()
    target = directory / name
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        fresh = source.read_bytes()
        present = target.read_bytes() if target.exists() else None
        if present == fresh:
            return target, f"Opening {target}"
        if present is not None and not overwrite:
            return target, (
                f"Keeping your own {target} (it differs from the one that comes with optlab; "
                "--overwrite replaces it)"
            )
        target.write_bytes(fresh)
    except OSError as error:
        raise Trouble(
            f"cannot put the notebook into {directory}: {error.strerror or error}. "
            "Choose another folder with --directory"
        ) from error
    return target, f"{'Wrote' if present is None else 'Replaced'} {target}"


def bound_sockets(wanted: int | None = None) -> list[socket]:
    """Return sockets of localhost that listen on one port, the wanted one or a free one.

    Without a wish the ports from 8888 upward are tried. The port belongs to this process from now
    on: programs that start at one moment get different ones.
    """
    from errno import EACCES, EADDRINUSE
    from itertools import chain
    from socket import AF_INET, AF_INET6

    for port in [wanted] if wanted else chain(range(8888, 8988), [0]):
        with suppress(OSError):
            first = _bound(AF_INET, "127.0.0.1", port)
            try:
                return [first, _bound(AF_INET6, "::1", first.getsockname()[1])]
            except OSError as error:
                if error.errno not in (EADDRINUSE, EACCES):
                    return [first]  # this computer has no such address
                first.close()
    if wanted is None:
        raise Trouble("no port of this computer is free for JupyterLab; give one with --port")
    raise Trouble(f"port {wanted} is in use or not allowed; leave out --port to get a free one")


def _bound(family: int, host: str, port: int) -> socket:
    from socket import AF_INET6, IPPROTO_IPV6, IPV6_V6ONLY, SO_REUSEADDR, SOL_SOCKET, socket

    one = socket(family)
    try:
        if family == AF_INET6:
            one.setsockopt(IPPROTO_IPV6, IPV6_V6ONLY, 1)
        if os.name == "posix":  # elsewhere this option allows ports that are in use
            one.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
        one.setblocking(False)
        one.bind((host, port))
        one.listen(128)
    except OSError:
        one.close()
        raise
    return one


def can_open_browser() -> bool:
    """Return whether a browser window can open on the user's screen."""
    if os.environ.get("BROWSER"):  # set by the user, or by an editor's remote window
        return True
    if os.environ.get("SSH_CONNECTION") or os.environ.get("SSH_TTY"):
        return False
    if sys.platform in ("win32", "darwin"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _serve(notebook: Path, sockets: list[socket], open_browser: bool) -> int:
    from secrets import token_hex
    from threading import Thread
    from urllib.parse import quote

    from jupyter_server.serverapp import ServerApp
    from jupyterlab.labapp import LabApp

    from optlab.backend.blas_kernels import VARIABLE, choose_kernels
    from optlab.backend.blas_threads import hold_to_one_thread

    # The token is passed in the environment: other users of the computer can read command lines.
    token = os.environ.setdefault("JUPYTER_TOKEN", token_hex(24))
    elsewhere = os.environ.get("JUPYTER_CONFIG_PATH")
    os.environ["JUPYTER_CONFIG_PATH"] = os.pathsep.join(
        filter(None, [elsewhere, str(LAB_DEFAULTS)])
    )
    hold_to_one_thread(os.environ)  # the kernels have this environment
    choice = choose_kernels(os.environ)
    if choice is not None and choice.better is not None:
        print(
            f"Notebooks compute products of matrices with {VARIABLE}={choice.value}, "
            f"{choice.now.seconds / choice.better.seconds:.1f} times as fast here as with the "
            f"kernels that OpenBLAS takes ({choice.now.kernels}). Your own setting would win."
        )

    class Server(ServerApp):  # type: ignore[misc]
        """Jupyter's server, on sockets that are bound already.

        By itself it looks for a free port, lets go of it, and binds it a moment later, when
        another program may have it.
        """

        def _find_http_port(self) -> None:
            """Keep the port."""

        def _bind_http_server_tcp(self) -> bool:
            """Listen on the sockets."""
            self.http_server.add_sockets(sockets)
            return True

    port = sockets[0].getsockname()[1]
    if hasattr(ServerApp, "_bind_http_server_tcp"):
        LabApp.serverapp_class = Server
    else:  # another release, which binds the port elsewhere
        for one in sockets:
            one.close()
    page = f"/lab/tree/{quote(notebook.name)}"
    address = f"http://localhost:{port}{page}?token={quote(token)}"
    Thread(target=_announce, args=(port, address, open_browser), daemon=True).start()

    settings = {
        "ServerApp.root_dir": str(notebook.parent),
        "ServerApp.ip": "localhost",
        "ServerApp.port": port,
        "ServerApp.port_retries": 0,  # so that the printed address is right
        "ServerApp.open_browser": open_browser,
        "ServerApp.answer_yes": True,  # one Control-C stops it
        "LabApp.default_url": page,
        "Application.log_level": "WARN",
    }
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        settings["ServerApp.allow_root"] = True
    LabApp.launch_instance([f"--{name}={value}" for name, value in settings.items()])
    return 0


def _announce(port: int, address: str, open_browser: bool) -> None:
    """Wait until the server answers, then print its address."""
    from http.client import HTTPConnection, HTTPException
    from time import monotonic, sleep

    end = monotonic() + 120
    while monotonic() < end:
        connection = HTTPConnection("localhost", port, timeout=10)
        try:
            connection.request("GET", "/api")
            connection.getresponse()
            break
        except (OSError, HTTPException):
            sleep(0.1)
        finally:
            connection.close()
    else:  # the server's messages above give the reason
        return
    print("\n" + _greeting(port, address, open_browser), flush=True)


def _greeting(port: int, address: str, open_browser: bool) -> str:
    lines = [
        "JupyterLab is running. "
        + (
            "If no window opens, open this address:"
            if open_browser
            else "Open this address in a browser:"
        ),
        "",
        f"    {address}",
        "",
    ]
    if os.environ.get("SSH_CONNECTION"):
        lines += [
            "From your own computer, first connect the port in another terminal:",
            "",
            f"    ssh -N -L {port}:localhost:{port} <user>@<this computer>",
            "",
        ]
    lines.append(
        "Click into the first code cell; Shift+Enter opens the explorer. "
        "Control-C here stops JupyterLab."
    )
    return "\n".join(lines)
