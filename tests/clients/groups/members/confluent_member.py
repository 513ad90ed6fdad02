"""
A group member with confluent-kafka.
"""

from threading import Event
from time import sleep, time
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from tests.clients.groups.members.reports import (
    Wanted,
    place,
    tell,
    tell_committed,
    tell_processed,
    told_to_leave,
    wanted,
    works_s,
)

_POLL_S = 0.1
_STRATEGIES = {"eager": "range", "cooperative": "cooperative-sticky"}


def settings(how: Wanted) -> dict[str, Any]:
    found: dict[str, Any] = {
        "bootstrap.servers": how.bootstrap,
        "group.id": how.group,
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "fetch.wait.max.ms": 100,
        "reconnect.backoff.max.ms": 500,
        "topic.metadata.refresh.interval.ms": 1_000,
        "log_level": 0,
    }
    if how.instance:
        found["group.instance.id"] = how.instance
    if how.protocol == "consumer":
        return found | {"group.protocol": "consumer"}
    return found | {
        "partition.assignment.strategy": _STRATEGIES[how.protocol],
        "session.timeout.ms": how.session_timeout_ms,
        "heartbeat.interval.ms": how.heartbeat_interval_ms,
    }


class Member:
    def __init__(self, how: Wanted) -> None:
        self._how = how
        self._consumer = Consumer(settings(how))
        self._works_s = works_s(how)
        self._owned: set[str] = set()
        self._consumer.subscribe(
            how.topics, on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost
        )

    def run(self, leave: Event) -> None:
        """
        Process records until asked to leave.
        """
        while not leave.is_set():
            places = []
            for message in self._consumer.consume(200, _POLL_S):
                error = message.error()
                if error:
                    self._failed(error)
                    continue
                where = place(message.topic() or "", message.partition() or 0)
                if where in self._owned:
                    places.append((where, message.offset() or 0))
            if places:
                offsets = tell_processed(places)
                sleep(next(self._works_s))
                self._commit(offsets)
        tell("leaving")
        self._consumer.close()
        tell("left")

    def _commit(self, offsets: dict[str, int]) -> None:
        since = time()
        try:
            self._consumer.commit(offsets=[_partition(*item) for item in offsets.items()], asynchronous=False)
        except KafkaException as error:
            tell_committed(since, offsets, error, error.args[0].code())
        else:
            tell_committed(since, offsets)

    def _failed(self, error: KafkaError) -> None:
        tell("failed", code=error.code(), why=str(error))
        if error.fatal():
            raise KafkaException(error)

    def _on_assign(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        tell("assigned", partitions=_places(partitions), member=self._consumer.memberid())
        self._owned.update(_places(partitions))

    def _on_revoke(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        sleep(self._how.handover_ms / 1000)
        tell("revoked", partitions=_places(partitions))
        self._owned.difference_update(_places(partitions))

    def _on_lost(self, _: Consumer, partitions: list[TopicPartition]) -> None:
        tell("lost", partitions=_places(partitions))
        self._owned.difference_update(_places(partitions))


def _places(partitions: list[TopicPartition]) -> list[str]:
    return [place(partition.topic, partition.partition) for partition in partitions]


def _partition(where: str, offset: int) -> TopicPartition:
    topic, _, partition = where.rpartition(":")
    return TopicPartition(topic, int(partition), offset)


if __name__ == "__main__":
    Member(wanted()).run(told_to_leave())
