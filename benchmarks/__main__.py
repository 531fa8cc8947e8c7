"""The command line of the benchmarks."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import browser, long_recording, memory, recompute, recording
from benchmarks.report import as_json, as_text
from benchmarks.row import all_rows, beside_checkout, select
from benchmarks.runner import Settings, measure

OTHERS = (browser, memory, recompute, recording, long_recording)
"""What is no row, and measured only by name."""

DEFAULT_JSON = Path(__file__).resolve().parent / "results" / "latest.json"


def positive(text: str) -> int:
    """Parse an integer above zero."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is not above zero")
    return number


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    made = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure optlab beside its peers, in processes that take turns.",
    )
    made.add_argument("names", nargs="*", help="rows (or files of rows); default: the default set")
    made.add_argument("--list", action="store_true", help="list the rows and stop")
    made.add_argument(
        "--repeats",
        type=positive,
        default=Settings.repeats,
        help="turns of each side (%(default)s)",
    )
    made.add_argument("--json", type=Path, default=DEFAULT_JSON, help="where the numbers go")
    made.add_argument(
        "--threads",
        type=positive,
        help="threads for both sides (default: ours as installed, a peer's best)",
    )
    made.add_argument(
        "--before",
        type=Path,
        metavar="CHECKOUT",
        help="another checkout of optlab to compare with, in place of the peers",
    )
    made.add_argument(
        "--peer-python",
        default=sys.executable,
        help="interpreter of the peers (default: this one, with the extra 'peers')",
    )
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Returns
    -------
    int
        The exit status: 0; 1 if our side of a row failed; 2 if a name matches no row. A missed
        target or a missing peer is reported and does not count as a failure.
    """
    options = parser().parse_args(arguments)
    try:
        apart = {other.NAME for other in OTHERS}
        names = [name for name in options.names if name not in apart]
        rows = select(all_rows(), names) if names or not options.names else []
    except LookupError as error:
        print(error.args[0], file=sys.stderr)
        return 2
    if options.list:
        for row in rows if options.names else all_rows():
            mark = "" if row.default else "  (only by name)"
            print(f"{row.name:<16}{row.title}{mark}")
        for other in OTHERS:
            if other.NAME in options.names or not options.names:
                print(f"{other.NAME:<16}{other.TITLE}  (only by name)")
        return 0
    settings = Settings(
        repeats=options.repeats, threads=options.threads, peer_python=options.peer_python
    )
    if options.before is not None:
        if not (options.before / "optlab").is_dir():
            print(f"--before: {options.before} is no checkout of optlab", file=sys.stderr)
            return 2
        rows = [beside_checkout(row, options.before.resolve()) for row in rows]
    results = []
    for row in rows:
        results.append(measure(row, settings))
        print(as_text(results[-1]), end="\n\n", flush=True)
    written = as_json(results, settings)
    finished = all(result.ours.measured for result in results)
    for other in (memory, recompute, recording, long_recording, browser):
        if other.NAME not in options.names:
            continue
        try:
            given = () if other is browser else (settings.peer_python,)
            written[other.NAME] = other.measure(*given)
            print(other.as_table(written[other.NAME]), end="\n\n", flush=True)
        except RuntimeError as error:
            print(f"{other.NAME}: not measured: {error}", file=sys.stderr)
            finished = False
    options.json.parent.mkdir(parents=True, exist_ok=True)
    options.json.write_text(json.dumps(written, indent=1) + "\n")
    print(f"written: {options.json}")
    return 0 if finished else 1


if __name__ == "__main__":
    raise SystemExit(main())
