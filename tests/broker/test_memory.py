"""
The broker in memory: what every broker does, and what is its own.
"""

from collections.abc import Iterator
from gc import collect
from sys import getrefcount
from weakref import ref

import pytest
from zope.interface.verify import verifyObject

from kgateway.broker import timestamps
from kgateway.broker.memory import MemoryBroker
from kgateway.cluster.partition import Appended, Found, Origin
from kgateway.cluster.view import NewTopic, Node, PartitionState
from kgateway.interfaces import IBroker, IPartition, IPeers, IStateLog
from kgateway.messages.metadata import MetadataRequest
from kgateway.records.batch import HEADER_SIZE, Batch, TimestampType, read_batch
from kgateway.records.compression import Codec
from kgateway.records.record import Record, records
from kgateway.wire.errors import ErrorCode
from kgateway.wire.varints import write_uvarint
from tests.broker.administering import Administering
from tests.broker.altering import Altering
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
from tests.broker.deletions import LettingGo
from tests.broker.transacting import in_transaction
from tests.records.handmade import body, holding
from tests.records.sealed import sealed


@pytest.fixture(scope="module")
def make() -> Make:
    """
    A broker in memory.
    """
    return lambda now_ms, producer_expiry_ms: MemoryBroker(now_ms=now_ms, producer_expiry_ms=producer_expiry_ms)


class TestMemory(Behaviour, LettingGo, Altering, Administering):
    """
    What every broker does.
    """


class TestMemoryAlone(Started):
    """
    What is its own.
    """

    def test_interfaces_are_provided(self, world: World) -> None:
        """
        Everything that an interface names is there, callable as it says.
        """
        assert verifyObject(IBroker, world.broker)
        assert verifyObject(IPeers, world.broker.peers)
        assert verifyObject(IPartition, world.partition())
        assert verifyObject(IStateLog, world.state_log())

    def test_broker_says_what_it_is(self, world: World) -> None:
        """
        An operator is told that nothing is kept; there is no folder.
        """
        assert world.broker.description == "records in memory, gone when this process ends"
        assert world.broker.folder is None

    def test_node_has_the_id_it_is_given(self) -> None:
        """
        The node leads all partitions under its id.
        """
        broker = MemoryBroker(node_id=5, now_ms=lambda: START_MS)
        topic = result(broker.create_topic(NewTopic("t", 1)))
        assert topic.partitions == (PartitionState(leader_id=5, leader_epoch=0, replicas=(5,), in_sync=(5,)),)
        assert broker.view().nodes == (Node(5),)
        assert (broker.node_id, broker.view().controller_id) == (5, 5)

    def test_nobody_else_is_there(self, world: World) -> None:
        """
        A lone gateway has no others to ask.
        """
        error = refusal(lambda: world.broker.peers.ask(Node(2), MetadataRequest(topics=[]), 9))
        assert str(error) == "BROKER_NOT_AVAILABLE: there is no node 2: this gateway is alone"

    def test_internal_topics_have_eight_partitions(self, world: World) -> None:
        """
        The state of groups is spread over eight partitions, and asked for twice it is the same log.
        """
        logs = {world.state_log(f"group-{number}") for number in range(100) for _ in range(2)}
        assert len(world.broker.view().topics["__consumer_offsets"].partitions) == len(logs) == 8

    def test_transactions_that_nobody_knows_of(self, world: World) -> None:
        """
        A transactional batch of a client is refused, unless it was asked for whether it may begin, or has begun.
        """
        partition = world.partition()
        first, second, other = (
            in_transaction(7, b"k", sequence=n, epoch=epoch) for n, epoch in ((0, 0), (1, 0), (0, 1))
        )
        error = refusal(lambda: partition.append(first, Origin.CLIENT))
        assert str(error) == "INVALID_TXN_STATE: t-0 is no part of a transaction of producer 7 in epoch 0"
        assert partition.log_end == 0
        appended(partition, first, Origin.JOINED)
        appended(partition, second)
        assert refusal(lambda: partition.append(other, Origin.CLIENT)).code is ErrorCode.INVALID_TXN_STATE
        assert (partition.log_end, partition.last_stable) == (2, 0)

    def test_who_may_begin_is_checked_all_the_same(self, world: World) -> None:
        """
        That a partition is part of a transaction says nothing of the records for it.
        """
        partition = world.partition(cleanup_policy="compact")
        error = refusal(lambda: partition.append(in_transaction(7, None), Origin.ADDED))
        assert (error.code, partition.log_end) == (ErrorCode.INVALID_RECORD, 0)
        appended(partition, in_transaction(7, b"k"), Origin.ADDED)

    def test_nobody_waits(self, world: World) -> None:
        """
        What is appended is stored and safe already.
        """
        assert world.partition().append(batch(), Origin.CLIENT) == Appended(0, -1, 0, stored=None, safe=None)

    def test_batches_hold_nothing_but_themselves(self, world: World) -> None:
        """
        A stored batch does not keep the request alive that it came in.
        """
        partition, sent = world.partition(), batch()
        frame = bytes(1000) + sent.data + bytes(1000)
        appended(partition, read_batch(frame, 1000))
        (data,) = fetched(partition, 0).batches
        assert isinstance(data, bytes)
        assert len(data) == len(sent.data)

    def test_deleted_topics_take_no_memory(self, world: World) -> None:
        """
        Whoever holds a lost partition holds none of its batches.
        """
        partition = world.partition()
        appended(partition, batch())
        (data,) = fetched(partition, 0).batches
        result(world.broker.delete_topic(partition.topic.id))
        held_by_nobody_else = bytes(bytearray(data))
        assert getrefcount(data) == getrefcount(held_by_nobody_else)

    def test_deleted_records_take_no_memory(self, world: World) -> None:
        """
        Nobody holds batches that are wholly before the log start.
        """
        partition = world.partition()
        appended(partition, batch())
        (data,) = fetched(partition, 0).batches
        result(partition.delete_before(1))
        held_by_nobody_else = bytes(bytearray(data))
        assert getrefcount(data) == getrefcount(held_by_nobody_else)

    def test_deleted_state_takes_no_memory(self, world: World) -> None:
        """
        The state log of a deleted topic goes, too.
        """
        log = ref(world.state_log())
        result(world.broker.delete_topic(world.broker.view().topics["__consumer_offsets"].id))
        collect()
        assert log() is None

    def test_batches_are_opened_when_a_time_is_asked_for(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        """
        Appending opens no batch, and asking for a time opens again only the batch that has the answer; none is opened
        whose time is the broker's own.
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
            assert result(partition.find_time(15)) == Found(1, 20, 0)
        assert opened == [0, 1, 2, 1, 1]
        by_append = world.partition("by append", timestamp_type=TimestampType.LOG_APPEND_TIME)
        appended(by_append, batch())
        assert result(by_append.find_max_time()) == Found(0, START_MS, 0)
        assert len(opened) == 5

    @pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP])
    def test_batches_that_cannot_be_read(self, codec: Codec, world: World) -> None:
        """
        Records that are none have no time; those before them, in the same batch, have theirs.
        """
        partition = world.partition()
        whole = at_times(10, 20, 30)
        appended(partition, resealed(b"no records, whatever the header says", 3, codec))
        appended(partition, resealed(bytes(whole.data[HEADER_SIZE:-5]), 3, codec, base_timestamp=10))
        appended(partition, at_times(40))
        for timestamp, found in {0: (3, 10), 20: (4, 20), 21: (6, 40), -(1 << 63): (3, 10)}.items():
            assert result(partition.find_time(timestamp)) == Found(*found, 0), timestamp
        assert result(partition.find_max_time()) == Found(6, 40, 0)

    def test_log_that_cannot_be_read(self, world: World) -> None:
        """
        Where no record can be read, none is found.
        """
        partition = world.partition()
        appended(partition, resealed(b"no records, whatever the header says", 3))
        assert result(partition.find_time(-(1 << 63))) is None
        assert result(partition.find_max_time()) is None

    def test_records_are_where_they_stand(self, world: World) -> None:
        """
        A record that lies about its own offset is found at the one it has.
        """
        partition = world.partition()
        appended(partition, resealed(body(offset_delta=99) + body(offset_delta=-5), 2, base_timestamp=10))
        assert result(partition.find_time(10)) == Found(0, 10, 0)

    def test_timestamps_beyond_all_numbers(self, world: World) -> None:
        """
        A delta that leads past the largest timestamp there can be gives none.
        """
        far = bytearray(b"\0")
        write_uvarint(far, (1 << 64) - 2)  # zigzag for the largest delta
        far += b"\0\1\1\0"
        partition = world.partition()
        appended(partition, resealed(bytes([len(far) * 2]) + far + body(1), 2, base_timestamp=10))
        assert result(partition.find_time(0)) == Found(1, 10, 0)
        assert result(partition.find_max_time()) == Found(1, 10, 0)


def resealed(payload: bytes, count: int, codec: Codec = Codec.NONE, **claims: int) -> Batch:
    """
    A batch of this payload, whatever it is, under a CRC that holds.
    """
    return sealed(holding(payload, count, codec), last_offset_delta=count - 1, max_timestamp=10, **claims)
