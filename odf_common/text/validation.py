"""From a document to a model, with errors that point into the text and speak its language."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError

from odf_common.text.document import Document, Path
from odf_common.text.errors import MAX_PROBLEMS, InvalidManifestError, described, shown
from odf_common.text.expectations import field_names, guess, models_at, one_of, tags_of

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

M = TypeVar("M", bound=BaseModel)

_EXPECTED = {
    "bool_parsing": "a boolean",
    "bool_type": "a boolean",
    "dict_type": "an object",
    "finite_number": "a finite number",
    "float_parsing": "a number",
    "float_type": "a number",
    "int_from_float": "an integer",
    "int_parsing": "an integer",
    "int_type": "an integer",
    "list_type": "a list",
    "model_attributes_type": "an object",
    "model_type": "an object",
    "none_required": "null",
    "string_type": "a text",
    "tuple_type": "a list",
}

_WRITTEN_AS = {"ddlSchema": "schema", "rawArrowSchema": "schema"}
"""Properties that ODF renamed: models know the new name, texts mostly use the old one."""

_QUOTED = re.compile(r"'([^']*)'")


class _Finding(NamedTuple):
    """An error of pydantic and where in the text it belongs; `path` is the way there, as the text has it."""

    at: int
    path: Path
    details: ErrorDetails


def validate(model: type[M], document: Document) -> M:
    """The document as a value of the model, or InvalidManifestError.

    Its problems come in the order of the text, and what is missing after what is wrong: that is often the same slip.
    """
    try:
        return model.model_validate(document.value, by_alias=True, by_name=False)
    except ValidationError as error:
        findings = [_locate(document, details) for details in error.errors(include_url=False)]
        findings.sort(key=lambda finding: (finding.details["type"] == "missing", finding.at))
        problems = [
            document.text.problem(finding.at, _reason(model, finding.details), path=finding.path)
            for finding in findings[:MAX_PROBLEMS]
        ]
        raise InvalidManifestError(document.source, problems, omitted=len(findings) - len(problems)) from error


def _locate(document: Document, details: ErrorDetails) -> _Finding:
    path = [*details["loc"]]
    if _discriminator(details):
        path.append(_discriminator(details))
    at, found = document.follow(path)
    if len(found) < len(path):
        at, found = document.follow([_WRITTEN_AS.get(part, part) if isinstance(part, str) else part for part in path])
    if details["type"] in {"missing", "union_tag_not_found"}:
        found = (*found, path[-1])
    return _Finding(at, found, details)


def _discriminator(details: ErrorDetails) -> str:
    """The field whose value should choose a member of a union, in errors that are about this choice."""
    named = _QUOTED.fullmatch(str(details.get("ctx", {}).get("discriminator", "")))
    return named[1] if named else ""


def _reason(model: type[BaseModel], details: ErrorDetails) -> str:
    match details["type"]:
        case "missing":
            return f"missing field {shown(str(details['loc'][-1]))}"
        case "extra_forbidden":
            return _unknown_field(model, details["loc"])
        case "union_tag_invalid" | "union_tag_not_found":
            return _unknown_variant(model, details)
        case "literal_error" | "enum":
            return _unknown_choice(details)
        case "value_error":
            return str(details["ctx"]["error"])
    return _wrong_value(details)


def _unknown_field(model: type[BaseModel], loc: Path) -> str:
    name = str(loc[-1])
    names = field_names(models_at(model, loc[:-1]))
    return f"unknown field {shown(name)}{guess(name, names)}; {one_of(names)}"


def _unknown_variant(model: type[BaseModel], details: ErrorDetails) -> str:
    discriminator = _discriminator(details) or "variant"
    tags = tags_of(models_at(model, details["loc"]), discriminator)
    tags = tags or _QUOTED.findall(details["ctx"].get("expected_tags", ""))
    if details["type"] == "union_tag_not_found":
        return f"missing field {shown(discriminator)}; {one_of(tags)}"
    tag = str(details["ctx"]["tag"])
    return f"unknown {discriminator} {shown(tag)}{guess(tag, tags)}; {one_of(tags)}"


def _unknown_choice(details: ErrorDetails) -> str:
    expected = details["ctx"]["expected"]
    options = _QUOTED.findall(expected)
    value = details["input"]
    if options and isinstance(value, str):
        return f"unknown value {shown(value)}{guess(value, options)}; {one_of(options)}"
    return f"expected {expected}, got {described(value)}"


def _wrong_value(details: ErrorDetails) -> str:
    expected = _EXPECTED.get(details["type"])
    if expected is not None:
        return f"expected {expected}, got {described(details['input'])}"
    message = details["msg"].removeprefix("Input ").removeprefix("Value ")
    return f"{message[:1].lower()}{message[1:]}, got {described(details['input'])}"
