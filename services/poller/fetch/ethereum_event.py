"""An event of a contract: its signature as Solidity writes it, and what a log says by it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from Crypto.Hash import keccak
from eth_abi.abi import decode, is_encodable_type
from eth_abi.exceptions import DecodingError, ParseError
from eth_abi.grammar import BasicType, TupleType, normalize, parse

from services.poller.errors import StepRefusedError

_NAME = r"[A-Za-z_$][A-Za-z0-9_$]*"
_EVENT = re.compile(rf"\s*(?:event\s+)?({_NAME})\s*\((.*)\)\s*;?\s*", re.DOTALL)
_PARAMETER = re.compile(rf"(?P<type>\S+)(?P<indexed>\s+indexed)?(?:\s+(?P<name>{_NAME}))?")
_TUPLE = re.compile(
    rf"(?:tuple\s*)?\((?P<inner>.*)\)(?P<array>(?:\[\d*\])*)(?P<indexed>\s+indexed)?(?:\s+(?P<name>{_NAME}))?",
    re.DOTALL,
)
_MAX_SIGNATURE = 10_000  # characters
_MAX_DEPTH = 16
_MAX_INDEXED = 3
_TOPIC_SIZE = 32
_INT64_BITS = 64


@dataclass(frozen=True, slots=True)
class Parameter:
    """A value that an event has. `parts` are those of a tuple, or of each tuple of an array."""

    name: str
    type: str
    """In canonical form."""
    is_indexed: bool = False
    parts: tuple[Parameter, ...] = ()

    @property
    def is_hashed(self) -> bool:
        """Of an indexed value that does not fit into a topic, the log holds the hash."""
        found = parse(self.type)
        return self.is_indexed and (found.is_dynamic or found.is_array or isinstance(found, TupleType))

    @property
    def arrow_type(self) -> pa.DataType:
        """The column that holds it."""
        return pa.binary() if self.is_hashed else _arrow_type(parse(self.type), self.parts)


@dataclass(frozen=True, slots=True)
class EventSignature:
    """`Transfer(address indexed from, address indexed to, uint256 value)`."""

    name: str
    parameters: tuple[Parameter, ...]

    @classmethod
    def parse(cls, text: str) -> EventSignature:
        """The event in a text; StepRefusedError says what is not understood."""
        found = _EVENT.fullmatch(text) if len(text) <= _MAX_SIGNATURE else None
        if found is None:
            raise StepRefusedError(
                f"the signature {text[:100]!r} is not understood: write it as `Transfer(address indexed from, uint256 "
                "value)`"
            )
        parameters = tuple(_parameters(found.group(2), depth=0))
        if sum(each.is_indexed for each in parameters) > _MAX_INDEXED:
            raise StepRefusedError(f"the signature has more than {_MAX_INDEXED} indexed values, which no event has")
        names = [each.name for each in parameters]
        if len(set(names)) != len(names):
            raise StepRefusedError(f"the signature has two values of one name: {', '.join(names)}")
        return cls(found.group(1), parameters)

    @property
    def canonical(self) -> str:
        """What the topic is the hash of."""
        return f"{self.name}({','.join(each.type for each in self.parameters)})"

    @property
    def topic(self) -> bytes:
        """Topic 0 of its logs."""
        return keccak.new(digest_bits=256, data=self.canonical.encode()).digest()

    @property
    def arrow_type(self) -> pa.DataType:
        """The column of decoded events."""
        return pa.struct([pa.field(each.name, each.arrow_type) for each in self.parameters])

    def decoded(self, topics: Sequence[bytes], data: bytes) -> dict[str, Any] | None:
        """The values of a log; None if it is one of another event with the same name and types.

        Which values are indexed is no part of what topic 0 stands for, so such events exist.
        """
        indexed = [each for each in self.parameters if each.is_indexed]
        plain = [each for each in self.parameters if not each.is_indexed]
        if len(topics) != len(indexed) + 1 or topics[0] != self.topic:
            return None
        try:
            values = dict(zip((each.name for each in plain), decode([each.type for each in plain], data), strict=True))
            for parameter, topic in zip(indexed, topics[1:], strict=True):
                values[parameter.name] = topic if parameter.is_hashed else decode([parameter.type], topic)[0]
        except (DecodingError, OverflowError, ValueError):
            return None
        return {each.name: _shown(each, values[each.name]) for each in self.parameters}


def _parameters(text: str, *, depth: int) -> Iterator[Parameter]:
    if depth > _MAX_DEPTH:
        raise StepRefusedError(f"the signature has tuples in more than {_MAX_DEPTH} levels")
    if not text.strip():
        return
    for number, part in enumerate(_split(text)):
        yield _parameter(part.strip(), number, depth)


def _split(text: str) -> Iterator[str]:
    """At the commas that are not inside of tuples."""
    level = start = 0
    for place, character in enumerate(text):
        level += (character == "(") - (character == ")")
        if level < 0:
            break
        if character == "," and level == 0:
            yield text[start:place]
            start = place + 1
    if level != 0:
        raise StepRefusedError("the brackets of the signature do not match")
    yield text[start:]


def _parameter(text: str, number: int, depth: int) -> Parameter:
    if (found := _TUPLE.fullmatch(text)) is not None:
        parts = tuple(_parameters(found["inner"], depth=depth + 1))
        type_text = f"({','.join(each.type for each in parts)}){found['array']}"
    elif (found := _PARAMETER.fullmatch(text)) is not None:
        parts, type_text = (), found["type"]
    else:
        raise StepRefusedError(f"{text[:100]!r} in the signature is no value of an event")
    try:
        type_text = str(normalize(type_text))  # type: ignore[no-untyped-call]
        parse(type_text).validate()
    except (ParseError, ValueError) as error:
        raise StepRefusedError(
            f"{type_text[:100]!r} in the signature is no type: {str(error).splitlines()[0]}"
        ) from error
    if not is_encodable_type(type_text):
        raise StepRefusedError(f"{type_text[:100]!r} in the signature is no type of Solidity")
    return Parameter(found["name"] or f"arg{number}", type_text, found["indexed"] is not None, parts)


def _arrow_type(found: Any, parts: tuple[Parameter, ...]) -> pa.DataType:
    if found.is_array:
        return pa.list_(_arrow_type(found.item_type, parts))
    if isinstance(found, TupleType):
        return pa.struct([pa.field(each.name, each.arrow_type) for each in parts])
    assert isinstance(found, BasicType)
    match found.base:
        case "bool":
            return pa.bool_()
        case "string":
            return pa.string()
        case "address" | "bytes" | "function":
            return pa.binary()
        case "uint" | "int" if _fits(found):
            return pa.int64()
        case _:
            return pa.string()


def _fits(found: BasicType) -> bool:
    """Whether all values are 64-bit integers. Others are written in decimal digits: no column is wide enough."""
    return bool(found.sub < _INT64_BITS or (found.base == "int" and found.sub == _INT64_BITS))


def _shown(parameter: Parameter, value: Any) -> Any:
    """A decoded value as its column holds it."""
    return value if parameter.is_hashed else _value(parse(parameter.type), parameter.parts, value)


def _value(found: Any, parts: tuple[Parameter, ...], value: Any) -> Any:
    if found.is_array:
        return [_value(found.item_type, parts, each) for each in value]
    if isinstance(found, TupleType):
        return {part.name: _shown(part, each) for part, each in zip(parts, value, strict=True)}
    if found.base == "address":
        return bytes.fromhex(value.removeprefix("0x"))
    if found.base in ("bool", "string", "bytes", "function"):
        return value
    return value if found.base in ("uint", "int") and _fits(found) else str(value)
