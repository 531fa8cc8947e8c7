"""Browser side of the widgets: their code as one module, pages, and live outputs of notebooks.

The code is ES modules in folders named ``static`` (`optlab.viz.browser.joining` says how they
become one text). A widget is an entry module that exports ``render({ model, el })`` and a style
sheet; `App` is both, ready for a page. A page holds it twice packed: `html_page` is a file of its
own, `live_html` the output of a cell. Neither sends a request.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import html
import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from optlab.viz.browser.joining import joined

_STATIC = Path(__file__).parent / "static"


@dataclass(frozen=True)
class App:
    """The code and the style of a widget.

    Attributes
    ----------
    place : str
        The class of its root element, to which its style sheet is bound.
    entry : Path
        The module that exports ``render``; style sheets lie beside it.
    """

    place: str
    entry: Path

    @cached_property
    def style(self) -> str:
        """The style sheet: the shared rules for the widget's own class, then its own rules."""
        shared = (_STATIC / "widget.css").read_text(encoding="utf-8")
        sheets = [p.read_text(encoding="utf-8") for p in sorted(self.entry.parent.glob("*.css"))]
        return "".join([shared.replace(".optlab-widget", f".{self.place}"), *sheets])

    @cached_property
    def module(self) -> str:
        """The code as a module that exports ``open(element, stored, place)``."""
        opening = (
            "const open = (element, stored, place) => openIn(render, element, stored, place);\n"
            "export { open };\n"
        )
        code = joined(self.entry, _STATIC / "page_model.js")
        return f"const STYLE = {json.dumps(self.style)};\n{code}\n{opening}"

    @cached_property
    def packed(self) -> str:
        """The module, compressed, in base64."""
        return packed(self.module)

    @cached_property
    def key(self) -> str:
        """What tells this code from that of another version, in a page that has both."""
        return hashlib.sha256(self.module.encode("utf-8")).hexdigest()[:16]


def packed(text: str) -> str:
    """Compress a text and encode it in base64.

    Examples
    --------
    >>> len(packed("optlab " * 1000)) < 100
    True
    """
    # Level 9 takes twice as long, while a reader waits for the page, and saves half a percent.
    return base64.b64encode(gzip.compress(text.encode("utf-8"), 6, mtime=0)).decode("ascii")


def stored_text(stored: dict[str, Any]) -> str:
    """Return the values of a widget as JSON; bytes are texts in base64, below ``bytes``."""
    encoded = {
        name: base64.b64encode(value).decode("ascii")
        for name, value in stored.items()
        if isinstance(value, bytes)
    }
    others = {name: value for name, value in stored.items() if name not in encoded}
    return json.dumps(others | {"bytes": encoded}, separators=(",", ":"))


#: Opens the page of an output. The picture stays where scripts do not run, and where they fail. The
#: code of a widget is loaded once a page: a browser never drops a module. A host shows the output
#: anew when its picture comes: the page that is open moves into what is shown then, before the next
#: frame, with all that a hand has set.
_BOOT = """
const unpacked = async (text) => {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
};
const FRESH = '[data-ol="ID"]:not([data-live])';
const tidy = (root) => {
  for (const picture of root.querySelectorAll("img, pre, .ol-caption")) picture.remove();
};
// Hosts keep their nodes: what watches one knows the page weakly.
const follow = (around, held) => {
  const watcher = new MutationObserver(() => {
    const element = held.deref();
    if (!element || element.dataset.state === "failed") return watcher.disconnect();
    if (element.parentNode.parentNode === around) return;
    const next = [...around.children].find((one) => one.matches(FRESH));
    if (!next) return;
    next.dataset.live = "";
    next.append(element);
    if (element.dataset.state === "open") tidy(next);
    for (const host of element.children) host.dispatchEvent(new Event("ol-moved"));
  });
  watcher.observe(around, { childList: true });
};
for (const root of document.querySelectorAll(FRESH)) {
  if ("live" in root.dataset) continue; // another copy of this script was faster
  root.dataset.live = "";
  const given = JSON.parse(root.querySelector('script[type="application/json"]').textContent);
  const loaded = (globalThis.optlabModules ??= {});
  loaded["KEY"] ??= unpacked(given.app).then((text) =>
    import(URL.createObjectURL(new Blob([text], { type: "text/javascript" }))));
  const element = document.createElement("div");
  root.append(element);
  follow(root.parentNode, new WeakRef(element));
  try {
    const page = await loaded["KEY"];
    page.open(element, JSON.parse(await unpacked(given.stored)), given.place);
    element.dataset.state = "open";
    tidy(element.parentNode);
  } catch (error) {
    element.dataset.state = "failed";
    element.remove();
    console.warn("optlab shows its picture, as its page does not open here:", error);
  }
}
"""  # noqa: E501


def _boot(app: App, place: str) -> str:
    return _BOOT.replace("ID", place).replace("KEY", app.key)


def live_html(
    app: App, place: str, stored: dict[str, Any], text: str, picture: bytes | None, *,
    kernel: bool = True, width: int | None = None, caption: str = "",
) -> str:  # fmt: skip
    """Return the output of a cell: a picture, and a live page where scripts may run.

    Parameters
    ----------
    app : App
    place : str
        The id of the output.
    stored : dict
        The values of the widget.
    text : str
        Describes the picture.
    picture : bytes or None
        A PNG file; None while there is none, for `with_picture`.
    kernel : bool
        Whether there may be a kernel to connect to.
    width : int, optional
        Of the picture, in pixels of the page; by default one for each of its own.
    caption : str
        Said below the picture.
    """
    data = {"app": app.packed, "stored": packed(stored_text(stored))}
    if kernel:
        data["place"] = place
    page = (
        f'<div data-ol="{place}">'
        f'<script type="application/json">{json.dumps(data)}</script>'
        f'<script type="module">{_boot(app, place)}</script></div>'
    )
    return page if picture is None else with_picture(page, text, picture, width, caption)


def with_picture(
    page: str, text: str, picture: bytes, width: int | None = None, caption: str = ""
) -> str:
    """Put a picture, a PNG file, and its description into what `live_html` has returned.

    Examples
    --------
    >>> with_picture('<div data-ol="id"><script></script></div>', "a map", b"...")
    '<div data-ol="id"><img alt="a map" style="max-width: 100%"
    src="data:image/png;base64,Li4u"><script></script></div>'
    """
    image = base64.b64encode(picture).decode("ascii")
    outer, inner = page.split(">", 1)
    style = "max-width: 100%" + (f"; width: {width}px" if width else "")
    below = f'<p class="ol-caption">{html.escape(caption)}</p>' if caption else ""
    return (
        f'{outer}><img alt="{html.escape(text)}" style="{style}" '
        f'src="data:image/png;base64,{image}">{below}{inner}'
    )


def html_page(app: App, title: str, stored: dict[str, Any], text: str) -> str:
    """Return a self-contained HTML page of a widget; it sends no requests.

    Parameters
    ----------
    app : App
    title, text : str
        The title of the page, and its text without JavaScript.
    stored : dict
        The values of the widget.
    """
    data = json.dumps({"app": app.packed, "stored": packed(stored_text(stored))})
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
[data-ol] > div {{ max-width: 1500px; margin: auto; }}
</style>
</head>
<body>
<div data-ol="{app.place}">
<noscript><pre>{html.escape(text)}</pre></noscript>
<script type="application/json">{data}</script>
<script type="module">{_boot(app, app.place)}</script>
</div>
</body>
</html>
"""


def save_page(page: str, path: str | Path | None) -> str | Path:
    """Write a page to a file and return the path; return the page if there is no path."""
    if path is None:
        return page
    Path(path).write_text(page, encoding="utf-8")
    return Path(path)
