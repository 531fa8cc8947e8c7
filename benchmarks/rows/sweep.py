"""A sweep: 10,000 learning rates of Adam, 500 steps on the Rosenbrock function, float64."""

from __future__ import annotations

from functools import partial

from benchmarks.row import Peer, Row, Work, at_least

MEMBERS, STEPS = 10_000, 500
START = (-0.35, 1.75)


def ours(executor: str) -> Work:
    """Return a sweep whose final losses and points are read."""
    import numpy as np

    import optlab as ol
    from optlab.plan import use_executor

    use_executor(executor)
    rates = np.geomspace(1e-4, 1.0, MEMBERS)

    def work() -> object:
        sweep = ol.sweep(
            "rosenbrock", ol.optimizer.Adam, {"learning_rate": rates}, start=START, steps=STEPS
        )
        return sweep.final_loss, sweep.final_point

    return work


def jax() -> Work:
    """Return the same sweep as a compiled `vmap` of a `scan`, its results read as arrays."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    jax.config.update("jax_enable_x64", True)

    def loss(p: jax.Array) -> jax.Array:
        return (1 - p[0]) ** 2 + 100 * (p[1] - p[0] ** 2) ** 2

    slope = jax.grad(loss)

    def run(rate: jax.Array) -> tuple[jax.Array, jax.Array]:
        def step(carry: tuple[jax.Array, ...], t: jax.Array) -> tuple[tuple[jax.Array, ...], None]:
            p, m, v = carry
            g = slope(p)
            m = 0.9 * m + 0.1 * g
            v = 0.999 * v + 0.001 * g * g
            p = p - rate * (m / (1 - 0.9**t)) / (jnp.sqrt(v / (1 - 0.999**t)) + 1e-8)
            return (p, m, v), None

        begin = (jnp.array(START), jnp.zeros(2), jnp.zeros(2))
        (p, _, _), _ = jax.lax.scan(step, begin, jnp.arange(1.0, STEPS + 1))
        return p, loss(p)

    compiled = jax.jit(jax.vmap(run))
    rates = np.geomspace(1e-4, 1.0, MEMBERS)

    def work() -> object:
        point, value = compiled(rates)
        return np.asarray(value), np.asarray(point)

    return work


ROWS = [
    Row(
        name=name,
        title=f"sweep of {MEMBERS:,} Adam rates x {STEPS} steps on Rosenbrock, {said}",
        unit="sweep",
        ours=partial(ours, executor),
        peers=[Peer("JAX, jit of vmap of scan", jax, "jax", at_least(goal))],
    )
    for name, executor, said, goal in (
        ("sweep", "auto", "as it comes", 2.0),
        ("sweep_numpy", "numpy", "NumPy alone", 0.3),
    )
]
