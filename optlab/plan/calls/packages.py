"""Whose code a module is: the engine's, of Python's library, of a package, or the user's."""

from __future__ import annotations

import functools
import os
import site
import sys
import sysconfig

#: What changes of them between calls is the engine's own, and does not count.
ENGINES = frozenset(["optlab", "numpy", "scipy"])
#: Not `types`, whose SimpleNamespace holds what users put into it.
_LIBRARIES = (sys.stdlib_module_names | ENGINES) - {"__main__", "types"}


def package_of(module: str | None) -> str:
    """Return the package of a module."""
    return (module or "").partition(".")[0]


def of_library(module: str | None) -> bool:
    """Return whether a module is of Python's library, of NumPy, of SciPy or of the engine."""
    return package_of(module) in _LIBRARIES


@functools.cache
def _installed_in() -> tuple[str, ...]:
    """Return the folders into which packages are installed."""
    found = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *site.getsitepackages()}
    return tuple(os.path.join(folder, "") for folder in found if folder)


@functools.cache
def _lies_there(package: str) -> bool:
    module = sys.modules.get(package)
    places = [getattr(module, "__file__", None), *(getattr(module, "__path__", None) or ())]
    return any(str(place).startswith(_installed_in()) for place in places if place)


def is_installed(module: str | None) -> bool:
    """Return whether a module is of a package that was installed, and is none of ours."""
    return not of_library(module) and _lies_there(package_of(module))
