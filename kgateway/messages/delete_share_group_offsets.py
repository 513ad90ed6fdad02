"""
DeleteShareGroupOffsets: makes an empty share group forget topics (KIP-932).
"""

from kgateway.wire.schema import Message, Struct, v
from kgateway.wire.types import i16, i32
from kgateway.wire.uuids import Uuid


class DeleteShareGroupOffsetsRequest(Message, key=92, versions="0", flexible="0+"):
    """
    Names the topics one group is to forget.
    """

    class Topic(Struct):
        topic_name: str

    group_id: str
    topics: list[Topic]


class DeleteShareGroupOffsetsResponse(Message, key=92, versions="0", flexible="0+"):
    """
    The outcome for each topic.
    """

    class Response(Struct):
        topic_name: str
        topic_id: Uuid
        error_code: i16
        error_message: str | None = v(default=None)

    throttle_time_ms: i32
    error_code: i16
    error_message: str | None = v(default=None)
    responses: list[Response]
