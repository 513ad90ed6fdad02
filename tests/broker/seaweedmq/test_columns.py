"""
Values with columns that others wrote.
"""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kgateway.broker.seaweed.protos.schema_pb2 import (
    DateValue,
    DecimalValue,
    ListValue,
    RecordValue,
    TimestampValue,
    TimeValue,
    Value,
)
from kgateway.broker.seaweedmq.formats.columns import columns_of, json_of

DAY_US = 86_400_000_000


def text(**fields: Value) -> Any:
    """
    The JSON text of the columns.
    """
    record = columns_of(RecordValue(fields=fields).SerializeToString())
    assert record is not None
    return json.loads(json_of(record))


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (Value(bool_value=False), False),
        (Value(int32_value=-5), -5),
        (Value(int64_value=(1 << 63) - 1), (1 << 63) - 1),
        (Value(float_value=0.5), 0.5),
        (Value(double_value=1.25), 1.25),
        (Value(double_value=float("nan")), "NaN"),
        (Value(float_value=float("-inf")), "-Infinity"),
        (Value(bytes_value=b"\0\xff"), "AP8="),
        (Value(string_value="text ü"), "text ü"),
        (Value(timestamp_value=TimestampValue(timestamp_micros=1, is_utc=True)), "1970-01-01T00:00:00.000001Z"),
        (Value(timestamp_value=TimestampValue(timestamp_micros=-DAY_US)), "1969-12-31T00:00:00"),
        (Value(timestamp_value=TimestampValue(timestamp_micros=1 << 62)), 1 << 62),
        (Value(date_value=DateValue(days_since_epoch=20_000)), "2024-10-04"),
        (Value(date_value=DateValue(days_since_epoch=-(1 << 31))), -(1 << 31)),
        (Value(time_value=TimeValue(time_micros=DAY_US - 1)), "23:59:59.999999"),
        (Value(time_value=TimeValue(time_micros=DAY_US)), DAY_US),
        (Value(time_value=TimeValue(time_micros=-1)), -1),
        (Value(decimal_value=DecimalValue(value=b"\xff\x85", precision=3, scale=2)), "-1.23"),
        (Value(decimal_value=DecimalValue(value=b"\1", scale=(1 << 31) - 1)), "1E-2147483647"),
        (Value(list_value=ListValue(values=[Value(int32_value=1), Value()])), [1, None]),
        (Value(record_value=RecordValue(fields={"b": Value(int32_value=1), "a": Value()})), {"a": None, "b": 1}),
    ],
)
def test_each_kind_has_a_text(value: Value, shown: Any) -> None:
    """
    JSON's own values are used if there are any; times out of any calendar remain numbers.
    """
    assert text(column=value) == {"column": shown}


def test_columns_stand_by_name() -> None:
    """
    The order in which the columns were written is not known.
    """
    assert list(text(b=Value(int32_value=1), a=Value(int32_value=2), c=Value(int32_value=3))) == ["a", "b", "c"]


def columns(**fields: Value) -> bytes:
    return RecordValue(fields=fields).SerializeToString()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"hello",
        columns(a=Value()),
        columns(**{"": Value(int32_value=1)}),
        columns(**{"\n": Value(int32_value=1)}),
        columns(a=Value(int32_value=1)) + b"\x10\1",
        columns(a=Value(int32_value=1)) * 2,
        columns(a=Value(int32_value=1))[:-1],
    ],
)
def test_other_bytes_have_no_columns(data: bytes) -> None:
    """
    They are empty, text, a column without a value or a name, a field that no RecordValue has, a column twice, or half
    of one.
    """
    assert columns_of(data) is None


@given(st.text(st.characters(codec="ascii", exclude_categories=["Cc"])))
def test_text_has_no_columns(data: str) -> None:
    """
    Nothing that people write is mistaken for columns.
    """
    assert columns_of(data.encode()) is None
