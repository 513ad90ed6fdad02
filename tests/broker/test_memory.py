"""
The in-memory broker: the behaviour common to all brokers, and its own.
"""

from collections.abc import Iterator
from gc import collect
from sys import getrefcount
from weakref import ref

import pytest
from zope.interface.verify import verifyObject

from kgateway.broker.memory import MemoryBroker
from kgateway.broker.partition import timestamp_search as timestamps
from kgateway.cluster.partition import Appended, Origin, TimestampAndOffset
from kgateway.cluster.view import NewTopic, Node, PartitionState
from kgateway.interfaces import IBroker, IPartition, IPeers, IStateLog
from kgateway.messages.metadata import MetadataRequest
from kgateway.records.batch import HEADER_SIZE, Batch, TimestampType, read_batch
from kgateway.records.compression import Codec
from kgateway.records.record import Record, records
from kgateway.wire.errors import ErrorCode
from kgateway.wire.varints import write_uvarint
from tests.broker.admin_behaviour import Administering
from tests.broker.behaviour import (
    START_MS,
    Behaviour,
    Make,
    Started,
    World,
    appended,
    at_times,
    batch,
    fetched,
    refusal,
    result,
)
from tests.broker.config_behaviour import Altering
from tests.broker.deletion_behaviour import SegmentDeletion
from tests.broker.transaction_model import in_transaction
from tests.records.crc_batches import sealed
from tests.records.handmade_batches import body, holding


@pytest.fixture(scope="module")
def make() -> Make:
    return lambda now_ms, producer_expiry_ms: MemoryBroker(now_ms=now_ms, producer_expiry_ms=producer_expiry_ms)


class TestMemory(Behaviour, SegmentDeletion, Altering, Administering):
    pass


class TestMemoryAlone(Started):
    def test_interfaces_are_provided(self, world: World) -> None:
        """
        Everything that the interfaces name exists and is callable as declared.
        """
        assert verifyObject(IBroker, world.broker)
        assert verifyObject(IPeers, world.broker.peers)
        assert verifyObject(IPartition, world.partition())
        assert verifyObject(IStateLog, world.state_log())

    def test_operators_learn_that_nothing_is_stored(self, world: World) -> None:
        """
        The broker has no folder.
        """
        assert world.broker.description == "records in memory, gone when this process ends"
        assert world.broker.folder is None

    def test_the_node_has_the_given_id(self) -> None:
        """
        It leads all partitions under that id.
        """
        broker = MemoryBroker(node_id=5, now_ms=lambda: START_MS)
        topic = result(broker.create_topic(NewTopic("t", 1)))
        assert topic.partitions == (PartitionState(leader_id=5, leader_epoch=0, replicas=(5,), in_sync=(5,)),)
        assert broker.view().nodes == (Node(5),)
        assert (broker.node_id, broker.view().controller_id) == (5, 5)

    def test_a_single_node_has_no_peers(self, world: World) -> None:
        error = refusal(lambda: world.broker.peers.ask(Node(2), MetadataRequest(topics=[]), 9))
        assert str(error) == "BROKER_NOT_AVAILABLE: there is no node 2: this gateway is the only one"

    def test_internal_topics_have_eight_partitions(self, world: World) -> None:
        """
        Groups are spread over eight partitions, and the same key always gets the same log.
        """
        logs = {world.state_log(f"group-{number}") for number in range(100) for _ in range(2)}
        assert len(world.broker.view().topics["__consumer_offsets"].partitions) == len(logs) == 8

    def test_unknown_transactions_are_refused(self, world: World) -> None:
        """
        A client's transactional batch needs a transaction that was announced or has begun.
        """
        partition = world.partition()
        first, second, other = (
            in_transaction(7, b"k", sequence=n, epoch=epoch) for n, epoch in ((0, 0), (1, 0), (0, 1))
        )
        error = refusal(lambda: partition.append(first, Origin.CLIENT))
        assert str(error) == "INVALID_TXN_STATE: t-0 is not part of a transaction of producer 7 in epoch 0"
        assert partition.log_end == 0
        appended(partition, first, Origin.ENROLLED_AND_VALIDATED)
        appended(partition, second)
        assert refusal(lambda: partition.append(other, Origin.CLIENT)).code is ErrorCode.INVALID_TXN_STATE
        assert (partition.log_end, partition.last_stable) == (2, 0)

    def test_records_of_transactions_are_checked_too(self, world: World) -> None:
        """
        Being part of a transaction does not make a partition accept bad records.
        """
        partition = world.partition(cleanup_policy="compact")
        error = refusal(lambda: partition.append(in_transaction(7, None), Origin.ENROLLED))
        assert (error.code, partition.log_end) == (ErrorCode.INVALID_RECORD, 0)
        appended(partition, in_transaction(7, b"k"), Origin.ENROLLED)

    def test_appends_are_committed_at_once(self, world: World) -> None:
        assert world.partition().append(batch(), Origin.CLIENT) == Appended(0, -1, 0, stored=None, committed=None)

    def test_stored_batches_do_not_keep_requests_alive(self, world: World) -> None:
        partition, sent = world.partition(), batch()
        frame = bytes(1000) + sent.data + bytes(1000)
        appended(partition, read_batch(frame, 1000))
        (data,) = fetched(partition, 0).batches
        assert isinstance(data, bytes)
        assert len(data) == len(sent.data)

    def test_deleted_topics_free_their_memory(self, world: World) -> None:
        """
        A reference to a lost partition keeps none of its batches.
        """
        partition = world.partition()
        appended(partition, batch())
        (data,) = fetched(partition, 0).batches
        result(world.broker.delete_topic(partition.topic.id))
        held_by_nobody_else = bytes(bytearray(data))
        assert getrefcount(data) == getrefcount(held_by_nobody_else)

    def test_deleted_records_free_their_memory(self, world: World) -> None:
        """
        Batches wholly before the log start are not referenced.
        """
        partition = world.partition()
        appended(partition, batch())
        (data,) = fetched(partition, 0).batches
        result(partition.delete_before(1))
        held_by_nobody_else = bytes(bytearray(data))
        assert getrefcount(data) == getrefcount(held_by_nobody_else)

    def test_deleted_state_logs_free_their_memory(self, world: World) -> None:
        log = ref(world.state_log())
        result(world.broker.delete_topic(world.broker.view().topics["__consumer_offsets"].id))
        collect()
        assert log() is None

    def test_batches_are_opened_only_by_time_searches(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        """
        Appending opens none; a search opens those up to the answer, and none with LogAppendTime.
        """
        opened: list[int] = []

        def counted(batch: Batch) -> Iterator[Record]:
            opened.append(batch.header.base_offset)
            return records(batch)

        monkeypatch.setattr(timestamps, "records", counted)
        partition = world.partition()
        for timestamp in (10, 20, 30):
            appended(partition, batch(timestamp=timestamp))
        assert opened == []
        for _ in range(2):
            assert result(partition.find_time(15)) == TimestampAndOffset(1, 20, 0)
        assert opened == [0, 1] * 2
        by_append = world.partition("by append", timestamp_type=TimestampType.LOG_APPEND_TIME)
        appended(by_append, batch())
        assert result(by_append.find_max_time()) == TimestampAndOffset(0, START_MS, 0)
        assert len(opened) == 4

    @pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
    def test_unreadable_records_have_no_time(self, codec: Codec, world: World) -> None:
        """
        Readable records before them, in the same batch, have theirs.
        """
        partition = world.partition()
        whole = at_times(10, 20, 30)
        appended(partition, resealed(b"no records, whatever the header says", 3, codec))
        appended(partition, resealed(bytes(whole.data[HEADER_SIZE:-5]), 3, codec, base_timestamp=10))
        appended(partition, at_times(40))
        for timestamp, found in {0: (3, 10), 20: (4, 20), 21: (6, 40), -(1 << 63): (3, 10)}.items():
            assert result(partition.find_time(timestamp)) == TimestampAndOffset(*found, 0), timestamp
        assert result(partition.find_max_time()) == TimestampAndOffset(6, 40, 0)

    def test_a_time_search_in_an_unreadable_log_finds_nothing(self, world: World) -> None:
        partition = world.partition()
        appended(partition, resealed(b"no records, whatever the header says", 3))
        assert result(partition.find_time(-(1 << 63))) is None
        assert result(partition.find_max_time()) is None

    def test_false_offsets_in_records_are_ignored(self, world: World) -> None:
        """
        A record is found at the offset where it is, whatever its delta says.
        """
        partition = world.partition()
        appended(partition, resealed(body(offset_delta=99) + body(offset_delta=-5), 2, base_timestamp=10))
        assert result(partition.find_time(10)) == TimestampAndOffset(0, 10, 0)

    def test_overflowing_timestamps_are_ignored(self, world: World) -> None:
        """
        A delta beyond the largest timestamp gives no timestamp.
        """
        far = bytearray(b"\0")
        write_uvarint(far, (1 << 64) - 2)  # zigzag of the largest delta
        far += b"\0\1\1\0"
        partition = world.partition()
        appended(partition, resealed(bytes([len(far) * 2]) + far + body(1), 2, base_timestamp=10))
        assert result(partition.find_time(0)) == TimestampAndOffset(1, 10, 0)
        assert result(partition.find_max_time()) == TimestampAndOffset(1, 10, 0)


def resealed(payload: bytes, count: int, codec: Codec = Codec.NONE, **claims: int) -> Batch:
    """
    A batch with any payload and a valid CRC.
    """
    return sealed(holding(payload, count, codec), last_offset_delta=count - 1, max_timestamp=10, **claims)
