"""
DeleteTopics v1-v4: always refused, because these versions cannot carry the reason for a refusal.

 - v5: error_message; served by the built-in handler
"""

from kgateway.api import Context, api
from kgateway.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from kgateway.security.permissions import Free
from kgateway.wire.errors import ErrorCode, KafkaError


@api(
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    versions="1-4",
    needs=Free("no topic is ever deleted"),
    replaces=True,
    priority=10,
)
def delete_topics(request: DeleteTopicsRequest, context: Context) -> DeleteTopicsResponse:
    error = KafkaError(ErrorCode.TOPIC_DELETION_DISABLED, "use a client with DeleteTopics v5 or later")
    return DeleteTopicsResponse(
        responses=[
            DeleteTopicsResponse.Response(name=name, error_code=context.refuse(error, name))
            for name in request.topic_names
        ]
    )
