"""What most commands begin with: the settings of a data folder, its repository, a dataset in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from odf_common.errors import InvalidTextError, NotFoundError

if TYPE_CHECKING:
    from odf_common.chain.metadata_chain import MetadataChain
    from odf_common.identity.references import DatasetRef
    from odf_common.repository.repository import Dataset, Repository
    from odf_common.settings import Settings
    from odf_common.timestamp import Timestamp

DataDir = Annotated[
    Path | None,
    typer.Option("--data-dir", help="The folder for everything that is kept.", show_default="$ODF_DATA_DIR or .odf"),
]
DatasetArgument = Annotated[str, typer.Argument(metavar="DATASET", help="A dataset's alias or id.", show_default=False)]
SourceOption = Annotated[
    str | None,
    typer.Option("--source", help="The push source; needed if there are several.", show_default="the only one"),
]


def settings_of(data_dir: Path | None) -> Settings:
    """The settings of the environment, with the data folder of the command line."""
    from odf_common.settings import Settings

    return Settings() if data_dir is None else Settings(data_dir=data_dir)


@contextmanager
def opened_repository(settings: Settings, *, create: bool = False) -> Iterator[Repository]:
    """The repository of the settings; NotFoundError if there is none yet, unless it may be created."""
    from odf_common.catalog.catalog import Catalog
    from odf_common.repository.repository import Repository

    if settings.catalog is None and not create and not (settings.data_dir / "catalog.sqlite").exists():
        raise NotFoundError(
            f"there is no repository in {settings.data_dir}: `odf add FILE` makes one with its first dataset, "
            "--data-dir names another folder"
        )
    if create:
        settings.data_dir.mkdir(parents=True, exist_ok=True)
    with Catalog.open(settings.catalog_url) as catalog:
        yield Repository.at(settings.repository_location, catalog)


def parsed_ref(text: str) -> DatasetRef:
    """An alias or id from the command line."""
    from odf_common.identity.references import parse_ref

    return parse_ref(text)


def chain_of(dataset: Dataset) -> MetadataChain:
    """The chain of a dataset."""
    from odf_common.chain.metadata_chain import MetadataChain

    return MetadataChain(dataset.objects, dataset.refs)


def parsed_time(text: str, *, hint: str) -> Timestamp:
    """A time from the command line; `hint` names the argument in the error."""
    from odf_common.timestamp import Timestamp

    try:
        return Timestamp.parse(text)
    except InvalidTextError as error:
        raise typer.BadParameter(f"{error}; write it as 2024-01-31T12:00:00Z", param_hint=hint) from error
