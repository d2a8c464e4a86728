"""Manifest versions of block files, and what they change."""

from __future__ import annotations

METADATA_BLOCK_CODE = 0x400000
"""Multicodec `odf-metadata-block` (private use)."""

DEFAULT_VERSION = 2
"""Every peer reads it; version 3 is refused by those of the 0.36 era."""

TIMESTAMP_ALIGNMENT = {2: 1, 3: 4}
"""Manifest version → alignment of the Timestamp struct in bytes. All that differs between the versions."""

MIN_VERSION = min(TIMESTAMP_ALIGNMENT)
MAX_VERSION = max(TIMESTAMP_ALIGNMENT)
