"""What all tests share."""

import gc

from hypothesis import settings

# How long an example takes says more of the machine than of the code; timings stand in benchmarks/.
settings.register_profile("optlab", settings(), deadline=None)
settings.load_profile("optlab")


def pytest_collection_finish():
    """Take what lives as long as the session out of the garbage collector's sight.

    Fifty thousand tests are millions of objects; many tests call the collector, which would look
    at them all, for a second each time.
    """
    gc.collect()
    gc.freeze()
