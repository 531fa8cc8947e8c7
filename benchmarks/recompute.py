"""Memory and time of recomputation: ``python -m benchmarks recompute``.

For each method: the peak of a step, its time relative to the plain step, and whether its results
are bitwise equal; and the peaks beside those of PyTorch's ``torch.utils.checkpoint``.
"""

from __future__ import annotations

import gc
import sys
import time
import tracemalloc
import warnings
from collections.abc import Callable
from contextlib import ExitStack
from statistics import quantiles
from typing import Any

from benchmarks import recompute_models
from benchmarks.processes import installed_version, json_output
from benchmarks.recompute_models import CASES

NAME = "recompute"
TITLE = "peak and time of a step by each method of recomputation, beside PyTorch's checkpoints"

MIB = 2**20
#: Limits of the peak above the start in MiB, for the residual blocks, by method.
LIMITS = {
    "plain": 100,
    "each block": 26,
    "four segments": 36,
    "every fourth block a checkpoint": 38,
    "budget 40 MiB": 42,
}
#: Upper bounds: the time over that of the plain step, and the peak over PyTorch's.
TIME, PEAK = 1.45, 1.1
ROUNDS = 9

Way = Callable[[list[Any], Any, ExitStack], Any]


def _plain(parts: list[Any], x: Any, within: ExitStack) -> Any:
    for part in parts:
        x = part(x)
    return x


def _each(parts: list[Any], x: Any, within: ExitStack) -> Any:
    import optlab as ol

    for part in parts:
        x = ol.recompute(part, x)
    return x


def _segments(count: int) -> Way:
    def run(parts: list[Any], x: Any, within: ExitStack) -> Any:
        import optlab as ol

        return ol.recompute_sequential(parts, x, segments=count)

    return run


def _budget(parts: list[Any], x: Any, within: ExitStack) -> Any:
    import optlab as ol

    within.enter_context(ol.rematerialize(budget="40 MiB"))
    return _plain(parts, x, within)


#: The checkpointed step runs the plain code: `_checkpoints` has set the segments before.
WAYS: dict[str, Way] = {
    "plain": _plain,
    "each block": _each,
    "four segments": _segments(4),
    "every fourth block a checkpoint": _plain,
    "budget 40 MiB": _budget,
}


def _checkpoints(name: str, parts: list[Any], parameters: list[Any]) -> Any:
    """Build the optimizer that sets the checkpoints of a method; None where it needs none."""
    import optlab as ol

    if name != "every fourth block a checkpoint":
        return None
    inner = ol.optimizer.SGD(0.1, parameters=parameters)
    optimizer = ol.optimizer.RecomputeOptimizer(inner)
    optimizer.set_checkpoints(parts[3::4])
    return optimizer


class _Ours:
    """One of our chains with its batch, and a step by any method."""

    def __init__(self, name: str) -> None:
        import optlab as ol

        batch, build, *_ = CASES[name]
        ol.seed(0)
        self.parts, self.loss_of = build()
        self.parameters = [p for part in self.parts for p in part.parameters()]
        self.x, self.y = map(ol.to_tensor, batch())

    def step(self, way: Way, x: Any, y: Any) -> Any:
        """Run forward and backward passes; return the loss."""
        with ExitStack() as within:
            loss = self.loss_of(way(self.parts, x, within), y)
            loss.backward()
        return loss.item()

    def zero_gradients(self) -> None:
        """Allocate zero gradients."""
        import numpy as np

        for p in self.parameters:
            p.grad = np.zeros(p.shape, p.data.dtype)

    def measure(self, way: Way) -> tuple[int, list[Any]]:
        """Return the peak above the start, and loss, gradients and the next random number."""
        import optlab as ol

        self.zero_gradients()
        self.step(way, self.x[:1], self.y[:1])  # fills the caches with little memory
        self.zero_gradients()
        ol.seed(5)
        gc.collect()
        tracemalloc.start()
        start = tracemalloc.get_traced_memory()[0]
        loss = self.step(way, self.x, self.y)
        peak = tracemalloc.get_traced_memory()[1] - start
        tracemalloc.stop()
        numbers = [loss, *(p.grad.numpy().copy() for p in self.parameters), ol.rand([1]).numpy()]
        return peak, numbers


def our_blocks() -> dict[str, dict[str, Any]]:
    """Measure each method on the residual blocks.

    Returns
    -------
    dict
        By method: ``peak`` in bytes above the start, ``equal`` (loss, gradients and the random
        stream afterwards are bitwise those of the plain step), ``seconds`` of every round.
    """
    chain = _Ours("16 residual blocks")
    expected: list[Any] = []
    found: dict[str, Any] = {}
    for name, way in WAYS.items():
        optimizer = _checkpoints(name, chain.parts, chain.parameters)
        peak, numbers = chain.measure(way)
        del optimizer
        expected = expected or numbers
        found[name] = {"peak": peak, "equal": _equal(numbers, expected), "seconds": []}
    for turn in range(ROUNDS + 1):
        for name, way in WAYS.items():
            optimizer = _checkpoints(name, chain.parts, chain.parameters)
            chain.zero_gradients()
            gc.collect()
            begin = time.perf_counter()
            chain.step(way, chain.x, chain.y)
            took = time.perf_counter() - begin
            del optimizer
            if turn:  # the first round is discarded
                found[name]["seconds"].append(took)
    return found


def _equal(numbers: list[Any], expected: list[Any]) -> bool:
    import numpy as np

    return all(map(np.array_equal, numbers, expected))


def our_peaks() -> dict[str, dict[str, int]]:
    """Measure the peak of every chain: plain, each part on its own, and in segments."""
    found: dict[str, Any] = {}
    for name, case in CASES.items():
        chain = _Ours(name)
        ways = {"plain": _plain, "each part": _each, "segments": _segments(case.segments)}
        found[name] = {how: chain.measure(way)[0] for how, way in ways.items()}
    return found


def peaks_of_pytorch() -> dict[str, dict[str, int]]:
    """Measure the same with ``torch.utils.checkpoint``, by the better of its two variants."""
    import torch
    from torch.utils.checkpoint import checkpoint, checkpoint_sequential

    found: dict[str, Any] = {}
    for name, case in CASES.items():
        torch.manual_seed(0)
        parts, loss_of = case.pytorch()
        parameters = [p for part in parts for p in part.parameters()]
        inputs, labels = map(torch.from_numpy, case.batch())

        def plain(x: Any, parts: Any = parts) -> Any:
            for part in parts:
                x = part(x)
            return x

        def each(x: Any, reentrant: bool, parts: Any = parts) -> Any:
            for part in parts:
                x = checkpoint(part, x, use_reentrant=reentrant)
            return x

        def segments(x: Any, reentrant: bool, parts: Any = parts, count: Any = case) -> Any:
            return checkpoint_sequential(parts, count.segments, x, use_reentrant=reentrant)

        def step(
            way: Any, *variant: bool, x: Any = inputs, y: Any = labels, f: Any = loss_of
        ) -> None:
            # The reentrant variant returns gradients only if an input requires one.
            fed = x.detach().requires_grad_() if variant == (True,) else x
            f(way(fed, *variant), y).backward()

        def peak(way: Any, *variant: bool, step: Any = step, held: Any = parameters) -> int:
            for p in held:
                p.grad = torch.zeros_like(p)
            step(way, *variant)
            return peak_of_allocator(lambda: step(way, *variant))

        variants = [False, True] if inputs.is_floating_point() else [False]
        found[name] = {
            "plain": peak(plain),
            "each part": min(peak(each, variant) for variant in variants),
            "segments": min(peak(segments, variant) for variant in variants),
        }
    return found


def peak_of_allocator(work: Callable[[], Any]) -> int:
    """Return the highest net amount of memory of PyTorch's CPU allocator during `work`.

    PyTorch has no such counter for the CPU, but its allocator reports every allocation and every
    release to the profiler, temporaries inside an operation included.
    """
    import torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        activities = [torch.profiler.ProfilerActivity.CPU]
        with torch.profiler.profile(activities=activities, profile_memory=True) as profiler:
            work()
    results: Any = profiler.profiler
    pieces = [one for one in results.kineto_results.events() if one.name() == "[memory]"]
    alive = highest = 0
    for piece in sorted(pieces, key=lambda one: one.start_ns()):
        alive += piece.nbytes()
        highest = max(highest, alive)
    return highest


def _run_in_process(python: str, function: str) -> dict[str, Any]:
    """Run a function of this module in another process."""
    program = (
        f"import json; from benchmarks import recompute; print(json.dumps(recompute.{function}()))"
    )
    answer: dict[str, Any] = json_output(python, program)
    return answer


def measure(peer_python: str = sys.executable) -> dict[str, Any]:
    """Measure all methods, and both sides.

    Raises
    ------
    RuntimeError
        If a side failed. A missing PyTorch is reported by `as_table`.
    """
    blocks = _run_in_process(sys.executable, "our_blocks")
    ours = _run_in_process(sys.executable, "our_peaks")
    version = installed_version(peer_python, "torch")
    peers = {} if version is None else _run_in_process(peer_python, "peaks_of_pytorch")
    return {"blocks": blocks, "ours": ours, "pytorch": peers, "version": version}


def ratios(found: dict[str, Any], name: str) -> tuple[float, float, float]:
    """Return the quartiles (lower, median, upper) of a method's time over plain's, by round."""
    pairs = zip(found[name]["seconds"], found["plain"]["seconds"], strict=True)
    lower, median, upper = quantiles(one / plain for one, plain in pairs)
    return lower, median, upper


def as_table(result: dict[str, Any]) -> str:
    """Format the figures with their targets."""
    m = recompute_models
    sizes = f"{m.BLOCKS} residual blocks of {m.WIDTH}, {m.INSIDE} inside, batch {m.BATCH}"
    lines = [f"{NAME}: {TITLE}", f"  {sizes}; MiB above the start"]
    width = max(map(len, [*LIMITS, *result["ours"]]))
    for name, found in result["blocks"].items():
        peak, limit = found["peak"] / MIB, LIMITS[name]
        said = f"  {name:<{width}}  peak {peak:5.1f}, at most {limit}: {_verdict(peak <= limit)}"
        if name != "plain":
            lower, median, upper = ratios(result["blocks"], name)
            said += (
                f"; {median:.2f} x the time ({lower:.2f} to {upper:.2f}), at most {TIME}: "
                f"{_verdict(median <= TIME)}; to the bit: {_verdict(found['equal'])}"
            )
        lines.append(said)
    for name, ours in result["ours"].items():
        for how, peak in ours.items():
            said = f"  {name:<{width}}  {how:<9} {peak / MIB:6.2f} MiB"
            if theirs := result["pytorch"].get(name, {}).get(how):
                said += f" = {peak / theirs:.2f} x PyTorch's {theirs / MIB:.2f}, at most {PEAK}: "
                said += _verdict(peak <= PEAK * theirs)
            lines.append(said)
    if result["version"] is None:
        lines.append("  PyTorch is not installed for that interpreter.")
    return "\n".join(lines)


def _verdict(met: bool) -> str:
    return "met" if met else "MISSED"
