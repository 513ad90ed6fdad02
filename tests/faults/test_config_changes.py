"""
Configs of a topic change continually under a gateway that serves its records.
"""

import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from threading import Event, Thread

from kgateway.cluster.config_resource import ResourceType
from kgateway.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from kgateway.records.batch import batches
from kgateway.records.builder import BatchBuilder
from kgateway.records.record import records
from kgateway.wire.errors import ErrorCode
from tests.faults.client import FETCH_VERSION, PRODUCE_VERSION, Client, fetch_request, produce_request, produced
from tests.faults.test_retention import earliest
from tests.faults.worlds import KEPT_MS, PATIENCE_S, TOPIC, World, checked

_KEYS = 20
_VALUE = bytes(20_000)
_PAUSE_S = 0.3  # a compaction process takes as long to start
_ROUNDS = 2
_ALTER_VERSION = 1
_CHANGES = [
    {"retention.ms": "200"},
    {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0"},
    {"compression.type": "lz4"},
    {"segment.bytes": str(2 << 20), "index.interval.bytes": "0"},
    {"message.timestamp.type": "LogAppendTime"},
    {"cleanup.policy": "compact,delete", "delete.retention.ms": "0"},
    {"retention.ms": KEPT_MS, "kgateway.acks.fsync": "true"},
    {"compression.type": "producer", "message.timestamp.type": "CreateTime"},
    {"segment.bytes": str(1 << 20), "file.delete.delay.ms": "0"},
    {"cleanup.policy": "delete", "kgateway.acks.fsync": "false"},
]


class Producing(Thread):
    """
    Produces one record after the other, each with a key and its number.
    """

    def __init__(self, port: int) -> None:
        super().__init__()
        self._port = port
        self.errors = set[int]()
        self.offsets: list[int] = []
        self.stop, self.ended = Event(), Event()

    def run(self) -> None:
        try:
            with Client(self._port) as client:
                for number in count():
                    if self.stop.wait(0.001):
                        return
                    builder = BatchBuilder()
                    value = b"%d " % number + _VALUE
                    builder.append(b"%d" % (number % _KEYS), value, timestamp=time.time_ns() // 1_000_000)
                    told = produced(client.ask(produce_request(TOPIC, builder.build()), PRODUCE_VERSION))
                    self.errors.add(told.error_code)
                    self.offsets.append(told.base_offset)
        finally:
            self.ended.set()


class Consuming(Thread):
    """
    Follows the end, or reads the first records again and again until they are deleted.
    """

    def __init__(self, port: int, until: Event, *, again: bool) -> None:
        super().__init__()
        self._port = port
        self._until = until
        self._again = again
        self.errors = set[int]()
        self.wrong: list[str] = []
        self.seen = 0

    def run(self) -> None:
        offset = 0
        with Client(self._port) as client:
            while not self._until.is_set():
                request = fetch_request(TOPIC, offset=offset)
                [told] = client.ask(request, FETCH_VERSION).responses[0].partitions
                self.errors.add(told.error_code)
                found = list(batches(told.records or b""))
                for record in (record for batch in found for record in records(batch)):
                    number = int((record.value or b"").split()[0])
                    if number != record.offset:  # each record is sent once, and the log has no others
                        self.wrong.append(f"offset {record.offset} has record {number}")
                    self.seen += 1
                if told.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                    offset = earliest(client)
                elif found and not self._again:
                    offset = found[-1].header.last_offset + 1


def alter(client: Client, configs: dict[str, str]) -> int:
    """
    Alter the configs and return the error code.
    """
    resource = IncrementalAlterConfigsRequest.Resource
    rows = [resource.Config(name=name, config_operation=0, value=value) for name, value in configs.items()]
    asked = resource(resource_type=ResourceType.TOPIC, resource_name=TOPIC, configs=rows)
    answer = client.ask(IncrementalAlterConfigsRequest(resources=[asked], validate_only=False), _ALTER_VERSION)
    return int(answer.responses[0].error_code)


def until(met: Callable[[], bool], otherwise: str) -> None:
    """
    Wait until the condition is met.
    """
    deadline = time.monotonic() + PATIENCE_S
    while not met():
        assert time.monotonic() < deadline, otherwise
        time.sleep(0.05)


def test_configs_change_under_load(tmp_path: Path) -> None:
    """
    Producers get no error, readers only that records were deleted, and each record is at its offset.
    """
    options = ("--retention-check-interval-ms", "50", "--compaction-backoff-ms", "50")
    with World(tmp_path, *options) as world, Client(world.port) as client:
        assert world.create() == ErrorCode.NONE
        producing = Producing(world.port)
        reading = [Consuming(world.port, producing.ended, again=again) for again in (False, True)]
        for thread in (producing, *reading):
            thread.start()
        for configs in _CHANGES * _ROUNDS:
            assert alter(client, configs) == ErrorCode.NONE, configs
            assert not producing.ended.wait(_PAUSE_S)
            if configs == _CHANGES[0]:
                until(lambda: any(ErrorCode.OFFSET_OUT_OF_RANGE in one.errors for one in reading), "nothing was let go")
            if configs == _CHANGES[1]:
                until(lambda: "compacted up to" in world.log, "nothing was compacted")
        producing.stop.set()
        for thread in (producing, *reading):
            thread.join()
        assert producing.errors == {ErrorCode.NONE}
        assert producing.offsets == list(range(len(producing.offsets)))
        for one in reading:
            assert one.wrong == []
            assert one.errors <= {ErrorCode.NONE, ErrorCode.OFFSET_OUT_OF_RANGE}
            assert one.seen
        assert "Traceback" not in world.log
        world.stop()
        assert checked(world.data)[0] == 0
