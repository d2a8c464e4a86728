"""What publishers are told."""

from __future__ import annotations

from collections.abc import Sequence

from odf_common.messages.block_appended import AppendedBlock
from odf_common.uploads import Upload
from services.gateway.lookup import Target
from services.gateway.messages import CommittedBlock, PositionRange, Published, Uploaded, UploadedFile
from services.gateway.outgoing import Payload
from services.gateway.uploads import token_of


def published(target: Target, payload: Payload, positions: Sequence[PositionRange]) -> Published:
    """A payload is in its topic."""
    upload = payload.upload
    return Published(
        dataset=str(target.entry.alias),
        dataset_id=target.entry.id,
        source=target.source.source_name,
        topic=target.topic,
        positions=tuple(positions),
        messages=len(payload.messages),
        records=payload.records,
        upload=None if upload is None else UploadedFile(size=upload.size, hash=upload.hash),
    )


def uploaded(upload: Upload) -> Uploaded:
    """A payload waits in the upload area."""
    return Uploaded(size=upload.size, hash=upload.hash, upload_token=token_of(upload))


def committed_block(block: AppendedBlock) -> CommittedBlock:
    """A block of a payload."""
    progress = block.source
    assert progress is not None
    return CommittedBlock(
        block_hash=block.block_hash,
        sequence_number=block.sequence_number,
        offset_interval=block.offset_interval,
        num_records=block.num_records,
        duplicates=progress.duplicates,
        dead_letters=progress.dead_letters,
        derived=progress.derived,
        late=progress.late,
        watermark=block.watermark,
    )
