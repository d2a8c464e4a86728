"""Columns as one array, and answers as numpy has them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from odf_common.ingest.merge.merged import Mask


def one_array(column: pa.ChunkedArray) -> pa.Array:
    """The same values in one piece."""
    return column.chunk(0) if column.num_chunks == 1 else pa.concat_arrays(column.chunks)


def as_mask(array: pa.Array) -> Mask:
    """Truth values that can be changed."""
    return np.array(array.to_numpy(zero_copy_only=False), np.bool_)
