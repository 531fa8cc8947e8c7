"""Floor 3, data: data sets and loaders, and saving and loading without pickle."""

from optlab.backend.faces import missing as _missing
from optlab.io.files import load, save
from optlab.io.structures import UnreadableFileError

__all__ = ["UnreadableFileError", "load", "save"]


def __getattr__(name: str) -> object:
    raise _missing("optlab.io", name, __all__)


def __dir__() -> list[str]:
    return __all__
