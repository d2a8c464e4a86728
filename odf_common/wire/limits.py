"""How large and how deep a block may be: nothing beyond is read, and nothing beyond is written."""

from __future__ import annotations

MAX_BLOCK_SIZE = 16 * 1024 * 1024  # bytes

MAX_DEPTH = 64
"""Tables within tables; as in the verifiers of other languages."""

MAX_ITEMS = 32_768
"""Tables, and texts in vectors, of one buffer: a schema of 10,000 nullable columns fits, a bomb does not."""

ITEM_SIZE = 8  # bytes
"""The least that a table or a text takes together with the offset to it: what is more than that is shared."""

SHARED_ITEMS = 1024
"""How many items offsets may share in any buffer."""

SHARED_SIZE = 1024 * 1024  # bytes
"""What the texts of a small buffer may come to when offsets share them."""
