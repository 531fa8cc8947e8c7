"""Benchmarks of optlab against its peers: ``python -m benchmarks``.

Our side of a row and a peer's side run in separate processes that take turns, because the thread
pools of two libraries in one process slow each other down. ``benchmarks/README.md`` describes how
to add a row and the format of the JSON.
"""
