"""
Readers that compare everything a broker has with what it must have.
"""

from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred
from twisted.python.failure import Failure

from kgateway.cluster.partition import Isolation
from kgateway.interfaces import IBroker, IPartition
from kgateway.records.batch import Batch, batches
from kgateway.wire.errors import ErrorCode, KafkaError
from kgateway.wire.uuids import Uuid
from tests.broker.log.lossy_disk import PowerLoss
from tests.broker.log.power_clients import Clients
from tests.broker.log.power_log import Broken, Outlasts
from tests.broker.log.power_machine import Machine

RECOVERS = (ErrorCode.LEADER_NOT_AVAILABLE, ErrorCode.NOT_LEADER_OR_FOLLOWER)
_TURNS_MAX = 3000  # then the call counts as hanging
_MANY_BYTES = 1 << 20


class Readers:
    def __init__(self, machine: Machine, broker: IBroker) -> None:
        self._machine = machine
        self._chance = machine.chance
        self._broker = broker

    def wait(self, call: Callable[[], Any]) -> Any:
        """
        The result of a call, after threads and clock have done their part.
        """
        value = self._machine.reactor(call)
        if not isinstance(value, Deferred):
            return value
        results: list[Any] = []
        value.addBoth(results.append)
        for _ in range(_TURNS_MAX):
            if results:
                break
            self._turn()
        else:
            raise Broken("something that was asked for never comes")
        if isinstance(results[0], Failure):
            results[0].raiseException()
        return results[0]

    def wait_for_recovery(self, call: Callable[[], Any]) -> Any:
        """
        The result of a call that is repeated until the partition is open.
        """
        for _ in range(_TURNS_MAX):
            try:
                return self.wait(call)
            except KafkaError as error:
                if error.code not in RECOVERS:
                    raise
            self._turn()
        raise Broken("a partition never comes back")

    def _turn(self) -> None:
        if self._machine.disk.off:
            raise PowerLoss
        self._machine.work()
        self._machine.tell()
        self._machine.turn()
        if self._machine.is_idle:
            self._machine.advance(0.05)

    def partition(self, topic_id: Uuid, index: int) -> IPartition:
        """
        A partition, once it is open.
        """
        opened: IPartition = self.wait_for_recovery(lambda: self._broker.partition(topic_id, index))
        return opened

    def read_all(self, partition: IPartition) -> list[Batch]:
        """
        All batches of a partition up to its high watermark, without a gap. A reader overtaken by the log start begins
        again.
        """
        found, offset = list[Batch](), partition.log_start
        while offset < partition.high_watermark:
            try:
                more = self.read(partition, offset)
            except KafkaError as error:
                if error.code is not ErrorCode.OFFSET_OUT_OF_RANGE or offset >= partition.log_start:
                    raise
                found, offset = [], partition.log_start
                continue
            if not more:
                raise Broken(f"at {offset} is nothing, and the high watermark is {partition.high_watermark}")
            if not found and more[0].header.base_offset < offset <= more[0].header.last_offset:
                offset = more[0].header.base_offset  # part of it is deleted
            for batch in more:
                if batch.header.base_offset != offset:
                    raise Broken(f"at {offset} is batch {batch.header.base_offset}-{batch.header.last_offset}")
                offset = batch.header.last_offset + 1
            found += more
        return found

    def read(self, partition: IPartition, offset: int) -> list[Batch]:
        """
        Several batches from an offset on.
        """
        max_bytes = self._chance.choice((1, 700, 3000, _MANY_BYTES))
        read = self.wait_for_recovery(
            lambda: partition.read(offset, max_bytes, Isolation.READ_UNCOMMITTED, at_least_one=True)
        )
        return [batch for data in read.batches for batch in batches(data)]

    def compare(self, partition: IPartition, clients: Clients, ended: Outlasts) -> None:
        """
        Compare all records of a partition that was opened after such an end.
        """
        log = clients.log
        log.begins(partition.log_start)
        found = self.read_all(partition)
        log.begins(partition.log_start)
        log.found(found, ended)
        if not log.tip.end == partition.high_watermark == partition.log_end:
            raise Broken(f"{log.name} ends at {log.tip.end}, {partition.high_watermark} or {partition.log_end}")
        log.epoch_is(partition.leader_epoch)
        log.readable(partition.high_watermark)
        log.check_producers(partition.producers())
        self._probe(partition, clients)
        for producer in clients.producers:
            producer.repeat()
            in_log = log.in_log(producer.id)
            if in_log:
                clients.repeat(partition, self._chance.choice(in_log))

    def look(self, partition: IPartition, clients: Clients) -> None:
        """
        Compare all records of a partition in use.
        """
        clients.log.same(self.read_all(partition))

    def _probe(self, partition: IPartition, clients: Clients) -> None:
        """
        Check that one offset, one time and one epoch are found by the indexes.
        """
        self._probe_start(partition)
        log = clients.log
        log.begins(partition.log_start)
        path = log.kept()
        if not path:
            return
        sent = self._chance.choice(path)
        offset = self._chance.randrange(max(sent.base_offset, log.start), sent.end)
        first = self.read(partition, offset)[0].header
        if first.base_offset != sent.base_offset:
            raise Broken(f"{log.name}: asked for {offset} it gives {first.base_offset}, not {sent}")
        for timestamp in (sent.header.max_timestamp, sent.header.max_timestamp + 1):
            found = self.wait(lambda timestamp=timestamp: partition.find_time(timestamp))  # type: ignore[misc]
            if found != log.find_time(timestamp):
                raise Broken(f"{log.name}: time {timestamp} is at {found}, not {log.find_time(timestamp)}")
        if partition.epoch_end(sent.epoch) != log.epoch_end(sent.epoch):
            told = partition.epoch_end(sent.epoch)
            raise Broken(f"{log.name}: epoch {sent.epoch} ends at {told}, not {log.epoch_end(sent.epoch)}")

    def _probe_start(self, partition: IPartition) -> None:
        """
        Check that offsets below the log start cannot be read.
        """
        before = partition.log_start - 1
        if before < 0:
            return
        try:
            self.read(partition, before)
        except KafkaError as error:
            if error.code is not ErrorCode.OFFSET_OUT_OF_RANGE:
                raise
        else:
            raise Broken(f"offset {before} was read, and the log begins at {partition.log_start}")
