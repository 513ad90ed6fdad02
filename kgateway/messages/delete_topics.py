"""
DeleteTopics: deletes topics with all their records.

 - v1: throttle_time_ms
 - v2: over quota, the answer comes before the delay (KIP-219)
 - v3: TOPIC_DELETION_DISABLED may be answered (KIP-322)
 - v4: flexible
 - v5: error_message; THROTTLING_QUOTA_EXCEEDED (KIP-599)
 - v6: topics, by name or by topic_id, in place of topic_names (KIP-516)
"""

from kgateway.wire.schema import Message, Struct, v
from kgateway.wire.types import i16, i32
from kgateway.wire.uuids import Uuid


class DeleteTopicsRequest(Message, key=20, versions="0-6", flexible="4+"):
    class Topic(Struct):
        name: str | None = v(default=None)  # null: topic_id tells which
        topic_id: Uuid  # zero: name tells which

    topics: list[Topic] = v("6+")
    topic_names: list[str] = v("0-5")
    timeout_ms: i32


class DeleteTopicsResponse(Message, key=20, versions="0-6", flexible="4+"):
    class Response(Struct):
        name: str | None = v(nullable="6+")  # null: topic_id is unknown, or not for this client
        topic_id: Uuid = v("6+")
        error_code: i16
        error_message: str | None = v("5+", default=None)

    throttle_time_ms: i32 = v("1+")
    responses: list[Response]
