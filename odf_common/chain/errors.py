"""One error for each rule that a block can break; `code` is the name that the ODF facts give it.

AppendRefusedError
  FirstBlockMustBeSeedError, AppendingSeedBlockToNonEmptyChainError, SequenceIntegrityError, PrevBlockNotFoundError,
  SystemTimeIsNotMonotonicError, WatermarkIsNotMonotonicError, OffsetsAreNotSequentialError, EmptyEventError,
  HashMismatchError, ObjectNotFoundError
  NoOpEventError           the event would change nothing
  InvalidEventError        everything that the facts call by this one name
"""

from __future__ import annotations

from odf_common.errors import AppendRefusedError


class FirstBlockMustBeSeedError(AppendRefusedError):
    """A chain begins with Seed."""


class AppendingSeedBlockToNonEmptyChainError(AppendRefusedError):
    """Seed can only be the first block."""


class SequenceIntegrityError(AppendRefusedError):
    """Sequence numbers count from 0 without gaps."""

    def __init__(self, prev_block_hash: object, prev_sequence_number: int | None, new_sequence_number: int) -> None:
        self.prev_block_hash = prev_block_hash
        self.prev_sequence_number = prev_sequence_number
        self.new_sequence_number = new_sequence_number
        expected = 0 if prev_sequence_number is None else prev_sequence_number + 1
        after = f"behind block {prev_block_hash} with number {prev_sequence_number}" if expected else "in a first block"
        super().__init__(f"sequence number is {new_sequence_number}, expected {expected} {after}")


class PrevBlockNotFoundError(AppendRefusedError):
    """The block continues one that the chain does not hold."""


class SystemTimeIsNotMonotonicError(AppendRefusedError):
    """System time may stand still, but never go back."""


class WatermarkIsNotMonotonicError(AppendRefusedError):
    """Once set, a watermark is carried by every later data event and never goes back."""


class OffsetsAreNotSequentialError(AppendRefusedError):
    """A slice starts right behind the previous one."""


class EmptyEventError(AppendRefusedError):
    """A data event says nothing at all."""


class NoOpEventError(AppendRefusedError):
    """The event repeats what the chain says already."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.code = NoOpEventError.code


class NothingNewError(NoOpEventError):
    """A data event without data, whose checkpoint, watermark and state are the previous ones."""


class PushSourceUnchangedError(NoOpEventError):
    """The push source is defined in the same way already."""


class DataSchemaUnchangedError(NoOpEventError):
    """The native schema is the current one."""


class HashMismatchError(AppendRefusedError):
    """The block's bytes do not hash to what was expected."""


class ObjectNotFoundError(AppendRefusedError):
    """The event names a slice or checkpoint that is not stored."""


class InvalidEventError(AppendRefusedError):
    """The event contradicts itself or the chain."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls.code = InvalidEventError.code


class OffsetIntervalInvertedError(InvalidEventError):
    """An interval ends before it starts."""


class PrevOffsetMismatchError(InvalidEventError):
    """`prevOffset` is not the last offset of the chain."""


class DataBeforeSchemaError(InvalidEventError):
    """Data needs a SetDataSchema before it."""


class CheckpointMismatchError(InvalidEventError):
    """`prevCheckpoint` is not the last checkpoint of the same kind of event."""


class TransformInputsUnresolvedError(InvalidEventError):
    """Each input of a transform is an id with an alias."""


class TransformInputRepeatedError(InvalidEventError):
    """A dataset is an input of a transform once."""


class TransformNotNormalizedError(InvalidEventError):
    """SQL is written as `queries`, the last of which has no alias."""


class SourceKindsMixedError(InvalidEventError):
    """A dataset has a polling source or push sources, never both."""


class SourceIncompleteError(InvalidEventError):
    """A source lacks what it needs to be read."""


class ReadSchemaAmbiguousError(InvalidEventError):
    """A read step has a DDL schema or a native one, not both."""


class SourceNotActiveError(InvalidEventError):
    """The source to disable is not active."""


class TransactionInputsMismatchError(InvalidEventError):
    """The inputs of an ExecuteTransform are not those of the latest SetTransform, in its order."""


class TransactionInputNotMovedError(InvalidEventError):
    """An input claims to contribute something new, but stands where it was."""


class TransactionNotContinuedError(InvalidEventError):
    """An input is not read on from where the previous transaction left it."""


class WrongDatasetKindError(InvalidEventError):
    """The event belongs to the other kind of dataset."""


class SchemaUnreadableError(InvalidEventError):
    """A bare Arrow schema is malformed, or holds types that ODF has no name for."""


class SchemaInconsistentError(InvalidEventError):
    """A schema names a column twice, or nests an Option in an Option."""


class SchemaNotCompatibleError(InvalidEventError):
    """Columns may be added, never removed, renamed or retyped."""
