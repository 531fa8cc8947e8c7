"""Functions of networks; the files are named by subject, each rule stands beside its function."""

from optlab.nn.functional.activations import log_softmax, relu, softmax, tanh
from optlab.nn.functional.affine import embedding, linear
from optlab.nn.functional.dropouts import dropout
from optlab.nn.functional.losses import cross_entropy

__all__ = [
    "cross_entropy", "dropout", "embedding", "linear", "log_softmax", "relu", "softmax", "tanh",
]  # fmt: skip
