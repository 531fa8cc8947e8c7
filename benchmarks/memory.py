"""Bytes saved for the backward pass, and the peak of a step: ``python -m benchmarks memory``.

Bytes are exact and the same in every run, so there are no turns and no quartiles. Each side runs
in its own process.
"""

from __future__ import annotations

import sys
import tracemalloc
from typing import Any

from benchmarks.memory_models import CASES
from benchmarks.processes import installed_version, json_output

NAME = "memory"
TITLE = "bytes saved for backward by an MLP, LeNet-5 and a GPT, and the traced peak of a step"

#: Upper bounds: saved bytes over PyTorch's, and the peak over (saved bytes + gradients).
SAVED, PEAK = 1.1, 1.3


def our_bytes(name: str) -> dict[str, int]:
    """Measure one of our networks.

    Returns
    -------
    dict
        ``saved``: bytes saved for the backward pass, without parameters, with the batch where it is
        saved. ``gradients`` of the parameters. ``peak``: the highest point of `tracemalloc` over
        forward and backward, above a start with parameters but without gradients and batch.
    """
    import optlab as ol
    from optlab.autograd.graph.reader import graph_of

    batch, build, _ = CASES[name]
    ol.seed(0)
    model, loss_of = build()
    inputs, labels = batch()
    # One example fills the caches of a first call without memory of the size of a batch.
    loss_of(ol.to_tensor(inputs[:1]), ol.to_tensor(labels[:1])).backward()
    for parameter in model.parameters():
        parameter.grad = None
    tracemalloc.start()
    x, y = ol.to_tensor(inputs.copy()), ol.to_tensor(labels.copy())
    loss = loss_of(x, y)
    after_forward, peak_of_forward = tracemalloc.get_traced_memory()
    loss.backward()
    remains, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del loss
    saved = graph_of(loss_of(x, y)).kept_bytes
    return {
        "saved": saved,
        "gradients": sum(p.data.nbytes for p in model.parameters()),
        "after_forward": after_forward,
        "peak_of_forward": peak_of_forward,
        "peak": peak,
        "remains": remains - inputs.nbytes - labels.nbytes,
    }


def bytes_of_pytorch(name: str) -> dict[str, int]:
    """Count the bytes that PyTorch saves for backward: each storage once, no parameters."""
    import torch

    batch, _, others = CASES[name]
    found = {}
    for how, build in others.items():
        torch.manual_seed(0)
        model, loss_of = build()
        x, y = map(torch.from_numpy, batch())
        storages = {p.untyped_storage().data_ptr(): 0 for p in model.parameters()}
        alive: list[Any] = []  # so that no address is used again

        def pack(t: Any, storages: Any = storages, alive: Any = alive) -> Any:
            storage = t.untyped_storage()
            storages.setdefault(storage.data_ptr(), storage.nbytes())
            alive.append(storage)
            return t

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
            loss_of(x, y)
        found[how] = sum(storages.values())
    return found


def _run_in_process(python: str, function: str) -> dict[str, Any]:
    """Run a function of this module for all cases in another process."""
    program = (
        "import json, sys; from benchmarks import memory; "
        f"print(json.dumps({{name: memory.{function}(name) for name in memory.CASES}}))"
    )
    answer: dict[str, Any] = json_output(python, program)
    return answer


def measure(peer_python: str = sys.executable) -> dict[str, Any]:
    """Measure all networks on both sides.

    Raises
    ------
    RuntimeError
        If our side failed. A missing PyTorch is reported by `as_table`.
    """
    ours = _run_in_process(sys.executable, "our_bytes")
    version = installed_version(peer_python, "torch")
    peers = {} if version is None else _run_in_process(peer_python, "bytes_of_pytorch")
    return {"ours": ours, "pytorch": peers, "version": version}


def as_table(result: dict[str, Any]) -> str:
    """Format the figures with their targets."""
    lines = [f"{NAME}: {TITLE}"]
    width = max(map(len, CASES))
    for name, ours in result["ours"].items():
        kept, peak = ours["saved"], ours["peak"]
        least = kept + ours["gradients"]
        lines.append(
            f"  {name:<{width}}  peak {_kb(peak)} = {peak / least:.2f} x (kept {_kb(kept)} + "
            f"gradients {_kb(ours['gradients'])}), at most {PEAK}: {_verdict(peak <= PEAK * least)}"
        )
        for how, theirs in result["pytorch"].get(name, {}).items():
            label = "PyTorch" + (f", {how}" if how else "")
            lines.append(
                f"  {'':<{width}}  kept {_kb(kept)} = {kept / theirs:.2f} x {label} "
                f"{_kb(theirs)}, at most {SAVED}: {_verdict(kept <= SAVED * theirs)}"
            )
    if result["version"] is None:
        lines.append("  PyTorch is not installed for that interpreter.")
    return "\n".join(lines)


def _kb(count: float) -> str:
    return f"{count / 1e3:,.0f} kB"


def _verdict(met: bool) -> str:
    return "met" if met else "MISSED"
