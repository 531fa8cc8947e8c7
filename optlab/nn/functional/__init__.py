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
from optlab.nn.functional.affine import embedding, linear
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

__all__ = [
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "celu", "cross_entropy",
    "dropout", "elu", "embedding", "erf", "gelu", "glu", "hardshrink", "hardsigmoid",
    "hardswish", "hardtanh", "hinge_embedding_loss", "huber_loss", "kl_div", "l1_loss",
    "label_smooth", "leaky_relu", "linear", "log_sigmoid", "log_softmax", "margin_ranking_loss",
    "maxout", "mish", "mse_loss", "nll_loss", "one_hot", "prelu", "relu", "relu6", "selu",
    "sigmoid", "silu", "smooth_l1_loss", "soft_margin_loss", "softmax", "softplus",
    "softshrink", "softsign", "square_error_cost", "swish", "tanh", "tanhshrink",
    "thresholded_relu",
]  # fmt: skip
