"""Models that are too large for one line and too common to write anew.

:class:`MLP`, :class:`LogisticRegression`, :class:`MatrixFactorization`, :class:`PhysicsInformed`;
:class:`LeNet5`, :class:`ResNet`, :class:`ConvAutoencoder`; :class:`CharLSTM`, :class:`GPT`.
"""

from optlab.backend.namespaces import missing as _missing
from optlab.backend.namespaces import set_module as _set_module
from optlab.lab.models.convolutional import ConvAutoencoder, LeNet5, ResidualBlock, ResNet
from optlab.lab.models.dense import (
    MLP,
    LogisticRegression,
    MatrixFactorization,
    PhysicsInformed,
    poisson_source,
)
from optlab.lab.models.gpt import GPT, Block
from optlab.lab.models.recurrent import CharLSTM

__all__ = [
    "GPT", "MLP", "Block", "CharLSTM", "ConvAutoencoder", "LeNet5", "LogisticRegression",
    "MatrixFactorization", "PhysicsInformed", "ResNet", "ResidualBlock", "poisson_source",
]  # fmt: skip

_set_module(__name__)


def __getattr__(name: str) -> object:
    raise _missing("optlab.lab.models", name, __all__)


def __dir__() -> list[str]:
    return __all__
