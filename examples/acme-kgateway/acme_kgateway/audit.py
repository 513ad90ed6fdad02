"""
Topics named `audit-*` can only be written through the listener `internal`.

Other topics in the same request are passed on to the handler. The filter therefore removes the refused topics from the
request, adds their errors to the response, and throttles the client for a second.
"""

from fnmatch import fnmatchcase

from kgateway.api import Context, around
from kgateway.interfaces import Proceed
from kgateway.messages.produce import ProduceRequest, ProduceResponse
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.schema import Message

TOPICS = "audit-*"
LISTENER = "internal"
PAUSE_MS = 1000

TopicData = ProduceRequest.TopicData
TopicAnswer = ProduceResponse.Response


@around(ProduceRequest, topics=[TOPICS], priority=5)
async def seal_audit(request: ProduceRequest, context: Context, proceed: Proceed) -> Message | None:
    if context.session.listener == LISTENER:
        return await proceed(request)
    everything, request.topic_data = request.topic_data, []
    refusals = []
    for data in everything:
        name = _name(data, context)
        if fnmatchcase(name, TOPICS):
            refusals.append(_refused(data, name, context))
        else:
            request.topic_data.append(data)
    response = await proceed(request)
    if not isinstance(response, ProduceResponse):  # acks=0: there is no response
        context.hang_up = "a Produce with acks=0 was for audit topics"
        return None
    response.responses += refusals
    context.throttle_ms = PAUSE_MS
    return response


def _name(data: TopicData, context: Context) -> str:
    """
    The name of the topic; newer clients send its id instead.
    """
    topic = context.broker.view().topics_by_id.get(data.topic_id)
    return topic.name if topic else data.name


def _refused(data: TopicData, name: str, context: Context) -> TopicAnswer:
    error = KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"{name} can only be written through listener {LISTENER}")
    code = context.refuse(error, name)
    return TopicAnswer(
        name=data.name,
        topic_id=data.topic_id,
        partition_responses=[
            TopicAnswer.PartitionResponse(
                index=partition.index, error_code=code, error_message=error.message, base_offset=-1
            )
            for partition in data.partition_data
        ],
    )
