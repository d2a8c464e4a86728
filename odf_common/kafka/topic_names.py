"""The names of topics. Apart from the topics themselves, as the catalog's side names them without a client."""

from __future__ import annotations

import re

from odf_common.errors import InvalidTextError
from odf_common.identity.references import DatasetAlias

MAX_TOPIC_NAME_LENGTH = 249

_LEGAL = re.compile(r"[a-zA-Z0-9._-]+")


def default_push_topic(alias: DatasetAlias, source_name: str) -> str:
    """`odf.push.<account>.<dataset>.<source>`, without the account where there is none.

    Characters that Kafka does not allow in a name become `-`. Two sources can get the same name: the catalog, where
    topics are bound, refuses the second one.
    """
    parts = ["odf", "push", *([alias.account.text] if alias.account else []), alias.name.text, source_name]
    return re.sub(r"[^a-zA-Z0-9._-]", "-", ".".join(parts))[:MAX_TOPIC_NAME_LENGTH]


def check_topic_name(name: str) -> str:
    """The name, or an InvalidTextError if Kafka would not have it."""
    if not _LEGAL.fullmatch(name) or name in {".", ".."} or len(name) > MAX_TOPIC_NAME_LENGTH:
        raise InvalidTextError(
            "topic name",
            name,
            position=0,
            reason=f"use letters, digits, '.', '_' and '-', {MAX_TOPIC_NAME_LENGTH} at most",
        )
    return name
