"""
From a frame to its answer: what handlers may do, and how their failures are answered.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

import pytest
from twisted.internet.defer import Deferred, fail, succeed
from twisted.logger import LogEvent, capturedLogs, eventAsText

from kgateway.api import Context, Handler, api, around
from kgateway.context import REFUSALS_MAX
from kgateway.handlers.api_versions import api_versions
from kgateway.interfaces import Proceed
from kgateway.late_response import LateResponse
from kgateway.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kgateway.messages.produce import ProduceRequest, ProduceResponse
from kgateway.observe.reasons import ReasonKind
from kgateway.security.permissions import Free
from kgateway.server.dispatch import Route
from kgateway.server.request_queue import HangUp, PendingAnswer
from kgateway.wire.codec import decode
from kgateway.wire.errors import ErrorCode, KafkaError, Malformed
from kgateway.wire.headers import request_frame
from kgateway.wire.schema import Message
from tests.server.dispatcher import (
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
OURS = "the gateway failed unexpectedly; its log has the traceback"


def counting(function: Callable[..., Any], **options: Any) -> Handler:
    """
    The function as a handler of Count.
    """
    return api(CountRequest, CountResponse, versions="0-3", needs=EVERYBODY, **options)(function)


def counted(request: CountRequest, context: Context) -> CountResponse:
    return CountResponse(topics=[Topic(name=topic.name, count=len(topic.name)) for topic in request.topics])


def broken(request: CountRequest, context: Context) -> NoReturn:
    raise ZeroDivisionError("division by zero")


def refusing(request: CountRequest, context: Context) -> NoReturn:
    raise KafkaError(ErrorCode.POLICY_VIOLATION, "not on Sundays")


def waiting(*waits: Deferred[Any]) -> Handler:
    """
    A handler whose requests wait for one of these each, and answer with its result.
    """
    remaining = iter(waits)

    async def wait(request: CountRequest, context: Context) -> Any:
        return await next(remaining)

    return counting(wait)


def in_turn(*functions: Callable[..., Any]) -> Handler:
    """
    A handler that delegates each request to the next of these.
    """
    remaining = iter(functions)

    def handle(request: CountRequest, context: Context) -> Any:
        return next(remaining)(request, context)

    return counting(handle)


def bare(request: CountRequest, context: Context) -> CountResponse:
    """
    A handler that answers with a bare error code.
    """
    return CountResponse(topics=[Topic(name="fine"), Topic(name="orders", error_code=3)])


def route(dispatching: Dispatching, version: int = 0) -> Route:
    return dispatching.dispatcher.routes[30_000, version]


@pytest.fixture
def logged() -> Iterator[Sequence[LogEvent]]:
    with capturedLogs() as events:
        yield events


@pytest.mark.parametrize("version", VERSIONS)
def test_an_answer_has_the_form_of_its_request(version: int) -> None:
    """
    It has size, correlation id and body, classic or flexible as the request's version.
    """
    answer = Dispatching(counting(counted)).said(CountResponse, version)
    assert answer == CountResponse(topics=[Topic(name="orders", count=6)])


def test_a_handler_knows_its_client() -> None:
    """
    The context has the version, the client and its connection, and the arrival by the monotonic clock.
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
def test_a_failing_handler_ends_its_own_request(version: int) -> None:
    """
    Each item gets UNKNOWN_SERVER_ERROR; later requests are served.
    """
    dispatching = Dispatching(in_turn(broken, counted))
    answer = dispatching.said(CountResponse, version, count("orders", "payments"))
    assert [(topic.name, topic.error_code) for topic in answer.topics] == [("orders", UNKNOWN), ("payments", UNKNOWN)]
    assert dispatching.codes(version) == [ErrorCode.NONE]


def test_a_failing_handler_does_not_affect_others() -> None:
    """
    Requests that wait for another handler, or of another connection, are answered in time.
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
    The log names the request, the client, and the line that failed.
    """
    dispatching = Dispatching(counting(broken))
    dispatching.send(count("orders", "payments"), version)
    [event] = logged
    text = eventAsText(event)
    assert f"Count v{version} of checkout failed" in text
    assert 'raise ZeroDivisionError("division by zero")' in text


def test_a_failure_is_remembered_as_a_failure() -> None:
    """
    It is not remembered as a refusal.
    """
    dispatching = Dispatching(counting(broken))
    dispatching.send(count("orders"), 1)
    assert dispatching.remembered() == [(CLIENT_ID, "Count", 1, "UNKNOWN_SERVER_ERROR", "", OURS)]
    assert dispatching.reasons.latest(1)[0].kind is ReasonKind.FAILED


def test_a_refusal_is_an_answer(logged: Sequence[LogEvent]) -> None:
    """
    A raised KafkaError is answered as its code, remembered with its message, and not logged.
    """
    dispatching = Dispatching(counting(refusing))
    assert dispatching.codes(2, count("orders", "payments")) == [ErrorCode.POLICY_VIOLATION] * 2
    assert dispatching.remembered() == [(CLIENT_ID, "Count", 2, "POLICY_VIOLATION", "", "not on Sundays")]
    assert dispatching.reasons.latest(1)[0].kind is ReasonKind.REFUSED
    assert not logged


def test_a_refusal_that_fits_no_answer_closes_the_connection() -> None:
    """
    Kafka closes it too, and the operator can read the reason.
    """

    def refuse(request: PingRequest, context: Context) -> NoReturn:
        raise KafkaError(ErrorCode.POLICY_VIOLATION, "not on Sundays")

    dispatching = Dispatching(api(PingRequest, PingResponse, versions="0", needs=EVERYBODY)(refuse))
    with pytest.raises(HangUp, match="Ping v0 cannot report POLICY_VIOLATION: not on Sundays"):
        dispatching.send(PingRequest(), 0)
    assert dispatching.remembered() == [(CLIENT_ID, "Ping", 0, "POLICY_VIOLATION", "", "not on Sundays")]


@pytest.mark.parametrize("late", [False, True], ids=["plain", "async"])
def test_an_unencodable_response_is_a_failure(late: bool, logged: Sequence[LogEvent]) -> None:
    """
    The log names the wrong field.
    """
    wrong = CountResponse(topics=[Topic(name="orders", count="many")])  # type: ignore[arg-type]
    dispatching = Dispatching(waiting(succeed(wrong)) if late else counting(lambda *_: wrong))
    assert dispatching.codes() == [UNKNOWN]
    [event] = logged
    assert "CountResponse v0: topics.count" in eventAsText(event)


@pytest.mark.parametrize("answer", [{"topics": []}, CountResponse(topics=None)], ids=["dict", "null"])  # type: ignore[arg-type]
@pytest.mark.parametrize("late", [False, True], ids=["plain", "async"])
def test_anything_but_a_response_is_a_failure(answer: Any, late: bool, logged: Sequence[LogEvent]) -> None:
    """
    The client is answered whatever a handler returns.
    """
    assert Dispatching(waiting(succeed(answer)) if late else counting(lambda *_: answer)).codes() == [UNKNOWN]
    assert len(logged) == 1


def test_a_failure_that_fits_no_answer_closes_the_connection(
    monkeypatch: pytest.MonkeyPatch, logged: Sequence[LogEvent]
) -> None:
    """
    Otherwise its client would wait for ever.
    """
    monkeypatch.setattr("kgateway.server.dispatch.refused", broken)
    wait: Deferred[CountResponse] = Deferred()
    answer = Dispatching(waiting(wait)).send(count("orders"), 1)
    wait.errback(KafkaError(ErrorCode.INVALID_REQUEST))
    assert isinstance(answer, PendingAnswer)
    assert answer.hang_up
    assert len(logged) == 1


@pytest.mark.parametrize("late", [False, True], ids=["plain", "async"])
def test_an_unknown_code_is_answered(late: bool) -> None:
    """
    It is passed on, and remembered with its number.
    """
    response = CountResponse(topics=[Topic(name="orders", error_code=9999)])
    dispatching = Dispatching(waiting(succeed(response)) if late else counting(lambda *_: response))
    assert dispatching.codes() == [9999]
    told = "the response has 9999, which is not an error code of Kafka"
    assert dispatching.remembered() == [(CLIENT_ID, "Count", 0, "UNKNOWN_SERVER_ERROR", "orders", told)]


def test_refusals_are_forgotten_after_a_failure() -> None:
    """
    A handler refuses some items and then fails: the failure replaces them all.
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
def test_a_failed_produce_without_acks_closes_the_connection(answer: Callable[..., Any]) -> None:
    """
    So the client learns of the failure, and the operator can read it.
    """
    dispatching = producing(answer)
    with pytest.raises(HangUp, match="does not wait for a response"):
        dispatching.send(ProduceRequest(acks=0, timeout_ms=0, topic_data=[]), 9)
    assert len(dispatching.remembered()) == 1


def _refused_produce() -> ProduceResponse.Response:
    answer = ProduceResponse.Response.PartitionResponse(index=0, error_code=3, base_offset=-1)
    return ProduceResponse.Response(name="orders", partition_responses=[answer])


@pytest.mark.parametrize("late", [False, True], ids=["Deferred", "async"])
def test_a_finished_result_is_answered_at_once(late: bool) -> None:
    """
    A fired Deferred and a coroutine that does not wait take no turn of the reactor.
    """
    response = succeed(CountResponse(topics=[Topic(name="orders", count=1)]))
    handler = waiting(response) if late else counting(lambda *_: response)
    assert Dispatching(handler).said(CountResponse, 1).topics[0].count == 1


def test_a_coroutine_is_answered_when_it_returns() -> None:
    wait: Deferred[CountResponse] = Deferred()
    answer = Dispatching(waiting(wait)).send(count("orders"), 1)
    assert isinstance(answer, PendingAnswer)
    assert not answer.ready
    wait.callback(CountResponse(topics=[Topic(name="orders", count=1)]))
    assert read(CountResponse, 1, ready(answer)).topics[0].count == 1


def test_a_deferred_may_fail_later(logged: Sequence[LogEvent]) -> None:
    """
    It is answered and logged as an exception raised at once.
    """
    wait: Deferred[CountResponse] = Deferred()
    dispatching = Dispatching(counting(lambda *_: wait))
    answer = dispatching.send(count("orders"), 1)
    wait.errback(ZeroDivisionError("later"))
    assert [topic.error_code for topic in read(CountResponse, 1, ready(answer)).topics] == [UNKNOWN]
    [event] = logged
    assert "ZeroDivisionError: later" in eventAsText(event)


def test_a_deferred_may_refuse() -> None:
    """
    Its KafkaError is answered.
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
    The connection is closed instead; the refusals in the context are remembered.
    """

    def hang_up(request: CountRequest, context: Context) -> CountResponse:
        context.refuse(KafkaError(ErrorCode.INVALID_RECORD, "no records"), "orders-0")
        context.hang_up = "it cannot be told otherwise"
        return CountResponse()

    dispatching = Dispatching(counting(hang_up))
    with pytest.raises(HangUp, match="it cannot be told otherwise"):
        dispatching.send(count("orders"), 1)
    assert dispatching.remembered() == [(CLIENT_ID, "Count", 1, "INVALID_RECORD", "orders-0", "no records")]


def test_a_handler_may_hang_up_later() -> None:
    """
    The connection is woken then.
    """
    wait: Deferred[CountResponse] = Deferred()
    answer = Dispatching(waiting(wait)).send(count("orders"), 1)
    wait.errback(HangUp("too late"))
    assert isinstance(answer, PendingAnswer)
    assert answer.ready
    assert answer.hang_up == "too late"


def test_raising_hang_up_is_no_failure(logged: Sequence[LogEvent]) -> None:
    def hang_up(request: CountRequest, context: Context) -> NoReturn:
        raise HangUp("no")

    with pytest.raises(HangUp, match="no"):
        Dispatching(counting(hang_up)).send(count("orders"), 1)
    assert not logged


def test_a_cancelled_request_has_no_answer(logged: Sequence[LogEvent]) -> None:
    """
    A cancelled handler is no bug.
    """
    wait: Deferred[CountResponse] = Deferred()
    answer = Dispatching(waiting(wait)).send(count("orders"), 1)
    wait.cancel()
    assert isinstance(answer, PendingAnswer)
    assert answer.hang_up == "the request was abandoned"
    assert not logged


def test_the_end_of_a_connection_cancels_polls() -> None:
    """
    A handler that does not poll continues.
    """
    for polls, cancelled in ((True, ["wait"]), (False, [])):
        ended: list[str] = []
        wait: Deferred[CountResponse] = Deferred(lambda _, ended=ended: ended.append("wait"))  # type: ignore[misc]
        answer = Dispatching(counting(waiting(wait).function, polls=polls)).send(count("orders"), 1)
        assert isinstance(answer, PendingAnswer)
        answer.cut_short()
        assert ended == cancelled, polls


def test_a_failure_behind_the_answer_is_logged(logged: Sequence[LogEvent]) -> None:
    """
    It is no failure of the handler.
    """
    wait: Deferred[CountResponse] = Deferred()
    answer = Dispatching(waiting(wait)).send(count("orders"), 1)
    assert isinstance(answer, PendingAnswer)
    answer.call_when_ready(lambda: 1 / 0)  # type: ignore[arg-type]
    wait.callback(CountResponse())
    [event] = logged
    assert "a response was lost" in eventAsText(event)


def ending(respond: Callable[[], Message]) -> LateResponse:
    """
    A handler's result in place of a Deferred: it ends when cancelled, with an answer or a failure.
    """
    late = LateResponse(lambda: late.end(respond))
    return late


@pytest.mark.parametrize("filtered", [False, True], ids=["straight", "filtered"])
def test_a_later_answer_needs_no_deferred(filtered: bool) -> None:
    """
    It passes through filters, too.
    """

    @around(CountRequest)
    async def through(request: CountRequest, context: Context, proceed: Proceed) -> Message | None:
        return await proceed(request)

    later = ending(lambda: CountResponse(topics=[Topic(name="orders", count=1)]))
    answer = Dispatching(counting(lambda *_: later, polls=True), *[through] * filtered).send(count("orders"), 1)
    assert isinstance(answer, PendingAnswer)
    assert not answer.ready
    answer.cut_short()
    assert read(CountResponse, 1, ready(answer)).topics[0].count == 1


def test_a_later_answer_may_fail(logged: Sequence[LogEvent]) -> None:
    """
    It is answered and logged as an exception raised at once.
    """
    later = ending(lambda: broken(count(), None))  # type: ignore[arg-type]
    answer = Dispatching(counting(lambda *_: later, polls=True)).send(count("orders"), 1)
    assert isinstance(answer, PendingAnswer)
    answer.cut_short()
    assert [topic.error_code for topic in read(CountResponse, 1, ready(answer)).topics] == [UNKNOWN]
    assert len(logged) == 1


@pytest.mark.parametrize("overlaps", [True, False])
def test_handlers_declare_whether_the_next_request_may_start(overlaps: bool) -> None:
    """
    The connection starts it before this one is answered, or after.
    """
    wait: Deferred[CountResponse] = Deferred()
    answer = Dispatching(counting(lambda *_: wait, overlaps=overlaps)).send(count("orders"), 1)
    assert isinstance(answer, PendingAnswer)
    assert answer.next_may_start is overlaps


def test_an_unknown_api_closes_the_connection() -> None:
    """
    The reason has its key.
    """
    with pytest.raises(HangUp, match="the API with key 30001 is not served here"):
        Dispatching(counting(counted)).send(PingRequest(), 0)


def test_an_unsupported_version_closes_the_connection() -> None:
    """
    The reason has the API and the version.
    """
    old = api(CountRequest, CountResponse, versions="0-1", needs=EVERYBODY)(counted)
    with pytest.raises(HangUp, match="Count v2 is not served here"):
        Dispatching(old).send(count("orders"), 2)


def test_a_version_that_is_only_advertised_closes_the_connection() -> None:
    """
    ApiVersions lists it for another reason.
    """
    new = api(CountRequest, CountResponse, versions="1-2", advertised="0-2", needs=EVERYBODY)(counted)
    with pytest.raises(HangUp, match="Count v0 is not served here"):
        Dispatching(new).send(count("orders"), 0)


def test_a_future_api_versions_is_answered() -> None:
    """
    The supported versions are sent in v0, which every client reads, and the reason is remembered.
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
def test_a_truncated_request_is_malformed(cut: int) -> None:
    """
    It may end in the common part of the header, in the rest of it, or in the body.
    """
    dispatching = Dispatching(counting(counted))
    frame = b"".join(request_frame(count("orders"), 1, 7, CLIENT_ID))
    with pytest.raises(Malformed):
        dispatching.dispatcher.serve(frame[4:][:cut], dispatching.session)


def test_refusals_are_remembered_with_their_subjects() -> None:
    """
    The operator's list has each code, subject and message that a handler notes in the context, and no more.
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


def test_a_bare_code_is_remembered_with_its_meaning() -> None:
    """
    A handler notes nothing: its response has the subjects.
    """
    dispatching = Dispatching(counting(bare))
    dispatching.send(count("fine", "orders"), 1)
    meaning = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION.meaning
    assert dispatching.remembered() == [(CLIENT_ID, "Count", 1, "UNKNOWN_TOPIC_OR_PARTITION", "orders", meaning)]


def test_a_code_with_a_reason_is_remembered_once() -> None:
    """
    The handler's own reason counts.
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


def test_few_of_many_refusals_are_remembered() -> None:
    """
    A request may name a thousand partitions, and other requests have to be remembered.
    """
    response = CountResponse(topics=[Topic(name=f"topic-{i}", error_code=3) for i in range(1000)])
    dispatching = Dispatching(counting(lambda *_: response))
    dispatching.send(count(), 1)
    assert [reason[4] for reason in dispatching.remembered()] == [f"topic-{i}" for i in range(10)]


def test_few_of_many_refusals_are_kept_in_memory() -> None:
    """
    A request with a hundred thousand partitions would keep as many errors and subjects.
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
    The version must have the field.
    """

    def throttle(request: CountRequest, context: Context) -> CountResponse:
        context.throttle_ms = 250
        return CountResponse()

    dispatching = Dispatching(counting(throttle))
    told = [dispatching.said(CountResponse, version).throttle_time_ms for version in VERSIONS]
    assert told == [0, 250, 250]


@pytest.mark.parametrize("late", [False, True], ids=["plain", "async"])
def test_a_response_without_a_throttle_time_is_unchanged(late: bool) -> None:
    """
    Its table has no such field.
    """

    def throttle(request: PingRequest, context: Context) -> Any:
        context.throttle_ms = 250
        return succeed(PingResponse(pongs=1)) if late else PingResponse(pongs=1)

    dispatching = Dispatching(api(PingRequest, PingResponse, versions="0", needs=EVERYBODY)(throttle))
    assert dispatching.said(PingResponse, 0, PingRequest()).pongs == 1


def test_the_handlers_own_throttle_time_is_kept() -> None:
    """
    The context adds none without a call.
    """
    response = CountResponse(throttle_time_ms=70)
    assert Dispatching(counting(lambda *_: response)).said(CountResponse, 1).throttle_time_ms == 70


def test_requests_are_counted_and_timed() -> None:
    """
    Versions are counted separately, and the time is that until the answer, by the monotonic clock.
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
    A request counts once, whatever the cause and however many codes its answer has.
    """
    dispatching = Dispatching(counting(handler))
    dispatching.send(count("orders", "payments"), 0)
    assert (route(dispatching).errors, route(dispatching).calls) == (1, 1)


def test_versions_have_different_handlers() -> None:
    """
    Each has the one that the registry chose, even if both were used before.
    """

    def newer(request: CountRequest, context: Context) -> CountResponse:
        return CountResponse(topics=[Topic(name="new")])

    replacing = api(CountRequest, CountResponse, versions="2", needs=EVERYBODY, replaces=True, priority=1)(newer)
    dispatching = Dispatching(counting(counted), also=plugins(replacing))
    names = [dispatching.said(CountResponse, version).topics[0].name for version in (1, 2, 1, 2)]
    assert names == ["orders", "new", "orders", "new"]


def asking(*names: str) -> Handler:
    """
    A handler of Ping that asks the gateway to count, and answers with the number of topics that have no error.
    """

    @api(PingRequest, PingResponse, versions="0", needs=EVERYBODY)
    async def ping(request: PingRequest, context: Context) -> PingResponse:
        response = await context.ask(count(*names))
        assert isinstance(response, CountResponse)
        return PingResponse(pongs=sum(topic.error_code == 0 for topic in response.topics))

    return ping


def test_a_request_of_a_handler_passes_the_filters() -> None:
    """
    It is one of the same client, in the newest version that is served, and need not wait.
    """
    seen: list[tuple[str, int, str | None]] = []

    @around(CountRequest, topics=["orders"])
    async def watch(request: CountRequest, context: Context, proceed: Proceed) -> Message | None:
        seen.append((request.topics[0].name, context.version, context.client_id))
        context.throttle_ms = 100
        return await proceed(request)

    dispatching = Dispatching(asking("orders", "bills"), counting(counted), watch)
    assert dispatching.said(PingResponse, 0, PingRequest()).pongs == 2
    assert seen == [("orders", 3, CLIENT_ID)]
    assert Dispatching(asking("orders"), counting(counted)).said(PingResponse, 0, PingRequest()).pongs == 1


def test_a_filter_may_refuse_a_request_of_a_handler() -> None:
    """
    The handler that asked gets the KafkaError; nothing else of it is remembered.
    """

    @around(CountRequest)
    async def refuse(request: CountRequest, context: Context, proceed: Proceed) -> Message | None:
        context.refuse(KafkaError(ErrorCode.INVALID_REQUEST, "noted"), "inside")
        raise KafkaError(ErrorCode.POLICY_VIOLATION, "not on Sundays")

    dispatching = Dispatching(asking("orders"), counting(counted), refuse)
    answer = dispatching.send(PingRequest(), 0)
    assert isinstance(answer, PendingAnswer)
    assert "not on Sundays" in (answer.hang_up or ""), "Ping cannot report a code"
    [remembered] = dispatching.remembered()
    assert remembered[-1] == "not on Sundays"


def test_a_handler_may_ask_only_what_is_served() -> None:
    answer = Dispatching(asking("orders")).send(PingRequest(), 0)
    assert isinstance(answer, PendingAnswer)
    assert "Count is not served here" in (answer.hang_up or "")
