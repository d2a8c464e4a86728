"""`odf verify`: everything that a chain promises, checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from odf_common.errors import CorruptedError
from services.cli.opening import DataDir, opened_repository, parsed_ref, settings_of
from services.cli.progress import checking
from services.cli.reporting import Format, Output, Report, reporting

if TYPE_CHECKING:
    from odf_common.chain.source_certificate import SourceCertificate
    from odf_common.repository.repository import Dataset


@reporting
def verify(
    datasets: Annotated[
        list[str] | None, typer.Argument(metavar="DATASET…", help="Aliases or ids.", show_default="all datasets")
    ] = None,
    data_dir: DataDir = None,
    output: Output = Format.TEXT,
) -> Report:
    """Check datasets: every block, link, rule, slice and checkpoint, and the certificate of their sources.

    The certificate: the Kafka positions in the blocks leave no gap and no overlap, and every record read there became
    a row, a duplicate or a dead letter: records + derived = rows + duplicates + dead letters, where derived rows are
    those that no record stands for, such as what a snapshot retracts. Exit code 1 if anything is wrong; the first wrong
    file is named.
    """
    with opened_repository(settings_of(data_dir)) as repository:
        refs = [parsed_ref(name) for name in datasets or []] or [entry.id for entry in repository.datasets()]
        found = [verified(repository.open(ref)) for ref in refs]
    failed = [each for each in found if not each["ok"]]
    text = "\n".join(map(_text, found)) or "there is no dataset to check"
    if failed and output == Format.TEXT:
        typer.echo(text)
        return Report(f"error: {len(failed)} of {len(found)} datasets failed", {}, exit_code=1)
    return Report(text, {"ok": not failed, "datasets": found}, exit_code=1 if failed else 0)


def verified(dataset: Dataset) -> dict[str, Any]:
    """What checking a dataset gave: `ok`, and the facts or the first thing that is wrong."""
    from odf_common.chain.check import check_dataset
    from odf_common.chain.source_certificate import SourceCertifier

    found: dict[str, Any] = {"alias": str(dataset.entry.alias), "id": str(dataset.entry.id)}
    certifier = SourceCertifier()
    try:
        with checking(str(dataset.entry.alias)) as on_progress:
            checked = check_dataset(dataset.objects, dataset.refs, on_progress=on_progress, on_block=certifier.block)
    except CorruptedError as error:
        return found | {"ok": False, "error": error.code, "file": error.place, "reason": error.reason}
    return found | {
        "ok": True,
        "head": str(checked.chain.head),
        "blocks": checked.blocks,
        "slices": checked.slices,
        "records": checked.records,
        "size": checked.size,
        "watermark": str(checked.chain.watermark) if checked.chain.watermark else None,
        "unknown": list(checked.unknown),
        "sources": list(map(_certificate, certifier.certificates())),
    }


def _certificate(certificate: SourceCertificate) -> dict[str, Any]:
    return {
        "name": certificate.source_name,
        "topic": certificate.topic,
        "topicId": certificate.topic_id,
        "next": dict(certificate.next),
        "blocks": certificate.blocks,
        "messages": certificate.messages,
        "records": certificate.records,
        "rows": certificate.rows,
        "duplicates": certificate.duplicates,
        "deadLetters": certificate.dead_letters,
        "derived": certificate.derived,
        "late": certificate.late,
        "acceptedGaps": certificate.accepted_gaps,
    }


def _text(found: dict[str, Any]) -> str:
    if not found["ok"]:
        return f"{found['alias']}: FAILED: {found['file']}: {found['reason']}"
    lines = [
        f"{found['alias']}: ok: {found['blocks']} blocks, {found['slices']} slices with {found['records']} records, "
        f"{found['size']} bytes, head {found['head']}"
    ]
    lines += map(_source_text, found["sources"])
    lines += [f"  not understood: {part}" for part in found["unknown"]]
    return "\n".join(lines)


def _source_text(source: dict[str, Any]) -> str:
    derived = f" + {source['derived']} derived" if source["derived"] else ""
    late = f", {source['late']} late" if source["late"] else ""
    gaps = f", {source['acceptedGaps']} accepted gaps" if source["acceptedGaps"] else ""
    return (
        f"  source {source['name']}: ok: {source['messages']} messages in {source['blocks']} ranges without gap, "
        f"{source['records']} records{derived} = {source['rows']} rows + {source['duplicates']} duplicates "
        f"+ {source['deadLetters']} dead letters{late}{gaps}"
    )
