"""What a page of a widget holds, unpacked."""

import base64
import gzip
import json
import re


def stored_in(page):
    """Return the values of the widget in a page, or in the output of a cell."""
    [data] = re.findall(r'<script type="application/json">(.*?)</script>', page, re.DOTALL)
    return json.loads(gzip.decompress(base64.b64decode(json.loads(data)["stored"])))
