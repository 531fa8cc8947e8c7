"""Numbers of each student's own: other constants, data and starts, and checks that stay right."""

import numpy as np
import pytest

import optlab as ol
from optlab.course.catalogue import CHECKS
from optlab.course.judging import judge
from optlab.course.optimizer_checks import varied
from optlab.course.sessions import Local
from optlab.course.variants import seed_of
from tests.course.helpers import SGD, TEXTS, class_of, quick_check
from tests.course.test_assignments import ASSIGNMENTS, classes_of

STUDENTS = ["ada", "grace"]


def test_each_student_has_numbers_of_their_own_and_always_the_same():
    ada, again, grace = (ol.course.variant(name) for name in ("ada", "ada", "grace"))
    assert ada == again != grace
    assert ada.point("start", -2, 2) == again.point("start", -2, 2) != grace.point("start", -2, 2)
    assert ada.point("start", -2, 2) != ada.point("target", -2, 2)
    drawn = [ol.course.variant(seed=i).number("x", 0.999, 1.001) for i in range(50)]
    assert all(0.999 <= x <= 1.001 for x in drawn)  # rounding keeps the bounds


def test_upper_case_and_spaces_of_a_name_say_nothing():
    assert ol.course.variant(" Ada").seed == ol.course.variant("ada").seed


def test_jupyterhub_s_name_is_taken_where_none_is_given(monkeypatch):
    monkeypatch.delenv("JUPYTERHUB_USER", raising=False)
    assert ol.course.variant().seed == 0
    monkeypatch.setenv("JUPYTERHUB_USER", "ada")
    assert ol.course.variant() == ol.course.variant("ada")
    assert ol.course.variant("grace") != ol.course.variant("ada")


def test_what_a_variant_cannot_be_is_said():
    with pytest.raises(ValueError, match="a student or a seed"):
        ol.course.variant("ada", seed=3)
    with pytest.raises(ValueError, match="low < high"):
        ol.course.variant("ada").number("rate", 2, 1)


def test_settings_of_a_check_differ_from_student_to_student():
    settings = {"learning_rate": 0.2, "k": 4}
    assert varied(settings, 0) == settings
    rates = {varied(settings, seed_of(name))["learning_rate"] for name in STUDENTS}
    assert len(rates) == 2
    assert all(0.18 <= rate <= 0.22 for rate in rates)
    assert varied(settings, 5)["k"] == 4


def test_check_takes_the_numbers_of_a_student():
    wrong = class_of(SGD.replace("p - self", "p + self"))
    found = [
        ol.course.check("sgd", wrong, student=name).first_difference.expected for name in STUDENTS
    ]
    assert found[0] != found[1]


@pytest.mark.parametrize("name", TEXTS)
def test_right_classes_pass_with_each_student_s_numbers(name):
    for student in STUDENTS:
        report = quick_check(name, class_of(TEXTS[name]), seed=seed_of(student))
        assert report.passed, str(report)


#: Checks with many mistakes; Adam's are all among AdamW's.
LONG = {"adamw", "rmsprop", "lookahead", "momentum"}
NAMES = [
    pytest.param(n, marks=[pytest.mark.nightly, pytest.mark.slow] if n in LONG else [])
    for n in CHECKS
    if n != "adam"
]


@pytest.mark.parametrize("name", NAMES)
def test_mistakes_are_named_with_a_student_s_numbers(name):
    check = CHECKS[name]
    for mistake, pieces in check.mistakes:
        report = judge(check, Local(check.reference(pieces)), seed=seed_of("ada"))
        assert report.mistake == mistake, (mistake, list(pieces), str(report))


# The races at the end of the assignments.


def race_of(name, student, monkeypatch, **options):
    """Return the comparison that the explorer of an assignment shows."""
    asked = []
    monkeypatch.setenv("JUPYTERHUB_USER", student)
    monkeypatch.setattr(ol, "explore", lambda *given, **settings: asked.append((given, settings)))
    classes_of(name, races=True)
    [((problem, entries), settings)] = asked
    return ol.compare(problem, entries, **{**settings, **options})


@pytest.mark.parametrize(
    ("name", "mine"),
    [
        ("01-reverse-mode", "my gradients"),
        ("02-broadcasting", "my rules"),
        ("03-momentum", "my momentum"),
        ("04-adam", "my Adam"),
        ("06-instrumentation", "watched"),
        ("07-recompute", "my segments"),
    ],
)
def test_a_right_solution_runs_beside_the_library(name, mine, monkeypatch):
    race = race_of(name, "ada", monkeypatch, steps=8)
    other = next(title for title in race.optimizers if title.startswith("the library's"))
    np.testing.assert_allclose(race[mine].loss, race[other].loss, rtol=1e-9)
    assert race[mine].loss[-1] < race[mine].loss[0]


@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.parametrize("student", STUDENTS)
def test_the_curvature_of_assignment_8_bounds_the_rate(student, monkeypatch):
    race = race_of("08-landscapes", student, monkeypatch)
    below, above = (race[name].loss for name in ("below", "above"))
    assert below[-1] < 1e-6 * below[0]
    assert max(above) > 3 * above[0]


@pytest.mark.parametrize("name", ASSIGNMENTS)
@pytest.mark.nightly
@pytest.mark.slow
@pytest.mark.filterwarnings("error")
def test_no_entry_of_a_race_stops(name, monkeypatch):
    """A hundred steps: races that long are compiled where they may be."""
    race = race_of(name, "ada", monkeypatch)
    assert [title for title in race.optimizers if race[title].stopped] == []


def test_objects_that_keep_state_race_to_the_end(monkeypatch):
    race = race_of("05-averaging", "ada", monkeypatch, steps=100)
    assert np.isfinite(race["my LookAhead"].loss).all()
    assert len(race["my LookAhead"].loss) == 100  # so many are compiled where they may be


def test_objects_that_keep_state_are_shown_in_the_explorer():
    racer = ol.course.racer(class_of(TEXTS["momentum"]), 0.05)
    shown = ol.explore("booth", {"mine": racer, "SGD": ol.optimizer.SGD(0.01)}, steps=20)
    assert shown._repr_mimebundle_()
