"""
Errors in responses, worked out from the message tables: how to answer a request that failed, and which errors an answer
has.

Kafka has two places for an error code. A response with a code of its own needs no other. Otherwise the answer mirrors
the request: for each item of the request there is one in the response, with the same name and with the code.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from kgateway.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.schema import NONE, Field, Message, Struct, parse_versions
from kgateway.wire.source import FunctionSource
from kgateway.wire.types import Binary, ListOf, Referenced, StructOf, Text, UuidType

S = TypeVar("S", bound=Struct)
M = TypeVar("M", bound=Message)
Finder = Callable[[Message], list[tuple[int, str]]]

# Kafka's responses that have the code in both places: clients of these versions look into the items too.
_TWICE = {
    "FetchResponse": parse_versions("7-12"),
    "MetadataResponse": parse_versions("13+"),
    "ElectLeadersResponse": parse_versions("1+"),
    "AlterPartitionReassignmentsResponse": parse_versions("0+"),
}
# The name of a field in a response -> its name in the request, if they differ.
_ASKED_AS = {"partition_index": "partition", "topic_name": "name", "user": "name"}
_UNANSWERED = ("forgotten_topics_data",)  # lists without a counterpart in the response
# Numbers whose -1 means none.
_ABSENT = re.compile(r"(.+_)?(offset|watermark|timestamp(_ms)?|start_time_ms)|producer_(id|epoch)|node_id|port")


def refused(request: Message, response: type[M], version: int, error: KafkaError) -> M | None:
    """
    The answer to a request that failed as a whole; `None` if the version has no place for the code.
    """
    twice = version in _TWICE.get(response.__spec__.name, NONE)
    answer = _Mirror(version, error).image(request, response, twice)
    return answer if error_finder(response)(answer) else None


def unsupported_version(served: Mapping[int, tuple[range, str]]) -> ApiVersionsResponse:
    """
    The answer, in the form of v0, to ApiVersions in a version that is not served: the versions that are (KIP-511).
    """
    key = ApiVersionsRequest.__spec__.key or 0
    versions, _ = served[key]
    own = ApiVersionsResponse.ApiKey(api_key=key, min_version=versions[0], max_version=versions[-1])
    return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[own])


@cache
def error_finder(response: type[Message]) -> Finder:
    """
    The function that finds the error codes in such a response and what each is about: `orders-3`, a group id, or "" for
    the whole request.
    """
    source = FunctionSource({})
    with source.block("def find(answer):"):
        source.line("found = []")
        _write_search(source, response, "answer", [])
        source.line("return found")
    return source.compile("find", f"errors in {response.__spec__.name}").function


def _write_search(source: FunctionSource, struct: type[Struct], variable: str, labels: list[str]) -> None:
    for field in struct.__fields__:
        if _is_code(field):
            with source.block(f"if {variable}.{field.name}:"):
                source.line(f"found.append(({variable}.{field.name}, f'{'-'.join(labels)}'))")
    for field, item in _lists_with_codes(struct):
        inner = f"{variable}_item"
        with source.block(f"for {inner} in {variable}.{field.name}{' or ()' if field.nullable else ''}:"):
            _write_search(source, item, inner, [*labels, *_label(item, inner)])


def _label(struct: type[Struct], variable: str) -> list[str]:
    """
    The part of an f-string that identifies a struct: its first name, or the id that some versions have instead.
    """
    names = [f for f in _names(struct) if not isinstance(f.type, ListOf) and not f.name.endswith("_type")]
    telling = [f"{variable}.{f.name}" for i, f in enumerate(names) if i == 0 or isinstance(f.type, UuidType)]
    return [f"{{{' or '.join(telling)}}}"] if telling else []


@dataclass(frozen=True, slots=True)
class _Mirror:
    """
    Builds a response that has one error for everything in the request.
    """

    version: int
    error: KafkaError

    def image(self, asked: object, struct: type[S], twice: bool = False) -> S:
        """
        The struct that answers an item of the request with the error.
        """
        form = _form(struct, self.version)
        values = form.blanks | {name: [] for name in form.empty_lists} | form.names_in(asked)
        if form.code:
            values[form.code] = self.error.code
        if form.explains:
            values["error_message"] = self.error.message or self.error.code.meaning
        if twice or not form.code:
            values |= {name: list(self._images(asked, item)) for name, item in form.mirrors}
        return struct(**values)

    def _images(self, asked: object, struct: type[S]) -> Iterator[S]:
        """
        A struct for each item of the request; if the items are of another kind, for each item inside them.
        """
        form = _form(struct, self.version)
        for item in _items(asked):
            if not form.names or form.names[0].name in form.names_in(item):
                yield self.image(item, struct)
            else:
                yield from self._images(item, struct)


def _items(asked: object) -> Iterator[Any]:
    if isinstance(asked, Struct):
        for field in asked.__fields__:
            if isinstance(field.type, ListOf) and field.name not in _UNANSWERED:
                yield from getattr(asked, field.name) or ()


@dataclass(frozen=True, slots=True)
class _Form:
    """
    The places for an error in a struct, in one version.
    """

    version: int
    names: list[Field]
    code: str | None
    explains: bool
    mirrors: list[tuple[str, type[Struct]]]
    blanks: dict[str, Any]
    empty_lists: list[str]

    def names_in(self, asked: object) -> dict[str, Any]:
        """
        The names in an item of the request that the struct has too.
        """
        if isinstance(asked, Message):
            return {}
        if not isinstance(asked, Struct):
            return {f.name: asked for f in self.names[:1] if isinstance(asked, str) == isinstance(f.type, Text)}
        called = [(field, own) for field in self.names for own in (_ASKED_AS.get(field.name, ""), field.name)]
        return {field.name: self._name(field, getattr(asked, own)) for field, own in called if hasattr(asked, own)}

    def _name(self, field: Field, value: Any) -> Any:
        return _blank(field) if value is None and self.version not in field.nullable else value


@cache
def _form(struct: type[Struct], version: int) -> _Form:
    required = [field for field in struct.__fields__ if field.required]
    fields = [field for field in struct.__fields__ if version in field.versions]
    blanks = {field.name: _blank(field) for field in required}
    blanks |= {field.name: -1 for field in fields if _ABSENT.fullmatch(field.name)}
    return _Form(
        version=version,
        names=_names(struct),
        code=next((field.name for field in fields if _is_code(field)), None),
        explains=any(field.name == "error_message" for field in fields),
        mirrors=[(field.name, item) for field, item in _lists_with_codes(struct) if version in field.versions],
        blanks=blanks,
        empty_lists=[field.name for field in required if blanks[field.name] == ()],
    )


def _blank(field: Field) -> Any:
    """
    The value of a required field: not every client can read a null text or null records.
    """
    match field.type:
        case Text():
            return ""
        case Binary() | Referenced():
            return b""
        case _:
            return field.default


def _names(struct: type[Struct]) -> list[Field]:
    """
    The fields that identify a struct: its texts and ids, and its first field.
    """
    with_codes = [field for field, _ in _lists_with_codes(struct)]
    plain = [field for field in struct.__fields__ if "error" not in field.name and field not in with_codes]
    return [field for i, field in enumerate(plain) if i == 0 or isinstance(field.type, Text | UuidType)]


def _lists_with_codes(struct: type[Struct]) -> list[tuple[Field, type[Struct]]]:
    """
    The lists in a struct whose items have error codes, or have such lists.
    """
    lists = [(field, field.type.item) for field in struct.__fields__ if isinstance(field.type, ListOf)]
    items: list[tuple[Field, type[Struct]]] = [(f, item.struct) for f, item in lists if isinstance(item, StructOf)]
    return [(f, item) for f, item in items if any(map(_is_code, item.__fields__)) or _lists_with_codes(item)]


def _is_code(field: Field) -> bool:
    return field.name.endswith("error_code")
