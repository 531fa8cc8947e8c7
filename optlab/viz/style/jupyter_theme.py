"""The theme of the JupyterLab or Notebook that a kernel belongs to: its figures are of its page.

A figure cannot see the page that it will stand on, but the settings of a person who has chosen a
theme lie beside those of the server, on the same machine as a rule.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from optlab.viz.style import theme

_FILE = Path("@jupyterlab", "apputils-extension", "themes.jupyterlab-settings")


def follow() -> None:
    """Draw for a dark page from now on if the notebook has one; `use_style` says otherwise."""
    if not theme.is_chosen():
        theme.use_scheme(scheme_of_notebook() or "light")


def scheme_of_notebook() -> str | None:
    """Return the page of the notebook whose kernel this is.

    Returns
    -------
    str or None
        "light" or "dark"; None outside of a notebook that somebody has open (a script, nbconvert),
        and where no theme was chosen or it follows the system.
    """
    if "JPY_SESSION_NAME" not in os.environ:  # which a server sets, and nbconvert does not
        return None
    try:
        text = (_settings() / _FILE).read_text(encoding="utf-8")
    except (OSError, ValueError):
        return None
    chosen = re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE)  # settings are JSON with comments
    found = re.search(r'"theme"\s*:\s*"([^"]*)"', chosen)
    if found is None or re.search(r'"adaptive-theme"\s*:\s*true', chosen):
        return None
    return "dark" if "dark" in found[1].lower() else "light"


def _settings() -> Path:
    """Return the folder of a user's settings of JupyterLab."""
    own = os.environ.get("JUPYTERLAB_SETTINGS_DIR")
    if own:
        return Path(own)
    config = os.environ.get("JUPYTER_CONFIG_DIR") or Path.home() / ".jupyter"
    return Path(config, "lab", "user-settings")
