"""
Avro decoded by column, compared with fastavro.
"""

import io
import json
import pickle
from datetime import UTC, date, datetime
from typing import Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgateway.spark.decoders.avro import AvroDecoder, avro_decoder, node_of
from kgateway.spark.decoders.parse_mode import ColumnDecoder, ParseMode

_LONG = st.integers(-(1 << 63), (1 << 63) - 1)
_DAY = st.dates(date(1, 1, 1), date(9999, 12, 31))
_TIME = st.datetimes(datetime(1, 1, 2), datetime(9999, 12, 30), timezones=st.just(UTC))  # noqa: DTZ001, bounds
PLAIN: dict[str, tuple[Any, st.SearchStrategy[Any]]] = {
    "int": ("int", st.integers(-(1 << 31), (1 << 31) - 1)),
    "long": ("long", _LONG),
    "float": ("float", st.floats(width=32, allow_nan=False)),
    "double": ("double", st.floats(allow_nan=False)),
    "boolean": ("boolean", st.booleans()),
    "string": ("string", st.text(max_size=70)),
    "bytes": ("bytes", st.binary(max_size=70)),
    "date": ({"type": "int", "logicalType": "date"}, _DAY),
    "micros": ({"type": "long", "logicalType": "timestamp-micros"}, _TIME),
    "millis": (
        {"type": "long", "logicalType": "timestamp-millis"},
        _TIME.map(lambda time: time.replace(microsecond=time.microsecond // 1000 * 1000)),
    ),
}


def written(schema: Any, value: Any) -> bytes:
    """
    A value as fastavro writes it.
    """
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


@st.composite
def tables(draw: Any, depth: int = 1) -> tuple[Any, st.SearchStrategy[Any]]:
    """
    Schemas of records, and values of them.
    """
    fields, values = [], {}
    for number in range(draw(st.integers(1, 5))):
        if depth and draw(st.booleans()):
            kind, value = draw(tables(depth - 1))
            kind["name"] = f"R{depth}{number}"
        else:
            kind, value = PLAIN[draw(st.sampled_from(sorted(PLAIN)))]
        match draw(st.sampled_from(["plain", "null first", "null last"])):
            case "null first":
                kind, value = ["null", kind], st.none() | value
            case "null last":
                kind, value = [kind, "null"], st.none() | value
        fields.append({"name": f"f{number}", "type": kind})
        values[f"f{number}"] = value
    return {"type": "record", "name": f"R{depth}", "fields": fields}, st.fixed_dictionaries(values)


@given(st.data())
def test_columns_equal_what_was_written(data: Any) -> None:
    """
    Records of all plain types, nested, with nullable fields, come out as they went in; so do null values.
    """
    schema, values = data.draw(tables())
    rows = data.draw(st.lists(st.none() | values, max_size=8))
    assert node_of(schema), "it can be read by column"
    column = pa.array([None if row is None else written(schema, row) for row in rows], pa.binary())
    decoder = AvroDecoder(json.dumps(schema))
    decoded = ColumnDecoder(decoder, ParseMode.FAILFAST).decode({"value": column}, "value")["value"]
    assert decoded.type == decoder.type
    assert decoded.to_pylist() == rows


ODD = {
    "type": "record",
    "name": "Odd",
    "fields": [
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["A", "B"]}},
        {"name": "again", "type": ["null", "Kind"]},
        {"name": "many", "type": {"type": "array", "items": "long"}},
        {"name": "named", "type": {"type": "map", "values": "string"}},
        {"name": "four", "type": {"type": "fixed", "name": "Four", "size": 4}},
    ],
}


def test_other_types_are_read_one_by_one() -> None:
    """
    Enums, arrays, maps and fixed bytes have columns as well.
    """
    rows = [{"kind": "B", "again": "A", "many": [1, 2], "named": {"x": "y"}, "four": b"1234"}]
    assert node_of(ODD) is None
    decoded = AvroDecoder(json.dumps(ODD)).decode(pa.array([written(ODD, row) for row in rows]))
    assert decoded.to_pylist() == [row | {"named": [("x", "y")]} for row in rows]


ORDER = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": "id", "type": "long"}, {"name": "who", "type": ["null", "string"]}],
}
GOOD = written(ORDER, {"id": 7, "who": "me"})
DAMAGED = {
    "cut off": GOOD[:-1],
    "too long": GOOD + b"\0",
    "empty": b"",
    "a branch that is none": b"\x0e\x04\x04me",
    "a length below 0": b"\x0e\x02\x01",
    "a length beyond the end": b"\x0e\x02\x7eme",
    "no text": b"\x0e\x02\x02\xff",
    "a number that never ends": b"\xff" * 12,
}


@pytest.mark.parametrize("damaged", DAMAGED.values(), ids=DAMAGED.keys())
def test_damage_is_reported(damaged: bytes) -> None:
    """
    The error shows the value that does not fit the schema, wherever it is in the column.
    """
    decoder = AvroDecoder(json.dumps(ORDER))
    for column in ([GOOD, damaged], [damaged, GOOD], [damaged]):
        with pytest.raises(ValueError, match="not match the schema"):
            decoder.decode(pa.array(column, pa.binary()))


def test_a_value_does_not_reach_into_the_next() -> None:
    """
    A value that is cut off is not completed by the bytes behind it.
    """
    decoder = AvroDecoder(json.dumps(ORDER))
    for column in ([b"\x0e\x02", b"\x01\x00"], [b"\x0e\x02\x08me", b"\x0e\x00"]):
        with pytest.raises(ValueError, match="not match the schema"):
            decoder.decode(pa.array(column, pa.binary()))


@given(st.lists(st.binary(max_size=24), min_size=1, max_size=4))
def test_any_bytes_are_read_or_refused(values: list[bytes]) -> None:
    """
    A decoder of arbitrary bytes returns what fastavro reads, or nothing.
    """
    try:
        found = AvroDecoder(json.dumps(ORDER)).decode(pa.array(values, pa.binary())).to_pylist()
    except ValueError:
        return
    assert found == [fastavro.schemaless_reader(io.BytesIO(value), ORDER, None) for value in values]


@pytest.mark.parametrize("schema", ["", "{", '"nonsense"', '["int", "string"]', '{"type": "record", "name": "x"}'])
def test_a_schema_without_a_column_is_refused(schema: str) -> None:
    """
    A schema without a column type is refused when the query is made.
    """
    with pytest.raises((ValueError, KeyError)):
        avro_decoder(schema)


def test_a_decoder_is_sent_to_tasks() -> None:
    """
    A decoder is picklable after use, and decodes the same afterwards.
    """
    decoder = avro_decoder(json.dumps(ORDER))
    column = pa.array([GOOD])
    assert decoder.decode(column).to_pylist() == [{"id": 7, "who": "me"}]
    assert pickle.loads(pickle.dumps(decoder)).decode(column).to_pylist() == [{"id": 7, "who": "me"}]
