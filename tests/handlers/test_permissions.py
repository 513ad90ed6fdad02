"""
What the built-in handlers ask the authorizer, against what they declare.

Each handler gets many requests: in every version, with one item in every list or with as little as may be, about a
topic that is there and one that is not, with several numbers for what numbers stand for. They come from clients that
may do nothing, or everything, or all but one of the things that the handler declares.
"""

from collections.abc import Container, Iterator
from dataclasses import replace
from importlib import import_module
from itertools import product
from pkgutil import iter_modules

import pytest
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.python.failure import Failure

import handlers
from kgateway.api import Handler
from kgateway.cluster.view import NewTopic
from kgateway.context import Context
from kgateway.groups.consumer.group import Client
from kgateway.groups.groups import Groups
from kgateway.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kgateway.security.permissions import Free, Need, Operation, Resource
from kgateway.server.answers import error_finder, refused
from kgateway.transactions.state import Place
from kgateway.transactions.transactions import Transactions
from kgateway.wire.codec import encode
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.schema import Message
from kgateway.wire.uuids import ZERO
from tests.server.test_answers import ID, Sample
from tests.serving import Denying, Serving

NAMES = (("orders", ID), ("orders", ZERO), ("missing", ZERO))
NUMBERS = (-1, 0, 1, 2, 4, 32)  # acks, kinds of coordinators, kinds of resources
LONG_S = 3600  # no request waits longer

NOTHING: set[Need] = set()
EVERYTHING = {Need(operation, resource) for operation, resource in product(Operation, Resource)}

# To a client that may not describe these they show less, without an error.
SILENT = (
    "handlers.describe_cluster.describe_cluster",
    "handlers.list_groups.list_groups",
    "handlers.list_transactions.list_transactions",
)


def built_in() -> Iterator[Handler]:
    for module in iter_modules(handlers.__path__, f"{handlers.__name__}."):
        yield from (value for value in vars(import_module(module.name)).values() if isinstance(value, Handler))


EVERY = pytest.mark.parametrize("handler", list(built_in()), ids=lambda handler: handler.name)


@pytest.fixture(autouse=True)
def _no_lists_of_permissions(monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Answers that list what the client may do ask about all of it; that is no permission the handler needs.
    """
    monkeypatch.setattr(Context, "permitted", lambda *_: 0)


def samples(handler: Handler, version: int, *, bare: bool) -> list[Sample]:
    """
    What to fill requests with, each of them another one on the wire.
    """
    combined = product(NAMES, NUMBERS, (True, False))
    every = [Sample(text, number, uuid, flag, bare) for (text, uuid), number, flag in combined]
    return list({encode(sample.one_of_each(handler.request, version), version): sample for sample in every}.values())


def ask(handler: Handler, version: int, sample: Sample, denied: Container[Need]) -> tuple[set[Need], set[int] | None]:
    """
    What a new gateway asks its authorizer for one request, and the codes in the answer; `None` without an answer.
    """
    authorizer = Denying(lambda operation, resource, _: Need(operation, resource) in denied)
    serving = Serving(authorizer)
    serving.broker.create_topic(NewTopic("orders", 8))
    _have_groups(serving.parts.service(Groups))
    _have_transactions(serving.parts.service(Transactions))
    known = serving.broker.view().topics["orders"].id
    request = replace(sample, uuid=known if sample.uuid == ID else ZERO).one_of_each(handler.request, version)
    answer = _answer(serving, handler, request, version)
    asked = {Need(operation, resource) for operation, resource, _ in authorizer.asked}
    codes = None if answer is None else {code for code, _ in error_finder(handler.response)(answer)}
    return asked, codes


def _have_groups(groups: Groups) -> None:
    """
    Two groups, one of them with a member that reads a topic.
    """
    groups.simple("orders")
    joining = ConsumerGroupHeartbeatRequest(
        group_id="missing",
        member_id="member",
        member_epoch=0,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=["orders"],
        topic_partitions=[],
    )
    groups.consumer("missing", True).heartbeat(joining, Client("client", "/127.0.0.1", lambda _: True))


def _have_transactions(transactions: Transactions) -> None:
    """
    One that writes to a partition.
    """

    async def begin() -> None:
        producer = await transactions.init("orders", 60_000, None, 5)
        await transactions.add_partitions("orders", producer, {Place("orders", 0)}, 3)

    begun: list[object] = []
    Deferred.fromCoroutine(begin()).addCallbacks(begun.append)
    assert begun


def _answer(serving: Serving, handler: Handler, request: Message, version: int) -> Message | None:
    def refuse(failure: Failure) -> Message | Failure | None:
        error = failure.value
        return refused(request, handler.response, version, error) if isinstance(error, KafkaError) else failure

    answers: list[Message | Failure | None] = []
    maybeDeferred(serving.ask, handler, request, version).addErrback(refuse).addBoth(answers.append)
    serving.clock.advance(LONG_S)
    [answer] = answers
    if isinstance(answer, Failure):
        answer.raiseException()
    return answer


def _denial(resource: Resource) -> ErrorCode:
    # What is done to users is done by means of tokens.
    name = "DELEGATION_TOKEN" if resource is Resource.USER else resource.name
    return ErrorCode[f"{name}_AUTHORIZATION_FAILED"]


@EVERY
def test_asks_what_it_declares(handler: Handler) -> None:
    """
    A handler asks for the permissions that it declares and for no others; one that declares to need none asks nothing.
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
def test_tells_what_is_denied(handler: Handler) -> None:
    """
    A client that may do nothing gets the code that says so, of the kind of thing it may not touch; unless there is
    something else wrong with its request.
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


def test_everything_built_in_is_covered() -> None:
    """
    A module of the package is a handler, and so none goes without these tests.
    """
    modules = {module.name for module in iter_modules(handlers.__path__)}
    assert {handler.name.split(".")[1] for handler in built_in()} == modules
