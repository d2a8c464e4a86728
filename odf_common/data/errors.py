"""What goes wrong with tabular data beyond the errors of the core."""

from __future__ import annotations

from odf_common.errors import OdfError


class UnsupportedTypeError(OdfError, TypeError):
    """A data type has no equal where it should go; `column` is the path of field names, as far as it is known."""

    def __init__(self, data_type: object, where: str, *, column: str = "") -> None:
        self.data_type = data_type
        self.where = where
        self.column = column
        named = f"column {column!r}: " if column else ""
        super().__init__(f"{named}{where} has no form for the type {data_type}")
