"""The rows, one file each (or one file for rows that differ only in a size).

A file declares ``ROWS``; see ``benchmarks/README.md``.
"""
