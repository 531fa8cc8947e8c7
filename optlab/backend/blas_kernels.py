"""Which processor's kernels OpenBLAS computes products with, measured beside better ones.

NumPy's OpenBLAS has kernels for each kind of processor, and chooses when it is loaded. Where it
does not know the processor, or the environment names an older one (``OPENBLAS_CORETYPE``), products
take kernels without the widest instructions: 256 x 256 numbers of float32 take 308 us with those
for Haswell and 160 us with those for SkylakeX on a processor that has AVX-512. Kernels differ in
the order of sums, so in the last bits of products.

The choice is made once, before Python runs, so both ways are measured in child processes, one after
the other. A child also keeps the caller safe from kernels that the processor cannot run. Other
libraries (MKL, Accelerate) do not read the variable; for them there is nothing to report.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass

import numpy as np

#: What OpenBLAS reads when it is loaded.
VARIABLE = "OPENBLAS_CORETYPE"

#: Set by ``optlab lab`` for its kernels, to tell its own choice from one of the user.
CHOSEN_BY_LAB = "OPTLAB_LAB_BLAS_CORETYPE"

#: By what the processor has (names of NumPy, older and newer): the kernels for it, which every
#: OpenBLAS since 0.3.10 knows, and others that use the same instructions. Best first.
_BY_FEATURES: tuple[tuple[tuple[set[str], ...], str, set[str]], ...] = (
    (({"X86_V4"}, {"AVX512_SKX"}), "SkylakeX", {"skylakex", "cooperlake", "sapphirerapids"}),
    (
        ({"X86_V3"}, {"AVX2", "FMA3"}),
        "Haswell",
        {"haswell", "zen", "skylakex", "cooperlake", "sapphirerapids"},
    ),
    (({"SVE"},), "ARMV8SVE", {"armv8sve", "neoversev1", "neoversen2", "neoversev2", "a64fx"}),
)

#: Kernels that are named must be faster by this factor; two runs of one kernel differ by less.
_WORTH_IT = 1.15

#: One thread, as both ways shall compute alike; the best of 15 ms of products.
_CHILD = """
import numpy as np
from time import perf_counter
a, b = np.ones((256, 256), np.float32), np.ones((256, 256), np.float32)
a @ b
best, end = 1e9, perf_counter() + 0.015
while perf_counter() < end:
    start = perf_counter()
    a @ b
    best = min(best, perf_counter() - start)
print("seconds", best)
"""


@dataclass(frozen=True)
class Measured:
    """One child process: the kernels that OpenBLAS took, and the seconds of a product."""

    kernels: str
    seconds: float


@dataclass(frozen=True)
class Choice:
    """What OpenBLAS takes now, and the environment that is faster.

    Attributes
    ----------
    now : Measured
        In a process with the environment as it is.
    better : Measured or None
        With ``OPENBLAS_CORETYPE`` changed; None if nothing was faster.
    value : str or None
        What the variable is then; None if it is to be taken out of the environment.
    """

    now: Measured
    better: Measured | None = None
    value: str | None = None


def processor_features() -> set[str]:
    """Return NumPy's names of the instructions that this processor has.

    Examples
    --------
    >>> isinstance(processor_features(), set)
    True
    """
    shown = np.show_config(mode="dicts")
    listed = shown.get("SIMD Extensions", {}) if isinstance(shown, dict) else {}
    return {*listed.get("baseline", ()), *listed.get("found", ())}


def wanted_kernels(kernels: str, features: Iterable[str]) -> str | None:
    """Return the kernels for a processor with these features; None if those in use are as good.

    Examples
    --------
    >>> wanted_kernels("Haswell", {"X86_V3", "X86_V4"})
    'SkylakeX'
    >>> wanted_kernels("Cooperlake", {"X86_V3", "X86_V4"}) is None
    True
    """
    have = set(features)
    for ways, best, as_good in _BY_FEATURES:
        if any(way <= have for way in ways):
            return None if kernels.lower() in as_good else best
    return None


def measure_product(environment: Mapping[str, str]) -> Measured | None:
    """Measure a product of 256 x 256 numbers in a process with this environment.

    None if it does not say which kernels it takes (its BLAS is not OpenBLAS, or one that has only
    one kind), or does not live (kernels that the processor cannot run).

    Examples
    --------
    >>> import os
    >>> found = measure_product(os.environ)
    >>> found is None or found.seconds > 0
    True
    """
    child = {**environment, "OPENBLAS_VERBOSE": "2", "OPENBLAS_NUM_THREADS": "1"}
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-c", _CHILD],
            env=child, capture_output=True, text=True, timeout=30, check=False,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    core = re.search(r"^Core: (\w+)", done.stderr, re.MULTILINE)
    seconds = re.search(r"^seconds (\S+)", done.stdout, re.MULTILINE)
    if done.returncode != 0 or core is None or seconds is None:
        return None
    return Measured(core[1], float(seconds[1]))


def compare_kernels(
    environment: Mapping[str, str] | None = None,
    measure: Callable[[Mapping[str, str]], Measured | None] = measure_product,
    features: Iterable[str] | None = None,
) -> Choice | None:
    """Measure products with the kernels in use, and with better ones that the processor can run.

    Where the environment names kernels, the other way is OpenBLAS's own choice; else, the
    kernels for the processor's instructions.

    Parameters
    ----------
    environment : mapping, optional
        By default, that of this process.
    measure : callable
        What measures a product, given an environment.
    features : iterable of str, optional
        What the processor has; by default, as NumPy says.

    Returns
    -------
    Choice or None
        None if the library behind NumPy has no such choice.

    Examples
    --------
    >>> def measure(environment):
    ...     kernels = environment.get("OPENBLAS_CORETYPE", "Haswell")
    ...     return Measured(kernels, {"Haswell": 300e-6, "SkylakeX": 160e-6}[kernels])
    >>> compare_kernels({}, measure, {"X86_V4"}).value
    'SkylakeX'
    """
    environment = dict(os.environ if environment is None else environment)
    have = processor_features() if features is None else set(features)
    now = measure(environment)
    if now is None:
        return None
    if (wanted := wanted_kernels(now.kernels, have)) is None:
        return Choice(now)
    ways: list[str | None] = [None, wanted] if environment.get(VARIABLE) else [wanted]
    for value in ways:
        other = {name: text for name, text in environment.items() if name != VARIABLE}
        if value is not None:
            other[VARIABLE] = value
        found = measure(other)
        if found is None or found.kernels == now.kernels:
            continue
        if found.seconds * _WORTH_IT < now.seconds:
            return Choice(now, found, value)
    return Choice(now)


def choose_kernels(
    environment: MutableMapping[str, str],
    measure: Callable[[Mapping[str, str]], Measured | None] = measure_product,
    features: Iterable[str] | None = None,
) -> Choice | None:
    """Let processes with this environment take the faster kernels, unless the user chose.

    Returns
    -------
    Choice or None
        What was measured, where the environment was changed; else None.

    Examples
    --------
    >>> choose_kernels({"OPENBLAS_CORETYPE": "Haswell"}) is None
    True
    """
    if environment.get(VARIABLE):
        return None
    choice = compare_kernels(environment, measure, features)
    if choice is None or choice.better is None or choice.value is None:
        return None
    environment[VARIABLE] = environment[CHOSEN_BY_LAB] = choice.value
    return choice


def why(environment: Mapping[str, str] | None = None) -> str:
    """Return in words who chose the kernels.

    Examples
    --------
    >>> why({"OPENBLAS_CORETYPE": "Zen"})
    'OPENBLAS_CORETYPE=Zen, set by the user'
    """
    environment = os.environ if environment is None else environment
    if value := environment.get(VARIABLE):
        by_lab = environment.get(CHOSEN_BY_LAB) == value
        return f"{VARIABLE}={value}, set by {'optlab lab' if by_lab else 'the user'}"
    return "the library's own choice"
