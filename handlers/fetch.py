"""
Fetch: record batches from where a consumer is in each partition, as they were produced.

 - v0-3: batches are converted to message sets; zstd is refused, and with v0-2 what does not fit is not sent
 - v4: read_committed
 - v7: fetch sessions (KIP-227)
 - v9: leader epochs are checked (KIP-320)
 - v10: before it, topics with compression.type=zstd are refused; batches that producers compressed with it go to every
   client that knows batches, as in Kafka (KIP-110)
 - v12: a client says which epoch it read last, and is told where the log parted from it (KIP-595)
 - v13: topics by id (KIP-516)
 - v16: a refusal by who is not the leader names the leader and where it is (KIP-951)

What is there is answered at once, by plain calls. Where that is less than the client waits for, a long poll follows.
What another server has to be asked for comes in time, or in a later fetch.
"""

from functools import partial

from kgateway.api import Context, Operation, Resource, api
from kgateway.fetching.converted import ZSTD_SINCE, old_reader
from kgateway.fetching.polling import LongPoll
from kgateway.fetching.reading import Reader, Reading
from kgateway.fetching.sessions import FetchSessions, Told, Turn
from kgateway.fetching.wanted import Answer
from kgateway.messages.fetch import FetchRequest, FetchResponse
from kgateway.partitions import isolation, name_leaders
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.uuids import Uuid

_AT_LEAST_S = 0.02  # for what has to be fetched, also for a client that does not wait: mostly it is here by then
_MISLED = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


@api(FetchRequest, FetchResponse, versions="0-18", polls=True, needs=Operation.READ.on(Resource.TOPIC))
def fetch(request: FetchRequest, context: Context) -> FetchResponse | LongPoll:
    reads = isolation(request.isolation_level)
    try:
        turn = context.service(FetchSessions).turn(request, by_id=context.version >= 13)
    except KafkaError as error:
        return _lost_session(error, context)
    max_bytes = min(request.max_bytes, context.settings.fetch_max_bytes)
    # Who will not wait, or has nothing to wait for, has enough.
    min_bytes = min(request.min_bytes, max_bytes) if request.max_wait_ms > 0 and turn.wanted else 0
    wait_s = max(request.max_wait_ms, 0) / 1000
    due = context.clock.seconds() + max(wait_s, _AT_LEAST_S)
    kind = Reader if context.version >= ZSTD_SINCE else old_reader(context.version)
    reading = Reading(kind(context, reads, _replica_id(request), due), turn.wanted, max_bytes)
    if reading.suffices(min_bytes):
        return _response(turn, context, reading.answers)
    return LongPoll(reading, partial(_response, turn, context), min_bytes, wait_s, context)


def _replica_id(request: FetchRequest) -> int:
    return request.replica_state.replica_id if request.replica_state else request.replica_id


def _response(turn: Turn, context: Context, answers: list[Answer]) -> FetchResponse:
    if not context.session.connected:
        return FetchResponse(responses=[])  # to nobody, and a session for nobody would take another's place
    try:
        session_id, told = turn.tell(list(zip(turn.wanted, answers, strict=True)))
    except KafkaError as error:
        return _lost_session(error, context)
    response = FetchResponse(session_id=session_id, responses=_by_topic(told))
    if context.refusals and context.version >= 16:
        topics = context.broker.view().topics
        misled = (
            (topics.get(one.name or ""), one.index, answer) for one, answer in told if answer.error_code in _MISLED
        )
        name_leaders(response, misled, context)
    return response


def _by_topic(told: Told) -> list[FetchResponse.Response]:
    """
    The answers in their order, which sessions change: a topic may come more than once.
    """
    topics: list[FetchResponse.Response] = []
    last: str | Uuid | None = None
    for wanted, answer in told:
        if wanted.topic != last:
            last = wanted.topic
            topics.append(_topic(last))
        topics[-1].partitions.append(answer)
    return topics


def _topic(called: str | Uuid) -> FetchResponse.Response:
    if isinstance(called, Uuid):
        return FetchResponse.Response(topic_id=called, partitions=[])
    return FetchResponse.Response(topic=called, partitions=[])


def _lost_session(error: KafkaError, context: Context) -> FetchResponse:
    return FetchResponse(error_code=context.refuse(error, "fetch session"), responses=[])
