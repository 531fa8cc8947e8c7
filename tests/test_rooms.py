"""The rooms of the package: no circle of imports stands, no folder is overfull.

That imports between rooms point down is held by the contracts of import-linter in pyproject.toml.
"""

import graphlib
from pathlib import Path

import grimp
import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "optlab"
#: More modules than this beside each other are a list to search, not a room to look around in.
MOST_MODULES = 25


def imports_of(package):
    """Return who imports whom at run time, imports inside functions included."""
    graph = grimp.build_graph(package, exclude_type_checking_imports=True, cache_dir=None)
    return {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}


def circle_in(imports):
    """Return modules that import each other in a circle, or None."""
    try:
        graphlib.TopologicalSorter(imports).prepare()
    except graphlib.CycleError as error:
        return error.args[1]
    return None


def test_no_circle_of_imports_stands_in_the_package():
    assert circle_in(imports_of("optlab")) is None


@pytest.mark.parametrize(
    ("back", "closed"),
    [
        ("from rooms_made.upper import name", True),
        ("def late():\n    from rooms_made import upper", True),
        ("def late():\n    import rooms_made.upper", True),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import rooms_made.upper", False),
    ],
)
def test_a_circle_is_found_inside_functions_too(back, closed, tmp_path, monkeypatch):
    package = tmp_path / "rooms_made"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "upper.py").write_text("from rooms_made import lower\nname = lower\n")
    (package / "lower.py").write_text(back + "\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert (circle_in(imports_of("rooms_made")) is not None) == closed


@pytest.mark.parametrize(
    "folder",
    sorted({path.parent for path in PACKAGE.rglob("*.py")}),
    ids=lambda path: path.relative_to(PACKAGE.parent).as_posix(),
)
def test_no_folder_is_overfull(folder):
    modules = sorted(path.name for path in folder.glob("*.py") if path.name != "__init__.py")
    assert len(modules) <= MOST_MODULES, f"{folder.name} holds {len(modules)}: split it by subject"
