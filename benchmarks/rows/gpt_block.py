"""One block of a GPT, forward and backward: matrix products, and many operations beside them.

Both sides are pre-norm, compute queries, keys and values by one product, use causal attention
with 4 heads, and a feed-forward network four times as wide with GELU (exact, by the error
function). The gradients of the input and of all parameters are computed, as inside a network.
"""

from __future__ import annotations

from typing import Any

from benchmarks.row import Peer, Row, Work, at_least

BATCH, LENGTH, WIDTH, HEADS = 8, 64, 128, 4


def arrays() -> tuple[Any, Any]:
    """Return the input and an upstream gradient, both float32."""
    import numpy as np

    numbers = np.random.default_rng(0)
    shape = (BATCH, LENGTH, WIDTH)
    return tuple(numbers.standard_normal(shape).astype(np.float32) for _ in range(2))  # type: ignore[return-value]


def ours() -> Work:
    """Return forward and backward of optlab's block."""
    import optlab as ol
    from optlab.lab.models import Block

    inputs, gradient = arrays()
    x = ol.to_tensor(inputs, requires_grad=True)
    block = Block(WIDTH, HEADS)
    leaves = [x, *block.parameters()]

    def step() -> None:
        block(x).backward(gradient)
        for leaf in leaves:
            leaf.grad = None

    return step


def pytorch() -> Work:
    """Return the same in PyTorch, with its fused attention."""
    import torch
    from torch.nn import functional

    class Block(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm1 = torch.nn.LayerNorm(WIDTH)
            self.look = torch.nn.Linear(WIDTH, 3 * WIDTH)
            self.mix = torch.nn.Linear(WIDTH, WIDTH)
            self.norm2 = torch.nn.LayerNorm(WIDTH)
            self.wide = torch.nn.Linear(WIDTH, 4 * WIDTH)
            self.narrow = torch.nn.Linear(4 * WIDTH, WIDTH)

        def forward(self, x: Any) -> Any:
            parts = self.look(self.norm1(x)).view(BATCH, LENGTH, 3, HEADS, -1)
            q, k, v = parts.permute(2, 0, 3, 1, 4)
            seen = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.mix(seen.transpose(1, 2).reshape(BATCH, LENGTH, WIDTH))
            return x + self.narrow(functional.gelu(self.wide(self.norm2(x))))

    inputs, gradient = map(torch.from_numpy, arrays())
    x = inputs.requires_grad_()
    block = Block()
    leaves = [x, *block.parameters()]

    def step() -> None:
        block(x).backward(gradient)
        for leaf in leaves:
            leaf.grad = None

    return step


ROWS = [
    Row(
        name="gpt_block",
        title="GPT block, 8 texts of 64, width 128, 4 heads, GELU, forward and backward",
        unit="forward and backward",
        ours=ours,
        peers=[Peer("PyTorch eager", pytorch, "torch", at_least(1.0), threads=(1, 2))],
    )
]
