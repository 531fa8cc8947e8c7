"""One recorded path of 500 steps on the Rosenbrock function, with a fresh optimizer."""

from __future__ import annotations

from benchmarks.row import Peer, Row, Work, at_least

STEPS = 500


def ours() -> Work:
    """Return a race of one optimizer, recorded with the default settings."""
    import optlab as ol

    def path() -> object:
        return ol.compare("rosenbrock", {"Adam": ol.optimizer.Adam(0.1)}, steps=STEPS)

    return path


def pytorch() -> Work:
    """Return the loop that stores its path, in the fastest of PyTorch's eager forms.

    Products are faster there than powers, and `unbind` is faster than two indexings.
    """
    import torch

    def path() -> object:
        point = torch.tensor([-1.5, 2.0], dtype=torch.float64, requires_grad=True)
        optimizer = torch.optim.Adam([point], 0.1, fused=True)
        stored = [point.detach().clone()]
        for _ in range(STEPS):
            x, y = point.unbind()
            along, across = 1 - x, y - x * x
            loss = along * along + 100 * (across * across)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
            stored.append(point.detach().clone())
        return stored

    return path


ROWS = [
    Row(
        name="recorded_path",
        title="recorded path of 500 Adam steps on Rosenbrock, float64",
        unit="path",
        ours=ours,
        peers=[
            Peer(
                "PyTorch eager, fused Adam, path stored",
                pytorch,
                "torch",
                at_least(6.0),
                threads=(1, 2),
            ),
        ],
    )
]
