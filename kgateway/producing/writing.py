"""
Appends the batches of one Produce request, and says of each what became of it.
"""

from typing import cast

from twisted.internet.defer import Deferred

from kgateway.cluster.partition import Appended, Origin
from kgateway.cluster.view import Topic
from kgateway.context import Context
from kgateway.converting.incoming import the_batch
from kgateway.messages.produce import ProduceRequest, ProduceResponse
from kgateway.partitions import foreseen
from kgateway.producing.acknowledgement import Acknowledgement, Answer, Unsettled, finished
from kgateway.producing.beginning import check_named
from kgateway.records.batch import TRANSACTIONAL_BIT, Batch
from kgateway.wire.errors import ErrorCode, KafkaError, RecordsRefused
from kgateway.wire.types import Buffer

PartitionData = ProduceRequest.TopicData.PartitionData
TopicAnswer = ProduceResponse.Response

NO_ACKS = 0
ACKS_LEADER = 1
ACKS_ALL = -1

_UNKNOWN = -1
_NO_ERROR = ErrorCode.NONE  # in Python 3.11 a look-up in the enum costs as much as three calls
_FROM_CLIENT, _JUDGED, _JOINED, _ADDED = Origin.CLIENT, Origin.JUDGED, Origin.JOINED, Origin.ADDED


class Writing:
    """
    What one request writes.
    """

    __slots__ = ("context", "request", "unsettled")

    def __init__(self, request: ProduceRequest, context: Context) -> None:
        self.request = request
        self.context = context
        self.unsettled: list[Unsettled] = []  # what is appended, and not yet as safe as this request wants it

    def as_it_came(self, topic: Topic, data: PartitionData) -> Answer:
        """
        Append the batch that the client sent.
        """
        log_start = _UNKNOWN
        try:
            partition = self.context.broker.partition(topic.id, data.index)
            log_start = partition.log_start
            batch, origin = the_batch(cast("Buffer | None", data.records), self.context.version), _FROM_CLIENT
            if batch.header.attributes & TRANSACTIONAL_BIT:
                check_named(self.request)
                origin = _ADDED
            appended = partition.append(batch, origin, self.context.client_id)
            data.records = None  # the log has them; the request is there until it is answered
        except Exception as error:
            return self.refused(foreseen(error, f"{topic.name}-{data.index}"), topic.name, data.index, log_start)
        return self._answer(topic, data.index, appended)

    def as_made(self, topic: Topic, index: int, batch: Batch | None) -> Answer:
        """
        Append what was made of what the client sent, and judged; there may be nothing of it.
        """
        if batch is None:
            return Answer(index=index, error_code=_NO_ERROR, base_offset=_UNKNOWN)
        log_start = _UNKNOWN
        try:
            partition = self.context.broker.partition(topic.id, index)
            log_start = partition.log_start
            origin = _JOINED if batch.header.attributes & TRANSACTIONAL_BIT else _JUDGED
            appended = partition.append(batch, origin, self.context.client_id)
        except Exception as error:
            return self.refused(foreseen(error, f"{topic.name}-{index}"), topic.name, index, log_start)
        return self._answer(topic, index, appended)

    def _answer(self, topic: Topic, index: int, appended: Appended) -> Answer:
        answer = Answer(
            index=index,
            error_code=_NO_ERROR,
            base_offset=appended.base_offset,
            log_append_time_ms=appended.log_append_time_ms,
            log_start_offset=appended.log_start,
        )
        if appended.stored is not None or appended.safe is not None:
            acknowledged = _acknowledged(appended, self.request.acks)
            if acknowledged is not None:
                self.unsettled.append(Unsettled(answer, f"{topic.name}-{index}", acknowledged))
        return answer

    def refused(self, error: KafkaError, name: str, index: int, log_start: int = _UNKNOWN) -> Answer:
        """
        The answer for a partition that nothing was appended to.
        """
        return Answer(
            index=index,
            error_code=self.context.refuse(error, f"{name}-{index}"),
            error_message=error.message,
            base_offset=_UNKNOWN,
            log_start_offset=log_start,
            record_errors=_blamed(error),
        )

    def response(self, answers: list[TopicAnswer]) -> ProduceResponse | Deferred[ProduceResponse] | None:
        """
        What the client is told, once all is as safe as it wants it; nothing where it wants no answer.
        """
        if self.request.acks == NO_ACKS:
            unanswered(self.context)
            return None
        response = ProduceResponse(responses=answers)
        if self.unsettled:
            return Acknowledgement(response, self.unsettled, self.request.timeout_ms, self.context).result
        return finished(response, self.context) if self.context.refusals else response


def unanswered(context: Context) -> None:
    """
    A producer that wants no answer hears of an error by the end of its connection.
    """
    if context.refusals:
        context.hang_up = f"a Produce with acks=0 failed: {context.refusals[0].error}"


def _acknowledged(appended: Appended, acks: int) -> Deferred[None] | None:
    """
    What this acks waits for. If the rest fails that is of no interest here: nobody was promised it.
    """
    wanted = appended.safe if acks == ACKS_ALL else appended.stored if acks == ACKS_LEADER else None
    appended.leave(*(other for other in (appended.stored, appended.safe) if other is not wanted))
    return wanted


def _blamed(error: KafkaError) -> list[Answer.RecordError]:
    records = error.records if isinstance(error, RecordsRefused) else ()
    return [Answer.RecordError(batch_index=number, batch_index_error_message=reason) for _, number, reason in records]
