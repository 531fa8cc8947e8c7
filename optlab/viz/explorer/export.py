"""What leaves the notebook: one self-contained page, and the browser's code as one module.

The browser's code lies in ``static`` as numbered parts. They are joined in the order of their
numbers into one plain module: no bundler, no import, nothing that is fetched. The widget appends
``export default``; the page appends a stand-in for the kernel's model.
"""

from __future__ import annotations

import base64
import html
import json
from functools import cache
from pathlib import Path
from typing import Any

from optlab.viz.explorer.land import pack_land
from optlab.viz.explorer.model import Model

_STATIC = Path(__file__).parent / "static"


@cache
def javascript() -> str:
    """Give all parts of the browser's code, joined in the order of their numbers."""
    parts = sorted(_STATIC.glob("*.js"), key=lambda path: int(path.name.split("_")[0]))
    return "\n".join(path.read_text(encoding="utf-8") for path in parts)


@cache
def drawing() -> str:
    """Give the part of it that draws what other widgets draw, too: markers, arrows, text, ticks."""
    return (_STATIC / "3_draw.js").read_text(encoding="utf-8")


@cache
def style_sheet() -> str:
    """Give the style sheet."""
    return (_STATIC / "explorer.css").read_text(encoding="utf-8")


_SHIM = """
const decoded = (text) => {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new DataView(bytes.buffer);
};
const stored = JSON.parse(document.getElementById("optlab-data").textContent);
stored.buffers = decoded(stored.buffers);
stored.land_buffers = decoded(stored.land_buffers);
const nothing = () => {};
const model = { isStatic: true, get: (name) => stored[name] };
for (const name of ["set", "on", "off", "save_changes", "send"]) model[name] = nothing;
render({
  model,
  el: document.getElementById("optlab-explorer"),
});
"""


def page(model: Model, options: dict[str, Any]) -> str:
    """Give one HTML page with everything in it; it asks no server for anything."""
    header, buffers = model.pack()
    land: dict[str, Any] = {"serial": 1}
    land_buffers = b""
    if model.surface is not None:
        packed, land_buffers = pack_land(model.land, model.surface)
        land |= packed
    stored = {
        "state": model.state.to_dict(),
        "data": {**header, "serial": 1},
        "land": land,
        "options": options,
        "buffers": base64.b64encode(buffers).decode("ascii"),
        "land_buffers": base64.b64encode(land_buffers).decode("ascii"),
    }
    data = json.dumps(stored, ensure_ascii=False).replace("<", "\\u003c")
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>{html.escape(model.title)} · optlab</title>
<style>
body {{ margin: 0; padding: 12px; background: #eceef1; }}
@media (prefers-color-scheme: dark) {{ body {{ background: #0d1014; }} }}
#optlab-explorer {{ max-width: 1500px; margin: auto; }}
{style_sheet()}</style>
</head>
<body>
<div id="optlab-explorer"></div>
<noscript>{html.escape(model.summary())}</noscript>
<script type="application/json" id="optlab-data">{data}</script>
<script type="module">
{javascript()}
{_SHIM}</script>
</body>
</html>
"""
