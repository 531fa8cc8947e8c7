"""Recipes: what they state is reached, and a run that was cut off goes on to the bit."""

import os
import signal
import threading

import numpy as np
import pytest

import optlab as ol
from optlab.lab.recipes.catalogue import RECIPES


def same(a, b):
    """Check that two trainings have the same bits."""
    assert a.step == b.step
    assert a.losses == b.losses
    assert a.scores == b.scores
    for name, value in a.model.state_dict().items():
        np.testing.assert_array_equal(value.numpy(), b.model.state_dict()[name].numpy())


@pytest.mark.parametrize(
    "name", ["logistic", "moons", "spirals", "digits_mlp", "ratings", "poisson"]
)
def test_small_recipes_reach_what_they_state(name):
    training = ol.lab.recipe(name).run()
    assert training.reached, training
    assert training.step == training.recipe.steps == len(training.losses)


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("name", ["lenet", "resnet8", "autoencoder"])
def test_convolutions_reach_what_they_state(name):
    training = ol.lab.recipe(name).run()
    assert training.reached, training


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("name", ["char_lstm", "gpt"])
def test_models_of_text_know_the_frequencies_of_letters_after_a_few_steps(name):
    training = ol.lab.recipe(name).run(steps=30)
    assert training.losses[0] == pytest.approx(np.log(len(training.data.tokenizer)), rel=0.05)
    train, held_out = (np.frombuffer(part.encode(), np.uint8) for part in ol.data.pydoc_topics())
    letters = ol.data.KneserNey(train, order=1, vocabulary=256).bits(held_out)
    assert 2 < training.score < letters < 5


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_takes_a_step(name):
    if name == "gpt":
        pytest.skip("its byte pairs take some seconds; a slow test runs it")
    recipe = ol.lab.recipe(name)
    training = recipe.run(steps=1)
    assert np.isfinite(training.losses).all()
    assert np.isfinite(training.score)
    assert recipe.name == name
    assert name in repr(training)


@pytest.mark.parametrize("name", ["moons", "lenet", "ratings"])
def test_a_run_goes_on_from_its_file_to_the_bit(name, tmp_path):
    recipe = ol.lab.recipe(name)
    whole = recipe.run(steps=12, seed=3)

    class StopError(Exception):
        pass

    first = ol.lab.Training(recipe, 12, 3, None, None)
    for _ in range(7):  # in the middle of an epoch
        first.take_step()
    first.save(tmp_path / "run")
    second = recipe.run(steps=12, seed=3, to=tmp_path / "run")
    assert second.losses[:7] == first.losses
    same(second, whole)
    assert recipe.run(steps=12, seed=3, to=tmp_path / "run").step == 12  # nothing is left to do


def test_random_layers_go_on_to_the_bit(tmp_path):
    def model(data):
        return ol.nn.Sequential(ol.nn.Linear(2, 9), ol.nn.Dropout(0.5), ol.nn.Linear(9, 2))

    from dataclasses import replace

    recipe = replace(ol.lab.recipe("moons"), model=model)
    first = ol.lab.Training(recipe, 9, 0, None, None)
    for _ in range(4):
        first.take_step()
    first.save(tmp_path / "run")
    ol.seed(77)
    same(recipe.run(steps=9, to=tmp_path / "run"), recipe.run(steps=9))


@pytest.fixture
def interruptible():
    """Let Ctrl-C interrupt, as it does in a terminal; a shell's background job ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.skipif(threading.current_thread() is not threading.main_thread(), reason="signals")
@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_ends_a_run_between_two_steps(tmp_path):
    recipe = ol.lab.recipe("moons")
    sent = []

    def callback(training):
        if not sent:
            sent.append(training.step)
            os.kill(os.getpid(), signal.SIGINT)

    from dataclasses import replace

    recipe = replace(recipe, every=5)
    training = recipe.run(steps=20, callback=callback, to=tmp_path / "run")
    assert training.interrupted
    assert sent == [5]
    assert 5 <= training.step < 20
    assert "resume" in repr(training)
    training.resume()
    assert not training.interrupted
    same(training, recipe.run(steps=20))


def test_an_error_in_a_step_leaves_a_run_that_can_be_repeated(tmp_path):
    from dataclasses import replace

    recipe, calls = ol.lab.recipe("moons"), []

    def loss(model, batch):
        calls.append(1)
        value = recipe.loss(model, batch)
        if len(calls) == 6:
            value.backward()
            raise KeyboardInterrupt
        return value

    training = replace(recipe, loss=loss).run(steps=10)
    assert training.interrupted
    assert training.step == 5
    training.resume()
    same(training, recipe.run(steps=10))


def test_the_file_of_another_run_is_refused(tmp_path):
    recipe = ol.lab.recipe("moons")
    recipe.run(steps=2, to=tmp_path / "run")
    with pytest.raises(ValueError, match="another run"):
        recipe.run(steps=2, seed=1, to=tmp_path / "run")
    ol.save({"a": 1}, tmp_path / "other")
    with pytest.raises(ValueError, match="no run of a recipe"):
        recipe.run(steps=2, to=tmp_path / "other")


def test_a_run_is_recorded_when_asked():
    recipe = ol.lab.recipe("digits_mlp")
    training = recipe.run(steps=20, probes=[ol.probes.Norms(), ol.probes.Snapshots(every=10)])
    np.testing.assert_allclose(training.trace.loss, training.losses, rtol=1e-6)
    same(training, recipe.run(steps=20))
    assert training.trace.steps("snapshot").tolist() == [10, 20]


def test_seeds_give_other_runs():
    recipe = ol.lab.recipe("moons")
    assert recipe.run(steps=3, seed=0).losses != recipe.run(steps=3, seed=1).losses


def test_errors_name_what_there_is():
    with pytest.raises(ValueError, match="Did you mean 'lenet'"):
        ol.lab.recipe("lenet5")
    with pytest.raises(ValueError, match="at least 1"):
        ol.lab.recipe("moons").run(steps=0)


# Models -------------------------------------------------------------------------------------------


def test_a_residual_network_has_the_layers_that_its_depth_says():
    for depth in (8, 20):
        model = ol.models.ResNet(depth)
        convolutions = [
            layer
            for layer in model.sublayers()
            if isinstance(layer, ol.nn.Conv2D) and layer.weight.shape[-1] == 3
        ]
        assert len(convolutions) + 1 == depth
    # 0.27 million parameters (He et al. 2016, table 6), and the projections of option B.
    color = ol.models.ResNet(20, channels=3)
    assert 269_000 < sum(p.size for p in color.parameters()) < 275_000
    with pytest.raises(ValueError, match="6 n"):
        ol.models.ResNet(18)


def test_the_gradients_of_a_table_are_sparse():
    model = ol.models.MatrixFactorization(10, 6, rank=3)
    model(np.array([[1, 2], [1, 4]])).sum().backward()
    assert isinstance(model.left.weight.grad, ol.autograd.RowSparse)
    dense = ol.models.MatrixFactorization(10, 6, rank=3, sparse=False)
    dense.set_state_dict(model.state_dict())
    pairs = np.array([[0, 5], [9, 0]])
    np.testing.assert_array_equal(dense(pairs).numpy(), model(pairs).numpy())
    u, v = model.left.weight.numpy(), model.right.weight.numpy()
    np.testing.assert_allclose(model(pairs).numpy(), (u[[0, 9]] * v[[5, 0]]).sum(1), rtol=1e-6)


def test_second_derivatives_of_a_network_are_those_of_differences():
    ol.seed(0)
    model = ol.models.PhysicsInformed(interval=(0.0, 2.0), boundary=(1.0, -1.0)).to(dtype="float64")
    x, h = np.linspace(0.1, 1.9, 7)[:, None], 1e-4
    at = [model(x + step).numpy() for step in (-h, 0, h)]
    np.testing.assert_allclose(
        model.second_derivative(x).numpy(), (at[0] - 2 * at[1] + at[2]) / h**2, atol=1e-5
    )
    ends = model(np.array([[0.0], [2.0]])).numpy()
    np.testing.assert_allclose(ends, [[1.0], [-1.0]], atol=1e-12)
    loss = (model.residual(x, lambda x: 0 * x) ** 2).mean()
    loss.backward()
    assert all(p.grad is not None for p in model.parameters() if p.ndim > 1)


def test_a_recurrent_model_reads_a_text_as_it_writes_it():
    ol.seed(0)
    model = ol.models.CharLSTM(7, width=8)
    text = np.random.default_rng(0).integers(0, 7, 60)
    scores = model(text[None]).numpy()[0].astype(float)
    by_hand = -np.sum(
        scores[np.arange(59), text[1:]] - np.log(np.exp(scores[:59]).sum(1))
    ) / np.log(2)
    assert model.bits(text, length=64) == pytest.approx(by_hand, rel=1e-5)
    likeliest = model.generate(text[:5], 10, temperature=0)
    for k in range(5, 15):
        assert likeliest[k] == model(likeliest[None, :k])[0, -1].numpy().argmax()
    with pytest.raises(ValueError, match="at least one"):
        model.generate([], 3)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: ol.models.MLP([3]), "sizes of input"),
        (lambda: ol.models.MLP([3, 4], "swishy"), "'swishy'"),
        (lambda: ol.models.ConvAutoencoder(size=10), "multiple of 4"),
        (lambda: ol.models.PhysicsInformed(interval=(1, 0)), "a < b"),
        (lambda: ol.models.LeNet5()(ol.zeros([1, 1, 8, 8])), "28"),
    ],
)
def test_models_say_what_they_take(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_a_step_that_was_torn_is_neither_saved_nor_repeated(tmp_path):
    recipe = ol.lab.recipe("moons")
    training = ol.lab.Training(recipe, 6, 0, tmp_path / "run", None)
    training.take_step()
    training.save(tmp_path / "run")

    def torn():
        raise KeyboardInterrupt

    training.optimizer.schedule.step = torn  # after the weights have moved
    training.resume()
    assert training.interrupted
    with pytest.raises(RuntimeError, match="in its middle"):
        training.resume()
    same(recipe.run(steps=6, to=tmp_path / "run"), recipe.run(steps=6))


def test_a_score_that_was_interrupted_is_made_up_for(tmp_path):
    from dataclasses import replace

    recipe, calls = ol.lab.recipe("moons"), []

    def score(model, data):
        calls.append(1)
        if len(calls) == 1:
            raise KeyboardInterrupt
        return recipe.score(model, data)

    training = replace(recipe, score=score).run(steps=4)
    assert training.interrupted
    training.resume()
    assert list(training.scores) == [4]
