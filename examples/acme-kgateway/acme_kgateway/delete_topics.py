"""
DeleteTopics, as far as v4: refused, for a client of that age cannot be told why a topic is still there.

 - v5: error_message; the handler that comes with the gateway serves it
"""

from kgateway.api import Context, api
from kgateway.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from kgateway.security.permissions import Free
from kgateway.wire.errors import ErrorCode, KafkaError


@api(
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    versions="1-4",
    needs=Free("nothing is deleted, whoever asks"),
    replaces=True,
    priority=10,
)
def delete_topics(request: DeleteTopicsRequest, context: Context) -> DeleteTopicsResponse:
    error = KafkaError(ErrorCode.TOPIC_DELETION_DISABLED, "topics are deleted with tools that show reasons: from v5 on")
    return DeleteTopicsResponse(
        responses=[
            DeleteTopicsResponse.Response(name=name, error_code=context.refuse(error, name))
            for name in request.topic_names
        ]
    )
