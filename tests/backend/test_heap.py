"""Arrays of a step of training find the memory that those of the last step gave back."""

import platform
import subprocess
import sys

import pytest

# What a step does: it allocates ten arrays of 1 MB, writes to them, and frees them all at its end.
STEPS = """
import resource
import numpy as np
{before}

def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt

def step():
    return [np.ones(1_000_000, np.int8) for _ in range(10)]

for _ in range(3):
    step()
start = faults()
for _ in range(10):
    step()
print((faults() - start) // 10)
"""


def pages_a_step(before: str) -> int:
    program = STEPS.format(before=before)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc learns from this")
def test_steps_need_no_new_pages_from_the_system():
    assert pages_a_step("import optlab; optlab.zeros([1])") < 20


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc learns from this")
def test_without_it_they_do():
    """If this fails, the C library has changed and `keep_freed_memory` may go."""
    assert pages_a_step("") > 500
