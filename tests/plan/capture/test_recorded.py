"""Captured calls while a recorder listens: plans go on, and the trace is that of the eager run."""

import numpy as np
import pytest

import optlab as ol

PROBES = {
    "light": lambda: "light",
    "often": lambda: [ol.probes.Norms(terms=False, every=3)],
    "norms and snapshots": lambda: [
        ol.probes.Norms(terms=False, every=4), ol.probes.Snapshots(every=7),
        ol.probes.Projection(k=2, every=5),
    ],
    "updates at times": lambda: [ol.probes.Norms(every=6), ol.probes.Angle(every=9)],
    "everything": lambda: "full",
}  # fmt: skip
RULES = {
    "Adam": lambda p: ol.optimizer.Adam(0.01, parameters=p),
    "clipped": lambda p: ol.optimizer.AdamW(
        0.01, parameters=p, weight_decay=0.01, grad_clip=ol.nn.ClipGradByGlobalNorm(0.5)
    ),
    "Lamb": lambda p: ol.optimizer.Lamb(0.01, parameters=p),
    "LookAhead": lambda p: ol.optimizer.LookAhead(
        ol.optimizer.Momentum(0.01, parameters=p), alpha=0.5, k=3
    ),
}


def run(rule, capture, probes=None, steps=100, before=0):
    """Return trace, parameters and losses of a network's run, and how its calls were executed."""
    ol.seed(3)
    model = ol.nn.Sequential(ol.nn.Linear(6, 5), ol.nn.Tanh(), ol.nn.Linear(5, 3))
    optimizer = RULES[rule](model.parameters())
    rng = np.random.default_rng(0)
    batches = [(rng.standard_normal((8, 6)).astype("f"), rng.integers(0, 3, 8)) for _ in range(5)]

    def step(x, y):
        loss = ol.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    call = ol.capture(step) if capture else step
    losses, executed = [], []

    def go(first, last):
        for t in range(first, last):
            losses.append(call(*map(ol.to_tensor, batches[t % 5])).item())
            executed.append(call.execution if capture else "")

    go(0, before)
    if probes is None:
        go(before, steps)
        return None, [p.numpy().copy() for p in model.parameters()], losses, executed
    with ol.record(optimizer, probes=PROBES[probes]()) as trace:
        go(before, steps)
    return trace, [p.numpy().copy() for p in model.parameters()], losses, executed


def arrays_of(trace):
    """Return every array of a trace but times, by its name."""
    found = {"loss": trace.loss, "rate": trace.learning_rate}
    groups = {"norm": trace.norms, "slot": trace.slots, "term": trace.terms}
    for kind, quantities in groups.items():
        for quantity, arrays in quantities.items():
            found |= {f"{kind} {quantity} {name}": x for name, x in arrays.items()}
    for label, record in trace.records.items():
        for quantity, arrays in record.arrays().items():
            if not quantity.startswith("time"):
                found |= {f"{label} {quantity} {name}": x for name, x in arrays.items()}
        found[f"steps of {label}"] = record.steps.array(np.int64)
    return found


@pytest.mark.parametrize("before", [0, 40])
@pytest.mark.parametrize("probes", PROBES)
@pytest.mark.parametrize("rule", RULES)
def test_a_recorded_call_is_the_call(rule, probes, before):
    eager = run(rule, False, probes, before=before)
    captured = run(rule, True, probes, before=before)
    plain = run(rule, True, before=before)
    for one, two, three in zip(eager[1], captured[1], plain[1], strict=True):
        assert one.tobytes() == two.tobytes() == three.tobytes()
    assert eager[2] == captured[2] == plain[2]
    wanted, found = arrays_of(eager[0]), arrays_of(captured[0])
    assert wanted.keys() == found.keys()
    for name, x in wanted.items():
        assert x.tobytes() == found[name].tobytes(), name
    assert len(captured[0]) == 100 - before


@pytest.mark.parametrize("rule", RULES)
def test_a_light_recording_leaves_every_call_to_the_plan(rule):
    *_, executed = run(rule, True, "light", before=40)
    assert set(executed) == {"captured: by a plan"}


def test_only_steps_that_a_probe_observes_run_eagerly():
    *_, executed = run("Adam", True, "updates at times", before=40)
    eager = [t - 39 for t, how in enumerate(executed) if how.startswith("eagerly")]
    assert eager == sorted({*range(1, 61, 6), *range(1, 61, 9)})


def test_another_listener_makes_calls_eager():
    heard = []
    with ol.events.subscribe("step_finished", heard.append):
        *_, executed = run("Adam", True, "light", steps=5)
    assert len(heard) == 5
    assert all(how.startswith("eagerly") for how in executed)


def recorded_calls(f, parameters, optimizer, arguments, **options):
    """Return the trace of calls of a captured function, and the function."""
    call = ol.capture(f, **options)
    with ol.record(optimizer, probes="light") as trace:
        for x in arguments:
            call(x)
    return trace, call


def test_a_call_that_has_no_plan_is_recorded_once():
    w = ol.Parameter([3.0, 4.0])
    optimizer = ol.optimizer.SGD(0.25, parameters=[w])
    said = []

    def step(x):
        loss = ((w - x) ** 2).sum()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        said.append(loss.item())

    trace, call = recorded_calls(step, [w], optimizer, [ol.zeros([2])] * 3, strict=False)
    assert call.execution.startswith("eagerly")
    assert trace.loss.tolist() == [25.0, 6.25, 1.5625]
    assert said == [25.0, 6.25, 1.5625]
    assert trace.norms["gradient"]["parameter 0"].tolist() == [10.0]


def test_a_refused_call_is_not_recorded():
    w = ol.Parameter([3.0, 4.0])
    optimizer = ol.optimizer.SGD(0.25, parameters=[w])

    def step(x):
        loss = ((w - x) ** 2).sum()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        print(loss.item())

    with ol.record(optimizer, probes="light") as trace:
        with pytest.raises(ol.CaptureError):
            ol.capture(step)(ol.zeros([2]))
        assert w.numpy().tolist() == [3.0, 4.0]
        ((w - 1.0) ** 2).sum().backward()
        optimizer.step()
    assert trace.loss.tolist() == [13.0]


def test_a_branch_on_a_number_is_recorded_once():
    w = ol.Parameter([3.0])
    optimizer = ol.optimizer.SGD(0.25, parameters=[w])

    def step(x):
        loss = (w * w).sum() if x > 1.0 else (w * 2.0).sum()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()

    trace, _ = recorded_calls(step, [w], optimizer, [2.0, 0.5, 2.0])
    assert trace.loss.tolist() == [9.0, 3.0, 1.0]


def test_an_error_of_the_function_leaves_the_steps_before_it():
    w = ol.Parameter([3.0])
    optimizer = ol.optimizer.SGD(0.25, parameters=[w])

    def step(x):
        (w * w * x).sum().backward()
        optimizer.step()
        optimizer.clear_grad()
        raise KeyError("no such thing")

    call = ol.capture(step)
    with ol.record(optimizer, probes="light") as trace, pytest.raises(KeyError):
        call(ol.ones([1]))
    assert trace.loss.tolist() == [9.0]


def test_calls_that_are_checked_are_recorded_once():
    w = ol.Parameter([3.0, 4.0])
    optimizer = ol.optimizer.SGD(0.25, parameters=[w])

    def step(x):
        loss = ((w - x) ** 2).sum()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()

    trace, call = recorded_calls(step, [w], optimizer, [ol.zeros([2])] * 4, check=2)
    assert call.execution == "captured: by a plan"
    assert trace.loss.tolist() == [25.0, 6.25, 1.5625, 0.390625]
