"""
Filters around a handler: their order, what they see, and what they may do.
"""

from collections.abc import Callable
from typing import Any

import pytest
from twisted.internet.defer import Deferred
from twisted.logger import capturedLogs, eventAsText

from kgateway.api import Around, Context, Handler, api, around
from kgateway.interfaces import Proceed
from kgateway.security.permissions import Free
from kgateway.server.request_queue import PendingAnswer
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.schema import Message
from tests.server.dispatcher import CLIENT_ID, CountRequest, CountResponse, Dispatching, count, read, ready

Topic = CountResponse.Topic
EVERYBODY = Free("a test")


def counting(function: Callable[..., Any], **options: Any) -> Handler:
    """
    The function as a handler of Count.
    """
    return api(CountRequest, CountResponse, versions="0-3", needs=EVERYBODY, **options)(function)


@counting
def counted(request: CountRequest, context: Context) -> CountResponse:
    """
    Answer with the requested names.
    """
    return CountResponse(topics=[Topic(name=topic.name) for topic in request.topics])


@counting
async def counted_later(request: CountRequest, context: Context) -> CountResponse:
    return counted.function(request, context)  # type: ignore[return-value]  # a plain handler's


def adding(name: str, **options: Any) -> Around:
    """
    A filter that adds a name to the request, and another to the response.
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
    The names in the response to a Count of orders.
    """
    return [topic.name for topic in dispatching.said(CountResponse, 1).topics]


@pytest.mark.parametrize("handler", [counted, counted_later], ids=["plain", "async"])
def test_a_filter_changes_request_and_response(handler: Handler) -> None:
    """
    The handler sees the changed request, the client the changed response.
    """
    assert names(Dispatching(handler, adding("a"))) == ["orders", "a in", "a out"]


def test_the_filter_of_higher_priority_is_outside() -> None:
    """
    It sees the request first and the response last, in whatever order they were found.
    """
    dispatching = Dispatching(counted, adding("b", priority=1), adding("c"), adding("a", priority=2))
    assert names(dispatching) == ["orders", "a in", "b in", "c in", "c out", "b out", "a out"]


def test_a_filter_may_replace_the_request() -> None:
    @around(CountRequest, priority=1)
    async def replace(request: CountRequest, context: Context, proceed: Proceed) -> Message | None:
        return await proceed(count("payments"))

    assert names(Dispatching(counted, replace, adding("a"))) == ["payments", "a in", "a out"]


def test_a_filter_may_answer_by_itself() -> None:
    """
    Inner filters and the handler do not see the request, and the errors in its answer are remembered.
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
    Its KafkaError is the answer for each item.
    """

    @around(CountRequest)
    async def refuse(request: CountRequest, context: Context, proceed: Proceed) -> Message:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, "not today")

    dispatching = Dispatching(counted, refuse)
    assert dispatching.codes(1, count("orders", "payments")) == [ErrorCode.POLICY_VIOLATION] * 2
    assert dispatching.remembered() == [(CLIENT_ID, "Count", 1, "POLICY_VIOLATION", "", "not today")]


@pytest.mark.parametrize("before", [True, False], ids=["before", "after"])
def test_a_failing_filter_ends_the_request(before: bool) -> None:
    """
    This holds even after the handler has answered; the next request is served.
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


def test_a_filter_sees_failures_of_the_handler() -> None:
    """
    It may turn one into an answer.
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
def test_a_filter_sees_a_missing_answer(late: bool) -> None:
    """
    It gets None, and nothing is sent.
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
    The answer is sent when both the filter and the handler are done.
    """
    looked_up: Deferred[None] = Deferred()
    counted_at_last: Deferred[CountResponse] = Deferred()

    @around(CountRequest)
    async def wait(request: CountRequest, context: Context, proceed: Proceed) -> Message | None:
        await looked_up
        return await proceed(request)

    answer = Dispatching(counting(lambda *_: counted_at_last), wait).send(count("orders"), 1)
    assert isinstance(answer, PendingAnswer)
    looked_up.callback(None)
    assert not answer.ready
    counted_at_last.callback(CountResponse(topics=[Topic(name="late")]))
    assert read(CountResponse, 1, ready(answer)).topics[0].name == "late"


def test_a_poll_inside_a_filter_can_be_cancelled() -> None:
    """
    The handler's last answer passes through the filter.
    """
    wait: Deferred[CountResponse] = Deferred(lambda wait: wait.callback(CountResponse(topics=[Topic(name="early")])))
    dispatching = Dispatching(counting(lambda *_: wait, polls=True), adding("a"))
    answer = dispatching.send(count("orders"), 1)
    assert isinstance(answer, PendingAnswer)
    answer.cut_short()
    assert [topic.name for topic in read(CountResponse, 1, ready(answer)).topics] == ["early", "a out"]


def test_a_filter_may_set_a_throttle_time() -> None:
    """
    The context puts it on the handler's answer, too.
    """

    @around(CountRequest)
    async def slow_down(request: CountRequest, context: Context, proceed: Proceed) -> Message | None:
        context.throttle_ms = 300
        return await proceed(request)

    assert Dispatching(counted, slow_down).said(CountResponse, 1).throttle_time_ms == 300


def test_unmatched_requests_reach_the_handler_directly() -> None:
    """
    Each request is matched by itself.
    """
    dispatching = Dispatching(counted, adding("a", topics=["pay*"]))
    assert names(dispatching) == ["orders"]
    assert [topic.name for topic in dispatching.said(CountResponse, 1, count("orders", "payments")).topics] == [
        "orders",
        "payments",
        "a in",
        "a out",
    ]


def test_a_request_passes_only_matching_filters() -> None:
    assert names(Dispatching(counted, adding("a", topics=["pay*"]), adding("b"))) == ["orders", "b in", "b out"]


@pytest.mark.parametrize("waits", [True, False], ids=["waits", "goes on"])
def test_a_request_held_by_a_filter_is_not_overtaken(waits: bool) -> None:
    """
    Records keep their order: the next request may start before this one is answered, but not before its handler has
    begun.
    """
    look_up: Deferred[None] = Deferred()

    @around(CountRequest)
    async def wait(request: CountRequest, context: Context, proceed: Proceed) -> Message | None:
        if waits:
            await look_up
        return await proceed(request)

    acknowledged: Deferred[CountResponse] = Deferred()
    answer = Dispatching(counting(lambda *_: acknowledged, overlaps=True), wait).send(count("orders"), 1)
    assert isinstance(answer, PendingAnswer)
    assert answer.next_may_start is not waits


def test_other_filters_do_not_prevent_overlap() -> None:
    acknowledged: Deferred[CountResponse] = Deferred()
    dispatching = Dispatching(counting(lambda *_: acknowledged, overlaps=True), adding("a", topics=["none"]))
    answer = dispatching.send(count("orders"), 1)
    assert isinstance(answer, PendingAnswer)
    assert answer.next_may_start
