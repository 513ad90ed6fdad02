"""
Our messages in kafka-python's classes.

It has two sets of tables: containers made from JSON for today's brokers, and handwritten tuples in
`kafka.protocol.old` that reach back to version 0.
"""

import importlib
import pkgutil
import uuid
from collections.abc import Iterator
from functools import cache
from typing import Any

import kafka.protocol
from kafka.protocol.api_message import ApiMessage
from kafka.protocol.old.api import Request, Response

from kgateway.wire.schema import Struct
from kgateway.wire.types import ListOf, StructOf, UuidType, WireType
from kgateway.wire.uuids import ZERO


def _import_all() -> None:
    for module in pkgutil.walk_packages(kafka.protocol.__path__, "kafka.protocol."):
        if not module.name.endswith("generate_stubs"):
            importlib.import_module(module.name)


@cache
def containers() -> dict[str, Any]:
    """
    The classes made from JSON, by message name.
    """
    _import_all()
    return {cls.__name__: cls for cls in ApiMessage.__subclasses__()}


@cache
def tuples() -> dict[tuple[str, int], Any]:
    """
    The handwritten classes, by message name and version.
    """
    _import_all()
    found = [*_descendants(Request), *_descendants(Response)]
    return {(cls.__name__.rpartition("_v")[0], cls.API_VERSION): cls for cls in found if "_v" in cls.__name__}


def _descendants(cls: Any) -> Iterator[Any]:
    for child in cls.__subclasses__():
        yield child
        yield from _descendants(child)


def to_container(value: Struct, theirs: Any, version: int, *, outermost: bool = True) -> Any:
    """
    Our struct as the container that kafka-python makes from JSON.
    """
    fields = theirs._struct.fields if outermost else theirs.fields
    present = [f for f in fields.values() if f.for_version_q(version)]
    ours = [f for f in value.__fields__ if version in f.versions]
    filled = {}
    for our, their in zip(ours, present, strict=True):
        if our.name.replace("_", "") != their.name.replace("_", "") and their.type_str != "bitfield":
            raise AssertionError(f"{our.name} stands where kafka-python has {their.name}")
        item = getattr(value, our.name)
        if item is None and our.tag is not None:
            continue
        filled[their.name] = _item(item, our.type, their, version)
    return theirs(version=version, **filled) if outermost else theirs.data_class(version=version, **filled)


def _item(value: Any, kind: WireType, their: Any, version: int) -> Any:
    match kind:
        case _ if value is None:
            return None
        case ListOf(StructOf()):
            return [to_container(one, their, version, outermost=False) for one in value]
        case StructOf():
            return to_container(value, their, version, outermost=False)
        case ListOf(UuidType()):
            return [uuid.UUID(bytes=bytes(one)) for one in value]
        case UuidType():
            return uuid.UUID(bytes=bytes(value)) if value != ZERO else None
        case _ if their.type_str == "bitfield":
            return {bit for bit in range(32) if value >> bit & 1}
        case _:
            return value


def to_tuple(value: Struct, version: int) -> tuple[Any, ...]:
    """
    Our struct as the nested tuples of the handwritten tables.
    """
    present = [f for f in value.__fields__ if version in f.versions]
    return tuple(_nested(getattr(value, f.name), version) for f in present)


def _nested(value: Any, version: int) -> Any:
    if isinstance(value, Struct):
        return to_tuple(value, version)
    return [_nested(one, version) for one in value] if isinstance(value, list) else value
