"""
Fetch: record batches from where a consumer is in each partition, as they were produced.

 - v0-3: batches are converted to message sets; zstd is refused, and with v0-2 what does not fit is not sent
 - v4: read_committed
 - v7: fetch sessions (KIP-227)
 - v9: leader epochs are checked (KIP-320)
 - v10: before it, topics with compression.type=zstd are refused; batches that producers compressed with it go to every
   client that knows batches, as in Kafka (KIP-110)
 - v12: a client says which epoch it read last, and learns where the log diverged from it (KIP-595)
 - v13: topics by id (KIP-516)
 - v16: an error from a node that is not the leader names the leader and where it is (KIP-951)

Records that are there are answered at once, by plain calls. If they are less than the client waits for, a long poll
follows. Records that must be fetched from another server come in time, or with a later fetch.
"""

from functools import partial

from kgateway.api import Context, api
from kgateway.fetch.long_poll import LongPoll
from kgateway.fetch.old_clients import ZSTD_SINCE, old_reader
from kgateway.fetch.reader import READ_TOPIC, Reader, ReadPass
from kgateway.fetch.sessions import FetchContext, FetchSessions, PartitionAnswers, ResponsePartition
from kgateway.late_response import LateResponse
from kgateway.messages.fetch import FetchRequest, FetchResponse
from kgateway.topic_lookup import isolation, name_leaders
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.uuids import Uuid

_AT_LEAST_S = 0.02  # for cold reads, also if the client does not wait: usually they are done by then
_MISDIRECTED = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.FENCED_LEADER_EPOCH)


@api(FetchRequest, FetchResponse, versions="0-18", polls=True, needs=READ_TOPIC)
def fetch(request: FetchRequest, context: Context) -> FetchResponse | LateResponse:
    reads = isolation(request.isolation_level)
    try:
        fetched = context.service(FetchSessions).context_of(request, by_id=context.version >= 13)
    except KafkaError as error:
        return _lost_session(error, context)
    max_bytes = min(request.max_bytes, context.settings.fetch_max_bytes)
    # A client that does not wait, or has nothing to wait for, is answered at once.
    min_bytes = min(request.min_bytes, max_bytes) if request.max_wait_ms > 0 and fetched.wanted else 0
    wait_s = max(request.max_wait_ms, 0) / 1000
    due = context.clock.seconds() + max(wait_s, _AT_LEAST_S)
    kind = Reader if context.version >= ZSTD_SINCE else old_reader(context.version)
    reading = ReadPass(kind(context, reads, _replica_id(request), due), fetched.wanted, max_bytes)
    if reading.suffices(min_bytes):
        return _response(fetched, context, reading.answers)
    return LongPoll(reading, partial(_response, fetched, context), min_bytes, wait_s, context).response


def _replica_id(request: FetchRequest) -> int:
    return request.replica_state.replica_id if request.replica_state else request.replica_id


def _response(fetched: FetchContext, context: Context, answers: list[ResponsePartition]) -> FetchResponse:
    if not context.session.connected:
        return FetchResponse(responses=[])  # the client is gone, and a session for it would take the place of another
    try:
        session_id, news = fetched.respond(list(zip(fetched.wanted, answers, strict=True)))
    except KafkaError as error:
        return _lost_session(error, context)
    response = FetchResponse(session_id=session_id, responses=_by_topic(news))
    if context.refusals and context.version >= 16:
        topics = context.broker.view().topics
        misdirected = (
            (topics.get(wanted.name or ""), wanted.index, answer)
            for wanted, answer in news
            if answer.error_code in _MISDIRECTED
        )
        name_leaders(response, misdirected, context)
    return response


def _by_topic(news: PartitionAnswers) -> list[FetchResponse.Response]:
    """
    The answers in the order of the session, in which a topic may come more than once.
    """
    topics: list[FetchResponse.Response] = []
    last: str | Uuid | None = None
    for wanted, answer in news:
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
