"""The explorer as it opens, at step 60: two optimizers in the Rosenbrock valley.

Run it with ``python gallery/explorer.py``: it exports the explorer as one page, opens the page in a
Chromium or Chrome, and writes explorer.png and, as a dark page shows it, explorer-dark.png beside
this file. It needs the extra ``test``.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import optlab as ol
from optlab._doctor import find_browser


def main(folder: Path) -> Path:
    """Write the two images into `folder`; return the path of the light one."""
    from playwright.sync_api import sync_playwright

    picture = folder / "explorer.png"
    with tempfile.TemporaryDirectory() as place, sync_playwright() as playwright:
        page_file = Path(place) / "explorer.html"
        ol.explore().change(step=60).to_html(page_file)
        browser = playwright.chromium.launch(
            executable_path=str(find_browser()), args=["--no-sandbox", "--disable-gpu"]
        )
        for scheme, file in (("dark", "explorer-dark.png"), ("light", picture.name)):
            page = browser.new_page(viewport={"width": 985, "height": 610}, color_scheme=scheme)
            page.goto(page_file.as_uri())
            page.locator(".ol-map canvas").first.wait_for()
            page.wait_for_timeout(1000)
            page.screenshot(path=folder / file)
            page.close()
        browser.close()
    return picture


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    print(main(target))
