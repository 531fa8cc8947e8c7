"""Hooks: functions of the user that read, and may replace, the gradient of a Tensor."""

from __future__ import annotations

from typing import Any

import numpy as np

from optlab.autograd.tape.base import TensorBase, new_tensor
from optlab.autograd.tape.grad_mode import grad_mode
from optlab.autograd.tape.row_sparse import dense
from optlab.backend.arrays import as_array, copied, placed_beside, unwrapped
from optlab.backend.dtypes import is_real


def run_hooks(node: Any, g: Any) -> Any:
    """Run the hooks of a node on its gradient; return the gradient that they leave."""
    g = dense(g)
    for hook in node.hooks:
        with grad_mode(isinstance(g, TensorBase)):
            replaced = hook(g if isinstance(g, TensorBase) else new_tensor(read_only(g)))
        if replaced is None:
            continue
        keeps_graph = isinstance(g, TensorBase) and isinstance(replaced, TensorBase)
        array = replaced.data if isinstance(replaced, TensorBase) else as_array(replaced)
        array = placed_beside(unwrapped(g), array, "what a hook returned")
        if array.shape != node.shape or not is_real(array.dtype):
            raise ValueError(
                f"a hook returned {replaced!r} for the gradient of a Tensor of shape {node.shape}; "
                "return numbers of the same shape, or None to leave it as it is."
            )
        if keeps_graph:
            g = replaced if replaced.dtype == node.dtype else replaced.astype(node.dtype)
        else:
            array = copied(array, node.dtype)
            g = new_tensor(array) if isinstance(g, TensorBase) else array
    return g


def read_only(g: Any) -> Any:
    """Return a read-only view of an array, whose memory is shared."""
    if not isinstance(g, np.ndarray):
        return g
    view = g.view()
    view.flags.writeable = False
    return view
