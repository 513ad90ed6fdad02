"""
Names of a partition. A topic that is deleted and made again under the same name has another id.
"""

from typing import NamedTuple

from kgateway.wire.uuids import Uuid


class TopicPartition(NamedTuple):
    topic: str
    index: int  # type: ignore[assignment]  # hides tuple.index, which nobody calls

    def __str__(self) -> str:
        return f"{self.topic}-{self.index}"


class PartitionId(NamedTuple):
    topic_id: Uuid
    index: int  # type: ignore[assignment]
