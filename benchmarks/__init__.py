"""How fast optlab is beside its peers: ``python -m benchmarks``.

Our row and a peer's row are measured in processes of their own that take turns, because the
thread pools of two libraries in one process slow each other down. ``benchmarks/README.md`` says
how to add a row and what the JSON holds.
"""
