"""Hypothesis strategies for all metadata, derived from the models themselves so that no field can be forgotten.

`models(Model)` makes any value that the model's annotations allow: optional fields come absent, present and empty,
numbers reach both ends of their range, and every member of a union has its turn.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from enum import Enum
from functools import cache
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import annotated_types
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from pydantic.fields import FieldInfo

from odf_common.identity.did import AccountId, DatasetId
from odf_common.identity.multihash import ARROW0_SHA3_256, DIGEST_SIZE, SHA2_256, SHA3_256, Multihash
from odf_common.identity.references import (
    AccountName,
    DatasetAlias,
    DatasetAliasRemote,
    DatasetIdRemote,
    DatasetName,
    DatasetUrl,
    RepoName,
)
from odf_common.metadata.base import ExtraAttributes, Model
from odf_common.metadata.data_schema import DataSchema
from odf_common.metadata.events import MetadataEvent, SetDataSchema, UnknownEvent
from odf_common.metadata.manifests import MetadataBlock
from odf_common.timestamp import Timestamp

M = TypeVar("M", bound=Model)

MAX_NESTING = 3
"""How often a recursive type (a list of structs of options…) may enter itself."""

MAX_ITEMS = 3
"""Elements of a generated list."""


def examples(count: int) -> settings:
    """Settings of a property test: so many examples, the same in every run, however slow the machine."""
    return settings(
        max_examples=count,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


# ---- Values


def texts() -> st.SearchStrategy[str]:
    """Any Unicode that has bytes: everything but surrogates, the empty text included."""
    return st.text(max_size=12)


def timestamps() -> st.SearchStrategy[Timestamp]:
    """From year 1 to year 9999, to the nanosecond."""
    first = Timestamp.parse("0001-01-01T00:00:00Z").ns
    last = Timestamp.parse("9999-12-31T23:59:59.999999999Z").ns
    return st.builds(Timestamp, st.integers(first, last) | st.sampled_from([first, -1, 0, 1, last]))


def multihashes() -> st.SearchStrategy[Multihash]:
    """Hashes as ODF makes them, and some of functions that it does not know."""
    codes = st.sampled_from([SHA2_256, SHA3_256, ARROW0_SHA3_256])
    usual = st.builds(Multihash, codes, st.binary(min_size=DIGEST_SIZE, max_size=DIGEST_SIZE))
    return usual | st.builds(Multihash, st.integers(0, 2**63 - 1), st.binary(max_size=DIGEST_SIZE))


def dataset_ids() -> st.SearchStrategy[DatasetId]:
    """Any 32 bytes: whether they are a point of the curve is nobody's question here."""
    return st.builds(DatasetId, st.binary(min_size=32, max_size=32))


def _name_texts() -> st.SearchStrategy[str]:
    return st.from_regex(r"[a-zA-Z0-9]{1,4}([-.][a-zA-Z0-9]{1,4}){0,2}", fullmatch=True)


def dataset_aliases() -> st.SearchStrategy[DatasetAlias]:
    """`name` and `account/name`."""
    accounts = st.none() | st.builds(AccountName, _name_texts())
    return st.builds(DatasetAlias, accounts, st.builds(DatasetName, _name_texts()))


def _remote_aliases() -> st.SearchStrategy[DatasetAliasRemote]:
    # Always three names: two are read as account and dataset.
    repos, accounts = st.builds(RepoName, _name_texts()), st.builds(AccountName, _name_texts())
    return st.builds(DatasetAliasRemote, repos, accounts, st.builds(DatasetName, _name_texts()))


def json_values() -> st.SearchStrategy[Any]:
    """Anything that JSON can say."""
    leaves = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts()
    return st.recursive(
        leaves,
        lambda inner: st.lists(inner, max_size=MAX_ITEMS) | st.dictionaries(texts(), inner, max_size=MAX_ITEMS),
        max_leaves=6,
    )


def extra_attributes() -> st.SearchStrategy[ExtraAttributes]:
    """Maps of any JSON, empty ones included."""
    return st.builds(ExtraAttributes.of, st.dictionaries(texts(), json_values(), max_size=MAX_ITEMS))


VALUES: dict[type, Callable[[], st.SearchStrategy[Any]]] = {
    type(None): st.none,
    bool: st.booleans,
    str: texts,
    bytes: lambda: st.binary(max_size=40),
    Timestamp: timestamps,
    Multihash: multihashes,
    DatasetId: dataset_ids,
    AccountId: lambda: st.builds(AccountId, st.binary(min_size=32, max_size=32)),
    DatasetAlias: dataset_aliases,
    DatasetAliasRemote: _remote_aliases,
    DatasetIdRemote: lambda: st.builds(DatasetIdRemote, st.builds(RepoName, _name_texts()), dataset_ids()),
    DatasetUrl: lambda: st.builds(DatasetUrl, st.from_regex(r"[a-zA-Z0-9]{1,5}://[!-~]{1,9}", fullmatch=True)),
    ExtraAttributes: extra_attributes,
}
"""How to make what is not a model."""


# ---- Models


def blocks(event: st.SearchStrategy[Any] | None = None) -> st.SearchStrategy[MetadataBlock]:
    """Blocks with any event, or with the given ones."""
    if event is None:
        return models(MetadataBlock)
    parts = {name: _values(part, MAX_NESTING) for name, part in _fields(MetadataBlock).items()}
    return _built(MetadataBlock, parts | {"event": event})


def events() -> st.SearchStrategy[Any]:
    """Any event that can be written."""
    return _values(MetadataEvent, MAX_NESTING)


def event_models() -> tuple[type[Model], ...]:
    """The thirteen events that can be written."""
    return tuple(_members(MetadataEvent))


def data_schemas() -> st.SearchStrategy[DataSchema]:
    """Native schemas with nested types."""
    return models(DataSchema)


@cache
def models(model: type[M], nesting: int = MAX_NESTING) -> st.SearchStrategy[M]:
    """Any value of a model."""
    parts = {name: _values(part, nesting) for name, part in _fields(model).items()}
    if model is not SetDataSchema:
        return _built(model, parts)
    # At least one of its two optional fields has to be there.
    native, raw = models(DataSchema, nesting), VALUES[bytes]()
    return _built(model, parts | {"schema_": native}) | _built(model, parts | {"raw_arrow_schema": raw})


@st.composite
def _built(draw: st.DrawFn, model: type[M], parts: dict[str, st.SearchStrategy[Any]]) -> M:
    # st.builds would read the signature of the model and add its fields once more by their aliases.
    return model(**{name: draw(part) for name, part in parts.items()})


def reachable(annotation: Any) -> list[type]:
    """Every class that values of this type may hold, itself included."""
    found: dict[type, None] = {}
    _reach(annotation, found)
    return list(found)


def _reach(annotation: Any, found: dict[type, None]) -> None:
    bare = _bare(annotation)
    if _is_class(bare):
        if bare not in found:
            found[bare] = None
            for part in _fields(bare).values() if issubclass(bare, Model) else ():
                _reach(part, found)
    elif get_origin(bare) is not Literal:
        for part in _members(bare) if _is_union(bare) else get_args(bare):
            _reach(part, found)


def _is_class(annotation: Any) -> bool:
    return isinstance(annotation, type) and get_origin(annotation) is None


def _fields(model: type[Model]) -> dict[str, Any]:
    """Field → its annotation, with the constraints that pydantic has taken apart."""
    model.model_rebuild()  # resolves the names of models that stand further below
    return {
        name: Annotated[(field.annotation, *field.metadata)] if field.metadata else field.annotation
        for name, field in model.model_fields.items()
    }


def _bare(annotation: Any) -> Any:
    """Without constraints."""
    return get_args(annotation)[0] if get_origin(annotation) is Annotated else annotation


def _is_union(annotation: Any) -> bool:
    return get_origin(_bare(annotation)) in {Union, types.UnionType}


def _members(union: Any) -> list[Any]:
    return [member for member in get_args(_bare(union)) if _bare(member) is not UnknownEvent]


@cache
def _is_recursive(model: type[Model]) -> bool:
    return any(model in reachable(part) for part in _fields(model).values())


def _values(annotation: Any, nesting: int) -> st.SearchStrategy[Any]:
    if _is_union(annotation):
        return _union_values(_members(annotation), nesting)
    bare, arguments = _bare(annotation), get_args(_bare(annotation))
    if bare in VALUES:
        return VALUES[bare]()
    if bare is int:
        return _integers(annotation)
    if get_origin(bare) is Literal:
        return st.sampled_from(arguments)
    if get_origin(bare) is tuple and arguments[1:] == (Ellipsis,):
        return st.lists(_values(arguments[0], nesting), max_size=MAX_ITEMS).map(tuple)
    if _is_class(bare) and issubclass(bare, Enum):
        return st.sampled_from(bare)
    if _is_class(bare) and issubclass(bare, Model):
        return models(bare, nesting)
    raise TypeError(f"no strategy for {annotation}")


def _union_values(members: list[Any], nesting: int) -> st.SearchStrategy[Any]:
    deep = [m for m in members if _is_class(m) and issubclass(m, Model) and _is_recursive(m)]
    flat = [_values(member, nesting) for member in members if member not in deep]
    return st.one_of(*flat, *(models(member, nesting - 1) for member in deep if nesting))


def _integers(annotation: Any) -> st.SearchStrategy[int]:
    """Within the bounds of the annotation: an integer without any has no place on the wire."""
    constraints = {type(constraint): constraint for constraint in _constraints(get_args(annotation)[1:])}
    lower, upper = constraints[annotated_types.Ge].ge, constraints[annotated_types.Le].le
    return st.integers(lower, upper) | st.sampled_from([lower, 0, 1, upper])


def _constraints(annotations: tuple[Any, ...]) -> Iterator[Any]:
    for annotation in annotations:
        yield from annotation.metadata if isinstance(annotation, FieldInfo) else (annotation,)
