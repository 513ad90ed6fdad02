"""
Avro to typed columns: by column where the schema allows it, otherwise value by value with fastavro.

By column, each node of a schema is one step for all values, which moves a vector of positions forward. A step returns a
function that makes its column: no column is made before all values are known to end where they should. Until then,
positions outside the data are IndexErrors.
"""

import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from kgateway.records.varint_columns import TooLong, read_varints
from kgateway.spark.decoders.arrays import gather, spread

Make = Callable[[], pa.Array]
Step = tuple[Make, np.ndarray]
_MS = 1_000  # microseconds
_INSTANT = pa.timestamp("us", "UTC")
_PARTLY_TYPED = {"decimal", "uuid", "duration", "time-millis", "time-micros"}  # fastavro makes objects of them
_BRANCHES = 2


@dataclass(frozen=True, slots=True)
class Source:
    """
    The values of a column, concatenated.
    """

    data: np.ndarray
    buffer: pa.Buffer


class Node(Protocol):
    @property
    def type(self) -> pa.DataType: ...

    def step(self, source: Source, at: np.ndarray) -> Step:
        """
        A function that decodes the column and returns the positions behind it.
        """


@dataclass(frozen=True, slots=True)
class WholeNumber:
    """
    Whole numbers, dates and timestamps; `scale` is the unit in microseconds.
    """

    type: pa.DataType
    bits: int = 64
    scale: int = 1

    def step(self, source: Source, at: np.ndarray) -> Step:
        numbers, after = read_varints(source.data, at, self.bits)
        plain = pa.int64() if self.bits == 64 else pa.int32()
        return lambda: pa.array(numbers * self.scale).cast(plain).cast(self.type), after


@dataclass(frozen=True, slots=True)
class FixedSize:
    """
    Numbers of fixed size, and booleans.
    """

    type: pa.DataType
    letter: str

    def step(self, source: Source, at: np.ndarray) -> Step:
        size = np.dtype(self.letter).itemsize
        found = source.data[at[:, None] + np.arange(size)].view(self.letter)[:, 0]
        if self.letter == "?" and (found.view(np.uint8) > 1).any():
            raise IndexError("neither true nor false")
        return lambda: pa.array(found), at + size


@dataclass(frozen=True, slots=True)
class LengthPrefixed:
    """
    Strings and bytes, each prefixed by its length.
    """

    type: pa.DataType

    def step(self, source: Source, at: np.ndarray) -> Step:
        sizes, starts = read_varints(source.data, at, bits=64)
        if (sizes < 0).any() or (sizes > len(source.data)).any():
            raise IndexError("an impossible length")
        return lambda: gather(source.buffer, starts, sizes).cast(self.type), starts + sizes


@dataclass(frozen=True, slots=True)
class Nullable:
    """
    A union of null and another type.
    """

    inside: Node
    null_branch: int

    @property
    def type(self) -> pa.DataType:
        return self.inside.type

    def step(self, source: Source, at: np.ndarray) -> Step:
        branches, after = read_varints(source.data, at)
        if ((branches < 0) | (branches > 1)).any():
            raise IndexError("a branch that the union does not have")
        is_there = branches != self.null_branch
        rows = np.flatnonzero(is_there)
        make, after[rows] = self.inside.step(source, after[rows])
        return lambda: spread(make(), is_there), after


@dataclass(frozen=True, slots=True)
class Record:
    """
    A record: its fields in sequence.
    """

    names: tuple[str, ...]
    fields: tuple[Node, ...]

    @property
    def type(self) -> pa.DataType:
        return pa.struct([pa.field(name, field.type) for name, field in zip(self.names, self.fields, strict=True)])

    def step(self, source: Source, at: np.ndarray) -> Step:
        makes = list[Make]()
        for field in self.fields:
            make, at = field.step(source, at)
            makes.append(make)
        return lambda: pa.StructArray.from_arrays([make() for make in makes], fields=list(self.type)), at


_LOGICAL: dict[tuple[str, str], Node] = {
    ("int", "date"): WholeNumber(pa.date32(), 32),
    ("long", "timestamp-millis"): WholeNumber(_INSTANT, scale=_MS),
    ("long", "timestamp-micros"): WholeNumber(_INSTANT),
}
_PLAIN: dict[str, Node] = {
    "int": WholeNumber(pa.int32(), 32),
    "long": WholeNumber(pa.int64()),
    "float": FixedSize(pa.float32(), "<f4"),
    "double": FixedSize(pa.float64(), "<f8"),
    "boolean": FixedSize(pa.bool_(), "?"),
    "string": LengthPrefixed(pa.string()),
    "bytes": LengthPrefixed(pa.binary()),
}


def node_of(schema: Any) -> Node | None:
    """
    The node of a schema; None if it cannot be read by column.
    """
    match schema:
        case str():
            return _PLAIN.get(schema)
        case list():
            return _union(schema)
        case {"type": "record", "fields": fields}:
            return _record(fields)
        case {"type": str(plain), **rest}:
            logical = str(rest.get("logicalType"))
            return _LOGICAL.get((plain, logical)) or (None if logical in _PARTLY_TYPED else _PLAIN.get(plain))
        case {"type": inside}:
            return node_of(inside)
        case _:
            return None


def _record(fields: list[dict[str, Any]]) -> Node | None:
    nodes = [node_of(field["type"]) for field in fields]
    there = [node for node in nodes if node is not None]
    if len(there) != len(nodes) or not nodes:
        return None
    return Record(tuple(field["name"] for field in fields), tuple(there))


def _union(branches: list[Any]) -> Node | None:
    if len(branches) != _BRANCHES or "null" not in branches:
        return None
    null_branch = branches.index("null")
    inside = node_of(branches[1 - null_branch])
    return Nullable(inside, null_branch) if inside and not isinstance(inside, Nullable) else None


def type_of(schema: Any, named: dict[str, Any] | None = None) -> pa.DataType:
    """
    The type of a column that is read value by value; ValueError if there is none.
    """
    named = {} if named is None else named
    node = node_of(schema)
    if node is not None:
        return node.type
    match schema:
        case str() if schema in named:
            return named[schema]
        case [*branches] if len(branches) == _BRANCHES and "null" in branches:
            return type_of(branches[1 - branches.index("null")], named)
        case {"type": "record", "name": name, "fields": fields}:
            found = pa.struct([pa.field(field["name"], type_of(field["type"], named)) for field in fields])
        case {"type": "enum", "name": name}:
            found = pa.string()
        case {"type": "fixed", "name": name} if schema.get("logicalType") not in _PARTLY_TYPED:
            found = pa.binary()
        case {"type": "array", "items": items}:
            return pa.list_(pa.field("element", type_of(items, named)))
        case {"type": "map", "values": values}:
            return pa.map_(pa.string(), type_of(values, named))
        case {"type": dict() | list() as inside}:
            return type_of(inside, named)
        case _:
            raise ValueError(f"there is no column for the Avro type {schema}")
    named[name] = found
    return found


@dataclass(frozen=True)
class AvroDecoder:
    """
    Decodes values that were written with this schema, without any framing.
    """

    schema: str

    @cached_property
    def type(self) -> pa.DataType:
        return type_of(self._parsed)

    def decode(self, column: pa.Array) -> pa.Array:
        return self._one_by_one(column) if self._node is None else self._by_column(column)

    def doubtful(self, column: pa.Array) -> np.ndarray:
        return np.zeros(len(column), bool)

    def salvage(self, value: bytes) -> pa.Array:
        """
        Nothing, as in Spark.
        """
        return pa.nulls(1, self.type)

    @cached_property
    def _parsed(self) -> Any:
        return json.loads(self.schema)

    @cached_property
    def _node(self) -> Any:
        return node_of(self._parsed)

    def _by_column(self, column: pa.Array) -> pa.Array:
        _, offsets, buffer = column.buffers()
        if not len(column) or buffer is None:
            return self._one_by_one(column)
        borders = np.frombuffer(offsets, np.int32)[column.offset : column.offset + len(column) + 1].astype(np.int64)
        try:
            # Ends with the last value, so that a step beyond it is an IndexError.
            data = np.frombuffer(buffer, np.uint8)[: borders[-1]]
            make, at = self._node.step(Source(data, buffer), borders[:-1])
            if not np.array_equal(at, borders[1:]):
                raise IndexError("it ends elsewhere")
            return make()
        except (IndexError, TooLong, pa.ArrowInvalid) as error:
            if len(column) > 1:
                raise ValueError("one of the values does not match the schema") from error
            return self._one_by_one(column)  # which says what is wrong

    def _one_by_one(self, column: pa.Array) -> pa.Array:
        from fastavro import parse_schema, schemaless_reader

        schema = parse_schema(self._parsed)
        rows = []
        for value in column.to_pylist():
            source = io.BytesIO(value)
            try:
                rows.append(schemaless_reader(source, schema, None))
            except Exception as error:  # fastavro raises many kinds
                raise ValueError(f"{value[:40]!r} does not match the schema: {error or type(error).__name__}") from None
            if source.read(1):
                raise ValueError(f"{value[:40]!r} does not match the schema: bytes follow")
        return pa.array(rows, self.type)


def avro_decoder(schema: str) -> AvroDecoder:
    decoder = AvroDecoder(schema)
    if decoder.type is None or not schema:
        raise ValueError(schema)
    return decoder
