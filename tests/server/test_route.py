"""
Filters around a handler: which come first, what they see, and what they may do.
"""

from collections.abc import Callable
from typing import Any

import pytest
from twisted.internet.defer import Deferred
from twisted.logger import capturedLogs, eventAsText

from kgateway.api import Around, Context, Handler, api, around
from kgateway.interfaces import Proceed
from kgateway.security.permissions import Free
from kgateway.server.pending import Pending
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.schema import Message
from tests.server.dispatching import CLIENT_ID, CountRequest, CountResponse, Dispatching, count, read, ready

Topic = CountResponse.Topic
EVERYBODY = Free("a test")


def counting(function: Callable[..., Any], **options: Any) -> Handler:
    """
    The function as the handler of Count.
    """
    return api(CountRequest, CountResponse, versions="0-3", needs=EVERYBODY, **options)(function)


@counting
def counted(request: CountRequest, context: Context) -> CountResponse:
    """
    A handler that answers with the names it was asked for.
    """
    return CountResponse(topics=[Topic(name=topic.name) for topic in request.topics])


@counting
async def counted_later(request: CountRequest, context: Context) -> CountResponse:
    """
    The same as a coroutine.
    """
    return counted.function(request, context)  # type: ignore[return-value]  # a plain handler's


def adding(name: str, **options: Any) -> Around:
    """
    A filter that puts a name into the request on the way in, and another into the response on the way out.
    """

    async def add(request: CountRequest, context: Context, proceed: Proceed) -> Message | None:
        request.topics.append(CountRequest.Topic(name=f"{name} in"))
        response = await proceed(request)
        assert isinstance(response, CountResponse)
        response.topics.append(Topic(name=f"{name} out"))
        return response

    return around(CountRequest, **options)(add)


def names(dispatching: Dispatching) -> list[str]:
    """
    What the answer to a Count of orders names.
    """
    return [topic.name for topic in dispatching.said(CountResponse, 1).topics]


@pytest.mark.parametrize("handler", [counted, counted_later], ids=["plain", "async"])
def test_a_filter_changes_request_and_response(handler: Handler) -> None:
    """
    The handler sees the request as the filter left it, the client the response.
    """
    assert names(Dispatching(handler, adding("a"))) == ["orders", "a in", "a out"]


def test_the_filter_of_higher_priority_stands_outside() -> None:
    """
    It is the first to see the request and the last to see the response, however they were found.
    """
    dispatching = Dispatching(counted, adding("b", priority=1), adding("c"), adding("a", priority=2))
    assert names(dispatching) == ["orders", "a in", "b in", "c in", "c out", "b out", "a out"]


def test_a_filter_may_pass_on_a_request_of_its_own() -> None:
    """
    What is inside gets that one.
    """

    @around(CountRequest, priority=1)
    async def replace(request: CountRequest, context: Context, proceed: Proceed) -> Message | None:
        return await proceed(count("payments"))

    assert names(Dispatching(counted, replace, adding("a"))) == ["payments", "a in", "a out"]


def test_a_filter_may_answer_by_itself() -> None:
    """
    Then nothing inside it hears of the request, and what it says of errors is remembered.
    """

    @around(CountRequest, priority=1)
    async def answer(request: CountRequest, context: Context, proceed: Proceed) -> Message:
        code = context.refuse(KafkaError(ErrorCode.POLICY_VIOLATION, "not today"), "orders")
        return CountResponse(topics=[Topic(name="mine", error_code=code)])

    dispatching = Dispatching(counted, answer, adding("a"))
    assert names(dispatching) == ["mine"]
    assert dispatching.remembered() == [(CLIENT_ID, "Count", 1, "POLICY_VIOLATION", "orders", "not today")]


def test_a_filter_may_refuse() -> None:
    """
    A KafkaError that it raises is the answer to each item.
    """

    @around(CountRequest)
    async def refuse(request: CountRequest, context: Context, proceed: Proceed) -> Message:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, "not today")

    dispatching = Dispatching(counted, refuse)
    assert dispatching.codes(1, count("orders", "payments")) == [ErrorCode.POLICY_VIOLATION] * 2
    assert dispatching.remembered() == [(CLIENT_ID, "Count", 1, "POLICY_VIOLATION", "", "not today")]


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
def test_a_filter_that_fails_ends_the_request(before: bool) -> None:
    """
    As a handler that fails does, also where the handler has answered; the next request is served.
    """
    outcomes = iter([True, False])

    @around(CountRequest)
    async def fail(request: CountRequest, context: Context, proceed: Proceed) -> Message | None:
        fails = next(outcomes)
        if fails and before:
            raise ZeroDivisionError("in the filter")
        response = await proceed(request)
        if fails:
            raise ZeroDivisionError("in the filter")
        return response

    dispatching = Dispatching(counted, fail)
    with capturedLogs() as logged:
        assert dispatching.codes(1) == [ErrorCode.UNKNOWN_SERVER_ERROR]
    assert ["ZeroDivisionError: in the filter" in eventAsText(event) for event in logged] == [True]
    assert dispatching.codes(1) == [ErrorCode.NONE]


def test_a_filter_sees_the_handler_fail() -> None:
    """
    It may make an answer of it.
    """

    @counting
    def refusing(request: CountRequest, context: Context) -> CountResponse:
        raise KafkaError(ErrorCode.INVALID_REQUEST)

    @around(CountRequest)
    async def forgive(request: CountRequest, context: Context, proceed: Proceed) -> Message | None:
        try:
            return await proceed(request)
        except KafkaError:
            return CountResponse(topics=[Topic(name="forgiven")])

    assert names(Dispatching(refusing, forgive)) == ["forgiven"]


@pytest.mark.parametrize("late", [False, True], ids=["plain", "async"])
def test_a_filter_sees_that_there_is_no_answer(late: bool) -> None:
    """
    A handler that answers nothing gives it nothing, and nothing is sent.
    """
    seen: list[Message | None] = []

    async def nothing(request: CountRequest, context: Context) -> None:
        return None

    @around(CountRequest)
    async def look(request: CountRequest, context: Context, proceed: Proceed) -> Message | None:
        seen.append(await proceed(request))
        return seen[-1]

    handler = counting(nothing if late else lambda *_: None)
    assert Dispatching(handler, look).send(count("orders"), 1) == b""
    assert seen == [None]


def test_a_filter_may_wait() -> None:
    """
    The answer is there when both have ended, the filter and the handler.
    """
    looked_up: Deferred[None] = Deferred()
    counted_at_last: Deferred[CountResponse] = Deferred()

    @around(CountRequest)
    async def wait(request: CountRequest, context: Context, proceed: Proceed) -> Message | None:
        await looked_up
        return await proceed(request)

    answer = Dispatching(counting(lambda *_: counted_at_last), wait).send(count("orders"), 1)
    assert isinstance(answer, Pending)
    looked_up.callback(None)
    assert not answer.ready
    counted_at_last.callback(CountResponse(topics=[Topic(name="late")]))
    assert read(CountResponse, 1, ready(answer)).topics[0].name == "late"


def test_a_poll_with_a_filter_is_cut_short() -> None:
    """
    The wait inside the filter is cancelled, and what the handler answers then comes out through the filter.
    """
    wait: Deferred[CountResponse] = Deferred(lambda wait: wait.callback(CountResponse(topics=[Topic(name="early")])))
    dispatching = Dispatching(counting(lambda *_: wait, polls=True), adding("a"))
    answer = dispatching.send(count("orders"), 1)
    assert isinstance(answer, Pending)
    answer.cut_short()
    assert [topic.name for topic in read(CountResponse, 1, ready(answer)).topics] == ["early", "a out"]


def test_a_filter_sets_a_throttle_time() -> None:
    """
    The context puts it on the answer, the handler's too.
    """

    @around(CountRequest)
    async def slow_down(request: CountRequest, context: Context, proceed: Proceed) -> Message | None:
        context.throttle_ms = 300
        return await proceed(request)

    assert Dispatching(counted, slow_down).said(CountResponse, 1).throttle_time_ms == 300


def test_a_request_that_no_filter_fits_goes_straight_to_the_handler() -> None:
    """
    Each request is looked at by itself.
    """
    dispatching = Dispatching(counted, adding("a", topics=["pay*"]))
    assert names(dispatching) == ["orders"]
    assert [topic.name for topic in dispatching.said(CountResponse, 1, count("orders", "payments")).topics] == [
        "orders",
        "payments",
        "a in",
        "a out",
    ]


def test_a_request_passes_the_filters_that_fit_it_alone() -> None:
    """
    Those of other topics are not on its way.
    """
    assert names(Dispatching(counted, adding("a", topics=["pay*"]), adding("b"))) == ["orders", "b in", "b out"]


@pytest.mark.parametrize("waits", [True, False], ids=["waits", "goes on"])
def test_a_request_that_a_filter_holds_is_not_overtaken(waits: bool) -> None:
    """
    The next one may start before this one is answered, but not before its handler has begun: records keep their order.
    """
    look_up: Deferred[None] = Deferred()

    @around(CountRequest)
    async def wait(request: CountRequest, context: Context, proceed: Proceed) -> Message | None:
        if waits:
            await look_up
        return await proceed(request)

    acknowledged: Deferred[CountResponse] = Deferred()
    answer = Dispatching(counting(lambda *_: acknowledged, overlaps=True), wait).send(count("orders"), 1)
    assert isinstance(answer, Pending)
    assert answer.next_may_start is not waits


def test_a_filter_of_others_lets_requests_overlap() -> None:
    """
    A request that it does not concern has nothing to wait for.
    """
    acknowledged: Deferred[CountResponse] = Deferred()
    dispatching = Dispatching(counting(lambda *_: acknowledged, overlaps=True), adding("a", topics=["none"]))
    answer = dispatching.send(count("orders"), 1)
    assert isinstance(answer, Pending)
    assert answer.next_may_start
