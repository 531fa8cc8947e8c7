"""The process in which a student's class runs: it takes calls and gives back arrays.

`optlab.course.students` starts this file as a script, with ``python -I``; it needs NumPy and the
standard library (and cloudpickle, where a class arrives as bytes). Nothing of optlab is imported
here, so there is no reference to look for in frames or in memory. What else the student's code
could reach is refused by an audit hook, which Python cannot take away again: optlab's files, other
processes, the network, every write. The functions `send` and `receive` are the format of both
ends: a header in JSON and the bytes of float64 arrays; no pickle ever comes back.
"""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from typing import IO, Any

import numpy as np

#: What one message may hold. The arrays of all checks together are below a megabyte.
MOST_BYTES = 16_000_000
#: Seconds for one cell of a notebook where the class is made from its cells.
CELL_SECONDS = 3.0
#: Bytes of address space of the process, where the system can limit it.
MEMORY = 2 << 30
#: Seconds after which the process ends itself, should the one that started it be gone.
LAST_SECONDS = 60

# The student may replace any function of NumPy; these are taken before.
_array, _asarray, _float64, _ndarray = np.array, np.asarray, np.float64, np.ndarray
_frombuffer = np.frombuffer
_errstate = np.errstate


class NoNumbers(TypeError):
    """A result that is no nested list of numbers and arrays."""


def send(stream: IO[bytes], message: dict[str, Any]) -> None:
    """Write a message: nested lists and dicts of numbers, texts and float64 arrays."""
    buffers: list[bytes] = []
    header = json.dumps(_described(message, buffers)).encode()
    body = b"".join(buffers)
    stream.write(len(header).to_bytes(4, "big") + len(body).to_bytes(4, "big") + header + body)
    stream.flush()


def receive(stream: IO[bytes]) -> dict[str, Any]:
    """Read a message; `EOFError` where the other end is gone, or does not keep to the format."""
    lengths = _exactly(stream, 8)
    header, body = int.from_bytes(lengths[:4], "big"), int.from_bytes(lengths[4:], "big")
    if max(header, body) > MOST_BYTES:
        raise EOFError("the message is longer than any that is allowed")
    text, data = _exactly(stream, header), _exactly(stream, body)
    try:
        return _restored(json.loads(text), data)
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise EOFError(f"this is no message: {error}") from None


def _exactly(stream: IO[bytes], length: int) -> bytes:
    data = stream.read(length)
    if len(data) != length:
        raise EOFError("the other end is gone")
    return data


def _described(value: Any, buffers: list[bytes]) -> Any:
    """Return a value as JSON has it; the bytes of its arrays go to `buffers`."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, bytes):
        buffers.append(value)
        return {"bytes": len(value)}
    if isinstance(value, dict):
        return {"dict": [[str(key), _described(item, buffers)] for key, item in value.items()]}
    if isinstance(value, (list, tuple)):
        items = [_described(item, buffers) for item in value]
        return {"tuple": items} if isinstance(value, tuple) else items
    if type(value) in (int, float) and abs(value) < 2**53:  # a NumPy number is an array
        return value
    try:
        array = _asarray(value)
        if array.dtype.kind not in "biuf":
            raise TypeError(f"an array of {array.dtype}")
        if array.size * 8 + sum(map(len, buffers)) > MOST_BYTES:
            raise NoNumbers(f"{array.size:,} numbers are more than any result that is asked for")
        array = _array(array, dtype=_float64, order="C", copy=True)
    except NoNumbers:
        raise
    except Exception as error:  # noqa: BLE001  (the value may be anything, with methods of its own)
        raise NoNumbers(f"{type(value).__name__} is no array of numbers ({error})") from None
    buffers.append(array.tobytes())
    return {"shape": list(array.shape)}


def _restored(described: Any, data: bytes) -> Any:
    place = 0

    def restore(part: Any) -> Any:
        nonlocal place
        if isinstance(part, list):
            return [restore(item) for item in part]
        if not isinstance(part, dict):
            return part
        if "dict" in part:
            return {key: restore(item) for key, item in part["dict"]}
        if "tuple" in part:
            return tuple(restore(item) for item in part["tuple"])
        if "bytes" in part:
            length = int(part["bytes"])
            place += length
            return data[place - length : place]
        shape = [int(n) for n in part["shape"]]
        length = 8
        for n in shape:
            length *= n
        piece = data[place : place + length]
        place += length
        return _array(_frombuffer(piece, dtype=_float64).reshape(shape))

    return restore(described)


# What follows runs in the child (`Divisions` in the process that judges, too).


class Given:
    """A function or an object that a check gives to the class; its calls are answered outside."""

    def __init__(self, ask: Any, name: str) -> None:
        self._ask, self._name = ask, name

    def __call__(self, *arguments: Any) -> Any:
        """Call the function."""
        return self._ask(self._name, "__call__", arguments)

    def step(self, params: Any, grads: Any) -> Any:
        """Return the parameters after a step of an optimizer."""
        return self._ask(self._name, "step", (params, grads))


class Divisions:
    """NumPy's log of one call: whether something was divided by zero.

    0 / 0 counts for numbers alone, as bias corrections are: moments may be arrays of zeros.
    """

    by_zero = False

    def write(self, text: str) -> None:
        """Read a line of the log."""
        self.by_zero = self.by_zero or "divide by zero" in text or "scalar divide" in text


class Student:
    """The objects of one student's class, and the calls of a check on them."""

    def __init__(self, requests: IO[bytes], replies: IO[bytes]) -> None:
        self.requests, self.replies = requests, replies
        self.made: Any = None
        self.module: Any = None
        self.objects: dict[str, Any] = {}
        self.seen: list[Any] = []

    def serve(self) -> None:
        """Answer requests until the other end closes."""
        while True:
            try:
                request = receive(self.requests)
            except EOFError:
                return
            try:
                reply = getattr(self, "do_" + request["do"])(**request["with"])
                send(self.replies, reply)
            except NoNumbers as error:
                send(self.replies, {"no_numbers": str(error)})
            except BaseException as error:  # noqa: BLE001  (SystemExit and all that a class may raise)
                send(self.replies, {"raised": _raised(error)})

    def do_load(self, pickled: bytes) -> dict[str, Any]:
        """Take the class from cloudpickle's bytes."""
        import pickle

        self.made = pickle.loads(pickled)
        return {"result": None}

    def do_cell(self, code: str, number: int) -> dict[str, Any]:
        """Run a cell of a notebook in the module that all its cells share."""
        import types

        if self.module is None:
            self.module = types.ModuleType("__main__")
            sys.modules["__main__"] = self.module
            # In a notebook one may write display(...) and get_ipython().
            shown, shell = _placeholder("display"), _placeholder("get_ipython")
            self.module.__dict__.update(display=shown, get_ipython=shell)
        with _alarm(CELL_SECONDS):
            exec(compile(code, f"cell {number}", "exec"), self.module.__dict__)
        return {"result": None}

    def do_take(self, name: str) -> dict[str, Any]:
        """Take the class of a name from the cells that have run."""
        found = self.module is not None and name in self.module.__dict__
        self.made = self.module.__dict__[name] if found else None
        return {"result": None, "found": found}

    def do_make(self, key: str, arguments: list[Any], settings: dict[str, Any]) -> dict[str, Any]:
        """Make an object of the class."""
        given = [self._given(value) for value in arguments]
        self.objects[key] = self.made(
            *given, **{name: self._given(value) for name, value in settings.items()}
        )
        return {"result": None}

    def do_call(
        self, key: str, method: str, arguments: list[Any], keep: str | None
    ) -> dict[str, Any]:
        """Call a method of an object, or a function of the class."""
        target = self.objects[key] if key else self.made
        values = [self._given(value) for value in arguments]
        self.seen.append([values, None])  # as they are: what is changed later shows at the end
        divisions = Divisions()
        with _errstate(divide="log", invalid="log", call=divisions):
            result = getattr(target, method)(*values)
        if keep is not None:
            self.objects[keep] = result
            return {"result": None, "after": _plain(values)}
        return self._replied(result, values) | {"divided": divisions.by_zero}

    def do_get(self, key: str, attribute: str) -> dict[str, Any]:
        """Read an attribute of an object."""
        self.seen.append([[], None])
        return self._replied(getattr(self.objects[key], attribute), [])

    def do_overwrite(self, values: list[Any]) -> dict[str, Any]:
        """Write other numbers into the arrays of the last call, as their owner may do."""
        for kept, now in zip(self.seen[-1][0], values, strict=True):
            for old, new in zip(kept, now, strict=True) if isinstance(kept, list) else ():
                old[...] = new
        self.seen[-1][0] = []
        return {"result": None}

    def do_seen(self) -> dict[str, Any]:
        """Return arguments and results of a scenario's calls as they are now, and forget them."""
        seen, self.seen = self.seen, []
        self.objects.clear()
        return {"result": [_plain(pair) for pair in seen]}

    def _replied(self, result: Any, values: list[Any]) -> dict[str, Any]:
        if isinstance(result, _Placeholder):
            result.__array__()
        if not isinstance(result, (list, tuple, dict, str, _ndarray, int, float, type(None))):
            try:  # a generator, a map: what it yields
                if not isinstance(result, np.generic):
                    result = list(result)
            except TypeError:
                pass
        # The arrays themselves, not the list: a list that the object keeps may get new members.
        self.seen[-1][1] = list(result) if isinstance(result, (list, tuple)) else result
        return {"result": result, "after": _plain(values), "kind": type(result).__name__[:100]}

    def _given(self, value: Any) -> Any:
        if isinstance(value, dict) and "object" in value:
            return self.objects[value["object"]]
        if isinstance(value, dict) and "given" in value:
            return Given(self._ask, value["given"])
        return [self._given(item) for item in value] if isinstance(value, list) else value

    def _ask(self, name: str, method: str, arguments: tuple[Any, ...]) -> Any:
        send(self.replies, {"ask": name, "method": method, "arguments": list(arguments)})
        answer = receive(self.requests)
        if "refused" in answer:
            raise TypeError(answer["refused"])
        return answer["answer"]


def _plain(value: Any) -> Any:
    """Return what can be sent of a value that may hold objects: arrays and numbers."""
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, (_ndarray, np.generic, int, float)):
        return value
    return None


def _raised(error: BaseException) -> dict[str, Any]:
    line, trace = None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename != __file__:
            line = trace.tb_lineno
        trace = trace.tb_next
    try:
        text = str(error)[:500]
    except BaseException:  # noqa: BLE001  (an exception with a __str__ of its own)
        text = ""
    return {"type": type(error).__name__[:100], "text": text, "line": line}


class _alarm:
    """Raise TimeoutError in what runs longer, where the system has alarms."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __enter__(self) -> None:
        try:
            import signal

            signal.signal(signal.SIGALRM, self._ring)
            signal.setitimer(signal.ITIMER_REAL, self.seconds, 0.5)
        except (ImportError, AttributeError):  # Windows: the whole process has its time
            pass

    def __exit__(self, *raised: object) -> None:
        try:
            import signal

            signal.setitimer(signal.ITIMER_REAL, 0)
        except (ImportError, AttributeError):
            pass

    def _ring(self, *ignored: object) -> None:
        raise TimeoutError(f"the cell took more than {self.seconds:.0f} seconds")


_INSTEAD = (
    "is not there while a class is checked: write the computation with NumPy and plain Python"
)


class _Placeholder:
    """What stands in for a package that is not there: cells that draw with it do no harm."""

    def __init__(self, name: str) -> None:
        self.__dict__["_name"] = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        return _placeholder(f"{self._name}.{name}")

    def __call__(self, *arguments: Any, **settings: Any) -> Any:
        return _placeholder(f"{self._name}()")

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *raised: object) -> None:
        return None

    def __iter__(self) -> Any:
        return iter(())

    def __array__(self, *ignored: Any, **settings: Any) -> Any:
        raise ImportError(f"{self._name} {_INSTEAD}")

    def __float__(self) -> float:
        raise ImportError(f"{self._name} {_INSTEAD}")

    def __mro_entries__(self, bases: Any) -> Any:
        raise ImportError(f"{self._name} {_INSTEAD}")


def _placeholder(name: str) -> Any:
    return _Placeholder(name)


def _stand_in() -> None:
    """Let imports of anything but NumPy and the standard library give placeholders."""
    import types
    from importlib.machinery import ModuleSpec

    there = frozenset({*sys.stdlib_module_names, "numpy", "cloudpickle"})

    class Module(types.ModuleType):
        def __getattr__(self, name: str) -> Any:
            if name.startswith("__") and name.endswith("__"):
                raise AttributeError(name)
            return _placeholder(f"{self.__name__}.{name}")

    class Finder:
        @staticmethod
        def find_spec(name: str, path: Any = None, target: Any = None) -> Any:
            if name.partition(".")[0] in there:
                return None
            loader: Any = Finder
            return ModuleSpec(name, loader, is_package=True)

        @staticmethod
        def create_module(spec: Any) -> Any:
            return Module(spec.name)

        @staticmethod
        def exec_module(module: Any) -> None:
            return None

    sys.meta_path.insert(0, Finder)


def _close_off() -> None:
    """Refuse what no computation needs, from now on: see the audit events of Python's library.

    The hook is made of constants and of copies that nothing else refers to, so that names of
    modules, builtins among them, may be replaced without effect.
    """
    import builtins
    import os
    import sysconfig
    import types

    standard = {sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib")}
    standard.add(os.path.dirname(os.__file__))
    packages = {
        os.path.dirname(sys.modules[name].__file__ or os.__file__)
        for name in ("numpy", "cloudpickle")
        if name in sys.modules
    }
    readable = tuple(os.path.join(path, "") for path in sorted(standard))
    numeric = tuple(os.path.join(path, "") for path in sorted(packages))

    def make(readable: tuple[str, ...], numeric: tuple[str, ...]) -> Any:
        def hook(event: str, arguments: Any) -> None:
            if event == "open":
                path, mode = arguments[0], arguments[1]
                if type(path) is int:
                    return
                if type(path) is bytes:
                    path = path.decode("utf-8", "surrogateescape")
                fine = (
                    type(path) is str
                    and (mode is None or (type(mode) is str and "r" in mode and "+" not in mode))
                    and type(arguments[2]) is int
                    and arguments[2] & 3 == 0  # reading alone
                    and ".." not in path
                    and (
                        path.startswith(numeric)
                        or (
                            path.startswith(readable)
                            and "site-packages" not in path
                            and "dist-packages" not in path
                            and "optlab" not in path
                        )
                    )
                )
                if not fine:
                    raise PermissionError("a class that is checked does not open files")
            elif event == "import":
                if arguments[0] == "_posixsubprocess":  # it starts programs, and has no event
                    raise ImportError(f"{arguments[0]} is not there while a class is checked")
            elif event.startswith(
                (
                    "subprocess.", "socket.", "ctypes.", "os.", "shutil.", "tempfile.", "gc.",
                    "pty.", "signal.pthread_kill", "resource.", "winreg.", "mmap.", "syslog.",
                    "sqlite3.", "webbrowser.", "http.", "urllib.", "ftplib.", "imaplib.",
                    "smtplib.", "poplib.", "nntplib.", "telnetlib.", "fcntl.", "_winapi.",
                    "msvcrt.", "sys.addaudithook", "sys.remote_exec", "cpython.PyInterpreter",
                    "setopencodehook",
                )
            ) and event not in (
                "os.listdir", "os.scandir", "os.putenv", "os.unsetenv"
            ):  # fmt: skip
                raise PermissionError(f"a class that is checked does not use {event}")

        return hook

    hook = make(readable, numeric)
    private = {"__builtins__": dict(builtins.__dict__)}
    sys.addaudithook(types.FunctionType(hook.__code__, private, "hook", None, hook.__closure__))


def _limit() -> None:
    import faulthandler
    import os

    faulthandler.dump_traceback_later(LAST_SECONDS, exit=True, file=open(os.devnull, "w"))  # noqa: SIM115
    try:
        import resource
    except ImportError:  # Windows
        return
    for limit, value in (
        (resource.RLIMIT_AS, MEMORY),
        (resource.RLIMIT_CPU, LAST_SECONDS),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_FSIZE, 0),
    ):
        try:
            hard = resource.getrlimit(limit)[1]
            least = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(limit, (least, least))
        except (OSError, ValueError):  # macOS has no limit of address space
            continue


def _main() -> None:
    import os

    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):  # the class may print and read what it likes
        os.dup2(nothing, standard)
    sys.dont_write_bytecode = True
    for path in sys.argv[1:]:  # where cloudpickle lies, should it lie elsewhere
        if path not in sys.path:
            sys.path.append(path)
    sys.argv[1:] = []
    with suppress(ImportError):  # needed for bytes alone, and whoever sends them has it
        import cloudpickle  # noqa: F401
    import signal  # noqa: F401

    _limit()
    _stand_in()
    student = Student(requests, replies)
    _close_off()
    student.serve()
    os._exit(0)


if __name__ == "__main__":
    _main()
