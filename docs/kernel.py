"""Runs in every kernel of the site's notebooks: a figure of plotly becomes an element of the page.

``site.js`` draws it. Its picture, where there is one, stands in it for narrow screens and for pages
without scripts.
"""

import json

from IPython import get_ipython

_PLOTLY = "application/vnd.plotly.v1+json"


def _with_element(data):
    """Return a bundle of outputs that has the figure as HTML."""
    figure = data.get(_PLOTLY)
    if figure is None:
        return data
    picture = data.get("image/png")
    if isinstance(picture, bytes):
        import base64

        picture = base64.b64encode(picture).decode("ascii")
    image = f'<img alt="" src="data:image/png;base64,{picture}">' if picture else ""
    stored = json.dumps(figure).replace("</", "<\\/")
    element = (
        f'<div class="site-figure">{image}<script type="application/json">{stored}</script></div>'
    )
    rest = {
        kind: shown for kind, shown in data.items() if kind != _PLOTLY
    }  # Sphinx knows no plotly
    return {**rest, "text/html": element + data.get("text/html", "")}


def _connect(shell):
    formatted, published = shell.display_formatter.format, shell.display_pub.publish

    def format(obj, include=None, exclude=None):
        data, metadata = formatted(obj, include, exclude)
        return _with_element(data), metadata

    def publish(data, *args, **named):
        return published(_with_element(data), *args, **named)

    shell.display_formatter.format, shell.display_pub.publish = format, publish


_connect(get_ipython())
