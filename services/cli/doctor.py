"""`odf doctor`: one event followed from its topic to the notification of its block."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from services.cli.opening import DataDir, DatasetArgument, opened_repository, parsed_ref, settings_of
from services.cli.reporting import Format, Output, Report, reporting
from services.cli.tables import columns_text

if TYPE_CHECKING:
    from services.cli.diagnosis import Step

Source = Annotated[
    str | None, typer.Argument(metavar="SOURCE", help="Needed if there are several.", show_default="the only one")
]


@reporting
def doctor(
    dataset: DatasetArgument, source: Source = None, data_dir: DataDir = None, output: Output = Format.TEXT
) -> Report:
    """Follow the newest event of a source: topic, batch, stage, block, notification. Exit code 1 if it is stuck."""
    from odf_common.endpoints import bootstrap_servers
    from odf_common.repository.bindings import binding_of
    from services.cli.diagnosis import Diagnosis
    from services.cli.topic_reading import opened_consumer

    settings = settings_of(data_dir)
    with opened_repository(settings) as repository:
        entry = repository.catalog.dataset(parsed_ref(dataset))
        binding = binding_of(repository.catalog, entry, source)
        with opened_consumer(bootstrap_servers(settings)) as reader:
            steps = list(_until_stuck(Diagnosis(settings, repository, entry, binding, reader).steps()))
    stuck = steps[-1] if steps and not steps[-1].ok else None
    found = {
        "dataset": str(entry.alias),
        "source": binding.source_name,
        "stuck": stuck.name if stuck else None,
        "hint": stuck.hint if stuck else None,
        "steps": [step.document() for step in steps],
    }
    table = columns_text(("step", "", "time", "what"), [step.row() for step in steps])
    verdict = f"stuck at {stuck.name}: {stuck.hint}" if stuck else "everything is fine"
    return Report(f"{table}\n{verdict}", found, exit_code=1 if stuck else 0)


def _until_stuck(steps: Iterator[Step]) -> Iterator[Step]:
    for step in steps:
        yield step
        if not step.ok:
            return
