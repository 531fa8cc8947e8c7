"""Messages of the laboratory for a reader of the README alone."""

from __future__ import annotations

import pytest

import optlab as ol
from optlab.optimizer import SGD, Adam, LookAhead, lr


def test_sweep_takes_no_wrapper_by_itself():
    said = r"does not take the wrapper LookAhead by itself.*'inner_optimizer': .*or a whole"
    with pytest.raises(TypeError, match=said):
        ol.sweep("rosenbrock", LookAhead, {"learning_rate": [0.1]})


def test_a_sweep_of_wrappers_shows_itself():
    settings = {"inner_optimizer": [SGD(1e-3)], "alpha": [0.2, 0.5, 0.7]}
    sweep = ol.sweep("rosenbrock", LookAhead, settings, steps=6)
    assert "best inner_optimizer SGD(learning_rate=0.001), alpha " in repr(sweep)
    assert sweep.best()["inner_optimizer"] is settings["inner_optimizer"][0]


def test_an_optimizer_of_ones_own_goes_into_the_explorer_in_a_dict():
    with pytest.raises(ValueError, match=r"there is no optimizer 'Mine'.*\{'Mine': Mine\(0.01\)\}"):
        ol.explore("rosenbrock", ["Mine", "Adam"])
    with pytest.raises(ValueError, match=r"Did you mean 'Adam'\?$"):
        ol.explore("rosenbrock", ["Adem"])


RATES = [0.01, 0.1, 0.25]


def swept(settings=None, **options):
    return ol.sweep("parabola", SGD, settings or {"learning_rate": RATES}, steps=20, **options)


@pytest.mark.parametrize(
    ("values", "end"),
    [(RATES, "highest"), ([0.25, 0.6, 0.4], "lowest"), ([0.1, 0.25, 0.6], None), ([0.1], None)],
)
def test_a_best_setting_at_an_end_says_so(values, end):
    sweep = swept({"learning_rate": values})
    assert sweep.best() == {"learning_rate": 0.25 if 0.25 in values else 0.1}
    assert sweep.ends == ({"learning_rate": end} if end else {})
    said = f" ({end} learning_rate that was tried)>" if end else ">"
    assert repr(sweep).endswith(f"; best learning_rate {sweep.best()['learning_rate']:g}{said}")


def test_the_ends_of_settings_that_are_no_numbers():
    sweep = ol.sweep(
        "parabola", Adam, {"amsgrad": [True, False], "learning_rate": [0.1, 0.2]}, steps=5
    )
    assert sweep.ends == {}
    assert "best amsgrad " in repr(sweep)


def test_the_table_of_a_sweep():
    table = swept({"learning_rate": [0.01, 0.25, 1e200]}, start=[[1.0], [2.0]]).table()
    assert list(table.columns) == ["learning_rate", "start", "final loss", "diverged at"]
    assert len(table) == 6
    assert table["learning_rate"][0] == 0.25
    assert table["final loss"].is_monotonic_increasing
    assert table["diverged at"].isna().tolist() == [True] * 4 + [False] * 2
    assert "start" not in swept().table().columns


def test_a_sweep_in_a_notebook():
    page = swept()._repr_html_()
    assert "&lt;Sweep of SGD" in page
    assert page.count("<tr") == 1 + len(RATES)


@pytest.mark.parametrize(
    ("schedule", "shown"),
    [
        (
            lambda: lr.LinearWarmup(lr.CosineAnnealingDecay(0.1, 100), 10, 0, 0.1),
            "LinearWarmup(...)",
        ),
        (
            lambda: lr.CosineAnnealingDecay(0.1, 9),
            "CosineAnnealingDecay(learning_rate=0.1, T_max=9, eta_min=0.0)",
        ),
        (lambda: 0.5, 0.5),
    ],
)
def test_the_rate_of_a_race_is_short(schedule, shown):
    race = ol.compare("parabola", {"SGD": SGD(schedule())}, steps=3)
    assert race.table()["learning rate"]["SGD"] == shown


def test_a_short_schedule_is_shown_whole():
    class Halving(lr.LRScheduler):
        def get_lr(self):
            return self.base_lr / 2**self.last_epoch

    race = ol.compare("parabola", {"SGD": SGD(Halving(0.5))}, steps=3)
    assert race.table()["learning rate"]["SGD"] == "Halving(learning_rate=0.5)"


def test_there_is_no_best_of_runs_that_all_diverged():
    sweep = swept({"learning_rate": [1e200, 2e200, 3e200]})
    assert sweep.ends == {}
    assert repr(sweep).endswith("3 of 3 diverged>")
