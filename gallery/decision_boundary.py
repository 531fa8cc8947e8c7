"""A decision boundary that forms: two spirals, after 25, 100, 300 and 1500 steps.

A network of two hidden layers gets the points of two spirals. At first it divides the plane by a
line, then bends it around the ends of the spirals, then follows them inwards.

Run it with ``python gallery/decision_boundary.py``: it writes decision-boundary.png beside this
file. It needs the extra ``lab``, and some seconds.
"""

from __future__ import annotations

import io
import sys
from dataclasses import replace
from pathlib import Path

from PIL import Image

import optlab as ol

MOMENTS = (25, 100, 300, 1500)


def pictures() -> list[bytes]:
    """Train the network; return a picture at each moment."""
    found: list[bytes] = []

    def draw(training: ol.lab.Training) -> None:
        if training.step in MOMENTS:
            title = f"After {training.step} steps"
            found.append(
                ol.viz.decision_boundary_png(
                    training.model, training.data, title=title, width=560, height=500
                )
            )

    recipe = replace(ol.lab.recipe("spirals"), every=25)
    recipe.run(callback=draw)
    return found


def main(folder: Path) -> Path:
    """Write the image into `folder`; return its path."""
    parts = [Image.open(io.BytesIO(png)).convert("RGB") for png in pictures()]
    width, height = parts[0].size
    whole = Image.new("RGB", (2 * width, 2 * height), "white")
    for i, part in enumerate(parts):
        whole.paste(part, (i % 2 * width, i // 2 * height))
    picture = folder / "decision-boundary.png"
    whole.save(picture, optimize=True)
    return picture


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    print(main(target))
