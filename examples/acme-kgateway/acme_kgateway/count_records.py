"""
CountRecords: the number of records in topics. Both the API and its messages are Acme's own.

 - v1: error_message
"""

from kgateway.api import Context, Operation, Resource, api
from kgateway.topic_lookup import topic_named
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.schema import Message, Struct, v
from kgateway.wire.types import i16, i32, i64


class CountRecordsRequest(Message, key=20_000, versions="0-1", flexible="0+"):
    """
    The topics to count.
    """

    topics: list[str]


class CountRecordsResponse(Message, key=20_000, versions="0-1", flexible="0+"):
    """
    The count of each topic, or an error.
    """

    class Topic(Struct):
        name: str
        error_code: i16
        error_message: str | None = v("1+", default=None)
        count: i64 = v(default=-1)

    throttle_time_ms: i32 = v(default=0)
    topics: list[Topic]


@api(CountRecordsRequest, CountRecordsResponse, versions="0-1", needs=Operation.DESCRIBE.on(Resource.TOPIC))
def count_records(request: CountRecordsRequest, context: Context) -> CountRecordsResponse:
    return CountRecordsResponse(topics=[_counted(name, context) for name in request.topics])


def _counted(name: str, context: Context) -> CountRecordsResponse.Topic:
    try:
        context.demand(Operation.DESCRIBE, Resource.TOPIC, name)
        topic = topic_named(context, name)
        partitions = [context.broker.partition(topic.id, index) for index in range(len(topic.partitions))]
    except KafkaError as error:
        code = context.refuse(error, name)
        return CountRecordsResponse.Topic(name=name, error_code=code, error_message=error.message)
    count = sum(partition.high_watermark - partition.log_start for partition in partitions)
    return CountRecordsResponse.Topic(name=name, error_code=ErrorCode.NONE, count=count)
