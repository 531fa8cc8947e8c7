"""Freed memory is reused."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

TEMPORARIES = """
import resource
import numpy as np
{first}
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        x = [np.full(300_000, 1.0) for _ in range(4)]
        del x
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
faults()
print(faults())
"""


def faults(first):
    code = TEMPORARIES.format(first=first)
    plain = {"PATH": "", "PYTHONPATH": ":".join(sys.path)}  # without settings of malloc
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=plain)
    assert run.returncode == 0, run.stderr
    return int(run.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries do otherwise")
def test_temporaries_do_not_ask_the_system_for_their_pages_again():
    assert faults("import optlab; optlab.to_tensor([1.0])") < 1000 < faults("")
