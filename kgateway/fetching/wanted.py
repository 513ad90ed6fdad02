"""
What a client wants of a partition, as its fetch says or its session remembers.
"""

from collections.abc import Iterator

from kgateway.messages.fetch import FetchRequest, FetchResponse
from kgateway.wire.uuids import Uuid

Asked = FetchRequest.Topic.Partition
Answer = FetchResponse.Response.Partition
Key = tuple[str | Uuid, int]  # the topic, as the client calls it, and the partition

UNKNOWN = -1


class Wanted:
    """
    A partition that a client reads: from where, how much, and how far it was told its log goes.
    """

    __slots__ = (
        "high_watermark",
        "index",
        "last_fetched_epoch",
        "leader_epoch",
        "log_start",
        "max_bytes",
        "name",
        "offset",
        "topic",
    )

    def __init__(self, topic: str | Uuid, asked: Asked) -> None:
        self.topic = topic
        self.name = topic if isinstance(topic, str) else None  # of the topic, once its id was found
        self.index = asked.partition
        self.high_watermark = self.log_start = UNKNOWN
        self.ask(asked)

    def __str__(self) -> str:
        return f"{self.name or self.topic}-{self.index}"

    @property
    def key(self) -> Key:
        return self.topic, self.index

    def ask(self, asked: Asked) -> None:
        """
        Go on from where the client is now.
        """
        self.offset = asked.fetch_offset
        self.max_bytes = asked.partition_max_bytes
        self.leader_epoch = asked.current_leader_epoch
        self.last_fetched_epoch = asked.last_fetched_epoch

    def tell(self, answer: Answer) -> bool:
        """
        Whether the client has not been told this before. Errors are always told, and what comes after one is too: it
        came without a high watermark.
        """
        moved = (answer.high_watermark, answer.log_start_offset) != (self.high_watermark, self.log_start)
        self.high_watermark, self.log_start = answer.high_watermark, answer.log_start_offset
        return moved or bool(answer.records or answer.error_code or answer.diverging_epoch)


def asked_for(request: FetchRequest, by_id: bool) -> Iterator[tuple[Key, Asked]]:
    """
    The partitions that a request names.
    """
    for topic in request.topics:
        called = topic.topic_id if by_id else topic.topic
        for asked in topic.partitions:
            yield (called, asked.partition), asked


def forgotten(request: FetchRequest, by_id: bool) -> Iterator[Key]:
    """
    The partitions that a request takes out of its session.
    """
    for topic in request.forgotten_topics_data:
        for index in topic.partitions:
            yield (topic.topic_id if by_id else topic.topic, index)
