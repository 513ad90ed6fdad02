"""
What a response says of errors, worked out from its table: how to answer that a request failed, and which failures an
answer tells of.

Kafka has two places for an error code. Where a response has one of its own, that is enough. Where it has none, the
answer is a mirror: for each item of the request there is one of the response, with the same name and with the code.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeVar

from kgateway.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.schema import Field, Message, Struct
from kgateway.wire.source import Source
from kgateway.wire.types import Binary, ListOf, Referenced, Sixteen, StructOf, Text
from kgateway.wire.versions import NONE, parse_versions

S = TypeVar("S", bound=Struct)
M = TypeVar("M", bound=Message)
Finder = Callable[[Message], list[tuple[int, str]]]

# Responses that have the code in both places, as Kafka's do: clients of these versions look into the items too.
_TWICE = {
    "FetchResponse": parse_versions("7-12"),
    "MetadataResponse": parse_versions("13+"),
    "ElectLeadersResponse": parse_versions("1+"),
    "AlterPartitionReassignmentsResponse": parse_versions("0+"),
}
# What a response calls a thing -> what its request calls it, where they differ.
_ASKED_AS = {"partition_index": "partition", "topic_name": "name", "user": "name"}
_UNANSWERED = ("forgotten_topics_data",)  # a list of which the response says nothing
# Numbers of which -1 says that there is none.
_ABSENT = re.compile(r"(.+_)?(offset|watermark|timestamp(_ms)?|start_time_ms)|producer_(id|epoch)|node_id|port")


def refused(request: Message, response: type[M], version: int, error: KafkaError) -> M | None:
    """
    The answer to a request that failed as a whole; `None` where an answer of this version has no place for the code.
    """
    twice = version in _TWICE.get(response.__spec__.name, NONE)
    answer = _Mirror(version, error).image(request, response, twice)
    return answer if error_finder(response)(answer) else None


def unsupported_version(served: Mapping[int, tuple[range, str]]) -> ApiVersionsResponse:
    """
    The answer, in the form of v0, to ApiVersions of a version that is not served: which ones are (KIP-511).
    """
    key = ApiVersionsRequest.__spec__.key or 0
    versions, _ = served[key]
    own = ApiVersionsResponse.ApiKey(api_key=key, min_version=versions[0], max_version=versions[-1])
    return ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[own])


@cache
def error_finder(response: type[Message]) -> Finder:
    """
    The function that finds the error codes in such a response, and what each is about: `orders-3`, a group id, or
    nothing where it is about the request.
    """
    source = Source({})
    with source.block("def find(answer):"):
        source.line("found = []")
        _write_search(source, response, "answer", [])
        source.line("return found")
    return source.compile("find", f"errors in {response.__spec__.name}").function


def _write_search(source: Source, struct: type[Struct], variable: str, labels: list[str]) -> None:
    """
    Write the lines that look into the struct in a variable.
    """
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
    The part of an f-string that tells a struct from others: what it begins with, or the id that some versions have
    in place of it.
    """
    names = [f for f in _names(struct) if not isinstance(f.type, ListOf) and not f.name.endswith("_type")]
    telling = [f"{variable}.{f.name}" for i, f in enumerate(names) if i == 0 or isinstance(f.type, Sixteen)]
    return [f"{{{' or '.join(telling)}}}"] if telling else []


@dataclass(frozen=True, slots=True)
class _Mirror:
    """
    Makes of what was asked what is answered, all of it with one error.
    """

    version: int
    error: KafkaError

    def image(self, asked: object, struct: type[S], twice: bool = False) -> S:
        """
        The struct that says of what was asked that it failed.
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
        A struct for each item asked for; where the items are of another kind, for each item inside them.
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
    How a struct tells, in one version, of a failure.
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
        What was asked, as far as the struct has a name for it.
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
    What is given where something must be: null texts and null records are not what every client can read.
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
    The fields that tell a struct from its neighbours: its texts and ids, and whatever it begins with.
    """
    with_codes = [field for field, _ in _lists_with_codes(struct)]
    told = [field for field in struct.__fields__ if "error" not in field.name and field not in with_codes]
    return [field for i, field in enumerate(told) if i == 0 or isinstance(field.type, Text | Sixteen)]


def _lists_with_codes(struct: type[Struct]) -> list[tuple[Field, type[Struct]]]:
    """
    The lists in a struct whose items have error codes, or lists with such items.
    """
    lists = [(field, field.type.item) for field in struct.__fields__ if isinstance(field.type, ListOf)]
    items: list[tuple[Field, type[Struct]]] = [(f, item.struct) for f, item in lists if isinstance(item, StructOf)]
    return [(f, item) for f, item in items if any(map(_is_code, item.__fields__)) or _lists_with_codes(item)]


def _is_code(field: Field) -> bool:
    return field.name.endswith("error_code")
