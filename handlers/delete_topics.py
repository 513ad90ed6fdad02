"""
DeleteTopics: deletes topics with all their records, each on its own.

 - v1: by name, in topic_names
 - v5: error_message
 - v6: in topics, by name or by topic_id
"""

from collections import Counter

from kgateway.api import Context, Operation, Resource, api
from kgateway.cluster.deadline import Deadline
from kgateway.cluster.view import Topic
from kgateway.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from kgateway.topic_lookup import topic_named, topic_of_id
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.uuids import ZERO, Uuid


@api(
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    versions="1-6",
    needs=(
        Operation.DELETE.on(Resource.CLUSTER),
        Operation.DELETE.on(Resource.TOPIC),
        Operation.DESCRIBE.on(Resource.TOPIC),
    ),
)
async def delete_topics(request: DeleteTopicsRequest, context: Context) -> DeleteTopicsResponse:
    asked = [*request.topics, *(DeleteTopicsRequest.Topic(name=name, topic_id=ZERO) for name in request.topic_names)]
    counted = Counter((topic.name, topic.topic_id) for topic in asked)
    by_both = _by_name_and_id(asked, context)
    deadline = Deadline(context.clock, request.timeout_ms)
    responses = []
    for topic in {(topic.name, topic.topic_id): topic for topic in asked}.values():
        try:
            _check_form(topic)
            if counted[topic.name, topic.topic_id] > 1:
                raise KafkaError(ErrorCode.INVALID_REQUEST, "Duplicate topic name.")
            responses.append(await _delete(topic, by_both, context, deadline))
        except KafkaError as error:
            responses.append(_refused(topic, error, context))
    return DeleteTopicsResponse(responses=responses)


def _by_name_and_id(asked: list[DeleteTopicsRequest.Topic], context: Context) -> set[Uuid]:
    topics = context.broker.view().topics
    names = [topic.name for topic in asked if topic.name is not None and topic.topic_id == ZERO]
    return {topics[name].id for name in names if name in topics} & {t.topic_id for t in asked if t.name is None}


def _check_form(asked: DeleteTopicsRequest.Topic) -> None:
    if asked.name is None and asked.topic_id == ZERO:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Neither topic name nor id were specified")
    if asked.name is not None and asked.topic_id != ZERO:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "You may not specify both topic name and topic id")


async def _delete(
    asked: DeleteTopicsRequest.Topic, by_both: set[Uuid], context: Context, deadline: Deadline
) -> DeleteTopicsResponse.Response:
    topic = _find(asked, context)
    if topic.id in by_both:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "the topic of this name and the topic of an id given are the same")
    await deadline.wait(context.broker.delete_topic(topic.id))
    return DeleteTopicsResponse.Response(name=topic.name, topic_id=topic.id, error_code=ErrorCode.NONE)


def _find(asked: DeleteTopicsRequest.Topic, context: Context) -> Topic:
    """
    The topic, if the client may delete it. A client that may delete all topics needs no permission for this one.
    """
    all_are_theirs = context.allowed(Operation.DELETE, Resource.CLUSTER)
    if asked.name is not None:
        if not all_are_theirs:
            context.demand(Operation.DESCRIBE, Resource.TOPIC, asked.name)
        topic = topic_named(context, asked.name)
    else:
        topic = topic_of_id(context, asked.topic_id)
        if not (all_are_theirs or context.allowed(Operation.DESCRIBE, Resource.TOPIC, topic.name)):
            # Without the name, which the client may not know.
            reason = f"{context.session.principal} may not see the topic with the id {asked.topic_id}"
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, reason)
    if not all_are_theirs:
        context.demand(Operation.DELETE, Resource.TOPIC, topic.name)
    return topic


def _refused(asked: DeleteTopicsRequest.Topic, error: KafkaError, context: Context) -> DeleteTopicsResponse.Response:
    """
    The error for a topic. A topic given by id is named if the client may describe it.
    """
    topic = context.broker.view().topics_by_id.get(asked.topic_id)
    seen = topic.name if topic and context.allowed(Operation.DESCRIBE, Resource.TOPIC, topic.name) else None
    return DeleteTopicsResponse.Response(
        name=seen if asked.name is None else asked.name,
        topic_id=asked.topic_id,
        error_code=context.refuse(error, asked.name or str(asked.topic_id)),
        error_message=error.message,
    )
