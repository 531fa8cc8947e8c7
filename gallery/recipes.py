"""Every recipe from its first step to its last: what it states, and what it reaches.

A recipe of `ol.lab.recipe` has a model, data, an optimizer and a schedule, and states the result
that they reach. Here all of them run, one after another, without anything chosen by hand: the
score is that on held-out examples after the last step.

Run it with ``python gallery/recipes.py``: it writes recipes.md and recipes.png beside this file.
It needs the extra ``lab``, and half an hour on two cores, most of it for the GPT. Names may be
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
            f"{row.steps:,}", f"{recipe.seconds:g}", f"{row.seconds:.0f}",
        )  # fmt: skip
        page += f"| {' | '.join(cells)} |\n"
    return page


COLUMNS, WIDTH, PANEL = 4, 1000, 178


def draw(rows: list[Row], folder: Path) -> Path:
    """Plot the scores of all recipes over their steps, each with its stated result."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    from optlab.viz.backends.matplotlib.image import DOTS_PER_INCH, PIXEL, as_png, font
    from optlab.viz.style import theme

    lines = -(-len(rows) // COLUMNS)
    height = 84 + PANEL * lines
    figure = Figure(figsize=(WIDTH / DOTS_PER_INCH, height / DOTS_PER_INCH), dpi=DOTS_PER_INCH)
    figure.set_facecolor(theme.PAPER)
    missed = [row.recipe.name for row in rows if not row.reached]
    figure.text(14 / WIDTH, 1 - 28 / height, "What the recipes reach", color=theme.INK,
                fontproperties=font(theme.FONT_TITLE, "bold"))  # fmt: skip
    said = "all reach it" if not missed else f"{', '.join(missed)} misses it"
    figure.text(
        14 / WIDTH, 1 - 50 / height, color=theme.QUIET, fontproperties=font(theme.FONT_TEXT),
        s=f"Scores on held-out examples over the steps; dashed: the stated result ({said}).",
    )  # fmt: skip
    color = theme.area_colors()[0]
    for at, row in enumerate(rows):
        left, top = 44 + at % COLUMNS * (WIDTH - 24) / COLUMNS, 100 + PANEL * (at // COLUMNS)
        place = (left / WIDTH, 1 - (top + PANEL - 76) / height, 188 / WIDTH, (PANEL - 76) / height)
        axes = figure.add_axes(place)
        axes.set_facecolor(theme.PAPER)
        axes.axhline(row.recipe.target, color=theme.QUIET, linewidth=1.2 * PIXEL, dashes=(4, 3))
        for scores in row.scores:
            axes.plot(list(scores), list(scores.values()), color=color, linewidth=1.6 * PIXEL)
            axes.plot([list(scores)[-1]], [list(scores.values())[-1]], "o", color=color,
                      markersize=5 * PIXEL)  # fmt: skip
        axes.set_xlim(0, 1.04 * row.steps)
        axes.xaxis.set_major_locator(MaxNLocator(3, integer=True))
        axes.yaxis.set_major_locator(MaxNLocator(4))
        axes.yaxis.grid(True, color=theme.RULE, linewidth=PIXEL)
        axes.set_axisbelow(True)
        axes.tick_params(length=0, pad=4, colors=theme.QUIET)
        for label in [*axes.get_xticklabels(), *axes.get_yticklabels()]:
            label.set(fontproperties=font(theme.FONT_SMALL), color=theme.QUIET)
        for side in ("top", "right", "left"):
            axes.spines[side].set_visible(False)
        axes.spines["bottom"].set(color=theme.FRAME, linewidth=PIXEL)
        x, y = (left - 30) / WIDTH, 1 - (top - 22) / height
        figure.text(x, y, row.recipe.name, color=theme.INK,
                    fontproperties=font(theme.FONT_TEXT, "bold"))  # fmt: skip
        figure.text(x, y - 16 / height, row.recipe.measure, color=theme.QUIET,
                    fontproperties=font(theme.FONT_SMALL))  # fmt: skip
    picture = folder / "recipes.png"
    picture.write_bytes(as_png(figure, 2))
    return picture


def write(rows: list[Row], folder: Path) -> Path:
    """Write table and image into `folder`; return the image's path."""
    (folder / "recipes.md").write_text(table(rows), encoding="utf-8")
    return draw(rows, folder)


def main(folder: Path, names: Sequence[str] = (), **options: Any) -> Path:
    """Run the recipes, the shortest first; write table and image after each of them."""
    order = sorted(names or RECIPES, key=lambda name: RECIPES[name].seconds)
    rows: list[Row] = []
    for name in order:
        rows.append(run(name, **options))
        picture = write(rows, folder)
        print(f"{name}: {rows[-1].last}, {rows[-1].seconds:.1f} s", flush=True)
    return picture


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    print(main(target, sys.argv[2:]))
