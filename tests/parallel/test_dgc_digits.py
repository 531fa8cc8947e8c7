"""The entry of the gallery that compresses gradients, in a short form."""

import runpy
from pathlib import Path

import numpy as np
import pytest

from optlab.parallel import LocalWorld

GALLERY = Path(__file__).parents[2] / "gallery"


@pytest.mark.slow
def test_digits_are_learned_from_a_hundredth_of_the_bytes():
    entry = runpy.run_path(str(GALLERY / "dgc_digits.py"))
    dense, compressed = LocalWorld(4).run(entry["compare"], (0,), 12, 512)[0]
    assert dense[0].accuracy > 0.95
    assert compressed[0].accuracy > dense[0].accuracy - 0.01
    assert dense[0].bytes_sent > 40 * compressed[0].bytes_sent


@pytest.mark.slow
def test_at_width_2048_a_rank_sends_a_hundredth_of_the_bytes(tmp_path):
    entry = runpy.run_path(str(GALLERY / "dgc_digits.py"))
    assert entry["WIDTH"] == 2048
    [found, *_] = LocalWorld(4).run(entry["train"], 0, True, 5)
    dense = sum(p.nbytes for p in entry["network"](0, 2048).parameters())
    assert dense > 100 * found.bytes_sent
    sent = found.trace["bytes sent"]
    assert np.isclose(sum(one[-1] for one in sent.values()), found.bytes_sent, rtol=0.01)
    picture = entry["draw"](found.trace, tmp_path)
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert (GALLERY / picture.name).is_file()
