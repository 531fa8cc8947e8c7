"""Functions of networks; the files are named by subject, each rule stands beside its function."""

from optlab.nn.functional.activations import log_softmax, relu, softmax, tanh
from optlab.nn.functional.adaptive_poolings import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    adaptive_max_pool3d,
)
from optlab.nn.functional.affine import embedding, linear
from optlab.nn.functional.convolutions import conv1d, conv2d, conv3d
from optlab.nn.functional.dropouts import dropout
from optlab.nn.functional.losses import cross_entropy
from optlab.nn.functional.paddings import pad, zeropad2d
from optlab.nn.functional.poolings import (
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    max_pool1d,
    max_pool2d,
    max_pool3d,
)
from optlab.nn.functional.rearrangements import fold, pixel_shuffle, pixel_unshuffle, unfold
from optlab.nn.functional.transposed_convolutions import (
    conv1d_transpose,
    conv2d_transpose,
    conv3d_transpose,
)

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d",
    "adaptive_max_pool2d", "adaptive_max_pool3d", "avg_pool1d", "avg_pool2d", "avg_pool3d",
    "conv1d", "conv1d_transpose", "conv2d", "conv2d_transpose", "conv3d", "conv3d_transpose",
    "cross_entropy", "dropout", "embedding", "fold", "linear", "log_softmax", "max_pool1d",
    "max_pool2d", "max_pool3d", "pad", "pixel_shuffle", "pixel_unshuffle", "relu", "softmax",
    "tanh", "unfold", "zeropad2d",
]  # fmt: skip
