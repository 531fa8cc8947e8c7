"""Kernels: compiled by a child process into a cache on disk, and loaded from there.

No step waits for the compiler. A kernel that the cache has is loaded in about a millisecond,
without numba (`Kernel.look_up`); a child process is asked for one that it lacks (`Kernel.request`)
while NumPy goes on, and later calls of `look_up` find it. `Kernel.compile` compiles at once, in
this process.

**The folder** is ``optlab`` in ``NUMBA_CACHE_DIR`` if that is set, else in the user's folder of
caches (``XDG_CACHE_HOME`` or ``~/.cache``; ``~/Library/Caches``; ``%LOCALAPPDATA%``), else in the
folder of temporary files: the first that this user may write and nobody else. The name of a file is
a digest of all that the machine code depends on: source, releases of numba and NumPy, processor. A
file that is not whole is compiled again.

**The child process** ends with its parent, at the latest: it asks for it ten times a second, and
the parent ends it when the interpreter exits. A thread waits for it, so it leaves no zombie. Where
no process can be started, NumPy goes on.
"""

from __future__ import annotations

import atexit
import ctypes
import hashlib
import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache
from importlib.util import find_spec
from stat import S_ISDIR
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import numpy as np

from optlab.plan import numba_compiler
from optlab.plan.numba_compiler import DIGEST_SIZE, FORMAT

# A step imports this module, so what only a compilation needs is imported where it happens.
if TYPE_CHECKING:
    import subprocess

_CTYPES = {"int64": ctypes.c_int64, "float32": ctypes.c_float, "float64": ctypes.c_double}

_lock = threading.RLock()
#: The kernels of this process by source and parameters; they live as long as they are used.
_kernels: WeakValueDictionary[tuple[str, tuple[str, ...]], Kernel] = WeakValueDictionary()


class Kernel:
    """A compiled function, or what is known on the way to it.

    Attributes
    ----------
    source : str
        Of a function ``kernel`` in the subset of Python that numba compiles.
    parameters : tuple of str
        Their kinds; see `optlab.plan.numba_compiler.object_code`.
    function : callable or None
        Once it is loaded: takes the address of its result, None, and the parameters.
    problem : str
        Why it cannot be compiled, if so.
    """

    def __init__(self, source: str, parameters: Sequence[str]) -> None:
        self.source, self.parameters = source, tuple(parameters)
        self.function: Callable[..., int] | None = None
        self.problem = ""
        #: The process that asked for it: a fork has no child process that compiles.
        self._requested_by: int | None = None
        #: Whether the cache may have it: not looked up yet, or compiled meanwhile.
        self._fresh = True

    def look_up(self) -> bool:
        """Return whether it is loaded; load it if the cache has it."""
        if self.function is None and self._fresh and not self.problem:
            self._fresh = False
            with _lock:
                self.function = self.function or _loaded(self.key, self.parameters)
        return self.function is not None

    def request(self) -> None:
        """Let a child process compile it, if none does so already."""
        if self.function is None and not self.problem and self._requested_by != os.getpid():
            self._requested_by = os.getpid()
            self._fresh = True  # another process may have compiled it meanwhile
            if not self.look_up():
                _compilation.add(self)

    def compile(self) -> None:
        """Load or compile it now, in this process.

        Raises
        ------
        Exception
            Any error of numba.
        """
        self._fresh = True
        if self.look_up():
            return
        code = numba_compiler.object_code(self.source, self.parameters)
        where = folder()
        if where is not None:
            with suppress(OSError):  # a full disk; it is compiled again next time
                numba_compiler.store(where, self.key, code)
        self._fresh = True
        if not self.look_up():
            self.function = _typed(_by_llvmlite(code), self.parameters)

    def answer(self, problem: str | None) -> None:
        """Take the answer of the child process."""
        self.problem = problem or ""
        self._fresh = True

    @property
    def key(self) -> str:
        """The name of its files."""
        parts = (self.source, *self.parameters, *_environment())
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:40]


def kernel_of(source: str, parameters: Sequence[str]) -> Kernel:
    """Return the kernel of some source: the same for all that use it."""
    with _lock:
        key = (source, tuple(parameters))
        found = _kernels.get(key)
        if found is None:
            found = _kernels[key] = Kernel(source, parameters)
        return found


@cache
def _environment() -> tuple[str, ...]:
    """Return what machine code depends on besides its source."""
    releases = []
    for package in ("numba", "llvmlite"):
        spec = find_spec(package)  # without an import, which takes long
        folder = (spec.submodule_search_locations or [""])[0] if spec else ""
        try:
            with open(os.path.join(folder, "_version.py"), encoding="utf-8") as file:
                releases.append(file.read())
        except OSError:
            from importlib.metadata import version

            releases.append(version(package))
    return (*releases, FORMAT, np.__version__, sys.version, sys.platform, *_processor())


def _processor() -> list[str]:
    """Return the processor and its instructions, as far as files and NumPy tell them."""
    machine = os.uname().machine if hasattr(os, "uname") else ""
    found = [machine, os.environ.get("PROCESSOR_IDENTIFIER", "")]
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            names = ("model name", "flags", "Features", "CPU part", "isa")
            found += dict.fromkeys(line for line in file if line.startswith(names))
    except OSError:
        pass
    try:
        core: Any = np._core  # type: ignore[attr-defined]
        features = core._multiarray_umath.__cpu_features__
        found += [name for name, there in features.items() if there]
    except AttributeError:
        pass
    return found


def folder() -> str | None:
    """Return the folder of the cache, made if need be; None if there is no place for one."""
    for base in _places():
        place = os.path.join(base, "kernels")
        try:
            if not os.path.isdir(place):
                os.makedirs(base, exist_ok=True)
                os.makedirs(place, mode=0o700, exist_ok=True)
            if _is_own(place):
                return place
        except OSError:
            continue
    return None


def _places() -> Iterator[str]:
    """Yield the places where the cache may be, best first."""
    environment = os.environ
    if environment.get("NUMBA_CACHE_DIR"):
        home = environment["NUMBA_CACHE_DIR"]
    elif sys.platform == "win32":
        home = environment.get("LOCALAPPDATA", "")
    elif sys.platform == "darwin":
        home = os.path.expanduser("~/Library/Caches")
    else:
        home = environment.get("XDG_CACHE_HOME", "")
        if not os.path.isabs(home):  # as the standard of XDG demands
            home = os.path.expanduser("~/.cache")
    if home and not home.startswith("~"):  # there may be no home
        yield os.path.join(os.path.abspath(home), "optlab")
    from tempfile import gettempdir

    user = str(os.getuid()) if hasattr(os, "getuid") else environment.get("USERNAME", "user")
    yield os.path.join(gettempdir(), f"optlab-{user}")


def _is_own(place: str) -> bool:
    """Return whether this user may write here and nobody else: code is loaded from it."""
    if not os.access(place, os.W_OK | os.X_OK):
        return False
    if not hasattr(os, "geteuid"):
        return True
    status = os.lstat(place)
    return S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o022


def _loaded(key: str, parameters: Sequence[str]) -> Callable[..., int] | None:
    """Load a kernel from the cache; None if it is not there, or not whole."""
    where = folder()
    if where is None or not os.path.exists(os.path.join(where, f"{key}.o")):
        return None
    for suffix, load in ((".so", _by_ctypes), (".o", _by_llvmlite)):
        path = os.path.join(where, key + suffix)
        try:
            with open(path, "rb") as file:
                content = file.read()
            code, digest = content[:-DIGEST_SIZE], content[-DIGEST_SIZE:]
            if hashlib.sha256(code).digest() != digest:
                continue
            function = _typed(load(code), parameters)
            os.utime(os.path.join(where, f"{key}.o"))  # those used last are kept
            return function
        except Exception:  # noqa: BLE001 - whatever the loader says of it: it is compiled again
            continue
    return None


def _by_ctypes(code: bytes) -> Any:
    """Load a shared library from a file of its own: nobody can write to it any more."""
    from tempfile import mkstemp

    handle, name = mkstemp(dir=folder(), prefix="writing-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(code)
        return ctypes.CDLL(name).kernel
    finally:
        os.unlink(name)


#: What owns the machine code that llvmlite has loaded.
_engines: list[Any] = []


def _by_llvmlite(code: bytes) -> Any:
    import llvmlite.binding as llvm

    if not _engines:
        for prepare in (llvm.initialize_native_target, llvm.initialize_native_asmprinter):
            prepare()
    machine = llvm.Target.from_default_triple().create_target_machine(
        codemodel="jitdefault", jit=True
    )
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    address = engine.get_function_address("kernel")
    if not address:
        raise RuntimeError("the object file has no kernel")
    _engines.append(engine)
    return ctypes.CFUNCTYPE(ctypes.c_int32)(address)


def _typed(function: Any, parameters: Sequence[str]) -> Callable[..., int]:
    """Return a function of C with the types of its parameters."""
    function.restype = ctypes.c_int32
    function.argtypes = [ctypes.c_void_p, ctypes.c_void_p] + [
        _CTYPES.get(parameter, ctypes.c_void_p) for parameter in parameters
    ]
    return function  # type: ignore[no-any-return]


class _Compilation:
    """The child process that compiles, if one does, and the kernels that wait for it."""

    def __init__(self) -> None:
        self.waiting: list[Kernel] = []
        self.thread: threading.Thread | None = None
        self.process: subprocess.Popen[bytes] | None = None
        self.closed = False

    def add(self, kernel: Kernel) -> None:
        """Start a child process for a kernel, or let it wait for the next one."""
        if not _may_start_processes() or self.closed:
            return
        with _lock:
            self.waiting.append(kernel)
            if self.thread is None:
                thread = threading.Thread(target=self._work, name="optlab compiles", daemon=True)
                try:
                    thread.start()
                except RuntimeError:  # no more threads, or the interpreter exits
                    self.waiting.clear()
                    return
                self.thread = thread

    def _work(self) -> None:
        """Run a child process for all that wait, until none waits."""
        import subprocess

        while True:
            with _lock:
                kernels, self.waiting = self.waiting, []
                if not kernels or self.closed:
                    self.thread = None
                    return
            # No process can be started: NumPy goes on.
            with suppress(OSError, ValueError, subprocess.SubprocessError):
                self._run(kernels)

    def _run(self, kernels: Sequence[Kernel]) -> None:
        import json
        import subprocess

        where = folder()
        if where is None:
            return
        job = {
            "path": [os.path.abspath(entry) for entry in sys.path],
            "parent": os.getpid(),
            "folder": where,
            "kernels": [(kernel.key, kernel.source, kernel.parameters) for kernel in kernels],
        }
        threads = dict.fromkeys(
            ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1"
        )
        process = subprocess.Popen(
            [sys.executable, "-I", "-B", numba_compiler.__file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | threads,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        by_key = {kernel.key: kernel for kernel in kernels}
        try:
            with _lock:
                self.process = process
                if self.closed:
                    return
            process.stdin.write(json.dumps(job).encode() + b"\n")
            process.stdin.flush()
            for line in process.stdout:
                key, problem = json.loads(line)
                by_key[key].answer(problem)
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
            with suppress(OSError):  # it ended before it had read its job
                process.stdin.close()
            with _lock:
                self.process = None

    def close(self) -> None:
        """End the child process: the interpreter exits."""
        with _lock:
            self.closed = True
            if self.process is not None:
                self.process.kill()
                thread = self.thread
            else:
                thread = None
        if thread is not None:
            thread.join(5)  # it waits for the child, which leaves no zombie


def is_compiling() -> bool:
    """Return whether a child process compiles kernels now: NumPy does their work until it ends.

    Examples
    --------
    >>> is_compiling() in (True, False)
    True
    """
    return _compilation.thread is not None


def _may_start_processes() -> bool:
    """Return whether the Python that runs can be started again, as a process of its own."""
    return (
        bool(sys.executable)
        and not getattr(sys, "frozen", False)  # the executable is somebody's program
        and sys.platform not in ("emscripten", "wasi", "ios", "android")
        and os.path.isfile(numba_compiler.__file__)
    )


_compilation = _Compilation()
atexit.register(lambda: _compilation.close())


def _forget_child() -> None:
    # A forked process has neither the thread nor the child of the one it is a copy of.
    global _compilation, _lock
    _lock = threading.RLock()
    _compilation = _Compilation()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_child)
