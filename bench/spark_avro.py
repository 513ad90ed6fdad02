"""
How fast values in Avro become typed columns, on one processor: `python -m bench.spark_avro`.

A column of values with ten fields, as a task of Spark has it, beside what a function in Python does that is called for
each value, as for `from_avro`: fastavro makes a dictionary of it. The aim is five times that.
"""

import io
import json
import random
from collections.abc import Callable

import pyarrow as pa
from fastavro import parse_schema, schemaless_reader, schemaless_writer

from bench.pairing import timed
from bench.recording import recorded, results_file
from bench.records import TEXT
from kgateway.spark.decoders.avro import avro_decoder

COUNT = 20_000  # about as many as are decoded together
_LONG, _TEXT = "long", "string"
SCHEMAS: dict[str, list[tuple[str, object]]] = {
    "10 numbers": [(f"n{number}", _LONG) for number in range(10)],
    "10 fields of all kinds": [
        *[(f"n{number}", _LONG) for number in range(3)],
        *[(f"s{number}", _TEXT) for number in range(3)],
        ("i", "int"),
        ("d", "double"),
        ("b", "boolean"),
        ("m", ["null", _TEXT]),
    ],
    "10 texts": [(f"s{number}", _TEXT) for number in range(10)],
}
_MAKE: dict[str, Callable[[random.Random], object]] = {
    _LONG: lambda chance: chance.randrange(-(1 << 40), 1 << 40),
    "int": lambda chance: chance.randrange(1 << 20),
    "double": lambda chance: chance.random(),
    "boolean": lambda chance: chance.random() < 0.5,  # half of them
    _TEXT: lambda chance: TEXT[:200].decode("latin-1")[: chance.randrange(20)],
}


def schema(fields: list[tuple[str, object]]) -> str:
    named = [{"name": name, "type": kind} for name, kind in fields]
    return json.dumps({"type": "record", "name": "row", "fields": named})


def values(fields: list[tuple[str, object]]) -> list[bytes]:
    """
    The same values each time.
    """
    parsed, chance, found = parse_schema(json.loads(schema(fields))), random.Random(1), list[bytes]()
    for _ in range(COUNT):
        row = {name: _one(kind, chance) for name, kind in fields}
        buffer = io.BytesIO()
        schemaless_writer(buffer, parsed, row)
        found.append(buffer.getvalue())
    return found


def _one(kind: object, chance: random.Random) -> object:
    if isinstance(kind, list):
        return _one(kind[1], chance) if chance.random() < 0.9 else None  # most of them
    return _MAKE[str(kind)](chance)


def _row(what: str, fields: list[tuple[str, object]]) -> str:
    found, text = values(fields), schema(fields)
    column, decoder, parsed = pa.array(found, pa.binary()), avro_decoder(text), parse_schema(json.loads(text))

    def each() -> pa.Array:
        return pa.array([schemaless_reader(io.BytesIO(value), parsed, None) for value in found], decoder.type)

    assert decoder.decode(column).equals(each())
    took = timed({"columns": lambda: decoder.decode(column), "each": each})
    fast, slow = (COUNT / took[way] for way in ("columns", "each"))
    size = sum(map(len, found)) / COUNT
    return f"| {what} | {size:.0f} | {fast:.2f} | {slow:.2f} | {fast / slow:.1f} x |"


def measure() -> None:
    print("| values | bytes | M values/s | value by value | columns / value by value |")
    print("|---|---:|---:|---:|---:|")
    for what, fields in SCHEMAS.items():
        print(_row(what, fields), flush=True)


if __name__ == "__main__":
    with recorded(results_file("spark_avro"), "numpy", "pyarrow", "fastavro") as recording, recording.of("spark_avro"):
        measure()
