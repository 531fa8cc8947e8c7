"""DGCMomentum against an independent transcription of the paper, and what it promises."""

import copy
import math

import numpy as np
import pytest

import optlab as ol
from optlab.optimizer.distributed.dgc import largest_entries
from optlab.parallel import LocalWorld, RankError

N = 16_384
STEPS = 9


def gradients(seed, steps=STEPS, ranks=4, n=N):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((steps, ranks, n)).astype(np.float32)


class Paper:
    """Algorithm 4 of Lin et al. 2018 for all ranks of one parameter, in plain float32.

    With the momentum before compression begins, its hand-over, Nesterov's form, warm-up, decay and
    local clipping. Nothing of optlab is used; the top k are found by sorting.
    """

    def __init__(self, p, ranks, rate, mu, begin, over, shares, nesterov, clip, decay, masking):
        self.p, self.ranks, self.rate, self.mu = p.copy(), ranks, rate, mu
        self.begin, self.over, self.shares = begin, over, shares
        self.nesterov, self.clip, self.decay, self.masking = nesterov, clip, decay, masking
        self.velocity = np.zeros_like(p)
        self.u = [np.zeros_like(p) for _ in range(ranks)]
        self.v = [np.zeros_like(p) for _ in range(ranks)]
        self.entered = [np.zeros(p.size) for _ in range(ranks)]
        self.sent = [np.zeros(p.size) for _ in range(ranks)]

    def step(self, t, grads):
        if t < self.begin:
            total = grads[0].copy()
            for g in grads[1:]:
                total = total + g
            g = total / np.float32(self.ranks) + np.float32(self.decay) * self.p
            self.velocity = np.float32(self.mu) * self.velocity + g
            move = g + np.float32(self.mu) * self.velocity if self.nesterov else self.velocity
            self.p = self.p - np.float32(self.rate) * move
            return
        if t == self.begin:
            scale = np.float32(self.mu if self.nesterov else 1)
            self.u = [self.velocity / np.float32(self.ranks) * scale for _ in grads]
        share = self.shares[
            min((t - self.begin) * len(self.shares) // self.over, len(self.shares) - 1)
        ]
        k = max(1, int(round(self.p.size * (1 - share), 6)))
        total = np.zeros_like(self.p)
        for r, g in enumerate(grads):
            g = g / np.float32(self.ranks)
            if self.clip is not None:
                limit = self.clip / math.sqrt(self.ranks)
                norm = math.sqrt(float(np.sum(g.astype(np.float64) ** 2)))
                if norm > limit:
                    g = g * np.float32(limit / norm)
            g = g + np.float32(self.decay) * self.p / np.float32(self.ranks)
            if self.nesterov:
                self.u[r] = np.float32(self.mu) * (self.u[r] + g)
                enters = self.u[r] + g
            else:
                self.u[r] = np.float32(self.mu) * self.u[r] + g
                enters = self.u[r]
            self.v[r] = self.v[r] + enters
            self.entered[r] += enters
            order = sorted(range(self.p.size), key=lambda i: (-abs(self.v[r][i]), i))
            for i in order[:k]:
                total[i] += self.v[r][i]
                self.sent[r][i] += self.v[r][i]
                self.v[r][i] = 0
                if self.masking:
                    self.u[r][i] = 0
        self.p = self.p - np.float32(self.rate) * total


def run(comm, start, grads, keep=None, resume=None, first=0, small=None, **settings):
    """Train one parameter on given gradients; return its values after each step and the rest."""
    w = ol.Parameter(start, name="w")
    others = [] if small is None else [ol.Parameter(small, name="b")]
    dgc = ol.optimizer.DGCMomentum(parameters=[w, *others], **settings)
    if resume is not None:
        dgc.set_state_dict(resume[comm.rank])
    path = []
    for g in grads[first:]:
        pairs = [(w, g[comm.rank].reshape(w.shape))]
        pairs += [(b, g[comm.rank][: b.size]) for b in others]
        dgc.apply_gradients(pairs)
        path.append([p.numpy().copy() for p in (w, *others)])
    return path, dgc.state_dict(), dgc.bytes_sent


@pytest.mark.parametrize(
    "case",
    [
        {},
        {"use_nesterov": True},
        {"clip": 20.0},
        {"decay": 0.1},
        {"masking": False},
        {"use_nesterov": True, "clip": 25.0, "decay": 0.05},
        {"begin": 0, "over": 1, "shares": [0.999]},
        {"begin": 1, "over": 100, "shares": [0.5, 0.9]},
    ],
    ids=str,
)
def test_every_step_is_that_of_the_paper(case):
    ranks = 4
    start = np.random.default_rng(1).standard_normal(N).astype(np.float32)
    begin, over = case.get("begin", 3), case.get("over", 5)
    shares = case.get("shares", [0.75, 0.9375, 0.99])
    nesterov, masking = case.get("use_nesterov", False), case.get("masking", True)
    clip, decay = case.get("clip"), case.get("decay", 0.0)
    grads = gradients(2)
    paper = Paper(start, ranks, 0.1, 0.9, begin, over, shares, nesterov, clip, decay, masking)
    settings = {
        "learning_rate": 0.1, "momentum": 0.9, "rampup_begin_step": begin, "rampup_step": over,
        "sparsity": shares, "use_nesterov": nesterov, "masking": masking,
        "grad_clip": None if clip is None else ol.nn.ClipGradByNorm(clip),
        "weight_decay": decay or None,
    }  # fmt: skip
    found = LocalWorld(ranks).run(run, start, grads, **settings)
    for t in range(STEPS):
        paper.step(t, grads[t])
        for path, _, _ in found:
            np.testing.assert_allclose(path[t][0], paper.p, rtol=2e-5, atol=2e-6)
            np.testing.assert_array_equal(path[t][0], found[0][0][t][0])
    for r, (_, state, _) in enumerate(found):
        np.testing.assert_allclose(state["w.v"].numpy(), paper.v[r], rtol=2e-5, atol=2e-6)
        np.testing.assert_allclose(state["w.u"].numpy(), paper.u[r], rtol=2e-5, atol=2e-6)
        np.testing.assert_allclose(
            paper.entered[r], paper.sent[r] + state["w.v"].numpy(), rtol=1e-4, atol=1e-5
        )


def momentum_on_the_mean(start, grads, **settings):
    w = ol.Parameter(start, name="w")
    momentum = ol.optimizer.Momentum(0.1, 0.9, parameters=[w], **settings)
    path = []
    for g in grads:
        total = g[0].copy()
        for one in g[1:]:
            total += one
        momentum.apply_gradients([(w, total / np.float32(len(g)))])
        path.append(w.numpy().copy())
    return path


@pytest.mark.parametrize("nesterov", [False, True])
def test_before_the_ramp_up_it_is_momentum_to_the_bit(nesterov):
    start, grads = np.ones(N, np.float32), gradients(3)
    found = LocalWorld(4).run(
        run, start, grads, learning_rate=0.1, momentum=0.9, rampup_begin_step=100,
        use_nesterov=nesterov, weight_decay=0.01,
    )  # fmt: skip
    expected = momentum_on_the_mean(start, grads, use_nesterov=nesterov, weight_decay=0.01)
    for t in range(STEPS):
        np.testing.assert_array_equal(found[2][0][t][0], expected[t])


@pytest.mark.parametrize("nesterov", [False, True])
def test_sparsity_zero_without_masking_is_momentum_across_the_switch(nesterov):
    start, grads = np.ones(N, np.float32), gradients(4)
    found = LocalWorld(4).run(
        run, start, grads, learning_rate=0.1, momentum=0.9, rampup_begin_step=4, sparsity=[0.0],
        use_nesterov=nesterov, weight_decay=0.01, masking=False,
    )  # fmt: skip
    expected = momentum_on_the_mean(start, grads, use_nesterov=nesterov, weight_decay=0.01)
    for t in range(STEPS):
        np.testing.assert_allclose(found[1][0][t][0], expected[t], rtol=1e-5, atol=1e-6)


def test_sparsity_zero_with_masking_is_sgd_after_the_switch():
    start, grads = np.ones(N, np.float32), gradients(5)
    found = LocalWorld(4).run(
        run, start, grads, learning_rate=0.1, momentum=0.9, rampup_begin_step=0, sparsity=[0.0],
    )  # fmt: skip
    w = start.astype(np.float64)
    for t in range(STEPS):
        w -= 0.1 * grads[t].astype(np.float64).mean(axis=0)
        np.testing.assert_allclose(found[0][0][t][0], w, rtol=1e-5, atol=1e-6)


def test_small_parameters_go_by_momentum_clipped_on_the_mean():
    start, grads = np.ones(N, np.float32), gradients(6)
    small = np.linspace(-1, 1, 1000).astype(np.float32)
    clip = ol.nn.ClipGradByNorm(3.0)
    found = LocalWorld(2).run(
        run, start, grads[:, :2], small=small, learning_rate=0.1, momentum=0.9,
        rampup_begin_step=2, grad_clip=clip, weight_decay=0.1,
    )  # fmt: skip
    few = grads[:, :2, :1000]
    expected = momentum_on_the_mean(small, few, grad_clip=clip, weight_decay=0.1)
    for t in range(STEPS):
        np.testing.assert_allclose(found[1][0][t][1], expected[t], rtol=1e-6, atol=1e-7)


def test_a_run_that_is_resumed_is_equal_to_the_bit_on_every_rank():
    start, grads = np.ones((128, 128), np.float32), gradients(7)
    settings = {
        "learning_rate": 0.1, "momentum": 0.9, "rampup_begin_step": 2, "rampup_step": 4,
        "sparsity": [0.9, 0.99], "use_nesterov": True,
    }  # fmt: skip
    whole = LocalWorld(3).run(run, start, grads[:, :3], **settings)
    for stop in (1, 2, 5):
        half = LocalWorld(3).run(run, start, grads[:stop, :3], **settings)
        states = [state for _, state, _ in half]
        went_on = LocalWorld(3).run(
            run, half[0][0][-1][0], grads[:, :3], resume=states, first=stop, **settings
        )
        for r in range(3):
            np.testing.assert_array_equal(went_on[r][0][-1][0], whole[r][0][-1][0])
            for name, value in whole[r][1].items():
                if hasattr(value, "numpy"):
                    np.testing.assert_array_equal(went_on[r][1][name].numpy(), value.numpy())


def test_ties_go_to_the_lower_index():
    v = np.array([1.0, -2.0, 2.0, 2.0, -2.0, 0.5])
    assert largest_entries(v, 2).tolist() == [1, 2]
    assert largest_entries(v, 4).tolist() == [1, 2, 3, 4]
    assert largest_entries(v, 5).tolist() == [0, 1, 2, 3, 4]
    assert largest_entries(np.zeros(5), 3).tolist() == [0, 1, 2]
    assert largest_entries(v, 9).tolist() == list(range(6))
    rng = np.random.default_rng(0)
    large = rng.integers(-500, 501, 300_000).astype(np.float32)
    large[[5, 200_000]] = np.nan
    for v in (large, np.ones(200_000), np.sort(np.abs(large)), np.where(large == 500, large, 0)):
        for count in (1, 30, 3000):
            magnitude = np.where(np.isnan(v), np.inf, np.abs(v))
            order = np.lexsort((np.arange(v.size), -magnitude))[:count]
            assert largest_entries(v, count).tolist() == sorted(order.tolist())
    for count in (1, 7, 50, 99):
        v = rng.integers(-4, 5, 100).astype(np.float32)
        by_sorting = sorted(range(100), key=lambda i: (-abs(v[i]), i))[:count]
        assert largest_entries(v, count).tolist() == sorted(by_sorting)


@pytest.mark.parametrize(
    ("share", "count"), [(0.999, 16), (0.75, 4096), (0.0, 16_384), (0.99999, 1), (0.996, 65)]
)
def test_as_many_entries_are_sent_as_the_sparsity_says(share, count):
    grads = gradients(8, steps=1)

    def f(comm):
        _, state, nbytes = run(
            comm, np.zeros(N, np.float32), grads, learning_rate=1.0, momentum=0.5,
            rampup_begin_step=0, sparsity=[share],
        )  # fmt: skip
        return np.count_nonzero(state["w.v"].numpy()), nbytes

    held, nbytes = LocalWorld(2).run(f)[0]
    assert held == N - count
    assert nbytes == 8 * count + 10  # indices and values; step, count and flags


def test_the_bytes_are_those_that_go_through_the_world():
    world = LocalWorld(4)
    grads = gradients(9, steps=3)
    settings = {"learning_rate": 0.1, "momentum": 0.9, "rampup_begin_step": 0}
    sent = []
    for steps in (1, 2, 3):
        found = world.run(run, np.zeros(N, np.float32), grads[:steps], **settings)
        sent.append(world.bytes_sent[0])
    assert sent[2] - sent[1] == sent[1] - sent[0] == found[0][2]


def test_one_trainer_is_an_error_that_says_what_to_write():
    w = ol.Parameter(np.zeros(N, np.float32))
    with pytest.raises(ValueError, match="there is one; with one it is Momentum"):
        ol.optimizer.DGCMomentum(0.1, 0.9, 0, parameters=[w])
    with pytest.raises(RankError, match="there is one"):
        LocalWorld(1).run(lambda comm: ol.optimizer.DGCMomentum(0.1, 0.9, 0, parameters=[w]))
    template = ol.optimizer.DGCMomentum(0.1, 0.9, 0)
    with pytest.raises(ValueError, match="there is one"):
        template.bind([w])


def test_another_number_of_trainers_than_ranks_is_an_error():
    def f(comm, trainers):
        w = ol.Parameter(np.zeros(4))
        return ol.optimizer.DGCMomentum(0.1, 0.9, 0, num_trainers=trainers, parameters=[w])

    assert len(LocalWorld(2).run(f, 2)) == 2
    with pytest.raises(RankError, match="num_trainers=3, but the world has 2 ranks"):
        LocalWorld(2).run(f, 3)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"sparsity": []}, "list of shares"),
        ({"sparsity": 0.9}, "list of shares"),
        ({"sparsity": [1.0]}, r"in \[0, 1\)"),
        ({"sparsity": [-0.1]}, r"in \[0, 1\)"),
        ({"rampup_begin_step": 1.5}, "whole number"),
        ({"rampup_begin_step": -1}, "at least 0"),
        ({"rampup_step": 0}, "rampup_step"),
        ({"momentum": 1.5}, "momentum"),
        ({"num_trainers": 2.5}, "whole number"),
        ({"grad_clip": ol.nn.ClipGradByGlobalNorm(1.0)}, "takes ClipGradByNorm"),
        ({"grad_clip": ol.nn.ClipGradByValue(1.0)}, "takes ClipGradByNorm"),
    ],
    ids=str,
)
def test_wrong_settings_are_refused(wrong, message):
    settings = {"learning_rate": 0.1, "momentum": 0.9, "rampup_begin_step": 0, **wrong}
    with pytest.raises((ValueError, TypeError), match=message):
        ol.optimizer.DGCMomentum(**settings)


def test_a_parameter_of_two_ranks_is_named():
    shared = ol.Parameter(np.zeros(4), name="shared")

    def f(comm):
        dgc = ol.optimizer.DGCMomentum(0.1, 0.9, 0, parameters=[shared])
        dgc.apply_gradients([(shared, np.zeros(4))])

    with pytest.raises(RankError, match="shared belongs to rank 0 and to rank 1"):
        LocalWorld(2).run(f)


def test_ranks_with_other_values_or_shapes_are_refused_before_the_first_step():
    def f(comm, shape, value):
        w = ol.Parameter(np.full(shape[comm.rank], value[comm.rank]), name="w")
        dgc = ol.optimizer.DGCMomentum(0.1, 0.9, 0, parameters=[w])
        dgc.apply_gradients([(w, np.zeros(shape[comm.rank]))])

    with pytest.raises(RankError, match=r"w differs between rank . and rank .: all begin"):
        LocalWorld(2).run(f, [3, 3], [0.0, 1.0])
    with pytest.raises(RankError, match=r"w is float64 of shape \(3,\) on rank 0, .* \(4,\)"):
        LocalWorld(2).run(f, [3, 4], [0.0, 0.0])


def test_states_of_different_steps_are_refused():
    start, grads = np.ones(N, np.float32), gradients(10)
    settings = {"learning_rate": 0.1, "momentum": 0.9, "rampup_begin_step": 0}
    one = LocalWorld(2).run(run, start, grads[:1, :2], **settings)
    two = LocalWorld(2).run(run, start, grads[:2, :2], **settings)
    states = [one[0][1], two[1][1]]
    with pytest.raises(RankError, match="at another step than rank"):
        LocalWorld(2).run(run, start, grads[:3, :2], resume=states, first=2, **settings)


@pytest.mark.parametrize("policy", ["skip", "raise"])
@pytest.mark.parametrize("begin", [0, 100])
def test_a_gradient_of_one_rank_that_is_not_finite_stops_all(policy, begin):
    def f(comm):
        w = ol.Parameter(np.zeros(N, np.float32), name="w")
        dgc = ol.optimizer.DGCMomentum(
            0.1, 0.9, begin, parameters=[w], not_finite=policy, sparsity=[0.9]
        )
        g = np.full(N, np.nan if comm.rank == 1 else 1.0, np.float32)
        try:
            dgc.apply_gradients([(w, g)])
        except FloatingPointError as error:
            return w.numpy().any(), str(error)
        return w.numpy().any(), dgc.skipped

    found = LocalWorld(2).run(f)
    assert [one[0] for one in found] == [False, False]
    if policy == "skip":
        assert [one[1] for one in found] == [1, 1]
    else:
        assert "rank 1 has numbers that are not finite" in found[0][1]
        assert "the gradient of w" in found[1][1]


def test_a_gradient_that_only_one_rank_has_counts_as_zeros_elsewhere():
    def f(comm):
        a, b = ol.Parameter(np.zeros(3), name="a"), ol.Parameter(np.zeros(3), name="b")
        c = ol.Parameter(np.zeros(3), name="c")
        dgc = ol.optimizer.DGCMomentum(1.0, 0.0, 0, parameters=[a, b, c])
        dgc.apply_gradients([(a, np.ones(3))] + ([(b, np.ones(3))] if comm.rank else []))
        return [p.numpy()[0] for p in (a, b, c)], dgc.state_dict()["c.t"]

    assert LocalWorld(2).run(f) == [([-1.0, -0.5, 0.0], 0)] * 2


def test_a_trace_has_what_was_sent_and_what_is_held():
    grads = gradients(11, steps=3, ranks=2)

    def f(comm):
        w, b = ol.Parameter(np.zeros(N, np.float32), name="w"), ol.Parameter(np.zeros(5), name="b")
        dgc = ol.optimizer.DGCMomentum(0.1, 0.9, 1, sparsity=[0.99], parameters=[w, b])
        with ol.record(dgc, probes="toy") as trace:
            for g in grads:
                dgc.apply_gradients([(w, g[comm.rank]), (b, np.ones(5))])
        return trace

    trace = LocalWorld(2).run(f)[1]
    sent = np.asarray(trace["sent"]["w"])[-3:]
    assert [int(np.count_nonzero(one)) for one in sent] == [N, 163, 163]
    held = np.asarray(trace["v"]["w"])[-3:]
    norms = trace["residual_norm"]["w"][-3:]
    np.testing.assert_allclose(norms, [np.linalg.norm(one) for one in held], rtol=1e-5)
    np.testing.assert_allclose(trace["sparsity"]["w"][-3:], [0, 0.99, 0.99])
    assert trace["bytes_sent"]["w"].tolist() == [4 * N, 8 * 163, 8 * 163]
    assert trace["bytes_sent"]["b"].tolist() == [40, 40, 40]


@pytest.mark.parametrize("probes", [None, "toy", "full", ["norms"]])
def test_a_number_of_a_parameter_is_one_number_a_step_whatever_its_shape(probes):
    def f(comm):
        w = ol.Parameter(np.full((128, 128), 0.1, np.float32), name="w")
        b = ol.Parameter(np.zeros(5), name="b")
        dgc = ol.optimizer.DGCMomentum(0.1, 0.9, 1, parameters=[w, b])
        with ol.record(dgc, probes=probes) as trace:
            for _ in range(3):
                dgc.apply_gradients([(w, np.ones((128, 128), np.float32)), (b, np.ones(5))])
        return trace

    trace = LocalWorld(2).run(f)[0]
    for name in ("bytes_sent", "residual_norm", "sparsity"):
        assert {k: x.shape for k, x in trace[name].items()} == {"w": (3,), "b": (3,)}
        assert f"norm of {name}" not in trace.names
    assert trace["bytes_sent"]["w"].tolist() == [4 * 2**14, 8 * 16, 8 * 16]
    assert "What a rank sent" in ol.viz.dgc(trace).layout.title.text


def test_a_copy_of_the_optimizer_goes_on():
    grads = gradients(12, steps=2, ranks=2)

    def f(comm):
        w = ol.Parameter(np.zeros(N, np.float32), name="w")
        dgc = ol.optimizer.DGCMomentum(0.1, 0.9, 0, parameters=[w], world=comm)
        dgc.apply_gradients([(w, grads[0][comm.rank])])
        twin = copy.deepcopy(dgc)
        dgc.apply_gradients([(w, grads[1][comm.rank])])
        other = twin.parameters[0]
        twin.apply_gradients([(other, grads[1][comm.rank])])
        return np.array_equal(w.numpy(), other.numpy())

    assert LocalWorld(2).run(f) == [True, True]


def test_the_name_of_1_8_5_has_its_arguments():
    grads = gradients(13, steps=4, ranks=2)

    def f(comm, old):
        w = ol.Parameter(np.ones(N, np.float32), name="w")
        if old:
            dgc = ol.fluid.optimizer.DGCMomentumOptimizer(
                0.1, 0.9, 2, 1, [0.9], False, 5.0, 2, ol.regularizer.L2Decay(0.1),
                parameter_list=[w],
            )  # fmt: skip
        else:
            dgc = ol.optimizer.DGCMomentum(
                0.1, 0.9, 2, sparsity=[0.9], grad_clip=ol.nn.ClipGradByNorm(5.0),
                weight_decay=0.1, parameters=[w],
            )  # fmt: skip
        for g in grads:
            dgc.apply_gradients([(w, g[comm.rank])])
        return w.numpy()

    for a, b in zip(LocalWorld(2).run(f, True), LocalWorld(2).run(f, False), strict=True):
        np.testing.assert_array_equal(a, b)
