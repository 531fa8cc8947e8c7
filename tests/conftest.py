"""What all tests share."""

from hypothesis import settings

# How long an example takes says more of the machine than of the code; timings stand in benchmarks/.
settings.register_profile("optlab", settings(), deadline=None)
settings.load_profile("optlab")
