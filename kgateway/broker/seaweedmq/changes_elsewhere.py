"""
Topics that only their owner makes, removes or lets grow: another gateway asks it to, in Kafka's own words.
"""

from collections.abc import Callable

from kgateway.cluster.view import NewTopic, Node, Topic
from kgateway.interfaces import IPeers
from kgateway.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsResponse
from kgateway.messages.create_topics import CreateTopicsRequest, CreateTopicsResponse
from kgateway.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.schema import Message

_TIMEOUT_MS = 10_000
_ONE_COPY = 1


class ChangesElsewhere:
    """
    Each is done when it comes back, or a KafkaError says what the owner says.
    """

    def __init__(self, peers: IPeers, owner: Callable[[], Node]) -> None:
        self._peers = peers
        self._owner = owner

    async def create(self, new: NewTopic) -> None:
        """
        Make a topic.
        """
        asked = CreateTopicsRequest.Topic(
            name=new.name,
            num_partitions=new.partition_count,
            replication_factor=_ONE_COPY,
            assignments=[],
            configs=[
                CreateTopicsRequest.Topic.Config(name=name, value=value) for name, value in new.config.overrides.items()
            ],
        )
        answer = await self._ask(CreateTopicsRequest(topics=[asked], timeout_ms=_TIMEOUT_MS))
        assert isinstance(answer, CreateTopicsResponse)
        _check(answer.topics[0].error_code, answer.topics[0].error_message)

    async def delete(self, topic: Topic) -> None:
        """
        Remove a topic.
        """
        asked = DeleteTopicsRequest.Topic(name=None, topic_id=topic.id)
        answer = await self._ask(DeleteTopicsRequest(topics=[asked], timeout_ms=_TIMEOUT_MS))
        assert isinstance(answer, DeleteTopicsResponse)
        _check(answer.responses[0].error_code, answer.responses[0].error_message)

    async def grow(self, topic: Topic, partition_count: int) -> None:
        """
        Let a topic have this many partitions.
        """
        asked = CreatePartitionsRequest.Topic(name=topic.name, count=partition_count, assignments=None)
        answer = await self._ask(CreatePartitionsRequest(topics=[asked], timeout_ms=_TIMEOUT_MS, validate_only=False))
        assert isinstance(answer, CreatePartitionsResponse)
        _check(answer.results[0].error_code, answer.results[0].error_message)

    async def _ask(self, request: Message) -> Message:
        return await self._peers.ask(self._owner(), request, request.__spec__.versions[-1])


def _check(code: int, message: str | None) -> None:
    if code:
        raise KafkaError(ErrorCode(code), message or "")
