"""Runs a notebook from top to bottom in a kernel of its own."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent


def outputs_of(
    notebook: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, further: Sequence[str] = ()
) -> list[Any]:
    """Run a notebook in a folder, then further code; return all outputs.

    What fails raises. Whatever is written to standard error, a warning for example, does so too.
    """
    import nbformat
    from nbclient import NotebookClient

    monkeypatch.setenv("PYTHONPATH", str(ROOT), prepend=os.pathsep)  # this clone, not another
    monkeypatch.setenv("IPYTHONDIR", str(folder))  # no settings of the user
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")  # as `optlab lab` does beside other work
    node = nbformat.read(notebook, as_version=4)
    node.cells += [nbformat.v4.new_code_cell(code) for code in further]
    here = {"metadata": {"path": str(folder)}}
    NotebookClient(node, timeout=300, store_widget_state=False, resources=here).execute()
    outputs = [output for cell in node.cells if cell.cell_type == "code" for output in cell.outputs]
    assert not [output for output in outputs if output.output_type == "error"]
    assert not [o for o in outputs if o.output_type == "stream" and o.name == "stderr"]
    return outputs
