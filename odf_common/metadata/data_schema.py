"""The native data schema (ODF 0.37): logical types, independent of how Arrow or Parquet lay them out.

A nullable column is an Option around its type; without Option it is required.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from odf_common.metadata.base import I32, U32, U64, Bool, ExtraAttributes, Model, TextEnum, spelled


class TimeUnit(TextEnum):
    """Resolution of times; Millisecond where none is given."""

    SECOND = "Second"
    MILLISECOND = "Millisecond"
    MICROSECOND = "Microsecond"
    NANOSECOND = "Nanosecond"


class DataTypeBool(Model):
    """True or false."""

    kind: Literal["Bool"] = "Bool"


class DataTypeDate(Model):
    """A calendar day."""

    kind: Literal["Date"] = "Date"


class DataTypeFloat16(Model):
    """IEEE 754, 16 bits."""

    kind: Literal["Float16"] = "Float16"


class DataTypeFloat32(Model):
    """IEEE 754, 32 bits."""

    kind: Literal["Float32"] = "Float32"


class DataTypeFloat64(Model):
    """IEEE 754, 64 bits."""

    kind: Literal["Float64"] = "Float64"


class DataTypeInt8(Model):
    """A signed integer of 8 bits."""

    kind: Literal["Int8"] = "Int8"


class DataTypeInt16(Model):
    """A signed integer of 16 bits."""

    kind: Literal["Int16"] = "Int16"


class DataTypeInt32(Model):
    """A signed integer of 32 bits."""

    kind: Literal["Int32"] = "Int32"


class DataTypeInt64(Model):
    """A signed integer of 64 bits."""

    kind: Literal["Int64"] = "Int64"


class DataTypeUInt8(Model):
    """An unsigned integer of 8 bits."""

    kind: Literal["UInt8"] = "UInt8"


class DataTypeUInt16(Model):
    """An unsigned integer of 16 bits."""

    kind: Literal["UInt16"] = "UInt16"


class DataTypeUInt32(Model):
    """An unsigned integer of 32 bits."""

    kind: Literal["UInt32"] = "UInt32"


class DataTypeUInt64(Model):
    """An unsigned integer of 64 bits."""

    kind: Literal["UInt64"] = "UInt64"


class DataTypeNull(Model):
    """Nothing but nulls."""

    kind: Literal["Null"] = "Null"


class DataTypeString(Model):
    """UTF-8 text."""

    kind: Literal["String"] = "String"


class DataTypeBinary(Model):
    """Bytes, `fixed_length` of them where it is given."""

    kind: Literal["Binary"] = "Binary"
    fixed_length: U64 | None = None


class DataTypeDecimal(Model):
    """A decimal number of `precision` digits, `scale` of them behind the point."""

    kind: Literal["Decimal"] = "Decimal"
    precision: U32
    scale: I32


class DataTypeDuration(Model):
    """An elapsed time."""

    kind: Literal["Duration"] = "Duration"
    unit: TimeUnit | None = None


class DataTypeList(Model):
    """A list of items, `fixed_length` of them where it is given."""

    kind: Literal["List"] = "List"
    item_type: DataType
    fixed_length: U64 | None = None


class DataTypeMap(Model):
    """A map; keys are never null."""

    kind: Literal["Map"] = "Map"
    key_type: DataType
    value_type: DataType
    keys_sorted: Bool | None = None


class DataTypeOption(Model):
    """A value or null. Options do not nest."""

    kind: Literal["Option"] = "Option"
    inner: DataType


class DataTypeStruct(Model):
    """Named members, each with its own optionality."""

    kind: Literal["Struct"] = "Struct"
    fields: tuple[DataField, ...]


class DataTypeTime(Model):
    """A time of day."""

    kind: Literal["Time"] = "Time"
    unit: TimeUnit | None = None


class DataTypeTimestamp(Model):
    """A point in time; `UTC` where no time zone is given."""

    kind: Literal["Timestamp"] = "Timestamp"
    unit: TimeUnit | None = None
    timezone: str | None = None


_AnyDataType = (
    DataTypeBinary
    | DataTypeBool
    | DataTypeDate
    | DataTypeDecimal
    | DataTypeDuration
    | DataTypeFloat16
    | DataTypeFloat32
    | DataTypeFloat64
    | DataTypeInt8
    | DataTypeInt16
    | DataTypeInt32
    | DataTypeInt64
    | DataTypeUInt8
    | DataTypeUInt16
    | DataTypeUInt32
    | DataTypeUInt64
    | DataTypeList
    | DataTypeMap
    | DataTypeNull
    | DataTypeOption
    | DataTypeStruct
    | DataTypeTime
    | DataTypeTimestamp
    | DataTypeString
)
DataType = Annotated[_AnyDataType, Field(discriminator="kind"), spelled(_AnyDataType, short_form=True)]


class DataField(Model):
    """A column, or a member of a struct."""

    name: str
    type: DataType
    extra: ExtraAttributes | None = None


class DataSchema(Model):
    """The columns of a dataset in their order, system columns included."""

    fields: tuple[DataField, ...]
    extra: ExtraAttributes | None = None
