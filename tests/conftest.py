"""Settings shared by all tests."""

import gc

from hypothesis import settings

# The time of an example depends on the machine more than on the code; timings are in benchmarks/.
settings.register_profile("optlab", settings(), deadline=None)
settings.load_profile("optlab")


def pytest_collection_finish():
    """Exempt objects that live as long as the session from garbage collection.

    Fifty thousand tests are millions of objects; many tests call the collector, which would
    traverse all of them, for a second each time.
    """
    gc.collect()
    gc.freeze()
