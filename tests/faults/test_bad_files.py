"""
Files of a data folder that a disk or a person damaged: the gateway starts, serves what is intact and nothing else,
and reports the damage.
"""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition

from kgateway.wire.errors import ErrorCode
from tests.faults.worlds import DATA, PATIENCE_S, TOPIC, Got, World, checked, filled, flip

PARTITION = Path(DATA) / f"{TOPIC}-0"
SEALED, ACTIVE = f"{0:020d}.log", f"{10:020d}.log"  # of 13 records, five in a segment
_PLACES = [(SEALED, 5, 2), (ACTIVE, 3, 11)]  # a segment, its number of records, and the damaged one
_IDS = ["sealed", "active"]


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[bytes]]:
    """
    A cleanly closed folder and the values in it.
    """
    folder = tmp_path_factory.mktemp("left")
    return folder, filled(folder)


@pytest.fixture
def values(tmp_path: Path, left: tuple[Path, list[bytes]]) -> list[bytes]:
    """
    The values in a copy of the folder.
    """
    folder, values = left
    shutil.copytree(folder / DATA, tmp_path / DATA)
    return values


def damaged(folder: Path, name: str, count: int) -> int:
    """
    Flip a byte in the middle of the segment, and return where its batch begins.
    """
    path = folder / PARTITION / name
    size = path.stat().st_size // count
    flip(path, count // 2 * size + size // 2)
    return count // 2 * size


def produce_from(world: World, start: int) -> list[bytes]:
    """
    Produce the remaining records and return their values.
    """
    values = [b"%06d" % number + bytes(200_000) for number in range(start, 13)]
    for offset, value in enumerate(values, start):
        assert world.produce(value) == (ErrorCode.NONE, offset)
    return values


def check_all_but(world: World, values: list[bytes], bad: int) -> None:
    """
    Check that a consumer gets all records but this one, and CORRUPT_MESSAGE for it.
    """
    before = world.read()
    assert before.error == ErrorCode.CORRUPT_MESSAGE
    assert before.values == dict(enumerate(values[:bad]))
    assert world.fetch(bad).error == ErrorCode.CORRUPT_MESSAGE
    after = world.read(bad + 1)
    assert after.error == ErrorCode.NONE
    assert list(after.values.values()) == values[bad + 1 :]


def check_told(folder: Path, name: str, position: int, bad: int) -> None:
    """
    Check that `kgateway log check` names the position.
    """
    code, lines = checked(folder / DATA)
    assert code == 1
    told = [line for line in lines if f"{PARTITION.name}/{name}, byte {position}, offset {bad}: " in line]
    assert len(told) == 1, lines
    assert "the CRC of the batch does not match its contents" in told[0]


@pytest.mark.parametrize(("name", "count", "bad"), _PLACES, ids=_IDS)
def test_a_byte_changed_while_the_gateway_is_stopped(
    tmp_path: Path, values: list[bytes], name: str, count: int, bad: int
) -> None:
    """
    The damaged batch is not served, all others are; the log, `kgateway why` and `kgateway log check` name it.
    """
    position = damaged(tmp_path, name, count)
    check_told(tmp_path, name, position, bad)
    with World(tmp_path) as world:
        check_all_but(world, values, bad)
        world.wait_for(
            f"{name} cannot be read for offset {bad}: at byte {position}: the CRC of the batch does not match"
        )
        # On a busy machine the first request may arrive while the partition is being recovered.
        reasons = [one for one in world.ask("why")["reasons"] if one["outcome"] != "NOT_LEADER_OR_FOLLOWER"]
        assert [one["outcome"] for one in reasons] == ["CORRUPT_MESSAGE"]
        assert f"at byte {position}" in reasons[0]["message"]


@pytest.mark.parametrize(("name", "count", "bad"), _PLACES, ids=_IDS)
def test_a_byte_changed_under_a_running_gateway(
    tmp_path: Path, values: list[bytes], name: str, count: int, bad: int
) -> None:
    """
    The records of an earlier process are treated likewise.
    """
    with World(tmp_path) as world:
        position = damaged(tmp_path, name, count)
        check_all_but(world, values, bad)
        check_told(tmp_path, name, position, bad)


@pytest.mark.parametrize(("name", "count", "bad"), _PLACES, ids=_IDS)
def test_a_byte_changed_after_a_crash(tmp_path: Path, name: str, count: int, bad: int) -> None:
    """
    The records behind a damaged batch are not truncated: they may have been acknowledged.
    """
    values = filled(tmp_path, count=1)
    with World(tmp_path) as world:
        values += produce_from(world, 1)
        world.kill()
        position = damaged(tmp_path, name, count)
        check_told(tmp_path, name, position, bad)
        world.start()
        check_all_but(world, values, bad)
        world.wait_for(f"{name}, byte {position}: the CRC of the batch does not match its contents")
        assert world.produce(b"more") == (ErrorCode.NONE, 13)


def test_consumers_get_past_records_that_are_lost(tmp_path: Path, values: list[bytes]) -> None:
    """
    The last record is damaged: consumers that wait for it go on to the end, as if it had been compacted away.
    """
    path = tmp_path / PARTITION / ACTIVE
    flip(path, path.stat().st_size - 1)
    last = len(values) - 1
    with World(tmp_path) as world:
        for start in ("beginning", str(last)):
            consume = ["consume", TOPIC, "--bootstrap", world.bootstrap, "--from", start, "--json"]
            ended = subprocess.run(
                [sys.executable, "-m", "kgateway", *consume], capture_output=True, timeout=PATIENCE_S, check=True
            )
            assert len(ended.stdout.splitlines()) == (last if start == "beginning" else 0)
        configs = {"bootstrap.servers": world.bootstrap, "group.id": "g", "enable.partition.eof": True}
        consumer = Consumer(configs)
        consumer.assign([TopicPartition(TOPIC, 0, last)])
        message = consumer.poll(PATIENCE_S)
        assert message is not None
        error = message.error()
        assert error is not None
        assert (error.code(), message.offset()) == (KafkaError._PARTITION_EOF, last + 2)
        consumer.close()
        world.wait_for(f"offsets {last} to {last} are missing after it; consumers continue from {last + 1}")
        assert world.produce(b"more") == (ErrorCode.NONE, last + 2)


def truncate(path: Path) -> None:
    """
    Cut off half of the file, within an entry.
    """
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2 + 1])


def garble(path: Path) -> None:
    path.write_bytes(bytes(range(256)) * 3)


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize(
    ("name", "harm"),
    [
        pytest.param(SEALED, truncate, id="sealed-truncated"),
        pytest.param(SEALED, garble, id="sealed-garbage"),
        pytest.param(SEALED, Path.unlink, id="sealed-missing"),
        pytest.param(ACTIVE, truncate, id="active-truncated"),
        pytest.param(ACTIVE, garble, id="active-garbage"),
        pytest.param(ACTIVE, Path.unlink, id="active-missing"),
    ],
)
def test_a_bad_index_is_rebuilt(
    tmp_path: Path, values: list[bytes], name: str, suffix: str, harm: Callable[[Path], None]
) -> None:
    """
    All records are there, appends succeed, and the next stop writes a valid index.
    """
    harm((tmp_path / PARTITION / name).with_suffix(suffix))
    code, lines = checked(tmp_path / DATA)
    assert code == 1
    assert f"{name.removesuffix('.log')}{suffix}" in lines[0]
    with World(tmp_path) as world:
        assert list(world.read().values.values()) == values
        assert world.produce(b"more") == (ErrorCode.NONE, len(values))
    assert checked(tmp_path / DATA)[0] == 0


def change_inside(path: Path) -> None:
    """
    Change one byte of the last entry.
    """
    flip(path, path.stat().st_size - 30)


@pytest.mark.parametrize("harm", [truncate, change_inside, Path.unlink], ids=["truncated", "changed", "missing"])
def test_duplicates_are_recognized_despite_a_bad_snapshot(tmp_path: Path, harm: Callable[[Path], None]) -> None:
    """
    The producer state is rebuilt from the log.
    """
    with World(tmp_path) as world:
        world.create()
        mine = world.producer_id()
        assert world.produce(b"once", producer=(mine, 0, 0)) == (ErrorCode.NONE, 0)
        assert world.produce(b"again", producer=(mine, 0, 1)) == (ErrorCode.NONE, 1)
    harm(max((tmp_path / PARTITION).glob("*.snapshot")))
    assert checked(tmp_path / DATA)[0] == (0 if harm is Path.unlink else 1)
    with World(tmp_path) as world:
        assert world.produce(b"once", producer=(mine, 0, 0)) == (ErrorCode.NONE, 0)
        assert world.produce(b"more", producer=(mine, 0, 2)) == (ErrorCode.NONE, 2)
        assert list(world.read().values.values()) == [b"once", b"again", b"more"]


@pytest.mark.parametrize("name", ["recovery-point-offset-checkpoint", "kgateway.settled", "leader-epoch-checkpoint"])
def test_a_garbage_checkpoint_is_replaced(tmp_path: Path, values: list[bytes], name: str) -> None:
    """
    A checkpoint only saves time: all records are there, and appends succeed.
    """
    [path] = (tmp_path / DATA).rglob(name)
    garble(path)
    code, lines = checked(tmp_path / DATA)
    assert code == 1
    assert f"{path}: it is damaged" in lines[0]
    with World(tmp_path) as world:
        assert list(world.read().values.values()) == values
        assert world.produce(b"more") == (ErrorCode.NONE, len(values))
    assert checked(tmp_path / DATA)[0] == 0


def test_a_missing_segment_is_a_gap(tmp_path: Path, values: list[bytes]) -> None:
    """
    A reader continues behind the gap, the operator is warned, and appends succeed.
    """
    for path in (tmp_path / PARTITION).glob(f"{5:020d}.*"):
        path.unlink()
    code, lines = checked(tmp_path / DATA)
    assert code == 1
    assert any(f"{ACTIVE}, offset 5: offsets 5 to 9 are missing before it" in line for line in lines)
    with World(tmp_path) as world:
        there = {offset: value for offset, value in enumerate(values) if not 5 <= offset < 10}
        assert world.read() == Got(ErrorCode.NONE, there)
        assert world.produce(b"more") == (ErrorCode.NONE, len(values))
        world.wait_for("offsets 5 to 9")
