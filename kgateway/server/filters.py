"""
The filters around handlers: which of them a request concerns, by the topics it names, its listener and its sender, and
how it passes through them.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any

from kgateway.cluster.view import ClusterView
from kgateway.context import Context
from kgateway.interfaces import IApiFilter, IApiHandler, Response
from kgateway.security.permissions import Resource
from kgateway.wire.schema import Message, Struct
from kgateway.wire.types import ListOf, StructOf, Text
from kgateway.wire.uuids import ZERO

# The names in requests of a list of topic names, of a list of structs about a topic each, and of the topic in one.
_TEXTS = ("topics", "topic_names", "subscribed_topic_names")
_LISTS = ("topics", "topic_data", "topic_partitions", "v3_and_below_topics", "resources")
_NAMES = ("name", "topic", "topic_name", "resource_name")


def concerns(filters: Iterable[IApiFilter], request: Message, context: Context) -> list[IApiFilter]:
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


def topics_of(request: Struct, view: ClusterView) -> Iterator[str]:
    """
    The names of the topics in a request, however deep; topic ids are looked up.
    """
    for field in request.__fields__:
        match field.type:
            case ListOf(Text()) if field.name in _TEXTS:
                yield from getattr(request, field.name) or ()
            case ListOf(StructOf()):
                for item in getattr(request, field.name) or ():
                    yield from _names(item, view) if field.name in _LISTS else topics_of(item, view)


def _names(item: Struct, view: ClusterView) -> Iterator[str]:
    topic_id = getattr(item, "topic_id", ZERO)
    if topic_id != ZERO and topic_id in view.topics_by_id:
        yield view.topics_by_id[topic_id].name
    if getattr(item, "resource_type", Resource.TOPIC) == Resource.TOPIC:
        yield from (name for name in (getattr(item, known, "") for known in _NAMES) if name)


def filtered(handler: IApiHandler, filters: Sequence[IApiFilter]) -> Callable[[Any, Context], Response]:
    """
    The handler with the filters around it that a request concerns.
    """

    def handle(request: Message, context: Context) -> Response:
        fitting = concerns(filters, request, context)
        if not fitting:
            return handler.handle(request, context)
        context.in_filter = True
        return _through(fitting, handler, request, context)

    return handle


async def _through(
    filters: Sequence[IApiFilter], handler: IApiHandler, request: Message, context: Context
) -> Message | None:
    if not filters:
        context.in_filter = False
        answer = handler.handle(request, context)
        return answer if answer is None or isinstance(answer, Message) else await answer
    outermost, *inner = filters

    async def proceed(request: Message) -> Message | None:
        return await _through(inner, handler, request, context)

    return await outermost.filter(request, context, proceed)
