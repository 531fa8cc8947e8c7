"""`Layer` and its parts, `Parameter`, state dicts and summaries."""
