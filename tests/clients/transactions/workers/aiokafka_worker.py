"""
A copier with aiokafka that commits offsets in transactions without its generation in the group: it has fixed
partitions, and is no member.
"""

from asyncio import gather, run, sleep, wait_for
from collections.abc import Mapping, Sequence

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.errors import KafkaError
from aiokafka.structs import ConsumerRecord

from tests.clients.transactions.workers.reports import (
    BATCH,
    PATIENCE_S,
    POLL_S,
    TRANSACTION_TIMEOUT_MS,
    Try,
    Wanted,
    tell,
    tries,
    wanted,
)

Polled = Mapping[TopicPartition, Sequence[ConsumerRecord]]


class Copier:
    """
    One consumer and one producer.
    """

    def __init__(self, how: Wanted) -> None:
        self._how = how
        self._consumer = AIOKafkaConsumer(
            bootstrap_servers=how.bootstrap,
            group_id=how.group,
            enable_auto_commit=False,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            retry_backoff_ms=50,
        )
        self._producer = AIOKafkaProducer(
            bootstrap_servers=how.bootstrap,
            transactional_id=how.id,
            transaction_timeout_ms=TRANSACTION_TIMEOUT_MS,
            retry_backoff_ms=50,
        )

    async def run(self) -> None:
        """
        Copy until the client fails for good.
        """
        try:
            await wait_for(self._producer.start(), PATIENCE_S)
            tell("ready")
            await self._consumer.start()
            self._consumer.assign([TopicPartition(self._how.input, partition) for partition in self._how.partitions])
            for one in tries(self._how):
                await wait_for(self._copy(one, await self._polled()), PATIENCE_S)
        except (KafkaError, TimeoutError) as error:
            tell("ended", why=type(error).__name__)

    async def _polled(self) -> Polled:
        polled: Polled = {}
        while not polled:
            polled = await self._consumer.getmany(timeout_ms=int(POLL_S * 1000), max_records=BATCH)
        return polled

    async def _copy(self, one: Try, polled: Polled) -> None:
        await self._producer.begin_transaction()
        await gather(
            *[
                await self._producer.send(self._how.output, one.value(record.value), record.key, place.partition)
                for place, records in polled.items()
                for record in records
            ]
        )
        await sleep(one.dawdle_s)
        if one.aborts:
            await self._producer.abort_transaction()
            one.tell("aborted")
            for place, records in polled.items():
                self._consumer.seek(place, records[0].offset)
            return
        read = {place: records[-1].offset + 1 for place, records in polled.items()}
        await self._producer.send_offsets_to_transaction(read, self._how.group)
        await self._producer.commit_transaction()
        one.tell("committed")


async def main() -> None:
    """
    Run the copier in a loop, which the library requires before there is a client.
    """
    await Copier(wanted()).run()


if __name__ == "__main__":
    run(main())
