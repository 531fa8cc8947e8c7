"""Automatic mixed precision: 16 bits where they suffice, 32 bits where necessary.

`auto_cast` selects by lists the operations that compute with 16 bits; `GradScaler` keeps small
gradients representable in float16. `optlab.autograd.tape.half_precision` defines 16-bit operations.

Examples
--------
>>> import optlab as ol
>>> ol.seed(0)
>>> layer = ol.nn.Linear(3, 2)
>>> optimizer = ol.optimizer.SGD(0.1, parameters=layer.parameters())
>>> scaler = ol.amp.GradScaler()
>>> for _ in range(3):
...     with ol.amp.auto_cast():
...         loss = ol.nn.functional.mse_loss(layer(ol.ones([1, 3])), ol.zeros([1, 2]))
...     scaler.scale(loss).backward()
...     scaler.step(optimizer)
...     scaler.update()
...     optimizer.clear_grad()
>>> scaler
GradScaler(scale=65536, which changes)
"""

from optlab.amp.auto_casting import auto_cast, autocast, is_autocast_enabled
from optlab.amp.grad_scaler import GradScaler
from optlab.backend.namespaces import set_module as _set_module

__all__ = ["GradScaler", "auto_cast", "autocast", "is_autocast_enabled"]

_set_module(__name__)


def __dir__() -> list[str]:
    return __all__
