"""Gradient clips under the names of ``paddle.fluid.clip`` 1.8.5.

Their argument ``need_clip``, a function that chooses parameters, is a setting of each parameter
here: ``ol.ParamAttr(need_clip=False)``.
"""

from __future__ import annotations

from optlab.fluid.instead import no_such_name
from optlab.nn.clip import ClipGradByGlobalNorm, ClipGradByNorm, ClipGradByValue

__all__ = [
    "GradientClipByGlobalNorm",
    "GradientClipByNorm",
    "GradientClipByValue",
]


class GradientClipByValue(ClipGradByValue):
    """`optlab.nn.ClipGradByValue` under its old name."""


class GradientClipByNorm(ClipGradByNorm):
    """`optlab.nn.ClipGradByNorm` under its old name."""


class GradientClipByGlobalNorm(ClipGradByGlobalNorm):
    """`optlab.nn.ClipGradByGlobalNorm` under its old name."""


_INSTEAD = {
    "set_gradient_clip": (
        "give the clip to the optimizer, SGD(0.1, parameter_list=model.parameters(), "
        "grad_clip=fluid.clip.GradientClipByGlobalNorm(1.0))."
    ),
    "ErrorClipByValue": (
        "gradients of intermediate values are changed by tensor.register_hook(lambda g: "
        "np.clip(g, -1, 1))."
    ),
}


def __getattr__(name: str) -> object:
    raise no_such_name("optlab.fluid.clip", name, __all__, _INSTEAD)


def __dir__() -> list[str]:
    return __all__
