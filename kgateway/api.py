"""
Decorators that turn functions into plugins: `api` makes handlers, and `around` makes filters. In a filter,
`change_records` changes the records of a Produce request.

    @api(ListGroupsRequest, ListGroupsResponse, versions="0-5", needs=Operation.DESCRIBE.on(Resource.GROUP))
    def list_groups(request: ListGroupsRequest, context: Context) -> ListGroupsResponse: ...
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

from twisted.plugin import IPlugin
from zope.interface import implementer

from kgateway.context import Context as Context
from kgateway.context import Service as Service
from kgateway.conversion.slices import IncomingSlices
from kgateway.interfaces import IApiFilter, IApiHandler, Proceed, Response
from kgateway.records.batch import check_produced, sent_batch
from kgateway.records.batch_rewrite import changed
from kgateway.records.record import Record as Record
from kgateway.security.permissions import Free, Need
from kgateway.security.permissions import Operation as Operation
from kgateway.security.permissions import Resource as Resource
from kgateway.wire.schema import Message, parse_versions
from kgateway.wire.types import Buffer, Records

Needs = Need | Free | Sequence[Need]
Handle = Callable[[Any, Context], Response]
Filter = Callable[[Any, Context, Proceed], Awaitable[Message | None]]


@implementer(IPlugin, IApiHandler)
@dataclass(frozen=True, slots=True)
class Handler:
    name: str
    request: type[Message]
    response: type[Message]
    versions: range
    advertised: range
    needs: tuple[Need | Free, ...]
    overlaps: bool
    polls: bool
    starts: tuple[type[Service], ...]
    replaces: bool
    priority: int
    function: Handle

    @property
    def handle(self) -> Handle:
        return self.function


@implementer(IPlugin, IApiFilter)
@dataclass(frozen=True, slots=True)
class Around:
    name: str
    requests: tuple[type[Message], ...]
    topics: tuple[str, ...]
    listeners: tuple[str, ...]
    principals: tuple[str, ...]
    priority: int
    function: Filter

    def filter(self, request: Any, context: Any, proceed: Proceed) -> Awaitable[Message | None]:
        return self.function(request, context, proceed)


def api(
    request: type[Message],
    response: type[Message],
    *,
    versions: str,
    needs: Needs = (),
    advertised: str | None = None,
    overlaps: bool = False,
    polls: bool = False,
    starts: Sequence[type[Service]] = (),
    replaces: bool = False,
    priority: int = 0,
) -> Callable[[Handle], Handler]:
    """
    Make the function the handler of an API in these versions.

    `needs` declares the permissions that the function demands of the client, or is `Free` with the reason why it
    demands none; if a handler has no `needs`, the gateway does not start. `advertised` names the versions that
    ApiVersions advertises, if they differ. `overlaps` lets the next request of the connection start before this one is
    answered. A handler that `polls` may wait a long time for something to happen; if it is cancelled, it answers at
    once. `starts` names services that the gateway creates when it starts, instead of when they are first used.
    `replaces` allows the handler to take over versions from a handler with a lower priority.
    """

    def plugin(function: Handle) -> Handler:
        return Handler(
            name=_name(function),
            request=request,
            response=response,
            versions=parse_versions(versions),
            advertised=parse_versions(advertised or versions),
            needs=(needs,) if isinstance(needs, Need | Free) else tuple(needs),
            overlaps=overlaps,
            polls=polls,
            starts=tuple(starts),
            replaces=replaces,
            priority=priority,
            function=function,
        )

    return plugin


def around(
    *requests: type[Message],
    topics: Sequence[str] = (),
    listeners: Sequence[str] = (),
    principals: Sequence[str] = (),
    priority: int = 0,
) -> Callable[[Filter], Around]:
    """
    Make the function a filter of these requests.

    By default it gets all of them. With `topics`, `listeners` or `principals`, it gets only the requests that name one
    of the topics, come through one of the listeners, and come from one of the principals. All three are lists of
    patterns like those for file names, such as `orders-*`. A filter with a higher priority is further out: it sees the
    request earlier and the response later.
    """

    def plugin(function: Filter) -> Around:
        return Around(_name(function), requests, tuple(topics), tuple(listeners), tuple(principals), priority, function)

    return plugin


async def change_records(records: Records | None, change: Callable[[Record], Record], context: Context) -> Buffer:
    """
    Return the records of a partition in a Produce request, each with the key, value and headers that `change` returns
    for it. The number, order and timestamps of the records do not change, nor do the fields that idempotence and
    transactions need.

    The work is done in slices, so that other clients are served in between. Raises KafkaError if there is not exactly
    one intact batch, for example because a client older than Kafka 0.11 has sent message sets.
    """
    batch = sent_batch(cast("Buffer | None", records), context.version)
    check_produced(batch)
    made = await context.service(IncomingSlices).do(changed(batch, change))
    return made.data


def _name(function: Callable[..., object]) -> str:
    return f"{function.__module__}.{function.__qualname__}"
