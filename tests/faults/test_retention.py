"""
Retention by age under a gateway that serves producers and consumers.
"""

import time
from pathlib import Path
from threading import Event, Thread

from kgateway.messages.delete_records import DeleteRecordsRequest
from kgateway.messages.list_offsets import ListOffsetsRequest
from kgateway.records.batch import batches
from kgateway.records.builder import BatchBuilder
from kgateway.wire.errors import ErrorCode
from tests.faults.client import FETCH_VERSION, PRODUCE_VERSION, Client, fetch_request, produce_request, produced
from tests.faults.worlds import TOPIC, World, checked

_VALUE = bytes(100_000)  # ten fill a segment
_COUNT = 600
_KEPT_MS = 300
_LARGEST_BYTES = 30 << 20  # half of what is produced
_PAUSE_S = 0.005
_PATIENCE_S = 30


class Producing(Thread):
    """
    Sends one record after the other with the current time, and measures the disk.
    """

    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world
        self.largest_bytes = 0
        self.errors = set[int]()
        self.ended = Event()

    def run(self) -> None:
        folder = self._world.data / f"{TOPIC}-0"
        with Client(self._world.port) as client:
            for _ in range(_COUNT):
                builder = BatchBuilder()
                builder.append(None, _VALUE, timestamp=time.time_ns() // 1_000_000)
                told = produced(client.ask(produce_request(TOPIC, builder.build()), PRODUCE_VERSION))
                self.errors.add(told.error_code)
                self.largest_bytes = max(self.largest_bytes, size_of(folder))
                self.ended.wait(_PAUSE_S)
        self.ended.set()


def size_of(folder: Path) -> int:
    """
    The size of the files in a folder; files may be deleted meanwhile.
    """
    found = 0
    for path in folder.iterdir():
        try:
            found += path.stat().st_size
        except FileNotFoundError:
            continue
    return found


def consume(world: World, until: Event) -> tuple[set[int], int]:
    """
    Read from the first record and from the last ones until told to stop; return the errors, and how often the reader
    was overtaken.
    """
    errors, overtaken, offsets = set[int](), 0, [0, 0]
    with Client(world.port) as client:
        while not until.is_set():
            for reader in (0, 1):
                [told] = client.ask(fetch_request(TOPIC, offset=offsets[reader]), FETCH_VERSION).responses[0].partitions
                errors.add(told.error_code)
                found = list(batches(told.records or b""))
                if told.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                    overtaken += 1
                    offsets[reader] = earliest(client)
                elif found and reader:
                    offsets[reader] = (
                        found[-1].header.last_offset + 1
                    )  # the other reader waits there until it is overtaken
    return errors, overtaken


def earliest(client: Client) -> int:
    """
    The log start, once the partition is open.
    """
    asked = ListOffsetsRequest.Topic.Partition(partition_index=0, timestamp=-2, current_leader_epoch=-1)
    request = ListOffsetsRequest(
        replica_id=-1, isolation_level=0, topics=[ListOffsetsRequest.Topic(name=TOPIC, partitions=[asked])]
    )
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        [told] = client.ask(request, 7).topics[0].partitions
        if told.error_code != ErrorCode.NOT_LEADER_OR_FOLLOWER or time.monotonic() > deadline:
            assert told.error_code == ErrorCode.NONE
            return int(told.offset)
        time.sleep(_PAUSE_S)


def test_disk_use_is_bounded(tmp_path: Path) -> None:
    """
    Expired records are deleted while others write and read: the disk never holds everything, readers get
    OFFSET_OUT_OF_RANGE and no other error, and the files are valid in the end.
    """
    with World(tmp_path, "--retention-check-interval-ms", "50") as world:
        assert world.create(retention_ms=str(_KEPT_MS), file_delete_delay_ms="0") == ErrorCode.NONE
        producing = Producing(world)
        producing.start()
        errors, overtaken = consume(world, producing.ended)
        producing.join()
        assert producing.errors == {0}
        assert errors <= {ErrorCode.NONE, ErrorCode.OFFSET_OUT_OF_RANGE}
        assert overtaken > 2
        assert producing.largest_bytes < _LARGEST_BYTES < _COUNT * len(_VALUE)
        with Client(world.port) as client:
            deleted = client.ask(delete_request(-1), 2).topics[0].partitions[0]
            assert (deleted.error_code, deleted.low_watermark, earliest(client)) == (0, _COUNT, _COUNT)
        assert "Traceback" not in world.log
        world.stop()
        assert checked(world.data)[0] == 0
        world.start()
        with Client(world.port) as client:
            assert earliest(client) == _COUNT


def delete_request(offset: int) -> DeleteRecordsRequest:
    """
    A request to delete everything before the offset.
    """
    asked = DeleteRecordsRequest.Topic.Partition(partition_index=0, offset=offset)
    return DeleteRecordsRequest(topics=[DeleteRecordsRequest.Topic(name=TOPIC, partitions=[asked])], timeout_ms=30_000)
