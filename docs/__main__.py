"""Build the site: ``python -m docs`` writes docs/_build/html/index.html.

Every warning is an error, and so is a link that leads nowhere or a page that asks another host for
anything. Notebooks run once, and their outputs are kept until optlab or the notebook changes;
``--no-notebooks`` shows them without outputs.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from importlib.metadata import entry_points
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILD = HERE / "_build"


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m docs", description=__doc__)
    parser.add_argument("--out", type=Path, default=BUILD / "html", help="where the pages go")
    parser.add_argument(
        "--no-notebooks", action="store_true", help="show the notebooks without their outputs"
    )
    parser.add_argument(
        "--repository", metavar="OWNER/NAME", help="on GitHub: notebooks link to Colab and Binder"
    )
    parser.add_argument("--fresh", action="store_true", help="forget earlier builds")
    chosen = parser.parse_args(arguments)
    try:
        from sphinx.cmd.build import main as sphinx
    except ModuleNotFoundError:
        print('Sphinx is missing; pip install -e ".[docs]" brings it.', file=sys.stderr)
        return 2
    if not entry_points(group="optlab.renderers"):  # figures are found by them
        print('optlab is not installed; pip install -e ".[docs]" installs it.', file=sys.stderr)
        return 2
    from docs import sources

    if chosen.fresh:
        shutil.rmtree(BUILD, ignore_errors=True)
    # The kernels of notebooks import this checkout.
    root = str(HERE.parent)
    path = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = f"{root}{os.pathsep}{path}" if path else root
    os.environ["IPYTHONDIR"] = str(BUILD / "ipython")  # with the start of docs/kernel.py
    os.environ["OPTLAB_SITE_NOTEBOOKS"] = "off" if chosen.no_notebooks else "cache"
    sources.write(BUILD / "source", chosen.repository)
    # Sphinx writes a page of source code again where the file is newer, not where its links are.
    shutil.rmtree(chosen.out / "_modules", ignore_errors=True)
    options = ["-W", "--keep-going", "-q", "-b", "html", "-c", str(HERE)]
    places = [BUILD / "doctrees", BUILD / "source", chosen.out]
    status = sphinx([*options, "-d", *map(str, places)])
    if status:
        return int(status)
    from docs.check import problems

    found = problems(chosen.out.resolve())
    print("\n".join(found) or f"The site is built: {chosen.out / 'index.html'}")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
