"""
JSON to typed columns.
"""

import json
import pickle
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.types import (
    ArrayType,
    BooleanType,
    DoubleType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from kgateway.spark.decoders.json import json_decoder
from kgateway.spark.decoders.parse_mode import ColumnDecoder, ParseMode

SCHEMA = StructType(
    [
        StructField("id", LongType()),
        StructField("price", DoubleType()),
        StructField("who", StringType()),
        StructField("paid", BooleanType()),
        StructField("at", TimestampType()),
        StructField(
            "lines", ArrayType(StructType([StructField("sku", StringType()), StructField("n", IntegerType())]))
        ),
    ]
)
_LINE = st.fixed_dictionaries({"sku": st.none() | st.text(max_size=9), "n": st.none() | st.integers(-9, 9)})
_ROWS = st.fixed_dictionaries(
    {
        "id": st.none() | st.integers(-(1 << 63), (1 << 63) - 1),
        "price": st.none() | st.floats(allow_nan=False, allow_infinity=False),
        "who": st.none() | st.text(max_size=20),
        "paid": st.none() | st.booleans(),
        "at": st.none(),
        "lines": st.none() | st.lists(_LINE, max_size=2),
    }
)


def decoded(*values: bytes | None) -> list[Any]:
    """
    The columns decoded from these values, all of which have to match the schema.
    """
    columns = {"value": pa.array(values, pa.binary())}
    rows: list[Any] = (
        ColumnDecoder(json_decoder(SCHEMA.json()), ParseMode.FAILFAST).decode(columns, "value")["value"].to_pylist()
    )
    return rows


@given(st.lists(st.none() | _ROWS, max_size=6), st.sampled_from([None, 2]))
def test_columns_equal_what_was_written(rows: list[Any], indent: int | None) -> None:
    """
    Objects come out as they went in, on one line or many, and null values remain null.
    """
    values = [None if row is None else json.dumps(row, indent=indent).encode() for row in rows]
    assert decoded(*values) == rows


def test_fields_of_other_schemas() -> None:
    """
    Fields unknown to the schema are ignored, missing ones are null; order does not matter.
    """
    [row] = decoded(b'{"new": {"x": [1]}, "who": "me", "id": 3}')
    assert row == {"id": 3, "price": None, "who": "me", "paid": None, "at": None, "lines": None}


def test_the_field_that_does_not_match_is_named() -> None:
    with pytest.raises(ValueError, match="the field id is not of type int64"):
        decoded(b"{}", b'{"id": "x"}')


def test_timestamps_are_texts() -> None:
    """
    Timestamps are in ISO 8601.
    """
    [row] = decoded(b'{"at": "2026-11-22T12:00:00Z"}')
    assert row["at"] == datetime(2026, 11, 22, 12, tzinfo=UTC)


def test_nothing_is_null() -> None:
    """
    A value without bytes has no fields that could be wrong: it is null, as in Spark.
    """
    assert decoded(b"", b" ", b"{}")[:2] == [None, None]


@pytest.mark.parametrize("damaged", [b"{", b"[1]", b"3", b"null", b'{"id": "x"}', b'{"id": 1}{"id": 2}', b"\xff"])
def test_damage_is_reported(damaged: bytes) -> None:
    """
    The error has the value that is no object of the schema, wherever in the column it is.
    """
    for values in ([b"{}", damaged], [damaged, b"{}"], [damaged]):
        with pytest.raises(ValueError, match="does not match the schema"):
            decoded(*values)


def test_a_decoder_is_sent_to_tasks() -> None:
    """
    A decoder is picklable, and decodes the same afterwards.
    """
    decoder = pickle.loads(pickle.dumps(json_decoder(SCHEMA.json())))
    assert decoder.decode(pa.array([b'{"id": 3}'])).to_pylist()[0]["id"] == 3
