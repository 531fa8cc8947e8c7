"""Functions of networks; the files are named by subject, each rule stands beside its function."""

from optlab.nn.functional.activations import (
    glu,
    log_sigmoid,
    log_softmax,
    maxout,
    mish,
    sigmoid,
    silu,
    softmax,
    softplus,
    softsign,
    swish,
    tanh,
)
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
from optlab.nn.functional.elementwise_losses import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    hinge_embedding_loss,
    huber_loss,
    kl_div,
    l1_loss,
    margin_ranking_loss,
    mse_loss,
    smooth_l1_loss,
    soft_margin_loss,
    square_error_cost,
)
from optlab.nn.functional.error_function import erf, gelu
from optlab.nn.functional.losses import cross_entropy, label_smooth, nll_loss, one_hot
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
from optlab.nn.functional.rectifiers import (
    celu,
    elu,
    hardsigmoid,
    hardswish,
    hardtanh,
    leaky_relu,
    prelu,
    relu,
    relu6,
    selu,
)
from optlab.nn.functional.shrinkages import hardshrink, softshrink, tanhshrink, thresholded_relu
from optlab.nn.functional.transposed_convolutions import (
    conv1d_transpose,
    conv2d_transpose,
    conv3d_transpose,
)

__all__ = [
    "adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d", "adaptive_max_pool1d",
    "adaptive_max_pool2d", "adaptive_max_pool3d", "avg_pool1d", "avg_pool2d", "avg_pool3d",
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "celu", "conv1d",
    "conv1d_transpose", "conv2d", "conv2d_transpose", "conv3d", "conv3d_transpose", "cross_entropy",
    "dropout", "elu", "embedding", "erf", "fold", "gelu", "glu", "hardshrink", "hardsigmoid",
    "hardswish", "hardtanh", "hinge_embedding_loss", "huber_loss", "kl_div", "l1_loss",
    "label_smooth", "leaky_relu", "linear", "log_sigmoid", "log_softmax", "margin_ranking_loss",
    "max_pool1d", "max_pool2d", "max_pool3d", "maxout", "mish", "mse_loss", "nll_loss", "one_hot",
    "pad", "pixel_shuffle", "pixel_unshuffle", "prelu", "relu", "relu6", "selu", "sigmoid", "silu",
    "smooth_l1_loss", "soft_margin_loss", "softmax", "softplus", "softshrink", "softsign",
    "square_error_cost", "swish", "tanh", "tanhshrink", "thresholded_relu", "unfold", "zeropad2d",
]  # fmt: skip
