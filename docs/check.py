"""Look over a built site: every link leads somewhere, and no page asks another host."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

#: What a browser fetches by itself, by element and attribute. A link is only followed by a reader.
FETCHED = {
    ("script", "src"), ("img", "src"), ("img", "srcset"), ("source", "src"), ("source", "srcset"),
    ("iframe", "src"), ("video", "src"), ("video", "poster"), ("audio", "src"), ("embed", "src"),
    ("object", "data"), ("track", "src"), ("input", "src"), ("use", "href"), ("image", "href"),
}  # fmt: skip
_LINKED = {"stylesheet", "icon", "shortcut", "preload", "modulepreload", "prefetch", "manifest"}
_LINKED |= {"preconnect", "dns-prefetch", "apple-touch-icon"}
_IN_STYLES = re.compile(r"""(?:url\(\s*|@import\s+)["']?((?:https?:)?//[^"')\s]+)""")
_IN_SCRIPTS = re.compile(
    r"""(?:\bimport\s*\(?\s*|\bfrom\s*|\bfetch\(\s*|\.src\s*=\s*)["'`]((?:https?:)?//[^"'`\s]+)"""
)


class _Page(HTMLParser):
    """What a page fetches, where it links to, and the places that others may link to."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.links: list[str] = []
        self.ids: set[str] = set()
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._inside = tag if tag in ("script", "style") else ""
        given = {name: value for name, value in attrs if value is not None}
        self.ids |= {given[name] for name in ("id", "name") if name in given}
        for name, value in given.items():
            if (tag, name) in FETCHED:
                self.fetched += (
                    [part.split()[0] for part in value.split(",") if part.strip()]
                    if (name == "srcset")
                    else [value]
                )
            if name == "style":
                self.fetched += _IN_STYLES.findall(value)
        if tag == "link" and set(given.get("rel", "").split()) & _LINKED:
            self.fetched.append(given.get("href", ""))
        if tag == "a" and "href" in given:
            self.links.append(given["href"])

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside == "style":
            self.fetched += _IN_STYLES.findall(data)
        elif self._inside == "script":
            self.fetched += _IN_SCRIPTS.findall(data)


def asks_elsewhere(address: str) -> bool:
    """Return whether fetching an address would leave the site.

    Examples
    --------
    >>> asks_elsewhere("https://cdn.example/x.js"), asks_elsewhere("//cdn.example/x.js")
    (True, True)
    >>> asks_elsewhere("../_static/x.js"), asks_elsewhere("data:image/png;base64,AA")
    (False, False)
    """
    parts = urlsplit(address)
    return bool(parts.netloc) or parts.scheme in ("http", "https", "ws", "wss", "ftp")


def problems(site: Path) -> list[str]:
    """Return a sentence for each request to another host, and for each link that leads nowhere.

    Parameters
    ----------
    site : Path
        The folder of a built site.
    """
    files = [path for path in sorted(site.rglob("*.html")) if "_static" not in path.parts]
    pages = {path: _Page(path.read_text(encoding="utf-8")) for path in files}
    found = []
    for path, page in pages.items():
        place = path.relative_to(site).as_posix()
        for address in page.fetched:
            if asks_elsewhere(address):
                found.append(f"{place} asks another host: {address}")
            elif address and not address.startswith(("data:", "blob:", "#")):
                found += _missing(site, pages, path, address)
        for address in page.links:
            if not asks_elsewhere(address) and not urlsplit(address).scheme:
                found += _missing(site, pages, path, address)
    for path in sorted(site.rglob("*.css")):
        for address in _IN_STYLES.findall(path.read_text(encoding="utf-8")):
            found.append(f"{path.relative_to(site).as_posix()} asks another host: {address}")
    return sorted(set(found))


def _missing(site: Path, pages: dict[Path, _Page], path: Path, address: str) -> list[str]:
    parts = urlsplit(address)
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if target.is_dir():
        target = target / "index.html"
    place = path.relative_to(site).as_posix()
    if not target.exists():
        return [f"{place} links to {address}, which is not there"]
    anchor = unquote(parts.fragment)
    page = pages.get(target)
    if anchor and page is not None and anchor not in page.ids and not anchor.startswith(":~:"):
        return [f"{place} links to {address}, but that page has no such place"]
    return []
