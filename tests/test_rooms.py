"""The rooms of the package: no circle of imports stands, no folder is overfull.

That imports between rooms point down is held by the contracts of import-linter in pyproject.toml.
"""

import graphlib
import importlib
import inspect
import tomllib
from pathlib import Path

import grimp
import pytest

from optlab import viz
from optlab.amp import lists
from tests import public_api

PACKAGE = Path(__file__).resolve().parents[1] / "optlab"
#: More modules than this beside each other are a list to search, not a room to look around in.
MOST_MODULES = 25
#: Modules that import by name, which the graph cannot see. (The face, `optlab`, may name any.)
BY_NAME = {"optlab.amp.lists": lists._MODULES, "optlab.viz": viz._NAMES}
#: Functions named like their module: the package imports them from it, so that they hide it.
#: Only a package that does so at its own import may have one; `optlab.viz` waits for first use.
NAMED_LIKE_A_MODULE = {"optlab.lab.compare", "optlab.lab.sweep", "optlab.plan.capture"}


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
    imports = imports_of("optlab")
    for module, named in BY_NAME.items():
        assert imports.keys() >= set(named)
        imports[module] = {*imports[module], *named}
    assert circle_in(imports) is None


def test_who_imports_by_name_is_known():
    found = {
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__")
        for path in PACKAGE.rglob("*.py")
        if "import_module(" in path.read_text(encoding="utf-8")
    }
    assert found == {*BY_NAME, "optlab", "optlab._doctor.checks"}  # the doctor: other packages only


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


def test_every_package_of_rooms_has_a_contract():
    project = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text(encoding="utf-8"))
    held = {
        place
        for contract in project["tool"]["importlinter"]["contracts"]
        if contract["type"] == "layers" and contract["exhaustive"]
        for place in contract["containers"]
    }
    rooms = {
        f"optlab.{face.parent.name}": {
            *face.parent.glob("[!_]*.py"),
            *(inner.parent for inner in face.parent.glob("*/__init__.py")),
        }
        for face in PACKAGE.glob("*/__init__.py")
    }
    assert {place for place, inside in rooms.items() if len(inside) > 2} <= held


def test_no_room_is_named_like_a_function_of_its_package():
    found = set()
    for face in PACKAGE.rglob("__init__.py"):
        place = ".".join(face.parent.relative_to(PACKAGE.parent).parts)
        package = importlib.import_module(place)
        beside = {path.stem for path in face.parent.iterdir() if path.suffix in {"", ".py"}}
        for name in beside.intersection(getattr(package, "__all__", ())):
            # A package that imports at first use may find the module where it promises a function.
            promises = hasattr(package, "__getattr__") or not inspect.ismodule(vars(package)[name])
            if promises and f"{place}.{name}" not in public_api.MODULES:
                found.add(f"{place}.{name}")
    assert found == NAMED_LIKE_A_MODULE
