"""Functions of NumPy that fold axes away, written with other functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.composed.table import composed


@composed(np.amax)
def _amax(a: Any, *args: Any, **kwargs: Any) -> Any:
    return np.max(a, *args, **kwargs)


@composed(np.amin)
def _amin(a: Any, *args: Any, **kwargs: Any) -> Any:
    return np.min(a, *args, **kwargs)
