"""optlab's requirements, what of them is installed, and the command that installs the rest."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from optlab._doctor.report import NEEDED, Row


@dataclass(frozen=True)
class Requirement:
    """A package with its bounds, such as ``plotly>=6.7,<8``."""

    name: str
    bounds: tuple[tuple[str, str], ...]
    text: str

    @classmethod
    def read(cls, text: str) -> Requirement | None:
        """Read a requirement line; None if its marker excludes this platform."""
        line, _, marker = text.partition(";")
        excluded = re.search(r"""sys_platform\s*!=\s*['"](\w+)['"]""", marker)
        if excluded and sys.platform == excluded[1]:
            return None
        name = re.match(r"[\w.-]+", line.strip())
        if name is None:
            return None
        bounds = re.findall(r"(>=|<=|==|!=|~=|>|<)\s*([\w.]+)", line)
        return cls(name[0], tuple(bounds), line.strip())

    def accepts(self, version: str) -> bool:
        """Return whether a version is within the bounds (its numbers count, not an `rc1`)."""
        found = _release(version)
        return all(_holds(found, sign, _release(bound)) for sign, bound in self.bounds)


def requirements() -> dict[str, list[Requirement]]:
    """Return the requirements of each part, from optlab's clone or its installed metadata."""
    clone = Path(__file__).resolve().parents[2] / "pyproject.toml"
    if clone.is_file():
        import tomllib

        project = tomllib.loads(clone.read_text(encoding="utf-8")).get("project", {})
        if project.get("name") == "optlab":
            lines = {NEEDED: project["dependencies"], **project["optional-dependencies"]}
            return {part: _read_all(texts) for part, texts in lines.items()}
    lines = {NEEDED: []}
    for text in metadata.requires("optlab") or []:
        extra = re.search(r"""extra\s*==\s*['"]([\w.-]+)['"]""", text)
        lines.setdefault(extra[1] if extra else NEEDED, []).append(text)
    return {part: _read_all(texts) for part, texts in lines.items()}


def _read_all(texts: Iterable[str]) -> list[Requirement]:
    read = [Requirement.read(text) for text in texts]
    # the extra `test` contains `optlab[lab]`, which is a separate part
    return [requirement for requirement in read if requirement and requirement.name != "optlab"]


def _release(version: str) -> tuple[int, ...]:
    numbers = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(number) for number in numbers[0].split(".")) if numbers else ()


def _holds(found: tuple[int, ...], sign: str, bound: tuple[int, ...]) -> bool:
    length = max(len(found), len(bound))
    a, b = (numbers + (0,) * (length - len(numbers)) for numbers in (found, bound))
    compatible = a >= b and found[: len(bound) - 1] == bound[:-1]
    answers = {">=": a >= b, "<=": a <= b, ">": a > b, "<": a < b, "==": a == b, "!=": a != b}
    return {**answers, "~=": compatible}[sign]


def look_at(requirement: Requirement, part: str = "") -> Row:
    """Compare one requirement with what is installed."""
    bounds = ",".join(sign + bound for sign, bound in requirement.bounds)
    try:
        version = metadata.version(requirement.name)
    except metadata.PackageNotFoundError:
        return Row(part, requirement.name, "missing", f"not installed (wanted: {bounds})")
    if not isinstance(version, str):  # left by an interrupted installation
        return Row(part, requirement.name, "broken", "installed, but its metadata is damaged")
    if requirement.accepts(version):
        return Row(part, requirement.name, "ok", version)
    # a pin is for comparisons; another version is not a fault of this installation
    pinned = all(sign == "==" for sign, _ in requirement.bounds)
    return Row(
        part, requirement.name, "missing" if pinned else "broken", f"{version}, wanted: {bounds}"
    )


def install_command(part: str) -> str:
    """Return the command that installs what a part (an extra, or ``"needed"``) lacks here.

    It names the packages themselves, so it works for a clone, a wheel and an editable installation.
    """
    lacking = [
        requirement.text
        for requirement in requirements().get(part, [])
        if look_at(requirement).state != "ok"
    ]
    return pip_install(lacking) if lacking else ""


def installed(package: str) -> bool:
    """Return whether a package is installed, without importing it."""
    try:
        return isinstance(metadata.version(package), str)
    except metadata.PackageNotFoundError:
        return False


def python() -> str:
    """Return the Python that runs, quoted for a command line."""
    return f'"{sys.executable}"' if " " in sys.executable else sys.executable or "python"


def pip_install(packages: Iterable[str], *options: str) -> str:
    """Return the command that installs these packages into the Python that runs."""
    quoted = (f'"{package}"' if re.search(r"[<>=\[]", package) else package for package in packages)
    return " ".join([python(), "-m pip install", *options, *quoted])
