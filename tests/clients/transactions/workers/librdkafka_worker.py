"""
A copier with confluent-kafka.
"""

from collections.abc import Sequence
from time import sleep

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from tests.clients.transactions.workers.reports import (
    BATCH,
    HEARTBEAT_INTERVAL_MS,
    PATIENCE_S,
    POLL_S,
    SESSION_TIMEOUT_MS,
    TRANSACTION_TIMEOUT_MS,
    Try,
    Wanted,
    tell,
    tries,
    wanted,
)

# When it forgets its known brokers, as it does when all are down, an offset to be committed in a transaction may wait
# for one of them without end (librdkafka's issues 5511 and 5456).
_LASTING = {"metadata.recovery.strategy": "none"}
_QUICK = {"reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 200, "retry.backoff.ms": 20, "log_level": 0}


class Copier:
    """
    One consumer and one producer.
    """

    def __init__(self, how: Wanted) -> None:
        self._how = how
        settings = {"bootstrap.servers": how.bootstrap, "client.id": how.id, **_LASTING, **_QUICK}
        self._consumer = Consumer(
            {
                **settings,
                "group.id": how.group,
                "session.timeout.ms": SESSION_TIMEOUT_MS,
                "heartbeat.interval.ms": HEARTBEAT_INTERVAL_MS,
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        timeout = {"transaction.timeout.ms": TRANSACTION_TIMEOUT_MS}
        self._producer = Producer({**settings, **timeout, "transactional.id": how.id, "linger.ms": 1})

    def run(self) -> None:
        """
        Copy until the client fails for good.
        """
        try:
            self._producer.init_transactions(PATIENCE_S)
            tell("ready")
            self._consumer.subscribe([self._how.input])
            for one in tries(self._how):
                self._copy(one, self._messages())
        except KafkaException as error:
            tell("ended", why=error.args[0].name())
        self._consumer.close()

    def _messages(self) -> Sequence[Message]:
        found = list[Message]()
        while not found:
            found = [message for message in self._consumer.consume(BATCH, POLL_S) if _is_record(message.error())]
        return found

    def _copy(self, one: Try, messages: Sequence[Message]) -> None:
        self._producer.begin_transaction()
        try:
            self._write(one, messages)
        except KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise
            self._abort(one, messages)

    def _write(self, one: Try, messages: Sequence[Message]) -> None:
        for message in messages:
            value = one.value(message.value() or b"")
            self._producer.produce(self._how.output, value, message.key(), partition=message.partition() or 0)
        if one.aborts:
            self._producer.flush(PATIENCE_S)  # so that there is something to be left out
        sleep(one.dawdle_s)
        if one.aborts:
            self._abort(one, messages)
            return
        metadata = self._consumer.consumer_group_metadata()
        self._producer.send_offsets_to_transaction(self._places(messages, 1), metadata, PATIENCE_S)
        self._producer.commit_transaction(PATIENCE_S)
        one.tell("committed")

    def _abort(self, one: Try, messages: Sequence[Message]) -> None:
        self._producer.abort_transaction(PATIENCE_S)
        one.tell("aborted")
        for place in self._places(messages[::-1], 0):
            self._consumer.seek(place)

    def _places(self, messages: Sequence[Message], further: int) -> list[TopicPartition]:
        """
        The offsets behind the last record of each partition.
        """
        last = {message.partition() or 0: (message.offset() or 0) + further for message in messages}
        return [TopicPartition(self._how.input, partition, offset) for partition, offset in last.items()]


def _is_record(error: KafkaError | None) -> bool:
    if error and error.fatal():
        raise KafkaException(error)
    return not error


if __name__ == "__main__":
    Copier(wanted()).run()
