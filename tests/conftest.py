"""Settings shared by all tests."""

import gc
import os
import sys
import tracemalloc
import zlib

import pytest
from hypothesis import settings

# The time of an example depends on the machine more than on the code; timings are in benchmarks/.
settings.register_profile("optlab", settings(), deadline=None)
settings.load_profile("optlab")


def pytest_report_header():
    """Say which tests marked `nightly` this run takes."""
    return f"nightly tests: {os.environ.get('OPTLAB_TURN', 'all')} (OPTLAB_TURN)"


def pytest_collection_modifyitems(config, items):
    """Leave out the tests marked `nightly` whose turn is another one.

    ``OPTLAB_TURN=2/3`` takes the second of three parts of them, ``none`` takes none; without the
    variable all run. A test is in the same part wherever it runs.
    """
    turn = os.environ.get("OPTLAB_TURN")
    if not turn:
        return
    part, _, parts = ("0/1" if turn == "none" else turn).partition("/")
    if not (part.isdecimal() and parts.isdecimal() and int(part) <= int(parts) and int(parts)):
        raise pytest.UsageError(f'OPTLAB_TURN must be like "2/3", or "none"; got {turn!r}')

    def waits(item):
        if item.get_closest_marker("nightly") is None:
            return False
        return zlib.crc32(item.nodeid.encode()) % int(parts) + 1 != int(part)

    left_out = [item for item in items if waits(item)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if not waits(item)]


@pytest.fixture(autouse=True)
def nothing_chosen():
    """Let no test choose for the next: the page of figures, and the executor of plans."""
    yield
    theme = sys.modules.get("optlab.viz.style.theme")
    if theme is not None and theme.is_chosen():
        theme.choose(None)
    executors = sys.modules.get("optlab.plan.executors")
    if executors is not None and executors.chosen_executor() != "auto":
        executors.use_executor("auto")


@pytest.fixture
def traced_memory():
    """Let bytes that `tracemalloc` counts depend on the code that is tested alone.

    NumPy computes: a kernel that a child process has compiled meanwhile would be loaded by any
    step, and take another way. No garbage of earlier tests is collected on the way, and tracing
    ends with the test, whatever happens.
    """
    from optlab.plan import use_executor

    on = gc.isenabled()
    with use_executor("numpy"):
        gc.collect()
        gc.disable()
        try:
            yield
        finally:
            tracemalloc.stop()
            if on:
                gc.enable()


def pytest_collection_finish():
    """Exempt objects that live as long as the session from garbage collection.

    Fifty thousand tests are millions of objects; many tests call the collector, which would
    traverse all of them, for a second each time.
    """
    gc.collect()
    gc.freeze()
