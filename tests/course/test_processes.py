"""`ol.course.check` itself: classes that do harm, in processes of their own."""

import subprocess
import sys

import numpy as np
import pytest

import optlab as ol
from optlab.course import catalogue
from tests.course.helpers import SGD, changed, class_of, process_check

STEP = "return [p - self.lr * g for p, g in zip(params, grads)]"


def descent(before):
    """Return the class of gradient descent with a line before its step."""
    return class_of("import optlab as ol\n" + changed(SGD, (STEP, f"{before}\n        {STEP}")))


def test_a_class_of_a_notebook_travels_with_its_helpers():
    names = {"__name__": "__main__", "np": np}
    helper = "def moved(p, g, rate):\n    return p - rate * g\n"
    text = helper + changed(SGD, ("p - self.lr * g", "moved(p, g, self.lr)"))
    exec(text, names)
    report = ol.course.check("sgd", names["SGD"])
    assert report.passed
    assert str(report).startswith("sgd: all right")


def test_a_class_of_a_file_travels_too(tmp_path, monkeypatch):
    (tmp_path / "my_own_rules.py").write_text("import numpy as np\n" + SGD)
    monkeypatch.syspath_prepend(tmp_path)
    import my_own_rules

    assert ol.course.check("sgd", my_own_rules.SGD).passed


@pytest.mark.parametrize(
    ("before", "said"),
    [
        ("import os; os._exit(0)", "the process ended in this call"),
        ("raise SystemExit", "SystemExit"),
        ("np.ones(10**10)", "MemoryError"),
        ("import os; os.fork()", "os.fork"),
        ("import subprocess; subprocess.run(['ls'])", "_posixsubprocess"),
        ("open('written', 'w')", "does not open files"),
        ("import os; os.kill(os.getppid(), 9)", "os.kill"),
        ("import gc; gc.get_objects()", "gc.get_objects"),
        ("input()", "EOFError"),
        ("from optlab.course.velocity_rules import Velocity as V; return V(1)", "not there"),
        ("return ol.optimizer.SGD(self.lr).step(params)", "not there while a class is checked"),
    ],
)  # fmt: skip
@pytest.mark.skipif(sys.platform == "win32", reason="names of POSIX calls")
def test_what_no_class_may_do_fails_in_words(before, said):
    report = process_check("sgd", descent(before))
    assert (report.passed, report.mistake) == (False, "raises")
    assert said in report.message
    assert report.score == 0


def test_the_reference_cannot_be_read():
    from optlab.course import velocity_rules

    report = process_check("sgd", descent(f"open({velocity_rules.__file__!r}).read()"))
    assert report.mistake == "raises"
    assert "does not open files" in report.message


def test_names_that_a_class_replaces_do_not_change_the_verdict():
    wrong = changed(SGD, ("p - self", "p + self"))
    patches = "np.allclose = np.isclose = lambda *a, **k: True; np.asarray = None"
    patched = changed(wrong, ("return [", f"{patches}\n        return ["))
    assert process_check("sgd", class_of(patched)).mistake == "wrong_sign"


def test_a_notebook_that_has_replaced_numpy_s_functions_gets_a_true_report():
    code = (
        "import numpy as np, optlab as ol\n"
        + SGD
        + "np.asarray = np.array = np.sqrt = np.isfinite = None\n"
        + "report = ol.course.check('sgd', SGD)\n"
        + "assert report.passed, report\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_an_endless_loop_keeps_the_points_of_what_went_before():
    loops = "while len(params) > 1: pass"
    report = process_check("sgd", descent(loops))
    assert report.mistake == "too_slow"
    assert report.parts["12 steps of one parameter"]
    assert 0.5 < report.score < 1


def test_a_right_class_may_mention_optlab_where_it_does_not_compute():
    drawn = SGD + "\n    def draw(self):\n        return ol.optimizer.sgd.SGD(0.1)\n"
    assert ol.optimizer.SGD(0.1) is not None  # loaded, so that cloudpickle finds its modules
    assert process_check("sgd", class_of("import optlab as ol\n" + drawn)).passed


def test_a_class_that_cannot_be_sent_is_reported():
    import threading

    cls = class_of(SGD)
    cls.lock = threading.Lock()
    report = ol.course.check("sgd", cls)
    assert report.mistake == "raises"
    assert "cannot be sent" in report.message


def test_library_classes_are_no_solutions():
    class Own(ol.optimizer.SGD):
        pass

    assert not ol.course.check("sgd", ol.optimizer.SGD).passed
    assert "is not there" in ol.course.check("sgd", Own).message


def test_a_check_is_found_in_any_case():
    assert catalogue.find("SGD") is catalogue.find("sgd")


def test_wrong_calls_say_what_to_write():
    with pytest.raises(ValueError, match="did you mean 'momentum'"):
        ol.course.check("momentun", class_of(SGD))
    with pytest.raises(ValueError, match="no check 'nonsense': The checks are"):
        ol.course.check("nonsense", class_of(SGD))
    with pytest.raises(TypeError, match=r"takes the class itself.* an object of type"):
        ol.course.check("sgd", class_of(SGD)(0.1))


def test_a_report_is_escaped_and_a_hidden_one_shows_no_numbers():
    cls = descent("raise ValueError('<script>')")
    report = ol.course.check("sgd", cls)
    assert "<script>" in report.message
    assert "<script>" not in report._repr_html_()
    hidden = ol.course.check("sgd", cls, seed=3, hidden=True)
    assert hidden.first_difference is None
    assert "step 1" not in str(hidden)
    assert ol.course.Report.from_dict(report.to_dict()) == report
