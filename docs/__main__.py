"""Build the site: ``python -m docs`` writes docs/_build/html/index.html.

Every warning is an error. Notebooks run once and are kept until optlab or the notebook changes;
``--no-notebooks`` leaves them out. Nothing is asked of another host.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
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
    parser.add_argument("--fresh", action="store_true", help="forget earlier builds")
    chosen = parser.parse_args(arguments)
    try:
        from sphinx.cmd.build import main as sphinx
    except ModuleNotFoundError:
        print('Sphinx is missing; pip install -e ".[docs]" brings it.', file=sys.stderr)
        return 2
    from docs import sources

    if chosen.fresh:
        shutil.rmtree(BUILD, ignore_errors=True)
    # Kernels import this checkout, and a build takes the threads that a test takes.
    root = str(HERE.parent)
    path = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = f"{root}{os.pathsep}{path}" if path else root
    os.environ["OPTLAB_SITE_NOTEBOOKS"] = "off" if chosen.no_notebooks else "cache"
    sources.write(BUILD / "source")
    status = sphinx(
        ["-W", "--keep-going", "-q", "-b", "html", "-c", str(HERE), "-d", str(BUILD / "doctrees")]
        + [str(BUILD / "source"), str(chosen.out)]
    )
    if status == 0:
        print(f"The site is built: {chosen.out / 'index.html'}")
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
