r"""Joining ES modules into one, for a page that loads nothing.

The browser's code of optlab is ES modules in folders named ``static``, which import each other by
relative paths, as editors and ``tsc`` read them. A page needs one text. `joined` follows the
imports of an entry module, puts every module behind those that it imports, and takes out the import
lines, the word ``export``, comments that fill a line, types and indentation. This needs no bundler
because the modules keep four rules, which `joined` checks:

1. imports are lines of the form ``import { a, b } from "./file.js";``, without other names for
   what is imported;
2. exports are declarations, ``export function a``, ``export const b``, ``export class C``;
3. no two modules declare the same name at the top;
4. a text in backticks ends in the line in which it begins.
"""

from __future__ import annotations

import re
from functools import cache
from os.path import normpath
from pathlib import Path

_IMPORT = re.compile(r'^import \{ ([^}]*) \} from "(\.[^"]+)";\n', re.MULTILINE)
_DECLARED = re.compile(
    r"^(export )?(?:async )?(?:function\*?|class|const|let) ([A-Za-z_$][\w$]*)", re.MULTILINE
)
_EXPORT = re.compile(r"^export (?=(?:async )?(?:function|class|const|let)\b)", re.MULTILINE)
_COMMENTS = re.compile(r"^[ \t]*(?://[^\n]*|/\*\*.*?\*/[ \t]*)\n", re.MULTILINE | re.DOTALL)
_TYPES_AND_INDENTS = re.compile(r"^[ \t]+|/\*\* @type \{.*?\} \*/ ?", re.MULTILINE)


def modules_of(*entries: Path) -> list[Path]:
    """Return modules and all that they import, each behind those that it imports itself.

    Raises
    ------
    ValueError
        If modules import each other in a circle.
    """
    found: dict[Path, None] = {}
    entered: list[Path] = []

    def visit(module: Path) -> None:
        if module in found:
            return
        if module in entered:
            names = " -> ".join(one.name for one in [*entered[entered.index(module) :], module])
            raise ValueError(f"these modules import each other in a circle: {names}.")
        entered.append(module)
        for _, target in _IMPORT.findall(module.read_text(encoding="utf-8")):
            visit(_imported(module, target))
        entered.pop()
        found[module] = None

    for entry in entries:
        visit(entry.resolve())
    return list(found)


def _imported(module: Path, target: str) -> Path:
    """Return the file that a module imports; the module's own path is resolved."""
    return Path(normpath(module.parent / target))


@cache
def joined(*entries: Path) -> str:
    r"""Return modules and all that they import as one text without imports and exports.

    Raises
    ------
    ValueError
        If a module breaks a rule of the joining; the message names file and rule.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> folder = Path(mkdtemp())
    >>> _ = (folder / "a.js").write_text("// A number.\nexport const a = 1;\n")
    >>> _ = (folder / "b.js").write_text('import { a } from "./a.js";\nexport const b = a + 1;\n')
    >>> print(joined(folder / "b.js"))
    const a = 1;
    const b = a + 1;
    """
    texts, owner, exported = [], dict[str, Path](), dict[Path, set[str]]()
    for module in modules_of(*entries):
        text = module.read_text(encoding="utf-8")
        declared = _DECLARED.findall(text)
        exported[module] = {name for marked, name in declared if marked}
        for _, name in declared:
            if name in owner:
                raise ValueError(f"{module.name} and {owner[name].name} both declare {name}.")
            owner[name] = module
        for names, target in _IMPORT.findall(text):
            source = _imported(module, target)
            for name in names.rstrip(", ").split(", "):
                if name not in exported[source]:
                    raise ValueError(f"{module.name} imports {name}, which {target} has not.")
        text = _COMMENTS.sub("", _EXPORT.sub("", _IMPORT.sub("", text)))
        if line := re.search(r"^(import|export)\b.*", text, re.MULTILINE):
            raise ValueError(f"{module.name}: {line[0]!r} is no import or export that is joined.")
        if odd := next((line for line in text.split("\n") if line.count("`") % 2), ""):
            raise ValueError(f"{module.name}: a text in backticks goes on behind {odd.strip()!r}.")
        text = _TYPES_AND_INDENTS.sub("", text)
        texts.append(re.sub(r"\n{2,}", "\n", text).strip("\n"))
    return "\n".join(texts)
