"""A recording of 10,000 steps of a million parameters: its memory, its store, the time to open it.

Norms and a projection are recorded at every tenth step, and ten snapshots of parameters and state.
The network is small beside its weights (batches of 4), so that the run takes minutes.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

NAME = "long_recording"
TITLE = "10,000 recorded steps of a million parameters: memory, store, and opening"

STEPS = 10_000
BOUND = 200e6
"""The most bytes, in memory and in the store."""


def resident() -> int:
    """Return the bytes of this process that lie in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def run(to: Path | None, steps: int = STEPS) -> dict[str, Any]:
    """Record a run, in memory or into a store, and open what it leaves."""
    import numpy as np

    import optlab as ol

    ol.seed(0)
    model = ol.nn.Sequential(
        ol.nn.Linear(784, 800), ol.nn.ReLU(), ol.nn.Linear(800, 460), ol.nn.ReLU(),
        ol.nn.Linear(460, 10),
    )  # fmt: skip
    optimizer = ol.optimizer.Momentum(1e-3, parameters=model.parameters())
    x = ol.to_tensor(np.random.default_rng(0).standard_normal((4, 784)).astype(np.float32))
    y = ol.to_tensor(np.arange(4))

    @ol.capture
    def step(x: Any, y: Any) -> Any:
        loss = ol.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    for _ in range(100):
        step(x, y)
    probes = [
        ol.probes.Norms(terms=False, every=10),
        ol.probes.Projection(k=2, every=10),
        ol.probes.Snapshots(every=steps // 10),
    ]
    before, most = resident(), 0
    started = perf_counter()
    with ol.record(optimizer, probes=probes, limit="200 MB", to=to) as trace:
        for t in range(steps):
            step(x, y)
            if t % 100 == 0 or t == steps - 1:
                most = max(most, resident() - before)
    seconds = perf_counter() - started
    kept = sum(record.bytes for record in trace.records.values())
    found = {
        "parameters": sum(p.size for p in model.parameters()),
        "steps": len(trace), "seconds": seconds, "rows": kept, "resident": most,
        "snapshots": len(trace.steps("snapshot")), "left_out": trace.left_out,
    }  # fmt: skip
    if to is not None:
        found["store"] = sum(one.stat().st_size for one in to.rglob("*") if one.is_file())
        started = perf_counter()
        opened = ol.load_trace(to)
        found["opened"] = perf_counter() - started
        assert len(opened) == steps
    return found


def measure(python: str = "") -> dict[str, Any]:
    """Record the run in memory, and into a store."""
    with tempfile.TemporaryDirectory() as folder:
        return {"store": run(Path(folder) / "run.zarr"), "memory": run(None)}


def as_table(found: dict[str, Any]) -> str:
    """Format both runs for the terminal."""
    lines = [f"{NAME}: {TITLE} (target: {BOUND / 1e6:g} MB, opened within 1 s)"]
    for where, one in found.items():
        text = (
            f"  {where:<8}{one['steps']:,} steps of {one['parameters']:,} parameters: rows "
            f"{one['rows'] / 1e6:.0f} MB, process grown by {one['resident'] / 1e6:.0f} MB"
        )
        if "store" in one:
            text += f", store {one['store'] / 1e6:.0f} MB, opened in {one['opened']:.2f} s"
        lines.append(text)
        lines += [f"          left out: {sentence}" for sentence in one["left_out"]]
    return "\n".join(lines)
