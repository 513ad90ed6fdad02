"""
The permissions that the built-in handlers check, compared with those that they declare.

Each handler gets many requests: in every version, with one item in every list or with as few as possible, about an
existing topic and an unknown one, with several numbers for enumerations. They come from clients that may do nothing,
everything, or everything except one of the declared permissions.
"""

from collections.abc import Container, Iterator
from dataclasses import replace
from functools import lru_cache
from importlib import import_module
from itertools import product
from pkgutil import iter_modules

import pytest
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.python.failure import Failure

from kgateway import handlers
from kgateway.api import Handler
from kgateway.cluster.view import NewTopic
from kgateway.context import Context
from kgateway.groups.consumer.group import Client
from kgateway.groups.coordinator import GroupCoordinator
from kgateway.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kgateway.security.permissions import Free, Need, Operation, Resource
from kgateway.server.answers import error_finder, refused
from kgateway.topic_partition import TopicPartition
from kgateway.transactions.coordinator import TransactionCoordinator
from kgateway.wire.codec import encode
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.schema import Message
from kgateway.wire.uuids import ZERO
from tests.server.test_answers import ID, Sample
from tests.serving import Denying, Serving

NAMES = (("orders", ID), ("orders", ZERO), ("missing", ZERO))
NUMBERS = (-1, 0, 1, 2, 4, 32)  # acks, types of coordinators, types of resources
LONG_S = 3600  # no request waits longer

NOTHING: set[Need] = set()
EVERYTHING = {Need(operation, resource) for operation, resource in product(Operation, Resource)}

# To a client that may not describe these they show less, without an error.
SILENT = (
    "kgateway.handlers.describe_cluster.describe_cluster",
    "kgateway.handlers.list_groups.list_groups",
    "kgateway.handlers.list_transactions.list_transactions",
)


def built_in() -> Iterator[Handler]:
    for module in iter_modules(handlers.__path__, f"{handlers.__name__}."):
        yield from (value for value in vars(import_module(module.name)).values() if isinstance(value, Handler))


pytestmark = pytest.mark.usefixtures("frozen_objects")  # each request leaves the cycles of a gateway
EVERY = pytest.mark.parametrize("handler", list(built_in()), ids=lambda handler: handler.name)


@pytest.fixture(autouse=True)
def _no_lists_of_permissions(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Responses that list the client's operations check all of them, which are no permissions that the handler needs.
    """
    monkeypatch.setattr(Context, "permitted", lambda *_: 0)


def samples(handler: Handler, version: int, *, bare: bool) -> list[Sample]:
    """
    Field values for requests that differ on the wire.
    """
    combined = product(NAMES, NUMBERS, (True, False))
    every = [Sample(text, number, uuid, flag, bare) for (text, uuid), number, flag in combined]
    return list({encode(sample.one_of_each(handler.request, version), version): sample for sample in every}.values())


def ask(handler: Handler, version: int, sample: Sample, denied: Container[Need]) -> tuple[set[Need], set[int] | None]:
    """
    The permissions that a gateway checks for one request, and the codes in the response, or `None` without one.
    """
    shared = denied is EVERYTHING and not isinstance(handler.needs[0], Free)
    serving, authorizer = _closed_gateway(handler) if shared else _gateway(denied)
    authorizer.asked.clear()
    known = serving.broker.view().topics["orders"].id
    request = replace(sample, uuid=known if sample.uuid == ID else ZERO).one_of_each(handler.request, version)
    answer = _answer(serving, handler, request, version)
    asked = {Need(operation, resource) for operation, resource, _ in authorizer.asked}
    codes = None if answer is None else {code for code, _ in error_finder(handler.response)(answer)}
    return asked, codes


def _gateway(denied: Container[Need]) -> tuple[Serving, Denying]:
    authorizer = Denying(lambda operation, resource, _: Need(operation, resource) in denied)
    serving = Serving(authorizer)
    serving.parts.ask = Serving().parts.ask  # what a handler asks of another needs what that one declares
    serving.broker.create_topic(NewTopic("orders", 8))
    _have_groups(serving.parts.service(GroupCoordinator))
    _have_transactions(serving.parts.service(TransactionCoordinator))
    return serving, authorizer


@lru_cache(maxsize=1)
def _closed_gateway(_: Handler) -> tuple[Serving, Denying]:
    """
    A gateway that all requests of clients without permissions to this handler share, because they change nothing.
    """
    return _gateway(EVERYTHING)


def _have_groups(groups: GroupCoordinator) -> None:
    """
    Create two groups, one of them with a member that reads a topic.
    """
    groups.entry_or_new("orders")
    joining = ConsumerGroupHeartbeatRequest(
        group_id="missing",
        member_id="member",
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=["orders"],
        topic_partitions=[],
    )
    groups.consumer("missing", True).heartbeat(joining, Client("client", "/127.0.0.1", lambda _: True))


def _have_transactions(transactions: TransactionCoordinator) -> None:
    """
    Begin a transaction that writes to a partition.
    """

    async def begin() -> None:
        producer = await transactions.init_producer("orders", 60_000, None, 5)
        await transactions.add_partitions("orders", producer, {TopicPartition("orders", 0)}, 3)

    begun: list[object] = []
    Deferred.fromCoroutine(begin()).addCallbacks(begun.append)
    assert begun


def _answer(serving: Serving, handler: Handler, request: Message, version: int) -> Message | None:
    def refuse(failure: Failure) -> Message | Failure | None:
        error = failure.value
        return refused(request, handler.response, version, error) if isinstance(error, KafkaError) else failure

    answers: list[Message | Failure | None] = []
    maybeDeferred(serving.ask, handler, request, version).addErrback(refuse).addBoth(answers.append)
    if not answers:
        serving.clock.advance(LONG_S)
    [answer] = answers
    if isinstance(answer, Failure):
        answer.raiseException()
    return answer


def _denial(resource: Resource) -> ErrorCode:
    # Operations on users are refused through tokens.
    name = "DELEGATION_TOKEN" if resource is Resource.USER else resource.name
    return ErrorCode[f"{name}_AUTHORIZATION_FAILED"]


@EVERY
def test_handlers_check_what_they_declare(handler: Handler) -> None:
    """
    They check no other permissions, and none if they declare to need none.
    """
    declared = {need for need in handler.needs if not isinstance(need, Free)}
    asked = set()
    for version, bare, denied in product(
        handler.versions, (False, True), (NOTHING, EVERYTHING, *({need} for need in declared))
    ):
        for sample in samples(handler, version, bare=bare):
            asked |= ask(handler, version, sample, denied)[0]
    assert asked == declared


@EVERY
def test_denials_have_the_code_of_the_resource(handler: Handler) -> None:
    """
    A client that may do nothing gets it unless something else is wrong with its request.
    """
    told = set()
    for version in handler.versions:
        for sample in samples(handler, version, bare=False):
            asked, codes = ask(handler, version, sample, EVERYTHING)
            if asked and codes is not None:
                denials = {_denial(need.resource) for need in asked}
                assert codes & {*denials, ErrorCode.INVALID_REQUEST} or handler.name in SILENT, (version, sample)
                told |= codes & denials
    assert told or handler.name in SILENT or isinstance(handler.needs[0], Free)


def test_every_built_in_handler_is_covered() -> None:
    """
    Each module of the package is a handler.
    """
    modules = {module.name for module in iter_modules(handlers.__path__)}
    assert {handler.name.split(".")[-2] for handler in built_in()} == modules
