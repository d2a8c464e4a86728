"""Reads YAML and JSON documents: the subset of YAML that says no more than JSON, and JSON itself.

Refused with their position: anchors, aliases, tags, duplicate keys, keys that are not texts, numbers that are not
finite, and texts that are too large or too deep.
"""

from __future__ import annotations

from collections.abc import Iterator

from odf_common.text.composer import compose
from odf_common.text.document import Document, SourceText
from odf_common.text.errors import InvalidManifestError
from odf_common.text.json_events import NotJsonError, json_events
from odf_common.text.yaml_events import yaml_events

MAX_BYTES = 16 * 1024 * 1024

_JSON_STARTS = ("{", "[", '"')
_BYTE_ORDER_MARK = "\ufeff"


def read_documents(data: bytes | str, *, source: str = "<text>") -> Iterator[Document]:
    """The documents of a text, in order; empty ones are left out.

    Raises InvalidManifestError when it comes to something that cannot be read: documents before it are still given.
    """
    text = _decode(data, source)
    if not text.content.lstrip(" \t\r\n").startswith(_JSON_STARTS):
        yield from compose(text, yaml_events(text))
        return
    try:
        documents = list(compose(text, json_events(text)))
    except NotJsonError as not_json:
        yield from _compose_flow_style(text, not_json)
    else:
        yield from documents


def read_document(data: bytes | str, *, source: str = "<text>") -> Document:
    """The only document of a text; InvalidManifestError when there is none or a second one."""
    documents = read_documents(data, source=source)
    document = next(documents, None)
    if document is None:
        raise SourceText(source, "").error(0, "there is no document in it")
    second = next(documents, None)
    if second is not None:
        raise second.text.error(second.root.index, "a second document begins here, where one was expected")
    return document


def _compose_flow_style(text: SourceText, not_json: NotJsonError) -> Iterator[Document]:
    """The documents of YAML that only looks like JSON; when it is neither, the reading that got further is reported."""
    try:
        yield from compose(text, yaml_events(text))
    except InvalidManifestError as error:
        json_error = text.error(not_json.index, f"not JSON: {not_json.reason}")
        if (json_error.line, json_error.column) > (error.line, error.column):
            raise json_error from not_json
        raise


def _decode(data: bytes | str, source: str) -> SourceText:
    encoded = data if isinstance(data, bytes) else _utf8(data, source)
    if len(encoded) > MAX_BYTES:
        raise SourceText(source, "").error(0, f"more than {MAX_BYTES} bytes of text")
    content = data if isinstance(data, str) else _text(data, source)
    return SourceText(source, content.removeprefix(_BYTE_ORDER_MARK))


def _utf8(data: str, source: str) -> bytes:
    try:
        return data.encode("utf-8")
    except UnicodeEncodeError as error:
        raise SourceText(source, data).error(error.start, "half a character (a lone surrogate)") from error


def _text(data: bytes, source: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        readable = data[: error.start].decode("utf-8")
        reason = f"not UTF-8: {error.reason} (0x{data[error.start]:02x}); save the file as UTF-8"
        raise SourceText(source, readable).error(len(readable), reason) from error
