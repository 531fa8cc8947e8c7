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
from optlab.nn.functional.error_function import erf, gelu
from optlab.nn.functional.losses import cross_entropy
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
    "celu", "cross_entropy", "dropout", "elu", "embedding", "erf", "gelu", "glu", "hardshrink",
    "hardsigmoid", "hardswish", "hardtanh", "leaky_relu", "linear", "log_sigmoid", "log_softmax",
    "maxout", "mish", "prelu", "relu", "relu6", "selu", "sigmoid", "silu", "softmax", "softplus",
    "softshrink", "softsign", "swish", "tanh", "tanhshrink", "thresholded_relu",
]  # fmt: skip
