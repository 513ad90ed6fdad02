"""
A group member with aiokafka.
"""

from asyncio import run, sleep
from collections.abc import Iterable
from threading import Event
from time import time

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener, TopicPartition
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.errors import KafkaError

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


class Member(ConsumerRebalanceListener):  # type: ignore[misc]  # the library has no types
    """
    A sequence of consumers: the library gives up when the group that it joins changes its protocol.
    """

    def __init__(self, how: Wanted) -> None:
        self._how = how
        self._consumer: AIOKafkaConsumer
        self._works_s = works_s(how)
        self._owned: list[str] = []

    async def run(self, leave: Event) -> None:
        """
        Process records until asked to leave.
        """
        while not leave.is_set():
            self._consumer = self._made()
            try:
                await self._consumer.start()
                await self._process(leave)
                tell("leaving")
            except KafkaError as error:
                tell("failed", why=repr(error))
                tell("revoked", partitions=self._owned)
            finally:
                await self._consumer.stop()
        tell("left")

    def _made(self) -> AIOKafkaConsumer:
        how = self._how
        consumer = AIOKafkaConsumer(
            bootstrap_servers=how.bootstrap,
            group_id=how.group,
            group_instance_id=how.instance,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            session_timeout_ms=how.session_timeout_ms,
            heartbeat_interval_ms=how.heartbeat_interval_ms,
            partition_assignment_strategy=[RangePartitionAssignor],
            metadata_max_age_ms=1_000,
            fetch_max_wait_ms=100,
        )
        consumer.subscribe(how.topics, listener=self)
        return consumer

    async def _process(self, leave: Event) -> None:
        while not leave.is_set():
            polled = await self._consumer.getmany(timeout_ms=_POLL_MS)
            places = [(place(*partition), record.offset) for partition, records in polled.items() for record in records]
            if places:
                offsets = tell_processed(places)
                await sleep(next(self._works_s))
                await self._commit(offsets)

    async def _commit(self, offsets: dict[str, int]) -> None:
        since = time()
        try:
            await self._consumer.commit({_partition(where): offset for where, offset in offsets.items()})
        except KafkaError as error:
            tell_committed(since, offsets, repr(error), getattr(error, "errno", -1))
        else:
            tell_committed(since, offsets)

    async def on_partitions_assigned(self, assigned: Iterable[TopicPartition]) -> None:
        self._owned = [place(*partition) for partition in assigned]
        tell("assigned", partitions=self._owned)

    async def on_partitions_revoked(self, revoked: Iterable[TopicPartition]) -> None:
        await sleep(self._how.handover_ms / 1000)
        self._owned = []
        tell("revoked", partitions=[place(*partition) for partition in revoked])


def _partition(where: str) -> TopicPartition:
    topic, _, partition = where.rpartition(":")
    return TopicPartition(topic, int(partition))


async def main() -> None:
    """
    Run the member in a loop, which the library requires before there is a consumer.
    """
    await Member(wanted()).run(told_to_leave())


if __name__ == "__main__":
    run(main())
