"""Classes with one mistake each, as students write them: the report names it."""

import pytest

from tests.course.helpers import TEXTS, changed, changes, class_of, entries, quick_check

WRONG = entries("mistakes.txt")
MUTANTS = entries("mutants.txt")


@pytest.mark.parametrize(
    ("check", "mistake", "body"), WRONG, ids=[f"{check}-{name}" for check, name, _ in WRONG]
)
def test_a_mistake_is_named(check, mistake, body):
    report = quick_check(check, class_of(changed(TEXTS[check], *changes(body))))
    assert not report.passed
    assert report.mistake == mistake, str(report)
    assert report.score < 1
    assert report.message


@pytest.mark.parametrize(
    ("check", "mistake", "body"),
    MUTANTS,
    ids=[f"{check}-{name}-{i}" for i, (check, name, _) in enumerate(MUTANTS)],
)
def test_a_mutant_in_another_style_is_named(check, mistake, body):
    report = quick_check(check, class_of(body), seed=3)
    assert report.mistake == mistake, str(report)
    assert report.score < 1


@pytest.mark.parametrize(
    "change",
    [
        ("np.sqrt(v_hat)", "np.sqrt(-1 - v_hat)"),
        ("m_hat / (np.sqrt(v_hat) + self.eps)", "(0 * m_hat) / (0 * v_hat)"),
    ],
    ids=["root of a negative number", "zero by zero"],
)
def test_what_is_no_number_is_no_wrong_step_count(change):
    report = quick_check("adam", class_of(changed(TEXTS["adam"], change)))
    assert report.mistake is None
    assert "NaN from the first step" in report.message


def test_every_mistake_of_the_list_has_a_class():
    named = {name for _, name, _ in WRONG}
    assert len(WRONG) >= 80
    assert named >= {
        "no_bias_correction", "bias_correction_of_one_moment", "epsilon_inside_root",
        "epsilon_outside_root", "coupled_decay", "decay_without_rate", "wrong_sign",
        "shared_state", "changed_in_place", "state_not_kept", "late_synchronisation",
        "early_synchronisation", "slow_weights_not_started", "fast_not_reset", "gradient_twice",
        "gradient_accumulated", "step_count_off_by_one", "hidden_broadcast", "missing_square",
        "missing_root", "swapped_betas", "dampened_momentum", "nesterov_order", "rate_ignored",
        "hyperparameter_ignored", "averages_wrong_weights", "raises", "wrong_shape",
    }  # fmt: skip
