"""The layers; the files are named by subject."""

from optlab.nn.layers.activation.gates import GLU, LogSoftmax, Maxout, Softmax, Softmax2D
from optlab.nn.layers.activation.rectifiers import (
    CELU,
    ELU,
    SELU,
    LeakyReLU,
    PReLU,
    ReLU,
    ReLU6,
)
from optlab.nn.layers.activation.shrinkage import (
    Hardshrink,
    Hardsigmoid,
    Hardswish,
    Hardtanh,
    Softshrink,
    Tanhshrink,
    ThresholdedReLU,
)
from optlab.nn.layers.activation.smooth import (
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
from optlab.nn.layers.common import Embedding, Flatten, Identity, Unflatten
from optlab.nn.layers.containers import (
    LayerDict,
    LayerList,
    ParameterDict,
    ParameterList,
    Sequential,
)
from optlab.nn.layers.conv.conv import Conv1D, Conv2D, Conv3D
from optlab.nn.layers.conv.transposed import Conv1DTranspose, Conv2DTranspose, Conv3DTranspose
from optlab.nn.layers.dropout import AlphaDropout, Dropout, Dropout2D, Dropout3D
from optlab.nn.layers.linear import Linear
from optlab.nn.layers.loss.classification import CrossEntropyLoss, NLLLoss
from optlab.nn.layers.loss.ranking import (
    CosineEmbeddingLoss,
    GaussianNLLLoss,
    MultiLabelSoftMarginLoss,
    MultiMarginLoss,
    PoissonNLLLoss,
    TripletMarginLoss,
    TripletMarginWithDistanceLoss,
)
from optlab.nn.layers.loss.regression import (
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
from optlab.nn.layers.norm.batch_norm import BatchNorm, BatchNorm1D, BatchNorm2D, BatchNorm3D
from optlab.nn.layers.norm.instance_norm import InstanceNorm1D, InstanceNorm2D, InstanceNorm3D
from optlab.nn.layers.norm.layer_norm import GroupNorm, LayerNorm, LocalResponseNorm, RMSNorm
from optlab.nn.layers.pair import Bilinear, CosineSimilarity, PairwiseDistance
from optlab.nn.layers.pooling.adaptive import (
    AdaptiveAvgPool1D,
    AdaptiveAvgPool2D,
    AdaptiveAvgPool3D,
    AdaptiveMaxPool1D,
    AdaptiveMaxPool2D,
    AdaptiveMaxPool3D,
)
from optlab.nn.layers.pooling.pooling import (
    AvgPool1D,
    AvgPool2D,
    AvgPool3D,
    LPPool1D,
    LPPool2D,
    MaxPool1D,
    MaxPool2D,
    MaxPool3D,
    MaxUnPool1D,
    MaxUnPool2D,
    MaxUnPool3D,
)
from optlab.nn.layers.rearrangement import (
    ChannelShuffle,
    Fold,
    Pad1D,
    Pad2D,
    Pad3D,
    PixelShuffle,
    PixelUnshuffle,
    Unfold,
    ZeroPad1D,
    ZeroPad2D,
    ZeroPad3D,
)
from optlab.nn.layers.recurrent.cells import GRUCell, LSTMCell, RNNCellBase, SimpleRNNCell
from optlab.nn.layers.recurrent.networks import GRU, LSTM, SimpleRNN
from optlab.nn.layers.recurrent.rnn import RNN, BiRNN
from optlab.nn.layers.resampling import Upsample, UpsamplingBilinear2D, UpsamplingNearest2D
from optlab.nn.layers.transformer.attention import MultiHeadAttention
from optlab.nn.layers.transformer.blocks import (
    TransformerDecoder,
    TransformerDecoderLayer,
    TransformerEncoder,
    TransformerEncoderLayer,
)
from optlab.nn.layers.transformer.transformer import Transformer

__all__ = [
    "CELU", "ELU", "GELU", "GLU", "GRU", "LSTM", "RNN", "SELU", "AdaptiveAvgPool1D",
    "AdaptiveAvgPool2D", "AdaptiveAvgPool3D", "AdaptiveMaxPool1D", "AdaptiveMaxPool2D",
    "AdaptiveMaxPool3D", "AlphaDropout", "AvgPool1D", "AvgPool2D", "AvgPool3D", "BCELoss",
    "BCEWithLogitsLoss", "BatchNorm", "BatchNorm1D", "BatchNorm2D", "BatchNorm3D", "BiRNN",
    "Bilinear", "ChannelShuffle", "Conv1D", "Conv1DTranspose", "Conv2D", "Conv2DTranspose",
    "Conv3D", "Conv3DTranspose", "CosineEmbeddingLoss", "CosineSimilarity", "CrossEntropyLoss",
    "Dropout", "Dropout2D", "Dropout3D", "Embedding", "Flatten", "Fold", "GRUCell",
    "GaussianNLLLoss", "GroupNorm", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh",
    "HingeEmbeddingLoss", "HuberLoss", "Identity", "InstanceNorm1D", "InstanceNorm2D",
    "InstanceNorm3D", "KLDivLoss", "L1Loss", "LPPool1D", "LPPool2D", "LSTMCell", "LayerDict",
    "LayerList", "LayerNorm", "LeakyReLU", "Linear", "LocalResponseNorm", "LogSigmoid",
    "LogSoftmax", "MSELoss", "MarginRankingLoss", "MaxPool1D", "MaxPool2D", "MaxPool3D",
    "MaxUnPool1D", "MaxUnPool2D", "MaxUnPool3D", "Maxout", "Mish", "MultiHeadAttention",
    "MultiLabelSoftMarginLoss", "MultiMarginLoss", "NLLLoss", "PReLU", "Pad1D", "Pad2D", "Pad3D",
    "PairwiseDistance", "ParameterDict", "ParameterList", "PixelShuffle", "PixelUnshuffle",
    "PoissonNLLLoss", "RMSNorm", "RNNCellBase", "ReLU", "ReLU6", "Sequential", "Sigmoid", "Silu",
    "SimpleRNN", "SimpleRNNCell", "SmoothL1Loss", "SoftMarginLoss", "Softmax", "Softmax2D",
    "Softplus", "Softshrink", "Softsign", "Swish", "Tanh", "Tanhshrink", "ThresholdedReLU",
    "Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder",
    "TransformerEncoderLayer", "TripletMarginLoss", "TripletMarginWithDistanceLoss", "Unflatten",
    "Unfold", "Upsample", "UpsamplingBilinear2D", "UpsamplingNearest2D", "ZeroPad1D", "ZeroPad2D",
    "ZeroPad3D",
]  # fmt: skip
