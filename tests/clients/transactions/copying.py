"""
Workers that copy a topic into another, in transactions: what they have read, what they have written and how far they
are is committed together, or not at all.
"""

from collections.abc import Sequence
from random import Random
from threading import Event, Thread
from time import monotonic

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

INPUT, OUTPUT, GROUP = "input", "output", "copiers"
PATIENCE_S = 60
_BATCH = 40
_POLL_S = 0.2
_QUICK = {"reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 200, "retry.backoff.ms": 20, "log_level": 0}
_SESSION = {"session.timeout.ms": 6_000, "heartbeat.interval.ms": 500, "max.poll.interval.ms": 60_000}


class Copier:
    """
    One worker after the other with the same transactional id, each until something ends it.
    """

    def __init__(self, bootstrap: str, number: int, seed: int) -> None:
        self.failure: BaseException | None = None
        self.commits = self.aborts = self.lives = 0
        self._bootstrap = bootstrap
        self._number = number
        self._chance = Random(f"{seed} {number}")
        self._stopping = Event()
        self._thread = Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """
        Begin.
        """
        self._thread.start()

    def stop(self) -> None:
        """
        End, with the transaction that is under way.
        """
        self._stopping.set()
        self._thread.join(PATIENCE_S)

    def _run(self) -> None:
        try:
            while not self._stopping.is_set():
                self._live()
        except BaseException as failure:
            self.failure = failure

    def _live(self) -> None:
        self.lives += 1
        settings = {"bootstrap.servers": self._bootstrap, **_QUICK}
        consumer = Consumer(
            {
                **settings,
                **_SESSION,
                "group.id": GROUP,
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        producer = Producer(
            {**settings, "transactional.id": f"copier {self._number}", "transaction.timeout.ms": 20_000, "linger.ms": 1}
        )
        consumer.subscribe([INPUT])
        try:
            producer.init_transactions(PATIENCE_S)
            while not self._stopping.is_set() and self._chance.random() > 0.02:
                self._copy(consumer, producer)
        except KafkaException as error:
            if not _may_be(error.args[0]):
                raise
        finally:
            consumer.close()  # and a transaction that is open is left to whoever comes next

    def _copy(self, consumer: Consumer, producer: Producer) -> None:
        messages = [message for message in consumer.consume(_BATCH, _POLL_S) if not message.error()]
        if not messages:
            return
        producer.begin_transaction()
        try:
            self._write(messages, consumer, producer)
        except KafkaException as error:
            if not error.args[0].txn_requires_abort():
                raise
            self._abort(consumer, producer)

    def _write(self, messages: Sequence[Message], consumer: Consumer, producer: Producer) -> None:
        for message in messages:
            _produce(producer, message)
        if self._chance.random() < 0.2:
            producer.flush(PATIENCE_S)  # so that there is something to be left out
            self._abort(consumer, producer)
        read = [TopicPartition(INPUT, partition, offset) for partition, offset in _behind(messages).items()]
        producer.send_offsets_to_transaction(read, consumer.consumer_group_metadata(), PATIENCE_S)
        producer.commit_transaction(PATIENCE_S)
        self.commits += 1

    def _abort(self, consumer: Consumer, producer: Producer) -> None:
        producer.abort_transaction(PATIENCE_S)
        self.aborts += 1
        raise KafkaException(KafkaError(KafkaError._STATE))  # a new consumer goes on from what is committed


def _behind(messages: Sequence[Message]) -> dict[int, int]:
    return {int(message.partition() or 0): int(message.offset() or 0) + 1 for message in messages}


def _produce(producer: Producer, message: Message) -> None:
    deadline = monotonic() + PATIENCE_S
    while True:
        try:
            producer.produce(OUTPUT, message.value(), message.key(), partition=message.partition() or 0)
            return
        except BufferError:
            assert monotonic() < deadline
            producer.poll(_POLL_S)


def _may_be(error: KafkaError) -> bool:
    """
    Whether this ends a worker whose server was killed, or who has been replaced.
    """
    return error.code() in {
        KafkaError._STATE,
        KafkaError._FENCED,
        KafkaError._TIMED_OUT,
        KafkaError.INVALID_PRODUCER_EPOCH,
        KafkaError.PRODUCER_FENCED,
        KafkaError.ILLEGAL_GENERATION,
        KafkaError.UNKNOWN_MEMBER_ID,
        KafkaError.REBALANCE_IN_PROGRESS,
        KafkaError.INVALID_PRODUCER_ID_MAPPING,
    } or bool(error.txn_requires_abort() or error.retriable() or error.fatal())
