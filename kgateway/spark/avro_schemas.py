"""
Avro schemas: which can be read by column, and what the columns of the others are.
"""

from typing import Any

import pyarrow as pa

from kgateway.spark.avro_nodes import Fixed, Group, Node, Nullable, Sized, Whole

_MS = 1_000  # microseconds
_INSTANT = pa.timestamp("us", "UTC")
_LOGICAL: dict[tuple[str, str], Node] = {
    ("int", "date"): Whole(pa.date32(), 32),
    ("long", "timestamp-millis"): Whole(_INSTANT, scale=_MS),
    ("long", "timestamp-micros"): Whole(_INSTANT),
}
_PLAIN: dict[str, Node] = {
    "int": Whole(pa.int32(), 32),
    "long": Whole(pa.int64()),
    "float": Fixed(pa.float32(), "<f4"),
    "double": Fixed(pa.float64(), "<f8"),
    "boolean": Fixed(pa.bool_(), "?"),
    "string": Sized(pa.string()),
    "bytes": Sized(pa.binary()),
}
_PARTLY_TYPED = {"decimal", "uuid", "duration", "time-millis", "time-micros"}  # fastavro makes objects of them
_BRANCHES = 2


def node_of(schema: Any) -> Node | None:
    """
    How a schema is read by column; `None` where it cannot be.
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
    return Group(tuple(field["name"] for field in fields), tuple(there))


def _union(branches: list[Any]) -> Node | None:
    if len(branches) != _BRANCHES or "null" not in branches:
        return None
    null_branch = branches.index("null")
    inside = node_of(branches[1 - null_branch])
    return Nullable(inside, null_branch) if inside and not isinstance(inside, Nullable) else None


def type_of(schema: Any, named: dict[str, Any] | None = None) -> pa.DataType:
    """
    The column of a schema that is read value by value; a ValueError where there is none.
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
