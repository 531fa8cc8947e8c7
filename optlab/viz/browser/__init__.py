"""What our widgets share in the browser: one sheet, one module, and the page around a widget.

The browser's code lies in folders named ``static`` as numbered parts. They are joined in the order
of their numbers into one plain module, the shared parts first: no bundler, no import, nothing that
is fetched. The widget appends ``export default`` (`as_module`); a saved page appends a stand-in for
the kernel's model (`html_page`).
"""

from __future__ import annotations

import base64
import html
import json
from functools import cache
from pathlib import Path
from typing import Any

_STATIC = Path(__file__).parent / "static"


@cache
def javascript(own: Path) -> str:
    """Give a widget's code: the shared parts, then those of its own folder."""
    return "\n".join(
        part.read_text(encoding="utf-8")
        for folder in (_STATIC, own)
        for part in sorted(folder.glob("*.js"), key=lambda path: path.stem)
    )


def as_module(code: str) -> str:
    """Give the code as anywidget takes it: a module that hands out ``render``."""
    return code + "\nexport default { render };\n"


@cache
def style_sheet(place: str, own: Path) -> str:
    """Give a widget's style sheet: the shared rules, said of its own class, then its own.

    Said of its own class, since each widget brings the shared rules along: those that came last
    would undo what an earlier widget says of itself.
    """
    shared = (_STATIC / "widget.css").read_text(encoding="utf-8")
    sheets = [path.read_text(encoding="utf-8") for path in sorted(own.glob("*.css"))]
    return "".join([shared.replace(".optlab-widget", f".{place}"), *sheets])


_SHIM = """
const stored = JSON.parse(document.getElementById("optlab-data").textContent);
for (const [name, text] of Object.entries(stored.bytes)) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  stored[name] = new DataView(bytes.buffer);
}
const model = { isStatic: true, get: (name) => stored[name], set: (name, value) => { stored[name] = value; } };
for (const name of ["on", "off", "save_changes", "send"]) model[name] = () => {};
render({ model, el: document.getElementById("PLACE") });
"""  # noqa: E501


def html_page(
    place: str, title: str, stored: dict[str, Any], words: str, style: str, code: str
) -> str:
    """Give one HTML page with everything of a widget in it; it asks no server for anything.

    Parameters
    ----------
    place : str
        The id of the element that the widget is drawn in.
    title, words : str
        What the page is called, and what it says where no script runs.
    stored : dict
        The widget's state, by the names of its traits.
    style, code : str
        Its style sheet, and its module, which has ``render``.
    """
    encoded = {
        name: base64.b64encode(value).decode("ascii")
        for name, value in stored.items()
        if isinstance(value, bytes)
    }
    plain = {name: value for name, value in stored.items() if name not in encoded}
    data = json.dumps(plain | {"bytes": encoded}, ensure_ascii=False).replace("<", "\\u003c")
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>{html.escape(title)} · optlab</title>
<style>
body {{ margin: 0; padding: 12px; background: #eceef1; }}
@media (prefers-color-scheme: dark) {{ body {{ background: #0d1014; }} }}
#{place} > * {{ margin: auto; }}
{style}</style>
</head>
<body>
<div id="{place}"></div>
<noscript><pre>{html.escape(words)}</pre></noscript>
<script type="application/json" id="optlab-data">{data}</script>
<script type="module">
{code}
{_SHIM.replace("PLACE", place)}</script>
</body>
</html>
"""


def with_static_image(bundle: Any, words: str, picture: bytes) -> Any:
    """Add to what a notebook stores of a widget its words, and its picture for where none lives."""
    data, metadata = bundle if isinstance(bundle, tuple) else (bundle or {}, {})
    image = base64.b64encode(picture).decode("ascii")
    return {**data, "text/plain": words, "image/png": image}, metadata


def save_page(page: str, path: str | Path | None) -> str | Path:
    """Write a page to a file and give its path; without one, give the page."""
    if path is None:
        return page
    Path(path).write_text(page, encoding="utf-8")
    return Path(path)
