"""The entry of the gallery that compresses gradients, whole: accuracies, bytes, and its picture."""

import runpy
from pathlib import Path

import numpy as np
import pytest

from optlab.parallel import LocalWorld

GALLERY = Path(__file__).parents[2] / "gallery"


@pytest.mark.nightly
@pytest.mark.slow
def test_digits_are_learned_from_a_hundredth_of_the_bytes(tmp_path):
    entry = runpy.run_path(str(GALLERY / "dgc_digits.py"))
    assert (entry["RANKS"], entry["WIDTH"], entry["SPARSITY"][-1]) == (4, 2048, 0.999)
    dense, compressed = LocalWorld(4).run(entry["compare"])[0]
    assert len(dense) == len(compressed) == 3
    accuracies = [np.mean([one.accuracy for one in runs]) for runs in (dense, compressed)]
    assert accuracies[0] > 0.96
    assert accuracies[1] > accuracies[0] - 0.005
    for one, other in zip(dense, compressed, strict=True):
        assert one.bytes_sent > 100 * other.bytes_sent
    trace = compressed[0].trace
    sent = trace["bytes_sent"]
    assert np.isclose(sum(one[-1] for one in sent.values()), other.bytes_sent, rtol=0.05)
    picture = entry["draw"](trace, tmp_path)
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert (GALLERY / picture.name).is_file()
