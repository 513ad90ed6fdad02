"""
Which filters a request concerns: by the topics it names, the listener it came through, and who sent it.
"""

from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Any

from kgateway.cluster.view import ClusterView
from kgateway.context import Context
from kgateway.interfaces import IApiFilter
from kgateway.wire.schema import Field, Message, Struct
from kgateway.wire.types import ListOf, StructOf, Text
from kgateway.wire.uuids import ZERO

_LISTS = ("topics", "topic_data", "topic_names", "topics_to_add", "resources")
_NAMES = ("name", "topic", "topic_name")


def concerns(filters: Iterable[IApiFilter], request: Message, context: Context) -> list[IApiFilter]:
    """
    The filters whose patterns this request fits.
    """
    return [value for value in filters if _concerns(value, request, context)]


def _concerns(value: IApiFilter, request: Message, context: Context) -> bool:
    session = context.session
    return (
        _fits(value.listeners, [session.listener])
        and _fits(value.principals, [session.principal])
        and (not value.topics or _fits(value.topics, topics_of(request, context.broker.view())))
    )


def _fits(patterns: tuple[str, ...], names: Iterable[str]) -> bool:
    return not patterns or any(fnmatchcase(name, pattern) for name in names for pattern in patterns)


def topics_of(request: Message, view: ClusterView) -> Iterator[str]:
    """
    The names of the topics in a request; those it gives by id are looked up.
    """
    for field in type(request).__fields__:
        if field.name in _LISTS:
            for item in getattr(request, field.name) or ():
                yield from _name(field, item, view)


def _name(field: Field, item: Any, view: ClusterView) -> Iterator[str]:
    match field.type:
        case ListOf(Text()):
            yield item
        case ListOf(StructOf()):
            yield from _name_in(item, view)


def _name_in(item: Struct, view: ClusterView) -> Iterator[str]:
    topic_id = getattr(item, "topic_id", ZERO)
    if topic_id != ZERO and topic_id in view.topics_by_id:
        yield view.topics_by_id[topic_id].name
    yield from (name for name in (getattr(item, known, "") for known in _NAMES) if name)
