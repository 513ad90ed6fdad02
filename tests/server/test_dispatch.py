"""
From a frame to its answer: what handlers may do, and what becomes of it when they fail.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

import pytest
from twisted.internet.defer import Deferred, fail, succeed
from twisted.logger import LogEvent, capturedLogs, eventAsText

from handlers.api_versions import api_versions
from kgateway.api import Context, Handler, api, around
from kgateway.context import REFUSALS_MAX
from kgateway.interfaces import Proceed
from kgateway.later import Later
from kgateway.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kgateway.messages.produce import ProduceRequest, ProduceResponse
from kgateway.observe.reasons import Kind
from kgateway.security.permissions import Free
from kgateway.server.pending import HangUp, Pending
from kgateway.server.route import Route
from kgateway.wire.codec import decode
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.headers import request_frame
from kgateway.wire.malformed import Malformed
from kgateway.wire.schema import Message
from tests.server.dispatching import (
    CLIENT_ID,
    CountRequest,
    CountResponse,
    Dispatching,
    PingRequest,
    PingResponse,
    count,
    plugins,
    read,
    ready,
)

Topic = CountResponse.Topic
EVERYBODY = Free("a test")
VERSIONS = (0, 1, 2)  # classic without a throttle time, classic with one, flexible
UNKNOWN = ErrorCode.UNKNOWN_SERVER_ERROR
OURS = "the gateway failed unforeseen; the traceback is in its log"


def counting(function: Callable[..., Any], **options: Any) -> Handler:
    """
    The function as the handler of Count.
    """
    return api(CountRequest, CountResponse, versions="0-3", needs=EVERYBODY, **options)(function)


def counted(request: CountRequest, context: Context) -> CountResponse:
    """
    A handler that works.
    """
    return CountResponse(topics=[Topic(name=topic.name, count=len(topic.name)) for topic in request.topics])


def broken(request: CountRequest, context: Context) -> NoReturn:
    """
    A handler with a bug.
    """
    raise ZeroDivisionError("division by zero")


def refusing(request: CountRequest, context: Context) -> NoReturn:
    """
    A handler that refuses the whole request.
    """
    raise KafkaError(ErrorCode.POLICY_VIOLATION, "not on Sundays")


def waiting(*waits: Deferred[Any]) -> Handler:
    """
    A handler whose requests wait, one for each of these, and answer what comes out of it.
    """
    remaining = iter(waits)

    async def wait(request: CountRequest, context: Context) -> Any:
        return await next(remaining)

    return counting(wait)


def in_turn(*functions: Callable[..., Any]) -> Handler:
    """
    A handler that is another one for each request.
    """
    remaining = iter(functions)

    def handle(request: CountRequest, context: Context) -> Any:
        return next(remaining)(request, context)

    return counting(handle)


def bare(request: CountRequest, context: Context) -> CountResponse:
    """
    A handler that answers with a code, and says nothing of it.
    """
    return CountResponse(topics=[Topic(name="fine"), Topic(name="orders", error_code=3)])


def route(dispatching: Dispatching, version: int = 0) -> Route:
    """
    The way of Count.
    """
    return dispatching.dispatcher.routes[30_000, version]


@pytest.fixture
def logged() -> Iterator[Sequence[LogEvent]]:
    """
    What is logged meanwhile.
    """
    with capturedLogs() as events:
        yield events


@pytest.mark.parametrize("version", VERSIONS)
def test_an_answer_has_the_form_of_its_request(version: int) -> None:
    """
    Size, correlation id and body, classic or flexible as the version of the request is.
    """
    answer = Dispatching(counting(counted)).said(CountResponse, version)
    assert answer == CountResponse(topics=[Topic(name="orders", count=6)])


def test_a_handler_knows_who_asks() -> None:
    """
    The context has the version, the client and its connection, and when the request came by the monotonic clock.
    """
    contexts: list[Context] = []

    def look(request: CountRequest, context: Context) -> CountResponse:
        contexts.append(context)
        return CountResponse()

    dispatching = Dispatching(counting(look))
    dispatching.clock.advance(5)
    dispatching.send(count(), 2, correlation_id=9)
    [context] = contexts
    assert (context.version, context.client_id, context.correlation_id, context.started) == (2, CLIENT_ID, 9, 5)
    assert context.session is dispatching.session
    assert context.broker is dispatching.broker


@pytest.mark.parametrize("version", VERSIONS)
def test_a_handler_that_fails_ends_its_own_request(version: int) -> None:
    """
    Each item that was asked for gets UNKNOWN_SERVER_ERROR; the requests after it are served.
    """
    dispatching = Dispatching(in_turn(broken, counted))
    answer = dispatching.said(CountResponse, version, count("orders", "payments"))
    assert [(topic.name, topic.error_code) for topic in answer.topics] == [("orders", UNKNOWN), ("payments", UNKNOWN)]
    assert dispatching.codes(version) == [ErrorCode.NONE]


def test_a_handler_that_fails_leaves_its_neighbours_alone() -> None:
    """
    What waits for another handler, or for another connection, is answered when its time comes.
    """
    wait: Deferred[CountResponse] = Deferred()
    dispatching = Dispatching(in_turn(lambda *_: wait, broken))
    before = dispatching.send(count("orders"), 1)
    assert dispatching.codes(1) == [UNKNOWN]
    wait.callback(CountResponse(topics=[Topic(name="orders", count=3)]))
    assert read(CountResponse, 1, ready(before)).topics[0].count == 3


@pytest.mark.parametrize("version", VERSIONS)
def test_a_failure_is_logged_once_with_its_traceback(version: int, logged: Sequence[LogEvent]) -> None:
    """
    The log tells which request of whom it was, and the line that failed.
    """
    dispatching = Dispatching(counting(broken))
    dispatching.send(count("orders", "payments"), version)
    [event] = logged
    text = eventAsText(event)
    assert f"Count v{version} of checkout failed" in text
    assert 'raise ZeroDivisionError("division by zero")' in text


def test_why_a_failure_is_answered_is_remembered() -> None:
    """
    As a failure of the gateway's own, not as a refusal.
    """
    dispatching = Dispatching(counting(broken))
    dispatching.send(count("orders"), 1)
    assert dispatching.remembered() == [(CLIENT_ID, "Count", 1, "UNKNOWN_SERVER_ERROR", "", OURS)]
    assert dispatching.reasons.latest(1)[0].kind is Kind.FAILED


def test_a_refusal_is_an_answer(logged: Sequence[LogEvent]) -> None:
    """
    A KafkaError that is raised reaches the client as its code, is remembered with its message, and is no log entry.
    """
    dispatching = Dispatching(counting(refusing))
    assert dispatching.codes(2, count("orders", "payments")) == [ErrorCode.POLICY_VIOLATION] * 2
    assert dispatching.remembered() == [(CLIENT_ID, "Count", 2, "POLICY_VIOLATION", "", "not on Sundays")]
    assert dispatching.reasons.latest(1)[0].kind is Kind.REFUSED
    assert not logged


def test_a_refusal_without_a_place_in_the_answer_ends_the_connection() -> None:
    """
    Kafka closes it too, and the reason is there for the operator.
    """

    def refuse(request: PingRequest, context: Context) -> NoReturn:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, "not on Sundays")

    dispatching = Dispatching(api(PingRequest, PingResponse, versions="0", needs=EVERYBODY)(refuse))
    with pytest.raises(HangUp, match="Ping v0 has no place for POLICY_VIOLATION: not on Sundays"):
        dispatching.send(PingRequest(), 0)
    assert dispatching.remembered() == [(CLIENT_ID, "Ping", 0, "POLICY_VIOLATION", "", "not on Sundays")]


@pytest.mark.parametrize("late", [False, True], ids=["plain", "async"])
def test_a_response_that_cannot_be_encoded_is_a_failure(late: bool, logged: Sequence[LogEvent]) -> None:
    """
    The log names the field that the handler filled wrongly.
    """
    wrong = CountResponse(topics=[Topic(name="orders", count="many")])  # type: ignore[arg-type]
    dispatching = Dispatching(waiting(succeed(wrong)) if late else counting(lambda *_: wrong))
    assert dispatching.codes() == [UNKNOWN]
    [event] = logged
    assert "CountResponse v0: topics.count" in eventAsText(event)


@pytest.mark.parametrize("answer", [{"topics": []}, CountResponse(topics=None)], ids=["dict", "null"])  # type: ignore[arg-type]
@pytest.mark.parametrize("late", [False, True], ids=["plain", "async"])
def test_what_is_no_response_is_a_failure(answer: Any, late: bool, logged: Sequence[LogEvent]) -> None:
    """
    Whatever a handler returns, its client is answered.
    """
    assert Dispatching(waiting(succeed(answer)) if late else counting(lambda *_: answer)).codes() == [UNKNOWN]
    assert len(logged) == 1


def test_an_answer_that_cannot_be_made_ends_the_connection(
    monkeypatch: pytest.MonkeyPatch, logged: Sequence[LogEvent]
) -> None:
    """
    Nothing waits for ever, though not even a failure could be told.
    """
    monkeypatch.setattr("kgateway.server.dispatch.refused", broken)
    wait: Deferred[CountResponse] = Deferred()
    answer = Dispatching(waiting(wait)).send(count("orders"), 1)
    wait.errback(KafkaError(ErrorCode.INVALID_REQUEST))
    assert isinstance(answer, Pending)
    assert answer.hang_up
    assert len(logged) == 1


@pytest.mark.parametrize("late", [False, True], ids=["plain", "async"])
def test_a_code_that_kafka_does_not_have_is_answered(late: bool) -> None:
    """
    As it is, and remembered with its number.
    """
    response = CountResponse(topics=[Topic(name="orders", error_code=9999)])
    dispatching = Dispatching(waiting(succeed(response)) if late else counting(lambda *_: response))
    assert dispatching.codes() == [9999]
    told = "9999 was answered, which is no error code of Kafka's"
    assert dispatching.remembered() == [(CLIENT_ID, "Count", 0, "UNKNOWN_SERVER_ERROR", "orders", told)]


def test_what_was_not_answered_is_not_remembered() -> None:
    """
    A handler that refuses some items and then fails: the failure stands for all of them.
    """

    def refuse_and_fail(request: CountRequest, context: Context) -> NoReturn:
        context.refuse(KafkaError(ErrorCode.INVALID_REQUEST), "orders")
        raise ZeroDivisionError

    dispatching = Dispatching(counting(refuse_and_fail))
    assert dispatching.codes() == [UNKNOWN]
    assert dispatching.remembered() == [(CLIENT_ID, "Count", 0, "UNKNOWN_SERVER_ERROR", "", OURS)]


def producing(answer: Callable[..., Any]) -> Dispatching:
    """
    A gateway with such a handler of Produce.
    """
    return Dispatching(api(ProduceRequest, ProduceResponse, versions="3-12", needs=EVERYBODY)(answer))


def test_a_produce_without_acks_gets_no_answer() -> None:
    """
    Its client would take one for that of its next request.
    """
    dispatching = producing(lambda *_: ProduceResponse(responses=[]))
    assert dispatching.send(ProduceRequest(acks=0, timeout_ms=0, topic_data=[]), 9) == b""
    assert dispatching.remembered() == []


@pytest.mark.parametrize("answer", [lambda *_: ProduceResponse(responses=[_refused_produce()]), refusing, broken])
def test_a_produce_without_acks_that_fails_ends_the_connection(answer: Callable[..., Any]) -> None:
    """
    So its client hears that something is wrong, and the operator what.
    """
    dispatching = producing(answer)
    with pytest.raises(HangUp, match="waits for no answer"):
        dispatching.send(ProduceRequest(acks=0, timeout_ms=0, topic_data=[]), 9)
    assert len(dispatching.remembered()) == 1


def _refused_produce() -> ProduceResponse.Response:
    answer = ProduceResponse.Response.PartitionResponse(index=0, error_code=3, base_offset=-1)
    return ProduceResponse.Response(name="orders", partition_responses=[answer])


@pytest.mark.parametrize("late", [False, True], ids=["Deferred", "async"])
def test_what_is_there_at_once_is_answered_at_once(late: bool) -> None:
    """
    A Deferred that has fired and a coroutine that does not wait cost no turn of the reactor.
    """
    response = succeed(CountResponse(topics=[Topic(name="orders", count=1)]))
    handler = waiting(response) if late else counting(lambda *_: response)
    assert Dispatching(handler).said(CountResponse, 1).topics[0].count == 1


def test_a_coroutine_is_answered_when_it_returns() -> None:
    """
    Nothing is sent before.
    """
    wait: Deferred[CountResponse] = Deferred()
    answer = Dispatching(waiting(wait)).send(count("orders"), 1)
    assert isinstance(answer, Pending)
    assert not answer.ready
    wait.callback(CountResponse(topics=[Topic(name="orders", count=1)]))
    assert read(CountResponse, 1, ready(answer)).topics[0].count == 1


def test_a_deferred_that_fails_later_is_a_failure(logged: Sequence[LogEvent]) -> None:
    """
    It is answered and logged as one that is raised at once.
    """
    wait: Deferred[CountResponse] = Deferred()
    dispatching = Dispatching(counting(lambda *_: wait))
    answer = dispatching.send(count("orders"), 1)
    wait.errback(ZeroDivisionError("later"))
    assert [topic.error_code for topic in read(CountResponse, 1, ready(answer)).topics] == [UNKNOWN]
    [event] = logged
    assert "ZeroDivisionError: later" in eventAsText(event)


def test_a_deferred_that_has_failed_may_refuse() -> None:
    """
    A KafkaError that comes out of it is the client's.
    """
    error = KafkaError(ErrorCode.NOT_COORDINATOR, "node 2 is")
    dispatching = Dispatching(counting(lambda *_: fail(error)))
    assert dispatching.codes() == [ErrorCode.NOT_COORDINATOR]
    assert dispatching.remembered() == [(CLIENT_ID, "Count", 0, "NOT_COORDINATOR", "", "node 2 is")]


@pytest.mark.parametrize("handler", [counting(lambda *_: None), waiting(succeed(None))], ids=["plain", "async"])
def test_a_handler_may_answer_nothing(handler: Handler) -> None:
    """
    Nothing is sent, and that is no error.
    """
    dispatching = Dispatching(handler)
    assert dispatching.send(count("orders"), 1) == b""
    assert dispatching.remembered() == []


def test_a_handler_may_hang_up() -> None:
    """
    The connection ends in place of an answer; what the context holds of refusals is remembered.
    """

    def hang_up(request: CountRequest, context: Context) -> CountResponse:
        context.refuse(KafkaError(ErrorCode.INVALID_RECORD, "no records"), "orders-0")
        context.hang_up = "it cannot be told otherwise"
        return CountResponse()

    dispatching = Dispatching(counting(hang_up))
    with pytest.raises(HangUp, match="it cannot be told otherwise"):
        dispatching.send(count("orders"), 1)
    assert dispatching.remembered() == [(CLIENT_ID, "Count", 1, "INVALID_RECORD", "orders-0", "no records")]


def test_a_handler_that_waits_may_hang_up() -> None:
    """
    The connection is told when the time comes.
    """
    wait: Deferred[CountResponse] = Deferred()
    answer = Dispatching(waiting(wait)).send(count("orders"), 1)
    wait.errback(HangUp("too late"))
    assert isinstance(answer, Pending)
    assert answer.ready
    assert answer.hang_up == "too late"


def test_a_handler_that_raises_hang_up_is_no_failure(logged: Sequence[LogEvent]) -> None:
    """
    The connection hears of it as it is.
    """

    def hang_up(request: CountRequest, context: Context) -> NoReturn:
        raise HangUp("no")

    with pytest.raises(HangUp, match="no"):
        Dispatching(counting(hang_up)).send(count("orders"), 1)
    assert not logged


def test_a_request_that_was_given_up_has_no_answer(logged: Sequence[LogEvent]) -> None:
    """
    Who cancels a handler's wait wants none, and it is no bug.
    """
    wait: Deferred[CountResponse] = Deferred()
    answer = Dispatching(waiting(wait)).send(count("orders"), 1)
    wait.cancel()
    assert isinstance(answer, Pending)
    assert answer.hang_up == "the request was given up"
    assert not logged


def test_a_poll_is_cut_short() -> None:
    """
    A handler that polls has its wait cancelled when the connection ends; one that does not goes on.
    """
    for polls, cancelled in ((True, ["wait"]), (False, [])):
        ended: list[str] = []
        wait: Deferred[CountResponse] = Deferred(lambda _, ended=ended: ended.append("wait"))  # type: ignore[misc]
        answer = Dispatching(counting(waiting(wait).function, polls=polls)).send(count("orders"), 1)
        assert isinstance(answer, Pending)
        answer.cut_short()
        assert ended == cancelled, polls


def test_an_answer_that_nobody_takes_is_logged(logged: Sequence[LogEvent]) -> None:
    """
    What fails behind the answer is no failure of its handler.
    """
    wait: Deferred[CountResponse] = Deferred()
    answer = Dispatching(waiting(wait)).send(count("orders"), 1)
    assert isinstance(answer, Pending)
    answer.call_when_ready(lambda: 1 / 0)  # type: ignore[arg-type]
    wait.callback(CountResponse())
    [event] = logged
    assert "an answer was lost" in eventAsText(event)


class Ending(Later):
    """
    What a handler may return in place of a Deferred: cancelled it ends, with an answer or a failure.
    """

    def __init__(self, make: Callable[[], Message]) -> None:
        super().__init__()
        self._make = make

    def cancel(self) -> None:
        self._end()

    def _response(self) -> Message:
        return self._make()


@pytest.mark.parametrize("filtered", [False, True], ids=["straight", "filtered"])
def test_an_answer_may_come_later_without_a_deferred(filtered: bool) -> None:
    """
    Through filters, too.
    """

    @around(CountRequest)
    async def through(request: CountRequest, context: Context, proceed: Proceed) -> Message | None:
        return await proceed(request)

    later = Ending(lambda: CountResponse(topics=[Topic(name="orders", count=1)]))
    answer = Dispatching(counting(lambda *_: later, polls=True), *[through] * filtered).send(count("orders"), 1)
    assert isinstance(answer, Pending)
    assert not answer.ready
    answer.cut_short()
    assert read(CountResponse, 1, ready(answer)).topics[0].count == 1


def test_an_answer_that_comes_later_may_fail(logged: Sequence[LogEvent]) -> None:
    """
    It is answered and logged as one that is raised at once.
    """
    later = Ending(lambda: broken(count(), None))  # type: ignore[arg-type]
    answer = Dispatching(counting(lambda *_: later, polls=True)).send(count("orders"), 1)
    assert isinstance(answer, Pending)
    answer.cut_short()
    assert [topic.error_code for topic in read(CountResponse, 1, ready(answer)).topics] == [UNKNOWN]
    assert len(logged) == 1


@pytest.mark.parametrize("overlaps", [True, False])
def test_a_handler_says_whether_the_next_request_may_start(overlaps: bool) -> None:
    """
    The connection starts it before this one is answered, or after.
    """
    wait: Deferred[CountResponse] = Deferred()
    answer = Dispatching(counting(lambda *_: wait, overlaps=overlaps)).send(count("orders"), 1)
    assert isinstance(answer, Pending)
    assert answer.next_may_start is overlaps


def test_an_unknown_api_ends_the_connection() -> None:
    """
    The reason names its key.
    """
    with pytest.raises(HangUp, match="the API with key 30001 is not served here"):
        Dispatching(counting(counted)).send(PingRequest(), 0)


def test_a_version_that_is_not_served_ends_the_connection() -> None:
    """
    The reason names the API and the version.
    """
    old = api(CountRequest, CountResponse, versions="0-1", needs=EVERYBODY)(counted)
    with pytest.raises(HangUp, match="Count v2 is not served here"):
        Dispatching(old).send(count("orders"), 2)


def test_a_version_that_is_only_advertised_ends_the_connection() -> None:
    """
    What ApiVersions tells of for another reason is not served by that.
    """
    new = api(CountRequest, CountResponse, versions="1-2", advertised="0-2", needs=EVERYBODY)(counted)
    with pytest.raises(HangUp, match="Count v0 is not served here"):
        Dispatching(new).send(count("orders"), 0)


def test_api_versions_of_the_future_is_answered() -> None:
    """
    Which versions of it there are, in the form of v0, which every client reads; and why is remembered.
    """
    dispatching = Dispatching(api_versions)
    frame = b"".join(request_frame(ApiVersionsRequest(client_software_name="new"), 4, 7, CLIENT_ID))
    answer = dispatching.dispatcher.serve(frame[4:6] + (99).to_bytes(2, "big") + frame[8:], dispatching.session)
    assert isinstance(answer, list)
    said = b"".join(answer)
    assert said[:8] == (len(said) - 4).to_bytes(4, "big") + (7).to_bytes(4, "big")
    response = decode(ApiVersionsResponse, 0, said[8:])
    own = ApiVersionsResponse.ApiKey(api_key=18, min_version=0, max_version=4)
    assert response == ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION, api_keys=[own])
    why = "ApiVersions v99 is not served here"
    assert dispatching.remembered() == [(CLIENT_ID, "ApiVersions", 99, "UNSUPPORTED_VERSION", "", why)]


@pytest.mark.parametrize("cut", [3, 12, -1])
def test_a_frame_that_ends_too_early_is_malformed(cut: int) -> None:
    """
    In the place that every header has, in the rest of the header, in the body.
    """
    dispatching = Dispatching(counting(counted))
    frame = b"".join(request_frame(count("orders"), 1, 7, CLIENT_ID))
    with pytest.raises(Malformed):
        dispatching.dispatcher.serve(frame[4:][:cut], dispatching.session)


def test_refusals_are_remembered_with_what_they_are_about() -> None:
    """
    A handler that tells the context why has each code, subject and message in the operator's list, and no more.
    """

    def refuse(request: CountRequest, context: Context) -> CountResponse:
        error = KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "it was deleted")
        refused = [Topic(name=topic.name, error_code=context.refuse(error, topic.name)) for topic in request.topics]
        return CountResponse(topics=refused)

    dispatching = Dispatching(counting(refuse))
    dispatching.send(count("orders", "payments"), 1)
    assert dispatching.remembered() == [
        (CLIENT_ID, "Count", 1, "UNKNOWN_TOPIC_OR_PARTITION", name, "it was deleted") for name in ("orders", "payments")
    ]


def test_a_bare_code_is_remembered_with_what_it_means() -> None:
    """
    A handler that puts codes into its response without a word: the answer itself says what they are about.
    """
    dispatching = Dispatching(counting(bare))
    dispatching.send(count("fine", "orders"), 1)
    meaning = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION.meaning
    assert dispatching.remembered() == [(CLIENT_ID, "Count", 1, "UNKNOWN_TOPIC_OR_PARTITION", "orders", meaning)]


def test_a_code_with_a_reason_is_not_remembered_again_without() -> None:
    """
    The handler's own words stand for it.
    """

    def both(request: CountRequest, context: Context) -> CountResponse:
        code = context.refuse(KafkaError(ErrorCode.INVALID_REQUEST, "twice"), "orders")
        return CountResponse(topics=[Topic(name="orders", error_code=code), Topic(name="payments", error_code=29)])

    dispatching = Dispatching(counting(both))
    dispatching.send(count("orders", "payments"), 1)
    assert [(outcome, subject) for _, _, _, outcome, subject, _ in dispatching.remembered()] == [
        ("INVALID_REQUEST", "orders"),
        ("TOPIC_AUTHORIZATION_FAILED", "payments"),
    ]


def test_of_many_refusals_a_few_are_remembered() -> None:
    """
    A request may name a thousand partitions, and others are to be remembered, too.
    """
    response = CountResponse(topics=[Topic(name=f"topic-{i}", error_code=3) for i in range(1000)])
    dispatching = Dispatching(counting(lambda *_: response))
    dispatching.send(count(), 1)
    assert [reason[4] for reason in dispatching.remembered()] == [f"topic-{i}" for i in range(10)]


def test_of_many_refusals_a_few_are_kept() -> None:
    """
    A request of a hundred thousand partitions would hold as many errors, and the words for what they are about.
    """
    told: list[int] = []

    class Subject:
        def __init__(self, index: int) -> None:
            self.index = index

        def __str__(self) -> str:
            told.append(self.index)
            return f"topic-{self.index}"

    def refuse(request: CountRequest, context: Context) -> CountResponse:
        error = KafkaError(ErrorCode.INVALID_REQUEST, "no")
        codes = [context.refuse(error, Subject(index)) for index in range(1000)]
        assert len(context.refusals or ()) == REFUSALS_MAX
        return CountResponse(topics=[Topic(name=f"topic-{i}", error_code=code) for i, code in enumerate(codes)])

    dispatching = Dispatching(counting(refuse))
    assert dispatching.codes() == [ErrorCode.INVALID_REQUEST] * 1000
    assert [reason[4] for reason in dispatching.remembered()] == [f"topic-{i}" for i in range(10)]
    assert told == list(range(10))


def test_a_throttle_time_is_put_on_any_answer() -> None:
    """
    Where the version has a place for it.
    """

    def throttle(request: CountRequest, context: Context) -> CountResponse:
        context.throttle_ms = 250
        return CountResponse()

    dispatching = Dispatching(counting(throttle))
    told = [dispatching.said(CountResponse, version).throttle_time_ms for version in VERSIONS]
    assert told == [0, 250, 250]


@pytest.mark.parametrize("late", [False, True], ids=["plain", "async"])
def test_a_response_without_a_throttle_time_stays_without(late: bool) -> None:
    """
    Its table has no place for one.
    """

    def throttle(request: PingRequest, context: Context) -> Any:
        context.throttle_ms = 250
        return succeed(PingResponse(pongs=1)) if late else PingResponse(pongs=1)

    dispatching = Dispatching(api(PingRequest, PingResponse, versions="0", needs=EVERYBODY)(throttle))
    assert dispatching.said(PingResponse, 0, PingRequest()).pongs == 1


def test_without_a_throttle_time_the_handlers_own_stays() -> None:
    """
    The context says nothing unless it is told to.
    """
    response = CountResponse(throttle_time_ms=70)
    assert Dispatching(counting(lambda *_: response)).said(CountResponse, 1).throttle_time_ms == 70


def test_requests_are_counted_and_timed() -> None:
    """
    By version; a request takes until its answer is there, by the monotonic clock.
    """
    waits = [Deferred[CountResponse](), Deferred[CountResponse]()]
    dispatching = Dispatching(waiting(*waits))
    for wait, seconds in zip(waits, (2, 3), strict=True):
        dispatching.send(count("orders"), 1)
        dispatching.clock.advance(seconds)
        wait.callback(CountResponse())
        dispatching.clock.advance(100)
    assert (route(dispatching, 1).calls, route(dispatching, 1).seconds, route(dispatching, 1).errors) == (2, 5, 0)


@pytest.mark.parametrize("handler", [broken, refusing, bare])
def test_errors_are_counted(handler: Callable[..., Any]) -> None:
    """
    One a request, however it came to be and however many codes the answer has.
    """
    dispatching = Dispatching(counting(handler))
    dispatching.send(count("orders", "payments"), 0)
    assert (route(dispatching).errors, route(dispatching).calls) == (1, 1)


def test_versions_of_different_handlers_go_different_ways() -> None:
    """
    Each version has the handler that the registry gives it, also when both were used before.
    """

    def newer(request: CountRequest, context: Context) -> CountResponse:
        return CountResponse(topics=[Topic(name="new")])

    replacing = api(CountRequest, CountResponse, versions="2", needs=EVERYBODY, replaces=True, priority=1)(newer)
    dispatching = Dispatching(counting(counted), also=plugins(replacing))
    names = [dispatching.said(CountResponse, version).topics[0].name for version in (1, 2, 1, 2)]
    assert names == ["orders", "new", "orders", "new"]
