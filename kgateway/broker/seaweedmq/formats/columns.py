"""
Values with columns that others have written: Kafka's consumers get them as JSON text.

SeaweedMQ does not say of a value whether it has columns, so the bytes decide: it has them if it is nothing but a
RecordValue of at least one column, each with a printable name and a value. Names are sorted. Bytes become base64, times
ISO 8601, decimals the text of the number, and so do numbers that JSON does not have.
"""

import base64
import json
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from math import isfinite
from typing import Any

from google.protobuf.message import DecodeError

from kgateway.broker.seaweed.protos.schema_pb2 import (
    DateValue,
    DecimalValue,
    ListValue,
    RecordValue,
    TimestampValue,
    TimeValue,
    Value,
)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def columns_of(data: bytes) -> RecordValue | None:
    """
    The columns of a value, if it has any.
    """
    try:
        record = RecordValue.FromString(data)
    except DecodeError:
        return None
    if not record.fields:
        return None
    record.DiscardUnknownFields()
    return record if record.ByteSize() == len(data) and _is_named(record) else None


def _is_named(record: RecordValue) -> bool:
    return all(name and name.isprintable() and value.WhichOneof("kind") for name, value in record.fields.items())


def json_of(record: RecordValue) -> bytes:
    return json.dumps(_record(record), ensure_ascii=False).encode()


def _record(record: RecordValue) -> dict[str, Any]:
    return {name: _value(record.fields[name]) for name in sorted(record.fields)}


def _value(value: Value) -> Any:
    kind = value.WhichOneof("kind")
    if kind is None:
        return None
    found = getattr(value, kind)
    return _TEXT[kind](found) if kind in _TEXT else found


def _float(number: float) -> float | str:
    return number if isfinite(number) else str(Decimal(number))


def _timestamp(value: TimestampValue) -> str | int:
    try:
        moment = _EPOCH + timedelta(microseconds=value.timestamp_micros)
    except OverflowError:
        return value.timestamp_micros
    text = moment.replace(tzinfo=None).isoformat()
    return f"{text}Z" if value.is_utc else text


def _date(value: DateValue) -> str | int:
    try:
        return (date(1970, 1, 1) + timedelta(days=value.days_since_epoch)).isoformat()
    except OverflowError:
        return value.days_since_epoch


def _time(value: TimeValue) -> str | int:
    seconds, micros = divmod(value.time_micros, 1_000_000)
    if not 0 <= seconds < 86_400:
        return value.time_micros
    return time(seconds // 3600, seconds // 60 % 60, seconds % 60, micros).isoformat()


def _decimal(value: DecimalValue) -> str:
    unscaled = Decimal(int.from_bytes(value.value, "big", signed=True)).as_tuple()
    return str(Decimal((unscaled.sign, unscaled.digits, -value.scale)))


def _list(value: ListValue) -> list[Any]:
    return [_value(item) for item in value.values]


_TEXT: dict[str, Callable[[Any], Any]] = {
    "bytes_value": lambda data: base64.b64encode(data).decode(),
    "float_value": _float,
    "double_value": _float,
    "timestamp_value": _timestamp,
    "date_value": _date,
    "decimal_value": _decimal,
    "time_value": _time,
    "list_value": _list,
    "record_value": _record,
}
