"""Without the packages of the extras: the engine works, and each wish gets the same sentence."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]

#: Hides packages as if they were not installed.
HIDE = """
    import sys

    class WithoutHidden:
        def __init__(self, finder):
            self.finder = finder

        def find_spec(self, name, path=None, target=None):
            if name.partition(".")[0] not in HIDDEN:
                return self.finder.find_spec(name, path, target)

        def __getattr__(self, name):
            return getattr(self.finder, name)

    sys.meta_path[:] = map(WithoutHidden, sys.meta_path)
"""
OPTIONAL = [
    "IPython", "PIL", "anywidget", "contourpy", "cupy", "dask", "ipywidgets", "jupyterlab",
    "matplotlib", "ml_dtypes", "mpi4py", "numba", "pandas", "plotly", "safetensors", "scipy",
    "sklearn", "xarray", "zarr",
]  # fmt: skip


def without(packages: list[str], code: str) -> Any:
    """Run code in a Python without these packages; return what it prints, read as JSON."""
    given = f"HIDDEN = {packages!r}\n" + textwrap.dedent(HIDE) + textwrap.dedent(code)
    done = subprocess.run(
        [sys.executable, "-c", given], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


#: What the wishes below are about.
THINGS = """
    import json, os, tempfile
    import numpy as np
    import optlab as ol

    Adam, SGD = ol.optimizer.Adam, ol.optimizer.SGD
    race = ol.compare("rosenbrock", {"Adam": Adam(0.1)}, steps=3)
    sweep = ol.sweep("rosenbrock", SGD, {"learning_rate": [0.001, 0.002]}, steps=3)
    schedule = ol.optimizer.lr.StepDecay(0.5, step_size=10)
    w = ol.to_tensor([1.0, 2.0], requires_grad=True)
    optimizer = Adam(0.1, parameters=[w])
    with ol.record(optimizer) as trace:
        (w * w).sum().backward()
        optimizer.step()
    memory = ol.memory.report(lambda: (w * w).sum().backward())
    search = ol.lab.best_rate("rosenbrock", SGD, rates=[0.001, 0.002], steps=3)
    graph = ol.viz.graph((w * w).sum())
    folder = tempfile.mkdtemp()

    def path(name):
        return os.path.join(folder, name)

    def said(wish):
        try:
            wish()
        except ModuleNotFoundError as error:
            return str(error)
        return None
"""
#: Wishes, and the packages whose absence each of them meets first.
WISHES: dict[str, tuple[str, ...]] = {
    "race.figure()": ("plotly", "matplotlib", "contourpy"),
    "race.save(path('race.png'))": ("plotly", "matplotlib", "contourpy"),
    "race.table()": ("pandas",),
    "sweep.table()": ("pandas",),
    "sweep.to_xarray()": ("xarray",),
    "search.table()": ("pandas",),
    "trace.to_xarray()": ("xarray",),
    "memory.figure()": ("plotly", "matplotlib"),
    "memory.table()": ("pandas",),
    "memory.to_xarray()": ("xarray",),
    "schedule.figure()": ("plotly", "matplotlib"),
    "graph.figure()": ("plotly",),
    "graph.save(path('graph.png'))": ("matplotlib",),
    "graph.save(path('graph.svg'))": ("matplotlib",),
    "ol.viz.race(race)": ("plotly", "contourpy"),
    "ol.viz.race_png(race)": ("matplotlib", "contourpy"),
    "ol.viz.schedule(schedule)": ("plotly",),
    "ol.viz.memory(memory)": ("plotly", "matplotlib"),
    "ol.explore()": ("anywidget", "contourpy", "ipywidgets"),
    "ol.compare(ol.problems.digits_mlp(), {'a': SGD(0.1)}, steps=1)": ("sklearn",),
    "ol.data.digits()": ("sklearn",),
    "ol.bfloat16": ("ml_dtypes",),
    "ol.ones([2], 'bfloat16')": ("ml_dtypes",),
    "ol.plan.use_executor('numba')": ("numba",),
}
PACKAGES = sorted({package for packages in WISHES.values() for package in packages})
#: The names under which they are installed, and their extras.
NAMES = {"sklearn": "scikit-learn"}
EXTRAS = {"ml_dtypes": "formats", "numba": "fast"}


@pytest.mark.parametrize("package", PACKAGES)
def test_what_needs_a_package_that_is_missing_says_so_in_one_sentence(package: str) -> None:
    wishes = [wish for wish, packages in WISHES.items() if package in packages]
    calls = ", ".join(f"said(lambda: {wish})" for wish in wishes)
    found = without([package], textwrap.dedent(THINGS) + f"\nprint(json.dumps([{calls}]))\n")
    name, extra = NAMES.get(package, package), EXTRAS.get(package, "lab")
    for wish, sentence in zip(wishes, found, strict=True):
        assert sentence is not None, wish
        wanted = f" needs {name}, which is not installed: pip install 'optlab[{extra}]'."
        assert wanted in sentence, (wish, sentence)


#: What runs with NumPy alone.
ENGINE = """
    model = ol.nn.Sequential(ol.nn.Linear(2, 3), ol.nn.ReLU(), ol.nn.Linear(3, 1))
    adam = Adam(0.01, parameters=model.parameters())
    model(np.ones((4, 2), np.float32)).sum().backward()
    adam.step()
    ol.save(model.state_dict(), path("model.safetensors"))
    model.set_state_dict(ol.load(path("model.safetensors")))
    shown = [sorted(thing._repr_mimebundle_()) for thing in (race, schedule, memory, graph)]
    words = [sweep._repr_html_(), str(graph), str(memory), repr(trace)]
"""


def test_with_none_of_them_the_engine_works_and_results_are_words() -> None:
    calls = ", ".join(f"said(lambda: {wish})" for wish in WISHES)
    shows = f"print(json.dumps([shown, words, [{calls}]]))"
    found = without(OPTIONAL, "\n".join(map(textwrap.dedent, (THINGS, ENGINE, shows))))
    shown, words, sentences = found
    assert all("text/plain" in bundle and "image/png" not in bundle for bundle in shown)
    assert all(words)
    for wish, sentence in zip(WISHES, sentences, strict=True):
        assert sentence is not None, wish
        assert "which is not installed: pip install 'optlab[" in sentence, (wish, sentence)


def test_a_gpu_names_the_extras_of_cupy() -> None:
    code = """
    import json
    import optlab as ol
    try:
        ol.set_device("gpu")
    except RuntimeError as error:
        print(json.dumps(str(error)))
    """
    said = without(["cupy"], code)
    assert "CuPy, which is not installed: pip install 'optlab[cuda12]'." in said
    assert "optlab[cuda13]" in said


def test_a_safetensors_file_of_bfloat16_names_the_extra(tmp_path: Path) -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    import optlab as ol

    ol.save({"w": ol.to_tensor([1.0]).astype(ml_dtypes.bfloat16)}, tmp_path / "w.safetensors")
    code = f"""
    import json
    import optlab as ol
    try:
        ol.load({str(tmp_path / "w.safetensors")!r})
    except ModuleNotFoundError as error:
        print(json.dumps(str(error)))
    """
    said = without(["ml_dtypes"], code)
    assert "bfloat16" in said
    assert "needs ml_dtypes, which is not installed: pip install 'optlab[formats]'." in said
