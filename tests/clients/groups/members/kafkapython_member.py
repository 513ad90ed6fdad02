"""
A group member with kafka-python.
"""

from collections.abc import Iterable, Mapping
from threading import Event
from time import sleep, time

from kafka import ConsumerRebalanceListener, KafkaConsumer, OffsetAndMetadata, TopicPartition
from kafka.consumer.fetcher import ConsumerRecord
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.errors import CommitFailedError, KafkaError

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

_POLL_MS = 100
_STRATEGIES = {"eager": [RangePartitionAssignor], "cooperative": [CooperativeStickyAssignor]}


class Listener(ConsumerRebalanceListener):  # type: ignore[misc]  # the library has no types
    """
    Reports assigned, revoked and lost partitions.
    """

    def __init__(self, handover_ms: int) -> None:
        self._handover_ms = handover_ms

    def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        tell("assigned", partitions=_places(assigned))

    def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        sleep(self._handover_ms / 1000)
        tell("revoked", partitions=_places(revoked))

    def on_partitions_lost(self, lost: Iterable[TopicPartition]) -> None:
        tell("lost", partitions=_places(lost))


def run(how: Wanted, leave: Event) -> None:
    """
    Process records until asked to leave.
    """
    consumer = KafkaConsumer(
        bootstrap_servers=how.bootstrap,
        group_id=how.group,
        group_instance_id=how.instance,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        session_timeout_ms=how.session_timeout_ms,
        heartbeat_interval_ms=how.heartbeat_interval_ms,
        partition_assignment_strategy=_STRATEGIES[how.protocol],
        reconnect_backoff_max_ms=500,
        metadata_max_age_ms=1_000,
        fetch_max_wait_ms=100,
    )
    consumer.subscribe(how.topics, listener=Listener(how.handover_ms))
    takes_s = works_s(how)
    while not leave.is_set():
        polled = _polled(consumer)
        if polled:
            offsets = tell_processed(
                (place(*partition), record.offset) for partition, records in polled.items() for record in records
            )
            sleep(next(takes_s))
            _commit(consumer, offsets)
    tell("leaving")
    consumer.close()
    tell("left")


def _polled(consumer: KafkaConsumer) -> Mapping[TopicPartition, list[ConsumerRecord]]:
    try:
        polled: Mapping[TopicPartition, list[ConsumerRecord]] = consumer.poll(_POLL_MS)
    except KafkaError as error:  # the library leaves retries to its user when the server is down
        if not error.retriable:
            raise
        tell("failed", why=repr(error))
        return {}
    return polled


def _commit(consumer: KafkaConsumer, offsets: dict[str, int]) -> None:
    since = time()
    try:
        consumer.commit({_partition(where): OffsetAndMetadata(offset, "", -1) for where, offset in offsets.items()})
    except KafkaError as error:
        tell_committed(since, offsets, repr(error), _code(error))
    else:
        tell_committed(since, offsets)


def _code(error: KafkaError) -> int:
    cause = error.args[0] if isinstance(error, CommitFailedError) and error.args else error
    return getattr(cause, "errno", -1)


def _places(partitions: Iterable[TopicPartition]) -> list[str]:
    return [place(*partition) for partition in partitions]


def _partition(where: str) -> TopicPartition:
    topic, _, partition = where.rpartition(":")
    return TopicPartition(topic, int(partition))


if __name__ == "__main__":
    run(wanted(), told_to_leave())
