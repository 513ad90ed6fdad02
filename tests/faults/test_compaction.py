"""
A gateway compacts what others write to it, and is killed meanwhile.

COMPACTION_KILLS is the number of kills; COMPACTION_SEED=123 repeats the choices of a failure.
"""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from threading import Event, Thread
from time import monotonic, sleep

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from kgateway.wire.errors import ErrorCode
from tests.faults.producers import QUICK_TO_RETURN
from tests.faults.test_retention import size_of
from tests.faults.victim import free_port
from tests.faults.worlds import TOPIC, World, checked

_KILLS = int(os.environ.get("COMPACTION_KILLS", "2"))
_SEED = os.environ.get("COMPACTION_SEED", "1")
_KEYS = 500
_PADDING = bytes(1_000)
_LONGEST_S, _PATIENCE_S = 1.5, 60
_CONFIG = {"cleanup_policy": "compact", "min_cleanable_dirty_ratio": "0.1", "file_delete_delay_ms": "0"}


class Writer(Thread):
    """
    Counts up each key, and knows which numbers were acknowledged.
    """

    def __init__(self, port: int, seed: str) -> None:
        super().__init__(daemon=True)
        self._random = Random(seed)
        bootstrap = f"127.0.0.1:{port}"
        settings = {"bootstrap.servers": bootstrap, "enable.idempotence": True, "linger.ms": 2, "message.timeout.ms": 0}
        self._producer = Producer({**QUICK_TO_RETURN, **settings})
        self.sent = dict.fromkeys(range(_KEYS), -1)
        self.acknowledged = dict.fromkeys(range(_KEYS), -1)
        self.count = 0
        self.failures: list[str] = []
        self.stop = Event()

    def run(self) -> None:
        number = 0
        while not self.stop.is_set():
            key = self._random.randrange(_KEYS)
            number += 1
            self.sent[key] = number
            self._produce(key, number)
            if number % 200 == 0:
                self._producer.poll(0.01)
        left = self._producer.flush(_PATIENCE_S)
        if left:
            self.failures.append(f"{left} records were never acknowledged")

    def _produce(self, key: int, number: int) -> None:
        while True:
            try:
                told = self._told(key, number)
                self._producer.produce(TOPIC, b"%d " % number + _PADDING, b"%d" % key, on_delivery=told)
            except BufferError:
                self._producer.poll(0.05)
            else:
                self._producer.poll(0)
                return

    def _told(self, key: int, number: int) -> Callable[[KafkaError | None, Message], None]:
        def told(error: KafkaError | None, message: Message) -> None:
            if error:
                self.failures.append(str(error))
            else:
                self.acknowledged[key] = max(number, self.acknowledged[key])
                self.count += 1

        return told


def consumed(world: World, offset: int = 0) -> Iterator[Message]:
    """
    What a consumer gets from the offset to the current end.
    """
    strict = {"group.id": "unused", "auto.offset.reset": "error", "check.crcs": True, "enable.partition.eof": True}
    reading = Consumer({"bootstrap.servers": f"127.0.0.1:{world.port}", **QUICK_TO_RETURN, **strict})
    place = TopicPartition(TOPIC, 0, offset)
    try:
        deadline = monotonic() + _PATIENCE_S
        end = _end(reading, place, deadline)
        reading.assign([place])
        while monotonic() < deadline:
            for message in reading.consume(1_000, timeout=0.1):
                error = message.error()
                ended = error.code() == KafkaError._PARTITION_EOF if error else (message.offset() or 0) >= end
                if ended:
                    return
                assert not error, error
                yield message
        raise AssertionError("the consumer came to no end")
    finally:
        reading.close()


def _end(reading: Consumer, place: TopicPartition, deadline: float) -> int:
    """
    The current end of the log, which may take a while to learn after a crash.
    """
    while True:
        try:
            _, end = reading.get_watermark_offsets(place, timeout=_PATIENCE_S)
        except KafkaException as error:
            if error.args[0].code() != KafkaError.NOT_LEADER_FOR_PARTITION or monotonic() > deadline:
                raise
            sleep(0.05)
        else:
            return end


def check(world: World, least: dict[int, int], most: dict[int, int]) -> int:
    """
    Check that offsets and the numbers of each key grow and that each last number is within these bounds; return the
    number of records.
    """
    last: dict[int, int] = {}
    last_offset, count = -1, 0
    for message in consumed(world):
        offset, key, number = message.offset(), int(message.key() or b""), int((message.value() or b"").split()[0])
        assert offset is not None
        assert offset > last_offset
        assert number > last.get(key, -1), f"key {key} at offset {offset}: {number} comes after {last.get(key)}"
        last_offset, last[key] = offset, number
        count += 1
    for key, acknowledged in least.items():
        assert acknowledged <= last.get(key, -1) <= most[key], f"key {key}: {acknowledged} was acknowledged"
    return count


def test_compaction_survives_kills(tmp_path: Path) -> None:
    """
    The last acknowledged record of each key is there and in order, and old ones are still removed: the disk holds a
    fraction of what was written.
    """
    random = Random(_SEED)
    port = free_port()
    world = World(tmp_path, "--listen", f"tcp:{port}:interface=127.0.0.1", "--compaction-backoff-ms", "100")
    with world:
        assert world.create(**_CONFIG) == ErrorCode.NONE
        writer = Writer(world.port, _SEED)
        writer.start()
        for _ in range(_KILLS):
            sleep(random.uniform(0.3, _LONGEST_S))
            world.kill()
            least = dict(writer.acknowledged)
            world.start()
            check(world, least, writer.sent)
        writer.stop.set()
        writer.join()
        assert writer.failures == []
        settled = _settled(world, writer)
        assert "Traceback" not in world.log
        world.stop()
        assert checked(world.data)[0] == 0
        assert size_of(world.data / f"{TOPIC}-0") < writer.count * len(_PADDING) / 2
        world.start()
        assert check(world, writer.acknowledged, writer.sent) <= settled


def _settled(world: World, writer: Writer) -> int:
    """
    The number of records when less than half is left and no round is running.
    """
    deadline = monotonic() + _PATIENCE_S
    while monotonic() < deadline:
        count = check(world, writer.acknowledged, writer.sent)
        if count < writer.count / 2 and not list((world.data / f"{TOPIC}-0").glob("*.cleaned")):
            return count
    raise AssertionError(f"{count} of {writer.count} records are left")
