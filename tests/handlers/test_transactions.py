"""
Transactions from a producer's first request to the last, with clients of each generation.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from twisted.internet.defer import Deferred

from kgateway.api import Handler
from kgateway.broker.state_log import StateLog
from kgateway.cluster.partition import Appended
from kgateway.cluster.view import NewTopic
from kgateway.handlers.add_offsets_to_txn import add_offsets_to_txn
from kgateway.handlers.add_partitions_to_txn import add_partitions_to_txn
from kgateway.handlers.consumer_group_heartbeat import consumer_group_heartbeat
from kgateway.handlers.describe_transactions import describe_transactions
from kgateway.handlers.end_txn import end_txn
from kgateway.handlers.init_producer_id import init_producer_id
from kgateway.handlers.list_transactions import list_transactions
from kgateway.handlers.offset_fetch import offset_fetch
from kgateway.handlers.produce import produce
from kgateway.handlers.txn_offset_commit import txn_offset_commit
from kgateway.handlers.write_txn_markers import write_txn_markers
from kgateway.interfaces import IPartition, KeyValue, ProducerEpoch
from kgateway.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from kgateway.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, Topic
from kgateway.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from kgateway.messages.describe_transactions import DescribeTransactionsRequest
from kgateway.messages.end_txn import EndTxnRequest, EndTxnResponse
from kgateway.messages.init_producer_id import InitProducerIdRequest
from kgateway.messages.list_transactions import ListTransactionsRequest
from kgateway.messages.offset_fetch import OffsetFetchRequest
from kgateway.messages.produce import ProduceRequest
from kgateway.messages.txn_offset_commit import TxnOffsetCommitRequest
from kgateway.messages.write_txn_markers import WriteTxnMarkersRequest
from kgateway.security.permissions import Operation, Resource
from kgateway.transactions.state import ProducerIdAndEpoch
from kgateway.wire.errors import ErrorCode, KafkaError
from tests.broker.behaviour import result
from tests.broker.transaction_model import committed, in_transaction
from tests.serving import Denying, Serving

ID, TOPIC, GROUP = "tx", "orders", "readers"
OLD, NEW = 3, 5  # versions of EndTxn
_TURNS = 10  # turns of the reactor, which some work takes
NEVER_ADDED = ErrorCode.INVALID_TXN_STATE


class Producer:
    """
    A client; an old one adds its partitions itself, and keeps its epoch.
    """

    def __init__(self, serving: Serving, is_old: bool) -> None:
        self.serving = serving
        self.id = ID
        self.is_old = is_old
        self.me = ProducerIdAndEpoch(-1, -1)
        self.sequences: Counter[int] = Counter()  # by partition

    def ask(self, handler: Handler, request: Any, version: int) -> Any:
        """
        The response, or the error code of a refused request.
        """
        try:
            answer = self.serving.ask(handler, request, version)
            self.serving.clock.pump([0] * _TURNS)
            return result(answer)
        except KafkaError as error:
            return error.code

    def init(self) -> int:
        request = InitProducerIdRequest(transactional_id=ID, transaction_timeout_ms=60_000)
        told = self.ask(init_producer_id, request, 5)
        if told.error_code == 0:
            self.me, self.sequences = ProducerIdAndEpoch(told.producer_id, told.producer_epoch), Counter()
        code: int = told.error_code
        return code

    def add(self, *indexes: int, name: str = TOPIC) -> dict[int, int]:
        """
        Send AddPartitionsToTxn, which new clients do not need.
        """
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=ID,
            v3_and_below_producer_id=self.me.producer_id,
            v3_and_below_producer_epoch=self.me.epoch,
            v3_and_below_topics=[Topic(name=name, partitions=[*indexes])],
        )
        told = self.ask(add_partitions_to_txn, request, 3)
        return {
            one.partition_index: one.partition_error_code
            for topic in told.results_by_topic_v3_and_below
            for one in topic.results_by_partition
        }

    def write(self, index: int = 0, key: bytes = b"k", version: int | None = None) -> int:
        [code] = self.written(self.ask(produce, self.batches(index, key=key), version or self.produce_version))
        self.sequences[index] += code == 0
        return code

    @property
    def produce_version(self) -> int:
        return 10 if self.is_old else 12

    def batches(self, *indexes: int, key: bytes = b"k") -> ProduceRequest:
        """
        A request with the next batch for each of these partitions.
        """
        data = [ProduceRequest.TopicData.PartitionData(index=one, records=self._batch(one, key)) for one in indexes]
        topic = ProduceRequest.TopicData(name=TOPIC, partition_data=data)
        return ProduceRequest(transactional_id=self.id, acks=-1, timeout_ms=1_000, topic_data=[topic])

    def written(self, told: Any) -> list[int]:
        """
        The code of each partition.
        """
        return [one.error_code for one in told.responses[0].partition_responses]

    def _batch(self, index: int, key: bytes) -> bytes:
        return in_transaction(
            self.me.producer_id, key, sequence=self.sequences[index], epoch=self.me.epoch
        ).data.tobytes()

    def end(self, commits: bool = True, me: ProducerIdAndEpoch | None = None) -> int:
        told = self.ask(end_txn, self.ending(commits, me), OLD if self.is_old else NEW)
        if not isinstance(told, EndTxnResponse):
            return int(told)
        if not self.is_old and told.error_code == 0:
            self.me, self.sequences = ProducerIdAndEpoch(told.producer_id, told.producer_epoch), Counter()
        return told.error_code

    def ending(self, commits: bool = True, me: ProducerIdAndEpoch | None = None) -> EndTxnRequest:
        producer_id, epoch = me or self.me
        return EndTxnRequest(transactional_id=ID, producer_id=producer_id, producer_epoch=epoch, committed=commits)

    def commit_offset(self, offset: int, version: int | None = None, **member: Any) -> int:
        request = self.offset(offset, **member)
        told = self.ask(txn_offset_commit, request, version or self.offset_version)
        code: int = told.topics[0].partitions[0].error_code
        return code

    @property
    def offset_version(self) -> int:
        return 3 if self.is_old else 5

    def offset(self, offset: int, **member: Any) -> TxnOffsetCommitRequest:
        partition = TxnOffsetCommitRequest.Topic.Partition(
            partition_index=0, committed_offset=offset, committed_metadata=None
        )
        return TxnOffsetCommitRequest(
            transactional_id=ID,
            group_id=GROUP,
            producer_id=self.me.producer_id,
            producer_epoch=self.me.epoch,
            topics=[TxnOffsetCommitRequest.Topic(name=TOPIC, partitions=[partition])],
            **member,
        )

    def add_offsets(self) -> int:
        request = AddOffsetsToTxnRequest(
            transactional_id=ID, producer_id=self.me.producer_id, producer_epoch=self.me.epoch, group_id=GROUP
        )
        code: int = self.ask(add_offsets_to_txn, request, 3).error_code
        return code

    def fetch_offset(self, stable: bool = True) -> tuple[int, int]:
        topic = OffsetFetchRequest.Topic(name=TOPIC, partition_indexes=[0])
        request = OffsetFetchRequest(group_id=GROUP, topics=[topic], require_stable=stable)
        [found] = self.ask(offset_fetch, request, 7).topics[0].partitions
        return found.committed_offset, found.error_code


@pytest.fixture
def serving() -> Serving:
    made = Serving()
    result(made.broker.create_topic(NewTopic(TOPIC, 2)))
    return made


@pytest.fixture(params=[True, False], ids=["old", "new"])
def producer(request: pytest.FixtureRequest, serving: Serving) -> Producer:
    made = Producer(serving, request.param)
    assert made.init() == 0
    return made


def partition(serving: Serving, index: int = 0) -> IPartition:
    return serving.broker.partition(serving.broker.view().topics[TOPIC].id, index)


def read(serving: Serving, index: int = 0) -> list[bytes | None]:
    """
    The committed records of a partition.
    """
    return [record.key for record in committed(partition(serving, index), 0)]


class WatchedLog:
    """
    The log of a coordinator, whose writes are committed on request.
    """

    def __init__(self, log: StateLog) -> None:
        self.written: list[KeyValue] = []
        self.committed: Deferred[None] | None = None
        self._append = log.append
        log.append = self.append  # type: ignore[method-assign]  # the broker has no other log to give

    def append(self, records: Sequence[KeyValue], producer: ProducerEpoch | None = None) -> Appended:
        self.written += records
        return replace(self._append(records, producer), committed=self.committed)


def state_log(serving: Serving, resource: Resource = Resource.TRANSACTIONAL_ID, name: str = ID) -> WatchedLog:
    """
    The log of the transactional id's coordinator, or of a group's.
    """
    log = serving.broker.coordinator(resource, name)
    assert isinstance(log, StateLog)
    return WatchedLog(log)


@pytest.mark.parametrize("commits", [True, False])
def test_records_count_once_committed(producer: Producer, commits: bool, serving: Serving) -> None:
    """
    This holds in all partitions; then the next transaction begins.
    """
    for number in range(3):
        if producer.is_old:
            assert producer.add(0, 1) == {0: 0, 1: 0}
        assert [producer.write(0, b"%d" % number), producer.write(1, b"x")] == [0, 0]
        assert partition(serving).last_stable < partition(serving).log_end
        assert producer.end(commits) == 0
        assert partition(serving).last_stable == partition(serving).log_end
    assert (read(serving), read(serving, 1)) == (([b"0", b"1", b"2"], [b"x"] * 3) if commits else ([], []))


def test_partitions_have_to_be_added(serving: Serving) -> None:
    """
    An old client that has not added one gets an error that its version knows.
    """
    producer = Producer(serving, is_old=True)
    producer.init()
    producer.add(1)
    assert producer.write(0) == NEVER_ADDED
    assert producer.write(0, version=11) == ErrorCode.TRANSACTION_ABORTABLE
    assert producer.end() == 0
    assert producer.write(0) == NEVER_ADDED
    assert partition(serving).log_end == 0


def test_a_transaction_begins_at_once(producer: Producer, serving: Serving) -> None:
    """
    If the coordinator's writes are committed at once, the first batches wait for nothing, and nothing waits behind
    them. One record has all partitions of a request.
    """
    if producer.is_old:
        producer.add(0, 1)
    log = state_log(serving)
    told = serving.ask(produce, producer.batches(0, 1), producer.produce_version)
    assert producer.written(result(told)) == [0, 0]
    assert len(log.written) == (0 if producer.is_old else 1)
    assert serving.session.appending is None


def test_partitions_that_were_not_added_do_not_hinder_others(serving: Serving) -> None:
    """
    The refusal names them.
    """
    producer = Producer(serving, is_old=True)
    producer.init()
    producer.add(1)
    told = producer.ask(produce, producer.batches(0, 1), producer.produce_version)
    assert producer.written(told) == [NEVER_ADDED, 0]
    assert [partition(serving, index).log_end for index in (0, 1)] == [0, 1]


def test_batches_behind_the_first_one_wait(serving: Serving) -> None:
    """
    Nothing is written before the partition's part in the transaction is committed, and all of it in order; later
    batches do not wait.
    """
    producer = Producer(serving, is_old=False)
    producer.init()
    log = state_log(serving)
    log.committed = Deferred()
    asked = []
    for key in (b"1", b"2"):
        asked.append(serving.ask(produce, producer.batches(0, key=key), producer.produce_version))
        producer.sequences[0] += 1
    serving.clock.pump([0] * _TURNS)
    assert (partition(serving).log_end, [one.called for one in asked]) == (0, [False, False])
    committed, log.committed = log.committed, None
    committed.callback(None)
    serving.clock.pump([0] * _TURNS)
    assert [producer.written(result(one)) for one in asked] == [[0], [0]]
    assert producer.written(result(serving.ask(produce, producer.batches(0, key=b"3"), 12))) == [0]
    assert producer.end() == 0
    assert read(serving) == [b"1", b"2", b"3"]


def test_a_batch_does_not_overtake_a_refused_one(serving: Serving) -> None:
    """
    A partition's first batch arrives while the previous transaction is not complete, and those behind it when it is.
    """
    producer = Producer(serving, is_old=False)
    producer.init()
    producer.write(0)
    log = state_log(serving)
    decided, complete = Deferred[None](), Deferred[None]()
    log.committed = decided
    asked = serving.ask(end_txn, producer.ending(), NEW)
    log.committed = complete
    decided.callback(None)
    serving.clock.pump([0] * _TURNS)
    following = result(asked)
    producer.me, producer.sequences = ProducerIdAndEpoch(following.producer_id, following.producer_epoch), Counter()
    assert producer.write(1, b"first") == ErrorCode.CONCURRENT_TRANSACTIONS
    log.committed = None
    complete.callback(None)
    producer.sequences[1] = 1
    assert producer.write(1, b"second") == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    producer.sequences[1] = 0
    assert [producer.write(1, b"first"), producer.write(1, b"second"), producer.end()] == [0, 0, 0]
    assert read(serving, 1) == [b"first", b"second"]


@pytest.mark.parametrize("is_old", [True, False])
def test_an_epoch_that_no_producer_has_is_refused(is_old: bool, serving: Serving) -> None:
    """
    The coordinator is asked although the producer has a transaction there in its own epoch.
    """
    producer = Producer(serving, is_old)
    producer.init()
    if is_old:
        producer.add(0)
    producer.write(0)
    mine, producer.me = producer.me, ProducerIdAndEpoch(producer.me.producer_id, producer.me.epoch + 1)
    producer.sequences[0] = 0
    assert producer.write(0) == ErrorCode.INVALID_PRODUCER_EPOCH
    producer.me = mine
    assert producer.end() == 0
    assert read(serving) == [b"k"]


def test_adding_is_all_or_nothing(serving: Serving) -> None:
    """
    One unknown partition refuses the others.
    """
    producer = Producer(serving, is_old=True)
    producer.init()
    unknown, not_tried = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.OPERATION_NOT_ATTEMPTED
    assert producer.add(0, 7) == {0: not_tried, 7: unknown}
    assert producer.add(0, name="nowhere") == {0: unknown}
    assert producer.write(0) == NEVER_ADDED


def test_internal_topics_cannot_be_added(serving: Serving) -> None:
    producer = Producer(serving, True)
    producer.init()
    producer.add_offsets()
    assert producer.add(0, name="__consumer_offsets") == {0: ErrorCode.TOPIC_AUTHORIZATION_FAILED}


@pytest.mark.parametrize("is_old", [True, False])
def test_an_empty_id_is_refused(is_old: bool, serving: Serving) -> None:
    producer = Producer(serving, is_old)
    producer.init()
    producer.id = ""
    assert producer.write(0) == ErrorCode.INVALID_REQUEST


def test_a_replaced_producer_is_fenced(producer: Producer, serving: Serving) -> None:
    """
    A second producer with the same id ends its transaction.
    """
    producer.add(0)
    assert producer.write(0, b"lost") == 0
    second = Producer(serving, producer.is_old)
    while (code := second.init()) == ErrorCode.CONCURRENT_TRANSACTIONS:
        serving.clock.advance(0.1)
    assert code == 0
    assert producer.write(0) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert producer.end() == ErrorCode.PRODUCER_FENCED
    second.add(0)
    assert (second.write(0, b"kept"), second.end()) == (0, 0)
    assert read(serving) == [b"kept"]


@pytest.mark.parametrize("commits", [True, False])
def test_offsets_count_once_committed(producer: Producer, commits: bool) -> None:
    """
    They are unstable until then.
    """
    if producer.is_old:
        assert producer.commit_offset(5) == NEVER_ADDED
        assert producer.add_offsets() == 0
    assert producer.commit_offset(5) == 0
    assert producer.fetch_offset() == (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    assert producer.fetch_offset(stable=False) == (-1, 0)
    assert producer.end(commits) == 0
    assert producer.fetch_offset() == (5 if commits else -1, 0)


def test_offsets_are_committed_before_the_response(producer: Producer, serving: Serving) -> None:
    """
    The client ends the transaction next.
    """
    producer.add_offsets()
    log = state_log(serving, Resource.GROUP, GROUP)
    committed = log.committed = Deferred()
    asked = serving.ask(txn_offset_commit, producer.offset(5), producer.offset_version)
    serving.clock.pump([0] * _TURNS)
    assert (len(log.written), asked.called) == (1, False)
    committed.callback(None)
    assert result(asked).topics[0].partitions[0].error_code == 0


def test_a_refused_group_begins_no_transaction(serving: Serving) -> None:
    producer = Producer(serving, is_old=False)
    producer.init()
    log = state_log(serving)
    assert producer.commit_offset(5, generation_id=1, member_id="m") == ErrorCode.ILLEGAL_GENERATION
    assert log.written == []
    assert producer.commit_offset(5) == 0
    assert len(log.written) == 1


def test_members_are_fenced(producer: Producer) -> None:
    """
    If a generation is named, the member must exist.
    """
    producer.add_offsets()
    assert producer.commit_offset(5, generation_id=1, member_id="m") == ErrorCode.ILLEGAL_GENERATION
    assert producer.commit_offset(5) == 0
    assert producer.commit_offset(5, generation_id=1, member_id="m") == ErrorCode.UNKNOWN_MEMBER_ID


def test_another_epoch_is_fenced(producer: Producer) -> None:
    """
    A member of the consumer protocol gets a code that producers know: they abort, and continue.
    """
    joining = ConsumerGroupHeartbeatRequest(
        group_id=GROUP,
        member_id="m",
        member_epoch=0,
        rebalance_timeout_ms=1_000,
        subscribed_topic_names=[TOPIC],
        topic_partitions=[],
    )
    joined = producer.ask(consumer_group_heartbeat, joining, 1)
    producer.add_offsets()
    now: int = joined.member_epoch
    codes = [producer.commit_offset(5, generation_id=epoch, member_id="m") for epoch in (-2, now - 1, now + 1)]
    assert codes == [ErrorCode.ILLEGAL_GENERATION] * 3
    assert producer.commit_offset(5, generation_id=now, member_id="m") == 0


def test_transactions_are_described(producer: Producer, serving: Serving) -> None:
    """
    Administrators see the state, the producer and the partitions.
    """

    def described(name: str = ID) -> Any:
        request = DescribeTransactionsRequest(transactional_ids=[name])
        [found] = producer.ask(describe_transactions, request, 0).transaction_states
        return found

    def listed(*states: str) -> list[str]:
        request = ListTransactionsRequest(state_filters=[*states], producer_id_filters=[])
        return [one.transactional_id for one in producer.ask(list_transactions, request, 2).transaction_states]

    assert (described().transaction_state, listed(), listed("Ongoing")) == ("Empty", [ID], [])
    producer.add(1)
    producer.write(1)
    found = described()
    assert (found.transaction_state, found.producer_id, found.producer_epoch) == ("Ongoing", *producer.me)
    assert [(topic.topic, topic.partitions) for topic in found.topics] == [(TOPIC, [1])]
    assert found.transaction_start_time_ms == serving.now_ms()
    assert listed("Ongoing") == [ID]
    assert described("other").error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND


def test_administrators_end_hanging_transactions(producer: Producer, serving: Serving) -> None:
    """
    They write a marker to one partition (as `kafka-transactions abort` does).
    """
    producer.add(0)
    producer.write(0)
    marker = WriteTxnMarkersRequest.Marker(
        producer_id=producer.me.producer_id,
        producer_epoch=producer.me.epoch,
        transaction_result=False,
        topics=[WriteTxnMarkersRequest.Marker.Topic(name=TOPIC, partition_indexes=[0, 9])],
        coordinator_epoch=0,
    )
    [answer] = producer.ask(write_txn_markers, WriteTxnMarkersRequest(markers=[marker]), 1).markers
    codes = {one.partition_index: one.error_code for one in answer.topics[0].partitions}
    assert codes == {0: 0, 9: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert (read(serving), partition(serving).last_stable) == ([], 2)


@pytest.mark.parametrize(
    ("operation", "resource", "code"),
    [
        (Operation.WRITE, Resource.TRANSACTIONAL_ID, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        (Operation.READ, Resource.GROUP, ErrorCode.GROUP_AUTHORIZATION_FAILED),
        (Operation.READ, Resource.TOPIC, ErrorCode.TOPIC_AUTHORIZATION_FAILED),
    ],
)
def test_permission_to_commit_offsets_is_needed(
    producer: Producer, serving: Serving, operation: Operation, resource: Resource, code: ErrorCode
) -> None:
    """
    The reason names the missing one.
    """
    producer.add_offsets()
    serving.parts.authorizer = Denying(lambda op, kind, _: (op, kind) == (operation, resource))
    request = TxnOffsetCommitRequest(
        transactional_id=ID,
        group_id=GROUP,
        producer_id=producer.me.producer_id,
        producer_epoch=producer.me.epoch,
        topics=[
            TxnOffsetCommitRequest.Topic(
                name=TOPIC,
                partitions=[
                    TxnOffsetCommitRequest.Topic.Partition(
                        partition_index=0, committed_offset=1, committed_metadata=None
                    )
                ],
            )
        ],
    )
    told = producer.ask(txn_offset_commit, request, 3)
    found = told if isinstance(told, ErrorCode) else told.topics[0].partitions[0].error_code
    assert found == code
