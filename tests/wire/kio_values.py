"""
Our messages in kio's classes. Fields match by position, because kio renames some (`timeout` for `timeout_ms`).
"""

import dataclasses
import datetime
import importlib
import uuid
from typing import Any

from hypothesis import strategies as st
from kio.schema.errors import ErrorCode as KioErrorCode
from kio.schema.index import schema_name_map
from kio.static.constants import EntityType

from kgateway.wire.schema import Field, Message, Struct
from kgateway.wire.types import ListOf, StructOf, WireType

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MS = datetime.timedelta(milliseconds=1)
_CODES = st.sampled_from([code.value for code in KioErrorCode])
# kio turns these numbers into datetimes and timedeltas through floats, which lose precision far from zero.
_MOMENTS = st.integers(0, 1 << 42)
_SPANS = st.integers(-(1 << 42), 1 << 42)


def kio_class(message: type[Message], version: int) -> Any:
    """
    kio's class for a message in a version, or `None`.
    """
    name, kind = kio_name(message)
    path = schema_name_map.get(name, {}).get(version, {}).get(kind)
    if path is None:
        return None
    module, _, attribute = path.partition(":")
    return getattr(importlib.import_module(module), attribute)


def kio_name(message: type[Message]) -> tuple[str, Any]:
    """
    kio's name for a message, and whether it is a request, a response, a header or data.
    """
    name = message.__spec__.name
    for suffix, kind in (("Request", EntityType.request), ("Response", EntityType.response)):
        if name.endswith(suffix):
            return _snake(name.removesuffix(suffix)), kind
    return _snake(name), EntityType.header if name.endswith("Header") else EntityType.data


def _snake(name: str) -> str:
    return "".join("_" + letter.lower() if letter.isupper() else letter for letter in name).lstrip("_")


def narrowed(field: Field) -> st.SearchStrategy[Any] | None:
    """
    Values for the fields whose kio types hold less than the wire does.
    """
    if field.name.endswith("error_code"):
        return _CODES
    if field.name in ("log_append_time_ms", "transaction_start_time_ms") or field.name.endswith("_timestamp_ms"):
        return _MOMENTS
    if field.name in ("expiry_time_period_ms", "max_lifetime_ms", "renew_period_ms", "session_lifetime_ms"):
        return _SPANS
    return _SPANS if field.name == "retention_time_ms" else None


def to_kio(value: Struct, kio: Any, version: int) -> Any:
    """
    Our struct as kio's.
    """
    ours = [f for f in value.__fields__ if version in f.versions]
    theirs = dataclasses.fields(kio)
    if len(ours) != len(theirs):
        raise AssertionError(f"{value.__class__.__qualname__} v{version}: {ours} against {theirs}")
    filled = {}
    for our, their in zip(ours, theirs, strict=True):
        if not _plain(our.name).startswith(_plain(their.name)):
            raise AssertionError(f"{our.name} stands where kio has {their.name}")
        item = getattr(value, our.name)
        if item is None and our.tag is not None and isinstance(our.type, StructOf):
            continue  # absent
        filled[their.name] = _convert(item, our.type, their, version)
    return kio(**filled)


def _plain(name: str) -> str:
    return name.replace("_", "")


def _convert(value: Any, kind: WireType, their: dataclasses.Field[Any], version: int) -> Any:
    match kind:
        case _ if value is None:
            return None
        case StructOf():
            return to_kio(value, _entity(their.type), version)
        case ListOf(StructOf()):
            return tuple(to_kio(item, _entity(their.type), version) for item in value)
        case ListOf():
            return tuple(_scalar(item, their) for item in value)
        case _:
            return _scalar(value, their)


def _scalar(value: Any, their: dataclasses.Field[Any]) -> Any:
    match their.metadata["kafka_type"]:
        case "error_code":
            return KioErrorCode(value)
        case "timedelta_i32" | "timedelta_i64":
            return value * _MS
        case "datetime_i64":
            return None if value == -1 else _EPOCH + value * _MS
        case "uuid":
            return uuid.UUID(bytes=bytes(value)) if any(value) else None
        case _:
            return value


def _entity(annotation: Any) -> Any:
    """
    The class inside `Entity`, `Entity | None` or `tuple[Entity, ...]`.
    """
    while not dataclasses.is_dataclass(annotation):
        annotation = annotation.__args__[0]
    return annotation
