"""A fair comparison: five rules on a recipe, each tuned by the same budget, over four seeds.

Each rule gets eight rates, tried on a fifth of the training digits split off; the best one then
trains from four other starts, with two budgets, along the schedule of the recipe. The picture shows
the accuracy on held-out digits as bands over the seeds, the share of runs that reach 95 % within a
factor of the fastest (performance profiles), and below every trial, and what all of them cost.

Sources: Dolan and More 2002 (performance profiles); Schmidt, Schneider and Hennig 2021 and Dahl et
al. 2023 (what a tuning budget decides).

Run it with ``python gallery/fair_comparison.py``: it writes fair-comparison.png beside this file.
It needs the extra ``lab``, and half a minute.
"""

from __future__ import annotations

import io
import sys
from pathlib import Path

from PIL import Image

import optlab as ol

BUDGETS, SEEDS, TRIALS, TARGET = (100, 300), 4, 8, 0.95


def compared(budgets: tuple[int, ...] = BUDGETS, trials: int = TRIALS) -> ol.lab.FairComparison:
    """Tune and train all rules."""
    rules = {
        "SGD": ol.optimizer.SGD,
        "Momentum": lambda rate: ol.optimizer.Momentum(rate, 0.9),
        "RMSProp": ol.optimizer.RMSProp,
        "Adam": ol.optimizer.Adam,
        "SAM": lambda rate: ol.optimizer.SAM(ol.optimizer.Momentum(rate, 0.9)),
    }
    return ol.compare(
        ol.lab.recipe("digits_mlp"), rules, budgets=budgets, seeds=SEEDS, trials=trials,
        space={"learning_rate": (1e-4, 10.0)}, target=TARGET,
    )  # fmt: skip


def main(folder: Path, budgets: tuple[int, ...] = BUDGETS, trials: int = TRIALS) -> Path:
    """Write the image into `folder`; return its path."""
    found = compared(budgets, trials)
    print(found.table().to_string())
    pictures = (ol.viz.fair_comparison_png(found, scale=2), ol.viz.tuning_png(found, scale=2))
    parts = [Image.open(io.BytesIO(png)).convert("RGB") for png in pictures]
    whole = Image.new("RGB", (parts[0].width, sum(part.height for part in parts)), "white")
    whole.paste(parts[0], (0, 0))
    whole.paste(parts[1], (0, parts[0].height))
    picture = folder / "fair-comparison.png"
    whole.save(picture, optimize=True)
    return picture


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    print(main(target))
