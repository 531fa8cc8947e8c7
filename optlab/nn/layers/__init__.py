"""The layers; the files are named by subject."""

from optlab.nn.layers.activation import (
    GELU,
    LogSigmoid,
    Mish,
    Sigmoid,
    Silu,
    Softplus,
    Softsign,
    Swish,
    Tanh,
)
from optlab.nn.layers.batch_normalization import (
    BatchNorm,
    BatchNorm1D,
    BatchNorm2D,
    BatchNorm3D,
)
from optlab.nn.layers.common import (
    Embedding,
    Flatten,
    Identity,
    Unflatten,
)
from optlab.nn.layers.dropout import (
    AlphaDropout,
    Dropout,
    Dropout2D,
    Dropout3D,
)
from optlab.nn.layers.elementwise_loss import (
    BCELoss,
    BCEWithLogitsLoss,
    HingeEmbeddingLoss,
    HuberLoss,
    KLDivLoss,
    L1Loss,
    MarginRankingLoss,
    MSELoss,
    SmoothL1Loss,
    SoftMarginLoss,
)
from optlab.nn.layers.gathering import (
    GLU,
    LogSoftmax,
    Maxout,
    Softmax,
    Softmax2D,
)
from optlab.nn.layers.hard import (
    Hardshrink,
    Hardsigmoid,
    Hardswish,
    Hardtanh,
    Softshrink,
    Tanhshrink,
    ThresholdedReLU,
)
from optlab.nn.layers.instance_normalization import (
    InstanceNorm1D,
    InstanceNorm2D,
    InstanceNorm3D,
)
from optlab.nn.layers.linear import (
    Linear,
)
from optlab.nn.layers.loss import (
    CrossEntropyLoss,
    NLLLoss,
)
from optlab.nn.layers.normalization import (
    GroupNorm,
    LayerNorm,
    LocalResponseNorm,
    RMSNorm,
)
from optlab.nn.layers.pair import (
    Bilinear,
    CosineSimilarity,
    PairwiseDistance,
)
from optlab.nn.layers.rectifier import (
    CELU,
    ELU,
    SELU,
    LeakyReLU,
    PReLU,
    ReLU,
    ReLU6,
)

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "SELU",
    "AlphaDropout",
    "BCELoss",
    "BCEWithLogitsLoss",
    "BatchNorm",
    "BatchNorm1D",
    "BatchNorm2D",
    "BatchNorm3D",
    "Bilinear",
    "CosineSimilarity",
    "CrossEntropyLoss",
    "Dropout",
    "Dropout2D",
    "Dropout3D",
    "Embedding",
    "Flatten",
    "GroupNorm",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "HingeEmbeddingLoss",
    "HuberLoss",
    "Identity",
    "InstanceNorm1D",
    "InstanceNorm2D",
    "InstanceNorm3D",
    "KLDivLoss",
    "L1Loss",
    "LayerNorm",
    "LeakyReLU",
    "Linear",
    "LocalResponseNorm",
    "LogSigmoid",
    "LogSoftmax",
    "MSELoss",
    "MarginRankingLoss",
    "Maxout",
    "Mish",
    "NLLLoss",
    "PReLU",
    "PairwiseDistance",
    "RMSNorm",
    "ReLU",
    "ReLU6",
    "Sigmoid",
    "Silu",
    "SmoothL1Loss",
    "SoftMarginLoss",
    "Softmax",
    "Softmax2D",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Swish",
    "Tanh",
    "Tanhshrink",
    "ThresholdedReLU",
    "Unflatten",
]  # fmt: skip
