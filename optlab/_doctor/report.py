"""The doctor's report, as text and as a table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

NEEDED = "needed"  # the part that optlab requires; every other part is an extra

PURPOSES = {
    NEEDED: "the engine",
    "lab": "notebooks, figures and tables; numba",
    "store": "traces as Zarr files",
    "fast": "numba alone: large optimizer updates as machine loops",
    "cuda12": "NVIDIA GPUs, CUDA 12",
    "cuda13": "NVIDIA GPUs, CUDA 13",
    "cupy-check": "NVIDIA's compiler, for a test of generated kernels",
    "formats": "safetensors and small float types",
    "parallel": "many processes",
    "course": "assignments",
    "test": "the test suite",
    "peers": "PyTorch and JAX, to compare with",
}


@dataclass(frozen=True)
class Row:
    """One check.

    Attributes
    ----------
    part : str
        ``"needed"``, or the extra that it belongs to.
    name : str
        What was checked.
    state : {"ok", "slow", "missing", "broken"}
        Slow works, and was measured to be faster with a setting. Missing is a choice (an extra that
        is not installed); broken is installed and does not work.
    detail : str
        The version, or what is wrong.
    mend : str
        How to fix it; empty if nothing is to be done.
    """

    part: str
    name: str
    state: str
    detail: str = ""
    mend: str = ""


@dataclass(frozen=True)
class Report:
    """The doctor's report: printed as text, displayed as a table in a notebook."""

    rows: tuple[Row, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing is broken; what is slow, or not installed, is not a fault."""
        return all(row.state != "broken" for row in self.rows)

    @property
    def summary(self) -> str:
        """The result in one sentence."""
        broken = [row.name for row in self.rows if row.state == "broken"]
        if broken:
            return f"Not well: {', '.join(broken)}. How to mend it stands beside it."
        slow = [row.name for row in self.rows if row.state == "slow"]
        more = f" Faster with another setting: {', '.join(slow)}." if slow else ""
        return f"All that is installed works.{more}"

    def parts(self) -> dict[str, list[Row]]:
        """Return the rows of each part, in the order of the report."""
        parts: dict[str, list[Row]] = {}
        for row in self.rows:
            parts.setdefault(row.part, []).append(row)
        return parts

    def __str__(self) -> str:
        width = max((len(row.name) for row in self.rows), default=0)
        lines = []
        for part, rows in self.parts().items():
            lines.append(_heading(part))
            for row in rows:
                lines.append(f"  {row.state:<7}  {row.name:<{width}}  {row.detail}".rstrip())
            lines += [f"    to mend: {mend}" for mend in _once(row.mend for row in rows)]
            lines.append("")
        return "\n".join([*lines, self.summary])

    def _repr_html_(self) -> str:
        from html import escape

        body = []
        for part, rows in self.parts().items():
            body.append(
                f"<tr><th colspan=3 style='text-align:left'>{escape(_heading(part))}</th></tr>"
            )
            for row in rows:
                cells = (row.name, row.state, row.detail)
                body.append(
                    "<tr>"
                    + "".join(f"<td style='text-align:left'>{escape(cell)}</td>" for cell in cells)
                    + "</tr>"
                )
            body += [
                f"<tr><td>to mend</td><td colspan=2 style='text-align:left'>"
                f"<code>{escape(mend)}</code></td></tr>"
                for mend in _once(row.mend for row in rows)
            ]
        return f"<table>{''.join(body)}</table><p>{escape(self.summary)}</p>"


def _heading(part: str) -> str:
    name = "needed" if part == NEEDED else f"extra {part}"
    return f"{name}: {PURPOSES[part]}" if part in PURPOSES else name


def _once(texts: Iterable[str]) -> list[str]:
    return [text for text in dict.fromkeys(texts) if text]
