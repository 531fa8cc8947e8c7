"""Data sets, tokenizers, and a baseline for models of text.

Without a download: :func:`digits`, :func:`breast_cancer`, :func:`wine`, :func:`iris`,
:func:`diabetes`, :func:`moons`, :func:`spirals`, :func:`pydoc_topics`. From files, or fetched when
asked: :func:`mnist`, :func:`fashion_mnist`, :func:`cifar10`, :func:`text`, :func:`download`.
For texts: :class:`Characters` and :class:`BytePairs`, :func:`windows`; :class:`KneserNey` and
:func:`best_order`, the baseline that a model of text has to beat.
"""

from optlab.backend.namespaces import missing as _missing
from optlab.backend.namespaces import set_module as _set_module
from optlab.lab.data.archives import cifar10, fashion_mnist, mnist, read_idx, text
from optlab.lab.data.downloads import download
from optlab.lab.data.images import Data, digits
from optlab.lab.data.ngrams import KneserNey, best_order
from optlab.lab.data.tables import breast_cancer, diabetes, iris, moons, spirals, wine
from optlab.lab.data.texts import Text, pydoc_topics, windows
from optlab.lab.data.tokenizers import BytePairs, Characters

__all__ = [
    "BytePairs", "Characters", "Data", "KneserNey", "Text", "best_order", "breast_cancer",
    "cifar10", "diabetes", "digits", "download", "fashion_mnist", "iris", "mnist", "moons",
    "pydoc_topics", "read_idx", "spirals", "text", "windows", "wine",
]  # fmt: skip

_set_module(__name__)


def __getattr__(name: str) -> object:
    raise _missing("optlab.lab.data", name, __all__)


def __dir__() -> list[str]:
    return __all__
