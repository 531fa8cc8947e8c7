"""L-BFGS: its step, its line search, and the features that it shares with other optimizers."""

from __future__ import annotations

import numpy as np
import pytest

import optlab as ol
from optlab.backend.memory.sizes import in_words
from optlab.optimizer.quasi_newton.history import History
from tests import guarded
from tests.optimizer.helpers import random

LBFGS = ol.optimizer.LBFGS
BOTH = pytest.mark.parametrize("search", [None, "strong_wolfe"])


def quadratic(size, seed=0):
    """Return a positive definite matrix and the minimum of its quadratic."""
    a = random(size, size, seed=seed)
    return a @ a.T + np.eye(size), random(size, seed=seed + 1)


def closure_of(optimizer, loss):
    def closure():
        optimizer.clear_grad()
        value = loss()
        value.backward()
        return value

    return closure


def bowl(p, seed=0):
    matrix, lowest = quadratic(p.size, seed)
    return lambda: 0.5 * ((p - lowest) @ (matrix @ (p - lowest)))


@BOTH
def test_it_finds_the_minimum_of_a_quadratic(search):
    p = ol.Parameter(np.zeros(6))
    optimizer = LBFGS(max_iter=60, tolerance_change=1e-14, line_search_fn=search, parameters=[p])
    optimizer.step(closure_of(optimizer, bowl(p)))
    np.testing.assert_allclose(p.numpy(), quadratic(6)[1], atol=1e-6)


def test_its_direction_is_that_of_the_matrix_form_of_bfgs():
    """H = V' H V + rho s s', from the scaled identity, for every stored pair."""
    optimizer = LBFGS(0.5, max_iter=6, history_size=4, parameters=[p := ol.Parameter(random(5))])
    optimizer.step(closure_of(optimizer, bowl(p)))
    known = optimizer.history
    assert len(known.steps) == 4
    h = known.scale * np.eye(5)
    for s, y in zip(known.steps, known.changes, strict=True):
        rho = 1 / (y @ s)
        v = np.eye(5) - rho * np.outer(y, s)
        h = v.T @ h @ v + rho * np.outer(s, s)
    g = random(5, seed=9)
    np.testing.assert_allclose(known.newton_direction(g), -h @ g, rtol=1e-10)


@pytest.mark.parametrize("evaluations", [1, 3, 7])
def test_it_stops_when_it_may_evaluate_no_more(evaluations):
    p = ol.Parameter(np.zeros(6))
    optimizer = LBFGS(0.1, max_iter=50, max_eval=evaluations, parameters=[p])
    optimizer.step(closure_of(optimizer, bowl(p)))
    assert optimizer.history.evaluations == max(2, evaluations)


def test_without_more_ado_it_evaluates_once_a_step():
    p = ol.Parameter(np.zeros(6))
    optimizer = LBFGS(0.1, max_iter=8, max_eval=100, parameters=[p])
    optimizer.step(closure_of(optimizer, bowl(p)))
    assert (optimizer.history.iterations, optimizer.history.evaluations) == (8, 8)


def test_at_the_minimum_it_evaluates_once_and_stays():
    p = ol.Parameter(quadratic(4)[1])
    optimizer = LBFGS(parameters=[p])
    loss = optimizer.step(closure_of(optimizer, bowl(p)))
    assert loss.item() == 0
    assert (optimizer.history.iterations, optimizer.history.evaluations) == (0, 1)


@BOTH
@pytest.mark.parametrize("who", ["LookAhead", "set_value", "nobody"])
def test_what_it_learns_of_curvature_holds_whoever_moves_the_parameters(search, who):
    matrix, _ = quadratic(5)
    p = ol.Parameter(np.ones(5))
    inner = LBFGS(0.1, max_iter=2, max_eval=99, line_search_fn=search, parameters=[p])
    optimizer = ol.optimizer.LookAhead(inner, k=2) if who == "LookAhead" else inner
    for n in range(4):
        optimizer.step(closure_of(optimizer, bowl(p)))
        if who == "set_value":
            p.set_value(p.numpy() + random(5, seed=n))
    assert len(inner.history.steps) == 7
    for step, change in zip(inner.history.steps, inner.history.changes, strict=True):
        np.testing.assert_allclose(change, matrix @ step, atol=1e-9)


def test_a_point_moved_before_its_state_is_taken_is_known_to_a_resumed_run():
    def made():
        p = ol.Parameter(np.ones(5), name="p")
        optimizer = LBFGS(0.1, max_iter=2, parameters=[p])
        return p, optimizer, closure_of(optimizer, bowl(p))

    p, optimizer, closure = made()
    optimizer.step(closure)
    p.set_value(p.numpy() + 1)
    q, resumed, its = made()
    q.set_value(p.numpy())
    resumed.set_state_dict(optimizer.state_dict())
    for _ in range(2):
        optimizer.step(closure)
        resumed.step(its)
    np.testing.assert_array_equal(p.numpy(), q.numpy())


def test_a_state_of_before_without_the_starting_point_is_taken_in():
    p = ol.Parameter(np.ones(5), name="p")
    optimizer = LBFGS(0.1, max_iter=2, parameters=[p])
    optimizer.step(closure_of(optimizer, bowl(p)))
    state = optimizer.state_dict()
    del state["extra"]["last"]["p"][2]
    optimizer.set_state_dict(state)
    optimizer.step(closure_of(optimizer, bowl(p)))
    assert optimizer.history.iterations == 2


def test_its_page_counts_the_history():
    p = ol.Parameter(np.ones(1000))
    optimizer = LBFGS(0.1, max_iter=3, parameters=[p])
    assert "keeps 0 B" in optimizer._repr_html_()
    optimizer.step(closure_of(optimizer, lambda: (p**4).sum()))
    # Direction, gradient and start, and two pairs.
    assert optimizer.own_bytes == (3 + 2 * len(optimizer.history.steps)) * p.data.nbytes > 0
    assert f"keeps {in_words(optimizer.own_bytes)} for" in optimizer._repr_html_()
    around = ol.optimizer.LookAhead(optimizer)
    assert around.own_bytes == optimizer.own_bytes + p.data.nbytes


def test_it_gives_the_loss_before_the_call():
    p = ol.Parameter(np.array([3.0]))
    optimizer = LBFGS(parameters=[p])
    assert optimizer.step(closure_of(optimizer, lambda: (p * p).sum())).item() == 9.0


# Decay and clip -----------------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("where", ["optimizer", "group", "parameter"])
def test_decay_is_part_of_what_is_minimised(search, where):
    decay = ol.regularizer.L2Decay(0.5)
    p = ol.Parameter(np.zeros(4), regularizer=decay if where == "parameter" else None)
    parameters = [{"params": [p], "weight_decay": decay}] if where == "group" else [p]
    common = {"weight_decay": 0.5} if where == "optimizer" else {}
    optimizer = LBFGS(max_iter=80, line_search_fn=search, parameters=parameters, **common)
    optimizer.step(closure_of(optimizer, bowl(p)))
    matrix, lowest = quadratic(4)
    np.testing.assert_allclose(
        p.numpy(), np.linalg.solve(matrix + 0.5 * np.eye(4), matrix @ lowest), atol=1e-5
    )


def test_the_line_search_sees_the_penalty_of_l1():
    p = ol.Parameter([3.0])
    optimizer = LBFGS(
        line_search_fn="strong_wolfe", weight_decay=ol.regularizer.L1Decay(2.0), parameters=[p]
    )
    for _ in range(3):
        optimizer.step(closure_of(optimizer, lambda: ((p - 4.0) ** 2).sum()))
    np.testing.assert_allclose(p.numpy(), 3.0, atol=1e-5)  # 2 (p - 4) + 2 = 0


def test_the_gradient_is_clipped():
    p = ol.Parameter(np.array([100.0]))
    clip = ol.nn.ClipGradByNorm(0.5)
    optimizer = LBFGS(1.0, max_iter=1, grad_clip=clip, parameters=[p])
    optimizer.step(closure_of(optimizer, lambda: (p * p).sum()))
    assert p.numpy() == 99.5


def test_clipped_gradients_are_found_by_their_parameters():
    def run(clip):
        a, b = ol.Parameter([1.0, 2.0], name="a"), ol.Parameter([30.0, 40.0], name="b")
        optimizer = LBFGS(0.1, max_iter=3, grad_clip=clip, parameters=[a, b])
        optimizer.step(closure_of(optimizer, lambda: (a**4).sum() + (b * b).sum()))
        return [a.numpy(), b.numpy()]

    turned = run(lambda pairs: [(p, ol.to_tensor(g)) for p, g in pairs][::-1])
    for one, other in zip(turned, run(None), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("clip", "error", "words"),
    [
        (lambda pairs: None, TypeError, "returns such pairs"),
        (lambda pairs: pairs[:1], ValueError, "given 2 .* and returned 1 of other parameters"),
        (lambda pairs: [(p, g[:1]) for p, g in pairs], ValueError, "gradient of a has shape"),
    ],
)
def test_a_clip_that_returns_something_else_is_told_so(clip, error, words):
    a, b = ol.Parameter([1.0, 2.0], name="a"), ol.Parameter([3.0, 4.0], name="b")
    optimizer = LBFGS(grad_clip=clip, parameters=[a, b])
    with pytest.raises(error, match=words):
        optimizer.step(closure_of(optimizer, lambda: (a * b).sum()))
    np.testing.assert_array_equal(a.numpy(), [1.0, 2.0])


@pytest.mark.parametrize(("decay", "value"), [("L2Decay", 0.25 * 5), ("L1Decay", 0.5 * 3)])
def test_a_penalty_has_the_gradient_that_is_added(decay, value):
    regularizer = getattr(ol.regularizer, decay)(0.5)
    x = np.array([1.0, -2.0])
    assert regularizer.penalty(x) == value
    slope = ol.grad(regularizer.penalty)(ol.to_tensor(x)).numpy()
    np.testing.assert_array_equal(slope, regularizer.add_to(np.zeros(2), x))


# Parameters ---------------------------------------------------------------------------------------


def test_several_parameters_go_as_one():
    matrix, lowest = quadratic(6)
    ps = [ol.Parameter(np.zeros(2)), ol.Parameter(np.zeros((2, 2)))]
    whole = ol.Parameter(np.zeros(6))

    def loss():
        d = ol.numpy.concatenate([p.reshape(-1) for p in ps]) - lowest
        return 0.5 * (d @ (matrix @ d))

    apart = LBFGS(max_iter=7, parameters=[{"params": [p]} for p in ps])
    together = LBFGS(max_iter=7, parameters=[whole])
    apart.step(closure_of(apart, loss))
    together.step(closure_of(together, bowl(whole)))
    found = np.concatenate([p.numpy().ravel() for p in ps])
    np.testing.assert_allclose(found, whole.numpy(), rtol=1e-9)


@BOTH
def test_a_parameter_without_a_gradient_stays_where_it_is(search):
    p, q = ol.Parameter(np.zeros(4)), ol.Parameter([5.0, 5.0, 5.0, 5.0], name="q")
    q.data = q.data.astype("float64")
    optimizer = LBFGS(line_search_fn=search, weight_decay=0.1, parameters=[p, q])
    optimizer.step(closure_of(optimizer, bowl(p)))
    assert q.numpy().tolist() == [5.0] * 4
    assert np.all(p.numpy() != 0)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@BOTH
def test_dtypes_stay(dtype, search):
    p = ol.Parameter(np.full(3, 2.0, dtype))
    optimizer = LBFGS(line_search_fn=search, parameters=[p])
    loss = lambda: ((p * p) ** 2 + p * p).sum()  # noqa: E731
    for _ in range(3):
        optimizer.step(closure_of(optimizer, loss))
    assert p.dtype == dtype
    np.testing.assert_allclose(p.numpy(), 0.0, atol=1e-3)


def test_on_a_device():
    p, q = ol.Parameter(np.full(3, 2.0)), ol.Parameter(guarded.guarded([2.0, 2.0, 2.0]))
    for one in (p, q):
        optimizer = LBFGS(line_search_fn="strong_wolfe", weight_decay=0.1, parameters=[one])
        optimizer.step(closure_of(optimizer, lambda one=one: ((one * one) ** 2).sum()))
    np.testing.assert_allclose(guarded.values(q), p.numpy(), rtol=1e-12)


# Errors -------------------------------------------------------------------------------------------


def test_it_asks_for_a_closure():
    optimizer = LBFGS(parameters=[ol.Parameter([1.0])])
    with pytest.raises(TypeError, match="closure"):
        optimizer.step()
    with pytest.raises(NotImplementedError, match="closure"):
        optimizer.minimize(ol.to_tensor(1.0))
    with pytest.raises(NotImplementedError, match="closure"):
        optimizer.apply_gradients([])


def test_a_closure_that_gives_nothing_is_named():
    p = ol.Parameter([1.0])
    with pytest.raises(TypeError, match="the loss that the closure returns"):
        LBFGS(parameters=[p]).step(lambda: None)


def test_rates_and_settings_of_a_groups_own_are_refused():
    p = ol.Parameter([1.0])
    with pytest.raises(ValueError, match="max_iter"):
        LBFGS(parameters=[{"params": [p], "max_iter": 3}])
    for optimizer in (
        LBFGS(parameters=[{"params": [p], "learning_rate": 0.5}]),
        LBFGS(parameters=[ol.Parameter([1.0], learning_rate=0.5)]),
    ):
        with pytest.raises(ValueError, match="learning rate"):
            optimizer.step(lambda: 1.0)


def test_parameters_of_two_dtypes_are_refused():
    ps = [ol.Parameter(np.ones(1, dtype)) for dtype in ("float32", "float64")]
    with pytest.raises(ValueError, match="float32 on cpu, float64 on cpu"):
        LBFGS(parameters=ps).step(lambda: 1.0)


def test_a_closure_that_fails_on_the_way_leaves_the_last_point():
    p = ol.Parameter(np.zeros(6))
    optimizer = LBFGS(1e-6, max_iter=50, line_search_fn="strong_wolfe", parameters=[p])
    loss, calls, points = bowl(p), [], [p.numpy()]

    def closure():
        calls.append(1)
        if len(calls) > 3:
            raise OSError("the data are gone")
        return closure_of(optimizer, loss)()

    with ol.record(optimizer) as trace, pytest.raises(OSError, match="gone"):
        optimizer.step(closure)
    points = trace.parameters["p" if "p" in trace.parameters else next(iter(trace.parameters))]
    np.testing.assert_array_equal(p.numpy(), points[-1])


@pytest.mark.parametrize("policy", ["raise", "skip"])
def test_a_gradient_that_is_not_finite(policy):
    p = ol.Parameter([1.0])
    optimizer = LBFGS(parameters=[p], not_finite=policy)
    closure = closure_of(optimizer, lambda: (p * np.float32(np.inf)).sum())
    if policy == "raise":
        with pytest.raises(FloatingPointError):
            optimizer.step(closure)
    else:
        optimizer.step(closure)
    assert p.numpy() == 1.0


# The rest of the package --------------------------------------------------------------------------


@BOTH
@pytest.mark.parametrize("cut", [0, 1, 3])
def test_a_resumed_run_goes_on_to_the_bit(search, cut, tmp_path):
    def made(order=1):
        a, b = ol.Parameter(random(2, 2), name="a"), ol.Parameter(random(3, seed=1), name="b")
        ps = [a, b][::order]
        optimizer = LBFGS(0.3, max_iter=2, line_search_fn=search, parameters=ps)
        loss = lambda: ((a * a + 1) ** 0.5).sum() + ((b - 1) ** 4).sum() + a.sum() * b.sum()  # noqa: E731
        return (a, b), optimizer, closure_of(optimizer, loss)

    ps, optimizer, closure = made()
    for _ in range(cut):
        optimizer.step(closure)
    ol.save([optimizer.state_dict(), *ps], str(tmp_path / "state"))
    others, resumed, its = made()
    state, *values = ol.load(str(tmp_path / "state"))
    for p, value in zip(others, values, strict=True):
        p.set_value(value)
    resumed.set_state_dict(state)
    for _ in range(3):
        optimizer.step(closure)
        resumed.step(its)
    for p, q in zip(ps, others, strict=True):
        np.testing.assert_array_equal(p.numpy(), q.numpy())


def test_a_history_is_cut_by_the_names_of_parameters():
    def made(order):
        ps = [ol.Parameter(random(2), name="a"), ol.Parameter(random(3), name="b")][::order]
        optimizer = LBFGS(0.3, max_iter=3, parameters=ps)
        return optimizer, closure_of(optimizer, lambda: sum(((p - 1) ** 4).sum() for p in ps))

    one, closure = made(1)
    one.step(closure)
    other, _ = made(-1)
    other.set_state_dict(one.state_dict())
    mine, its = one.history.steps[-1], other.history.steps[-1]
    np.testing.assert_array_equal(np.roll(mine, 3), its)


def test_a_state_says_how_often_the_closure_was_called():
    """Paddle's documents read it: ``optimizer.state_dict()["state"]["func_evals"]``."""
    p = ol.Parameter(random(3), name="p")
    optimizer = LBFGS(max_iter=2, parameters=[p])
    calls = []
    closure = closure_of(optimizer, lambda: calls.append(1) or bowl(p)())
    while optimizer.state_dict()["state"]["func_evals"] < 5:
        optimizer.step(closure)
    state = optimizer.state_dict()
    assert state["state"] == {"func_evals": len(calls), "n_iter": state["extra"]["iterations"]}
    for told in (state["state"], {"func_evals": 99}, None):  # informative only
        resumed = LBFGS(max_iter=2, parameters=[ol.Parameter(p.numpy(), name="p")])
        given = dict(state, state=told)
        if told is None:  # states of earlier versions
            del given["state"]
        resumed.set_state_dict(given)
        assert resumed.state_dict()["state"] == state["state"]
    with pytest.raises(ValueError, match="other is unexpected"):
        optimizer.set_state_dict({**state, "other": 1})
    with pytest.raises(TypeError, match="takes what state_dict gave"):
        optimizer.set_state_dict(None)


@pytest.mark.parametrize("fault", ["nothing", "shape", "number"])
def test_a_history_of_others_is_refused(fault):
    p = ol.Parameter(random(3), name="p")
    optimizer = LBFGS(max_iter=2, parameters=[p])
    optimizer.step(closure_of(optimizer, bowl(p)))
    state = optimizer.state_dict()
    if fault == "nothing":
        del state["extra"]
    elif fault == "shape":
        state["extra"]["steps"]["p"] = [ol.to_tensor(np.ones(4))]
    else:
        del state["extra"]["alpha"]
    known = optimizer.history
    with pytest.raises(ValueError, match="history of LBFGS"):
        optimizer.set_state_dict(state)
    assert optimizer.history is known


def test_a_template_bound_twice_shares_nothing():
    template = LBFGS(max_iter=2, max_eval=9)
    p, q = ol.Parameter(random(4)), ol.Parameter(random(4))
    first, second = template.bind([p]), template.bind([q])
    first.step(closure_of(first, bowl(p)))
    assert (first.history.iterations, second.history.iterations) == (2, 0)
    second.step(closure_of(second, bowl(q)))
    np.testing.assert_array_equal(p.numpy(), q.numpy())


@BOTH
def test_a_record_has_every_step_and_its_loss(search):
    p = ol.Parameter(np.zeros(4), name="p")
    optimizer = LBFGS(0.2, max_iter=3, max_eval=99, line_search_fn=search, parameters=[p])
    loss = bowl(p)
    with ol.record(optimizer) as trace:
        for _ in range(2):
            optimizer.step(closure_of(optimizer, loss))
    assert len(trace) == optimizer.history.iterations == 6
    for point, value in zip(trace.parameters["p"][:-1], trace.loss, strict=True):
        p.set_value(point)
        np.testing.assert_allclose(loss().item(), value, rtol=1e-12)
    path = trace.parameters["p"]
    np.testing.assert_allclose(trace.terms["update"]["p"], path[1:] - path[:-1])


@BOTH
@pytest.mark.parametrize("probes", ["toy", "light"])
def test_a_call_that_has_converged_is_a_step_that_changes_nothing(search, probes):
    p = ol.Parameter(np.zeros(4), name="p")
    optimizer = LBFGS(max_iter=60, line_search_fn=search, tolerance_grad=1e-3, parameters=[p])
    closure = closure_of(optimizer, bowl(p))
    optimizer.step(closure)
    there, taken = p.numpy(), optimizer.history.iterations
    with ol.record(optimizer, probes=probes) as trace:
        returned = [optimizer.step(closure).item() for _ in range(3)]
    assert trace.loss.tolist() == returned
    assert len(set(returned)) == 1
    assert optimizer.history.iterations == taken
    if probes == "toy":
        assert (trace.parameters["p"] == there).all()
        assert not trace.terms["update"]["p"].any()
        assert np.linalg.norm(trace.gradients["p"][-1], np.inf) <= 1e-3
    assert np.array_equal(p.numpy(), there)


def test_a_step_that_the_policy_skips_is_none_in_the_trace():
    p = ol.Parameter([1.0], name="p")
    optimizer = LBFGS(parameters=[p], not_finite="skip")
    with ol.record(optimizer) as trace, np.errstate(all="ignore"):
        optimizer.step(closure_of(optimizer, lambda: (p / 0.0).sum()))
    assert (len(trace), optimizer.skipped) == (0, 1)


def test_a_race_counts_its_evaluations():
    race = ol.compare(
        "rosenbrock",
        {"search": LBFGS(line_search_fn="strong_wolfe"), "SGD": ol.optimizer.SGD(1e-4)},
        steps=60,
    )
    used = race.evaluations["search"]
    assert np.all(np.diff(used) >= 1)
    assert used[-1] <= 60
    assert len(used) == len(race["search"]) < 60
    assert race.final_loss["search"] < 1e-6
    arrived = race.table(tolerance=1e-3)["steps to tolerance"]["search"]
    losses = np.append(race["search"].loss, race.final_loss["search"])
    assert arrived == used[np.flatnonzero(losses <= 1e-3)[0] - 1]
    assert len(race["SGD"]) == 60


def test_a_race_ends_when_the_evaluations_are_spent():
    race = ol.compare("rosenbrock", {"run": LBFGS(1e-4, max_iter=50)}, steps=7)
    assert race.evaluations["run"].tolist() == list(range(1, 8))
    assert len(race["run"]) == 7


def test_a_sweep_runs_it_one_by_one():
    sweep = ol.sweep("rosenbrock", LBFGS, {"learning_rate": [0.1, 0.5]}, steps=30)
    race = ol.compare("rosenbrock", {"run": LBFGS(0.5)}, steps=30)
    n = len(race["run"])
    np.testing.assert_array_equal(sweep.loss[1][:n], race["run"].loss)


def test_a_direction_takes_two_inner_products_a_pair(monkeypatch):
    history, rng = History(), np.random.default_rng(0)
    history.gradient, history.direction, history.alpha = np.zeros(3), rng.normal(size=3), 1.0
    point = np.zeros(3)
    for _ in range(5):
        history.start, point = point, point + history.direction
        history.learn(history.gradient + 2.0 * history.direction, point, 4)
        history.gradient = history.gradient + 2.0 * history.direction
        history.direction = rng.normal(size=3)
    assert len(history.steps) == 4
    products, dot = [], History.dot
    monkeypatch.setattr(History, "dot", lambda self, a, b: (products.append(1), dot(self, a, b))[1])
    found = history.newton_direction(np.ones(3))
    assert len(products) == 8
    loaded = History(scale=history.scale, steps=history.steps, changes=history.changes)
    np.testing.assert_array_equal(loaded.newton_direction(np.ones(3)), found)
