"""Bytes: the allocator, the ledger of live arrays, its high-water mark, sizes as text."""
