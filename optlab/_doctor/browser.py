"""The browser that the tests can drive."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

BROWSER_COMMANDS = (
    "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome",
    "microsoft-edge", "msedge",
)  # fmt: skip
# On macOS and Windows a browser is not a command; Playwright has its own in a cache.
BROWSER_PLACES = (
    ("/Applications", "Google Chrome.app/Contents/MacOS/Google Chrome"),
    ("/Applications", "Chromium.app/Contents/MacOS/Chromium"),
    ("/Applications", "Microsoft Edge.app/Contents/MacOS/Microsoft Edge"),
    ("$PROGRAMFILES", "Google/Chrome/Application/chrome.exe"),
    ("$LOCALAPPDATA", "Google/Chrome/Application/chrome.exe"),
    ("${PROGRAMFILES(X86)}", "Microsoft/Edge/Application/msedge.exe"),
    ("~/.cache/ms-playwright", "chromium-*/chrome-linux*/chrome"),
    ("~/Library/Caches/ms-playwright", "chromium-*/chrome-mac*/*.app/Contents/MacOS/*"),
    ("$LOCALAPPDATA/ms-playwright", "chromium-*/chrome-win*/chrome.exe"),
)


def find_browser() -> Path | None:
    """Find a Chromium, Chrome or Edge on this computer, for the tests that need one."""
    for command in BROWSER_COMMANDS:
        if found := shutil.which(command):
            return Path(found)
    for folder, pattern in BROWSER_PLACES:
        place = Path(os.path.expandvars(folder)).expanduser()
        if place.is_absolute() and place.is_dir():
            for found_here in sorted(place.glob(pattern)):
                return found_here
    return None
