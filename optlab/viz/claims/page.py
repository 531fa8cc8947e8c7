"""A claim figure as the output of a notebook, and as a page of its own."""

from __future__ import annotations

import base64
import html
import json
from functools import cache
from pathlib import Path

from optlab.viz.claims.image import claim_png
from optlab.viz.claims.view import ClaimView

_STATIC = Path(__file__).parent / "static"


@cache
def _read(name: str) -> str:
    return (_STATIC / name).read_text(encoding="utf-8")


def live_output(view: ClaimView) -> str:
    """Return HTML that is alive where scripts may run, and holds a picture where they may not.

    No widget and no kernel: data, style and module are inside, and there are no requests. The page
    finds its place by an attribute, so that several outputs of one claim do not collide.
    """
    image = base64.b64encode(claim_png(view, scale=1.5)).decode("ascii")
    text = html.escape(view.plain_sentence, quote=True)
    module = _read("claim.js").replace("OPTLAB_CLAIM_ID", view.id)
    return (
        f'<div data-ol="{view.id}">'
        f'<img alt="{text}" style="max-width:100%;width:760px" '
        f'src="data:image/png;base64,{image}">'
        f'<p class="optlab-claim-still">A picture. To make it live, run the cell, or trust the '
        "notebook.</p>"
        f'<script type="application/json" class="optlab-claim-style">'
        f"{_as_json(_read('claim.css'))}</script>"
        f'<script type="application/json" class="optlab-claim-data">{view.to_json()}</script>'
        f'<script type="module">{module}</script></div>'
    )


def full_page(view: ClaimView) -> str:
    """Return a self-contained page."""
    title = html.escape(view.plain_sentence)
    return (
        f'<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{title}</title>'
        '\n<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        "<style>body { margin: 0 auto; max-width: 760px; padding: 16px; }\n"
        "@media (prefers-color-scheme: dark) { body { background: #161a20; } }</style>\n"
        f"</head>\n<body>\n{live_output(view)}\n</body>\n</html>\n"
    )


def _as_json(text: str) -> str:
    return json.dumps(text).replace("<", "\\u003c")
