"""
A byte that was flipped in a log, wherever it is: nothing else is lost, and what it was in is not given out.
"""

from functools import partial
from pathlib import Path

import pytest
from twisted.logger import capturedLogs

from kgateway.broker.log.segment import file_name
from kgateway.wire.errors import ErrorCode
from tests.broker.behaviour import appended, batch, fetched, offsets, refusal, result, stored
from tests.broker.log.log_world import LogWorld

SIZE = len(batch().data)
HEAD = 61
BATCHES, DAMAGED = 20, 7
LEFT = {
    "stopped": lambda world: result(world.broker.stop()),
    "killed, settled": lambda world: (world.tick(), world.kill()),
    "killed": LogWorld.kill,
}


def flip(path: Path, at: int, by: int = 0x81) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= by
    path.write_bytes(data)


def given(world: LogWorld) -> dict[int, bytes]:
    """
    What consumers get who ask for each offset, from the page cache and from the disk.
    """
    found = dict[int, bytes]()
    for world.disk.cold in (False, True):
        partition = world.again()
        for offset in range(partition.high_watermark):
            try:
                for each in stored(fetched(partition, offset, 1, at_least_one=True)):
                    found[each.header.base_offset] = bytes(each.data)
            except Exception:
                assert refusal(partial(fetched, partition, offset)).code is ErrorCode.CORRUPT_MESSAGE
    return found


@pytest.mark.parametrize("left", LEFT)
@pytest.mark.parametrize("at", [*range(HEAD), SIZE - 1])
@pytest.mark.parametrize("index_interval_bytes", [1, 4096])
def test_a_flipped_byte_costs_one_batch(at: int, left: str, index_interval_bytes: int, tmp_path: Path) -> None:
    """
    All other batches are given out, and what is appended later has other offsets; after another start it is the same.
    A leader epoch that was still to be settled is known by no file.
    """
    world = LogWorld(tmp_path)
    partition = world.log_partition(index_interval_bytes=index_interval_bytes)
    world.clock.advance(1)
    for _ in range(BATCHES):
        appended(partition, batch())
    written = given(world)
    assert list(written) == [*range(BATCHES)]
    LEFT[left](world)
    flip(tmp_path / "t-0" / file_name(0, ".log"), DAMAGED * SIZE + at)
    others = {offset: data for offset, data in written.items() if offset != DAMAGED}
    with capturedLogs():
        for again in range(2):
            world.start()
            assert world.again().log_end == BATCHES + again
            found = given(world)
            assert {offset: data for offset, data in found.items() if offset in others} == others
            assert DAMAGED not in found or found[DAMAGED][:12] + found[DAMAGED][16:] == (
                written[DAMAGED][:12] + written[DAMAGED][16:]
            )
            assert appended(world.again(), batch()).base_offset == BATCHES + again
            result(world.broker.stop())


@pytest.mark.parametrize("left", LEFT)
@pytest.mark.parametrize("at", [*range(HEAD), SIZE - 1])
def test_a_flipped_byte_in_the_last_batch(at: int, left: str, tmp_path: Path) -> None:
    """
    It may be lost, where it was not settled, but is kept then; nobody else gets its offset, where it was.
    """
    world = LogWorld(tmp_path)
    partition = world.log_partition()
    world.clock.advance(1)
    for _ in range(BATCHES):
        appended(partition, batch())
    LEFT[left](world)
    flip(tmp_path / "t-0" / file_name(0, ".log"), (BATCHES - 1) * SIZE + at)
    with capturedLogs():
        world.start()
        end = world.again().log_end
        assert end >= BATCHES - (left == "killed")
        assert offsets(fetched(world.again(), 0)) == [*range(BATCHES)][: BATCHES - 1] or end >= BATCHES
        assert appended(world.again(), batch()).base_offset == end
    if (tmp_path / "t-0" / file_name(0, ".log")).stat().st_size < BATCHES * SIZE:
        assert list((tmp_path / "t-0").glob("*.cut-*"))
