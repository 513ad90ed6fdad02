"""
Where a partition ends whose broker may have messages in memory.
"""

from collections.abc import Callable, Iterable
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from kgateway.broker.seaweed.grpc.status import RpcError
from kgateway.broker.seaweed.protos.messaging_pb2 import BrokerPartitionAssignment
from kgateway.broker.seaweed.protos.schema_pb2 import Partition
from kgateway.broker.seaweedmq.files.partition_files import FilesEnd, PartitionFiles
from kgateway.broker.seaweedmq.files.range_reader import RangeCache
from kgateway.broker.seaweedmq.formats.log_entry import LoggedMessage
from kgateway.broker.seaweedmq.formats.registry import FORMATS
from kgateway.broker.seaweedmq.layout.topic_file import PartitionFolder
from kgateway.broker.seaweedmq.layout.topic_paths import SECOND_NS, RingRange, log_name
from kgateway.broker.seaweedmq.partitions.log_end import flushed_log_end
from kgateway.broker.seaweedmq.partitions.partition_context import PartitionContext
from kgateway.broker.seaweedmq.topics.broker_rpc import FLUSHED_S
from tests.broker.seaweedmq.log_messages import framed
from tests.broker.seaweedmq.memory_filer import MemoryFiler

_NOON_NS = 1_800_000_000 * SECOND_NS
_FOLDER = PartitionFolder("/t/v1/0000-2520", 0, 0, 0, RingRange(0, 2520))
_LOOK_S = 0.1
_SLOW_S = FLUSHED_S + 1


class World:
    """
    A broker, what it has written to files, and a gateway that looks for the end.
    """

    def __init__(self) -> None:
        self.clock, self.filer = Clock(), MemoryFiler()
        self.next_message = 0
        self.partition = Partition(range_stop=2520)
        self.errors: list[RpcError] = []
        self._file_count = 0
        self._asking: Deferred[None] | None = None

    def write(self, numbers: Iterable[int]) -> None:
        """
        The broker writes messages to a file of their own.
        """
        self._file_count += 1
        time = _NOON_NS + 10 * self._file_count * SECOND_NS
        found = [LoggedMessage(number, time + place, b"k", b"v") for place, number in enumerate(numbers)]
        self.filer.append(f"{_FOLDER.path}/{log_name(time)}", framed(found))

    def be_silent(self) -> None:
        """
        From now on the broker does not answer.
        """
        self._asking = Deferred()

    def answer(self) -> None:
        asking, self._asking = self._asking, None
        assert asking
        asking.callback(None)

    def find_end(self, *, is_shared: bool) -> list[FilesEnd]:
        """
        What was found, as soon as it is found.
        """
        files = PartitionFiles(self.filer, (_FOLDER,), FORMATS["plain"], RangeCache(1 << 20), self.clock)  # type: ignore[arg-type]
        files.lead(lambda: None, lambda: None, lambda _: None)
        unused: Any = None
        context = PartitionContext(
            topic="t",
            index=0,
            files=files,
            format=FORMATS["plain"],
            seaweed=self.filer,  # type: ignore[arg-type]
            rpc=self,  # type: ignore[arg-type]
            clock=self.clock,
            client="gateway",
            check_lease=lambda: None,
            side_files=unused,
            is_foreign=is_shared,
            is_removed=False,
            ledger=unused,
        )
        found: list[FilesEnd] = []
        finding = Deferred.fromCoroutine(flushed_log_end(context, is_shared=is_shared))
        finding.addCallbacks(found.append, lambda failure: self.errors.append(failure.value))
        return found

    def let_pass(self, seconds: float, each: Callable[[], None] = lambda: None) -> None:
        """
        Let time pass, look by look.
        """
        for _ in range(int(seconds / _LOOK_S)):
            each()
            self.clock.advance(_LOOK_S)

    async def assignments(self, topic: str) -> list[BrokerPartitionAssignment]:
        if self._asking:
            await self._asking
        return [BrokerPartitionAssignment(partition=self.partition)]

    async def next_offset(self, topic: str, assignment: BrokerPartitionAssignment) -> int:
        return self.next_message


def test_the_end_of_files_that_have_everything() -> None:
    world = World()
    world.write(range(3))
    world.next_message = 3
    (end,) = world.find_end(is_shared=False)
    assert (end.offset, end.next_message, end.gap) == (3, 3, 0)


def test_what_the_broker_has_in_memory_is_waited_for() -> None:
    world = World()
    world.next_message = 3
    found = world.find_end(is_shared=False)
    world.let_pass(FLUSHED_S - 1)
    assert found == []
    world.write(range(3))
    world.let_pass(0.2)
    (end,) = found
    assert (end.offset, end.next_message, end.gap) == (3, 3, 0)


def test_what_never_comes_is_a_hole() -> None:
    world = World()
    world.write(range(3))
    world.next_message = 5
    found = world.find_end(is_shared=True)
    world.let_pass(FLUSHED_S - 1)
    assert found == []
    world.let_pass(2)
    (end,) = found
    assert (end.offset, end.next_message, end.gap) == (5, 5, 2)


def test_a_shared_partition_need_not_fall_silent() -> None:
    """
    Others publish faster than the broker writes files, and each look finds that it has more.
    """
    world = World()
    world.next_message = 10
    found = world.find_end(is_shared=True)

    def publish() -> None:
        world.next_message += 10

    world.let_pass(3, publish)
    assert found == []
    world.write(range(10))
    world.let_pass(0.2, publish)
    (end,) = found
    assert (end.offset, end.next_message, end.gap) == (10, 10, 0)


def test_a_message_that_came_while_the_broker_was_silent_is_no_hole() -> None:
    """
    A broker is killed that had messages in memory, and comes back when the wait for them is over; then it has a new
    one, which will be in files soon.
    """
    world = World()
    world.write(range(3))
    world.next_message = 10
    found = world.find_end(is_shared=True)
    world.let_pass(FLUSHED_S - 1)
    world.be_silent()
    world.let_pass(2)
    world.next_message = 4
    world.answer()
    world.let_pass(1)
    assert found == []
    world.write([3])
    world.let_pass(0.2)
    (end,) = found
    assert (end.offset, end.next_message, end.gap) == (4, 4, 0)


def test_recreated_partitions_do_not_end_where_the_files_do() -> None:
    """
    Their broker counts the messages of other folders.
    """
    world = World()
    world.write(range(3))
    world.next_message = 3
    world.partition = Partition(range_stop=1260, unix_time_ns=1)
    assert world.find_end(is_shared=False) == []
    assert [str(error.message) for error in world.errors] == [
        "another program has replaced the partition of /t/v1/0000-2520"
    ]


def test_a_look_that_took_long_shows_no_hole() -> None:
    """
    The broker did not answer for so long that what it had is in files by now; they were looked at before.
    """
    world = World()
    world.write(range(3))
    world.next_message = 5
    found = world.find_end(is_shared=False)
    world.be_silent()
    world.let_pass(_SLOW_S)
    world.write([3, 4])
    world.next_message = 6
    world.answer()
    assert found == []
    world.write([5])
    world.let_pass(0.2)
    (end,) = found
    assert (end.offset, end.next_message, end.gap) == (6, 6, 0)
