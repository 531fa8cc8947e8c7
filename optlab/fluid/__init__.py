"""Floor 3, the names of Paddle 1.8.5: `optlab.fluid.optimizer`."""

from optlab.fluid import optimizer

__all__ = ["optimizer"]


def __dir__() -> list[str]:
    return __all__
