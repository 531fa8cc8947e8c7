"""Data parallelism on simulated ranks."""

import numpy as np
import pytest

import optlab as ol
from optlab.parallel import LocalWorld, RankError
from tests.parallel import programs


@pytest.mark.parametrize("optimizer", ["AdamW", "Momentum", "SGD"])
@pytest.mark.parametrize("ranks", [2, 3])
def test_parameters_are_equal_to_the_bit_on_all_ranks_after_every_step(ranks, optimizer):
    found = LocalWorld(ranks).run(programs.data_parallel, optimizer=optimizer)
    assert len(found[0]) == len(set(found[0])) == 8
    assert all(one == found[0] for one in found)


def test_steps_are_those_of_one_process_with_the_whole_batch():
    def parallel(comm):
        model = ol.parallel.DataParallel(programs.network(3), comm)
        ol.seed(7)
        optimizer = model.averages(
            ol.optimizer.Momentum(0.1, parameters=model.parameters(), weight_decay=0.01)
        )
        for x, y in programs.loader(comm):
            optimizer.minimize(ol.nn.functional.cross_entropy(model(x), y))
            optimizer.clear_grad()
        return [p.numpy() for p in model.parameters()]

    class Alone:
        rank, size = 0, 1

    model = programs.network(3)
    ol.seed(7)
    optimizer = ol.optimizer.Momentum(0.1, parameters=model.parameters(), weight_decay=0.01)
    for x, y in programs.loader(Alone):
        optimizer.minimize(ol.nn.functional.cross_entropy(model(x), y))
        optimizer.clear_grad()
    for ranks in (2, 4):
        for p, q in zip(model.parameters(), LocalWorld(ranks).run(parallel)[1], strict=True):
            np.testing.assert_allclose(p.numpy(), q, rtol=1e-4, atol=1e-6)


def test_rank_0_s_parameters_and_buffers_are_those_of_all():
    def f(comm):
        ol.seed(comm.rank)
        model = ol.nn.Sequential(ol.nn.Linear(4, 3), ol.nn.BatchNorm1D(3))
        model(ol.randn([5, 4]))  # moves the running mean
        before = [x.numpy().copy() for x in (*model.parameters(), *model.buffers())]
        ol.parallel.DataParallel(model, comm)
        return before, [x.numpy() for x in (*model.parameters(), *model.buffers())]

    found = LocalWorld(3).run(f)
    assert not np.array_equal(found[0][0][-1], found[1][0][-1])
    for _, after in found:
        for x, y in zip(after, found[0][0], strict=True):
            np.testing.assert_array_equal(x, y)


def test_the_wrapper_computes_and_saves_what_the_model_does():
    def f(comm):
        model = programs.network(0)
        wrapped = ol.parallel.DataParallel(model, comm)
        x = ol.to_tensor(programs.data()[0])
        other = ol.parallel.DataParallel(programs.network(1), comm)
        other.set_state_dict(wrapped.state_dict())
        return (
            np.array_equal(wrapped(x).numpy(), model(x).numpy()),
            [*wrapped.state_dict()] == [*model.state_dict()],
            np.array_equal(other(x).numpy(), model(x).numpy()),
        )

    assert LocalWorld(2).run(f) == [(True, True, True)] * 2


@pytest.mark.parametrize("how", ["DataParallel", "average_gradients"])
def test_a_parameter_of_two_ranks_is_named(how):
    shared = ol.nn.Linear(3, 2)

    def f(comm):
        if how == "DataParallel":
            ol.parallel.DataParallel(shared, comm)
        else:
            ol.parallel.average_gradients(
                ol.optimizer.SGD(0.1, parameters=shared.parameters()), comm
            )

    with pytest.raises(RankError, match="weight belongs to rank 0 and to rank 1: each rank has"):
        LocalWorld(2).run(f)


def test_models_of_different_structure_are_named():
    def f(comm):
        ol.parallel.DataParallel(ol.nn.Linear(3, 2 + comm.rank), comm)

    with pytest.raises(RankError, match=r"different models: .*\(3, 2\) on rank 0, .*\(3, 3\)"):
        LocalWorld(2).run(f)


def test_a_gradient_that_one_rank_lacks_counts_as_zeros():
    def f(comm):
        a, b, c = (ol.Parameter([1.0], name=name) for name in "abc")
        optimizer = ol.optimizer.SGD(1.0, parameters=[a, b, c])
        average = ol.parallel.average_gradients(optimizer, comm)
        loss = a * 2 if comm.rank else a * 2 + b * 4
        loss.sum().backward()
        optimizer.step()
        return [p.item() for p in (a, b, c)], c.grad is None, average.bytes_sent

    assert LocalWorld(2).run(f) == [([-1.0, -1.0, 1.0], True, 15)] * 2


def test_row_sparse_gradients_are_averaged():
    def f(comm):
        table = ol.nn.Embedding(5, 2, sparse=True)
        table.weight.set_value(np.zeros((5, 2)))
        optimizer = ol.optimizer.SGD(1.0, parameters=table.parameters())
        ol.parallel.average_gradients(optimizer, comm)
        table(ol.to_tensor(np.array([comm.rank, 3]))).sum().backward()
        optimizer.step()
        return table.weight.numpy()[:, 0].tolist()

    assert LocalWorld(2).run(f) == [[-0.5, -0.5, 0.0, -1.0, 0.0]] * 2


def test_gradients_are_added_in_the_order_of_the_ranks():
    parts = np.array([1e8, 1.0, -1e8], np.float32)

    def f(comm):
        w = ol.Parameter(np.zeros(1, np.float32), name="w")
        optimizer = ol.optimizer.SGD(1.0, parameters=[w])
        ol.parallel.average_gradients(optimizer, comm)
        optimizer.minimize((w * float(parts[comm.rank])).sum())
        return w.item()

    assert LocalWorld(3).run(f) == [0.0] * 3  # 1e8 + 1 is 1e8: any other order gives -1/3


def test_compressed_training_is_equal_to_the_bit_on_all_ranks():
    found = LocalWorld(4).run(programs.compressed)
    assert all(path == found[0][0] for path, _ in found)
    assert len({own for _, own in found}) == 4  # u and v are a rank's own


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize(("total", "drop"), [(24, False), (26, False), (26, True), (25, False)])
def test_the_ranks_part_the_batches_of_one_process(shuffle, total, drop):
    dataset = list(range(total))

    def epochs(rank, ranks, batch):
        ol.seed(3)
        sampler = ol.io.DistributedBatchSampler(dataset, batch, ranks, rank, shuffle, drop)
        found = [list(sampler) for _ in range(2)]
        assert [len(one) for one in found] == [len(sampler)] * 2
        return found

    whole = epochs(0, 1, 12)
    parts = [epochs(rank, 4, 3) for rank in range(4)]
    for e in range(2):
        for i, batch in enumerate(whole[e]):
            together = [x for part in parts for x in part[e][i]]
            assert together[: len(batch)] == batch
            assert len({len(part[e][i]) for part in parts}) == 1  # the mean of means is the mean
    assert (whole[0] == whole[1]) == (not shuffle)


def test_a_sampler_takes_rank_and_size_from_its_world():
    def f(comm):
        return list(ol.io.DistributedBatchSampler(list(range(8)), 2))

    assert LocalWorld(2).run(f) == [[[0, 1], [4, 5]], [[2, 3], [6, 7]]]
    assert f(None) == [[0, 1], [2, 3], [4, 5], [6, 7]]
    with pytest.raises(ValueError, match="ranks are 0 to 1"):
        ol.io.DistributedBatchSampler([1, 2], 1, num_replicas=2, rank=2)
    with pytest.raises(ValueError, match="too few for 4 ranks"):
        ol.io.DistributedBatchSampler([1, 2], 1, num_replicas=4, rank=0)


@pytest.mark.parametrize("world", [None, 3, "comm"])
def test_a_world_is_a_communicator(world):
    with pytest.raises(TypeError, match="takes a communicator"):
        ol.parallel.broadcast([ol.Parameter([1.0])], world)
