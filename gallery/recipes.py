"""Every recipe from its first step to its last: what it states, and what it reaches.

A recipe of `ol.lab.recipe` has a model, data, an optimizer and a schedule, and states the result
that they reach. Here all of them run, one after another, without anything chosen by hand: the
score is that on held-out examples after the last step.

Run it with ``python gallery/recipes.py``: it writes recipes.md, the table, beside this file. It
needs the extra ``lab``, and a quarter of an hour on two cores, most of it for the GPT. Names may be
given after the folder: ``python gallery/recipes.py gallery moons lenet``.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import optlab as ol
from optlab.lab.recipes.catalogue import RECIPES

#: Recipes that state no more seconds than this run with all seeds, others with the first.
SHORT, SEEDS = 2, (0, 1, 2)


class Row(NamedTuple):
    """The runs of one recipe."""

    recipe: ol.lab.Recipe
    steps: int
    scores: list[dict[int, float]]  # of each seed, by the number of steps before them
    parameters: int
    seconds: float  # of all cores together, a run

    @property
    def last(self) -> list[float]:
        """The scores after the last step."""
        return [list(scores.values())[-1] for scores in self.scores]

    @property
    def reached(self) -> bool:
        """Whether every seed reaches what the recipe states."""
        target = self.recipe.target
        return all(s >= target if self.recipe.higher else s <= target for s in self.last)


def run(name: str, steps: int | None = None, seeds: Sequence[int] | None = None) -> Row:
    """Run a recipe."""
    recipe = ol.lab.recipe(name)
    chosen = seeds or (SEEDS if recipe.seconds <= SHORT else SEEDS[:1])
    recipe.data()  # a text is split into symbols once, for all runs
    began = time.process_time()
    runs = [recipe.run(steps, seed=seed) for seed in chosen]
    spent = (time.process_time() - began) / len(runs)
    size = sum(p.size for p in runs[0].model.parameters())
    return Row(recipe, runs[0].steps, [one.scores for one in runs], size, spent)


HEADS = (
    "recipe", "what it is", "measure", "stated", "reached", "seeds", "parameters", "steps",
    "stated seconds", "processor seconds",
)  # fmt: skip


def table(rows: list[Row]) -> str:
    """Format the results as a page of Markdown."""
    page = f"""\
# What the recipes reach

Made by `python gallery/recipes.py` ([recipes.py](recipes.py)). Each line is \
`ol.lab.recipe(name).run(seed=seed)`, as it comes, from the first step to the last. *reached* is \
the score on held-out examples after the last step (with several seeds their mean, and the range \
in brackets); what misses its stated result says so. *stated seconds* are those of the recipe on \
two cores; *processor seconds* are what a run took here, of all cores together, evaluations \
included.

| {" | ".join(HEADS)} |
| --- | --- | --- | {" | ".join(["---:"] * (len(HEADS) - 3))} |
"""
    for row in rows:
        recipe, last = row.recipe, row.last
        mean = sum(last) / len(last)
        reached = f"{mean:.4g}"
        if len(last) > 1:
            reached += f" ({min(last):.4g} to {max(last):.4g})"
        sign = "at least" if recipe.higher else "at most"
        cells = (
            f"`{recipe.name}`", recipe.title, recipe.measure, f"{sign} {recipe.target:g}",
            reached + ("" if row.reached else ", missed"), f"{len(last)}", f"{row.parameters:,}",
            f"{row.steps:,}", f"{recipe.seconds:g}", f"{row.seconds:.1f}",
        )  # fmt: skip
        page += f"| {' | '.join(cells)} |\n"
    return f"""{page}
What a model of text has to beat, counted in the same text: n-grams of characters with Kneser-Ney \
smoothing need 1.773 bits a character at their best, with order 9 ([small_gpt.py](small_gpt.py)).
"""


def main(folder: Path, names: Sequence[str] = (), **options: Any) -> Path:
    """Run the recipes, the shortest first; write the table after each of them."""
    order = sorted(names or RECIPES, key=lambda name: RECIPES[name].seconds)
    rows: list[Row] = []
    for name in order:
        rows.append(run(name, **options))
        page = folder / "recipes.md"
        page.write_text(table(rows), encoding="utf-8")
        print(f"{name}: {rows[-1].last}, {rows[-1].seconds:.1f} s", flush=True)
    return page


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    print(main(target, sys.argv[2:]))
