"""Runs JavaScript by node, for tests of what plans write."""

from __future__ import annotations

import json
import shutil
import struct
import subprocess
from typing import Any

import numpy as np
import pytest

NODE = shutil.which("node")
needs_node = pytest.mark.skipif(
    NODE is None, reason="node, which runs JavaScript, is not installed"
)

_SEND = """
const bits = (x) => {
  const view = new DataView(new ArrayBuffer(8));
  view.setFloat64(0, Number(x));
  return view.getBigUint64(0).toString(16).padStart(16, "0");
};
const sent = (x) => x === null || x === undefined ? null : typeof x === "string" ? { text: x }
  : typeof x === "number" || typeof x === "boolean" ? bits(x)
  : Array.isArray(x) || ArrayBuffer.isView(x) ? Array.from(x, sent)
  : Object.fromEntries(Object.entries(x).map(([k, y]) => [k, sent(y)]));
"""


def evaluated(source: str, expression: str, folder: Any) -> Any:
    """Return the value of an expression in a module; numbers keep their bits."""
    file = folder / "module.mjs"
    file.write_text(f"{source}\n{_SEND}\nconsole.log(JSON.stringify(sent({expression})));\n")
    done = subprocess.run([str(NODE), str(file)], capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    return received(json.loads(done.stdout))


def received(x: Any) -> Any:
    """Return what was sent: numbers as floats, lists of them as arrays."""
    if isinstance(x, str):
        return struct.unpack(">d", bytes.fromhex(x))[0]
    if isinstance(x, list):
        parts = [received(one) for one in x]
        return np.array(parts) if all(isinstance(one, float) for one in parts) else parts
    if isinstance(x, dict):
        return x["text"] if "text" in x else {k: received(y) for k, y in x.items()}
    return x


def as_javascript(values: Any) -> str:
    """Return nested lists of floats as JavaScript, with their bits."""
    if isinstance(values, (list, tuple, np.ndarray)):
        return f"[{', '.join(map(as_javascript, values))}]"
    value = float(values)
    if np.isfinite(value):
        return repr(value)
    return "NaN" if np.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def same_bits(a: Any, b: Any) -> bool:
    """Return whether two arrays of floats have the same bits; NaN is NaN."""
    a, b = np.asarray(a, float), np.asarray(b, float)
    return a.shape == b.shape and bool(
        np.all((a.view(np.int64) == b.view(np.int64)) | (np.isnan(a) & np.isnan(b)))
    )
