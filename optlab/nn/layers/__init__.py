"""The layers; the files are named by subject."""

from optlab.nn.layers.activation import ReLU, Tanh
from optlab.nn.layers.linear import Linear
from optlab.nn.layers.loss import CrossEntropyLoss

__all__ = ["CrossEntropyLoss", "Linear", "ReLU", "Tanh"]
