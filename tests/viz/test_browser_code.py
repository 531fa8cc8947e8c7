"""The browser's code: ES modules that become one text, and whose types hold."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from optlab.viz import browser
from optlab.viz.browser.joining import joined, modules_of
from optlab.viz.claims.page import APP as CLAIM
from optlab.viz.explorer.export import APP as EXPLORER
from optlab.viz.graphs.export import APP as GRAPH
from optlab.viz.memory_study.widget import RecomputeExplorer

BROWSER = Path(browser.__file__).parent
APPS = {
    "explorer": EXPLORER, "graph": GRAPH, "recompute": RecomputeExplorer.app, "claim": CLAIM,
}  # fmt: skip
NODE = shutil.which("node")
TSC = os.environ.get("OPTLAB_TSC") or shutil.which("tsc")


def write(folder, **modules):
    for name, text in modules.items():
        (folder / f"{name}.js").write_text(text)
    return folder / "main.js"


def test_modules_stand_behind_what_they_import(tmp_path):
    main = write(
        tmp_path,
        main='import { b } from "./b.js";\nimport { a } from "./a.js";\n'
        "// The sum.\nexport const sum = a + b;\n",
        a="/** One.\n * @type {number} */\nexport const a = 1;\n",
        b='import { a } from "./a.js";\n\nexport const b = a + 1;\n',
    )
    assert [module.name for module in modules_of(main)] == ["a.js", "b.js", "main.js"]
    assert joined(main) == "const a = 1;\nconst b = a + 1;\nconst sum = a + b;"


def test_types_and_indentation_stay_in_the_files(tmp_path):
    main = write(tmp_path, main="if (x) {\n  f(/** @type {{a: number}} */ (x).a);\n}\n")
    assert joined(main) == "if (x) {\nf((x).a);\n}"


@pytest.mark.parametrize(
    ("modules", "said"),
    [
        ({"main": 'import { x } from "./a.js";\n', "a": "const x = 1;\n"}, "imports x, which"),
        (
            {"main": 'import { a } from "./a.js";\nconst c = a;\n', "a": "export const a = 1;\n"
             "const c = 2;\n"},
            "main.js and a.js both declare c",
        ),
        (
            {"main": 'import { a } from "./a.js";\nexport const b = 1;\n',
             "a": 'import { b } from "./main.js";\nexport const a = b;\n'},
            "in a circle: main.js -> a.js -> main.js",
        ),
        ({"main": 'import all from "./a.js";\n'}, "no import or export that is joined"),
        ({"main": "const a = 1;\nexport { a };\n"}, "no import or export that is joined"),
        ({"main": "const a = `one\n  two`;\n"}, "backticks goes on behind 'const a = `one'"),
    ],
)  # fmt: skip
def test_what_cannot_be_joined_is_refused(tmp_path, modules, said):
    with pytest.raises(ValueError, match=said):
        joined(write(tmp_path, **modules))


@pytest.mark.parametrize("name", APPS)
def test_class_names_have_a_prefix(name):
    sheet = APPS[name].style
    selectors = [line.partition("{")[0] for line in sheet.splitlines()]
    found = {word.split(":")[0] for line in selectors for word in line.split(".")[1:]}
    assert found
    assert all(word.startswith(("ol-", "optlab-")) for word in found), found


@pytest.mark.skipif(NODE is None, reason="node, which reads JavaScript, is not installed")
@pytest.mark.parametrize("name", APPS)
def test_the_joined_module_can_be_read(name, tmp_path):
    file = tmp_path / "app.mjs"
    file.write_text(APPS[name].module, encoding="utf-8")
    done = subprocess.run([NODE, "--check", file], capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr


NO_TSC = "tsc, which checks types (npm install -g typescript), is not installed"


@pytest.mark.skipif(TSC is None, reason=NO_TSC)
def test_the_types_hold():
    done = subprocess.run(
        [TSC, "-p", BROWSER / "tsconfig.json"], capture_output=True, text=True, check=False
    )
    assert not done.returncode, done.stdout
