"""What goes wrong with a source as a whole, beyond the errors of the core."""

from __future__ import annotations

from odf_common.errors import OdfError


class UnsupportedSourceError(OdfError):
    """A source asks for something that cannot be run here: change the named option and add the source again."""


class BadInputSchemaError(OdfError):
    """The columns of a source do not fit what the dataset needs of them: change the read step or the query."""

    code = "BadInputSchema"


class IncompatibleSchemaError(OdfError):
    """The rows of a batch do not have the columns of the dataset's schema; nothing of the batch is written."""

    code = "IncompatibleSchema"
