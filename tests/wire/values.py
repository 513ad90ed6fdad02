"""
Hypothesis values of any message, derived from its table.
"""

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from kgateway.wire.schema import Field, Message, Struct
from kgateway.wire.types import Binary, Fixed, ListOf, Referenced, StructOf, Text, UuidType, WireType, Zigzag
from kgateway.wire.uuids import Uuid

Override = Callable[[Field], st.SearchStrategy[Any] | None]


def _integers(bits: int, signed: bool = True) -> st.SearchStrategy[int]:
    return st.integers(-(1 << bits - 1), (1 << bits - 1) - 1) if signed else st.integers(0, (1 << bits) - 1)


_FIXED: dict[str, st.SearchStrategy[Any]] = {
    "?": st.booleans(),
    "b": _integers(8),
    "h": _integers(16),
    "i": _integers(32),
    "q": _integers(64),
    "H": _integers(16, signed=False),
    "I": _integers(32, signed=False),
    "d": st.floats(allow_nan=False, allow_infinity=False),
}
_TEXT = st.text(max_size=8) | st.just("x" * 200)  # 200: a compact length of two bytes
_BINARY = st.binary(max_size=8) | st.just(b"y" * 200)
_UUID = st.binary(min_size=16, max_size=16).map(Uuid)


def messages(message: type[Message], version: int, override: Override = lambda field: None) -> st.SearchStrategy[Any]:
    """
    Messages with the fields of this version; others have their defaults.
    """
    return _structs(message, version, override)


def _structs(struct: type[Struct], version: int, override: Override) -> st.SearchStrategy[Any]:
    present = {f.name: _values(f, version, override) for f in struct.__fields__ if version in f.versions}
    return st.fixed_dictionaries(present).map(lambda values: struct(**values))


def _values(field: Field, version: int, override: Override) -> st.SearchStrategy[Any]:
    values = override(field)
    if values is None:
        values = _plain(field.type, version, override)
    tagged_struct = isinstance(field.type, StructOf) and field.tag is not None
    if tagged_struct:
        # Kafka omits a tagged struct with default values only; we send it.
        values = values.filter(lambda struct: struct != type(struct)(**_defaults(type(struct))))
    if version in field.nullable or tagged_struct:
        values = st.none() | values
    return values


def _defaults(struct: type[Struct]) -> dict[str, Any]:
    return {f.name: 0 for f in struct.__fields__ if f.required}


def _plain(kind: WireType, version: int, override: Override) -> st.SearchStrategy[Any]:
    match kind:
        case Fixed(letter):
            return _FIXED[letter]
        case Zigzag(bits):
            return _integers(bits)
        case Text():
            return _TEXT
        case Binary() | Referenced():
            return _BINARY
        case UuidType():
            return _UUID
        case ListOf(Fixed() as item):
            return st.lists(_plain(item, version, override), max_size=3) | st.just([1] * 150)
        case ListOf(item):
            return st.lists(_plain(item, version, override), max_size=2)
        case StructOf(struct):
            return _structs(struct, version, override)
