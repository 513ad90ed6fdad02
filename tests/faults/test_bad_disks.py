"""
Full disks, failing disks and clocks that are set back, under a running gateway.
"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from time import sleep

import pytest
from confluent_kafka import Producer

from kgateway.messages.init_producer_id import InitProducerIdRequest
from kgateway.messages.list_offsets import ListOffsetsRequest
from kgateway.wire.errors import ErrorCode
from tests.faults.client import PRODUCE_VERSION, Client, batch_of, produce_request, produced
from tests.faults.mounts import PrivateMounts
from tests.faults.shim import Shim
from tests.faults.worlds import DATA, TOPIC, World, checked, only, refused, wait_for

VALUE = bytes(200_000)
_DISK_BYTES = 6 << 20
_INIT_VERSION, _LIST_VERSION = 4, 7
_LARGEST = -3  # the timestamp that stands for the largest one
_DAY_S = 86_400


@pytest.fixture
def small(tmp_path: Path) -> Iterator[PrivateMounts]:
    """
    A disk of a few megabytes for the data.
    """
    (tmp_path / DATA).mkdir()
    with PrivateMounts() as mounts:
        mounts.run("mount", "-t", "tmpfs", "-o", f"size={_DISK_BYTES}", "tmpfs", tmp_path / DATA)
        yield mounts


def on(folder: Path, mounts: PrivateMounts) -> World:
    """
    A gateway that sees these mounts.
    """
    return World(folder, "--broker", f"log:{folder / DATA}", prefix=mounts.prefix)


def fill(world: World) -> list[bytes]:
    """
    Produce until the disk is full, and return what was acknowledged.
    """
    acknowledged: list[bytes] = []
    while True:
        value = b"%06d" % len(acknowledged) + VALUE
        error, offset = world.produce(value)
        if error:
            assert error == ErrorCode.KAFKA_STORAGE_ERROR
            return acknowledged
        assert offset == len(acknowledged)
        acknowledged.append(value)


def write_until_full(path: Path) -> None:
    """
    Write until no space is left.
    """
    with suppress(OSError), path.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))


def test_a_full_disk_refuses_produce_until_there_is_space(tmp_path: Path, small: PrivateMounts) -> None:
    """
    Producers get KAFKA_STORAGE_ERROR and the operator one log line; reading works. With space again producing works
    without a restart, and acknowledged records are there, also after a restart.
    """
    ballast = small.path(tmp_path / DATA) / "ballast"
    with on(tmp_path, small) as world:
        world.create()
        ballast.write_bytes(bytes(1 << 20))
        acknowledged = fill(world)
        for _ in range(20):
            assert world.produce(b"more" + VALUE)[0] == ErrorCode.KAFKA_STORAGE_ERROR
        assert list(world.read().values.values()) == acknowledged
        world.wait_for("cannot be written: No space left on device")
        [reason] = world.ask("why")["reasons"]
        assert (reason["outcome"], reason["times"]) == ("KAFKA_STORAGE_ERROR", 21)
        ballast.unlink()
        acknowledged.append(b"again")
        assert world.produce(b"again") == (ErrorCode.NONE, len(acknowledged) - 1)
        world.wait_for("can be written again")
        assert world.log.count("No space left on device") == 1
        world.stop()
        world.start()
        assert list(world.read().values.values()) == acknowledged


def test_retention_frees_a_full_disk(tmp_path: Path, small: PrivateMounts) -> None:
    with World(
        tmp_path, "--broker", f"log:{tmp_path / DATA}", "--retention-check-interval-ms", "2s", prefix=small.prefix
    ) as world:
        world.create(retention_ms="1000", file_delete_delay_ms="0")
        fill(world)
        wait_for(lambda: world.produce(b"again" + VALUE)[0] == ErrorCode.NONE)
        assert world.fetch(0).error == ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_real_producer_survives_a_full_disk(tmp_path: Path, small: PrivateMounts) -> None:
    """
    librdkafka retries by itself, and everything is acknowledged once there is space.
    """
    ballast = small.path(tmp_path / DATA) / "ballast"
    with on(tmp_path, small) as world:
        world.create()
        ballast.write_bytes(bytes(4 << 20))
        config = {"bootstrap.servers": world.bootstrap, "enable.idempotence": True, "message.timeout.ms": 30_000}
        producer = Producer({**config, "batch.size": 250_000, "retry.backoff.ms": 50})
        answers: list[object] = []
        for number in range(15):
            producer.produce(TOPIC, b"%d" % number + VALUE, on_delivery=lambda error, message: answers.append(error))
        wait_for(lambda: producer.poll(0.05) >= 0 and "No space left" in world.log)
        ballast.unlink()
        assert producer.flush(30) == 0
        assert answers == [None] * 15
        read = world.read().values
        assert [value.partition(b"\0")[0] for value in read.values()] == [b"%d" % number for number in range(15)]


def test_a_full_disk_refuses_topics_and_producer_ids(tmp_path: Path, small: PrivateMounts) -> None:
    """
    What cannot be stored is not given out; both are available once there is space.
    """
    ballast = small.path(tmp_path / DATA) / "ballast"
    with on(tmp_path, small) as world, Client(world.port) as client:
        world.create()
        write_until_full(ballast)
        asked = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=0)
        assert client.ask(asked, _INIT_VERSION).error_code == ErrorCode.KAFKA_STORAGE_ERROR
        told = {f"topic-{number}": world.create(f"topic-{number}") for number in range(40)}
        assert set(told.values()) == {
            ErrorCode.NONE,
            ErrorCode.KAFKA_STORAGE_ERROR,
        }  # some still fit at the end of a file
        refused_topics = {name for name, error in told.items() if error}
        assert not refused_topics & world.topics()
        ballast.unlink()
        assert client.ask(asked, _INIT_VERSION).error_code == ErrorCode.NONE
        assert world.create(max(refused_topics)) == ErrorCode.NONE
        world.stop()
        world.start()
        assert world.topics() == {TOPIC, max(refused_topics), *told} - (refused_topics - {max(refused_topics)})
    assert "Traceback" not in world.log


def test_a_full_disk_refuses_the_start(tmp_path: Path, small: PrivateMounts) -> None:
    """
    The gateway says so, and what to do; with space it starts, and nothing is lost.
    """
    ballast = small.path(tmp_path / DATA) / "ballast"
    with on(tmp_path, small) as world:
        world.create()
        ballast.write_bytes(bytes(4 << 20))
        acknowledged = fill(world)
        write_until_full(ballast.with_name("more"))
        world.kill()
        ended = refused(tmp_path, f"log:{tmp_path / DATA}", prefix=small.prefix)
        assert ended.returncode == 1
        assert "No space left on device" in only(ended.stderr)
        assert "free some space on its disk" in only(ended.stderr)
        ballast.unlink()
        world.start()
        assert list(world.read().values.values()) == acknowledged


@pytest.fixture
def shim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shim:
    """
    Intercepts the calls of everything started.
    """
    return Shim(tmp_path, monkeypatch)


def test_a_failing_sync_takes_the_partition_offline(tmp_path: Path, shim: Shim) -> None:
    """
    Its records are refused until a restart, the operator is told, and other partitions work; after the restart every
    acknowledged record is there.
    """
    shim.fail_syncs_in(tmp_path / DATA / f"{TOPIC}-0")
    with World(tmp_path, "--acks-fsync", "yes") as world:
        assert (world.create(), world.create("other")) == (ErrorCode.NONE, ErrorCode.NONE)
        kept = [b"one", b"two"]
        for offset, value in enumerate(kept):
            assert world.produce(value) == (ErrorCode.NONE, offset)
        shim.break_syncs()
        assert world.produce(b"lost?")[0] == ErrorCode.KAFKA_STORAGE_ERROR
        shim.mend_syncs()
        assert world.produce(b"refused")[0] == ErrorCode.KAFKA_STORAGE_ERROR
        assert world.fetch().error == ErrorCode.KAFKA_STORAGE_ERROR
        assert world.log.count("Input/output error") == 1
        assert f"{TOPIC}-0 is offline, because it could not be synced: Input/output error; restart" in world.log
        assert {reason["outcome"] for reason in world.ask("why")["reasons"]} == {"KAFKA_STORAGE_ERROR"}
        assert world.produce(b"goes on", topic="other") == (ErrorCode.NONE, 0)
        world.stop()
        world.start()
        assert list(world.read().values.values())[:2] == kept
        assert world.produce(b"three")[0] == ErrorCode.NONE


def test_a_failing_sync_is_reported_to_a_real_client(tmp_path: Path, shim: Shim) -> None:
    """
    librdkafka reports the records as failed, not as delivered.
    """
    shim.fail_syncs_in(tmp_path / DATA / f"{TOPIC}-0")
    with World(tmp_path, "--acks-fsync", "yes") as world:
        world.create()
        assert world.produce(b"one") == (ErrorCode.NONE, 0)
        shim.break_syncs()
        producer = Producer({"bootstrap.servers": world.bootstrap, "message.timeout.ms": 1_500})
        told: list[object] = []
        producer.produce(TOPIC, b"lost?", on_delivery=lambda error, message: told.append(error))
        producer.flush(20)
        assert told[0] is not None


def test_a_clock_set_back_does_no_harm(tmp_path: Path, shim: Shim) -> None:
    """
    The clock changes under a running gateway and at a restart: records keep their order, segments are filled further,
    and a search by time finds the first record that is late enough.
    """
    shim.set_clock(30 * _DAY_S)
    with World(tmp_path) as world:
        world.create(message_timestamp_type="LogAppendTime")
        times = [stamped(world, number) for number in range(7)]
        shim.set_clock(0)
        times += [stamped(world, number) for number in range(7, 14)]
        world.kill()
        shim.set_clock(-30 * _DAY_S)
        world.start()
        times += [stamped(world, number) for number in range(14, 18)]
        assert list(world.read().values) == list(range(18))
        assert len(list((tmp_path / DATA / f"{TOPIC}-0").glob("*.log"))) == 4
        assert [time > times[7] + 29 * _DAY_S * 1000 for time in times[:8]] == [True] * 7 + [False]
        assert times[14] < times[13] - 29 * _DAY_S * 1000
        assert [at_time(world, time) for time in (0, times[14], times[13], times[5], times[6] + 1)] == [0, 0, 0, 5, -1]
        assert at_time(world, _LARGEST) == 6
    assert checked(tmp_path / DATA)[0] == 0


def stamped(world: World, number: int) -> int:
    """
    Produce a record that must get this offset, and return its timestamp.
    """
    with Client(world.port) as client:
        while True:
            told = produced(client.ask(produce_request(TOPIC, batch_of(b"%d" % number + VALUE)), PRODUCE_VERSION))
            if told.error_code != ErrorCode.NOT_LEADER_OR_FOLLOWER:  # the partition is being recovered
                break
        assert (told.error_code, told.base_offset) == (ErrorCode.NONE, number)
        sleep(0.002)  # the next record has another timestamp
        return int(told.log_append_time_ms)


def at_time(world: World, timestamp: int) -> int:
    """
    The offset that ListOffsets returns for a timestamp.
    """
    wanted = ListOffsetsRequest.Topic.Partition(partition_index=0, timestamp=timestamp)
    with Client(world.port) as client:
        asked = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsRequest.Topic(name=TOPIC, partitions=[wanted])])
        [told] = client.ask(asked, _LIST_VERSION).topics[0].partitions
        return int(told.offset)
