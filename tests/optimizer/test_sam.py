"""SAM: two gradients a step, against a transcription of the paper and against PyTorch's numbers."""

import numpy as np
import pytest

import optlab as ol


def problem(dtype="float64"):
    draws = np.random.default_rng(0)
    a, b = (ol.Parameter(draws.standard_normal(s).astype(dtype), name=n)
            for n, s in (("a", (3, 2)), ("b", (2,))))  # fmt: skip
    x = draws.standard_normal((5, 3)).astype(dtype)

    def loss():
        return ((np.tanh(x @ a + b) - 0.3) ** 2).sum() + (a**4).sum()

    return a, b, loss


def closure_of(optimizer, loss):
    def closure():
        optimizer.clear_grad()
        value = loss()
        value.backward()
        return value

    return closure


def by_hand(a, b, loss, rho, adaptive, rate, steps):
    """Take the steps of algorithm 1 with SGD, by ol.grad."""
    values = [a.numpy(), b.numpy()]

    def at(values):
        kept = a.numpy(), b.numpy()
        a.set_value(values[0])
        b.set_value(values[1])
        loss_here = loss()
        loss_here.backward()
        found = a.grad.numpy(), b.grad.numpy()
        a.clear_grad()
        b.clear_grad()
        a.set_value(kept[0])
        b.set_value(kept[1])
        return found

    for _ in range(steps):
        g = at(values)
        scale = [np.abs(v) if adaptive else np.ones_like(v) for v in values]
        norm = np.sqrt(sum(np.sum((s * d) ** 2) for s, d in zip(scale, g, strict=True)))
        above = [v + rho * s**2 * d / norm for v, s, d in zip(values, scale, g, strict=True)]
        values = [v - rate * d for v, d in zip(values, at(above), strict=True)]
    return values


@pytest.mark.parametrize("adaptive", [False, True])
def test_steps_are_those_of_the_paper(adaptive):
    a, b, loss = problem()
    expected = by_hand(a, b, loss, 0.1, adaptive, 0.05, 6)
    sgd = ol.optimizer.SGD(0.05, parameters=[a, b])
    sam = ol.optimizer.SAM(sgd, rho=0.1, adaptive=adaptive)
    for _ in range(6):
        sam.step(closure_of(sam, loss))
    np.testing.assert_allclose(a.numpy(), expected[0], rtol=1e-12)
    np.testing.assert_allclose(b.numpy(), expected[1], rtol=1e-12)


@pytest.mark.parametrize(
    "make",
    [
        lambda p: ol.optimizer.Adam(0.01, parameters=p),
        lambda p: ol.optimizer.Momentum(0.01, parameters=p, weight_decay=0.1),
        lambda p: ol.optimizer.AdamW(0.01, parameters=p, grad_clip=ol.nn.ClipGradByGlobalNorm(0.5)),
        lambda p: ol.optimizer.LookAhead(ol.optimizer.SGD(0.05, parameters=p), k=2),
    ],
)
def test_without_a_distance_the_steps_are_those_of_the_inner_optimizer(make):
    runs = []
    for wrap in (lambda o: o, lambda o: ol.optimizer.SAM(o, rho=0.0)):
        a, b, loss = problem()
        optimizer = wrap(make([a, b]))
        for _ in range(5):
            if isinstance(optimizer, ol.optimizer.SAM):
                optimizer.step(closure_of(optimizer, loss))
            else:
                closure_of(optimizer, loss)()
                optimizer.step()
        runs.append((a.numpy(), b.numpy()))
    for one, other in zip(*runs, strict=True):
        np.testing.assert_array_equal(one, other)


def test_it_resumes_to_the_bit():
    a, b, loss = problem("float32")
    sam = ol.optimizer.SAM(ol.optimizer.Adam(0.05, parameters=[a, b]))
    for _ in range(3):
        sam.step(closure_of(sam, loss))
    state, weights = sam.state_dict(), (a.numpy(), b.numpy())
    for _ in range(3):
        sam.step(closure_of(sam, loss))
    a2, b2, loss2 = problem("float32")
    a2.set_value(weights[0])
    b2.set_value(weights[1])
    other = ol.optimizer.SAM(ol.optimizer.Adam(0.05, parameters=[a2, b2]))
    other.set_state_dict(state)
    for _ in range(3):
        other.step(closure_of(other, loss2))
    np.testing.assert_array_equal(a.numpy(), a2.numpy())
    np.testing.assert_array_equal(b.numpy(), b2.numpy())


@pytest.mark.parametrize("call", [1, 2])
def test_an_error_in_the_closure_leaves_the_parameters(call):
    a, b, loss = problem()
    sam = ol.optimizer.SAM(ol.optimizer.Adam(0.05, parameters=[a, b]))
    before, calls, inner = (a.numpy(), b.numpy()), [], closure_of(sam, loss)

    def closure():
        calls.append(1)
        if len(calls) == call:
            raise ZeroDivisionError
        return inner()

    with pytest.raises(ZeroDivisionError):
        sam.step(closure)
    np.testing.assert_array_equal(a.numpy(), before[0])
    np.testing.assert_array_equal(b.numpy(), before[1])
    state = sam.state_dict()["inner_optimizer"]
    assert not any(value for key, value in state.items() if key.endswith(".t"))


def test_a_recording_has_the_loss_before_the_step_and_the_way_up():
    a, b, loss = problem()
    sam = ol.optimizer.SAM(ol.optimizer.SGD(0.05, parameters=[a, b]), rho=0.2)
    losses = []
    with ol.record(sam, probes="toy") as trace:
        for _ in range(4):
            losses.append(float(sam.step(closure_of(sam, loss)).item()))
    np.testing.assert_allclose(trace.loss, losses, rtol=1e-12)
    up = trace["ascent"]
    lengths = np.sqrt(np.sum(up["a"] ** 2, axis=(1, 2)) + np.sum(up["b"] ** 2, axis=1))
    np.testing.assert_allclose(lengths, 0.2, rtol=1e-12)


def test_a_comparison_counts_both_gradients():
    found = ol.compare(
        "rosenbrock",
        {"SGD": ol.optimizer.SGD(1e-3), "SAM": ol.optimizer.SAM(ol.optimizer.SGD(1e-3))},
        steps=40,
    )
    assert len(found["SGD"].loss) == 40
    assert len(found["SAM"].loss) == 20
    assert found.evaluations["SAM"].tolist() == list(range(2, 41, 2))


def test_it_leaves_a_minimum_that_is_narrower_than_its_distance():
    """Two minima of one depth, a sharp and a flat one: SGD stays in the sharp one."""
    places = {}
    for name, make in {
        "SGD": lambda p: ol.optimizer.SGD(0.005, parameters=p),
        "SAM": lambda p: ol.optimizer.SAM(ol.optimizer.SGD(0.005, parameters=p), rho=0.8),
    }.items():
        w = ol.Parameter(np.array([-1.0]))
        optimizer = make([w])

        def loss(w=w):
            sharp, flat = 50 * (w + 1.0) ** 2, 0.3 * (w - 1.5) ** 2
            return -np.log(np.exp(-sharp) + np.exp(-flat)).sum()

        for _ in range(2000):
            if name == "SGD":
                closure_of(optimizer, loss)()
                optimizer.step()
            else:
                optimizer.step(closure_of(optimizer, loss))
        places[name] = float(w.numpy()[0])
    assert places["SGD"] == pytest.approx(-1, abs=0.05)
    assert places["SAM"] > -0.5


def test_misuse_is_told():
    w = ol.Parameter([1.0])
    sam = ol.optimizer.SAM(ol.optimizer.SGD(0.1, parameters=[w]))
    for call in (sam.step, lambda: sam.apply_gradients([]), lambda: sam.minimize(None)):
        with pytest.raises(TypeError, match="closure"):
            call()
    with pytest.raises(TypeError, match="one gradient a step"):
        ol.optimizer.SAM(ol.optimizer.LBFGS(parameters=[w]))
    with pytest.raises(ValueError, match="at least 0"):
        ol.optimizer.SAM(ol.optimizer.SGD(0.1), rho=-1)
    with pytest.raises(ValueError, match="finite"):
        ol.optimizer.SAM(ol.optimizer.SGD(0.1), rho=np.inf)
    with pytest.raises(TypeError, match="True or False"):
        ol.optimizer.SAM(ol.optimizer.SGD(0.1), adaptive="no")
    with pytest.raises(RuntimeError, match="no parameter of SAM"):
        sam.step(lambda: ol.to_tensor(1.0))


def test_what_replays_single_gradients_refuses_it():
    a, b, loss = problem()
    sam = ol.optimizer.SAM(ol.optimizer.SGD(0.05, parameters=[a, b]))
    with ol.record(sam, probes="toy") as trace:
        for _ in range(3):
            sam.step(closure_of(sam, loss))
    with pytest.raises(TypeError, match="evaluates the loss itself"):
        trace.influence(2)
    with pytest.raises(TypeError, match="evaluates the loss itself"):
        trace.fork(1, loss=lambda p: (p["a"] ** 2).sum())
