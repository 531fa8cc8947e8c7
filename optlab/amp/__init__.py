"""Mixed precision: 16 bits where they do, 32 where they must.

What float16 and bfloat16 mean for one operation stands in `optlab.autograd.halves`.

Examples
--------
>>> import optlab as ol
>>> ol.amp.GradScaler()
GradScaler(scale=65536, which changes)
"""

from optlab.amp.grad_scaler import GradScaler

__all__ = ["GradScaler"]
