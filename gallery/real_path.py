"""The path of a real network over its loss, and what the plane hides.

The weights of a network that learns to read digits are recorded at every twentieth step. Their two
principal directions span a plane; the loss of the whole network is evaluated all over it, and the
path is projected. Beside it stands the true loss of each recorded step, and that of its projection:
where they differ, the plane hides something.

Source: Li, Xu, Taylor, Studer and Goldstein 2018, arXiv 1712.09913, section 7.

Run it with ``python gallery/real_path.py``: it writes real-path.png beside this file. It needs the
extra ``lab``, and some seconds.
"""

from __future__ import annotations

import sys
from pathlib import Path

import optlab as ol

EXAMPLES = 600


def plane() -> ol.lab.Landscape:
    """Train the network and evaluate the plane of its path."""
    probes = [ol.probes.Snapshots(every=20, state=False)]
    training = ol.lab.recipe("digits_mlp").run(steps=600, probes=probes)
    x, y = training.data.train_x[:EXAMPLES], training.data.train_y[:EXAMPLES]
    model = training.model
    return ol.lab.landscape(
        model, lambda: ol.nn.functional.cross_entropy(model(x), y), "pca", size=41,
        runs={"AdamW": training.trace},
    )  # fmt: skip


def main(folder: Path) -> Path:
    """Write the image into `folder`; return its path."""
    picture = folder / "real-path.png"
    picture.write_bytes(ol.viz.landscape_png(plane(), scale=2))
    return picture


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    print(main(target))
