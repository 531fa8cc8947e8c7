"""Right classes in many styles: none is accused of anything."""

import pytest

from tests.course.helpers import TEXTS, class_of, entries, quick_check

RIGHT = [*entries("right.txt"), *entries("styles.txt")]


@pytest.mark.parametrize("check", list(TEXTS))
def test_the_plain_class_passes(check):
    report = quick_check(check, class_of(TEXTS[check]))
    assert report.passed, str(report)
    assert (report.score, report.mistake, report.first_difference) == (1.0, None, None)


@pytest.mark.parametrize(
    ("check", "style", "text"), RIGHT, ids=[f"{check}: {style}" for check, style, _ in RIGHT]
)
@pytest.mark.parametrize("seed", [0, 7])
def test_a_right_class_passes_in_every_style(check, style, text, seed):
    report = quick_check(check, class_of(text), seed=seed)
    assert report.passed, str(report)
