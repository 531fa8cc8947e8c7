"""The compiler of kernels: Python source to machine code, by numba, in a process of its own.

This file is run as a script by a child process, so it imports nothing of optlab, and numba only
where it compiles. What numba compiles refers to Python's and numba's runtimes; here everything but
the loop itself is stripped off, so that the machine code stands alone: a process that uses it
needs neither numba, whose import takes a fifth of a second, nor Python's lock.

The code of a kernel is kept in the folder of the cache in two forms, each followed by its SHA-256:

- ``KEY.so``, a shared library, where the system has a linker; it is loaded in 0.3 ms;
- ``KEY.o``, an object file, which llvmlite loads on every system, after an import of 50 ms.
"""

from __future__ import annotations

import hashlib
import os
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

#: Kernels that are kept in the cache; those that have not been used for longest are removed.
MOST_KERNELS = 400
#: Seconds that a child process may take at most, all of its kernels together.
LONGEST = 120.0
DIGEST_SIZE = hashlib.sha256().digest_size

#: What the files hold; a new number makes old files unknown.
FORMAT = "1"

#: Parameters of kernels: numbers, pointers to them (``*``), and to pointers (``void**``).
KINDS = {
    "int64": "int64", "float32": "float32", "float64": "float64", "bool": "uint8",
    "void*": "voidptr",
}  # fmt: skip


def object_code(source: str, parameters: Sequence[str]) -> bytes:
    """Compile the function ``kernel`` of some source to an object file without dependencies.

    The symbol ``kernel`` takes where its result, an int64, is written, and an unused pointer; then
    the parameters. It returns 0.

    Parameters
    ----------
    source : str
        Of a function that allocates nothing and cannot raise.
    parameters : sequence of str
        ``"int64"``, ``"float32"``, ``"float64"`` or ``"bool"``, with ``*`` for a pointer to them.
    """
    import llvmlite.binding as llvm
    import numba as typed  # in part
    import numpy as np

    numba: Any = typed

    if getattr(numba.config, "DISABLE_JIT", False):
        raise RuntimeError("NUMBA_DISABLE_JIT is set")

    def type_of(parameter: str) -> Any:
        one = getattr(numba.types, KINDS[parameter.removesuffix("*")])
        return numba.types.CPointer(one) if parameter.endswith("*") else one

    scope: dict[str, Any] = {
        "np": np, "float32": np.float32, "float64": np.float64, "carray": numba.carray,
    }  # fmt: skip
    scope |= _calls_by_address(numba)
    exec(compile(source, "<optlab kernel>", "exec"), scope)
    signature = numba.int64(*map(type_of, parameters))
    # No contraction and no reordering, for NumPy's bits.
    make = numba.cfunc(signature, fastmath=False, error_model="numpy", boundscheck=False)
    compiled = make(scope["kernel"])
    return _alone(
        llvm, compiled.inspect_llvm(), compiled.native_name.removeprefix("cfunc."), len(parameters)
    )


def _calls_by_address(numba: Any) -> dict[str, Any]:
    """Return functions for kernels that call functions of C, given their addresses as int64.

    ``call_loop(address, arguments, length, steps)`` calls an inner loop of a ufunc of NumPy, with
    the addresses of three arrays of pointers and integers, as NumPy's manual has them under
    ``PyUFuncGenericFunction``.

    ``gemm_KIND_INT(address, m, n, k, a, lda, b, ldb, c, ldc)`` calls ``cblas_sgemm`` (KIND float32)
    or ``cblas_dgemm`` (float64), whose integers are of type INT, for c = a b, all by rows.
    """
    from llvmlite import ir
    from numba.extending import intrinsic

    pointer, int64, enum = ir.IntType(8).as_pointer(), ir.IntType(64), ir.IntType(32)

    def caller(kinds: Sequence[Any], arguments: Any) -> Any:
        """Return a code generator that calls the address among its first values."""

        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            function = builder.inttoptr(
                values[0], ir.FunctionType(ir.VoidType(), kinds).as_pointer()
            )
            given = []
            for kind, value in zip(kinds, arguments(values), strict=True):
                if kind == pointer:
                    value = builder.inttoptr(value, kind)
                elif kind == enum and value.type == int64:
                    value = builder.trunc(value, kind)
                given.append(value)
            builder.call(function, given)
            return context.get_dummy_value()

        return generate

    def calls(count: int, generate: Any) -> Any:
        names = ", ".join(f"x{i}" for i in range(count))
        made: dict[str, Any] = {
            "result": (numba.void(*[numba.int64] * count), generate),
        }
        exec(f"def call(typing, {names}):\n    return result", made)
        return intrinsic(made["call"])

    found = {
        "call_loop": calls(4, caller([pointer] * 4, lambda v: [*v[1:], int64(0)])),
    }
    for kind, number in (("float32", ir.FloatType()), ("float64", ir.DoubleType())):
        for name, integer in (("int32", enum), ("int64", int64)):
            kinds = [*[enum] * 3, *[integer] * 3, number, pointer, integer, pointer, integer]
            kinds += [number, pointer, integer]

            def arguments(v: Any, number: Any = number) -> Any:
                _, m, n, k, a, lda, b, ldb, c, ldc = v
                # The constants of CBLAS: row major, not transposed.
                order = [enum(101), enum(111), enum(111)]
                return [*order, m, n, k, number(1), a, lda, b, ldb, number(0), c, ldc]

            found[f"gemm_{kind}_{name}"] = calls(10, caller(kinds, arguments))
    return found


def _alone(llvm: Any, text: str, name: str, parameters: int) -> bytes:
    """Return the object code of one function of a module, called ``kernel``."""
    module = llvm.parse_assembly(text)
    for function in module.functions:
        if function.name == name:
            if len(list(function.arguments)) != parameters + 2:
                raise RuntimeError("this release of numba calls functions in another way")
            function.name = "kernel"
        elif not function.is_declaration:
            function.linkage = "internal"
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=3,
        reloc="pic",
        codemodel="default",
    )
    if hasattr(llvm, "create_module_pass_manager"):
        passes = llvm.create_module_pass_manager()
        passes.add_global_dce_pass()
        passes.run(module)
    else:
        passes = llvm.create_new_module_pass_manager()
        passes.add_global_dead_code_eliminate_pass()
        options = llvm.create_pipeline_tuning_options(speed_level=0)
        passes.run(module, llvm.create_pass_builder(machine, options))
    known = ("llvm.", "sqrt")  # intrinsic functions, which are instructions
    foreign = [
        function.name
        for function in module.functions
        if function.is_declaration and not function.name.startswith(known)
    ]
    if foreign or not any(function.name == "kernel" for function in module.functions):
        raise RuntimeError(f"a kernel must stand alone; it calls {', '.join(foreign)}")
    return bytes(machine.emit_object(module))


def shared_library(code: bytes) -> bytes | None:
    """Link object code; None where there is no linker."""
    if not sys.platform.startswith("linux"):
        return None
    import shutil
    import subprocess
    import tempfile

    commands = [["ld", "-shared", "-s"], *([cc, "-shared", "-nostdlib"] for cc in ("cc", "gcc"))]
    for command in commands:
        if shutil.which(command[0]):
            with tempfile.TemporaryDirectory() as folder:
                source, target = f"{folder}/kernel.o", f"{folder}/kernel.so"
                with open(source, "wb") as file:
                    file.write(code)
                done = subprocess.run(
                    [*command, "-o", target, source],
                    stdin=subprocess.DEVNULL,
                    capture_output=True,
                    check=False,
                    timeout=30,
                )
                if done.returncode == 0:
                    with open(target, "rb") as file:
                        return file.read()
    return None


def store(folder: str, key: str, code: bytes) -> None:
    """Write the code of a kernel into the cache, for all processes at once."""
    try:
        library = shared_library(code)
    except Exception:  # noqa: BLE001 - whatever ails the linker: llvmlite loads the object file
        library = None
    # The object file last: it says that the kernel is there.
    for suffix, content in ((".so", library), (".o", code)):
        if content is not None:
            replace_file(
                os.path.join(folder, key + suffix), content + hashlib.sha256(content).digest()
            )
    prune(folder)


def replace_file(path: str, content: bytes) -> None:
    """Write a file, which other processes see as a whole or not at all."""
    import tempfile

    handle, name = tempfile.mkstemp(dir=os.path.dirname(path), prefix="writing-")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise


def prune(folder: str, most: int = MOST_KERNELS) -> None:
    """Remove the kernels that have not been used for longest, and what a killed process left."""
    used: dict[str, float] = {}
    for name in os.listdir(folder):
        with suppress(OSError):  # another process has removed it
            used[name] = os.stat(os.path.join(folder, name)).st_mtime
    kernels = sorted((name for name in used if name.endswith(".o")), key=used.__getitem__)
    old = {name[:-2] for name in kernels[: max(0, len(kernels) - most)]}
    hour = time.time() - 3600
    for name, when in used.items():
        left = name.startswith("writing-") and when < hour
        if left or os.path.splitext(name)[0] in old:
            with suppress(OSError):  # another process has removed it, or uses it (Windows)
                os.unlink(os.path.join(folder, name))


def _end_with_parent(parent: int) -> None:
    """End this process when its parent has ended, or when it takes too long."""
    import select

    end = time.monotonic() + LONGEST
    if os.name == "nt":
        threading.Timer(LONGEST, os._exit, (1,)).start()
        os.read(0, 1)  # returns when the parent's end of the pipe is closed
        os._exit(1)
    # A process that the parent has forked holds the pipe open, too: so ask for the parent itself.
    while os.getppid() == parent and time.monotonic() < end:
        if select.select([0], [], [], 0.1)[0]:
            break
    os._exit(1)


def main() -> None:
    """Compile the kernels that standard input names; report each on standard output.

    The first line of the input is an object of JSON: ``path`` (of modules), ``parent`` (process
    id), ``folder`` of the cache, ``kernels`` as lists of key, source and parameters. The answer is
    a line for each kernel: its key, and what went wrong or null.
    """
    import json
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is meant for the parent
    with os.fdopen(os.dup(0), "rb", buffering=0) as given:
        job = json.loads(given.readline())
    threading.Thread(target=_end_with_parent, args=(job["parent"],), daemon=True).start()
    if hasattr(os, "nice"):
        os.nice(5)
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", buffering=1)
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    sys.path[:] = job["path"]
    for key, source, parameters in job["kernels"]:
        problem = None
        try:
            store(job["folder"], key, object_code(source, parameters))
        except Exception as error:  # noqa: BLE001 - any error of numba; NumPy goes on
            first_line = next(iter(str(error).strip().splitlines()), "")
            problem = f"{type(error).__name__}: {first_line}"
        answers.write(json.dumps([key, problem]) + "\n")
    answers.close()
    os._exit(0)  # the thread waits for the parent


if __name__ == "__main__":
    main()
