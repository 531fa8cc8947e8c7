"""Loss scaling: skipped steps, changes of the scale, and training with float16."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import optlab as ol

Scaler = ol.amp.GradScaler


def weight(dtype: str = "float16") -> ol.Parameter:
    return ol.Parameter(ol.to_tensor([1.0, -2.0], dtype=dtype), name="w")


def momentum(*parameters: Any, **options: Any) -> Any:
    return ol.optimizer.Momentum(0.125, momentum=0.5, parameters=list(parameters), **options)


def test_gradients_too_small_for_float16_arrive() -> None:
    """An intermediate gradient of 1e-7 underflows with a small scale, not with a large one."""

    def gradient(scaler: Any) -> Any:
        w = ol.Parameter(ol.to_tensor([1.0], dtype="float16"))
        loss = ((w * 1e3) * 1e-9).astype("float32").sum() * 100.0
        scaler.scale(loss).backward()
        optimizer = ol.optimizer.SGD(1.0, parameters=[w])
        scaler.unscale_(optimizer)
        return w.grad.item()

    assert gradient(Scaler(init_loss_scaling=1 / 64)) == 0.0
    assert gradient(Scaler(init_loss_scaling=512.0)) == pytest.approx(1e-4, rel=0.01)


def test_a_step_without_overflow_is_the_optimizer_s_own() -> None:
    plain, scaled = weight(), weight()
    first, second = momentum(plain), momentum(scaled)
    scaler = Scaler(init_loss_scaling=256.0)
    for _ in range(3):
        (plain * plain).sum().backward()
        first.step()
        first.clear_grad()
        scaler.scale((scaled * scaled).sum()).backward()
        scaler.step(second)
        scaler.update()
        second.clear_grad()
    np.testing.assert_array_equal(scaled.numpy(), plain.numpy())


@pytest.mark.parametrize("bad", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("way", ["step", "minimize"])
def test_a_step_that_overflowed_changes_nothing(bad: float, way: str) -> None:
    w, other = weight(), weight()
    optimizer, scaler = momentum(w, other), Scaler(init_loss_scaling=8.0)
    scaler.minimize(optimizer, scaler.scale((w * w + other * other).sum()))
    optimizer.clear_grad()
    before = w.numpy(), other.numpy(), optimizer.state_dict()
    loss = scaler.scale((w * other).sum())
    loss.backward()
    w.grad = np.array([1.0, bad], "float16")
    if way == "step":
        scaler.step(optimizer)
        scaler.update()
    else:
        assert scaler.minimize(optimizer, loss) == ([], [])
    np.testing.assert_array_equal(w.numpy(), before[0])
    np.testing.assert_array_equal(other.numpy(), before[1])
    after = optimizer.state_dict()
    assert after.keys() == before[2].keys()
    for name, value in before[2].items():
        np.testing.assert_array_equal(np.asarray(after[name]), np.asarray(value))
    assert scaler.get_loss_scaling() == 4.0


def test_a_loss_that_overflows_float16_is_skipped_without_a_warning() -> None:
    w = weight()
    optimizer, scaler = momentum(w), Scaler()  # 65536 overflows float16
    for scale in (65536.0, 32768.0, 16384.0):
        assert scaler.get_loss_scaling() == scale
        assert w.numpy().tolist() == [1.0, -2.0]
        scaler.scale(np.mean(w * w)).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.clear_grad()
    assert w.numpy().tolist() != [1.0, -2.0]


def test_rows_of_a_table_are_divided_too() -> None:
    table = ol.Parameter(ol.to_tensor(np.ones((3, 2)), dtype="float16"))
    optimizer, scaler = ol.optimizer.SGD(0.5, parameters=[table]), Scaler(init_loss_scaling=64.0)
    rows = ol.nn.functional.embedding([2, 0, 2], table, sparse=True)
    scaler.scale(rows.sum()).backward()
    assert isinstance(table.grad, ol.autograd.sparse.RowSparse)
    scaler.step(optimizer)
    assert table.numpy().tolist() == [[0.5, 0.5], [1.0, 1.0], [0.0, 0.0]]


def test_without_scaling_everything_passes() -> None:
    w, scaler = weight(), Scaler(enable=False)
    optimizer = momentum(w)
    loss = (w * w).sum()
    assert scaler.scale(loss) is loss
    scaler.minimize(optimizer, loss)
    assert w.numpy().tolist() == [0.75, -1.5]
    assert scaler.state_dict() == {}
    scaler.load_state_dict({})
    scaler.unscale_(optimizer)
    scaler.update()
    assert (scaler.is_enable(), scaler.is_use_dynamic_loss_scaling()) == (False, False)


def test_a_fixed_scale_stays_and_skips() -> None:
    w = weight()
    optimizer = momentum(w)
    scaler = Scaler(init_loss_scaling=8.0, use_dynamic_loss_scaling=False, incr_every_n_steps=1)
    for g in ([1.0, 1.0], [np.inf, 1.0]):
        w.grad = np.array(g, "float16")
        scaler.step(optimizer)
        scaler.update()
        assert scaler.get_loss_scaling() == 8.0
    assert w.numpy().tolist() == [0.984375, -2.015625]


@given(st.lists(st.booleans(), min_size=1, max_size=30), st.integers(1, 4), st.integers(1, 3))
@settings(max_examples=40, deadline=None)
def test_the_scale_follows_runs_of_good_and_bad_steps(
    went_well: list[bool], grows_after: int, shrinks_after: int
) -> None:
    w = weight("float32")
    optimizer = ol.optimizer.SGD(0.0, parameters=[w])
    scaler = Scaler(
        init_loss_scaling=16.0, incr_ratio=4.0, incr_every_n_steps=grows_after,
        decr_every_n_nan_or_inf=shrinks_after,
    )  # fmt: skip
    wanted, run, last = 16.0, 0, None
    for good in went_well:
        w.grad = np.array([1.0, 1.0 if good else np.inf], "float32")
        scaler.step(optimizer)
        scaler.update()
        run = run + 1 if good == last else 1
        last = good
        if run == (grows_after if good else shrinks_after):
            wanted, run = wanted * (4.0 if good else 0.5), 0
        if 1e-37 < wanted < 3e38:
            assert scaler.get_loss_scaling() == wanted


def test_the_scale_stays_within_float32() -> None:
    w = weight("float32")
    optimizer = ol.optimizer.SGD(0.0, parameters=[w])
    for start, g, ratio in ((2.0**127, 1.0, 2.0), (2.0**-126, np.inf, 2.0)):
        scaler = Scaler(init_loss_scaling=start, incr_ratio=ratio, incr_every_n_steps=1)
        w.grad = np.array([g, 0.0], "float32")
        scaler.step(optimizer)
        scaler.update()
        assert scaler.get_loss_scaling() == start


def test_two_optimizers_share_a_scaler() -> None:
    a, b = weight(), weight()
    one, two, scaler = momentum(a), momentum(b), Scaler(init_loss_scaling=8.0)
    a.grad, b.grad = np.array([8.0, 8.0], "float16"), np.array([np.nan, 8.0], "float16")
    scaler.step(one)
    scaler.step(two)
    scaler.update()
    assert a.numpy().tolist() == [0.875, -2.125]
    assert b.numpy().tolist() == [1.0, -2.0]
    assert scaler.get_loss_scaling() == 4.0


def test_clipping_sees_the_true_gradients() -> None:
    w = weight()
    optimizer = ol.optimizer.SGD(1.0, parameters=[w])
    scaler = Scaler(init_loss_scaling=1024.0)
    scaler.scale((w * 3.0).sum()).backward()
    scaler.unscale_(optimizer)
    assert w.grad is not None
    assert w.grad.tolist() == [3.0, 3.0]
    scaler.step(optimizer)  # and does not divide again
    assert w.numpy().tolist() == [-2.0, -5.0]


class TestOrder:
    def test_unscale_twice(self) -> None:
        optimizer, scaler = momentum(weight()), Scaler()
        scaler.unscale_(optimizer)
        with pytest.raises(RuntimeError, match=r"unscaled already.*scale, backward, unscale_"):
            scaler.unscale_(optimizer)

    @pytest.mark.filterwarnings("ignore:no parameter of this")
    def test_unscale_after_step(self) -> None:
        optimizer, scaler = momentum(weight()), Scaler()
        scaler.step(optimizer)
        with pytest.raises(RuntimeError, match="stepped already"):
            scaler.unscale_(optimizer)

    @pytest.mark.filterwarnings("ignore:no parameter of this")
    def test_step_twice(self) -> None:
        optimizer, scaler = momentum(weight()), Scaler()
        scaler.step(optimizer)
        with pytest.raises(RuntimeError, match=r"scaler\.update\(\)"):
            scaler.step(optimizer)

    def test_update_without_a_step(self) -> None:
        with pytest.raises(RuntimeError, match="follows the steps"):
            Scaler().update()

    def test_scale_of_no_tensor(self) -> None:
        with pytest.raises(TypeError, match="takes the loss, a Tensor; got float"):
            Scaler().scale(2.0)  # type: ignore[arg-type]

    def test_minimize_without_a_loss(self) -> None:
        with pytest.raises(TypeError, match="scaled loss"):
            Scaler().minimize(momentum(weight()))


SETTINGS = {
    "init_loss_scaling": (4.0, [0.0, -1.0, np.inf]),
    "incr_ratio": (3.0, [1.0, 0.5, np.inf]),
    "decr_ratio": (0.25, [1.0, 0.0, -1.0]),
    "incr_every_n_steps": (7, [0, 1.5]),
    "decr_every_n_nan_or_inf": (2, [0, -1]),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_are_read_set_and_checked(name: str) -> None:
    good, wrong = SETTINGS[name]
    assert getattr(Scaler(**{name: good}), f"get_{name}")() == good
    scaler = Scaler()
    getattr(scaler, f"set_{name}")(good)
    assert getattr(scaler, f"get_{name}")() == good
    for value in wrong:
        with pytest.raises(ValueError, match=name):
            Scaler(**{name: value})
        with pytest.raises(ValueError, match=name):
            getattr(scaler, f"set_{name}")(value)
    assert getattr(scaler, f"get_{name}")() == good


class TestState:
    def trained(self) -> Any:
        scaler = Scaler(init_loss_scaling=32.0, incr_every_n_steps=3, decr_every_n_nan_or_inf=2)
        self.follow(scaler, [True, True, True, False, True, True])
        return scaler

    def follow(self, scaler: Any, went_well: list[bool]) -> None:
        w = weight("float32")
        optimizer = ol.optimizer.SGD(0.0, parameters=[w])
        for good in went_well:
            w.grad = np.array([1.0, 1.0 if good else np.nan], "float32")
            scaler.step(optimizer)
            scaler.update()

    def test_a_round_trip_goes_on_where_it_was(self, tmp_path: Any) -> None:
        scaler, other = self.trained(), Scaler()
        ol.save(scaler.state_dict(), tmp_path / "scaler.npz")
        other.load_state_dict(ol.load(tmp_path / "scaler.npz"))
        for one in (scaler, other):
            self.follow(one, [True, False, False, True])
        assert other.get_loss_scaling() == scaler.get_loss_scaling() == 64.0
        assert other.state_dict() == scaler.state_dict()

    def test_names_are_the_documents_own(self) -> None:
        assert list(Scaler().state_dict()) == [
            "scale", "incr_ratio", "decr_ratio", "incr_every_n_steps", "decr_every_n_nan_or_inf",
            "incr_count", "decr_count", "use_dynamic_loss_scaling",
        ]  # fmt: skip

    @pytest.mark.parametrize(
        ("change", "said"),
        [
            (lambda state: state.clear(), "empty"),
            (lambda state: state.pop("scale"), "scale missing"),
            (lambda state: state.update(rate=1), "rate unknown"),
            (lambda state: state.update(incr_ratio=0.5), "incr_ratio"),
            (lambda state: state.update(scale=np.array([0.0])), "init_loss_scaling"),
            (lambda state: state.update(decr_count=-1), "decr_count"),
        ],
    )
    def test_a_wrong_state_is_refused_and_changes_nothing(self, change: Any, said: str) -> None:
        scaler, state = self.trained(), self.trained().state_dict()
        change(state)
        with pytest.raises(ValueError, match=said):
            scaler.load_state_dict(state)
        assert scaler.state_dict() == self.trained().state_dict()


def test_it_says_what_it_is() -> None:
    assert repr(Scaler()) == "GradScaler(scale=65536, which changes)"
    assert repr(Scaler(enable=False)) == "GradScaler(enable=False)"
