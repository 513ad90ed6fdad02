"""
Our tables against the JSON from which Kafka's own classes are generated, for what bytes do not show: above all the
defaults.

The jars have the JSON. Kafka 4.3 is asked first, and 3.9 for the versions that Kafka 4 dropped.

Three differences in defaults are deliberate:

 - a struct stands for itself or is None, when it is tagged and absent; Kafka makes up one that is full of defaults
 - a field that may be null in all its versions, and has no default, is None; Kafka makes up "" or an empty list. Not so
   a tagged field: there the default is what absence means on the wire
 - a field that must be given here has no default; it is compared as if it had its type's empty value, so that none may
   be required for which Kafka states another
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any
from zipfile import ZipFile

import pytest

from kgateway.messages.catalogue import apis, messages
from kgateway.wire.headers import RequestHeader, ResponseHeader
from kgateway.wire.schema import Field, Message, Struct, parse_versions
from kgateway.wire.types import Binary, Fixed, ListOf, Referenced, StructOf, Text, UuidType, WireType
from kgateway.wire.uuids import ZERO, Uuid
from tests.kafka.oracle import HERE

pytestmark = pytest.mark.kafka

Json = dict[str, Any]

_GENERATIONS = ("old", "new")  # the later one counts if both have a version
_PREVIEWS = ("ShareFetch", "ShareAcknowledge", "ShareGroup")  # v0 is in 3.9, as a trial only; 4.3 begins with v1
_BETWEEN_BROKERS = {83, 84, 85, 86, 87}  # the share coordinator's state (KIP-932): no client or tool sends them
_COMMENTS = re.compile(r"^\s*//.*$", re.MULTILINE)
_NAMES: dict[WireType, str] = {
    Fixed("?"): "bool",
    Fixed("b"): "int8",
    Fixed("h"): "int16",
    Fixed("H"): "uint16",
    Fixed("i"): "int32",
    Fixed("I"): "uint32",
    Fixed("q"): "int64",
    Fixed("d"): "float64",
    Text(): "string",
    Binary(): "bytes",
    Referenced(): "records",
    UuidType(): "uuid",
}
_EMPTY = {
    "bool": False,
    "float64": 0.0,
    "string": "",
    "bytes": b"",
    "records": None,
    "uuid": ZERO,
    "struct": None,
}


@dataclass(frozen=True, slots=True)
class Row:
    """
    A field in one version, as either side has it.
    """

    version: int
    path: str
    type: str
    nullable: bool
    tag: int | None
    compact: bool
    default: Any


def _ours(struct: type[Struct], version: int, compact: bool, path: str = "") -> Iterator[Row]:
    for field in struct.__fields__:
        if version in field.versions:
            here = f"{path}/{field.name.replace('_', '')}"
            yield _our_row(field, version, compact, here)
            match field.type:
                case StructOf(nested) | ListOf(StructOf(nested)):
                    yield from _ours(nested, version, compact, here)


def _our_row(field: Field, version: int, compact: bool, path: str) -> Row:
    return Row(
        version,
        path,
        _type_name(field.type),
        version in field.nullable,
        field.tag,
        compact and not field.classic,
        field.default,
    )


def _type_name(kind: WireType) -> str:
    match kind:
        case ListOf(item):
            return "[]" + _type_name(item)
        case StructOf():
            return "struct"
        case _:
            return _NAMES[kind]


class Definition:
    """
    One of Kafka's JSON files.
    """

    def __init__(self, text: str) -> None:
        self.json: Json = json.loads(_COMMENTS.sub("", text))
        self.versions = parse_versions(self.json["validVersions"])
        self.flexible = _versions(self.json, "flexibleVersions")
        self._shared = {struct["name"]: struct["fields"] for struct in self.json.get("commonStructs", [])}

    def rows(self, version: int) -> list[Row]:
        """
        The fields in one version, each struct followed by its own, with the defaults that they should have here.
        """
        return list(self._rows(self.json["fields"], version, ""))

    def _rows(self, fields: list[Json], version: int, path: str) -> Iterator[Row]:
        for field in fields:
            if version in _field_versions(field):
                here = f"{path}/{field['name'].lower()}"
                yield self._row(field, version, here)
                nested = self._shared.get(field["type"].removeprefix("[]"), [])
                yield from self._rows(field.get("fields", nested), version, here)

    def _row(self, field: Json, version: int, path: str) -> Row:
        kind = re.sub(r"[A-Z]\w*", "struct", field["type"])
        return Row(
            version,
            path,
            kind,
            version in _versions(field, "nullableVersions"),
            field["tag"] if version in _versions(field, "taggedVersions") else None,
            version in (_versions(field, "flexibleVersions") if "flexibleVersions" in field else self.flexible),
            None if _is_none_here(field) else _default(kind, field.get("default")),
        )


def _versions(stated: Json, name: str) -> range:
    return parse_versions(stated.get(name, "none"))


def _field_versions(field: Json) -> range:
    return _versions(field, "versions" if "versions" in field else "taggedVersions")


def _is_none_here(field: Json) -> bool:
    versions = _field_versions(field)
    always_nullable = set(versions) <= set(_versions(field, "nullableVersions"))
    return always_nullable and field.get("default") is None and "tag" not in field


def _default(kind: str, given: Any) -> Any:
    """
    The value that Kafka's generator makes of a default: mostly text, "null" for null, and nothing (also a null) for
    nothing.
    """
    if given == "null":
        return None
    if given is None or given == "":
        return () if kind.startswith("[]") else _EMPTY.get(kind, 0)
    match kind:
        case "bool":
            return given in (True, "true")
        case "string":
            return given
        case "uuid":
            return Uuid.parse(given)
        case "float64":
            return float(given)
        case _:
            return int(str(given), 0)


@cache
def _definitions(generation: str) -> dict[str, Definition]:
    found = {}
    for path in (HERE / "target" / generation).iterdir():
        with ZipFile(path) as jar:
            for name in jar.namelist():
                if re.fullmatch(r"common/message/\w+\.json", name):
                    definition = Definition(jar.read(name).decode())
                    found[definition.json["name"]] = definition
    return found


def _by_version(name: str) -> dict[int, Definition]:
    return {
        version: definition
        for generation in _GENERATIONS
        if not (generation == "old" and name.startswith(_PREVIEWS))
        and (definition := _definitions(generation).get(name))
        for version in definition.versions
    }


each_message = pytest.mark.parametrize(
    "message", [*messages(), RequestHeader, ResponseHeader], ids=lambda message: message.__name__
)


@each_message
def test_class_line_is_kafkas(message: type[Message]) -> None:
    """
    A message has Kafka's key, versions and flexible versions.
    """
    spec = message.__spec__
    theirs = sorted(_by_version(spec.name).items())
    assert [(spec.key, version, spec.flexible) for version in spec.versions] == [
        (definition.json.get("apiKey"), version, definition.flexible) for version, definition in theirs
    ]


@each_message
def test_fields_are_kafkas(message: type[Message]) -> None:
    """
    In each version the fields equal Kafka's, in order, with the same types, nulls, tags and defaults.
    """
    spec = message.__spec__
    for version, definition in _by_version(spec.name).items():
        assert list(_ours(message, version, version in spec.flexible)) == definition.rows(version)


def test_every_request_to_a_broker_has_a_table() -> None:
    """
    Every message that a client or an admin tool may send to a broker has a table.
    """
    requests = [definition.json for definition in _definitions("new").values() if definition.json["type"] == "request"]
    keys = {request["apiKey"] for request in requests if "broker" in request.get("listeners", [])}
    assert sorted(keys - _BETWEEN_BROKERS - apis().keys()) == []
