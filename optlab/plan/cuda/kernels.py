"""The executor of a block plan on a GPU: one generated kernel in place of an operation a pass.

CuPy runs an update operation by operation: each reads its operands from the memory of the device
and writes its result back. The kernel of `optlab.plan.cuda.codegen` reads and writes each array
once, to the same bits. CuPy compiles it (``RawKernel``), keeps it in memory and on disk, and
launches it on the current stream.

The numbers of a step (rate, ``beta**t``) lie in one array on the device, whose address does not
change: a CUDA graph that has captured the launch is replayed after `CupyKernels.load`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from optlab.backend.device import device_named, device_of
from optlab.plan.blocks import BlockPlan, RunsBlock
from optlab.plan.cuda.codegen import OPTIONS, Kernel, kernel_of
from optlab.plan.plan import Place
from optlab.plan.progress import Progress

#: Threads of a block, and the most blocks; a thread goes on with further elements beyond these.
THREADS = 256
_MOST_BLOCKS = 1 << 20


class CupyKernels:
    """Runs a block plan of one phase as one kernel, on arrays of one device.

    Attributes
    ----------
    plan : BlockPlan
    prepare, afters : callable, empty list
        The plan's.
    kernel : Kernel
        With its source.
    """

    #: The number of elements of a block: all of an array.
    block = 1 << 62

    def __init__(self, plan: BlockPlan, kernel: Kernel, module: Any) -> None:
        self.plan, self.kernel, self._module = plan, kernel, module
        self.prepare, self.afters = plan.prepare, plan.afters
        self._launch = module.RawKernel(kernel.source, kernel.name, options=OPTIONS)
        self._places = [plan.held.index(name) for name in [*kernel.read, *kernel.written]]
        self._count = len(kernel.read)
        numbered: dict[Place, int] = {place: i for i, place in enumerate(plan.prepared[0])}
        self._prepared = [numbered[place] for place in kernel.numbers]
        #: The numbers on the device, at one address for good.
        self.numbers = module.full((max(1, len(self._prepared)),), 0.0, dtype=np.float64)

    def load(self, prepared: Sequence[Any]) -> None:
        """Copy the numbers of a step to the device; `prepared` is what `prepare` returned."""
        if self._prepared:
            self.numbers.set(np.array([prepared[i] for i in self._prepared], np.float64))

    def phase(self, number: int, prepared: Sequence[Any]) -> RunsBlock:
        """Return the function that runs the kernel on the arrays of a block."""
        self.load(prepared)
        return self.launch

    def launch(self, arrays: Sequence[Any], progress: Progress | None = None) -> list[Any]:
        """Run the kernel on arrays, in place, with the numbers that were loaded last."""
        progress = progress or Progress()
        given = [arrays[place] for place in self._places]
        for i, array in enumerate(given):
            if not array.flags.c_contiguous:
                if i >= self._count:
                    raise ValueError(
                        "a kernel writes into arrays whose elements lie side by side; got one of "
                        f"shape {array.shape} and strides {array.strides}."
                    )
                given[i] = array.copy()
        size = int(given[-1].size)
        if not size:
            return []
        numbers = [self.numbers] if self._prepared else []
        blocks = min(-(-size // THREADS), _MOST_BLOCKS)
        arguments = (*given, *numbers, np.int64(size))
        with _current(given[-1]):
            progress.do([(self._launch, (blocks,), (THREADS,), arguments)])
        return []


def _current(array: Any) -> AbstractContextManager[Any]:
    """Return a context in which the device of an array is the current one."""
    device = getattr(array, "device", None)
    return device if isinstance(device, AbstractContextManager) else nullcontext()


#: By plan and device: its kernels, or None where CuPy runs it by operations.
_made: WeakKeyDictionary[BlockPlan, dict[str, CupyKernels | None]] = WeakKeyDictionary()


def has_kernels(array: Any) -> bool:
    """Return whether the module of an array's device compiles kernels.

    Examples
    --------
    >>> has_kernels(np.ones(2))
    False
    """
    if isinstance(array, np.ndarray):
        return False
    return _compiler(array) is not None


def _compiler(array: Any) -> Any:
    """Return the module of an array's device if it compiles kernels."""
    try:
        device = device_named(device_of(array))
    except (ValueError, RuntimeError):
        return None
    plain = isinstance(array, device.arrays)  # no ensemble
    return device.module if plain and hasattr(device.module, "RawKernel") else None


def kernels_of(plan: BlockPlan, array: Any) -> CupyKernels | None:
    """Return the executor of a plan for arrays on the device of `array`; None if there is none.

    There is none on the CPU, for a plan with reductions over whole arrays, and for one with an
    operation that has no form in CUDA.
    """
    module = None if isinstance(array, np.ndarray) else _compiler(array)
    if module is None:
        return None
    by_device = _made.setdefault(plan, {})
    name = device_of(array)
    if name not in by_device:
        kernel = None if plan.afters else kernel_of(plan, 0)
        with _current(array):
            by_device[name] = None if kernel is None else CupyKernels(plan, kernel, module)
    return by_device[name]
