"""Floor 3, optimizers: the step, the update rules and the regularizers."""

from optlab.optimizer import regularizer
from optlab.optimizer.adam import Adam
from optlab.optimizer.momentum import Momentum
from optlab.optimizer.optimizer import Optimizer, Update
from optlab.optimizer.rmsprop import RMSProp
from optlab.optimizer.settings import REQUIRED
from optlab.optimizer.sgd import SGD

__all__ = ["REQUIRED", "SGD", "Adam", "Momentum", "Optimizer", "RMSProp", "Update", "regularizer"]
