"""The threads of matrix products: set by the user, reported by the doctor."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

import optlab as ol
from optlab._doctor import checks
from optlab.backend import blas_threads

threadpoolctl = pytest.importorskip("threadpoolctl")


def current() -> int:
    """Return what threadpoolctl says."""
    return max(one["num_threads"] for one in threadpoolctl.threadpool_info()
               if one["user_api"] == "blas")  # fmt: skip


@pytest.fixture(autouse=True)
def _unchanged() -> Any:
    with threadpoolctl.threadpool_limits(None, user_api="blas"):
        yield


def test_the_number_is_set_returned_and_put_back() -> None:
    first = current()
    assert ol.set_blas_threads(1) == first
    assert current() == 1
    assert blas_threads.blas_threads() == 1
    assert ol.set_blas_threads(first) == 1
    assert ol.set_blas_threads(1) == first
    assert ol.set_blas_threads(None) == 1
    assert current() == first


@pytest.mark.parametrize(
    ("n", "error"), [(0, ValueError), (-1, ValueError), (1.5, TypeError), (True, TypeError),
                     ("2", TypeError)],
)  # fmt: skip
def test_other_numbers_are_refused_and_change_nothing(n: Any, error: type[Exception]) -> None:
    first = current()
    with pytest.raises(error, match="set_blas_threads takes"):
        ol.set_blas_threads(n)
    assert current() == first


@pytest.mark.parametrize("n", [10**9, 10**30])
def test_more_threads_than_the_library_takes_are_refused(n: int) -> None:
    """OpenBLAS is built for some number, such as 64, and takes that without a word."""
    first = current()
    with pytest.raises(ValueError, match=r"takes at most \d+ threads\. Nothing was changed"):
        ol.set_blas_threads(n)
    assert current() == first
    assert ol.set_blas_threads(1) == first
    assert ol.set_blas_threads(None) == 1
    assert current() == first


def test_without_threadpoolctl_it_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)
    said = r"needs threadpoolctl.*pip install 'optlab\[lab\]'.*OPENBLAS_NUM_THREADS=1"
    with pytest.raises(ModuleNotFoundError, match=said):
        ol.set_blas_threads(1)
    (row,) = checks.check_blas_threads()
    assert row.state == "ok"
    assert "threadpoolctl" in row.detail
    assert "OPENBLAS_NUM_THREADS=1" in row.mend


def test_the_doctor_says_how_many_why_and_how_to_change_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in blas_threads.VARIABLES:
        monkeypatch.delenv(variable, raising=False)
    ol.set_blas_threads(current() + 1)
    assert blas_threads.why() == "set by ol.set_blas_threads"
    ol.set_blas_threads(None)
    assert blas_threads.why() == "the library's own choice: every core"
    ol.set_blas_threads(1)
    (row,) = checks.check_blas_threads()
    assert row.detail.startswith("1 (")
    assert row.mend == ""
    ol.set_blas_threads(2)
    seconds = iter([9e-4, 1e-4])
    monkeypatch.setattr(blas_threads, "time_of_a_small_product", lambda: next(seconds))
    (row,) = checks.check_blas_threads()
    assert row.detail.startswith("2 (")
    assert "[256, 128] and [128, 128] now takes 900 us, with one 100 us" in row.detail
    assert "ol.set_blas_threads(1)" in row.mend
    assert current() == 2  # as it was
    assert "BLAS threads" in str(ol.doctor())


def test_importing_the_engine_leaves_threads_alone() -> None:
    program = (
        "import sys, optlab as ol; ol.nn.Linear(2, 2)(ol.ones([1, 2])).sum().backward()\n"
        "assert 'threadpoolctl' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
