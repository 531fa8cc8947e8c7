"""Data sets that need no download, tokenizers, and a baseline for models of text.

:func:`digits`, :func:`pydoc_topics`; :class:`Characters` and :class:`BytePairs`, :func:`windows`;
:class:`KneserNey` and :func:`best_order`, the baseline that a model of text has to beat.
"""

from optlab.backend.namespaces import missing as _missing
from optlab.backend.namespaces import set_module as _set_module
from optlab.lab.data.images import Data, digits
from optlab.lab.data.ngrams import KneserNey, best_order
from optlab.lab.data.texts import Text, pydoc_topics, windows
from optlab.lab.data.tokenizers import BytePairs, Characters

__all__ = [
    "BytePairs", "Characters", "Data", "KneserNey", "Text", "best_order", "digits", "pydoc_topics",
    "windows",
]  # fmt: skip

_set_module(__name__)


def __getattr__(name: str) -> object:
    raise _missing("optlab.lab.data", name, __all__)


def __dir__() -> list[str]:
    return __all__
