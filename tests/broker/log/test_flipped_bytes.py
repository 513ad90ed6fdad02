"""
A flipped byte anywhere in a log loses nothing else, and its batch is not served.

The first byte of each header field is tried, and each byte of it if POWER_SCHEDULES is set.
"""

import os
from functools import partial
from pathlib import Path

import pytest
from twisted.logger import capturedLogs

from kgateway.broker.log.segments.file_names import file_name
from kgateway.wire.errors import ErrorCode
from tests.broker.behaviour import appended, batch, fetched, offsets, refusal, result, stored
from tests.broker.log.log_world import LogWorld

SIZE = len(batch().data)
HEAD = 61
BATCHES, DAMAGED = 20, 7
_FIELDS = (0, 8, 12, 16, 17, 21, 23, 27, 35, 43, 51, 53, 57)
PLACES = [*(range(HEAD) if "POWER_SCHEDULES" in os.environ else _FIELDS), SIZE - 1]
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
    What consumers of each offset get, from the page cache and from the disk.
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
@pytest.mark.parametrize("at", PLACES)
@pytest.mark.parametrize("index_interval_bytes", [1, 4096])
def test_a_flipped_byte_costs_one_batch(at: int, left: str, index_interval_bytes: int, tmp_path: Path) -> None:
    """
    All other batches are served, and later appends have other offsets; another start has the same result. A leader
    epoch that was not settled is in no file.
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
@pytest.mark.parametrize("at", PLACES)
def test_a_flipped_byte_in_the_last_batch(at: int, left: str, tmp_path: Path) -> None:
    """
    An unsettled batch may be lost, but is kept in a copy; a settled one keeps its offset.
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
