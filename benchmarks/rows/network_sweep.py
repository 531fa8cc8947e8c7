"""64 learning rates of the digits network: one sweep beside 64 eager runs."""

from __future__ import annotations

from benchmarks.row import Peer, Row, Work, at_least

RATES = [10 ** (-4 + 4 * k / 63) for k in range(64)]
STEPS = 500


def ours() -> Work:
    """Return the sweep, which trains all members at once."""
    import optlab as ol

    ol.set_blas_threads(1)

    def sweep() -> object:
        problem = ol.problems.digits_mlp()
        return ol.sweep(problem, ol.optimizer.Adam, {"learning_rate": RATES}, steps=STEPS)

    return sweep


def eager() -> Work:
    """Return the runs one after another, unrecorded, with the same results."""
    import numpy as np

    import optlab as ol

    ol.set_blas_threads(1)

    def runs() -> object:
        problem = ol.problems.digits_mlp()
        results = []
        for rate in RATES:
            run = problem.run(seed=0)
            optimizer = ol.optimizer.Adam(rate, parameters=run.parameters)
            losses = np.empty(STEPS)
            with np.errstate(all="ignore"):
                for step in range(STEPS):
                    losses[step] = run.backward(step)
                    optimizer.step()
                results.append((losses, run.loss(), run.accuracy))
        return results

    return runs


ROWS = [
    Row(
        name="network_sweep",
        title="64 learning rates of the digits network, 64-64-10, 500 Adam steps each",
        unit="sweep",
        ours=ours,
        peers=[Peer("64 eager runs", eager, "numpy", at_least(4.0), in_our_environment=True)],
    )
]
