"""Models that are too large for one line and too common to write anew."""

from optlab.backend.namespaces import missing as _missing
from optlab.backend.namespaces import set_module as _set_module
from optlab.lab.models.gpt import GPT, Block

__all__ = ["GPT", "Block"]

_set_module(__name__)


def __getattr__(name: str) -> object:
    raise _missing("optlab.lab.models", name, __all__)


def __dir__() -> list[str]:
    return __all__
