"""A pipelined training step: two compute-bound sections on two cores, against one worker.

BLAS has one thread on both sides, so that what is measured is the pipeline.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from benchmarks.row import Peer, Row, Work, at_least

WIDTH, ROWS_OF_A_MICRO_BATCH, MICRO_BATCHES, LAYERS = 512, 128, 16, 8


def step(sections: int, schedule: str = "1F1B") -> Work:
    """Return a training step of a chain of layers, cut into sections."""
    import numpy as np

    import optlab as ol
    from optlab.backend.blas_threads import set_blas_threads

    set_blas_threads(1)
    ol.seed(0)
    layers: list[Any] = []
    for _ in range(LAYERS):
        layers += [ol.nn.Linear(WIDTH, WIDTH), ol.nn.ReLU()]
    model = ol.nn.Sequential(*layers)
    ends = [model[len(layers) * s // sections - 1] for s in range(1, sections)]
    optimizer = ol.optimizer.PipelineOptimizer(
        ol.optimizer.SGD(0.01, parameters=model.parameters()),
        ends,
        num_microbatches=MICRO_BATCHES,
        schedule=schedule,
    )
    shape = (ROWS_OF_A_MICRO_BATCH * MICRO_BATCHES, WIDTH)
    rng = np.random.default_rng(0)
    x, y = (ol.to_tensor(rng.standard_normal(shape).astype(np.float32)) for _ in range(2))
    criterion = ol.nn.MSELoss()
    return lambda: optimizer.step(model, criterion, x, y)


ROWS = [
    Row(
        name=name,
        title=(
            f"pipelined step, {schedule}: 2 sections of {LAYERS // 2} layers, {WIDTH} wide, "
            f"{MICRO_BATCHES} micro-batches of {ROWS_OF_A_MICRO_BATCH} rows, a core each"
        ),
        unit="training step",
        ours=partial(step, 2, schedule),
        peers=[
            Peer(
                "the same step with one worker",
                partial(step, 1, schedule),
                "numpy",
                at_least(1.5),
                in_our_environment=True,
            )
        ],
        default=False,
    )
    for name, schedule in (("pipeline", "1F1B"), ("pipeline_gpipe", "GPipe"))
]
