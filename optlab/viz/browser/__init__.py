"""Browser side of the widgets: shared style sheet and module, and the HTML page of a widget.

The code is stored in folders named ``static`` as numbered parts, which are concatenated in order
into one module, the shared parts first: no bundler, no imports, no requests. The widget appends
``export default`` (`as_module`); a saved page appends a substitute for the kernel's model
(`html_page`).
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
def _javascript(own: Path) -> str:
    return "\n".join(
        part.read_text(encoding="utf-8")
        for folder in (_STATIC, own)
        for part in sorted(folder.glob("*.js"), key=lambda path: path.stem)
    )


def as_module(own: Path) -> str:
    """Return the code of a widget, shared parts first, as a module that exports ``render``."""
    return _javascript(own) + "\nexport default { render };\n"


@cache
def style_sheet(place: str, own: Path) -> str:
    """Return the style sheet of a widget: the shared rules for its own class, then its own rules.

    Each widget carries the shared rules. Without its own class in the selectors, the rules of a
    later widget would override those of an earlier one.
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


def html_page(place: str, title: str, stored: dict[str, Any], text: str, own: Path) -> str:
    """Return a self-contained HTML page of a widget; it sends no requests.

    Parameters
    ----------
    place : str
        The id of the element in which the widget is drawn.
    title, text : str
        The title of the page, and its text without JavaScript.
    stored : dict
        The state of the widget, by the names of its traits.
    own : Path
        The folder of its style sheet and its code, which defines ``render``.
    """
    encoded = {
        name: base64.b64encode(value).decode("ascii")
        for name, value in stored.items()
        if isinstance(value, bytes)
    }
    others = {name: value for name, value in stored.items() if name not in encoded}
    data = json.dumps(others | {"bytes": encoded}, ensure_ascii=False).replace("<", "\\u003c")
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
{style_sheet(place, own)}</style>
</head>
<body>
<div id="{place}"></div>
<noscript><pre>{html.escape(text)}</pre></noscript>
<script type="application/json" id="optlab-data">{data}</script>
<script type="module">
{_javascript(own)}
{_SHIM.replace("PLACE", place)}</script>
</body>
</html>
"""


def with_static_image(bundle: Any, text: str, image: bytes) -> Any:
    """Add text and a PNG image to the MIME bundle of a widget, for notebooks without a kernel."""
    data, metadata = bundle if isinstance(bundle, tuple) else (bundle or {}, {})
    encoded = base64.b64encode(image).decode("ascii")
    return {**data, "text/plain": text, "image/png": encoded}, metadata


def save_page(page: str, path: str | Path | None) -> str | Path:
    """Write a page to a file and return the path; return the page if there is no path."""
    if path is None:
        return page
    Path(path).write_text(page, encoding="utf-8")
    return Path(path)
