"""How many threads the products of matrices use: the BLAS library behind NumPy.

OpenBLAS shares products among all cores from a size of about 64 x 64 on. A thread that waits for
another one burns processor time, and on a busy machine it waits long: a training step of a network
of 256 units takes 2 ms with one thread and 32 ms with two that share two cores with other programs.
Products of thousands of rows and columns gain from all cores.

The number is one for the whole process, and belongs to the user: importing optlab leaves it alone.
``optlab lab`` starts its kernels with one thread. The library package threadpoolctl sets it in a
process that runs; it is imported on first use (its search for libraries takes some 10 ms).

Layers cut large work into blocks and give each core blocks of its own, so `one_each` holds products
to one thread meanwhile. It asks the OpenBLAS of NumPy itself: threadpoolctl obeys one thread of
Python at a time, and need not be installed.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from optlab.backend.extras import missing

#: What BLAS libraries read when NumPy is imported.
VARIABLES = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS")

#: Set by ``optlab lab`` for its kernels, to tell its own choice from one of the user.
CHOSEN_BY_LAB = "OPTLAB_LAB_BLAS_THREADS"

#: The most that a C int holds.
_MOST = 2**31 - 1

#: The number of each library before `set_blas_threads` changed it, by its file.
_before: dict[str, int] = {}


def _libraries() -> list[Any]:
    """Return threadpoolctl's controllers of the BLAS libraries in this process."""
    from threadpoolctl import ThreadpoolController  # type: ignore[import-not-found, import-untyped, unused-ignore]

    found = ThreadpoolController().select(user_api="blas").lib_controllers
    return list(found)


@cache
def _openblas() -> tuple[Any, str] | None:
    """Return NumPy's OpenBLAS and the form of its names; None if it uses another library."""
    from numpy.linalg import _umath_linalg  # type: ignore[attr-defined, unused-ignore]

    names = [f"{a}{{}}{b}" for a in ("scipy_", "") for b in ("64_", "")]
    beside = Path(np.__file__).parent.with_name("numpy.libs").glob("*openblas*.dll")
    # A handle of an extension module also finds the symbols of what it links, except on Windows.
    for path in (_umath_linalg.__file__, *map(str, beside)):
        library = ctypes.CDLL(path)
        for name in names:
            if all(
                hasattr(library, name.format(f"openblas_{what}"))
                for what in ("get_parallel", "get_num_threads", "set_num_threads")
            ):
                return library, name
    return None


def openblas_function(name: str) -> tuple[Any, bool] | None:
    """Return a function of NumPy's OpenBLAS, and whether its integers have 64 bits; or None."""
    found = _openblas()
    if found is None or _own_library() is None:
        return None
    library, form = found
    function = getattr(library, form.format(name), None)
    return None if function is None else (function, form.endswith("64_"))


@cache
def _own_library() -> tuple[Callable[[], int], Callable[[int], Any]] | None:
    """Return the functions that read and set the number of threads of NumPy's OpenBLAS.

    None if NumPy uses another library, or an OpenBLAS whose threads are those of OpenMP, where each
    thread of Python has a number of its own.
    """
    found = _openblas()
    if found is None:
        return None
    library, form = found
    kind, read, write = (
        getattr(library, form.format(f"openblas_{what}"))
        for what in ("get_parallel", "get_num_threads", "set_num_threads")
    )
    return (read, write) if kind() == 1 else None


class _Holding:
    """How many calls of `one_each` run now, and the number of threads to go back to."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.depth = 0
        self.number = 1


_holding = _Holding()


def _let_go_in_child() -> None:
    # A child that was forked meanwhile has none of the threads that would let go.
    global _holding
    held, _holding = _holding, _Holding()
    if held.depth and (library := _own_library()) is not None:
        library[1](held.number)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_let_go_in_child)


class one_each:
    """Hold the products of NumPy to one thread each, for a ``with`` block.

    The block receives the number of threads that products may use outside it: as many threads of
    Python may then multiply at a time. It is 1 if the library cannot be held.

    Examples
    --------
    >>> with one_each() as threads:
    ...     threads >= 1
    True
    """

    __slots__ = ()

    def __enter__(self) -> int:
        library = _own_library()
        if library is None:
            return 1
        read, write = library
        with _holding.lock:
            if not _holding.depth:
                _holding.number = read()
                if _holding.number > 1:
                    write(1)
            _holding.depth += 1
            return _holding.number

    def __exit__(self, *error: object) -> None:
        library = _own_library()
        if library is None:
            return
        with _holding.lock:
            _holding.depth -= 1
            if not _holding.depth and _holding.number > 1:
                library[1](_holding.number)


@contextmanager
def _as_outside() -> Iterator[None]:
    """Read and set numbers of threads as they are outside `one_each`, whatever runs now."""
    with _holding.lock:
        library = _own_library() if _holding.depth else None
        if library is None:
            yield
            return
        read, write = library
        write(_holding.number)
        try:
            yield
        finally:
            _holding.number = read()
            write(1)


def set_blas_threads(n: int | None) -> int:
    """Set how many threads the products of matrices in this process use.

    One is best for small networks, and for any network on a machine that is busy with other
    programs; all cores are best for products of thousands of rows and columns. ``ol.doctor()`` says
    how many are used, and what that costs here. Convolutions, attention, GELU and linear layers of
    stacked inputs use as many cores where there is much to do, each with blocks of its own.

    Parameters
    ----------
    n : int or None
        None: as many as when the process started.

    Returns
    -------
    int
        The number before.

    Raises
    ------
    ValueError, TypeError
        If `n` is not a whole number from 1 on, or None, or is more than the library takes.
    ModuleNotFoundError
        If the package threadpoolctl is missing; the message says what to do without it.

    Examples
    --------
    >>> import optlab as ol
    >>> before = ol.set_blas_threads(1)
    >>> ol.set_blas_threads(before)
    1
    """
    if n is not None and (isinstance(n, bool) or not isinstance(n, (int, np.integer))):
        raise TypeError(f"set_blas_threads takes a whole number of threads or None; got {n!r}.")
    if n is not None and n < 1:
        raise ValueError(f"set_blas_threads takes one thread or more; got {n}.")
    try:
        libraries = _libraries()
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            missing("set_blas_threads", "threadpoolctl")
            + " Or set OPENBLAS_NUM_THREADS=1 in the environment before Python starts.",
            name="threadpoolctl",
        ) from error
    with _as_outside():
        counts = [library.num_threads for library in libraries]
        before = max(counts, default=1)
        wanted = None if n is None else min(int(n), _MOST)  # beyond it a C int starts anew
        for library, count in zip(libraries, counts, strict=True):
            first = _before.get(library.filepath, count)
            library.set_num_threads(first if wanted is None else wanted)
        most = min((library.num_threads for library in libraries), default=before)
        if (
            n is not None and libraries and most < n
        ):  # a library takes what it can, and says nothing
            for library, count in zip(libraries, counts, strict=True):
                library.set_num_threads(count)
            raise ValueError(
                f"set_blas_threads({n}): the BLAS library here takes at most {most} threads. "
                f"Nothing was changed: it uses {before}. More threads than cores (here "
                f"{os.cpu_count()}) are of no use."
            )
        for library, count in zip(libraries, counts, strict=True):
            _before.setdefault(library.filepath, count)
        if all(library.num_threads == _before[library.filepath] for library in libraries):
            _before.clear()
    return before


def blas_threads() -> int | None:
    """Return how many threads BLAS uses; None if that cannot be found out.

    Examples
    --------
    >>> n = blas_threads()
    >>> n is None or n >= 1
    True
    """
    try:
        libraries = _libraries()
    except ModuleNotFoundError:
        return None
    with _as_outside():
        return max((library.num_threads for library in libraries), default=None)


def why() -> str:
    """Return in words who chose the number of threads."""
    if _before:
        return "set by ol.set_blas_threads"
    for variable in VARIABLES:
        if value := os.environ.get(variable):
            who = "by optlab lab" if os.environ.get(CHOSEN_BY_LAB) == variable else "by the user"
            return f"{variable}={value}, set {who}"
    return "the library's own choice: every core"


def chosen_by_lab() -> bool:
    """Return whether ``optlab lab`` chose the number, and nobody has changed it since."""
    return not _before and any(
        os.environ.get(CHOSEN_BY_LAB) == variable and os.environ.get(variable)
        for variable in VARIABLES
    )


def hold_to_one_thread(environment: Any) -> None:
    """Hold BLAS to one thread in processes with this environment, unless the user chose.

    Examples
    --------
    >>> environment = {}
    >>> hold_to_one_thread(environment)
    >>> environment["OPENBLAS_NUM_THREADS"]
    '1'
    """
    if not any(environment.get(variable) for variable in VARIABLES):
        environment[VARIABLES[0]] = environment[VARIABLES[1]] = "1"
        environment[CHOSEN_BY_LAB] = VARIABLES[0]


def time_of_a_small_product(limit: float = 0.05) -> float:
    """Return the seconds that a product of 256 x 128 with 128 x 128 numbers takes here, now.

    Measured for `limit` seconds.

    Examples
    --------
    >>> time_of_a_small_product() > 0
    True
    """
    a, b = np.ones((256, 128), np.float32), np.ones((128, 128), np.float32)
    a @ b
    start, count = perf_counter(), 0
    while (passed := perf_counter() - start) < limit or not count:
        a @ b
        count += 1
    return passed / count
